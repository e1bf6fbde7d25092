//! The measuring loops on a simulated core whose detours are known exactly.

use std::sync::atomic::AtomicBool;

use fxscope_osnoise::clock::Timebase;
use fxscope_osnoise::measure::loops::{self, Core, Interval, Stats, Team, Until};
use fxscope_osnoise::measure::native::{Barrier, Member};
use fxscope_osnoise::measure::ring::Ring;
use proptest::prelude::*;

/// A core with a clock of one tick per ns. A clock read takes `read`, a unit of work `unit`; at given times it is away.
struct Simulated {
    time: u64,
    read: u64,
    unit: u64,
    away: std::vec::IntoIter<(u64, u64)>,
    next: Option<(u64, u64)>,
}

impl Simulated {
    fn new(read: u64, unit: u64, away: Vec<(u64, u64)>) -> Simulated {
        let mut away = away.into_iter();
        let next = away.next();
        Simulated { time: 0, read, unit, away, next }
    }

    fn advance(&mut self, time: u64) {
        self.time += time;
        while let Some((_, length)) = self.next.filter(|&(start, _)| start < self.time) {
            self.time += length;
            self.next = self.away.next();
        }
    }
}

impl Core for Simulated {
    fn now(&mut self) -> u64 {
        self.advance(self.read);
        self.time
    }

    fn work(&mut self, units: u32) {
        self.advance(u64::from(units) * self.unit);
    }
}

const SECOND: u64 = 1_000_000_000;
static NEVER: AtomicBool = AtomicBool::new(false);

fn until(end: u64) -> Until<'static> {
    Until { end, stop: &NEVER }
}

/// A core that is away every `period` for `length`, during one second.
fn periodic(period: u64, length: u64) -> Vec<(u64, u64)> {
    (1..SECOND / period).map(|i| (i * period, length)).collect()
}

fn total(found: &[(u64, u64)]) -> u64 {
    found.iter().map(|detour| detour.1).sum()
}

#[test]
fn the_spin_loop_finds_each_detours_start_and_length() {
    let away = periodic(4_000_003, 5_000);
    let (mut found, mut stats) = (Vec::new(), Stats::new(1.0));
    stats.minimum = 20;
    loops::spin(&mut Simulated::new(20, 0, away.clone()), &mut found, &mut stats, 1_000, until(SECOND));
    assert_eq!(found.len(), away.len());
    for (&(start, length), &(real, _)) in found.iter().zip(&away) {
        assert_eq!(length, 5_000);
        assert!((real - 20..=real).contains(&start), "{start} for {real}");
    }
    assert_eq!(stats.histogram.iter().sum::<u64>(), away.len() as u64);
}

#[test]
fn detours_below_the_threshold_are_not_recorded() {
    let (mut found, mut stats) = (Vec::new(), Stats::new(1.0));
    stats.minimum = 20;
    loops::spin(&mut Simulated::new(20, 0, periodic(1_000_000, 900)), &mut found, &mut stats, 1_000, until(SECOND));
    assert_eq!(found, []);
}

#[test]
fn fixed_work_finds_rate_and_length_of_injected_noise_and_its_quantum() {
    let away = periodic(1_700_000, 12_345);
    let (mut found, mut stats) = (Vec::new(), Stats::new(1.0));
    loops::fixed_work(&mut Simulated::new(20, 100, away.clone()), &mut found, &mut stats, 1_000, 2_000, until(SECOND));
    assert_eq!(found.len(), away.len());
    assert_eq!(stats.minimum, 100_020);
    for (&(start, length), &(real, _)) in found.iter().zip(&away) {
        assert_eq!(length, 12_345);
        assert!(start <= real && real < start + 100_020, "{start} for {real}");
    }
}

#[test]
fn fixed_time_finds_missing_work() {
    let away = periodic(7_300_000, 250_000);
    let (mut found, mut stats) = (Vec::new(), Stats::new(1.0));
    let mut interval = Interval { ticks: 1_000_000, units: 50, piece: u64::MAX };
    let core = &mut Simulated::new(20, 100, away.clone());
    loops::fixed_time(core, &mut found, &mut stats, &mut interval, 20_000, until(SECOND));
    assert_eq!(found.len(), away.len());
    assert_eq!(interval.piece >> 16, 5_020);
    // Piece times have a resolution of 2^-16 ticks, so an interval of 200 pieces is known to 200 / 65536 ticks.
    assert!(found.iter().all(|&(_, length)| length.abs_diff(250_000) <= 1), "{found:?}");
}

