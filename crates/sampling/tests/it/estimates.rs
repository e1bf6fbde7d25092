//! Estimates from small samples whose results can be calculated by hand.

use fxscope_sampling::{Exposure, Precision, Sample, estimate};

use crate::{MEASURED, window};

/// Instructions of blocks 0 to 9.
const SIZES: [u32; 10] = [3, 1, 1, 1, 7, 10, 1, 1, 1, 4];

fn exposure(counts: &[(u32, u64)]) -> Exposure {
    counts.iter().copied().collect()
}

/// A sample of as many windows as `costs`: in each, block 0 ran ten times at such a cost.
fn windows_of_block_0(costs: &[u64]) -> Sample {
    let mut sample = Sample::new(1, 4);
    for cost in costs {
        sample.begin_window(&window(1), MEASURED);
        sample.add(0, 10, &[(0, *cost)]);
    }
    sample
}

#[test]
fn a_total_is_the_sum_of_exact_executions_times_the_cost_of_one_in_windows() {
    let mut sample = Sample::new(3, 2);
    sample.begin_window(&window(1), MEASURED);
    sample.add(0, 10, &[(0, 40), (2, 5)]);
    sample.begin_window(&window(1), MEASURED);
    sample.add(0, 5, &[(0, 20)]);
    sample.add(0, 5, &[(0, 40)]);
    sample.add(4, 2, &[(1, 8)]);
    let estimates = estimate(&sample, &SIZES, &exposure(&[(0, 1_000), (4, 100)]));
    assert_eq!(estimates.totals(), [5_000.0, 400.0, 250.0]);
    assert_eq!((estimates.unseen_share(), estimates.windows()), (0.0, 2));
    assert_eq!(estimates.replicates().len(), 2);
}

#[test]
fn windows_count_by_their_weight() {
    let mut sample = Sample::new(1, 2);
    sample.begin_window(&window(1), MEASURED);
    sample.add(0, 10, &[(0, 40)]);
    sample.begin_window(&window(3), MEASURED);
    sample.add(0, 10, &[(0, 80)]);
    let estimates = estimate(&sample, &SIZES, &exposure(&[(0, 100)]));
    assert_eq!(estimates.totals(), [700.0]);
    assert_eq!(sample.rate(0, 0), Some(7.0));
    assert_eq!(sample.executions_seen(0), 20);
}

#[test]
fn a_replicate_leaves_one_group_out_and_counts_its_mate_twice() {
    // Two pairs: 40 and 60, 50 and 90. The mean is 60.
    let sample = windows_of_block_0(&[40, 60, 50, 90]);
    let estimates = estimate(&sample, &SIZES, &exposure(&[(0, 10)]));
    assert_eq!(estimates.totals(), [60.0]);
    assert_eq!(estimates.replicates(), [[65.0], [55.0], [70.0], [50.0]]);
    // Half of 25 + 25 + 100 + 100; Student's t of 95 % with two degrees of freedom is 4.303.
    let interval = estimates.interval(0, 0.95);
    assert!((interval.standard_error - 125_f64.sqrt()).abs() < 1e-9, "{interval:?}");
    assert!((interval.half_width - 4.3027 * 125_f64.sqrt()).abs() < 1e-2, "{interval:?}");
    assert!(interval.contains(60.0 + 48.0) && !interval.contains(60.0 + 49.0));
    assert!((interval.high() - interval.low() - 2.0 * interval.half_width).abs() < 1e-9);
}

#[test]
fn a_ratio_whose_parts_vary_together_has_a_narrow_interval() {
    let mut sample = Sample::new(2, 4);
    for cost in [40, 60, 50, 90, 20, 80] {
        sample.begin_window(&window(1), MEASURED);
        sample.add(0, 10, &[(0, cost), (1, cost / 10)]);
    }
    let estimates = estimate(&sample, &SIZES, &exposure(&[(0, 1_000)]));
    let ratio = estimates.interval_of(0.95, |totals| totals[1] / totals[0]);
    assert!((ratio.estimate - 0.1).abs() < 1e-12 && ratio.half_width < 1e-9, "{ratio:?}");
    assert!(estimates.interval(0, 0.95).relative() > 0.2);
}

