//! The latency curve: cycles of dependent loads by the size of their working set.

use std::path::PathBuf;

use crate::{kernel, root};

/// Options of `xtask latency`.
#[derive(clap::Args)]
pub struct Args {
    /// Values of the machine's description to set for all runs, as in `fxscope run --set`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// The fxscope binary.
    #[arg(long, default_value = "target/release/fxscope")]
    fxscope: PathBuf,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Sizes, bytes: powers of two, with additional ones around the sizes of the caches.
const SIZES: &[u64] = &[
    4 * KIB,
    8 * KIB,
    16 * KIB,
    32 * KIB,
    48 * KIB,
    64 * KIB,
    80 * KIB,
    96 * KIB,
    128 * KIB,
    256 * KIB,
    512 * KIB,
    MIB,
    2 * MIB,
    4 * MIB,
    6 * MIB,
    7 * MIB,
    8 * MIB,
    10 * MIB,
    12 * MIB,
    16 * MIB,
    32 * MIB,
    64 * MIB,
];
/// Page sizes, one column each.
const PAGES: &[&str] = &["2MiB", "64KiB", "4KiB"];
/// Bytes from one load's line to the next.
const LINE: u64 = 256;

/// Runs all pointer chases and prints the table as Markdown.
///
/// # Errors
/// If a kernel cannot be run.
pub fn run(args: &Args) -> Result<(), String> {
    let fxscope = root().join(&args.fxscope);
    println!("| Size | pages of {} |", PAGES.join(" | "));
    println!("|---:|{}", "---:|".repeat(PAGES.len()));
    for &size in SIZES {
        // Twice through all lines, or often enough that the ends of the loop do not matter.
        let loads = (2 * size / LINE).clamp(20_000, 200_000);
        let arguments = format!("footprint={size} hops={loads} state=warm");
        let mut cells = Vec::new();
        for pages in PAGES {
            let page_size = format!("pages.bss={pages}");
            let settings = args.settings.iter().chain([&page_size]);
            let options: String = settings.map(|setting| format!("--set {setting} ")).collect();
            let cycles = kernel::count(&fxscope, "chase", &arguments, &options)?.cycles;
            cells.push(format!("{:.1}", cycles / loads as f64));
        }
        println!("| {} | {} |", words(size), cells.join(" | "));
    }
    Ok(())
}

/// Formats a size.
fn words(bytes: u64) -> String {
    if bytes < MIB { format!("{} KiB", bytes / KIB) } else { format!("{} MiB", bytes / MIB) }
}
