//! `fxscope jitter simulate`: phases, or a recorded program, under noise at several sizes.

use std::path::PathBuf;

use fxscope::lab::jitter::{self, Recorded, ReplayOptions};

use crate::options::PhaseArgs;
use crate::terminal::{Outcome, SheetForm};

/// Simulate a program of phases under noise, on one node up to a whole machine.
///
/// Each core works for the grain, then all cores synchronise; a detour delays its core, and with it all that wait for
/// it. Efficiency is the share of the time that is useful work, `phase loss` the time that noise adds to a phase,
/// `expected` the same by order statistics where they apply.
///
/// With --program, each node runs a copy of the ranks of a recorded run instead: the work between their calls of MPI as
/// recorded, the waiting in calls recomputed under noise and the network. docs/jitter-scale.md has examples and their run
/// times.
#[derive(clap::Args)]
pub struct Args {
    /// A recorded run of a program with MPI, or a program of `fxscope jitter program`.
    #[arg(long, value_name = "RUN.fxr|PROGRAM.csv",
        conflicts_with_all = ["cores_per_node", "grain", "imbalance", "phases", "sync", "bytes"])]
    program: Option<PathBuf>,
    /// The run of the file, counted from 1; default: the last one.
    #[arg(long, value_name = "N", requires = "program")]
    run: Option<u32>,
    /// How often the program runs.
    #[arg(long, value_name = "N", default_value_t = 100, requires = "program",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    repeat: u64,
    #[command(flatten)]
    phase_args: PhaseArgs,
    #[command(flatten)]
    form: SheetForm,
}

/// Simulates all sizes.
pub(super) fn simulate(args: &Args) -> Outcome {
    let outputs = args.form.check()?;
    let asked = args.phase_args.asked();
    let sheet = match &args.program {
        None => jitter::simulate(&asked)?,
        Some(path) => {
            let jitter::Options { model, nodes, network, seed, most_detours, .. } = asked;
            let options = ReplayOptions { model, nodes, network, repetitions: args.repeat, seed, most_detours };
            jitter::replay(&Recorded::of_file(path, args.run)?, &options)?
        }
    };
    outputs.write(&sheet)
}
