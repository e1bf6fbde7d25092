//! `fxscope jitter linpack`: the speed of LINPACK by problem size, with the share of noise.

use fxscope::jitter::linpack::memory;
use fxscope::lab::jitter;

use crate::terminal::{Outcome, SheetForm};

/// Estimate the efficiency of LINPACK by problem size: DGEMM, panels, communication, and the effect of noise.
///
/// Without --nodes, the runs of the machine's file, beside their published results.
#[derive(clap::Args)]
pub struct Args {
    /// Machine: fx1, or the path of a file like data/linpack/fx1.toml.
    #[arg(long, value_name = "NAME|FILE", default_value = "fx1")]
    machine: String,
    /// Numbers of nodes.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    nodes: Vec<u32>,
    /// Memory of a node.
    #[arg(long, value_name = "SIZE", default_value = "32GiB", value_parser = memory)]
    memory: u64,
    /// Share of it that the matrix fills; default: that of the machine's largest problem.
    #[arg(long, value_name = "SHARE")]
    fill: Option<f64>,
    /// Rows of the matrix, instead of the share of memory.
    #[arg(long, value_name = "N", conflicts_with = "fill")]
    n: Option<f64>,
    /// Noise: a profile, or the path of a model's file; default: the machine's.
    #[arg(long, value_name = "NAME|FILE")]
    model: Option<String>,
    /// Seed of the random numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    form: SheetForm,
}

/// Estimates all runs.
pub(super) fn linpack(args: &Args) -> Outcome {
    let outputs = args.form.check()?;
    let options = jitter::LinpackOptions {
        machine: args.machine.clone(),
        nodes: args.nodes.clone(),
        memory: args.memory,
        fill: args.fill,
        n: args.n,
        model: args.model.clone(),
        seed: args.seed,
    };
    outputs.write(&jitter::linpack(&options)?)
}
