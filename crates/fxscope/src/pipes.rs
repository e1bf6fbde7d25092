//! The pipes by the names the manual gives them.

use fxscope_machine::Pipes;

const NAMES: [(Pipes, &str); 8] = [
    (Pipes::EXA, "EXA"),
    (Pipes::EXB, "EXB"),
    (Pipes::EAGA, "EAGA"),
    (Pipes::EAGB, "EAGB"),
    (Pipes::FLA, "FLA"),
    (Pipes::FLB, "FLB"),
    (Pipes::PRX, "PRX"),
    (Pipes::BR, "BR"),
];

/// The names of the pipes in `set`.
pub(crate) fn names(set: Pipes) -> impl Iterator<Item = &'static str> {
    NAMES.iter().filter(move |(pipe, _)| set.meets(*pipe)).map(|&(_, name)| name)
}
