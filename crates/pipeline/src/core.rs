//! The pipeline: all stages of a core, and the path of a micro-operation through them.

use fxscope_calendar::{Calendar, Cycle};
use fxscope_counts::{Signal, Signals, Stall};
use fxscope_isa::{Branch, Subnormal};
use fxscope_machine::Spec;
use fxscope_memory::{Chip, CoreId, CoreMemory, Misses, NEVER};

use crate::bind::{Action, BoundBlock, BoundUop, Profile};
use crate::blocking::Blockers;
use crate::bypass::{Bypasses, PIPES, Value};
use crate::commit::{Commit, Completion};
use crate::dispatch::Dispatch;
use crate::events::{MISPREDICTED, SUBNORMAL, count_refills};
use crate::frontend::Frontend;
use crate::lsu::Lsu;
use crate::predict::{Branched, Predictor};
use crate::sampled::SampledCounts;
use crate::uop_probe::{StageTimes, UopProbe};
use crate::writeback::Results;

/// One core.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Pipeline {
    pub(crate) front: Frontend,
    pub(crate) predictor: Predictor,
    pub(crate) dispatch: Dispatch,
    pub(crate) commit: Commit,
    pub(crate) lsu: Lsu,
    /// Private caches and translation of this core.
    pub memory: CoreMemory,
    pub(crate) signals: Signals,
    /// When the value of each register is available.
    #[serde(with = "fxscope_calendar::array")]
    pub(crate) values: Box<[Value; 256]>,
    /// Cycles in which each pipe starts an operation. PRX shares EXA's issue port and so its calendar.
    pub(crate) pipes: [Calendar; PIPES],
    /// Results that leave FLA and FLB.
    pub(crate) results: Results,
    /// Stages from address generation to commit of long accesses, and how many more than of short ones.
    pub(crate) commit_long: Cycle,
    pub(crate) long_more: Cycle,
    /// Blocking operations by pipe.
    pub(crate) blockers: [Blockers; PIPES],
    pub(crate) bypasses: Box<Bypasses>,
    /// Operations started, by pipe.
    pub(crate) started: [u64; PIPES],
    /// Flows in EXA that forward base addresses, which are not counted as operations.
    pub(crate) base_forwards: u64,
    pub(crate) stage_of_pipe: [Cycle; PIPES],
    /// Cycles before the start of a flow at which it releases its station entry: by pipe, and for memory accesses.
    pub(crate) released: [Cycle; PIPES],
    pub(crate) address_released: Cycle,
    pub(crate) branch_stage: Cycle,
    pub(crate) branch_after_execute: Cycle,
    mispredict_extra: Cycle,
    /// All ones when floating-point exceptions are not trapped, otherwise 0.
    pub(crate) judgement_skipped: u8,
    /// Extra cycles of a flow that meets a subnormal number.
    denormal: Cycle,
    /// Cycles from fetch to decode.
    pub(crate) refetch: Cycle,
    /// When calendars advance next.
    next_advance: Cycle,
    /// What is counted apart in a sampled run.
    pub(crate) sampled: Option<Box<SampledCounts>>,
}

/// Cycles between two advances of the calendars: a small part of their span.
const ADVANCE: Cycle = fxscope_calendar::SPAN / 32;

impl Pipeline {
    /// Core number `core` of a chip, counted from 0, with nothing in flight and cold caches.
    #[must_use]
    pub fn new(spec: &Spec, core: u32) -> Pipeline {
        let s = &spec.stages;
        let (i, f) = (spec.stations.release_integer, spec.stations.release_vector);
        let (x, v, a, p) = (s.integer, s.vector, s.address, s.predicate);
        Pipeline {
            front: Frontend::new(spec),
            predictor: Predictor::new(&spec.frontend),
            dispatch: Dispatch::new(spec),
            commit: Commit::new(spec.window.commit_width),
            lsu: Lsu::new(spec),
            memory: CoreMemory::new(spec, CoreId::of(spec, core)),
            signals: Signals::default(),
            values: Box::new([Value::default(); 256]),
            pipes: Default::default(),
            results: Results::new(s.lengthened_vector),
            commit_long: s.commit_long,
            long_more: s.commit_long.saturating_sub(s.commit_short),
            blockers: Default::default(),
            bypasses: Box::new(Bypasses::new(spec)),
            started: [0; PIPES],
            base_forwards: 0,
            stage_of_pipe: [x, x, a, a, v, v, p, x],
            released: [i, i, i, i, f, f, i, i],
            address_released: spec.stations.release_address,
            branch_stage: s.branch,
            branch_after_execute: s.branch_after_execute,
            mispredict_extra: spec.frontend.mispredict_extra,
            judgement_skipped: 0,
            denormal: s.denormal,
            refetch: spec.frontend.fetch_to_decode,
            next_advance: 0,
            sampled: None,
        }
    }

