//! A memory system that was cloned, or written and read back, continues as the original does.

use std::sync::Arc;

use fxscope_calendar::Cycle;
use fxscope_counts::Signals;
use fxscope_machine::Spec;
use fxscope_memory::{
    Bounds, Chip, CoreId, CoreMemory, PageRange, Placement, Pointer, PrefetchRegisters, Turns, Wants,
};
use serde::{Deserialize, Serialize};

/// Operations before the snapshot, and behind it.
const OPERATIONS: usize = 6_000;
/// Bytes of the data that cores share, or have each for itself: more than caches and TLBs hold.
const BYTES: u64 = 48 << 20;
/// Where the pages of each core's own data begin.
const OWN: u64 = 1 << 32;

/// A chip, some of its cores, and a random stream of what they do.
#[derive(Clone, Serialize, Deserialize)]
struct Machine {
    chip: Chip,
    cores: Vec<CoreMemory>,
    signals: Vec<Signals>,
    clocks: Vec<Cycle>,
    active: usize,
    random: u64,
}

impl Machine {
    /// Two cores of the first CMG, and one of the last one if there are several.
    fn new(spec: &Spec) -> Machine {
        let each = spec.topology.cores_per_cmg;
        let mut positions = vec![0, 1];
        positions.extend((spec.topology.cmgs > 1).then_some((spec.topology.cmgs - 1) * each));
        let mut machine = Machine {
            chip: Chip::new(spec),
            cores: positions.iter().map(|&core| CoreMemory::new(spec, CoreId::of(spec, core))).collect(),
            signals: vec![Signals::default(); positions.len()],
            clocks: vec![1_000; positions.len()],
            active: 0,
            random: 0x1234_5678,
        };
        machine.set_pages();
        machine
    }

    /// Shared data in small and in large pages, and some pages for each core.
    fn set_pages(&mut self) {
        let range = |start, bytes, shift, placement| PageRange {
            start,
            end: start + bytes,
            shift,
            placement,
            moved: 0,
            shared: None,
            bounds: Bounds::ALL,
        };
        let mut pages = vec![
            range(0, BYTES, 16, Placement::FirstTouch),
            range(1 << 31, BYTES, 21, Placement::Interleave(Turns::equal(1))),
        ];
        pages.extend((1..=self.cores.len() as u64).map(|core| range(core * OWN, BYTES, 21, Placement::FirstTouch)));
        let pages: Arc<[PageRange]> = pages.into();
        self.cores.iter_mut().for_each(|core| core.follow_pages(1, Arc::clone(&pages)));
        // A hardware prefetch that finds no free resource is dropped, in half of the cores.
        let weak = PrefetchRegisters { stream_detect: 1 << 63 | 3 << 54, ..PrefetchRegisters::default() };
        self.cores.iter_mut().step_by(2).for_each(|core| core.set_prefetch_registers(&weak));
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 20) % n
    }

    /// The core that is behind does the next operation. Returns when that is done.
    fn step(&mut self) -> Cycle {
        let core = (0..self.cores.len()).min_by_key(|&core| self.clocks[core]).expect("a core");
        if core != self.active {
            self.cores[self.active].with(&mut self.chip).suspend(self.clocks[self.active]);
            self.cores[core].with(&mut self.chip).resume(Cycle::MAX, &mut self.signals[core]);
            self.active = core;
        }
        let (kind, at, gap) = (self.below(16), self.below(BYTES), self.below(40));
        let start = [0, 1 << 31, (core as u64 + 1) * OWN, 0][self.below(4) as usize];
        // Every second one continues a stream, for the prefetcher.
        let at = if kind % 2 == 0 { self.clocks[core] * 8 % BYTES } else { at };
        let (t, signals) = (self.clocks[core], &mut self.signals[core]);
        let mut memory = self.cores[core].with(&mut self.chip);
        memory.advance(t);
        let pointer = Pointer::from(start + at);
        let done = match kind {
            0 => memory.zero_line(pointer, t, signals),
            1 => memory.prefetch_instruction(pointer, 16, 1, t, signals).at,
            2 => memory.prefetch_instruction(pointer, 16, 2, t, signals).at,
            3 | 4 => memory.fetch(at % (256 << 10), t, signals),
            5 => memory.inactive(pointer, t, signals),
            kind => {
                let place = memory.translate(pointer, t, signals);
                let at = memory.core.pipes.load(place.ready);
                memory.access(&place, at, Wants { write: kind > 11, replay_period: 11 }, signals).at
            }
        };
        self.clocks[core] += 1 + gap;
        done
    }

    fn steps(&mut self) -> Vec<Cycle> {
        (0..OPERATIONS).map(|_| self.step()).collect()
    }

    fn bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("can be written")
    }
}

#[test]
fn a_machine_that_was_cloned_or_read_back_goes_on_with_the_same_times_and_counts() {
    for name in ["a64fx", "knl", "k-computer"] {
        let mut spec = fxscope_machine::load(name, &[]).expect("built in");
        // Of a cache of gigabytes a small one does.
        spec.tables.memory_side_cache.bytes = spec.memory_side_cache.bytes.min(4 << 20);
        let mut machine = Machine::new(&spec);
        machine.steps();
        let mut cloned = machine.clone();
        let mut read: Machine = postcard::from_bytes(&machine.bytes()).expect("can be read");
        let expected = machine.steps();
        assert!(expected == cloned.steps() && expected == read.steps(), "times of {name}");
        assert_eq!(machine.signals, cloned.signals, "counts of the clone of {name}");
        assert_eq!(machine.signals, read.signals, "counts of {name}, read back");
        assert!(machine.bytes() == cloned.bytes() && machine.bytes() == read.bytes(), "the state of {name} at the end");
    }
}
