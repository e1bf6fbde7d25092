//! Watching micro-operations on their way, for traces. Watching nothing costs nothing.

use fxscope_base::Cycle;
use fxscope_memory::Level;

use crate::dispatch::Station;
use crate::resolve::RUop;

/// When a micro-operation passed the stages of the pipeline, cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When it could be decoded.
    pub decodable: Cycle,
    /// When it was dispatched (stage D).
    pub dispatched: Cycle,
    /// The station of its first flow.
    pub station: Station,
    /// When its first flow began to execute (stage X or A).
    pub started: Cycle,
    /// The first cycle in which it might commit (stage C).
    pub complete: Cycle,
    /// When it committed.
    pub committed: Cycle,
    /// How far its memory access had to go.
    pub level: Level,
}

/// Somebody who is told of each micro-operation, in program order.
pub trait Watch {
    /// Whether there is anything to tell: decided at compile time, so that the hot path has no test.
    const WATCHES: bool;
    /// `uop`, of the instruction at `pc`, has passed.
    fn passed(&mut self, uop: &RUop, pc: u64, passage: &Passage);
}

/// Nobody watches.
impl Watch for () {
    const WATCHES: bool = false;
    fn passed(&mut self, _: &RUop, _: u64, _: &Passage) {}
}
