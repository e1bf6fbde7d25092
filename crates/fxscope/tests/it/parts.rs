//! `fxscope run --from`, `--until` and `--region`: a part of a program is timed.

use crate::common;

use std::path::Path;

use common::{compile, failure, json, kernel, output};
use serde_json::Value;

const INCLUDE: &str = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../include");

/// A program of steps, each of which is a region.
fn steps(folder: &Path) -> String {
    let source = include_str!("../../../linux/tests/programs/parts.c");
    compile(folder, "steps", &["-O2", "-mcpu=a64fx", "-static", "-pthread", INCLUDE], source)
}

fn run(folder: &Path, options: &str, program: &[&str]) -> Value {
    let mut words = vec!["run", "-q", "--json", "run.json"];
    words.extend(options.split_whitespace());
    words.push("--");
    words.extend(program);
    let output = output(folder, &words);
    assert!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
    json(&std::fs::read(folder.join("run.json")).expect("written"))
}

#[test]
fn options_that_make_no_part_are_refused_with_what_to_do() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("chase.elf");
    for (options, said) in [
        ("run --mode functional --from instructions=5", "functional mode times nothing"),
        ("run --from instructions=+5", "leave the + out"),
        ("run --from instructions=5 --until instructions=3", "give a later end"),
        ("run --from function=main#3 --until function=main#2", "give a later end"),
        ("run --from function=main --warm 5M", "give all or none"),
        ("run --from time=1ms --clock host", "leave --clock host out"),
        ("run --region work --interval 1ms", "leave --interval out"),
        ("run --region work --from function=main", "leave one or the other out"),
        ("run --warm all", "say from where on with --from"),
        ("run --stop", "--until"),
        ("run --from line=3", "write it as instructions=5G"),
        ("run --from function=main#0", "counts from 1"),
        ("run --until time=5", "write it as 100us"),
        ("run --from instructions=5 --sample --interval 1ms", "leave --interval or --sample out"),
    ] {
        let mut words: Vec<&str> = options.split(' ').collect();
        words.extend(["--", &program]);
        let (_, message) = failure(folder.path(), &words);
        assert!(message.contains(said), "{options}: {message}");
    }
}

#[test]
fn a_part_that_never_begins_is_reported_and_the_status_is_the_program_s() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = compile(folder.path(), "seven", &["-static"], "int main(void) { return 7; }");
    let run = output(
        folder.path(),
        &["run", "--json", "run.json", "-o", "run.fxr", "--from", "function=none", "--", &program],
    );
    assert_eq!(run.status.code(), Some(7));
    let message = String::from_utf8_lossy(&run.stderr);
    assert!(message.contains("--from function=none: the part never began, and nothing was timed"), "{message}");
    let written = json(&std::fs::read(folder.path().join("run.json")).expect("written"));
    assert_eq!((&written["part"]["executions"], &written["part"]["timed_instructions"]), (&0.into(), &0.into()));
    let report = output(folder.path(), &["report", "run.fxr"]);
    assert!(report.status.success() && String::from_utf8_lossy(&report.stdout).contains("nothing was timed"));
}

#[test]
fn reports_in_every_form_name_the_part_and_two_parts_can_be_compared() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = steps(folder.path());
    for part in ["--region work", "--from region=work#2 --until region=work#+2"] {
        run(folder.path(), &format!("{part} -o run.fxr"), &[&program, "alone", "1", "4"]);
    }
    let text = |words: &[&str]| {
        let output = output(folder.path(), words);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let shown = text(&["report", "run.fxr"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("--region work: ") && shown.contains("in 4 executions were timed"), "{shown}");
    assert!(
        shown.contains("--from region=work#2 --until region=work#+2: ") && shown.contains("those of the part."),
        "{shown}"
    );
    run(folder.path(), "-o one.fxr --region work", &[&program, "alone", "1", "4"]);
    let shown = text(&["report", "one.fxr"]);
    assert!(shown.contains("steps on a64fx, --region work: exit status 0"), "{shown}");
    for format in ["html", "json"] {
        let shown = text(&["report", "run.fxr", "--format", format]);
        assert!(shown.contains("--until region=work#+2"), "{format}: {shown}");
    }
    let compared = text(&["compare", "run.fxr"]);
    assert!(compared.contains("different parts: --region work") && compared.contains("run#2"), "{compared}");
}

#[test]
fn a_trace_and_intervals_are_of_the_part() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = steps(folder.path());
    let part = "--from function=step#2 --until function=step";
    let run =
        run(folder.path(), &format!("{part} --konata trace --konata-instructions 60 --interval 5us"), &[&program]);
    let trace = std::fs::read_to_string(folder.path().join("trace")).expect("written");
    assert!(trace.contains("step") && !trace.contains("prepare"), "{trace}");
    let instructions: Vec<u64> = run["intervals"][0]["events"]["INST_RETIRED"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|count| count.as_u64().expect("a count"))
        .collect();
    assert_eq!(instructions.iter().sum::<u64>(), run["part"]["timed_instructions"].as_u64().expect("a count"));
    assert!(instructions.len() > 1 && instructions[0] > 0, "{instructions:?}");
}

#[test]
fn laboratories_look_at_the_part() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = steps(folder.path());
    let words =
        ["pages", "advise", "--quiet", "--simulate", "1", "--json", "advice.json", "--region", "work", "--", &program];
    let advised = output(folder.path(), &words);
    assert!(advised.status.success(), "{}", String::from_utf8_lossy(&advised.stderr));
    let advice = json(&std::fs::read(folder.path().join("advice.json")).expect("written"));
    let predicted = advice["now"]["predicted"]["walks"].as_u64().expect("a count");
    let words = ["latency", "predict", "--from", "region=work", "--until", "region=work", "--", &program];
    let predictions = output(folder.path(), &words);
    let error = String::from_utf8_lossy(&predictions.stderr);
    assert!(predictions.status.success() && predicted < 100, "{predicted} {error}");
}
