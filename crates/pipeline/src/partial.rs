//! Counts of inactive elements of operations and memory accesses.
//!
//! A pipe counts 16 for an operation on all elements, and the share of it for another one (A64FX PMU events 1.3,
//! `FLA_VAL_PRD_CNT` and the like). The missing part is counted, which is nearly always 0. Only blocks with inactive
//! elements are run by [`Pipeline::run_partly`], which observes the pipes of their instructions.

use fxscope_counts::{Signal, Signals};
use fxscope_isa::Partial;
use fxscope_memory::Chip;

use crate::bind::{Action, BoundBlock, BoundUop};
use crate::bypass::{FLA, FLB, PIPES};
use crate::core::Pipeline;
use crate::events::INACTIVE;
use crate::uop_probe::{StageTimes, UopProbe};

/// The unit in which signals count missing elements: an operation on all elements stands for 16, whatever the vector length.
/// The formulas of events in `pmu.csv` use the same unit.
const WHOLE: u64 = 16;

/// What counts the elements that are missing in each load/store pipe.
const MISSING_IN_LOAD_STORE_PIPE: [Signal; 2] = [Signal::L1Pipe0Inactive, Signal::L1Pipe1Inactive];

impl Pipeline {
    /// As [`Pipeline::run_probed`], for a block in which some instructions worked on a part of their elements.
    #[inline(never)]
    pub fn run_partly<W: UopProbe>(
        &mut self,
        block: &mut BoundBlock,
        executed: usize,
        (stream, partials): (&[u64], &[Partial]),
        next_pc: u64,
        probe: &mut W,
        chip: &mut Chip,
    ) {
        let operates = |block: &BoundBlock, partial: &Partial| block.profile[usize::from(partial.inst)].pipes;
        let before: Vec<[u64; PIPES]> = partials.iter().map(|partial| operates(block, partial)).collect();
        let mut requests = Requests { partials, missing: [0; 2], probe };
        self.run_probed(block, executed, stream, next_pc, &mut requests, chip);
        for (signal, missing) in MISSING_IN_LOAD_STORE_PIPE.into_iter().zip(requests.missing) {
            self.signals.add(signal, missing);
        }
        for (partial, before) in partials.iter().zip(before) {
            block.profile[usize::from(partial.inst)].events[INACTIVE] += partial.missing(WHOLE);
            let now = operates(block, partial);
            let missing = |pipe: usize| (now[pipe] - before[pipe]) * partial.missing(WHOLE);
            // The data flow of a plain store counts nothing, whatever is active.
            if !block.moves_store_data(partial.inst) {
                self.signals.add(Signal::FlaInactive, missing(FLA));
                self.signals.add(Signal::FlbInactive, missing(FLB));
            }
        }
    }
}

/// Follows accesses of a block to the load/store pipes.
struct Requests<'a, W> {
    partials: &'a [Partial],
    missing: [u64; 2],
    probe: &'a mut W,
}

impl<W: UopProbe> UopProbe for Requests<'_, W> {
    const ACTIVE: bool = true;

    fn passed(&mut self, uop: &BoundUop, pc: u64, times: &StageTimes) {
        if matches!(uop.action, Action::Load | Action::Store | Action::Prefetch)
            && let Some(partial) = self.partials.iter().find(|partial| partial.inst == uop.inst)
        {
            self.missing[times.load_store_pipe] += partial.missing(WHOLE);
        }
        if W::ACTIVE {
            self.probe.passed(uop, pc, times);
        }
    }
}

impl BoundBlock {
    /// Whether instruction `inst` sends data of a plain store through FLA.
    fn moves_store_data(&self, inst: u8) -> bool {
        self.uops.iter().any(|uop| uop.inst == inst && store_data_in_fla(uop))
    }
}

fn store_data_in_fla(uop: &BoundUop) -> bool {
    uop.data_flow && uop.vector && uop.flows[1].pipes.within(fxscope_machine::Pipes::FLA)
}

/// Adds the elements that the micro-operations of an instruction never have: the flow of a store's data through FLA has
/// no predicate. By measured counts, a triad with full vectors counts 16 for each FMA and nothing for the data of each
/// store.
pub(crate) fn count_store_data(uops: &[BoundUop], mix: &mut Signals) {
    let flows = uops.iter().filter(|uop| store_data_in_fla(uop)).map(|uop| u64::from(uop.flows[1].busy));
    mix.add(Signal::FlaInactive, flows.sum::<u64>() * WHOLE);
}
