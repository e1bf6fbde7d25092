//! When windows begin.

use fxscope_sampling::{Plan, Schedule, Window, WindowKind};
use proptest::prelude::*;

/// Runs `instructions` on one core in steps of at most `step`, of which `rare` of 100 run in rare blocks, and returns where windows began.
fn run(plan: &Plan, instructions: u64, step: u64, rare: u64) -> Vec<(u64, Window)> {
    run_on(plan, instructions, step, rare, |_| 1)
}

/// The same on as many cores as `cores` says from how many instructions have run.
fn run_on(plan: &Plan, instructions: u64, step: u64, rare: u64, cores: impl Fn(u64) -> u64) -> Vec<(u64, Window)> {
    run_from(Schedule::new(plan), instructions, step, rare, cores)
}

/// The same from a schedule on.
fn run_from(
    mut schedule: Schedule,
    instructions: u64,
    step: u64,
    rare: u64,
    cores: impl Fn(u64) -> u64,
) -> Vec<(u64, Window)> {
    let (mut at, mut windows) = (0, Vec::new());
    while at < instructions {
        let next = schedule.until_next().clamp(1, step).min(instructions - at);
        at += next;
        windows.extend(schedule.ran(next, next * rare / 100, cores(at)).map(|window| (at, window)));
    }
    windows
}

fn small() -> Plan {
    Plan { window: 50, warm: 10, period: 500, keep: 100, rare: 0, ..Plan::default() }
}

proptest! {
    #[test]
    fn windows_do_not_overlap_and_stand_for_all_of_the_run(seed: u64, length in 1_000..2_000_000_u64, keep in 10..200_u64) {
        let plan = Plan { seed, keep, ..small() };
        let windows = run(&plan, length, 1_000_000, 0);
        for pair in windows.windows(2) {
            prop_assert!(pair[1].0 - pair[0].0 >= 60);
        }
        // The last period may still be open.
        let last_period = windows.last().map_or(0, |(_, window)| window.stands_for).max(plan.period);
        let stood_for: u64 = windows.iter().map(|(_, window)| window.stands_for).sum();
        prop_assert!(stood_for.abs_diff(length) <= 2 * last_period, "{stood_for} of {length}");
        // Periods are as long as keeps their number between `keep` and 2 · `keep` of the last length; the window of the first that is
        // twice as long may still be missing.
        prop_assert!(length / plan.period < 2 * keep || (keep..=2 * keep + 2).contains(&(length / last_period)));
    }

    #[test]
    fn windows_stand_for_all_of_the_run_whatever_number_of_cores_runs(seed: u64, length in 100_000..2_000_000_u64, phase in 1_000..50_000_u64) {
        let plan = Plan { seed, ..small() };
        let windows = run_on(&plan, length, 100, 0, |at| if at / phase % 2 == 0 { 1 } else { 12 });
        let longest = windows.iter().map(|(_, window)| window.stands_for).max().unwrap_or(0);
        let stood_for: u64 = windows.iter().map(|(_, window)| window.stands_for).sum();
        prop_assert!(stood_for.abs_diff(length) <= 2 * longest.max(12 * plan.period), "{stood_for} of {length}");
    }

    #[test]
    fn a_schedule_that_was_stored_continues_in_the_same_way(seed: u64, steps in prop::collection::vec(1..400_u64, 1..200), at in 0..200_usize) {
        let plan = Plan { seed, rare: 20, ..small() };
        let (mut whole, mut stored) = (Schedule::new(&plan), Schedule::new(&plan));
        for (k, step) in steps.iter().enumerate() {
            if k == at {
                let bytes = postcard::to_stdvec(&stored).expect("writing to memory");
                stored = postcard::from_bytes(&bytes).expect("what was written");
            }
            prop_assert_eq!(whole.ran(*step, *step / 3, 2), stored.ran(*step, *step / 3, 2));
        }
    }
}

#[test]
fn places_in_periods_are_all_alike_and_differ_by_seed() {
    let mut by_tenth = [0; 10];
    for seed in 0..200 {
        for (at, _) in run(&Plan { seed, keep: 1_000, ..small() }, 50_000, 1_000_000, 0) {
            by_tenth[(at % 500 / 50) as usize] += 1;
        }
    }
    assert!(by_tenth.iter().all(|count| (1_800..2_200).contains(count)), "{by_tenth:?}");
    assert_ne!(run(&Plan { seed: 1, ..small() }, 9_000, 1, 0), run(&Plan { seed: 2, ..small() }, 9_000, 1, 0));
}

#[test]
fn a_window_on_twelve_cores_takes_the_place_of_twelve_on_one() {
    let windows = |cores| run_on(&small(), 12_000_000, 10, 0, |_| cores).len();
    // Of one core, 12,000,000 instructions are 100 to 200 periods of 500 · 2⁷. Of all periods, 200 have the first length.
    let (one, twelve) = (windows(1), windows(12));
    assert!((700..1_000).contains(&one), "{one}");
    assert!(twelve.abs_diff(one / 12) <= 12, "{twelve} on twelve, {one} on one");
}

#[test]
fn windows_for_rare_blocks_begin_at_once_and_become_fewer_like_others() {
    let plan = Plan { period: 100_000, rare: 20, ..small() };
    let windows = run(&plan, 1_000_000, 10, 100);
    let rare = windows.iter().filter(|(_, window)| window.kind == WindowKind::Rare { seen_less_than: 20 }).count();
    let regular = windows.iter().filter(|(_, window)| window.kind == WindowKind::Regular).count();
    assert_eq!(regular, 10);
    assert!((3..=10).contains(&rare), "{rare} windows, since a regular one shows rare blocks, too");
    assert!(windows.iter().all(|(_, window)| window.stands_for == 100_000));
    let long = run(&Plan { keep: 10, ..plan.clone() }, 1_000_000_000, 1_000, 10);
    let rare = long.iter().filter(|(_, window)| window.kind != WindowKind::Regular).count();
    assert!((1..100).contains(&rare), "{rare}");
    assert!(run(&Plan { rare: 0, ..plan }, 1_000_000, 10, 100).iter().all(|(_, w)| w.kind == WindowKind::Regular));
}

#[test]
fn a_step_over_several_periods_begins_one_window() {
    let mut schedule = Schedule::new(&small());
    assert!(schedule.ran(10_000, 0, 1).is_some());
    assert_eq!(schedule.ran(50, 0, 1), None, "the window runs");
    assert!(schedule.until_next() <= 1_000);
    assert!(schedule.ran(u64::MAX / 2, 0, 1).is_some());
}

#[test]
fn detailed_warm_up_is_longer_the_more_cores_share_the_memory_but_leaves_the_rest_of_the_period() {
    let warm = |cores: u64, plan: &Plan| {
        let windows = run_on(plan, 400_000, 100, 0, |_| cores);
        windows.into_iter().map(|(_, window)| window.warm).max()
    };
    assert_eq!([1, 4, 12].map(|cores| warm(cores, &small())), [Some(10), Some(40), Some(120)]);
    assert_eq!(warm(12, &Plan { warm: 100, ..small() }), Some(450));
    // Of 48 cores, each memory serves 12.
    let four_memories = run_from(Schedule::new(&small()).with_cores_of_memory(12), 400_000, 100, 0, |_| 48);
    assert!(four_memories.len() > 1 && four_memories.iter().all(|(_, window)| window.warm == 120));
}
