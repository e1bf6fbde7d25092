//! `fxscope pages host`: what this host offers, and what a process of it got.

use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::hostinfo::memory::read;
use fxscope::lab::pages;
use fxscope::report::render::terminal;

use super::super::output::Target;
use super::super::{Outcome, print, style};

/// Show which page sizes this Linux host offers, and with --pid what a running process really got.
///
/// Mappings of a process are shown to its own user and to root.
#[derive(clap::Args)]
pub struct Args {
    /// The process to look at.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Write all that was read, with the findings, as JSON to this file, which is replaced as a whole, or to standard
    /// output (-) in place of the text.
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