#[test]
fn unseen_blocks_have_the_rate_of_blocks_that_few_windows_have_seen() {
    let mut sample = Sample::new(1, 4);
    for k in 0..8 {
        sample.begin_window(&window(1), MEASURED);
        // 1 cycle an instruction in the common block; 4 in one that is seen twice.
        sample.add(0, 100, &[(0, 300)]);
        if k % 4 == 0 {
            sample.add(4, 1, &[(0, 28)]);
        }
    }
    let estimates = estimate(&sample, &SIZES, &exposure(&[(0, 1_000), (4, 2), (5, 6)]));
    assert_eq!(estimates.totals(), [3_000.0 + 56.0 + 60.0 * 4.0]);
    assert!((estimates.unseen_share() - 60.0 / 3_074.0).abs() < 1e-12);
    let only_common = estimate(&sample, &SIZES, &exposure(&[(0, 1_000), (5, 6)]));
    assert_eq!(
        only_common.totals(),
        [3_000.0 + 60.0],
        "the mean rate of what the exposure executes and windows have seen"
    );
}

#[test]
fn a_block_that_only_one_group_has_seen_widens_the_interval() {
    let sample = |rare: u64| {
        let mut sample = Sample::new(1, 4);
        for k in 0..8 {
            sample.begin_window(&window(1), MEASURED);
            sample.add(0, 100, &[(0, 300)]);
            if k == 3 {
                sample.add(4, 1, &[(0, rare)]);
            }
        }
        sample
    };
    let part = exposure(&[(0, 1_000), (4, 100)]);
    let like_others = estimate(&sample(7), &SIZES, &part).interval(0, 0.95);
    assert!(like_others.half_width < 1e-6, "{like_others:?}");
    let dear = estimate(&sample(700), &SIZES, &part).interval(0, 0.95);
    assert!(dear.half_width > 69_000.0, "{dear:?}");
}

/// Sixteen blocks whose executions cost 9 and 11 cycles in the two windows of a pair, and block 16, of which the third of four windows alone has
/// seen an execution of 50 cycles.
fn block_16_of_one_window() -> Sample {
    let mut sample = Sample::new(1, 4);
    for window_cost in [9, 11, 0, 0] {
        sample.begin_window(&window(1), MEASURED);
        (0..16).filter(|_| window_cost > 0).for_each(|block| sample.add(block, 10, &[(0, 10 * window_cost)]));
        if sample.windows() == 3 {
            sample.add(16, 1, &[(0, 50)]);
        }
    }
    sample
}

#[test]
fn a_block_that_only_one_group_has_seen_varies_as_other_blocks_do_from_window_to_window() {
    let estimates = estimate(&block_16_of_one_window(), &[1; 17], &exposure(&[(16, 100)]));
    assert_eq!(estimates.totals(), [5_000.0], "without other blocks");
    let part: Vec<_> = (0..16).map(|block| (block, 1)).chain([(16, 100)]).collect();
    let estimates = estimate(&block_16_of_one_window(), &[1; 17], &exposure(&part));
    assert_eq!(estimates.totals(), [5_160.0]);
    // The variance of 9 and 11 is 2, a fiftieth of the square of their mean. Half of the square of the replicate's difference is that of 5,000.
    let moved: Vec<f64> = estimates.replicates().iter().map(|totals| (totals[0] - 5_160.0).abs()).collect();
    [16.0, 16.0, 1_000.0, 0.0]
        .iter()
        .zip(&moved)
        .for_each(|(is, found)| assert!((is - found).abs() < 1e-6, "{moved:?}"));
}

#[test]
fn one_dear_execution_in_another_window_does_not_replace_what_thousands_have_cost() {
    let mut sample = Sample::new(1, 4);
    for (executions, cost) in [(1, 1_000), (10_000, 3)] {
        sample.begin_window(&window(1), MEASURED);
        sample.add(0, executions, &[(0, executions * cost)]);
    }
    let estimates = estimate(&sample, &[1], &exposure(&[(0, 1_000_000)]));
    let cost = 31_000.0 / 10_001.0;
    assert!((estimates.totals()[0] / 1e6 - cost).abs() < 1e-9);
    // Without the second group, two executions of 1,000 cycles are left, which count as two of 5,000.5. Without the first: all is known.
    let moved: Vec<f64> = estimates.replicates().iter().map(|totals| totals[0] / 1e6 - cost).collect();
    let expected = [3.0 - cost, (1_000.0 - cost) * 2.0 / 5_000.5];
    moved
        .iter()
        .zip(expected)
        .for_each(|(moved, expected)| assert!((moved - expected).abs() < 1e-9, "{moved}, {expected}"));
}

