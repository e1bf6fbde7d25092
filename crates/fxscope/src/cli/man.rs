//! `fxscope man`: pages of the manual, from the definition of the command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::CommandFactory as _;

use super::Cli;
use crate::documents::{all_pages, page_of};
use crate::terminal::{Outcome, Target, output::failure, print};

/// Print a page of the manual, for man -l.
///
/// fxscope man run | man -l - shows the page of a command. Packages install all pages: man fxscope, man fxscope-run.
#[derive(clap::Args)]
pub struct Args {
    /// A command, such as run or jitter measure; without one, the page of fxscope.
    #[arg(conflicts_with = "folder")]
    command: Vec<String>,
    /// Write all pages to this folder, which is created if it is missing.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Prints the page, or writes all pages.
pub(super) fn man(args: &Args) -> Outcome {
    let Some(folder) = &args.folder else {
        return print(String::from_utf8_lossy(&page_of(Cli::command(), &args.command)?));
    };
    std::fs::create_dir_all(folder).map_err(|e| failure(folder, &e))?;
    for (name, page) in all_pages(Cli::command()) {
        Target::check(&folder.join(name))?.write_bytes(&page)?;
    }
    Ok(ExitCode::SUCCESS)
}
