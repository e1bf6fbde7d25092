//! Triad from L1, L2 and memory, side by side.

use std::process::Command;

use crate::release::succeed;
use crate::root;

/// The programs and their arguments: about the same number of instructions each.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("triad-l1", &["n=2048", "passes=2000"]),
    ("triad-l2", &["n=29056", "passes=140"]),
    ("triad-mem", &["n=1048512", "passes=3"]),
];

/// Runs the demonstration with the release build of `fxscope`.
///
/// # Errors
/// When a program cannot be run, or fails.
pub fn run() -> Result<(), String> {
    let fxscope = root().join("target/release/fxscope");
    let folder = std::env::temp_dir().join(format!("fxscope-demo-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let result = show(&fxscope, &folder);
    let removed = std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()));
    result.and(removed)
}

fn show(fxscope: &std::path::Path, folder: &std::path::Path) -> Result<(), String> {
    let mut records = Vec::new();
    for (name, args) in PROGRAMS {
        let record = folder.join(format!("{name}.fxr"));
        let program = format!("kernels/prebuilt/{name}.elf");
        eprintln!("$ fxscope run -o {name}.fxr -- {program} {}", args.join(" "));
        let mut command = Command::new(fxscope);
        command.current_dir(root()).args(["run", "--quiet", "-o"]).arg(&record).arg("--").arg(program).args(*args);
        succeed(&mut command)?;
        records.push(record);
    }
    let mut command = Command::new(fxscope);
    command.arg("report").args(&records).args(["--region", "triad"]);
    succeed(&mut command)
}
