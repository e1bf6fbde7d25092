//! Comparisons of hand-made runs.

use std::collections::BTreeMap;

use fxscope_record::{ALL, Finish, Host, Mode, Origin, Region, Run, Thread};
use fxscope_report::compare::{Comparison, Quantity, Subject, compare};

/// A run of `program` with these counts, in addition to cycles that all belong to one part of cycle accounting.
fn run(program: &str, counts: &[(&str, u64)]) -> Run {
    let events: BTreeMap<_, _> = counts.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
    let thread = Thread { cpu: 12, ..Thread::default() };
    Run {
        tool: "fxscope 0.0.0".to_owned(),
        command: vec![program.to_owned()],
        environment: Vec::new(),
        machine: "a64fx".to_owned(),
        settings: Vec::new(),
        machine_hash: "0123".to_owned(),
        description: None,
        constants: [("core_hz".to_owned(), 2e9)].into(),
        mode: Mode::Timing,
        finish: Finish::Exited(0),
        host: Host::default(),
        notes: Vec::new(),
        failures: Vec::new(),
        regions: vec![Region::of_one_pass(ALL, 1, vec![(thread, events)])],
        part: None,
        intervals: Vec::new(),
        pages: Vec::new(),
        files: Vec::new(),
        stalls: Vec::new(),
        pipes: Vec::new(),
        sample: None,
        hot_spots: Vec::new(),
        profile: Default::default(),
        parallel: Default::default(),
        origin: Origin::Simulated,
        passes: Vec::new(),
    }
}

/// Runs of two files with this many cycles.
fn cycles(first: &[u64], second: &[u64]) -> Quantity {
    let runs = |list: &[u64]| list.iter().map(|&n| run("a.out", &[("CPU_CYCLES", n)])).collect::<Vec<_>>();
    let (first, second) = (runs(first), runs(second));
    event(&compared(&[("a", &first), ("b", &second)]), "CPU_CYCLES").clone()
}

fn compared(files: &[(&str, &[Run])]) -> Comparison {
    let subjects: Vec<_> = files.iter().flat_map(|(label, runs)| Subject::of_file(label, runs)).collect();
    compare(&subjects, &[ALL]).expect("two subjects with the region")
}

fn event<'a>(comparison: &'a Comparison, name: &str) -> &'a Quantity {
    comparison.events.iter().find(|q| q.name == name).expect(name)
}

#[test]
fn ratios_are_to_the_first_file() {
    let quantity = cycles(&[1000], &[1500]);
    assert_eq!((quantity.ratio(0), quantity.ratio(1)), (Some(1.0), Some(1.5)));
}

#[test]
fn a_ratio_to_zero_is_unknown_and_two_zeros_are_equal() {
    assert_eq!(cycles(&[0], &[5]).ratio(1), None);
    assert_eq!(cycles(&[0], &[5]).effect(), f64::INFINITY);
    assert_eq!(cycles(&[0], &[0]).ratio(1), Some(1.0));
}

#[test]
fn one_run_each_says_nothing_about_noise() {
    assert_eq!(cycles(&[1000], &[1500]).is_noise(1), None);
}

#[test]
fn a_difference_of_up_to_two_standard_errors_is_noise() {
    // Standard deviation 10 of four runs each: standard error 5 of a mean, 7.07 of a difference.
    let spread = |mean: i64| [-10, -5, 5, 10].map(|d: i64| (mean + d) as u64);
    let error = (250.0_f64 / 3.0 / 4.0 * 2.0).sqrt();
    for (difference, noise) in [((2.0 * error) as i64, true), ((2.0 * error) as i64 + 1, false)] {
        let quantity = cycles(&spread(1000), &spread(1000 + difference));
        assert_eq!(quantity.is_noise(1), Some(noise), "{difference}");
        assert_eq!(quantity.effect() == 0.0, noise);
    }
}

#[test]
fn a_single_run_is_assumed_to_have_the_spread_of_the_others() {
    // Deviation 10 % of the mean: 100 for one value of 1000, 70.7 for the mean of two; together 122, doubled 244.
    assert_eq!(cycles(&[929, 1071], &[1200]).is_noise(1), Some(true));
    assert_eq!(cycles(&[929, 1071], &[1300]).is_noise(1), Some(false));
}

#[test]
fn repeated_runs_without_any_spread_have_no_noise() {
    assert_eq!(cycles(&[1000, 1000], &[1001, 1001]).is_noise(1), Some(false));
    assert_eq!(cycles(&[1000, 1000], &[1000, 1000]).is_noise(1), Some(true));
}

