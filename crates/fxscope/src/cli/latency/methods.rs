//! `fxscope latency methods`: the methods, and the events they need.

use fxscope::lab::latency;

use crate::terminal::{Outcome, print, show};

/// List the methods with their formulas and assumptions, and the processors whose events are known.
#[derive(clap::Args)]
pub struct Args {
    /// Write the methods as a Markdown table, as in docs/latency-lab.md.
    #[arg(long)]
    markdown: bool,
}

/// Lists them.
pub(super) fn methods(args: &Args) -> Outcome {
    if args.markdown { print(latency::methods_markdown()) } else { show(&[latency::methods()]) }
}
