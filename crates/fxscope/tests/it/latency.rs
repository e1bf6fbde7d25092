//! `fxscope latency`: predictions of slower memory, compared with simulation, and counts from a fake perf.

use crate::{common, schema};

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use common::{failure, kernel, output};
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = output(folder, &[&["latency"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Returns the slowdowns that a method predicts.
fn predicted(checked: &Value, id: &str) -> Vec<f64> {
    let methods = checked["methods"].as_array().expect("methods");
    let method = methods.iter().find(|method| method["id"] == id).expect("a method");
    method["slowdowns"].as_array().expect("slowdowns").iter().map(|s| s.as_f64().expect("a slower memory")).collect()
}

fn simulated(checked: &Value) -> Vec<f64> {
    checked["simulated"].as_array().expect("slowdowns").iter().map(|s| s.as_f64().expect("simulated")).collect()
}

/// Returns the mean outstanding reads of a core.
fn outstanding(checked: &Value) -> f64 {
    let methods = checked["methods"].as_array().expect("methods");
    methods.iter().find(|method| method["id"] == "3").expect("method 3")["value"].as_f64().expect("counted")
}

#[test]
fn predictions_are_made_from_a_record_and_impossible_ones_are_explained() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let program = kernel("chase.elf");
    let ran = output(folder.path(), &["run", "-q", "-o", "run.fxr", "--", &program, "10485760", "500", "warm"]);
    assert!(ran.status.success());
    let shown = output(folder.path(), &["latency", "predict", "run.fxr", "--latencies", "100,300"]);
    let text = String::from_utf8(shown.stdout).expect("text");
    assert!(text.contains("100 ns is faster than the memory of the machine"), "{text}");
    assert!(text.contains("Method 2, misses of the memory-side cache: not counted"), "{text}");
    assert!(text.contains("Method 4i, 4, interval by interval: the run has no intervals"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let page = output(folder.path(), &["latency", "predict", "run.fxr", "--format", "html"]);
    assert!(String::from_utf8_lossy(&page.stdout).contains("Slowdown against latency"));

    let (status, error) = failure(folder.path(), &["latency", "predict", "run.fxr", "--region", "no"]);
    assert_eq!(status, 125);
    assert!(error.contains("the run has no region 'no'; it has all, chase"), "{error}");
    let (_, error) = failure(folder.path(), &["latency", "predict", "run.fxr", "--run", "7"]);
    assert!(error.contains("there is no run 7, the file holds 1"), "{error}");
    let (status, error) = failure(folder.path(), &["latency", "predict", "run.fxr", "--latencies", "0"]);
    assert_eq!(status, 2);
    assert!(error.contains("nanoseconds"), "{error}");
}

#[test]
fn a_second_run_with_remote_memory_shows_what_counts_miss() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let program = kernel("chase.elf");
    for (file, node) in [("run.fxr", "4"), ("second.fxr", "5")] {
        let options = ["run", "-q", "--membind", node, "-o", file, "--", &program, "12582912", "4000", "warm"];
        assert!(output(folder.path(), &options).status.success());
    }
    let predict = ["predict", "run.fxr", "--region", "chase", "--latencies", "198,1000", "--format", "json"];
    let said = json(folder.path(), &[&predict[..], &["--second", "second.fxr", "--second-ns", "198"]].concat());
    // A chase waits for each line, as in method 0: with 64 ns more on the other node, and with 1,000 ns.
    let (by_0, by_6) = (predicted(&said, "0"), predicted(&said, "6"));
    for (by_0, by_6) in by_0.into_iter().zip(&by_6) {
        assert!((by_6 / by_0 - 1.0).abs() < 0.01, "{by_6}, not {by_0}");
    }
    let slowdown = said["second"]["slowdown"].as_f64().expect("a second run");
    assert!((slowdown / by_6[0] - 1.0).abs() < 0.01, "{slowdown}, not {by_6:?}");

    let second = ["latency", "predict", "run.fxr", "--second", "second.fxr"];
    let (_, error) = failure(folder.path(), &[&second[..], &["--second-ns", "100"]].concat());
    assert!(error.contains("the first run's memory takes 134"), "{error}");
    let (status, error) = failure(folder.path(), &second);
    assert!(status == 2 && error.contains("--second-ns"), "{error}");
}

#[test]
fn a_program_that_is_simulated_now_has_intervals() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let program = kernel("chase.elf");
    let options = ["latency", "predict", "--format", "json", "--interval", "20us", "-o", "said.json", "--"];
    let ran = output(folder.path(), &[&options[..], &[&program, "10485760", "500", "warm"]].concat());
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(String::from_utf8_lossy(&ran.stdout).contains("chase ok"), "its output passes through");
    let said: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("said.json")).expect("written")).expect("JSON");
    assert!(said["intervals"].as_array().expect("intervals").len() > 3);
    assert_eq!(predicted(&said, "4i").len(), 4);
}

