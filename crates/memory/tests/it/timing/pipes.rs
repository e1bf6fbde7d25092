//! The load/store pipes against a plain list of flows, cycle by cycle, on random flows.

use std::collections::BTreeMap;

use fxscope_memory::LoadStorePipes;

use super::*;

#[derive(Clone, Copy, PartialEq)]
enum Flow {
    /// A load, or the tag access of a store that is not eligible.
    Load,
    /// The tag access of an eligible store.
    Eligible,
    /// A write of store data.
    Write,
    /// Half of a flow that takes both pipes.
    Move,
}

/// The rules of the manual (7.2, 7.6), each cycle and pipe by itself.
#[derive(Default)]
struct Oracle {
    cycles: BTreeMap<Cycle, [Option<Flow>; 2]>,
    /// Pipes and cycles in which a flow that counts in pipe 0, too, or ends as a long access runs.
    wide: Vec<Cycle>,
    long: Vec<(usize, Cycle)>,
    /// Cancelled flows of each 64 cycles.
    cancelled: BTreeMap<Cycle, u64>,
    /// The pipe of the last flow; the one beside the address pipe.
    last: usize,
    own: usize,
}

impl Oracle {
    fn at(&mut self, t: Cycle) -> &mut [Option<Flow>; 2] {
        self.cycles.entry(t).or_default()
    }

    /// The pipe of a flow in cycle `t`, if it can run then.
    fn pipe(&mut self, flow: Flow, t: Cycle) -> Option<usize> {
        let own = self.own;
        let [first, second] = *self.at(t);
        let free = [first.is_none(), second.is_none()];
        let any = if free[own] { Some(own) } else { Some(1 - own).filter(|&other| free[other]) };
        match flow {
            Flow::Load => any.filter(|_| second != Some(Flow::Write)),
            Flow::Eligible => any,
            Flow::Write => (free[1] && (free[0] || first == Some(Flow::Eligible))).then_some(1),
            Flow::Move => (free[0] && free[1]).then_some(1),
        }
    }

    /// The first cycle from `t` on in which the flow can run: it runs then.
    fn book(&mut self, flow: Flow, t: Cycle) -> Cycle {
        let (t, pipe) = (t..).find_map(|t| Some((t, self.pipe(flow, t)?))).expect("some cycle");
        self.at(t)[pipe] = Some(flow);
        if flow == Flow::Move {
            self.at(t)[0] = Some(flow);
        }
        self.last = pipe;
        t
    }

    fn replay(&mut self, t: Cycle, end: Cycle, period: Cycle) -> Cycle {
        let mut next = t + period;
        while next < end {
            *self.cancelled.entry(next / 64).or_default() += 1;
            next += period;
        }
        next
    }

    fn ends_long(&mut self, t: Cycle, long: bool, ahead: Cycle) -> bool {
        let ends = long || (t >= ahead && self.long.contains(&(self.last, t - ahead)));
        if ends {
            self.long.push((self.last, t));
        }
        ends
    }

