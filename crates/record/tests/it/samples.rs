//! Records of sampled runs.

use std::fs;
use std::sync::Arc;

use fxscope_record::{Names, RecordError, Region, Replicates, Run, Sample, Totals, append, load};

use crate::file::{place, small_run};

/// A run of one region, sampled, with two replicates of its cycles.
pub(crate) fn sampled() -> Run {
    let names: Arc<Names> = Arc::new(std::iter::once("CPU_CYCLES".to_owned()).collect());
    let totals = Totals::new(names, &[vec![1_010], vec![990]]);
    let plan = "window=5000".to_owned();
    let sample = Sample {
        plan,
        windows: 300,
        confidence: 0.95,
        regions: vec![Replicates { unseen: 0.01, totals }],
        ..Sample::default()
    };
    Run { sample: Some(sample), ..small_run() }
}

#[test]
fn a_changed_sample_is_damage() {
    for change in [
        "UPDATE sample SET windows = 301",
        "DELETE FROM sample",
        "UPDATE replicate SET unseen = 0",
        "DELETE FROM replicate",
    ] {
        let (_folder, path) = place();
        append(&path, &sampled()).expect("saved");
        rusqlite::Connection::open(&path).and_then(|db| db.execute(change, [])).expect("changed");
        assert!(matches!(load(&path), Err(RecordError::Damaged { .. })), "{change}");
    }
}

#[test]
fn the_totals_of_a_hundred_sampled_regions_take_less_than_two_megabytes() {
    let names: Arc<Names> = Arc::new((0..200).map(|i| format!("EVENT_{i:03}")).collect());
    // Totals from 100 to some 10^9 that differ by about 1 %.
    let total = |event: u64, row: u64| (100 << (event % 24)) | ((event * 7_919 + row * 104_729) % (1 << (event % 24)));
    let rows: Vec<Vec<u64>> = (0..32).map(|row| (0..200).map(|event| total(event, row)).collect()).collect();
    let replicates = Replicates { unseen: 0.01, totals: Totals::new(names, &rows) };
    let region = |i| Region { name: format!("region {i}"), ..Region::default() };
    let sample = Sample { regions: vec![replicates; 100], ..Sample::default() };
    let (_folder, path) = place();
    append(&path, &Run { regions: (0..100).map(region).collect(), sample: None, ..small_run() }).expect("saved");
    let without = fs::metadata(&path).expect("there").len();
    let (_folder, path) = place();
    append(&path, &Run { regions: (0..100).map(region).collect(), sample: Some(sample), ..small_run() })
        .expect("saved");
    let added = fs::metadata(&path).expect("there").len() - without;
    // 640,000 totals take less than two and a half bytes each.
    assert!(added < 1_600_000, "{added}");
}