const PLAN: &str = r#"
programs = "PREBUILT"
latencies = [300, 1000]
[[program]]
name = "chase {footprint}"
run = "chase.elf {footprint} 500 warm"
region = "chase"
fit = true
each = { footprint = ["10485760", "12582912"] }
[[program]]
name = "load"
run = "plain.elf op=load n=100000 passes=1"
region = "plain"
"#;

#[test]
fn mistakes_in_a_plan_are_named_with_their_place() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let check = |plan: &str| {
        std::fs::write(folder.path().join("plan.toml"), plan).expect("written");
        failure(folder.path(), &["latency", "check", "--no-cache", "--plan", "plan.toml"]).1
    };
    let program = "[[program]]\nname = 'a'\nrun = 'a.elf'\n";
    for (plan, message) in [
        ("program = []".to_owned(), "plan.toml: has no program"),
        (format!("{program}{program}"), "plan.toml: a: a second program has this name"),
        (format!("{program}options = '--hops 3'"), "plan.toml: a: error: unexpected argument '--hops'"),
        (format!("latencies = [0.5]\n{program}"), "plan.toml: latencies: 0.5 is not a latency from 1 to 100000 ns"),
        (format!("interval = 'soon'\n{program}"), "plan.toml: interval: "),
        (format!("{program}hops = 3"), "unknown field `hops`"),
        ("[[program]]\nname = 'a'\nrun = ' '".to_owned(), "plan.toml: a: run names no program"),
    ] {
        let error = check(&plan);
        assert!(error.contains(message), "{plan}: {error}");
    }
}

/// A fake perf that runs the program and writes a count for each event: a thousand times its index.
const PERF: &str = r#"#!/bin/sh
printf '%s\n' "$*" >> calls
[ -n "$DENY" ] && { echo 'Error: Access to performance monitoring is limited.' >&2; exit 255; }
events=
while [ "$1" != -- ]; do
    case $1 in
        -o) file=$2; shift;;
        -e) events="$events $2"; shift;;
    esac
    shift
done
shift
"$@" || exit $?
: > "$file"
count=1000
for event in $events; do
    [ "$event" = duration_time ] && continue
    case ",$LACKS," in
        *",$(printf '%s' "$event" | cut -d/ -f1),"*) echo "<not supported>;;$event;0;0.00;;" >> "$file";;
        *) echo "$count;;$event;1000;100.00;;" >> "$file";;
    esac
    count=$((count + 1000))
done
echo '1000000;ns;duration_time;1000;100.00;;' >> "$file"
"#;

fn perf(folder: &Path) {
    let path = folder.join("perf");
    std::fs::write(&path, PERF).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("allowed");
}

