//! A chip in parts: the same as the whole one, however fast the threads are that have the parts.

use std::ops::Range;
use std::time::Duration;

use fxscope_memory::{NEVER, Placement};

use super::*;

/// Where the memory of a CMG begins in the address space here.
const EACH: u64 = 1 << 30;

/// A core on each CMG, which share a chip that none of them has.
struct Cores {
    spec: Spec,
    cores: Vec<Core>,
    chip: Option<Box<Chip>>,
}

impl Cores {
    /// Pages of `EACH` bytes of addresses in turn are on the nodes in turn.
    fn new(spec: &Spec) -> Cores {
        let node = |node: u64| PageRange {
            start: node * EACH,
            end: (node + 1) * EACH,
            shift: 21,
            placement: Placement::Node(node as u8),
            moved: 0,
            shared: None,
            bounds: Bounds::ALL,
        };
        let mut chip = Some(Box::new(Chip::new(spec)));
        let core = |cmg: u32| {
            let mut core = Core::with(spec, Memory::waiting(spec, cmg * spec.topology.cores_per_cmg));
            core.memory.take_chip(chip.take().expect("left"), NEVER, &mut core.signals);
            core.set_pages(0, (0..4).map(node).collect());
            chip = Some(core.memory.leave_chip(0));
            core
        };
        let cores = (0..4).map(core).collect();
        Cores { spec: spec.clone(), cores, chip }
    }

    /// Each core does what `work` says, one after the other, with the whole chip.
    fn one_by_one<T>(&mut self, mut work: impl FnMut(usize, &mut Core) -> T) -> Vec<T> {
        let mut results = Vec::new();
        for (number, core) in self.cores.iter_mut().enumerate() {
            let chip = self.chip.take().expect("left");
            core.memory.take_chip(chip, NEVER, &mut core.signals);
            results.push(work(number, core));
            self.chip = Some(core.memory.leave_chip(0));
        }
        results
    }