    /// The cycle of the last commit.
    #[must_use]
    pub fn now(&self) -> Cycle {
        self.commit.now()
    }

    /// The core begins to run on `chip`, or on its partition of it.
    pub fn resume(&mut self, chip: &mut Chip) {
        // What the program reads from now on is what other cores have written: it must get their lines, even where the
        // snoop of this core's copy would arrive a little later.
        self.memory.with(chip).resume(NEVER, &mut self.signals);
    }

    /// The core stops running. `resumes`: it will run again without being woken.
    pub fn suspend(&mut self, chip: &mut Chip, resumes: bool) {
        let from = if resumes { self.dispatch.lookahead() } else { NEVER };
        self.memory.with(chip).suspend(from);
    }

    /// No core runs any more: handles all pending snoops of this one.
    pub fn settle(&mut self, chip: &mut Chip) {
        self.memory.with(chip).handle_snoops(NEVER, &mut self.signals);
    }

    /// Times the first `executed` instructions of `block`, which left `stream` and continued at `next_pc`.
    pub fn run(&mut self, block: &mut BoundBlock, executed: usize, stream: &[u64], next_pc: u64, chip: &mut Chip) {
        self.run_probed(block, executed, stream, next_pc, &mut (), chip);
    }

    /// The same, with `probe` called for each micro-operation.
    pub fn run_probed<W: UopProbe>(
        &mut self,
        block: &mut BoundBlock,
        executed: usize,
        stream: &[u64],
        next_pc: u64,
        probe: &mut W,
        chip: &mut Chip,
    ) {
        let Some(last) = executed.checked_sub(1) else { return };
        // Of most blocks all runs, for which the host need not look further.
        let end = if executed == block.profile.len() { block.uops.len() } else { block.tables.uop_end[last] as usize };
        let profiles = &mut block.profile[..];
        // When the first flow of the instruction's micro-operations was issued.
        let mut issued = Cycle::MAX;
        for uop in &block.uops[..end] {
            let inst = usize::from(uop.inst);
            let outcome = Outcome { kind: block.branch, pc: block.start + 4 * inst as u64, next: next_pc };
            let (started, committed) = self.uop(uop, stream, &outcome, profiles, probe, chip);
            issued = issued.min(started);
            if uop.is_last() {
                profiles[inst].in_flight += committed - issued;
                issued = Cycle::MAX;
            }
        }
        if !self.memory.refills.is_empty() {
            count_refills(&mut self.memory.refills, profiles);
        }
    }

    /// Takes one micro-operation through all stages. Returns when its first flow was issued and when it committed.
    #[inline(always)]
    fn uop<W: UopProbe>(
        &mut self,
        uop: &BoundUop,
        stream: &[u64],
        outcome: &Outcome,
        profiles: &mut [Profile],
        probe: &mut W,
        chip: &mut Chip,
    ) -> (Cycle, Cycle) {
        let not_before = self.dispatch.reads_from();
        let mut decodable =
            self.front.supply(uop, outcome.pc, not_before, &mut self.memory.with(chip), &mut self.signals);
        let before = W::ACTIVE.then(|| (self.front.fetched(), decodable, self.started, self.requests()));
        if uop.fetch_ports > 0 {
            decodable = decodable.max(self.lsu.virtual_ports_free(uop));
        }
        if uop.pre_sync {
            self.dispatch.hold_until(self.commit.now() + 1);
        }
        let (dispatched, station, opens_group) = self.dispatch.dispatch(uop, decodable);
        self.advance(dispatched, chip);
        let done = self.execute(uop, stream, dispatched, station, &mut profiles[usize::from(uop.inst)], chip);
        if uop.takes_tor {
            self.dispatch.free_tor(done.started);
        }
        let completion = Completion { dispatched, complete: done.complete, misses: &done.misses, opens_group };
        let committed = self.commit.commit(uop, completion, profiles, &mut self.signals);
        self.dispatch.committed(uop, committed);
        match uop.action {
            Action::Store => self.lsu.commit_store(uop, committed, &mut self.memory.pipes),
            Action::Load | Action::Compute if uop.store_ports > 0 => self.lsu.commit_without_data(uop, committed),
            Action::Zero => {
                self.memory.refills.inst = uop.inst;
                let words = uop.words(stream);
                self.lsu.commit_zero(uop, words, committed, &mut self.memory.with(chip), &mut self.signals);
            }
            _ => {}
        }
        if uop.post_sync {
            self.dispatch.hold_until(committed + 1);
        }
        if uop.branches {
            // The return address of a call is available later than its branch is resolved.
            let call = outcome.kind == Branch::Call;
            let found = if call { dispatched + self.branch_stage } else { done.complete };
            let missed = self.branch(outcome, found, committed);
            profiles[usize::from(uop.inst)].events[MISPREDICTED] += u64::from(missed);
        }
        if let Some((fetched, decodable, starts, requests)) = before {
            let Executed { started, complete, misses } = done;
            let (pipes, result) = (self.pipes_used_since(&starts), self.result_of(uop));
            probe.passed(
                uop,
                outcome.pc,
                &StageTimes {
                    fetched,
                    decodable,
                    dispatched,
                    station,
                    pipes,
                    load_store_pipe: usize::from(self.requests()[1] != requests[1]),
                    started,
                    result,
                    complete,
                    committed,
                    level: misses.level(),
                },
            );
        }
        (done.started, committed)
    }