#[test]
fn a_detour_of_many_intervals_is_one_detour() {
    let (mut found, mut stats) = (Vec::new(), Stats::new(1.0));
    let mut interval = Interval { ticks: 1_000_000, units: 50, piece: u64::MAX };
    let core = &mut Simulated::new(20, 100, vec![(100_000_000, 16_000_000)]);
    loops::fixed_time(core, &mut found, &mut stats, &mut interval, 20_000, until(SECOND));
    assert_eq!(found.len(), 1);
    assert!(found[0].1.abs_diff(16_000_000) <= 1 && found[0].0.abs_diff(100_000_000) < 1_000_000, "{found:?}");
}

#[test]
fn a_clock_going_back_is_counted_without_a_detour() {
    struct Back(u64);
    impl Core for Back {
        fn now(&mut self) -> u64 {
            self.0 += 20;
            if self.0 == 2_000 { 1_000 } else { self.0 }
        }
        fn work(&mut self, _: u32) {}
    }
    let (mut found, mut stats) = (Vec::new(), Stats::new(1.0));
    loops::spin(&mut Back(0), &mut found, &mut stats, 1_500, until(100_000));
    assert_eq!((found.len(), stats.backward), (0, 1));
}

#[test]
fn blocks_between_barriers_end_at_the_barrier_the_leader_announces() {
    let barrier = Barrier::new(2);
    let counts = std::thread::scope(|scope| {
        let threads = [true, false].map(|leads| {
            let barrier = &barrier;
            scope.spawn(move || {
                let (mut found, mut stats) = (Vec::new(), Stats::new(1.0));
                // The second core's clock never reaches the end: it must stop because the first one does.
                let end = if leads { 1_000_000 } else { u64::MAX };
                let core = &mut Simulated::new(20, 100, Vec::new());
                let member = &mut Member { barrier, leads };
                loops::with_barriers(core, member, &mut found, &mut stats, (4, 10), 1_000, until(end));
                // Waiting is part of the total time.
                let round = 4 * 1_020 + 20;
                assert_eq!(stats.total, stats.iterations / 4 * round, "blocks and barriers");
                assert_eq!(stats.waiting, stats.iterations / 4 * 20, "barriers alone");
                (stats.iterations, member.last())
            })
        });
        threads.map(|thread| thread.join().expect("ends"))
    });
    assert_eq!(counts[0], counts[1]);
    // A round takes four blocks of 1020 ticks and a barrier of 20.
    assert_eq!(counts[0].0, (1_000_000u64.div_ceil(4 * 1_020 + 20) + 2) * 4);
}

#[test]
fn a_full_ring_counts_dropped_detours_and_keeps_the_rest_in_order() {
    let ring = Ring::new(4);
    (0..6).for_each(|i| ring.push(i, 10 + i));
    assert_eq!(ring.dropped(), 2);
    assert_eq!(std::iter::from_fn(|| ring.pop()).collect::<Vec<_>>(), [(0, 10), (1, 11), (2, 12), (3, 13)]);
    ring.push(9, 9);
    assert_eq!((ring.pop(), ring.pop()), (Some((9, 9)), None));
}

#[test]
fn a_clock_jump_is_noticed_and_followed() {
    let mut base = Timebase { rate: 2.0, ticks: 1_000, monotonic: 5_000 };
    assert_eq!((base.at(1_200), base.at(800)), (5_100, 4_900));
    assert_eq!(base.follow(2_000_001_000, 1_000_005_000), Ok(()));
    // One second in which the counter stood still.
    assert_eq!(base.follow(2_000_001_000, 2_000_005_000), Err(1_000_000_000));
    assert_eq!(base.at(2_000_001_200), 2_000_005_100);
}

proptest! {
    #[test]
    fn the_spin_loop_finds_the_total_time_taken(
        gaps in prop::collection::vec((10_000..1_000_000u64, 2_000..50_000u64), 1..100),
    ) {
        let mut now = 0;
        let mut at = |gap: u64, length: u64| { now += gap + length; (now - length, length) };
        let away: Vec<(u64, u64)> = gaps.iter().map(|&(gap, length)| at(gap, length)).collect();
        let (mut found, mut stats) = (Vec::new(), Stats::new(1.0));
        stats.minimum = 20;
        loops::spin(&mut Simulated::new(20, 0, away.clone()), &mut found, &mut stats, 1_000, until(now + 100_000));
        prop_assert_eq!(found.len(), away.len());
        prop_assert_eq!(total(&found), total(&away));
    }
}