fn collect(folder: &Path, processor: &str, options: &[&str], variables: &[(&str, &str)]) -> std::process::Output {
    let fixed = ["latency", "collect", "--perf", "./perf", "-o", "run.fxr", "--processor", processor];
    let arguments = [&fixed[..], options, &["--", "echo", "hello"]].concat();
    common::fxscope(folder, &arguments).envs(variables.iter().copied()).output().expect("fxscope starts")
}

#[test]
fn knights_landing_is_counted_as_in_the_study_and_gives_predictions() {
    let folder = tempfile::tempdir().expect("temporary directory");
    perf(folder.path());
    let ran = collect(folder.path(), "knl", &["-r", "10"], &[]);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(String::from_utf8_lossy(&ran.stdout).contains("hello"));
    let calls = std::fs::read_to_string(folder.path().join("calls")).expect("called");
    for part in [
        "-r 10 -a",
        "-e cpu/event=0xb7,umask=0x01,offcore_rsp=0x4181800001/",
        "-e uncore_imc/event=0x03,umask=0x03/",
        "-e uncore_edc_uclk/event=0x02,umask=0x1c/",
        "-- echo hello",
    ] {
        assert!(calls.contains(part), "{part}: {calls}");
    }
    let said =
        json(folder.path(), &["predict", "run.fxr", "--format", "json", "--base-ns", "175", "--latencies", "275"]);
    let counted = |key: &str| said["counts"][key].as_f64().expect(key);
    let keys = ["cycles", "misses", "outstanding", "accesses", "cache_misses"];
    assert_eq!(keys.map(counted), [1000.0, 2000.0, 3000.0, 4000.0, 5000.0]);
    // 100 ns more for each of 5,000 misses per millisecond; three reads are outstanding at a time.
    assert!((predicted(&said, "2")[0] - 1.5).abs() < 1e-9);
    assert!((predicted(&said, "4")[0] - (1.0 + 0.5 / 3.0)).abs() < 1e-9);
}

#[test]
fn every_known_processor_can_be_counted() {
    for (processor, missing) in
        [("intel-server", vec!["2"]), ("amd-server", vec!["2"]), ("neoverse", vec!["2", "3", "4"])]
    {
        let folder = tempfile::tempdir().expect("temporary directory");
        perf(folder.path());
        let ran = collect(folder.path(), processor, &[], &[]);
        assert!(ran.status.success(), "{processor}: {}", String::from_utf8_lossy(&ran.stderr));
        let (_, error) = failure(folder.path(), &["latency", "predict", "run.fxr"]);
        assert!(error.contains(&format!("the latency of the memory of '{processor}' is not known")), "{error}");
        let said = json(folder.path(), &["predict", "run.fxr", "--format", "json", "--base-ns", "110"]);
        for method in said["methods"].as_array().expect("methods") {
            let id = method["id"].as_str().expect("an id");
            let lacks = missing.contains(&id) || ["4i", "5", "6"].contains(&id);
            assert_eq!(method["unusable"].is_string(), lacks, "{processor}: {method}");
        }
    }
}

#[test]
fn events_that_perf_cannot_count_are_explained() {
    let folder = tempfile::tempdir().expect("temporary directory");
    perf(folder.path());
    let ran = collect(folder.path(), "knl", &[], &[("LACKS", "uncore_edc_uclk")]);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{errors}");
    assert!(errors.contains("uncore_edc_uclk/event=0x02,umask=0x1c/ is not supported"), "{errors}");
    let said = json(folder.path(), &["predict", "run.fxr", "--format", "json", "--base-ns", "175"]);
    assert_eq!(said["missing"]["cache_misses"][0], "edc_misses");
    // Without misses of the cache, accesses at the controllers count.
    assert_eq!(predicted(&said, "4").len(), 4);

    let ran = collect(folder.path(), "knl", &[], &[("LACKS", "cycles,cache-misses,cpu,uncore_imc,uncore_edc_uclk")]);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(errors.contains("could count none of the events") && errors.contains("virtual machine"), "{errors}");
    let ran = collect(folder.path(), "knl", &[], &[("DENY", "1")]);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(errors.contains("ended with status 255; nothing is recorded"), "{errors}");
    assert!(errors.contains("--own counts the program alone"), "{errors}");
    let ran = collect(folder.path(), "z80", &[], &[]);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(errors.contains("unknown processor 'z80'; choose from a64fx, knl"), "{errors}");
    std::fs::remove_file(folder.path().join("calls")).expect("called");
    let ran = collect(folder.path(), "knl", &["--own", "-I", "100"], &[]);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let calls = std::fs::read_to_string(folder.path().join("calls")).expect("called");
    assert!(calls.contains("-I 100") && !calls.contains("-a ") && !calls.contains("uncore"), "{calls}");
}

