//! `fxscope latency methods`: the methods, and the events they need.

use std::process::ExitCode;

use fxscope::lab::latency;
use fxscope::report::render::terminal;

use super::super::{Outcome, print, style};

/// List the methods with their formulas and assumptions, and the processors whose events are known.
#[derive(clap::Args)]
pub struct Args {
    /// Write the methods as a Markdown table, as in docs/latency-lab.md.
    #[arg(long)]
    markdown: bool,
}

/// Lists them.
pub(super) fn methods(args: &Args) -> Outcome {
    if args.markdown {
        print(latency::methods_markdown())?;
    } else {
        print(terminal::render(&[latency::methods()], style(&std::io::stdout())))?;
    }
    Ok(ExitCode::SUCCESS)
}
