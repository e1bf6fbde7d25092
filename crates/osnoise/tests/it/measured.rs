//! Measurements of the machine that runs the tests: they must work end to end; the amount of noise is unknown.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fxscope_hostinfo::cpus::Host;
use fxscope_osnoise::measure::{self, Control, Error, Plan, native};
use fxscope_osnoise::trace::{Header, Item, Method, Reader, Summary};

fn plan(method: Method) -> Plan {
    Plan {
        method,
        cores: Vec::new(),
        duration: Duration::from_millis(300),
        quantum: None,
        threshold: None,
        blocks: 4,
        priority: None,
        system_clock: false,
    }
}

fn measured(plan: &Plan) -> (Header, usize, Summary) {
    let mut file = Vec::new();
    let summary = measure::run(plan, &mut file, Control::until(&AtomicBool::new(false))).expect("measurable");
    let mut reader = Reader::new(&file[..]).expect("a trace");
    let mut detours = 0;
    while let Some(item) = reader.next_item().expect("whole") {
        match item {
            Item::Detours(core, some) => {
                assert!(native::allowed().expect("known").contains(&core));
                assert!(some.is_sorted_by_key(|detour| detour.start));
                detours += some.len();
            }
            Item::End(read) => assert_eq!(*read, summary),
            Item::CutOff => panic!("it has an end"),
        }
    }
    (reader.header().clone(), detours, summary)
}

#[test]
fn a_measurement_ends_early_on_request() {
    let plan = Plan { duration: Duration::from_secs(3600), ..plan(Method::Spin) };
    let stop = AtomicBool::new(true);
    let summary = measure::run(&plan, Vec::new(), Control::until(&stop)).expect("measurable");
    assert!(summary.duration < 3_000_000_000_000);
}

#[test]
fn a_missing_core_is_refused_with_a_list_of_the_existing_ones() {
    let plan = Plan { cores: vec![0, 60_000], ..plan(Method::Spin) };
    let error = measure::run(&plan, Vec::new(), Control::until(&AtomicBool::new(false))).expect_err("no such core");
    assert!(matches!(error, Error::Core(_)), "{error:?}");
    assert!(error.to_string().starts_with("there is no core 60000 on this host; cores 0"), "{error}");
}

#[test]
fn isolated_cores_are_measured_on_request_and_offline_ones_are_refused() {
    let host = Host { online: vec![0, 1, 2], offline: vec![3], isolated: vec![2], ..Host::default() };
    let cores = |wanted: &[u32]| measure::cores(wanted, &[0], &host).map_err(|e| e.to_string());
    assert_eq!(cores(&[]), Ok(vec![0]));
    assert_eq!(cores(&[2, 0, 2]), Ok(vec![0, 2]));
    assert_eq!(
        cores(&[1]),
        Err("core 1 is not available to this process (taskset, cpuset or container); cores 0 are".to_owned())
    );
    assert!(cores(&[3]).is_err_and(|why| why.starts_with("core 3 is offline (an administrator can bring it online)")));
}

#[test]
fn an_impossible_quantum_is_refused_by_all_cores_at_once() {
    let plan = Plan { quantum: Some(10), ..plan(Method::Fwq) };
    let error = measure::run(&plan, Vec::new(), Control::until(&AtomicBool::new(false))).expect_err("too short");
    assert!(error.to_string().contains("a quantum of 10 ns is not possible"), "{error}");
}

/// Takes seconds of processor time.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn every_method_measures_every_core_and_reports_its_cost() {
        for method in [Method::Spin, Method::Fwq, Method::Ftq, Method::Dgemm, Method::Barrier] {
            let (header, detours, summary) = measured(&plan(method));
            let cores = native::allowed().expect("known");
            assert_eq!(header.cores.iter().map(|core| core.core).collect::<Vec<_>>(), cores, "{method:?}");
            assert_eq!(summary.cores.iter().map(|core| core.core).collect::<Vec<_>>(), cores, "{method:?}");
            assert!(
                summary.cores.iter().all(|core| core.iterations > 0 && core.minimum > 0.0),
                "{method:?} {summary:?}"
            );
            let overhead = header.overhead.expect("measured");
            assert!(overhead.read > 0.0 && overhead.record > 0.0, "{method:?} {overhead:?}");
            assert_eq!(overhead.share.is_some(), header.quantum > 0, "{method:?}");
            let kept: u64 = summary.cores.iter().map(|core| core.iterations).sum();
            assert!(detours as u64 <= kept, "{method:?}");
        }
    }
}
