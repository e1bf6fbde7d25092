//! The machine of a timed run: the chip and its cores, one of which runs at a time.

use fxscope_calendar::Cycle;
use fxscope_counts::Signals;
use fxscope_memory::Chip;

use crate::core::Core;

/// A chip and its cores. Each core borrows the chip while it runs.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Machine {
    pub(crate) chip: Chip,
    /// By number of the CPU; `None` until a thread runs on it.
    pub(crate) cores: Vec<Option<Box<Core>>>,
    /// The CPU whose core runs.
    pub(crate) active: usize,
}

impl Machine {
    /// Returns a machine of `cpus` CPUs. `core` is the active core, of CPU number `active`.
    pub(crate) fn new(chip: Chip, cpus: usize, active: usize, core: Core) -> Machine {
        let mut cores: Vec<_> = (0..cpus).map(|_| None).collect();
        cores[active] = Some(Box::new(core));
        Machine { chip, cores, active }
    }

    /// Returns the active core.
    #[inline(always)]
    pub(crate) fn core(&self) -> &Core {
        self.cores[self.active].as_deref().expect("the active core exists")
    }

    /// Returns the active core, mutable.
    #[inline(always)]
    pub(crate) fn core_mut(&mut self) -> &mut Core {
        self.running().0
    }

    /// Returns the active core and the chip, mutable.
    #[inline(always)]
    pub(crate) fn running(&mut self) -> (&mut Core, &mut Chip) {
        (self.cores[self.active].as_deref_mut().expect("the active core exists"), &mut self.chip)
    }

    /// Returns the core of CPU number `index`, if a thread has run on it.
    pub(crate) fn get(&self, index: usize) -> Option<&Core> {
        self.cores[index].as_deref()
    }

    /// The same, mutable.
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut Core> {
        self.cores[index].as_deref_mut()
    }

    /// Iterates over all cores on which a thread has run.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Core> {
        self.cores.iter().filter_map(Option::as_deref)
    }

    /// The same, mutable.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Core> {
        self.cores.iter_mut().filter_map(Option::as_deref_mut)
    }

    /// Returns what all cores have counted while blocks were followed.
    pub(crate) fn followed(&self) -> Signals {
        let mut all = Signals::default();
        self.iter().filter_map(|core| core.pipeline.followed()).for_each(|signals| all.merge(signals));
        all
    }

    /// Returns the clock of the active core.
    #[inline(always)]
    pub(crate) fn now(&self) -> Cycle {
        self.core().pipeline.now()
    }

    /// Makes CPU number `index` the active one; `new` creates its core if there is none yet. `resumes`: the previously
    /// active core will run again without a wake-up.
    pub(crate) fn activate(&mut self, index: usize, resumes: bool, new: impl FnOnce() -> Core) {
        if index == self.active {
            return;
        }
        let (core, chip) = self.running();
        core.pipeline.suspend(chip, resumes);
        self.active = index;
        self.cores[index].get_or_insert_with(|| Box::new(new())).pipeline.resume(&mut self.chip);
    }

    /// Activates each core that is not active and for which `wanted` holds in turn, and does `work` on it. The active core
    /// is the same afterwards. `resumes`: as for [`Machine::activate`], for all these cores.
    pub(crate) fn for_others(
        &mut self,
        resumes: bool,
        wanted: impl Fn(&Core) -> bool,
        mut work: impl FnMut(usize, &mut Core, &mut Chip),
    ) {
        let active = self.active;
        for index in (0..self.cores.len()).filter(|&index| index != active) {
            if !self.get(index).is_some_and(&wanted) {
                continue;
            }
            let (core, chip) = self.running();
            core.pipeline.suspend(chip, resumes);
            if let Some(core) = self.cores[index].as_deref_mut() {
                core.pipeline.resume(&mut self.chip);
                work(index, core, &mut self.chip);
                core.pipeline.suspend(&mut self.chip, resumes);
            }
            let (core, chip) = self.running();
            core.pipeline.resume(chip);
        }
    }
}
