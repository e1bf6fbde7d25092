//! Sums by block and group.

use std::collections::BTreeMap;

use fxscope_sampling::{Exposure, Sample, Window, WindowKind, estimate};
use proptest::prelude::*;

use crate::{MEASURED, window};

const MEASURES: usize = 150;

/// One call of `add`: block, executions, sums.
type Addition = (u32, u64, Vec<(usize, u64)>);

/// Windows with what is added in each.
fn windows() -> impl Strategy<Value = Vec<(u64, Vec<Addition>)>> {
    let sums = prop::collection::vec((0..MEASURES, 0..50_u64), 0..5);
    let additions = prop::collection::vec((0..6_u32, 1..20_u64, sums), 0..6);
    prop::collection::vec((1..5_u64, additions), 1..12)
}

fn sample(windows: &[(u64, Vec<Addition>)]) -> Sample {
    let mut sample = Sample::new(MEASURES, 6);
    for (weight, additions) in windows {
        sample.begin_window(&window(*weight), MEASURED);
        for (block, executions, sums) in additions {
            sample.add(*block, *executions, sums);
        }
    }
    sample
}

proptest! {
    #[test]
    fn rates_and_replicates_are_those_of_a_plain_table(windows in windows()) {
        let sample = sample(&windows);
        // Executions and sums by block, of all windows or with each window as often as `times` says.
        let table = |times: &dyn Fn(usize) -> u64| {
            let mut table = BTreeMap::new();
            for (k, (weight, additions)) in windows.iter().enumerate() {
                for (block, executions, sums) in additions {
                    let entry = table.entry(*block).or_insert((0, vec![0; MEASURES]));
                    entry.0 += executions * weight * times(k);
                    sums.iter().for_each(|(measure, sum)| entry.1[*measure] += sum * weight * times(k));
                }
            }
            table
        };
        let all = table(&|_| 1);
        for block in 0..6 {
            let Some((executions, sums)) = all.get(&block) else {
                prop_assert_eq!(sample.rate(block, 0), None);
                continue;
            };
            for (measure, sum) in sums.iter().enumerate() {
                prop_assert_eq!(sample.rate(block, measure), Some(*sum as f64 / *executions as f64));
            }
        }
        // Six groups: in every second round the groups of a pair change places.
        let group = |k: usize| (k % 6) ^ (k / 6 % 2);
        let exposure: Exposure = [(0, 1)].into_iter().collect();
        let estimates = estimate(&sample, &[1; 6], &exposure);
        for (left_out, replicate) in estimates.replicates().iter().enumerate() {
            let without = table(&|k| if group(k) == left_out { 0 } else if group(k) == left_out ^ 1 { 2 } else { 1 });
            let Some((executions, sums)) = without.get(&0).filter(|(executions, _)| *executions > 0) else {
                continue;
            };
            // Where less than half is left, it changes the cost as if it were half.
            let (seen, costs) = &all[&0];
            let (seen, left) = (*seen as f64, *executions as f64);
            for ((value, sum), all) in replicate.iter().zip(sums).zip(costs) {
                let cost = *all as f64 / seen;
                let change = (*sum as f64 - cost * left) / left.max(seen / 2.0);
                prop_assert!((value - cost - change).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn a_sample_that_was_stored_continues_in_the_same_way(windows in windows(), at in 0..12_usize) {
        let at = at.min(windows.len());
        let mut stored = sample(&windows[..at]);
        let bytes = postcard::to_stdvec(&stored).expect("writing to memory");
        stored = postcard::from_bytes(&bytes).expect("what was written");
        for (weight, additions) in &windows[at..] {
            stored.begin_window(&window(*weight), MEASURED);
            additions.iter().for_each(|(block, executions, sums)| stored.add(*block, *executions, sums));
        }
        let bytes = |sample: &Sample| postcard::to_stdvec(sample).expect("writing to memory");
        prop_assert_eq!(bytes(&stored), bytes(&sample(&windows)));
    }
}

#[test]
fn windows_for_rare_blocks_add_only_to_blocks_that_were_rare_when_they_began() {
    let mut sample = Sample::new(1, 2);
    sample.begin_window(&window(1), MEASURED);
    sample.add(0, 20, &[(0, 20)]);
    sample.add(1, 19, &[(0, 19)]);
    // It counts a sixteenth of what it stands for.
    sample.begin_window(&Window { kind: WindowKind::Rare { seen_less_than: 20 }, ..window(16) }, MEASURED);
    sample.add(0, 20, &[(0, 2_000)]);
    for _ in 0..2 {
        sample.add(1, 19, &[(0, 38)]);
    }
    assert_eq!(sample.rate(0, 0), Some(1.0));
    assert_eq!(sample.rate(1, 0), Some(95.0 / 57.0));
    assert_eq!((sample.executions_seen(0), sample.executions_seen(1)), (40, 57));
}

#[test]
fn windows_count_by_the_instructions_that_they_stand_for_and_not_by_those_that_they_measure() {
    let mut sample = Sample::new(1, 2);
    // One core: 100 of 1,000 instructions. Twelve cores: 1,200 of 3,000.
    sample.begin_window(&Window { stands_for: 1_000, ..window(1) }, 100);
    sample.add(0, 100, &[(0, 100)]);
    sample.begin_window(&Window { stands_for: 3_000, ..window(1) }, 1_200);
    sample.add(0, 1_200, &[(0, 6_000)]);
    let cost = sample.rate(0, 0).expect("a rate");
    assert!((cost - (1_000.0 + 3_000.0 * 5.0) / 4_000.0).abs() < 1e-9, "{cost}");
    // The run ends in a window: it counts as if it had measured all that was planned.
    let mut cut = Sample::new(1, 2);
    for (measured, cycles) in [(100, 100), (1, 9)] {
        cut.begin_window(&window(1), measured);
        cut.add(0, measured, &[(0, cycles)]);
    }
    assert_eq!(cut.rate(0, 0), Some(109.0 / 101.0));
}

#[test]
#[should_panic(expected = "measure 2 of 2")]
fn a_measure_that_does_not_exist_is_refused() {
    let mut sample = Sample::new(2, 2);
    sample.begin_window(&window(1), MEASURED);
    sample.add(0, 1, &[(2, 1)]);
}
