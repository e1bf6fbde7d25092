//! Page sizes: advice, experiments, risks.

use std::sync::atomic::Ordering;

use fxscope_lab::pages::{advise, experiment, risks};
use fxscope_lab::{Error, Silent, pages};
use fxscope_record::Finish;
use fxscope_session::{PageOption, Scenario};

use crate::common::{RecordedProgress, kernel, kernels, nowhere};

fn with_pages(mut scenario: Scenario, text: &str) -> Scenario {
    scenario.placement.pages.extend(text.split(',').map(|option| PageOption::parse(option).expect("pages")));
    scenario
}

/// No load overtakes a store that it depends on: the analysis sees the look-ups of the run in their order.
#[test]
fn the_analysis_counts_the_same_as_the_run_for_the_pages_of_the_run() {
    let scenario = with_pages(kernel("triad-mem", &["n=87360", "passes=2"]), "all=64KiB");
    let options = advise::Options { simulate: 1, ..advise::Options::default() };
    let progress = RecordedProgress::default();
    let advice = pages::advise(&scenario, &options, nowhere(), &progress).expect("advice");
    let (predicted, simulated) = (advice.base.misses.expect("known"), advice.base.simulated.as_ref().expect("it ran"));
    assert_eq!((predicted.first, predicted.walks), (simulated.first, simulated.walks));
    assert_eq!(predicted.code, simulated.code);
    // Three arrays of 87,360 doubles in pages of 64 KiB, more than the first-level TLB has entries.
    assert!(simulated.first > 2 * 3 * 87_360 * 8 / 65_536, "{simulated:?}");
    assert_eq!(advice.json()["command"][1], "n=87360");
    assert!(progress.messages.lock().expect("no panic").iter().all(|message| message.starts_with("run ")));
}

/// `.data`, the end of the text and the beginning of `.bss` lie in the same 2 MiB.
#[test]
fn segments_have_pages_of_their_own_in_the_analysis_and_in_the_run() {
    for pages in ["data=2MiB", "text=2MiB", "bss=2MiB", "data=2MiB,bss=2MiB,text=2MiB"] {
        let scenario = with_pages(kernel("triad-mem", &["n=87360", "passes=2"]), &format!("all=64KiB,{pages}"));
        let options = advise::Options { least_gain: 1.0, ..advise::Options::default() };
        let advice = pages::advise(&scenario, &options, nowhere(), &Silent).expect("advice");
        let (predicted, simulated) =
            (advice.base.misses.expect("known"), advice.base.simulated.as_ref().expect("it ran"));
        assert_eq!((predicted.first, predicted.walks), (simulated.first, simulated.walks), "{pages}");
        assert_eq!(predicted.code, simulated.code, "{pages}");
        assert!(simulated.walks >= 4, "text, data, bss and stack have a page each: {simulated:?}");
    }
}

/// The first half fills the TLBs, and touches all pages.
#[test]
fn the_analysis_of_the_second_half_counts_the_same_as_the_run() {
    let scenario = with_pages(kernel("triad-mem", &["n=87360", "passes=6"]), "all=64KiB");
    let options = advise::Options { simulate: 1, steady: true, ..advise::Options::default() };
    let advice = pages::advise(&scenario, &options, nowhere(), &Silent).expect("advice");
    let (predicted, simulated) = (advice.base.misses.expect("known"), advice.base.simulated.as_ref().expect("it ran"));
    assert_eq!((predicted.first, predicted.walks), (simulated.first, simulated.walks));
    assert!(simulated.first > 2 * 3 * 87_360 * 8 / 65_536, "{simulated:?}");
    assert_eq!(predicted.first_touches, 0);
    assert!(advice.steady_from.is_some_and(|from| from > 100_000), "{:?}", advice.steady_from);
}

#[test]
fn page_sizes_that_the_machine_lacks_are_refused_before_anything_runs() {
    let options = advise::Options { sizes: vec![4 << 20], ..advise::Options::default() };
    let refused = pages::advise(&kernel("triad-l1", &[]), &options, nowhere(), &Silent);
    assert!(
        matches!(refused, Err(Error::Request(why)) if why.starts_with("--sizes: a64fx has no pages of size '4MiB'"))
    );
}

#[test]
fn a_run_that_is_stopped_gives_no_advice() {
    let progress = RecordedProgress::default();
    progress.stop.store(true, Ordering::Relaxed);
    let stopped = pages::advise(&kernel("triad-mem", &[]), &advise::Options::default(), nowhere(), &progress);
    assert!(matches!(stopped, Err(Error::Ended { finish: Finish::Stopped, .. })));
}

#[test]
fn eleven_segments_take_eleven_pages_of_each_size() {
    let cost = experiment::named("cost").expect("there");
    let outcome = cost.run(&experiment::Options::new(kernels()), &Silent).expect("it can be made");
    let table = &outcome.findings.tables[1];
    let taken = table.columns.iter().position(|column| column.title == "taken").expect("a column") - 1;
    let mib: Vec<f64> = table.rows.iter().filter_map(|(_, cells)| cells[taken].value().as_f64()).collect();
    assert_eq!(mib, [4.0, 32.0, 256.0].map(|page| 11.0 * page));
    assert_eq!(outcome.findings.published[0].here, Some(2816.0));
    assert!(experiment::named("costs").is_err_and(|e| e.to_string().contains("choose from stride, draws")));
}

#[test]
fn each_masked_store_to_memory_that_was_never_mapped_is_found() {
    let scenario = kernel("masked", &["rows=200", "inner=2", "access=store", "step=65536"]);
    let found = risks(&scenario, nowhere(), &Silent).expect("it runs");
    let [risk] = &found.risks.risks[..] else { panic!("one instruction, not {:?}", found.risks) };
    // The program makes one row before the measured ones; rows are a page apart.
    assert_eq!((risk.accesses, risk.none_active, risk.executions), (201, 201, 201));
    assert_eq!((risk.unmapped.pages, risk.untouched.pages), (200, 0));
    assert_eq!(risk.function, "masked_store_kernel");
}
