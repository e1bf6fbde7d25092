//! Snapshots of the timing state: a run goes on from one as the run that it was taken from.

use fxscope_sim::snapshot::SnapshotError;
use fxscope_sim::{Control, Outcome, Simulation};

use crate::parallel::run_of_triad;

/// Triad on the cores of three CMGs; the threads of one host thread spin at barriers.
const ARGUMENTS: &str = "n=49152 passes=4 threads=36";

/// Runs to a third of its instructions.
fn begun(host_threads: usize) -> Simulation {
    let mut run = run_of_triad(ARGUMENTS, host_threads);
    let stop = |instructions| if instructions > 400_000 { Control::Stop } else { Control::Continue };
    run.advance(&mut |progress| stop(progress.instructions));
    run
}

fn ended(mut run: Simulation) -> Outcome {
    let finish = run.advance(&mut |_| Control::Continue);
    run.conclude(finish)
}

#[test]
fn a_run_goes_on_from_its_snapshot_to_the_same_counts() {
    for host_threads in [1, 2] {
        let mut plain = begun(host_threads);
        let snapshot = plain.snapshot().expect("a timed run");
        let mut restored = begun(host_threads);
        let other = restored.snapshot().expect("a timed run");
        assert!(snapshot == other, "the same run is in the same state");
        restored.restore(&snapshot).expect("can be read");
        let (a, b) = (ended(plain), ended(restored));
        assert_eq!((a.now_ns, a.regions), (b.now_ns, b.regions), "{host_threads} host threads");
        assert_eq!(a.hot, b.hot);
        assert!(a.now_ns > 0);
    }
}

#[test]
fn a_snapshot_of_another_version_or_a_damaged_one_is_refused() {
    let mut run = begun(1);
    let mut snapshot = run.snapshot().expect("a timed run");
    assert!(matches!(run.restore(&snapshot[..snapshot.len() / 2]), Err(SnapshotError::Format(_))));
    snapshot[0] += 1;
    assert!(matches!(run.restore(&snapshot), Err(SnapshotError::Version(2))));
}
