//! In every scope and format, a share of peak matches the rate and the peak shown with it.

use crate::common;

use fxscope_pmu::{Evaluation, Metrics, Values};
use fxscope_record::{Region, Run, Thread};
use fxscope_report::document::{Body, Document, Roofline, Value};
use fxscope_report::render::json;
use fxscope_report::{Options, report, summary};

/// Double-precision peak of a core, and bandwidth of a CMG's memory: 2 GHz, two pipes, eight doubles, multiply and add.
const CORE_GFLOPS: f64 = 64.0;
const CMG_GBS: f64 = 256.0;

/// A run of `threads` threads on as many cores, 12 per CMG. Each has done the same work in its own time.
fn run(threads: u32) -> Run {
    let row = |thread: u32| {
        let mut counts = common::counts(10);
        counts.insert("CPU_CYCLES".to_owned(), 2_000_000 / u64::from(thread + 1));
        (Thread { thread, cpu: 12 + thread, ..Thread::default() }, counts)
    };
    let mut run = common::run("a.out", vec![Region::of_one_pass("all", 1, (0..threads).map(row).collect())]);
    run.constants.extend([("first_core".to_owned(), 12.0), ("cmg_cores".to_owned(), 12.0)]);
    run
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// Checks metrics of threads on a number of cores and CMGs.
fn check(values: &Values, cores: u32, cmgs: u32) {
    let (cores, cmgs) = (f64::from(cores), f64::from(cmgs));
    assert_eq!([values["cores_used"], values["cmgs_used"]], [cores, cmgs]);
    assert!(near(values["gflops_peak"], cores * CORE_GFLOPS), "{}", values["gflops_peak"]);
    assert!(near(values["memory_peak_gbs"], cmgs * CMG_GBS), "{}", values["memory_peak_gbs"]);
    assert!(near(values["gflops_percent_of_peak"] / 100.0 * cores * CORE_GFLOPS, values["gflops"]));
    assert!(near(values["memory_percent_of_peak"] / 100.0 * cmgs * CMG_GBS, values["memory_gbs"]));
    assert!(near(values["memory_busy"] * cmgs * CMG_GBS, values["memory_gbs"]));
}

#[test]
fn rates_are_relative_to_the_peak_of_the_cores_and_cmgs_used() {
    for threads in [1, 2, 13] {
        let run = run(threads);
        let evaluation = Evaluation::new(&run, &run.regions[0]);
        let cmgs = threads.div_ceil(12);
        check(&evaluation.total(), threads, cmgs);
        check(&evaluation.process(0).expect("a process"), threads, cmgs);
        evaluation.threads().iter().for_each(|values| check(values, 1, 1));
        evaluation.cmgs().iter().for_each(|(team, values)| check(values, team.threads.len() as u32, 1));
    }
}

#[test]
fn threads_that_share_a_core_share_its_peak() {
    let mut run = run(2);
    run.regions[0].threads[1].cpu = 12;
    check(&Evaluation::new(&run, &run.regions[0]).total(), 1, 1);
}

#[test]
fn report_columns_have_the_share_matching_the_rate() {
    let column = |id: &str| Metrics::built_in().tables()[0].columns.iter().find(|c| c.id == id).expect("a column");
    for threads in [1, 2, 13] {
        let run = run(threads);
        let evaluation = Evaluation::new(&run, &run.regions[0]);
        let cells = |id: &str| {
            let cells = evaluation.column(column(id));
            [cells.cmgs, cells.processes, vec![cells.total]].concat()
        };
        let cores: Vec<usize> = evaluation.teams().iter().map(|team| team.threads.len()).collect();
        let whole = threads as usize;
        for ((rate, share), cores) in cells("A02").iter().zip(cells("A03")).zip([&cores[..], &[whole, whole]].concat())
        {
            let (rate, share) = (rate.expect("a rate").value, share.expect("a share").value);
            assert!(near(share * cores as f64 * CORE_GFLOPS, rate), "{share} of {cores} cores is not {rate}");
        }
        let cmgs = [vec![1; cores.len()], vec![cores.len(); 2]].concat();
        for ((rate, share), cmgs) in cells("A04").iter().zip(cells("A05")).zip(cmgs) {
            let (rate, share) = (rate.expect("a rate").value, share.expect("a share").value);
            assert!(near(share * cmgs as f64 * CMG_GBS, rate), "{share} of {cmgs} CMGs is not {rate}");
        }
    }
}

/// The number after a label.
fn fact(document: &Document, label: &str) -> f64 {
    let rows = document.sections.iter().filter_map(|s| if let Body::Facts(rows) = &s.body { Some(rows) } else { None });
    let row = rows.flatten().find(|row| row.label == label).unwrap_or_else(|| panic!("no '{label}'"));
    match row.values[0] {
        Some(Value::Number(number, _)) => number,
        ref other => panic!("'{label}' is {other:?}"),
    }
}

#[test]
fn summary_and_roofline_show_the_same_peak() {
    for threads in [1, 2, 13] {
        let run = run(threads);
        let report = report(&run, &Options::default()).expect("a report");
        let roofline: Roofline = report.regions[0]
            .sections
            .iter()
            .find_map(|s| if let Body::Roofline(r) = &s.body { Some(r.clone()) } else { None })
            .expect("a roofline");
        for document in summary(&run).iter().chain(&report.documents()[1..]) {
            let fact = |label| fact(document, label);
            assert!(near(fact("of FP peak") / 100.0 * fact("FP peak"), fact("FP")));
            assert!(near(fact("of memory peak") / 100.0 * fact("memory peak"), fact("memory")));
            assert_eq!(fact("FP peak"), roofline.roofs[0].gflops);
            assert_eq!(fact("memory peak"), roofline.slopes[2].gigabytes);
            assert_eq!([fact("cores"), fact("CMGs")], [f64::from(threads), f64::from(threads.div_ceil(12))]);
        }
    }
}

#[test]
fn json_names_the_peak_and_its_cores_and_cmgs_for_every_scope() {
    let json = json::run(&run(13));
    let region = &json["regions"][0];
    let of_all = std::iter::once((region, 13.0, 2.0));
    let list = |name: &str| region[name].as_array().expect("a list").clone();
    let (threads, cmgs, processes) = (list("threads"), list("cmgs"), list("processes"));
    let scopes = of_all
        .chain(threads.iter().map(|thread| (thread, 1.0, 1.0)))
        .chain(cmgs.iter().zip([12.0, 1.0]).map(|(cmg, cores)| (cmg, cores, 1.0)))
        .chain(processes.iter().map(|process| (process, 13.0, 2.0)));
    let mut checked = 0;
    for (scope, cores, cmgs) in scopes {
        let metric = |name: &str| scope["metrics"][name].as_f64().unwrap_or_else(|| panic!("no {name}"));
        assert_eq!([metric("cores_used"), metric("cmgs_used")], [cores, cmgs]);
        assert!(near(metric("gflops_percent_of_peak") / 100.0 * metric("gflops_peak"), metric("gflops")));
        assert!(near(metric("memory_percent_of_peak") / 100.0 * metric("memory_peak_gbs"), metric("memory_gbs")));
        assert!(near(metric("gflops_peak"), cores * CORE_GFLOPS) && near(metric("memory_peak_gbs"), cmgs * CMG_GBS));
        checked += 1;
    }
    assert_eq!(checked, 1 + 13 + 2 + 1);
}

#[test]
fn uncounted_rates_have_no_peak() {
    let mut run = run(1);
    let only = [("CPU_CYCLES".to_owned(), 1_000), ("INST_RETIRED".to_owned(), 1_000)];
    run.regions = vec![Region::of_one_pass("all", 1, vec![(Thread { cpu: 12, ..Thread::default() }, only.into())])];
    assert!(summary(&run)[0].sections.iter().all(|section| section.title != "Rates"));
}
