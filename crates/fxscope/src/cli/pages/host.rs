//! `fxscope pages host`: the page sizes of this host and of its processes.

use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::hostinfo::memory::read;
use fxscope::lab::pages;
use fxscope::report::render::terminal;

use super::super::output::Target;
use super::super::{Outcome, print, style};

/// Show which page sizes this Linux host offers, and with --pid which ones a running process received.
///
/// Mappings of a process are visible to its owner and to root.
#[derive(clap::Args)]
pub struct Args {
    /// The process to inspect.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Write everything, with the findings, as JSON to this file, which is replaced atomically, or to standard output
    /// (-) instead of text.
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

/// Shows the host, and the process.
pub(super) fn host(args: &Args) -> Outcome {
    let target = args.json.as_deref().map(Target::check).transpose()?;
    let host = read::host();
    let process = args.pid.map(read::process).transpose()?;
    let instead = matches!(target, Some(Target::StandardOutput));
    if let Some(target) = target {
        target.write(&pages::host::json(&host, process.as_ref()))?;
    }
    if !instead {
        let mut documents = vec![pages::host::about_host(&host)];
        documents.extend(process.map(|process| pages::host::about_process(&host, &process)));
        print(terminal::render(&documents, style(&std::io::stdout())))?;
    }
    Ok(ExitCode::SUCCESS)
}
