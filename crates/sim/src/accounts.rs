//! Counts during a timed run: for threads, regions and intervals.

use fxscope_aarch64::Engine;
use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals};
use fxscope_linux::guest::PID;
use fxscope_machine::Spec;
use fxscope_machine::events::Event;
use fxscope_memory::NEVER;

use crate::jobs::{Mark, Unfit};
use crate::region::{self, Counted, Counts, Snapshot, Totals};
use crate::spin_skip::Spin;
use crate::timing::Driver;

/// Iterates over the events of a machine that have a number and are counted, with their numbers. Energy follows from other events and
/// is no count of its own.
pub(crate) fn pmu_events(spec: &Spec) -> impl Iterator<Item = (u16, &Event)> {
    spec.pmu.events.iter().filter_map(|event| Some((event.number.filter(|_| !event.terms.is_empty())?, event)))
}

/// Returns the counts of a thread without the cycles for which it slept: Linux counts for a thread only while it runs.
pub(crate) fn while_running(mut signals: Signals) -> Signals {
    let asleep = signals.get(Signal::WfeWfiCycle);
    for signal in [Signal::CpuCycles, Signal::Commit0, Signal::RobEmpty] {
        signals.set(signal, signals.get(signal).saturating_sub(asleep));
    }
    signals
}

