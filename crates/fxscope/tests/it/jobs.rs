//! `fxscope run --jobs`: the same record whatever the number, near that of a run in one piece, and what does not go with it.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common;

use common::{compile, failure, json, kernel, output};

const INCLUDE: &str = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../include");

/// Runs a program with options. Returns its JSON without what it says of the host, and its output.
fn ran(folder: &Path, options: &str, program: &[&str]) -> (Value, String) {
    let words: Vec<&str> = ["run", "-q", "--json", "run.json"].into_iter().chain(options.split_whitespace()).collect();
    let run = output(folder, &[&words[..], &["--"], program].concat());
    assert!(run.status.success(), "{options}: {}", String::from_utf8_lossy(&run.stderr));
    let mut counts = json(&fs::read(folder.join("run.json")).expect("JSON"));
    counts.as_object_mut().expect("an object").remove("host");
    (counts, String::from_utf8_lossy(&run.stdout).into_owned())
}

fn cycles(run: &Value) -> f64 {
    run["simulated"]["cycles"].as_f64().expect("cycles")
}

#[test]
fn options_that_do_not_go_with_jobs_are_refused_with_what_to_do() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("chase.elf");
    for (options, said) in [
        ("--mode functional", "use timing mode, or leave --jobs out"),
        ("--sample", "leave --sample or --jobs out"),
        ("--from instructions=5", "leave --from, --until and --region out, or --jobs"),
        ("--region work", "leave --from, --until and --region out, or --jobs"),
        ("--interval 1ms", "leave --interval or --jobs out"),
        ("--stacks 1ms", "leave --stacks or --jobs out"),
        ("--data", "leave --data or --jobs out"),
        ("--host-threads 2", "leave --host-threads or --jobs out"),
        ("--clock host", "leave --clock host or --jobs out"),
        ("--ranks 2", "leave --ranks out"),
        ("--konata trace", "leave --jobs or the other option out"),
        ("--checkpoint kept", "leave --jobs or the other option out"),
        ("--memory-tier cxl:250ns,32GB/s --tiering", "leave --jobs out"),
        ("--place malloc@main=5", "leave malloc@CALL=NODE out"),
    ] {
        let words: Vec<&str> = ["run", "--jobs", "2"].into_iter().chain(options.split(' ')).collect();
        let (status, message) = failure(folder.path(), &[&words[..], &["--", &program]].concat());
        assert!(message.contains(said) && status == 125, "{options}: {status}, {message}");
    }
    let (_, message) = failure(folder.path(), &["run", "--jobs", "0", "--", &program]);
    assert!(message.contains("1..=1024"), "{message}");
}

#[test]
fn a_program_that_starts_a_thread_ends_the_run_with_what_to_do_and_without_a_record() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("lock.elf");
    let words = ["run", "--jobs", "2", "-o", "run.fxr", "--json", "run.json", "--", &program, "threads=2"];
    let (status, message) = failure(folder.path(), &words);
    assert_eq!(status, 125, "{message}");
    assert!(message.contains("--jobs: the program has started a thread or a process"), "{message}");
    assert!(message.contains("leave --jobs out"), "{message}");
    assert!(!folder.path().join("run.fxr").exists() && !folder.path().join("run.json").exists());
}

#[test]
fn libraries_that_are_loaded_by_name_are_timed_as_in_one_piece() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let add = "double add(double *a, int n) { double s = 0; for (int i = 0; i < n; i++) s += a[i]; return s; }";
    compile(folder.path(), "libadd.so", &["-O2", "-shared", "-fPIC"], add);
    let source = r#"
        #include <dlfcn.h>
        #include <stdio.h>
        #include <fxscope.h>
        static double numbers[2000];
        int main(void) {
            double sum = 0;
            for (int i = 0; i < 2000; i++) numbers[i] = i;
            for (int round = 0; round < 3; round++) {
                void *library = dlopen("./libadd.so", RTLD_NOW);
                double (*add)(double *, int) = (double (*)(double *, int))dlsym(library, "add");
                FXSCOPE_BEGIN("add");
                sum += add(numbers, 2000);
                FXSCOPE_END("add");
                dlclose(library);
            }
            printf("sum %.0f\n", sum);
        }"#;
    let program = compile(folder.path(), "loads", &["-O2", INCLUDE, "-ldl"], source);
    let (whole, printed) = ran(folder.path(), "", &[&program]);
    for jobs in ["--jobs 1", "--jobs 3"] {
        let (parts, same) = ran(folder.path(), jobs, &[&program]);
        assert_eq!((parts["regions"].clone(), &same), (whole["regions"].clone(), &printed), "{jobs}");
        assert!(parts["notes"].to_string().contains("Timed in intervals of 10 million instructions"), "{jobs}");
    }
    assert!(printed.contains("sum 5997000") && whole["regions"][1]["calls"] == 3, "{printed}{}", whole["regions"][1]);
}

/// Programs of several intervals: they take many seconds.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn records_do_not_depend_on_the_number_of_jobs_and_are_near_those_of_runs_in_one_piece() {
        let folder = tempfile::tempdir().expect("temporary folder");
        for (program, arguments) in [
            ("spmv.elf", ["n=40000", "reps=20"]),
            ("sort.elf", ["n=60000", "passes=2"]),
            ("nbody.elf", ["n=1024", "passes=16"]),
        ] {
            let program = kernel(program);
            let command = [program.as_str(), arguments[0], arguments[1]];
            let reports = ["--jobs 1 -o one.fxr", "--jobs 2 -o two.fxr", "--jobs 3 -o three.fxr"].map(|options| {
                let (counts, _) = ran(folder.path(), options, &command);
                let record = options.split(' ').next_back().expect("a file");
                let shown = output(folder.path(), &["report", record, "--format", "csv"]);
                assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
                (counts, String::from_utf8_lossy(&shown.stdout).replace(record, "FILE"))
            });
            assert!(reports[0] == reports[1] && reports[0] == reports[2], "{program}");
            let (whole, _) = ran(folder.path(), "", &command);
            let instructions = whole["simulated"]["instructions"].as_u64().expect("a count");
            assert_eq!(reports[0].0["simulated"]["instructions"], instructions);
            assert!(instructions > 20_000_000, "{program}: {instructions} are too few");
            let error = cycles(&reports[0].0) / cycles(&whole) - 1.0;
            assert!(error.abs() < 0.001, "{program}: {error}");
        }
    }
}