    /// A branch is resolved at `found`: trains the predictors, and steers the front end. Returns whether it was mispredicted.
    #[inline(always)]
    fn branch(&mut self, o: &Outcome, found: Cycle, committed: Cycle) -> bool {
        let taken = o.taken();
        if taken {
            self.commit.close();
            self.dispatch.close_group();
        }
        let prediction = self.predictor.branch(Branched { kind: o.kind, pc: o.pc, taken, next: o.next });
        self.front.supply_from_buffer(prediction.buffered);
        if prediction.right {
            if taken {
                self.front.taken(prediction.target_after);
            }
            return false;
        }
        self.signals.add(Signal::BrMisPred, 1);
        self.front.redirect(found + self.mispredict_extra);
        // The right path waits at decode until everything up to the branch has committed.
        self.dispatch.hold_until(committed + 1);
        true
    }

    #[inline(always)]
    fn advance(&mut self, now: Cycle, chip: &mut Chip) {
        if now >= self.next_advance {
            self.next_advance = now + ADVANCE;
            for calendar in &mut self.pipes {
                calendar.advance(now);
            }
            self.results.advance(now);
            self.memory.with(chip).advance(now);
        }
    }

    /// Sets whether floating-point exceptions are judged before commit, or not, in No Exception mode (manual 4.5.1).
    pub fn judge_exceptions(&mut self, judge: bool) {
        self.judgement_skipped = if judge { 0 } else { u8::MAX };
    }

    /// Instructions of `block`, which has just run, met `subnormals`. Each such flow executes alone (manual 6.5.3).
    #[cold]
    pub fn subnormals(&mut self, block: &mut BoundBlock, subnormals: &[Subnormal]) {
        if self.sampled.as_ref().is_some_and(|counts| counts.is_cold) {
            return;
        }
        let mut all = 0;
        for subnormal in subnormals {
            let cycles = self.subnormal_cycles(block, subnormal);
            block.charge(subnormal.inst, Stall::VectorOperation, cycles);
            block.profile[usize::from(subnormal.inst)].events[SUBNORMAL] += cycles;
            all += cycles;
        }
        self.signals.add(Signal::SubnormalCycles, all);
        let until = self.commit.now() + 1 + all;
        self.commit.idle_until(until, Stall::VectorOperation, &mut self.signals);
        self.dispatch.hold_until(until);
    }

    /// Returns the cycles for subnormal numbers that an instruction of `block` has met.
    #[must_use]
    pub fn subnormal_cycles(&self, block: &BoundBlock, subnormal: &Subnormal) -> Cycle {
        let flows = block.arithmetic_flows(subnormal.inst).min(subnormal.operations);
        Cycle::from(flows) * self.denormal
    }

    /// The thread spends `cycles` in the kernel. Everything in flight commits first.
    pub fn pause(&mut self, cycles: Cycle) {
        self.idle(cycles, Stall::Kernel);
    }

    /// Counts what happens outside of the core, for the thread that runs on it.
    pub fn count(&mut self, signal: Signal, n: u64) {
        self.signals.add(signal, n);
    }

    /// The core sleeps for `cycles`. Everything in flight commits first.
    pub fn sleep(&mut self, cycles: Cycle) {
        self.idle(cycles, Stall::Asleep);
    }

    fn idle(&mut self, cycles: Cycle, why: Stall) {
        let until = self.commit.now() + 1 + cycles;
        self.commit.idle_until(until, why, &mut self.signals);
        self.dispatch.hold_until(until);
        self.front.redirect(until);
    }

    /// The program is over: the cycle of the last commit counts too.
    pub fn finish(&mut self) {
        self.commit.finish(&mut self.signals);
    }
}

/// How a micro-operation was executed.
#[derive(Clone, Copy)]
pub(crate) struct Executed {
    /// When its first flow began to execute; its dispatch for one without flows.
    pub(crate) started: Cycle,
    /// First cycle in which it may commit.
    pub(crate) complete: Cycle,
    /// When its memory access was known to miss.
    pub(crate) misses: Misses,
}

/// What a branch did.
#[derive(Clone, Copy)]
struct Outcome {
    kind: Branch,
    pc: u64,
    next: u64,
}

impl Outcome {
    #[inline(always)]
    fn taken(&self) -> bool {
        self.next != self.pc + 4
    }
}
