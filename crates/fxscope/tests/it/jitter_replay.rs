//! `fxscope jitter program` and `jitter simulate --program`: a recorded run of two ranks on many nodes.

use std::path::Path;

use crate::common;

use common::timed::run;
use common::{compile, json, output};
use serde_json::Value;

const TWO: &str = "fxscope program,1\nthreads,12\nrank,compute_ns,call,bytes,partner,copy_ns\n\
    0,400000,send,64,1,500\n0,0,allreduce,8,,1000\n1,300000,recv,,0,900\n1,100000,allreduce,8,,1000\n";

fn shown(folder: &Path, arguments: &[&str]) -> String {
    let output = output(folder, &[&["jitter"], arguments].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = output(folder, &[&["jitter"], arguments].concat());
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).expect("text")
}

fn simulated(folder: &Path, file: &str, arguments: &[&str]) -> Value {
    let fixed = ["simulate", "--program", file, "--format", "json"];
    json(shown(folder, &[&fixed, arguments].concat()).as_bytes())
}

#[test]
fn a_program_in_text_is_simulated_and_fits_the_terminal() {
    let folder = tempfile::tempdir().expect("temporary folder");
    std::fs::write(folder.path().join("app.csv"), TWO).expect("written");
    let options =
        ["simulate", "--program", "app.csv", "--model", "linux-250hz", "--nodes", "1,64,512", "--repeat", "30"];
    let text = shown(folder.path(), &options);
    assert!(
        text.starts_with("app.csv: 2 ranks of 12 threads, 1 exchange, 1 collective, 501.9 us on one node"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert_eq!(text, shown(folder.path(), &options));
    assert_eq!(shown(folder.path(), &["program", "app.csv"]).lines().count(), 9, "with the ends");
    let html = shown(folder.path(), &[&options[..], &["--format", "html"]].concat());
    assert!(html.contains("runs that end within a time") || html.contains("Runs that end within a time"));
}

#[test]
fn bad_programs_and_options_are_refused_with_the_place_and_what_to_do() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let folder = folder.path();
    std::fs::write(folder.join("app.csv"), TWO.replace("1,300000,recv,,0", "1,300000,recv,,5")).expect("written");
    let options = ["simulate", "--model", "silent", "--program"];
    let with = |more: &[&str]| refused(folder, &[&options[..], more].concat());
    assert!(with(&["app.csv"]).contains("app.csv: line 6: there is no rank 5; ranks are 0 to 1"));
    assert!(with(&["none.csv"]).contains("none.csv"));
    assert!(with(&["app.csv", "--run", "1"]).contains("leave out --run"));
    assert!(with(&["app.csv", "--grain", "1ms"]).contains("cannot be used with"));
    assert!(refused(folder, &["simulate", "--model", "silent", "--repeat", "3"]).contains("--program"));
    let program = compile(folder, "plain", &["-O2", "-static"], "int main(void) { return 0; }");
    run(folder, "-o plain.fxr", &program, "");
    assert!(with(&["plain.fxr"]).contains("plain.fxr: the run has no recorded calls of MPI"));
}

/// They take seconds each.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_recorded_run_is_replayed_from_the_record_and_from_its_text_alike() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let folder = folder.path();
        let program = compile(folder, "ranks", &["-O2", "-static"], include_str!("../programs/ranks.c"));
        let recorded = run(folder, "-o r.fxr", &program, "").json;
        shown(folder, &["program", "r.fxr", "-o", "app.csv"]);
        let text = std::fs::read_to_string(folder.join("app.csv")).expect("written");
        let count = |call: &str| text.lines().filter(|line| line.split(',').nth(2) == Some(call)).count();
        assert_eq!((count("recv"), count("send") + count("ssend"), count("end")), (13, 13, 2), "{text}");

        let options = ["--model", "silent", "--nodes", "1,64", "--repeat", "2"];
        let [from_record, from_text] =
            ["r.fxr", "app.csv"].map(|file| simulated(folder, file, &options)["tables"].clone());
        assert_eq!(from_record, from_text);
        let seconds = recorded["mpi"]["ranks"][0]["seconds"].as_f64().expect("a time");
        let run = from_record[0]["rows"][0]["run"].as_f64().expect("a time") / 1e9;
        assert!((run / seconds - 1.0).abs() < 0.02, "{run} s replayed, {seconds} s recorded");
        assert_eq!(from_record[0]["rows"][0]["slowdown"], 1.0);
    }
}
