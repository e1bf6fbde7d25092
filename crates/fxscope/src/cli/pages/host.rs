//! `fxscope pages host`: the page sizes of this host, of its processes, and what large pages save its programs.

use std::ffi::OsString;
use std::path::PathBuf;

use fxscope::hostinfo::memory::read;
use fxscope::lab::pages::{self, walks};
use fxscope::report::document::Document;
use fxscope::report::render::html;

use crate::terminal::{Answer, Console, Failure, Form, Outcome};

/// Show which page sizes this Linux host offers, which ones a running process received (--pid), and what large pages would save a
/// program on this host (--perf, --perf-file, --check).
///
/// Mappings of a process are visible to its owner and to root. --perf counts page walks with perf stat on x86 (Intel, AMD) and 64-bit Arm
/// processors; --check runs the program in pairs without and with transparent huge pages, which needs no counters.
#[derive(clap::Args)]
pub struct Args {
    /// The process to inspect.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["perf", "perf_file", "check"])]
    pid: Option<u32>,
    /// Count the page walks of the program with this perf program.
    #[arg(
        long, value_name = "PATH", num_args = 0..=1, require_equals = true, default_missing_value = "perf", conflicts_with = "perf_file"
    )]
    perf: Option<PathBuf>,
    /// Take the counts of page walks from this output of `perf stat` (text, -x or -j).
    #[arg(long, value_name = "FILE")]
    perf_file: Option<PathBuf>,
    /// Measure what large pages save the program, in pairs of runs without and with them; with counts, also the error of the estimate.
    #[arg(long)]
    check: bool,
    /// Pairs of runs of --check, at least 6.
    #[arg(long, value_name = "N", default_value_t = 9, requires = "check")]
    pairs: usize,
    /// The processor that was counted: intel, intel-haswell, amd-zen, arm-neoverse or arm-neoverse-v3; default: this host's, or that of
    /// the events in the file.
    #[arg(long, value_name = "NAME")]
    processor: Option<String>,
    /// Least and most cycles of a page walk, for processors that do not count them; default: as measured on this host.
    #[arg(long, value_name = "LEAST,MOST", value_delimiter = ',')]
    walk_cycles: Option<Vec<f64>>,
    #[command(flatten)]
    form: Form,
    /// The program of this host and its arguments.
    #[arg(last = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

/// Shows the host, and the process or the gain of the program.
pub(super) fn host(args: &Args) -> Outcome {
    let outputs = args.form.check()?;
    let host = read::host();
    if args.perf.is_some() || args.perf_file.is_some() || args.check {
        let answer = walks::walks(&question(args)?, &host, &Console::new(false))?;
        return outputs.write_document(&answer.document, &[], &|| pages::host::json(&host, None, Some(&answer.json)));
    }
    if !args.command.is_empty() {
        return Err("a program is only run with --perf or --check".into());
    }
    let process = args.pid.map(read::process).transpose()?;
    let mut documents = vec![pages::host::about_host(&host)];
    documents.extend(process.as_ref().map(|process| pages::host::about_process(&host, process)));
    outputs.write(&Answer {
        html: &|| html::experiment(&Document::joined(&documents), &[]),
        json: &|| pages::host::json(&host, process.as_ref(), None),
        text: &documents,
    })
}

/// The question that the options ask.
fn question(args: &Args) -> Result<walks::Question, Failure> {
    let walk_cycles = args.walk_cycles.as_deref().map(|all| {
        <[f64; 2]>::try_from(all)
            .map_err(|_| Failure::from("--walk-cycles takes two numbers: LEAST,MOST, such as 20,150"))
    });
    let perf = args.perf.clone().map(walks::Source::Perf);
    Ok(walks::Question {
        source: perf.or_else(|| args.perf_file.clone().map(walks::Source::File)),
        processor: args.processor.clone(),
        walk_cycles: walk_cycles.transpose()?,
        pairs: args.check.then_some(args.pairs),
        command: args.command.clone(),
    })
}
