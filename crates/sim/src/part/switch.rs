//! From one phase of a run to the next.

use fxscope_aarch64::Engine;

use super::Phase;
use crate::mpi::Follower;
use crate::run::{Finish, Simulation};
use crate::timing::{Driver, Timing};

impl<E: Engine> Simulation<E> {
    /// Returns whether blocks are followed or timed now.
    pub(crate) fn is_modelled(&self) -> bool {
        let by_part = |phase| matches!(phase, Phase::Followed | Phase::Timed);
        self.timing.is_some() && self.part.as_ref().is_none_or(|part| by_part(part.phase()))
    }

    /// Returns whether blocks are followed now.
    pub(crate) fn is_followed(&self) -> bool {
        self.part.as_ref().is_some_and(|part| part.phase() == Phase::Followed)
    }

    /// Returns whether the part has been left for good.
    pub(crate) fn is_behind_part(&self) -> bool {
        self.part.as_ref().is_some_and(|part| part.phase() == Phase::Behind)
    }

    /// Returns whether the phase is over.
    pub(crate) fn phase_is_over(&self) -> bool {
        let Some(part) = &self.part else { return false };
        // In timed runs, each core has a time of its own.
        let has_come = !self.is_modelled() && self.guest.now_ns() >= part.end_ns();
        part.is_over() || has_come || self.guest.instructions() >= part.end_instructions()
    }

    /// Begins the next phase. `Some`: the run is over.
    pub(crate) fn switch_phase(&mut self) -> Option<Finish> {
        if self.is_modelled() {
            self.driver(u64::MAX)?.switch_phase();
        } else {
            let part = self.part.as_mut()?;
            part.switch(self.guest.instructions(), self.guest.now_ns());
            self.begin_to_model();
        }
        if !self.is_behind_part() {
            return None;
        }
        if self.part.as_ref().is_some_and(|part| part.stops()) {
            return Some(Finish::Limit);
        }
        self.end_to_model();
        None
    }

    /// The guest, which has run functionally, gets cores.
    fn begin_to_model(&mut self) {
        self.code.drop_stops();
        self.guest.forget_memory_work();
        let mut timing = Timing::new(&mut self.guest, &self.options);
        timing.begin_at(self.guest.now_ns());
        timing.calls.begin_ns = self.guest.now_ns();
        timing.mpi = std::mem::take(&mut self.mpi).into_recorder();
        if let Some(part) = &mut self.part {
            timing.assign_sectors(std::mem::take(&mut part.sectors));
            if part.phase() == Phase::Timed {
                let (now, now_ns) = (timing.now(), self.guest.now_ns());
                timing.mpi.enter_part(now_ns);
                timing.intervals.begin_at(now, now_ns);
                timing.stacks.begin_at(now);
            }
        }
        self.timing = Some(timing);
    }

    /// The guest runs functionally from now on.
    fn end_to_model(&mut self) {
        if let Some(mut driver) = self.driver(u64::MAX) {
            driver.finish();
        }
        let Some(timing) = &mut self.timing else { return };
        let now_ns = timing.machine.iter().map(|core| core.now_ns()).max().unwrap_or(0);
        self.guest.gather(now_ns);
        self.mpi = Follower::restored(timing.mpi.clone());
        self.mpi.continues(&mut self.guest, &mut self.code);
        self.slice_end = 0;
    }
}

impl Timing {
    /// Lets time pass until `now_ns`, at which the guest begins to run on the cores.
    fn begin_at(&mut self, now_ns: u64) {
        let core = self.machine.core_mut();
        let now = core.cycle_at(now_ns);
        core.sleep_until(now + 1);
    }
}

impl<E: Engine> Driver<'_, E> {
    /// Begins the next phase of a run that has cores.
    fn switch_phase(&mut self) {
        self.end_paused_quantum();
        self.stop_all_spinning();
        self.catch_up_all();
        let all = self.all_totals();
        let Some(part) = self.part.as_deref_mut() else { return };
        let (now, now_ns) = (self.timing.now(), self.timing.machine.core().now_ns());
        let (was_timed, instructions) = (part.phase() == Phase::Timed, self.guest.instructions());
        if was_timed {
            part.leave(all);
            part.switch(instructions, now_ns);
            let counted = self.counted_in_intervals(&self.totals_of_part());
            self.timing.mpi.leave_part(now_ns);
            self.timing.intervals.end_at(now_ns, &counted);
            self.timing.stacks.end();
        } else {
            part.enter(all);
            part.switch(instructions, now_ns);
            self.timing.mpi.enter_part(now_ns);
            self.timing.intervals.begin_at(now, now_ns);
            self.timing.stacks.begin_at(now);
        }
        self.timing.machine.iter_mut().for_each(|core| core.switch_part(!was_timed));
    }
}