impl<E: Engine> Driver<'_, E> {
    /// Passes what the PMU has counted for each thread to the guest, whose thread makes a system call that may ask for it. Events of
    /// a CMG count what the thread itself causes: counts of several threads can then be added up.
    pub(crate) fn pass_counts(&mut self) {
        let counts = self.all_totals().into_iter().map(|(thread, counted)| {
            let signals = while_running(counted.counts.signals);
            (thread + PID, pmu_events(&self.options.spec).map(|(_, event)| event.count(&signals)).collect())
        });
        let counts = counts.collect();
        self.guest.set_counts(counts);
    }

    /// Returns the number of the current thread in the record.
    fn thread_number(&self) -> u32 {
        self.guest.thread().tid - PID
    }

    /// Starts counting for the current thread.
    pub(crate) fn count_current_thread(&mut self) {
        let thread = (!self.timing.machine.core_mut().untimed).then(|| self.thread_number());
        if self.timing.machine.core().thread == thread {
            return;
        }
        self.catch_up_all();
        // The thread may have run on another core before.
        let active = self.timing.machine.active;
        for index in (0..self.timing.machine.cores.len()).filter(|&index| index != active) {
            let core = self.timing.machine.get_mut(index).filter(|core| core.thread == thread);
            let before = core.and_then(|core| core.count_for(None));
            self.credit(index, before);
        }
        let before = self.timing.machine.core_mut().count_for(thread);
        self.credit(active, before);
        if let Some(thread) = thread {
            let leader = self.guest.pid() - PID;
            let created_ns = self.guest.thread().created_ns();
            self.regions.runs(thread, leader, created_ns, self.timing.machine.core().now_ns());
            self.note_rank(thread);
            self.follow_calls(thread);
        }
        // Control registers belong to the thread.
        let (core, chip) = self.timing.machine.running();
        core.read_controls(self.guest, chip);
    }

    /// Notes the rank of the current thread, which has this number.
    fn note_rank(&mut self, thread: u32) {
        let process = self.guest.process_of_thread(self.guest.thread().tid);
        if let Some(rank) = process.and_then(|process| process.rank) {
            self.regions.has_rank(thread, rank);
        }
    }

    fn credit(&mut self, index: usize, counted: Option<(u32, Counts)>) {
        let Some((thread, counts)) = counted else { return };
        self.park_calls(index, thread);
        let cpu = self.cpu_of(index);
        region::add(&mut self.timing.totals, thread, &Counted { cpu, counts });
    }

    fn cpu_of(&self, index: usize) -> u32 {
        self.guest.cpus().nth(index).map_or(0, |state| state.place.cpu)
    }

    /// Looks for a region marker at the instruction at `last` or in the call that the program has just made. Returns whether the phase
    /// of the run is over, of which a part is timed.
    #[inline(never)]
    pub(crate) fn marked(&mut self, last: u64) -> bool {
        let markers = &self.timing.machine.core().markers;
        if let Some(part) = self.part.as_deref_mut().filter(|part| part.has_functions()) {
            part.arrives(markers.function_at(self.guest.cpu().pc), self.guest);
        }
        if markers.has_mpi() {
            self.follow_mpi();
        }
        if let Some((edge, name)) = self.timing.machine.core().markers.met(last, self.guest) {
            if self.records_mark(|| Mark { edge, name: name.clone() }) {
                return false;
            }
            let (thread, first) = (self.thread_number(), self.guest.thread().tid == self.guest.pid());
            self.note_rank(thread);
            let now = Snapshot { totals: self.totals(), ns: self.timing.machine.core().now_ns() };
            let name = self.regions.meets(edge, thread, first, name, now);
            if let (Some(part), Some(name)) = (self.part.as_deref_mut(), name) {
                part.meets(edge, &name, self.guest);
            }
        }
        self.phase_is_over()
    }

    /// Returns whether the phase of the run is over, of which a part is timed.
    #[inline(always)]
    pub(crate) fn phase_is_over(&self) -> bool {
        self.part.as_ref().is_some_and(|part| part.is_over())
    }

    /// Follows calls of MPI to the program counter.
    fn follow_mpi(&mut self) {
        let pc = self.guest.cpu().pc;
        let thread = self.thread_number();
        let core = self.timing.machine.core();
        let entry = core.markers.mpi_at(pc);
        if entry.is_some() || self.timing.mpi.returns(thread, pc) {
            let now_ns = core.now_ns();
            self.is_unfit(Unfit::Mpi);
            self.timing.mpi.arrives(thread, entry, self.guest, now_ns);
        }
    }

    /// Returns the counters of the part that is timed, or of the whole run, including the time that sleeping cores have slept.
    pub(crate) fn totals(&mut self) -> Totals {
        let all = self.all_totals();
        self.in_part(all)
    }

    /// Returns what is counted in the part that is timed, if there is one.
    fn in_part(&self, all: Totals) -> Totals {
        match &self.part {
            Some(part) => part.counted(all),
            None => all,
        }
    }

    /// Returns the counters of the whole run.
    pub(crate) fn all_totals(&mut self) -> Totals {
        let now = self.timing.now();
        let mut totals = self.timing.totals.clone();
        for index in 0..self.timing.machine.cores.len() {
            let active = index == self.timing.machine.active;
            let sleeps = self.timing.clocks[index] == NEVER;
            let Some(core) = self.timing.machine.get_mut(index) else { continue };
            if sleeps && !active {
                core.sleep_until(now);
            }
            if let Some(thread) = core.thread {
                let counts = core.counted_by(now);
                let cpu = self.cpu_of(index);
                region::add(&mut totals, thread, &Counted { cpu, counts });
            }
        }
        totals
    }

    /// Ends the intervals that end by `now`, which all cores have reached, and samples call stacks if that is due.
    #[inline(always)]
    pub(crate) fn reach(&mut self, now: Cycle) {
        if now >= self.timing.intervals.due() {
            self.end_intervals(now);
        }
        if now >= self.timing.stacks.due() {
            self.sample_stacks(now);
        }
    }

    #[cold]
    fn end_intervals(&mut self, now: Cycle) {
        let (first, last) = (self.timing.intervals.due(), self.timing.intervals.last_end(now));
        self.end_interval(first);
        if first < last {
            // A core that sleeps has slept since the first of them at least.
            self.end_interval(last);
        }
    }

    fn end_interval(&mut self, end: Cycle) {
        let totals = self.counted_by(end);
        let counted = self.counted_in_intervals(&totals);
        self.timing.intervals.take(end, &counted);
    }

    /// Returns what is counted by intervals, when threads have counted `totals`.
    pub(crate) fn counted_in_intervals(&self, totals: &Totals) -> Signals {
        match &self.options.interval_region {
            None => region::sum(totals),
            Some(name) => self.regions.so_far(name, totals),
        }
    }

    /// Returns what was counted in the part that is timed, which has been left.
    pub(crate) fn totals_of_part(&self) -> Totals {
        self.in_part(Totals::new())
    }

    /// Returns the counts of all threads; for sleeping and spinning ones, up to `now`.
    fn counted_by(&mut self, now: Cycle) -> Totals {
        let mut totals = self.timing.totals.clone();
        for index in 0..self.timing.machine.cores.len() {
            let clock = self.timing.clocks[index];
            let Some(core) = self.timing.machine.get_mut(index) else { continue };
            if !matches!(core.spin, Spin::Spins(_)) {
                core.sleep_until(now.min(clock));
            }
            if let Some(thread) = core.thread {
                let counts = core.counted_by(now);
                let cpu = self.cpu_of(index);
                region::add(&mut totals, thread, &Counted { cpu, counts });
            }
        }
        self.in_part(totals)
    }
}
