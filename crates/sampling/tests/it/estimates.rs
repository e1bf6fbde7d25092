//! Estimates of small samples whose results can be calculated by hand.

use fxscope_sampling::{Exposure, Sample, Window, WindowKind, estimate};

fn window(weight: u64) -> Window {
    Window { kind: WindowKind::Regular, weight, warm: 0, instructions: 100 }
}

#[test]
fn a_total_is_the_sum_of_exact_executions_times_the_cost_of_one_in_windows() {
    let mut sample = Sample::new(3, 2);
    sample.begin_window(&window(1));
    sample.add(0, 10, &[(0, 40), (2, 5)]);
    sample.begin_window(&window(1));
    sample.add(0, 10, &[(0, 60)]);
    sample.add(4, 2, &[(1, 8)]);
    let exposure: Exposure = [(0, 1_000), (4, 100)].into_iter().collect();
    let estimates = estimate(&sample, &[3, 0, 0, 0, 7], &exposure);
    assert_eq!(estimates.totals(), [5_000.0, 400.0, 250.0]);
    assert_eq!(estimates.unseen_share(), 0.0);
    assert_eq!(estimates.replicates().len(), 2);
}
