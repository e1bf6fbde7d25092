//! Per-uop stage times, for traces. Without a probe they cost nothing.

use fxscope_calendar::Cycle;
use fxscope_counts::Signal;
use fxscope_machine::Pipes;
use fxscope_memory::Level;

use crate::bind::{BoundUop, READY};
use crate::bypass::PIPES;
use crate::core::Pipeline;
use crate::dispatch::Station;

/// The counters of requests of each load/store pipe.
pub(crate) const REQUESTS: [Signal; 2] = [Signal::L1Pipe0Comp, Signal::L1Pipe1Comp];

/// When a micro-operation passed each stage of the pipeline, cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageTimes {
    /// When its fetch block came from the L1I cache.
    pub fetched: Cycle,
    /// When it could be decoded.
    pub decodable: Cycle,
    /// When it was dispatched (stage D).
    pub dispatched: Cycle,
    /// The station of its first flow.
    pub station: Station,
    /// The pipes that its flows took.
    pub pipes: Pipes,
    /// For a memory access, the load/store pipe that counted its request.
    pub load_store_pipe: usize,
    /// When its first flow began to execute (stage X or A); its dispatch for one without flows.
    pub started: Cycle,
    /// When the last of its results could first be used; `None` without results.
    pub result: Option<Cycle>,
    /// The first cycle in which it could commit (stage C).
    pub complete: Cycle,
    /// When it committed.
    pub committed: Cycle,
    /// The level that served its memory access.
    pub level: Level,
}

/// Is called for each micro-operation, in program order.
pub trait UopProbe {
    /// Whether the probe does anything: decided at compile time, so that the hot path has no test.
    const ACTIVE: bool;
    /// `uop`, of the instruction at `pc`, has passed.
    fn passed(&mut self, uop: &BoundUop, pc: u64, times: &StageTimes);
}

/// No probe.
impl UopProbe for () {
    const ACTIVE: bool = false;
    fn passed(&mut self, _: &BoundUop, _: u64, _: &StageTimes) {}
}

impl Pipeline {
    /// When all results of `uop`, which was executed last, can be used by some pipe.
    pub(crate) fn result_of(&self, uop: &BoundUop) -> Option<Cycle> {
        let earliest = |&dst: &u8| self.values[usize::from(dst)].earliest();
        uop.dsts.iter().take_while(|&&dst| dst != READY).map(earliest).max()
    }

    /// Requests completed so far in each load/store pipe.
    pub(crate) fn requests(&self) -> [u64; 2] {
        REQUESTS.map(|signal| self.signals.get(signal))
    }

    /// The pipes that have started operations since `before`.
    pub(crate) fn pipes_used_since(&self, before: &[u64; PIPES]) -> Pipes {
        let used = (0..PIPES).filter(|&pipe| self.started[pipe] != before[pipe]);
        used.fold(Pipes::default(), |all, pipe| all.or(Pipes(1 << pipe)))
    }
}