    /// Cycles of each pipe. Cancelled flows take free ones of their 64 cycles, half of them in pipe 1 while it has any.
    fn busy(&self) -> [u64; 2] {
        let mut blocks: BTreeMap<Cycle, [u64; 2]> = self.cancelled.keys().map(|&block| (block, [0; 2])).collect();
        for (&t, flows) in &self.cycles {
            let block = blocks.entry(t / 64).or_default();
            block[0] += u64::from(flows[0].is_some() || self.wide.contains(&t));
            block[1] += u64::from(flows[1].is_some());
        }
        for (number, &cancelled) in &self.cancelled {
            let block = blocks.get_mut(number).expect("listed");
            let second = (cancelled / 2).min(64 - block[1]);
            let first = (cancelled - second).min(64 - block[0]);
            (block[0], block[1]) = (block[0] + first, block[1] + second);
        }
        blocks.values().fold([0; 2], |sum, block| [sum[0] + block[0], sum[1] + block[1]])
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

#[test]
fn random_flows_run_when_and_where_the_rules_of_the_manual_let_them() {
    for seed in 1..=8 {
        let mut random = Random(seed);
        let (mut pipes, mut oracle) = (LoadStorePipes::default(), Oracle::default());
        // Sometimes close together, sometimes far apart.
        let (spread, step) = (1 + random.below(200), 1 + random.below(4));
        let mut now = 0;
        for n in 0..600 {
            now += random.below(step + 1);
            pipes.advance(now);
            let t = now + random.below(spread);
            let (eagb, kind, yes) = (random.below(2) == 1, random.below(8), random.below(2) == 1);
            pipes.from_eagb(eagb);
            oracle.own = usize::from(eagb);
            let context = format!("seed {seed}, flow {n}, {t}");
            let (at, expected) = match kind {
                0 | 1 => (pipes.load(t), oracle.book(Flow::Load, t)),
                2 | 3 => {
                    let flow = if yes { Flow::Eligible } else { Flow::Load };
                    (pipes.store_access(t, yes), oracle.book(flow, t))
                }
                4 | 5 => {
                    let expected = oracle.book(Flow::Write, t);
                    if yes {
                        oracle.wide.push(expected);
                    }
                    (pipes.store_write(t, yes), expected)
                }
                6 => {
                    let cycles = [1, 2, 4, 8, 64, 70][random.below(6) as usize];
                    (pipes.both(t, cycles), (0..cycles).fold(t, |t, _| oracle.book(Flow::Move, t)))
                }
                _ => {
                    let (wait, period) = (1 + random.below(300), 1 + random.below(70));
                    assert_eq!(pipes.replay(t, t + wait, period), oracle.replay(t, t + wait, period), "{context}");
                    continue;
                }
            };
            assert_eq!((at, pipes.last()), (expected, oracle.last), "{context}");
            if kind < 4 && at >= now / 64 * 64 + 3 {
                assert_eq!(pipes.ends_long(at, yes, 3), oracle.ends_long(at, yes, 3), "{context}");
            }
            if n % 50 == 0 {
                assert_eq!(pipes.busy(), oracle.busy(), "{context}");
            }
        }
        pipes.advance(now + 10 * fxscope_calendar::SPAN);
        assert_eq!(pipes.busy(), oracle.busy(), "all is counted when it has been forgotten");
        pipes.add_busy([3, 5]);
        let [first, second] = oracle.busy();
        assert_eq!(pipes.busy(), [first + 3, second + 5]);
    }
}

#[test]
fn after_a_leap_every_flow_is_later_by_its_length() {
    for cycles in [0, 1, 63, 64, 70, 1_000, 10 * fxscope_calendar::SPAN + 7] {
        let (mut pipes, mut shifted) = (LoadStorePipes::default(), LoadStorePipes::default());
        let mut random = Random(cycles + 1);
        for pipes in [&mut pipes, &mut shifted] {
            random.0 = cycles + 1;
            pipes.advance(1_000);
            for _ in 0..200 {
                let t = 1_000 + random.below(100);
                match random.below(4) {
                    0 => _ = pipes.load(t),
                    1 => _ = pipes.store_access(t, true),
                    2 => _ = pipes.store_write(t, true),
                    _ => _ = pipes.both(t, 2),
                }
                let t = 1_000 + random.below(100);
                pipes.ends_long(t, true, 3);
            }
        }
        shifted.fast_forward(cycles);
        assert_eq!(shifted.busy(), pipes.busy(), "{cycles}");
        for _ in 0..200 {
            let (t, eagb) = (1_000 + random.below(250), random.below(2) == 1);
            pipes.from_eagb(eagb);
            shifted.from_eagb(eagb);
            let [at, later] = [(&mut pipes, t), (&mut shifted, t + cycles)].map(|(pipes, t)| match eagb {
                true => (pipes.store_access(t, true), pipes.last()),
                false => (pipes.load(t), pipes.last()),
            });
            assert_eq!((at.0 + cycles, at.1), later, "{cycles}");
            assert_eq!(pipes.ends_long(at.0, false, 3), shifted.ends_long(later.0, false, 3), "{cycles}");
            let t = 1_000 + random.below(250);
            assert_eq!(pipes.store_write(t, false) + cycles, shifted.store_write(t + cycles, false), "{cycles}");
        }
        assert_eq!(shifted.busy(), pipes.busy(), "{cycles}");
    }
}

#[test]
fn what_lies_beyond_the_calendar_is_neither_reserved_nor_counted_and_takes_no_cycle_before() {
    const END: Cycle = fxscope_calendar::SPAN;
    let mut pipes = LoadStorePipes::default();
    assert_eq!([END, END, END].map(|t| pipes.load(t)), [END; 3]);
    assert!(pipes.ends_long(END, true, 3));
    assert_eq!([pipes.store_write(END, true), pipes.both(END, 2)], [END; 2]);
    assert_eq!(pipes.replay(END - 1, END + 2, 1), END + 2);
    assert_eq!(pipes.busy(), [0; 2]);
    assert_eq!([0, 0, 0].map(|t| pipes.load(t)), [0, 0, 1]);
    assert_eq!(pipes.load(3), 3);
    assert!(!pipes.ends_long(3, false, 3));
    // The last cycle is one of its own.
    assert_eq!([END - 1, END - 1, END - 1].map(|t| pipes.load(t)), [END - 1, END - 1, END]);
}
