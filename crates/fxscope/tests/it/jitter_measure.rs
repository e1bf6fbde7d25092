//! `fxscope jitter measure`, `show`, `import`, `fit` and `simulate`: from a host's noise to a large machine.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn jitter(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fxscope")).arg("jitter").args(arguments).output().expect("fxscope starts")
}

fn shown(arguments: &[&str]) -> String {
    let output = jitter(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.lines().all(|line| line.chars().count() <= 100 && !line.ends_with('~')), "{text}");
    text
}

fn json(arguments: &[&str]) -> Value {
    let output = jitter(&[arguments, &["--format", "json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn refused(arguments: &[&str]) -> String {
    let output = jitter(arguments);
    assert!(!output.status.success() && output.stdout.is_empty(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stderr).expect("text")
}

/// Returns a path in a folder, as text.
fn path(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

/// Writes a file with this text.
fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    std::fs::write(folder.path().join(name), text).expect("written");
    path(folder, name)
}

/// Two cores, 1 s: a detour of 50 us every 10 ms on each, as netgauge's selfish benchmark prints them.
fn ticks(folder: &tempfile::TempDir) -> String {
    let rank = |rank: u32| {
        let begin = 3_000_000.0 + f64::from(rank) * 1_000_000.0;
        let line = |i: u32| format!("{:.2}\t50000.00\n", begin + f64::from(i) * 1e7);
        let lines: String = (0..98).map(line).collect();
        let head = "# Selfish Benchmark\n# Minimal cycle length [ns]: 25.5 \n";
        file(folder, &format!("ng.{rank}"), &format!("{head}{lines}# Measurement period: 1.00 s\n"))
    };
    let trace = path(folder, "ticks.fxn");
    let text = shown(&["import", "netgauge", &rank(0), &rank(1), "-o", &trace]);
    assert!(text.contains("noise takes 0.49 % of 2 cores over 1 s"), "{text}");
    trace
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_measured_trace_goes_from_this_host_to_a_large_machine() {
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, model) = (path(&folder, "here.fxn"), path(&folder, "here.toml"));
    // The loop that only reads the clock finds the shortest detours: every host has some.
    let measured = shown(&["measure", "--loop", "spin", "--duration", "500ms", "-o", &trace]);
    assert!(measured.contains("here.fxn: noise takes") && measured.contains("a read takes"), "{measured}");
    assert_eq!(measured, shown(&["show", &trace]), "what was measured is shown again");
    let seen = json(&["show", &trace]);
    let noise = seen["tables"][0]["rows"].as_array().expect("cores").iter().map(|core| number(&core["noise"]));
    assert!(noise.clone().all(|share| (0.0..1.0).contains(&share)), "{seen}");
    let fitted = shown(&["fit", &trace, "-o", &model]);
    assert!(fitted.contains("of the cores' time is noise in the trace"), "{fitted}");
    for noise in [&model, &trace] {
        let sizes = ["--nodes", "1,4", "--cores-per-node", "2", "--phases", "20", "--grain", "100us"];
        let arguments = [&["simulate", "--model", noise], &sizes[..]].concat();
        let found = json(&arguments);
        assert_eq!(found, json(&arguments), "it is the same each time");
        for row in found["tables"][0]["rows"].as_array().expect("sizes") {
            assert!((0.0..=1.0).contains(&number(&row["efficiency"])), "{row}");
        }
    }
}

#[test]
fn page_csv_and_json_have_everything_that_the_terminal_shows() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = ticks(&folder);
    let seen = json(&["show", &trace]);
    let cores = seen["tables"][0]["rows"].as_array().expect("cores");
    for core in cores {
        assert!((number(&core["noise"]) - 98.0 * 50e3 / 1e9).abs() < 1e-9, "{core}");
        assert!((number(&core["detours/s"]) - 98.0).abs() < 1e-9 && number(&core["mean"]) == 50e3, "{core}");
    }
    let periods = &seen["tables"].as_array().expect("tables").iter().find(|table| table["title"] == "Periodic detours");
    let period = number(&periods.expect("it is periodic")["rows"][0]["every"]);
    assert!((period / 1e7 - 1.0).abs() < 0.01, "{period}");
    let csv = String::from_utf8(jitter(&["show", &trace, "--format", "csv"]).stdout).expect("text");
    assert!(csv.contains("By core,0,noise,0.0049\n") && csv.contains("Noise over time,"), "{csv}");
    let page = path(&folder, "page.html");
    shown(&["show", &trace, "--format", "html", "-o", &page]);
    let page = std::fs::read_to_string(page).expect("written");
    for title in ["Noise over time", "Spectrum", "By core", "By cause"] {
        assert!(page.contains(title), "{title}");
    }
    assert!(page.contains("data-chart=") && page.contains("id=\"library\""), "it has the library that draws its plots");
    assert!(!page.contains("src=\"") && !page.contains("href=\"http"), "it needs nothing else");
}

#[test]
fn a_fitted_model_says_what_was_measured_and_how_well_it_fits() {
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, model) = (ticks(&folder), path(&folder, "ticks.toml"));
    let text = shown(&["fit", &trace, "-o", &model]);
    assert!(text.contains("every 10 ms") && text.contains("gaps off"), "{text}");
    let seen = shown(&["show", &model]);
    assert!(seen.contains("every 10 ms") && seen.contains("measured"), "{seen}");
}

#[test]
fn a_replayed_trace_costs_one_node_the_measured_share_and_many_nodes_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = ticks(&folder);
    let sizes = ["--nodes", "1,1024", "--cores-per-node", "1", "--phases", "2000", "--grain", "1ms"];
    let found = json(&[&["simulate", "--model", &trace], &sizes[..]].concat());
    let rows = found["tables"][0]["rows"].as_array().expect("sizes");
    // Phases of 1 ms: a tick of 50 us every 10 ms adds 0.5 % on one core, and 5 % if any of 1024 cores has one in each
    // phase.
    let slowdown: Vec<f64> = rows.iter().map(|row| number(&row["slowdown"])).collect();
    assert!((slowdown[0] - 1.005).abs() < 0.0005 && (slowdown[1] - 1.05).abs() < 0.0005, "{slowdown:?}");
    let text = shown(&["compare", "--model", &trace, "--nodes", "64", "--cores-per-node", "4", "--phases", "100"]);
    assert!(text.contains("all noise is bound to its core"), "{text}");
}

#[test]
fn impossible_measurements_are_refused_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = path(&folder, "t.fxn");
    let nowhere = path(&folder, "nowhere/t.fxn");
    for (arguments, why) in [
        (&["--cores", "60000"][..], "there is no core 60000 on this host; cores 0"),
        (&["--cores", "two"], "is not a list of cores; write it as 0-3,8"),
        (&["--duration", "1us"], "give at least 10 ms"),
        (&["--duration", "100ms", "--quantum", "10ns"], "a quantum of 10 ns is not possible"),
        (&["--rt", "0"], "0"),
    ] {
        let message = refused(&[&["measure", "-o", &trace], arguments].concat());
        assert!(message.contains(why), "{arguments:?}: {message}");
        assert!(!Path::new(&trace).exists(), "{arguments:?}: nothing is written");
    }
    assert!(refused(&["measure", "-o", &nowhere]).contains("cannot be written"));
}