    /// Each core does what `work` says, on the threads of these parts. Returns how often one waited for the whole chip,
    /// too.
    fn in_parallel<T: Send>(
        &mut self,
        parts: &[Range<usize>],
        work: impl Fn(usize, &mut Core) -> T + Sync,
    ) -> (Vec<T>, u64) {
        let mut chip = self.chip.take().expect("left");
        let (partitioned, divided) = chip.partition(parts);
        let spec = &self.spec;
        let (mut cores, work) = (&mut self.cores[..], &work);
        let done = std::thread::scope(|scope| {
            let threads: Vec<_> = divided
                .into_iter()
                .zip(parts)
                .map(|(mut partition, numbers)| {
                    let (own, others) = std::mem::take(&mut cores).split_at_mut(numbers.len());
                    cores = others;
                    let numbers = numbers.clone();
                    scope.spawn(move || {
                        let mut results = Vec::new();
                        for (number, core) in numbers.zip(own) {
                            let chip = std::mem::replace(&mut partition.chip, Chip::new(spec));
                            core.memory.take_chip(Box::new(chip), NEVER, &mut core.signals);
                            results.push(work(number, core));
                            partition.chip = *core.memory.leave_chip(0);
                        }
                        (results, partition.finish())
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
        });
        let (results, rests): (Vec<Vec<T>>, Vec<_>) = done.into_iter().unzip();
        let waits = partitioned.join(&mut chip, rests);
        self.chip = Some(chip);
        (results.into_iter().flatten().collect(), waits)
    }

    /// All counts, those of what others have caused included.
    fn counts(&mut self) -> Vec<Signals> {
        self.one_by_one(|_, core| core.signals.clone())
    }
}

/// One part for each CMG, and two for two each.
const DIVISIONS: [&[Range<usize>]; 2] = [&[0..1, 1..2, 2..3, 3..4], &[0..2, 2..4]];

/// Accesses in `bytes` of the memory of a CMG, far enough apart in time that pages have been found meanwhile: loads and
/// stores in no order.
fn accesses(core: &mut Core, cmg: usize, bytes: u64) -> Vec<Cycle> {
    let mut random = 1_u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 33
    };
    (1..4_000)
        .map(|i| core.access(cmg as u64 * EACH + next() % bytes, i * 300, next().is_multiple_of(3)).at - i * 300)
        .collect()
}

#[test]
fn what_cores_do_with_their_own_cmg_takes_the_same_time_in_parts_of_the_chip() {
    let mut spec = machine();
    // Translation tables are shared by all.
    spec.tables.tlb.miss_trap = 100;
    let mut whole = Cores::new(&spec);
    let expected = whole.one_by_one(|number, core| accesses(core, number, 32 << 20));
    for parts in DIVISIONS {
        let mut divided = Cores::new(&spec);
        let (times, _) = divided.in_parallel(parts, |number, core| accesses(core, number, 32 << 20));
        assert_eq!(times, expected, "{parts:?}");
        assert_eq!(divided.counts(), whole.counts(), "{parts:?}");
    }
}

#[test]
fn a_line_of_another_cmg_takes_as_long_from_a_part_that_waits_for_the_whole_chip() {
    let spec = machine();
    let once = |cores: &mut Cores| cores.one_by_one(|_, core| core.load(8, 1_000));
    let mut whole = Cores::new(&spec);
    let expected = once(&mut whole);
    let mut divided = Cores::new(&spec);
    // The page and its tables are known.
    divided.one_by_one(|_, core| core.memory.run().translate(0.into(), 0, &mut Signals::default()));
    let (times, waits) = divided.in_parallel(DIVISIONS[0], |_, core| core.load(8, 1_000));
    assert_eq!(times, expected);
    // The first one reads its own memory. It does not wait unless others may have the line.
    assert_eq!(waits, 3);
}

#[test]
fn a_part_waits_for_the_whole_chip_only_for_lines_that_another_one_may_have() {
    let spec = machine();
    let touch = |number: usize, core: &mut Core, t: Cycle, write: bool| {
        (0..4).for_each(|i| _ = core.access(number as u64 * EACH + i * LINE, t + i, write));
    };
    let mut cores = Cores::new(&spec);
    cores.one_by_one(|number, core| touch(number, core, 1_000, false));
    let own = |number: usize, core: &mut Core| {
        touch(number, core, 2_000, true);
        core.memory.run().zero_line((number as u64 * EACH).into(), 3_000, &mut core.signals);
        touch(number, core, 4_000, false);
    };
    assert_eq!(cores.in_parallel(DIVISIONS[0], own).1, 0);
    // CMG 1 reads a line of CMG 0.
    cores.one_by_one(|number, core| {
        if number == 1 {
            core.load(0, 5_000);
        }
    });
    let first_only = |number: usize, core: &mut Core| {
        if number == 0 {
            core.store(0, 6_000);
            core.store(LINE, 6_100);
        }
    };
    assert_eq!(cores.in_parallel(DIVISIONS[0], first_only).1, 1, "for the shared one");
}

#[test]
fn who_waits_for_the_whole_chip_has_it_in_the_order_of_cmgs_whichever_thread_is_slower() {
    let spec = machine();
    let run = |slow: usize| {
        let mut cores = Cores::new(&spec);
        let work = |number: usize, core: &mut Core| -> Vec<Cycle> {
            // All write the same lines and their own in turns.
            let one = |i: u64| {
                if number == slow && i.is_multiple_of(16) {
                    std::thread::sleep(Duration::from_micros(200));
                }
                let addr = if i.is_multiple_of(3) { i * LINE } else { number as u64 * EACH + i * LINE };
                core.access(addr, 1_000 + i * 50, true).at
            };
            (0..300).map(one).collect()
        };
        let (times, waits) = cores.in_parallel(DIVISIONS[0], work);
        (times, waits, cores.counts())
    };
    let first = run(usize::MAX);
    assert!(first.1 >= 300, "{} waits", first.1);
    for slow in 0..4 {
        assert_eq!(run(slow), first, "CMG {slow} is slow");
    }
}

#[test]
fn lines_that_go_back_to_another_cmg_s_memory_are_counted_when_the_chip_is_whole_again() {
    let mut spec = machine();
    spec.tables.l2.bytes = 512 << 10;
    let lines = 2 * spec.l2.bytes / LINE;
    let writes = |number: usize, core: &mut Core| {
        for i in 0..if number == 1 { lines } else { 0 } {
            core.store(i * LINE, 1_000 + i * 100);
        }
    };
    let mut whole = Cores::new(&spec);
    whole.one_by_one(writes);
    let mut divided = Cores::new(&spec);
    divided.in_parallel(DIVISIONS[0], writes);
    let counts = divided.counts();
    assert!(counts[1].get(Signal::L2dCacheWb) >= lines / 2 - lines / 16, "{}", counts[1].get(Signal::L2dCacheWb));
    assert_eq!(counts, whole.counts());
}

#[test]
fn nobody_waits_for_a_part_whose_thread_has_panicked() {
    let spec = machine();
    let mut cores = Cores::new(&spec);
    let run = std::panic::AssertUnwindSafe(|| {
        cores.in_parallel(DIVISIONS[1], |number, core| {
            assert_ne!(number, 3, "as if by a mistake");
            core.load(if number < 2 { 3 * EACH } else { 8 }, 1_000)
        })
    });
    assert!(std::panic::catch_unwind(run).is_err());
}
