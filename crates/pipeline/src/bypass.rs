//! Bypasses: extra cycles of a result on its way from one pipe to another (manual 2.7, table 2-4).

use fxscope_calendar::Cycle;
use fxscope_machine::Spec;

use crate::bind::{BY_PIPE, PRODUCERS, Producer};

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

/// Extra cycles by consuming pipe.
type ByPipe = [u16; PIPES];

/// A register's value: when it is available, and how many cycles later in each pipe.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, serde::Serialize)]
#[repr(align(32))]
pub(crate) struct Value {
    pub there: Cycle,
    pub later: ByPipe,
}

impl Value {
    /// When it is available in `pipe`.
    #[inline(always)]
    pub(crate) fn at(&self, pipe: usize) -> Cycle {
        self.there + Cycle::from(self.later[pipe])
    }

    /// When it is available in the first of the pipes.
    pub(crate) fn earliest(&self) -> Cycle {
        self.there + Cycle::from(self.later.iter().min().copied().unwrap_or(0))
    }
}

/// Extra cycles of results, by kind ([`BY_PIPE`] included), producing pipe and consuming pipe.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Bypasses([[ByPipe; PIPES]; PRODUCERS + 1]);

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

impl Bypasses {
    /// The bypasses of a machine.
    pub(crate) fn new(spec: &Spec) -> Bypasses {
        let table = by_producer(spec);
        let row = |producer, pipe| table[row_of(producer, pipe)];
        Bypasses(std::array::from_fn(|producer| std::array::from_fn(|pipe| row(producer as u8, pipe))))
    }

    /// The value of a result of kind `producer` that `pipe` makes at `there`.
    #[inline(always)]
    pub(crate) fn value(&self, there: Cycle, producer: u8, pipe: usize) -> Value {
        Value { there, later: self.0[usize::from(producer)][pipe] }
    }
}

/// Extra cycles by producer and consuming pipe.
fn by_producer(spec: &Spec) -> [ByPipe; PRODUCERS] {
    let b = &spec.bypass;
    let mut table = [[0; PIPES]; PRODUCERS];
    // Rows of the description name kinds of consumers. This is the kind of each pipe.
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
            table[producer as usize][pipe] = cycles(row[kind]);
        }
    }
    table[Producer::Flags as usize][EXB] += cycles(b.integer_other_pipe);
    table[Producer::FlagsExb as usize][EXA] += cycles(b.integer_other_pipe);
    for from in 0..4 {
        for to in (0..4).filter(|&to| to != from) {
            table[Producer::integer(from) as usize][to] = cycles(b.integer_other_pipe);
        }
    }
    table
}

/// Numbers in a machine's description fit.
fn cycles(n: Cycle) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

/// The row of [`by_producer`] for a result, by its kind and the pipe that makes it.
fn row_of(producer: u8, pipe: usize) -> usize {
    if producer == BY_PIPE {
        Producer::integer(pipe) as usize
    } else if producer == Producer::Flags as u8 && pipe == EXB {
        Producer::FlagsExb as usize
    } else {
        usize::from(producer)
    }
}