#[test]
fn an_existing_trace_is_kept_if_nothing_is_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = ticks(&folder);
    let before = std::fs::read(&trace).expect("a trace");
    refused(&["measure", "--duration", "100ms", "--quantum", "10ns", "-o", &trace]);
    assert_eq!(std::fs::read(&trace).expect("still there"), before);
}

#[test]
fn truncated_and_damaged_traces_are_shown_as_far_as_possible() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = std::fs::read(ticks(&folder)).expect("a trace");
    let cut = path(&folder, "cut.fxn");
    // Without its last block, the summary.
    std::fs::write(&cut, &whole[..whole.len() - 5]).expect("written");
    let text = shown(&["show", &cut]);
    assert!(text.contains("The trace has no end: the measurement was cut off."), "{text}");
    let text = shown(&["fit", &cut, "-o", &path(&folder, "cut.toml")]);
    assert!(text.contains("cut off: fitted to the detours before"), "{text}");
    std::fs::write(&cut, b"").expect("written");
    for command in [&["show", &cut][..], &["simulate", "--model", &cut]] {
        let message = refused(command);
        assert!(message.contains("cut.fxn: is empty: the measurement wrote nothing"), "{message}");
    }
    for (bytes, why) in [
        (&b""[..], "is empty"),
        (&whole[..7], "ends in its header"),
        (&whole[..20], "ends in its header"),
        (b"core,start,length\n", "is not a trace of fxscope jitter measure"),
        (b"fxnoise\x63aaaaaaaa", "format 99"),
    ] {
        std::fs::write(&cut, bytes).expect("written");
        let message = refused(&["fit", &cut, "-o", "-"]);
        assert!(message.contains(why), "{why}: {message}");
    }
}

#[test]
fn invalid_files_of_other_programs_are_reported_with_their_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = path(&folder, "t.fxn");
    let fwq = file(&folder, "fwq_3_times.dat", "1000\n1000\nabc\n");
    let message = refused(&["import", "fwq", &fwq, "-o", &trace]);
    assert!(message.contains("fwq_3_times.dat, line 3: 'abc' is not a time in ticks"), "{message}");
    let message = refused(&["import", "rtla-top", &fwq, "-o", &trace]);
    assert!(message.contains("has no table of rtla osnoise top"), "{message}");
    assert!(refused(&["import", "ftq", "/nowhere", "-o", &trace]).contains("/nowhere: cannot be read"));
    assert!(!Path::new(&trace).exists());
}
