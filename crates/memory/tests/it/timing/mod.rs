//! What the memory hierarchy promises, one behaviour a test.
//!
//! Expected numbers are computed from the machine's description, never taken from the model's own output.

mod caches;
mod chip;
mod coherence;
mod cores;
mod in_flight;
mod inactive;
mod large_page;
mod late;
mod partition;
mod pipes;
mod policies;
mod prefetch;
mod replacement;
mod ring;
mod sectors;
mod side_cache;
mod tiers;
mod translation;
mod walks;
mod warming;
mod zeroing;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals};
use fxscope_machine::Spec;
use fxscope_memory::{Bounds, Chip, CoreId, CoreMemory, Hierarchy, Level, PageRange, Response, Wants};

/// Bytes of a line, and of all lines of one L1D set together.
const LINE: u64 = 256;
const L1_SET: u64 = 64 * LINE;

/// The real machine without its stream prefetcher and without a limit on requests to L2, so that only
/// what a test is about costs time.
fn machine() -> Spec {
    // Reading the description takes longer than most tests.
    static MACHINE: OnceLock<Spec> = OnceLock::new();
    let read = || {
        let mut spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        spec.tables.prefetch.l1 = false;
        spec.tables.prefetch.l2 = false;
        spec.tables.l2_timing.request_period = 1.0;
        spec
    };
    MACHINE.get_or_init(read).clone()
}

/// The private memory of a core, and the chip while the core runs.
struct Memory {
    core: CoreMemory,
    chip: Option<Box<Chip>>,
}

impl Memory {
    /// Core number `position` of a chip that another core has.
    fn waiting(spec: &Spec, position: u32) -> Memory {
        Memory { core: CoreMemory::new(spec, CoreId::of(spec, position)), chip: None }
    }
    fn chip(&self) -> &Chip {
        self.chip.as_deref().expect("the core runs")
    }
    fn run(&mut self) -> Hierarchy<'_> {
        self.core.with(self.chip.as_deref_mut().expect("the core runs"))
    }
    /// Runs from `now` on, on the chip of `other`, which sends no request before `from` when it runs again.
    fn take_over(&mut self, other: &mut Memory, from: Cycle, now: Cycle, signals: &mut Signals) {
        let chip = other.leave_chip(from);
        self.take_chip(chip, now, signals);
    }
    fn take_chip(&mut self, chip: Box<Chip>, now: Cycle, signals: &mut Signals) {
        self.chip = Some(chip);
        self.run().resume(now, signals);
    }
    fn leave_chip(&mut self, from: Cycle) -> Box<Chip> {
        self.run().suspend(from);
        self.chip.take().expect("the core ran")
    }
}

/// One core's hierarchy with its counters.
struct Core {
    memory: Memory,
    signals: Signals,
    load: Cycle,
    /// The pages of each address space, as they were told last.
    pages: BTreeMap<u16, Arc<[PageRange]>>,
}

impl Core {
    fn new(spec: &Spec) -> Core {
        Core::at(spec, 0)
    }
    fn at(spec: &Spec, position: u32) -> Core {
        Core::with(spec, Memory { chip: Some(Box::new(Chip::new(spec))), ..Memory::waiting(spec, position) })
    }
    fn with(spec: &Spec, memory: Memory) -> Core {
        let load = spec.load_store.load_integer;
        Core { memory, signals: Signals::default(), load, pages: BTreeMap::new() }
    }

    /// The address space numbered `space` is the one in use, and has these pages now, lowest address first.
    fn set_pages(&mut self, space: u16, pages: Vec<PageRange>) {
        let pages: Arc<[PageRange]> = pages.into();
        let before = self.pages.insert(space, Arc::clone(&pages)).unwrap_or_default();
        self.memory.run().chip.release_pages(space, &before, &pages);
        self.memory.core.follow_pages(space, pages);
    }

    /// An access whose flow runs at `t`, its address translated long before.
    fn access(&mut self, addr: u64, t: Cycle, write: bool) -> Response {
        self.wanting(addr, t, Wants { write, replay_period: 0 })
    }
    fn wanting(&mut self, addr: u64, t: Cycle, wants: Wants) -> Response {
        let place = self.memory.run().translate(addr.into(), 0, &mut Signals::default());
        self.memory.run().access(&place, t, wants, &mut self.signals)
    }
    /// An integer load's flow at `t`: cycles until its result can be used, and how far it went.
    fn load(&mut self, addr: u64, t: Cycle) -> (Cycle, Level) {
        let answer = self.access(addr, t, false);
        // A load that missed is sent again when its line is there.
        let at = if answer.at > t { self.memory.core.pipes.load(answer.at) } else { t };
        (at + self.load - t, answer.misses.level())
    }
    fn store(&mut self, addr: u64, t: Cycle) {
        self.access(addr, t, true);
    }
    fn get(&self, signal: Signal) -> u64 {
        self.signals.get(signal)
    }
    /// Nothing before `t` will be asked for any more.
    fn now(&mut self, t: Cycle) -> Cycle {
        self.memory.run().advance(t);
        t
    }
}
