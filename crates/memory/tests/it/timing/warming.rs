//! Functional warming leaves the state that timed accesses leave when nothing is in flight from one to the next.

use fxscope_memory::{Bounds, PageRange, Placement};

use super::*;

/// Cycles from one access to the next: more than any takes, so that timing changes nothing.
const APART: Cycle = 10_000;

/// A random number generator (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// An access of a core.
#[derive(Clone, Copy, Debug)]
enum Step {
    Touch { addr: u64, bytes: u64, write: bool },
    Prefetch { addr: u64, level: u8 },
    Zero { addr: u64 },
    Fetch { addr: u64 },
}

/// Accesses of which most belong to a few streams, the others go anywhere in some MiB, and some to code.
fn steps(random: &mut Random, many: usize) -> Vec<Step> {
    let mut streams: Vec<u64> = (0..4).map(|i| (i + 1) << 24).collect();
    let mut step = || {
        let stream = random.below(6) as usize;
        let addr = match streams.get_mut(stream) {
            Some(next) => {
                // Half of the accesses are to the line of the one before, and one in eight goes back.
                *next += 8 * random.below(64);
                *next - if random.below(8) == 0 { LINE } else { 0 }
            }
            None => (5 << 24) + random.below(12 << 20),
        };
        match random.below(20) {
            0 => Step::Prefetch { addr, level: 1 },
            1 => Step::Prefetch { addr, level: 2 },
            2 => Step::Zero { addr: addr & !(LINE - 1) },
            3 | 4 => Step::Fetch { addr: (7 << 24) + 4 * random.below(1 << 17) },
            what => Step::Touch { addr, bytes: 1 << random.below(9), write: what.is_multiple_of(3) },
        }
    };
    (0..many).map(|_| step()).collect()
}

/// A core whose pages of 64 KiB cover all addresses of [`steps`].
fn core(spec: &Spec) -> Core {
    let mut core = Core::new(spec);
    let pages = PageRange {
        start: 0,
        end: 8 << 24,
        shift: 16,
        placement: Placement::FirstTouch,
        moved: 0,
        shared: None,
        bounds: Bounds::ALL,
    };
    core.set_pages(1, vec![pages]);
    core
}

/// Makes a step at `t` as the pipeline does when it is timed.
fn timed(core: &mut Core, step: Step, t: Cycle) {
    let Core { memory, signals, .. } = core;
    let mut memory = memory.run();
    match step {
        Step::Touch { addr, bytes, write } => {
            let lines = addr / LINE..=(addr + bytes - 1) / LINE;
            for (line, t) in lines.zip((t..).step_by(1_000)) {
                let place = memory.translate((line * LINE).max(addr).into(), t, signals);
                memory.access(&place, place.ready, Wants { write, replay_period: 0 }, signals);
            }
        }
        Step::Prefetch { addr, level } => {
            memory.prefetch_instruction(addr.into(), 8, level, t, signals);
        }
        Step::Zero { addr } => {
            memory.zero_line(addr.into(), t, signals);
        }
        Step::Fetch { addr } => {
            memory.fetch(addr, t, signals);
        }
    }
    memory.advance(t);
}

/// Makes a step at `t` without timing it.
fn warmed(core: &mut Core, step: Step, t: Cycle) {
    let Core { memory, signals, .. } = core;
    let chip = memory.chip.as_deref_mut().expect("the core runs");
    let mut memory = memory.core.untimed(chip);
    match step {
        Step::Touch { addr, bytes, write } => memory.touch(addr, bytes, write, t, signals),
        Step::Prefetch { addr, level } => {
            memory.prefetch_instruction(addr.into(), 8, level, t, signals);
        }
        Step::Zero { addr } => {
            memory.zero_line(addr.into(), t, signals);
        }
        Step::Fetch { addr } => memory.touch_code(addr, addr + 4, t, signals),
    }
}

/// Accesses are not timed from now on.
fn begin_warming(core: &mut Core) {
    let Core { memory, .. } = core;
    let chip = memory.chip.as_deref_mut().expect("the core runs");
    memory.core.untimed(chip).begin_warming();
}

/// The counts that do not depend on time.
fn untimed_counts(core: &Core) -> Vec<(Signal, u64)> {
    core.signals.iter().filter(|(signal, _)| signal.is_untimed()).collect()
}

#[test]
fn warming_counts_every_miss_write_back_prefetch_and_walk_that_timed_accesses_count() {
    let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
    for seed in 1..=10 {
        let mut random = Random(seed * 0x9e37_79b9);
        let (mut one, mut other) = (core(&spec), core(&spec));
        begin_warming(&mut other);
        let steps = steps(&mut random, 20_000);
        for (i, (&step, t)) in steps.iter().zip((APART..).step_by(APART as usize)).enumerate() {
            timed(&mut one, step, t);
            warmed(&mut other, step, t);
            assert_eq!(untimed_counts(&one), untimed_counts(&other), "seed {seed}, step {i}: {step:?}");
        }
        assert!(one.get(Signal::L2dCacheWb) > 0 && one.get(Signal::L1HwpfStreamPf) > 1_000, "nothing was tested");
    }
}

#[test]
fn timed_accesses_after_warming_take_as_long_as_after_timed_ones() {
    let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
    let mut random = Random(7);
    let (mut one, mut other) = (core(&spec), core(&spec));
    let steps = steps(&mut random, 40_000);
    let mut t = APART;
    for (round, part) in steps.chunks(1_000).enumerate() {
        begin_warming(&mut other);
        for &step in part {
            timed(&mut one, step, t);
            if round.is_multiple_of(2) {
                warmed(&mut other, step, t)
            } else {
                timed(&mut other, step, t)
            }
            t += APART;
        }
        for _ in 0..100 {
            let addr = (5 << 24) + random.below(12 << 20);
            let write = random.below(2) == 0;
            assert_eq!(one.access(addr, t, write), other.access(addr, t, write), "round {round}, address {addr:#x}");
            t += APART;
        }
    }
}