#[test]
fn a_block_that_one_group_has_seen_most_of_varies_as_other_blocks_do_from_window_to_window() {
    let mut sample = Sample::new(1, 4);
    for (common, executions) in [(9, 0), (11, 0), (0, 1_000), (0, 1)] {
        sample.begin_window(&window(1), MEASURED);
        (0..16).filter(|_| common > 0).for_each(|block| sample.add(block, 10, &[(0, 10 * common)]));
        sample.add(16, executions, &[(0, 50 * executions)]);
    }
    let part: Vec<_> = (0..16).map(|block| (block, 1)).chain([(16, 100)]).collect();
    let estimates = estimate(&sample, &[1; 17], &exposure(&part));
    assert_eq!(estimates.totals(), [5_160.0]);
    // As if only the third window had seen it.
    let moved: Vec<f64> = estimates.replicates().iter().map(|totals| (totals[0] - 5_160.0).abs()).collect();
    let expected = [16.0, 16.0, 1_000.0, 0.0];
    expected.iter().zip(&moved).for_each(|(is, found)| assert!((is - found).abs() < 1e-6, "{moved:?}"));
}

#[test]
fn unseen_blocks_may_differ_from_the_rate_of_blocks_that_few_windows_have_seen_as_these_do_from_each_other() {
    let mut sample = Sample::new(1, 2);
    for cost in [9, 11] {
        sample.begin_window(&window(1), MEASURED);
        (0..16).for_each(|block| sample.add(block, 1, &[(0, cost)]));
    }
    // 16 instructions of seen blocks and 2 of an unseen one, with 10 cycles each.
    let part: Vec<_> = (0..16).map(|block| (block, 1)).chain([(16, 2)]).collect();
    let estimates = estimate(&sample, &[1; 17], &exposure(&part));
    assert_eq!(estimates.totals(), [180.0]);
    // Without a window, an instruction costs 1 cycle more or less. A mean of 2 instructions has 8 times the variance of one of 16, in addition to that of the
    // rate: 9 times that of 1 cycle, and so 3 cycles for each of the two.
    assert_eq!(estimates.replicates(), [[180.0 + 16.0 + 6.0], [180.0 - 16.0 - 6.0]]);
}

#[test]
fn an_exposure_that_only_one_group_has_seen_is_known_badly() {
    let mut sample = Sample::new(1, 2);
    for k in 0..6 {
        sample.begin_window(&window(1), MEASURED);
        let block = if [0, 3, 4].contains(&k) { 4 } else { 0 };
        sample.add(block, 3, &[(0, 10)]);
    }
    let estimates = estimate(&sample, &SIZES, &exposure(&[(4, 7)]));
    assert!((estimates.totals()[0] - 70.0 / 3.0).abs() < 1e-9);
    let without = estimates.replicates()[0][0];
    assert!(without.abs() < 1e-9, "nothing is known without the group: {without}");
    assert!(estimates.interval(0, 0.95).relative() > 1.0);
}

#[test]
fn an_exposure_that_windows_have_not_seen_gets_the_mean_rate_without_an_interval() {
    let sample = windows_of_block_0(&[30, 30, 60, 60]);
    let estimates = estimate(&sample, &SIZES, &exposure(&[(5, 6)]));
    assert_eq!(estimates.totals(), [90.0]);
    assert_eq!(estimates.unseen_share(), 1.0);
    let interval = estimates.interval(0, 0.95);
    assert!(interval.half_width.is_infinite() && interval.contains(1e9));
    assert_eq!(estimates.windows_needed(&Precision::default(), |totals| totals[0]), None);
}

#[test]
fn empty_samples_and_empty_exposures_give_zeros() {
    let part = exposure(&[(0, 10)]);
    let nothing = estimate(&Sample::new(2, 4), &SIZES, &part);
    assert_eq!((nothing.totals(), nothing.unseen_share(), nothing.windows()), (&[0.0, 0.0][..], 1.0, 0));
    assert!(nothing.interval(1, 0.95).half_width.is_infinite());
    let empty = estimate(&windows_of_block_0(&[30, 30]), &SIZES, &Exposure::new());
    assert_eq!((empty.totals(), empty.unseen_share()), (&[0.0][..], 0.0));
}

#[test]
fn one_window_is_too_few_for_an_interval() {
    let estimates = estimate(&windows_of_block_0(&[50]), &SIZES, &exposure(&[(0, 10)]));
    assert_eq!(estimates.totals(), [50.0]);
    assert!(estimates.interval(0, 0.95).half_width.is_infinite());
}

#[test]
fn half_of_the_error_takes_four_times_the_windows() {
    let estimates = estimate(&windows_of_block_0(&[40, 60, 50, 90]), &SIZES, &exposure(&[(0, 10)]));
    let error = estimates.interval(0, 0.95).relative();
    let needed = |error| estimates.windows_needed(&Precision { error, confidence: 0.95 }, |totals| totals[0]);
    assert_eq!(needed(error * 1.001), Some(4));
    assert_eq!(needed(error / 2.0 * 1.001), Some(16));
}
