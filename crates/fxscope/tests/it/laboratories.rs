//! Each laboratory gives the same through the library as on the command line.

use crate::common;

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use common::{json, kernel, output};
use fxscope::lab::{self, Cache, Runner, Silent, latency, pages};
use fxscope::linux::Stdio;
use fxscope::report::{render, validation};
use fxscope::validate::{self, Simulator, Suite};
use fxscope::{PageOption, Scenario};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A run of a prebuilt kernel as on the command line.
fn scenario(program: &str, arguments: &[&str]) -> Scenario {
    let mut scenario = Scenario::new(kernel(program)).with_arguments(arguments);
    scenario.inherit_environment = true;
    scenario
}

fn nowhere() -> Option<Stdio> {
    let null = || OpenOptions::new().write(true).open("/dev/null").expect("a device").into();
    Some(Stdio { input: File::open("/dev/null").expect("a device").into(), output: null(), error: null() })
}

/// Returns the JSON that a command writes to a file, without the version of its form, which the command adds; run in the folder that the library
/// works in.
fn printed(arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = folder.path().join("out.json");
    let file = file.to_str().expect("UTF-8");
    let here = std::env::current_dir().expect("there");
    let filled: Vec<&str> = arguments.iter().map(|&word| if word == "FILE" { file } else { word }).collect();
    let output = output(&here, &filled);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut answer = json(&std::fs::read(file).expect("written"));
    let version = answer.as_object_mut().expect("an object").remove("version");
    assert_eq!(version, Some(Value::from(1)));
    answer
}

#[test]
fn advice_on_pages() {
    let program = kernel("triad-mem.elf");
    let arguments = ["n=87360", "passes=1"];
    let command =
        ["pages", "advise", "-q", "--pages", "all=64KiB", "--simulate", "1", "--json", "FILE", "--", &program];
    let mut scenario = scenario("triad-mem.elf", &arguments);
    scenario.placement.pages.push(PageOption::parse("all=64KiB").expect("pages"));
    let options = pages::advise::Options { simulate: 1, ..pages::advise::Options::default() };
    let advice = pages::advise(&scenario, &options, nowhere(), &Silent).expect("advice");
    assert_eq!(advice.json(), printed(&[&command[..], &arguments].concat()));
}

#[test]
fn an_experiment_on_pages() {
    let programs = root().join("kernels/prebuilt");
    let folder = programs.to_str().expect("UTF-8").to_owned();
    let cost = pages::experiment::named("cost").expect("there");
    let outcome = cost.run(&pages::experiment::Options::new(programs), &Silent).expect("it can be made");
    assert_eq!(outcome.json(), printed(&["pages", "experiment", "cost", "--programs", &folder, "--json", "FILE"]));
}

#[test]
fn risks_of_masked_accesses() {
    let program = kernel("masked.elf");
    let arguments = ["rows=50", "inner=2", "access=load", "step=65536"];
    let found = pages::risks(&scenario("masked.elf", &arguments), nowhere(), &Silent).expect("it runs");
    let command = ["pages", "risks", "--json", "FILE", "--", &program];
    assert_eq!(found.json(), printed(&[&command[..], &arguments].concat()));
}

#[test]
fn noise_at_scale() {
    let mut options = lab::jitter::Options::new("linux-1000hz", [1, 8]);
    (options.cores_per_node, options.phases) = (4, 100);
    let command = ["jitter", "simulate", "--model", "linux-1000hz", "--nodes", "1,8", "--cores-per-node", "4"];
    let more = ["--phases", "100", "--format", "json", "-o", "FILE"];
    let sheet = lab::jitter::simulate(&options).expect("it can be simulated");
    assert_eq!(sheet.json(), printed(&[&command[..], &more].concat()));
}

#[test]
fn rows_of_the_validation() {
    let folder = root().join("validation");
    let all = Suite::read(&folder).expect("rows");
    let row = all.families.iter().flat_map(|family| &family.rows).find(|(row, _)| {
        row.runs().all(|run| all.runs[run].suite == validate::Size::Quick && all.runs[run].program == "triad-l1")
    });
    let name = row.expect("a quick row").0.row.clone();
    let suite = all.choose(&name).expect("there");
    let program = PathBuf::from(env!("CARGO_BIN_EXE_fxscope"));
    let simulator = Simulator { program, kernels: root().join("kernels/prebuilt"), libraries: None };
    let results = lab::validate::execute(&suite, &simulator, &Cache::none(), Runner::new(None, &Silent)).expect("ran");
    let outcomes = validate::judge(&suite, &results);
    let folder = folder.to_str().expect("UTF-8").to_owned();
    let command = ["validate", &name, "--no-cache", "--folder", &folder, "--json", "FILE"];
    assert_eq!(validation::json(&name, &outcomes), printed(&command));
}

#[test]
fn a_comparison_of_runs() {
    let folder = tempfile::tempdir().expect("temporary folder");
    for (file, passes) in [("a.fxr", "passes=1"), ("b.fxr", "passes=2")] {
        let command = ["run", "-q", "-o", file, "--", &kernel("triad-l1.elf"), "n=512", passes];
        assert!(output(folder.path(), &command).status.success());
    }
    let paths = ["a.fxr", "b.fxr"].map(|file| folder.path().join(file));
    let files: Vec<_> = ["a", "b"]
        .into_iter()
        .zip(&paths)
        .map(|(label, path)| (label.to_owned(), fxscope::record::load(path).expect("a record")))
        .collect();
    let comparison = lab::compare(&files, &[], None).expect("alike");
    let paths = paths.each_ref().map(|path| path.to_str().expect("UTF-8"));
    let command = ["compare", paths[0], paths[1], "--format", "json", "-o", "FILE"];
    assert_eq!(render::comparison::json(&comparison), printed(&command));
}

/// They take longest.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn predictions_of_slower_memory_checked() {
        let program = kernel("chase.elf");
        let arguments = ["10485760", "500", "warm"];
        let subject = latency::Subject {
            name: [&[&program[..]], &arguments[..]].concat().join(" "),
            fit: false,
            scenario: scenario("chase.elf", &arguments),
            options: latency::PredictOptions {
                latencies: vec![500.0],
                region: Some("chase".to_owned()),
                threads: None,
            },
            interval_ns: 100_000,
            refuses: None,
        };
        let options = latency::CheckOptions { jobs: None, cache: Cache::none(), fit: false };
        let checked = latency::check_one(&subject, &options, &Silent).expect("it can be simulated");
        let command =
            ["latency", "check", "--no-cache", "--latencies", "500", "--region", "chase", "--json", "FILE", "--"];
        assert_eq!(checked.json, printed(&[&command[..], &[&program], &arguments].concat()));
    }
}
