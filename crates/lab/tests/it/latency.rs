//! The effect of slower memory on a pointer chase, compared with arithmetic.

use fxscope_lab::latency::{Case, CheckOptions, PredictOptions, Subject, check_one};
use fxscope_lab::{Cache, Runner, Silent};

use crate::common::{RecordedProgress, kernel, nowhere};

fn subject() -> Subject {
    Subject {
        name: "chase".to_owned(),
        fit: false,
        scenario: kernel("chase", &["12582912", "2000", "warm"]),
        options: PredictOptions { latencies: vec![300.0], region: Some("chase".to_owned()), threads: None },
        interval_ns: 100_000,
        refuses: None,
    }
}

/// Each access waits for the one before: the linear method is exact, and simulation agrees.
#[test]
fn a_chase_takes_longer_by_the_latency_of_each_access_and_is_cached() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = || CheckOptions {
        jobs: None,
        cache: Cache::of_this_program(Some(folder.path())).expect("a cache"),
        fit: false,
    };
    let progress = RecordedProgress::default();
    let checked = check_one(&subject(), &options(), &progress).expect("it can be simulated");
    let method = |id: &str| {
        let methods = checked.json["methods"].as_array().expect("methods");
        methods.iter().find(|method| method["id"] == id).expect("a method")["slowdowns"][0].as_f64().expect("a number")
    };
    let simulated = checked.json["simulated"][0].as_f64().expect("simulated");
    assert!((method("0") / simulated - 1.0).abs() < 0.02, "{} and {simulated}", method("0"));
    assert!((300.0 / checked.json["base_ns"].as_f64().expect("known") / simulated - 1.0).abs() < 0.05, "{simulated}");
    // With normal memory, with memory of another node, and with slower memory.
    assert_eq!(progress.announced.into_inner(), 3);
    assert_eq!(std::fs::read_dir(folder.path()).expect("kept").count(), 3);
    let again = check_one(&subject(), &options(), &Silent).expect("it is kept");
    assert_eq!((again.json, again.document), (checked.json, checked.document));
    assert_eq!(std::fs::read_dir(folder.path()).expect("kept").count(), 3, "nothing else was run");
}

#[test]
fn a_forecast_is_made_from_a_run_alone() {
    let Subject { scenario, options, .. } = subject();
    let scenario = scenario.with_intervals(Some(20_000), options.region.as_deref());
    let run = Runner::new(None, &Silent).run(scenario.prepare().expect("sound"), nowhere()).expect("it runs");
    let forecast = Case::of(&run, &options, None, None).expect("counted").predict(&options);
    assert_eq!(forecast.prediction.points.len(), 1);
    assert_eq!(forecast.prediction.kind.word(), "dependent");
    assert!(!forecast.case.intervals.is_empty());
    let wrong = PredictOptions { region: Some("no".to_owned()), ..options };
    assert!(Case::of(&run, &wrong, None, None).is_err_and(|e| e.to_string().contains("it has all, chase")));
}
