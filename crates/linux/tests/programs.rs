//! Whole programs, built by the cross compilers, give the same output and exit status as under QEMU.

mod common;

use common::{FREESTANDING, HOSTED, Run, build, run_here, run_qemu, run_to_end};
use fxscope_linux::End;

/// Runs a program here and under QEMU and compares everything.
fn same_as_qemu(source: &str, flags: &[&str], run: &Run) {
    let program = build(source, flags);
    let (here, qemu) = (run_here(&program, run), run_qemu(&program, run));
    assert_eq!(here.output, qemu.output, "{source}: standard output");
    // QEMU adds a line of its own when a signal ends the program.
    let error: String = qemu.error.lines().filter(|l| !l.starts_with("qemu: ")).map(|l| format!("{l}\n")).collect();
    assert_eq!(here.error, error, "{source}: standard error");
    assert_eq!(here.status, qemu.status, "{source}: exit status");
}

#[test]
fn the_initial_stack_is_as_linux_lays_it_out() {
    let run = Run { args: &["one", "two words"], env: &["A=1", "LONG=value of the variable"], ..Run::default() };
    same_as_qemu("start.c", FREESTANDING, &run);
}

#[test]
fn static_position_independent_programs_run() {
    let flags: Vec<&str> = FREESTANDING.iter().chain(&["-static-pie", "-fPIE"]).copied().collect();
    let outcome = run_here(&build("start.c", &flags), &Run::default());
    assert!(outcome.output.starts_with("argc 1\n"), "{}", outcome.output);
    assert_eq!(outcome.status, 7);
}

#[test]
fn faults_reach_handlers_with_code_address_and_registers() {
    same_as_qemu("faults.c", FREESTANDING, &Run::default());
}

#[test]
fn system_calls_return_what_linux_returns() {
    same_as_qemu("calls.c", FREESTANDING, &Run { input: b"input", ..Run::default() });
}

#[test]
fn c_programs_use_the_library() {
    let run = Run { args: &["x", "last"], input: b"first\nsecond", ..Run::default() };
    same_as_qemu("hosted.c", HOSTED, &run);
}

#[test]
fn c_programs_use_files() {
    let program = build("files.c", HOSTED);
    let outcomes = [run_here, run_qemu].map(|run| {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().canonicalize().expect("path");
        run(&program, &Run { args: &[path.to_str().expect("UTF-8")], ..Run::default() })
    });
    let [here, qemu] = &outcomes;
    assert_eq!(here.output, qemu.output);
    assert_eq!((here.status, qemu.status), (128 + 13, 128 + 13), "SIGPIPE");
}

#[test]
fn signals_behave_as_under_linux() {
    for how in ["abort", "segv", "term", "quick exit", "none"] {
        same_as_qemu("signals.c", HOSTED, &Run { args: &[how], ..Run::default() });
    }
}

#[test]
fn vector_code_runs_at_every_length() {
    for vector_bytes in [16, 32, 64] {
        same_as_qemu("sve.c", &["-O3", "-ffast-math"], &Run { vector_bytes, ..Run::default() });
    }
}

#[test]
fn cpp_programs_throw_and_stream() {
    let run = Run { input: b"1.5 2.25", ..Run::default() };
    let program = build("exceptions.cpp", HOSTED);
    let (here, qemu) = (run_here(&program, &run), run_qemu(&program, &run));
    assert_eq!(here.output, qemu.output);
    assert_eq!((here.status, qemu.status), (128 + 6, 128 + 6), "SIGABRT");
    assert!(here.error.contains("terminate called after throwing an instance of 'int'"), "{}", here.error);
}

#[test]
fn fortran_programs_compute_read_and_write() {
    same_as_qemu("fortran.f90", HOSTED, &Run { input: b"1.5\n-3e2\n", ..Run::default() });
}

#[test]
fn the_same_run_twice_is_the_same() {
    let program = build("hosted.c", HOSTED);
    assert_eq!(run_here(&program, &Run::default()), run_here(&program, &Run::default()));
}

#[test]
fn a_fault_is_reported_with_function_and_address() {
    let program = build("faults.c", FREESTANDING);
    let (end, ..) = run_to_end(&program, &Run::default());
    let End::Killed(killed) = &end else { panic!("{end}") };
    assert_eq!((killed.signal, killed.address), (11, Some(8)));
    assert!(killed.function.as_deref().is_some_and(|f| f.starts_with("begin+0x")), "{end}");
    assert!(end.to_string().contains("SIGSEGV"), "{end}");
    assert_eq!(end.status(), Some(139));
}
