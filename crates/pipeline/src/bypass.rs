//! Bypasses: what a result costs on its way from one pipe to another (manual 2.7, table 2-4).

use fxscope_base::Cycle;
use fxscope_machine::Spec;

use crate::resolve::{BY_PIPE, PRODUCERS, Producer};

/// Number of pipes.
pub const PIPES: usize = 8;
/// The pipes by the names the manual gives them, in the order of [`fxscope_machine::Pipes`].
pub const PIPE_NAMES: [&str; PIPES] = ["EXA", "EXB", "EAGA", "EAGB", "FLA", "FLB", "PRX", "BR"];
pub(crate) const EXA: usize = 0;
pub(crate) const EXB: usize = 1;
pub(crate) const EAGA: usize = 2;
pub(crate) const EAGB: usize = 3;
pub(crate) const FLA: usize = 4;
pub(crate) const FLB: usize = 5;
pub(crate) const PRX: usize = 6;

/// Cycles by consuming pipe.
pub(crate) type ByPipe = [Cycle; PIPES];

/// Extra cycles by producer and consuming pipe.
pub(crate) type BypassTable = [ByPipe; PRODUCERS];

impl Producer {
    /// The producer that stands for an integer result from `pipe`.
    #[inline(always)]
    fn integer(pipe: usize) -> Producer {
        match pipe {
            0 => Producer::Exa,
            1 => Producer::Exb,
            2 => Producer::Eaga,
            3 => Producer::Eagb,
            _ => Producer::Plain,
        }
    }
}

pub(crate) fn bypass_table(spec: &Spec) -> BypassTable {
    let b = &spec.bypass;
    let mut table = [[0; PIPES]; PRODUCERS];
    // Rows of the description name kinds of consumers; this says which pipe is of which kind.
    let kinds = [0, 0, 1, 1, 2, 2, 3, 4];
    let rows = [
        (Producer::Flags, &b.flags),
        (Producer::FlagsExb, &b.flags),
        (Producer::Predicate, &b.predicate),
        (Producer::PredicateLoad, &b.predicate_load),
        (Producer::Compare, &b.compare),
        (Producer::PredicateFlags, &b.predicate_flags),
        (Producer::VectorFlags, &b.vector_flags),
        (Producer::CompareFlags, &b.compare_flags),
    ];
    for (producer, row) in rows {
        for (pipe, kind) in kinds.into_iter().enumerate() {
            table[producer as usize][pipe] = row[kind];
        }
    }
    table[Producer::Flags as usize][EXB] += b.integer_other_pipe;
    table[Producer::FlagsExb as usize][EXA] += b.integer_other_pipe;
    for from in 0..4 {
        for to in (0..4).filter(|&to| to != from) {
            table[Producer::integer(from) as usize][to] = b.integer_other_pipe;
        }
    }
    table
}

/// Which row of the bypass table a result has, by its kind and the pipe that makes it.
pub(crate) fn bypass_rows() -> [[u8; PIPES]; PRODUCERS + 1] {
    let mut rows: [[u8; PIPES]; PRODUCERS + 1] = std::array::from_fn(|producer| [producer as u8; PIPES]);
    rows[usize::from(BY_PIPE)] = std::array::from_fn(|pipe| Producer::integer(pipe) as u8);
    rows[Producer::Flags as usize][EXB] = Producer::FlagsExb as u8;
    rows
}
