//! `fxscope machine`: machines, and checks of their descriptions.

use fxscope::lab::{prefetched, resources};
use fxscope::machine;

use crate::terminal::{Outcome, print, show};

/// Show machines and check machine descriptions.
#[derive(clap::Subcommand)]
pub enum Command {
    /// List the built-in machines.
    List,
    /// Show every key of a machine: meaning, unit, limits, value, evidence and source.
    Show {
        /// A name, or the path of a machine's folder or file.
        #[arg(default_value = "a64fx")]
        machine: String,
        /// Only values that are assumed or fitted, with the reason and what would settle them.
        #[arg(long)]
        assumed: bool,
    },
    /// Check a machine's description, and that each value has evidence and a source.
    Check {
        /// The path of a machine's folder or file, or a name.
        #[arg(default_value = "a64fx")]
        machine: String,
    },
    /// List the lines that hardware prefetch requests while a loop reads line after line: a miss on A, then each next line.
    Prefetched {
        /// A name, or the path of a machine's folder or file.
        #[arg(default_value = "a64fx")]
        machine: String,
        /// Distance of prefetches into L1, lines; default: the machine's.
        #[arg(long, value_name = "LINES")]
        l1_lines: Option<u32>,
        /// Distance of prefetches into L2, lines; default: the machine's.
        #[arg(long, value_name = "LINES")]
        l2_lines: Option<u32>,
        /// Number of accesses after the miss.
        #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        accesses: u32,
    },
    /// Compute the resources of the core that a loop needs so that out-of-order execution alone keeps its pipes busy.
    Resources {
        /// A name, or the path of a machine's folder or file.
        #[arg(default_value = "a64fx")]
        machine: String,
        /// Operations for each result (a vector), each of which needs the one before.
        #[arg(long, value_name = "N", value_parser = entries(1))]
        operations: u64,
        /// Loads for each result.
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = entries(0))]
        loads: u64,
        /// Stores for each result.
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = entries(0))]
        stores: u64,
        /// Vector registers that keep their values through the loop.
        #[arg(long, value_name = "N", default_value_t = 0, value_parser = entries(0))]
        constants: u64,
        /// Results of an iteration.
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = entries(1))]
        unroll: u64,
        /// The operation: a class of the machine's instructions.csv.
        #[arg(long, value_name = "CLASS", default_value = resources::DEFAULT_OPERATION)]
        operation: String,
    },
}

/// Returns the parser of a number of instructions or registers.
fn entries(least: u64) -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(least..=1000)
}

/// Runs the command; its text goes to standard output.
pub(super) fn machine(command: &Command) -> Outcome {
    match command {
        Command::List => print(machine::show_list()),
        Command::Show { machine: name, assumed: false } => print(machine::show(&machine::load(name, &[])?)),
        Command::Show { machine: name, assumed: true } => print(machine::show_assumed(&machine::load(name, &[])?)),
        Command::Check { machine: name } => {
            let spec = machine::load(name, &[])?;
            fxscope::check_rows(&spec)?;
            machine::check_evidence(&spec)?;
            print(machine::show_sound(&spec, name))
        }
        Command::Prefetched { machine: name, l1_lines, l2_lines, accesses } => {
            show(&[prefetched::sheet(name, *l1_lines, *l2_lines, *accesses)?.document()])
        }
        &Command::Resources { machine: ref name, operations, loads, stores, constants, unroll, ref operation } => {
            let shape = resources::Shape { operations, loads, stores, constants, unroll };
            show(&[resources::sheet(name, operation, shape)?.document()])
        }
    }
}