#[test]
fn the_largest_differences_are_first_but_rare_events_are_last() {
    let counts = |loads: u64, stores: u64, misses: u64| {
        run("a.out", &[("CPU_CYCLES", 1_000_000), ("LD_SPEC", loads), ("ST_SPEC", stores), ("L2D_TLB_REFILL", misses)])
    };
    let (a, b) = ([counts(1000, 1000, 1)], [counts(1100, 500, 50)]);
    let comparison = compared(&[("a", &a), ("b", &b)]);
    let names: Vec<_> = comparison.events.iter().map(|q| q.name.as_str()).collect();
    assert_eq!(names, ["ST_SPEC", "LD_SPEC", "CPU_CYCLES", "L2D_TLB_REFILL"]);
}

#[test]
fn different_runs_of_one_file_are_compared_with_each_other() {
    let runs =
        [run("a.out", &[("CPU_CYCLES", 5)]), run("b.out", &[("CPU_CYCLES", 10)]), run("a.out", &[("CPU_CYCLES", 7)])];
    let comparison = compared(&[("file", &runs)]);
    assert_eq!(comparison.labels, ["file#1", "file#2"]);
    assert_eq!(comparison.runs, [2, 1]);
    assert_eq!(event(&comparison, "CPU_CYCLES").values[0].map(|s| s.mean), Some(6.0));
    assert_eq!(comparison.notes, ["different program and arguments: a.out (file#1), b.out (file#2)"]);
}

#[test]
fn quantities_of_only_one_file_have_no_ratio() {
    let a = [run("a.out", &[("CPU_CYCLES", 5), ("LD_SPEC", 3)])];
    let b = [run("a.out", &[("CPU_CYCLES", 5)])];
    let comparison = compared(&[("a", &a), ("b", &b)]);
    let loads = event(&comparison, "LD_SPEC");
    assert!(loads.values[0].is_some() && loads.values[1].is_none());
    assert_eq!((loads.ratio(1), loads.effect()), (None, 0.0));
}

#[test]
fn a_region_that_a_file_lacks_is_named_with_those_it_has() {
    let (a, mut b) = ([run("a.out", &[])], [run("b.out", &[])]);
    b[0].regions[0].name = "solve".to_owned();
    let subjects: Vec<_> = [("a", &a), ("b", &b)].iter().flat_map(|(l, r)| Subject::of_file(l, *r)).collect();
    let error = compare(&subjects, &[ALL]).expect_err("b has none");
    assert_eq!(error, "b (b.out) has no region 'all'; it has solve; choose one with --region");
}

#[test]
fn measurements_of_one_region_each_are_compared_by_it_whatever_its_name() {
    let (mut a, mut b) = ([run("a.out", &[("LD_SPEC", 3)])], [run("b.out", &[("LD_SPEC", 6)])]);
    a[0].regions[0].name = "solve, 0".to_owned();
    b[0].regions[0].name = "solve, 1".to_owned();
    let subjects: Vec<_> = [("a", &a), ("b", &b)].iter().flat_map(|(l, r)| Subject::of_file(l, *r)).collect();
    for names in [&[][..], &["solve, 0", "solve, 1"]] {
        let comparison = compare(&subjects, names).expect("a region each");
        assert_eq!(comparison.region, "solve, 0 and solve, 1");
        assert_eq!(event(&comparison, "LD_SPEC").ratio(1), Some(2.0));
    }
}

#[test]
fn one_subject_cannot_be_compared() {
    let runs = [run("a.out", &[]), run("a.out", &[])];
    let error = compare(&Subject::of_file("a", &runs), &[ALL]).expect_err("one subject");
    assert!(error.contains("one kind of run"), "{error}");
}

#[test]
fn parts_that_only_one_measurement_separates_do_not_share_a_line_with_coarser_ones() {
    let all = [
        ("CPU_CYCLES", 100),
        ("LD_COMP_WAIT", 60),
        ("LD_COMP_WAIT_EX", 0),
        ("LD_COMP_WAIT_PFP_BUSY", 0),
        ("LD_COMP_WAIT_PFP_BUSY_EX", 0),
        ("LD_COMP_WAIT_L1_MISS", 20),
        ("LD_COMP_WAIT_L1_MISS_EX", 0),
        ("LD_COMP_WAIT_L2_MISS", 0),
        ("LD_COMP_WAIT_L2_MISS_EX", 0),
    ];
    let whole = [run("a.out", &all)];
    let brief = [run("a.out", &[all[0], all[1], all[3]])];
    let comparison = compared(&[("whole", &whole), ("brief", &brief)]);
    let part = |title: &str| {
        let found = comparison.accounting.iter().find(|q| q.title == title).unwrap_or_else(|| panic!("no {title}"));
        found.values.iter().map(|v| v.is_some()).collect::<Vec<_>>()
    };
    assert_eq!(part("FP load L2 wait"), [true, false]);
    assert_eq!(part("Memory and cache access"), [false, true]);
}