#[test]
fn the_document_has_the_table_of_the_methods() {
    let shown = output(root(), &["latency", "methods", "--markdown"]);
    let table = String::from_utf8(shown.stdout).expect("text");
    let document = std::fs::read_to_string(root().join("docs/latency-lab.md")).expect("there");
    assert!(document.contains(&table), "out of date: run fxscope latency methods --markdown");
    let shown = output(root(), &["latency", "methods"]);
    let text = String::from_utf8(shown.stdout).expect("text");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

/// They take longest.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_set_is_checked_and_cached_and_its_coefficients_are_fitted() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let plan = PLAN.replace("PREBUILT", root().join("kernels/prebuilt").to_str().expect("UTF-8"));
        std::fs::write(folder.path().join("plan.toml"), &plan).expect("written");
        let options =
            ["check", "--plan", "plan.toml", "--cache", "kept", "--fit", "--json", "-", "--html", "page.html"];
        let first = json(folder.path(), &options);
        let mut forms = schema::Answers::default();
        forms.add("latency-check", first.to_string().as_bytes());
        forms.check();
        let programs = first["programs"].as_array().expect("programs");
        let names: Vec<_> = programs.iter().map(|program| program["name"].as_str().expect("a name")).collect();
        assert_eq!(names, ["chase 10485760", "chase 12582912", "load"]);
        assert_eq!(first["all"]["methods"][0]["predictions"], 6);
        assert_eq!(first["test"]["methods"][0]["programs"], 1);
        assert!(first["coefficients"]["hidden"]["found"].as_f64().expect("a number") >= 0.0);
        let page = std::fs::read_to_string(folder.path().join("page.html")).expect("written");
        assert!(page.contains("Simulated and predicted at 1000 ns"), "plots");
        // Three programs: with normal memory, with memory of another node, and at two latencies.
        assert_eq!(std::fs::read_dir(folder.path().join("kept")).expect("kept").count(), 12);
        // Everything is cached: the same again, without a run.
        assert_eq!(json(folder.path(), &options), first);
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn the_linear_method_overestimates_triad_by_the_number_of_outstanding_reads() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let program = kernel("triad-mem-8x.elf");
        let check = |prefetch: &[&str], size: &str| {
            let fixed = ["check", "--no-cache", "--json", "-", "--region", "triad", "--latencies", "1000"];
            json(folder.path(), &[&fixed[..], prefetch, &["--", &program, size, "passes=1"]].concat())
        };
        // Without prefetches, reads overlap as much with slower memory. Their latency is counted from the L2 cache, that of
        // the methods from the load.
        let checked = check(&["--hwpf", "--disableL1 --disableL2"], "n=524288");
        let (said, took) = (predicted(&checked, "0")[0] - 1.0, simulated(&checked)[0] - 1.0);
        let count = |key: &str| checked["counts"][key].as_f64().expect(key);
        let counted_ns = count("outstanding") / count("misses") / 2.0;
        let reads = outstanding(&checked) * checked["base_ns"].as_f64().expect("a latency") / counted_ns;
        assert!(reads > 4.0 && (said / took / reads - 1.0).abs() < 0.15, "{said} for {took}, {reads} reads");
        // With prefetches, more reads are outstanding, and the overestimate is larger.
        let checked = check(&[], "n=524288");
        let (said, took) = (predicted(&checked, "0")[0] - 1.0, simulated(&checked)[0] - 1.0);
        let reads = outstanding(&checked);
        assert!(reads > 10.0 && said / took > reads, "{said} for {took}, {reads} reads");
        assert_eq!(checked["trust"]["method"], "6");
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn simulations_of_a_check_are_made_one_by_one() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let plan = PLAN.replace("PREBUILT", root().join("kernels/prebuilt").to_str().expect("UTF-8"));
        let plan = plan.replace("op=load n=100000", "op=loaf n=100000").replace(", \"12582912\"", "");
        std::fs::write(folder.path().join("plan.toml"), &plan).expect("written");
        let list =
            json(folder.path(), &["check", "--plan", "plan.toml", "--cache", "kept", "--dry-run", "--format", "json"]);
        let runs = list["runs"].as_array().expect("runs");
        let names: Vec<&str> = runs.iter().filter_map(|run| run["run"].as_str()).collect();
        let memories = ["", ", memory of node 6", ", memory of 300 ns", ", memory of 1000 ns"];
        let expected = ["chase 10485760", "load"].map(|name| memories.map(|memory| format!("{name}{memory}")));
        assert_eq!(names, expected.concat());
        let made = |place: usize| {
            let result = runs[place]["result"].as_str().expect("a name");
            let ran = output(
                folder.path(),
                &["latency", "check", "--plan", "plan.toml", "--cache", "kept", "--only", result],
            );
            (ran.status.code(), folder.path().join("kept").join(result).exists())
        };
        assert_eq!(made(2), (Some(0), true));
        assert_eq!(made(6), (Some(1), false), "the program fails");
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_pointer_chase_slows_down_as_the_linear_method_predicts() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let program = kernel("chase.elf");
        let options =
            ["check", "--no-cache", "--json", "-", "--region", "chase", "--", &program, "12582912", "4000", "warm"];
        let checked = json(folder.path(), &options);
        for (predicted, simulated) in predicted(&checked, "0").into_iter().zip(simulated(&checked)) {
            assert!((predicted / simulated - 1.0).abs() < 0.02, "{predicted}, not {simulated}");
        }
        assert_eq!(checked["kind"], "dependent");
        assert_eq!(checked["trust"]["method"], "0");
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_program_that_refuses_its_arguments_is_named_and_is_not_a_failure() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let dia = "[[program]]\nname = 'dia'\nrun = 'spmv.elf format=dia matrix=random n=2000 limit=1'\nrefuses = 3\n";
        let plan = PLAN.replace("PREBUILT", root().join("kernels/prebuilt").to_str().expect("UTF-8")) + dia;
        std::fs::write(folder.path().join("plan.toml"), &plan).expect("written");
        let ran = output(folder.path(), &["latency", "check", "--plan", "plan.toml", "--no-cache"]);
        let text = String::from_utf8_lossy(&ran.stdout);
        assert_eq!(ran.status.code(), Some(0), "{text}");
        assert!(text.contains("Refused") && text.contains("MiB"), "{text}");
        assert!(text.contains("chase 10485760") && !text.contains("Failed"), "{text}");
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_program_of_a_set_that_fails_is_named_and_the_others_are_checked() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let plan = PLAN.replace("PREBUILT", root().join("kernels/prebuilt").to_str().expect("UTF-8"));
        let plan = plan.replace("op=load n=100000", "op=loaf n=100000");
        std::fs::write(folder.path().join("plan.toml"), &plan).expect("written");
        let ran = output(folder.path(), &["latency", "check", "--plan", "plan.toml", "--no-cache"]);
        assert_eq!(ran.status.code(), Some(1));
        let (text, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(errors.contains("load: the program ended with status 2"), "{errors}");
        assert!(text.contains("chase 10485760") && text.contains("Failed"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}
