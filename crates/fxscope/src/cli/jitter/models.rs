//! `fxscope jitter profiles` and `show`: built-in noise models, and what a trace or a model says.

use fxscope::lab::jitter;

use crate::terminal::{Outcome, SheetForm, print};

/// Lists the profiles and the networks.
pub(super) fn profiles() -> Outcome {
    print(jitter::profiles()?)
}

/// Show a trace or a noise model.
///
/// For a trace: the share of the time that is noise, its rate, lengths, periods, spectrum and time line, by core and by
/// cause. For a model: its sources, the share of a core that each takes, and where the numbers come from.
#[derive(clap::Args)]
pub struct Args {
    /// A trace (of `fxscope jitter measure` or `import`), a profile (see `fxscope jitter profiles`), or the path of a
    /// model's file.
    #[arg(value_name = "TRACE|NAME|FILE")]
    what: String,
    /// Cores of a node, for models.
    #[arg(long, value_name = "N", default_value_t = 48, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    cores_per_node: u32,
    #[command(flatten)]
    form: SheetForm,
}

/// Shows a trace or a model.
pub(super) fn show(args: &Args) -> Outcome {
    let outputs = args.form.check()?;
    outputs.write(&jitter::show(&args.what, args.cores_per_node)?)
}
