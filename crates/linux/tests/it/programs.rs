//! Whole programs, built with cross compilers, give the same output and exit status as under QEMU.

use crate::common;

use common::{
    FREESTANDING, HOSTED, Run, build, build_dynamic, here_and_under_qemu, platform, run_here, run_to_end, same_as_qemu,
    same_outcome,
};
use fxscope_aarch64::Engine as _;
use fxscope_linux::disasm::disassemble;
use fxscope_linux::{Code, End, Guest, Refused, Setup, Stdio, Step};

#[test]
fn the_initial_stack_is_as_linux_lays_it_out() {
    let run = Run { args: &["one", "two words"], env: &["LONG=value of the variable"], ..Run::default() };
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
    for vector_bytes in [16, 32, 64] {
        let run = Run { args: &["x", "last"], input: b"first\nsecond", vector_bytes, ..Run::default() };
        same_as_qemu("hosted.c", HOSTED, &run);
    }
}

#[test]
fn c_programs_use_files() {
    let program = build("files.c", HOSTED);
    let [here, qemu] = here_and_under_qemu(|run| {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().canonicalize().expect("path");
        run(&program, &Run { args: &[path.to_str().expect("UTF-8")], ..Run::default() })
    });
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
    let [here, qemu] = here_and_under_qemu(|under| under(&program, &run));
    assert_eq!(here.output, qemu.output);
    assert_eq!((here.status, qemu.status), (128 + 6, 128 + 6), "SIGABRT");
    assert!(here.error.contains("terminate called after throwing an instance of 'int'"), "{}", here.error);
}

#[test]
fn fortran_programs_compute_read_and_write() {
    for vector_bytes in [16, 32, 64] {
        same_as_qemu("fortran.f90", HOSTED, &Run { input: b"1.5\n-3e2\n", vector_bytes, ..Run::default() });
    }
}

#[test]
fn dynamic_programs_find_their_interpreter_and_libraries() {
    let dynamic = |source: &str, flags: &[&str], run: &Run| same_outcome(&build_dynamic(source, flags), run);
    dynamic("hosted.c", HOSTED, &Run { args: &["x", "last"], input: b"first\nsecond", ..Run::default() });
    dynamic("hosted.c", &["-O2", "-no-pie"], &Run::default());
    dynamic("hosted.c", &["-O2", "-Wl,-z,now"], &Run { vector_bytes: 16, ..Run::default() });
    dynamic("signals.c", HOSTED, &Run { args: &["segv"], ..Run::default() });
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

#[test]
fn programs_see_the_modelled_machine() {
    let outcome = run_here(&build("machine.c", FREESTANDING), &Run::default());
    let expected = "page 10000\n\
                    hwcap 415fff\n\
                    smallest signal stack 1270\n\
                    counter frequency 5f5e100\n\
                    zero block 100\n\
                    cache type 86668006\n\
                    main id 461f0010\n\
                    affinity bytes 8\n\
                    affinity fff000\n\
                    bind to CPU 3 ffffffffffffffea\n\
                    bind to CPU 20 0\n\
                    cpu 14\n\
                    node 4\n\
                    memory 40000000\n\
                    random 1\n\
                    Linux aarch64\n";
    assert_eq!(outcome.output, expected);
    assert_eq!(outcome.status, 0);
}

#[test]
fn time_is_simulated_and_sleeping_takes_no_host_time() {
    let outcome = run_here(&build("time.c", FREESTANDING), &Run::default());
    let expected = "slept at least an hour 1\n\
                    but not much more 1\n\
                    counter agrees 1\n\
                    up for hours, as the counter says 1\n\
                    absolute sleep 1\n\
                    waited for a futex 1\n\
                    hardly any of it on the CPU 1\n\
                    start of the year 2020 1\n";
    assert_eq!(outcome.output, expected);
    assert_eq!(outcome.status, 0);
}

#[test]
fn a_wait_that_cannot_end_is_a_deadlock() {
    let program = build("time.c", FREESTANDING);
    let (end, ..) = run_to_end(&program, &Run { args: &["deadlock"], ..Run::default() });
    let End::Deadlock { threads } = &end else { panic!("{end}") };
    let [thread] = threads.as_slice() else { panic!("{end}") };
    assert!(thread.function.as_deref().is_some_and(|f| f.starts_with("begin+0x")), "{end}");
    assert!(thread.waits_for.as_deref().is_some_and(|what| what.contains("futex")), "{end}");
    assert_eq!(end.status(), None);
}

#[test]
fn the_driver_sees_each_block_and_keeps_the_time() {
    let program = build("time.c", FREESTANDING);
    let setup = Setup::new(platform(64), "time").expect("setup");
    let mut setup = Setup { stdio: quiet(), ..setup };
    setup.args.push(b"once".to_vec());
    let mut process = Guest::open(&program, setup).expect("starts");
    let mut code: Code = Code::of(&process);
    let (mut executed, mut slept) = (0, 0);
    loop {
        match process.step(&mut code) {
            Step::Ran { block, executed: n } => {
                assert!(n <= code.block(block).infos.len());
                assert!((block.0 as usize) < code.engine().len());
                executed += n as u64;
            }
            Step::Sleep { until_ns } => {
                // Another step changes nothing until the time has come.
                assert_eq!(process.step(&mut code), Step::Sleep { until_ns });
                slept += 1;
                process.set_now_ns(until_ns);
            }
            Step::Ended => break,
            other => panic!("one thread, whose code does not change: {other:?}"),
        }
    }
    assert_eq!((slept, process.step(&mut code)), (3, Step::Ended));
    assert_eq!(executed, process.instructions());
    assert_eq!(process.end(), Some(&End::Exit { code: 0 }));
}

/// Standard streams without a reader.
fn quiet() -> Stdio {
    let null = || std::fs::File::options().read(true).write(true).open("/dev/null").expect("/dev/null").into();
    Stdio { input: null(), output: null(), error: null() }
}

#[test]
fn system_calls_that_do_not_exist_are_counted() {
    let setup = Setup { stdio: quiet(), ..Setup::new(platform(64), "calls").expect("setup") };
    let mut process = Guest::open(&build("calls.c", FREESTANDING), setup).expect("starts");
    let mut code: Code = Code::of(&process);
    assert_eq!(process.run_functional(&mut code, 1_000_000), Some(&End::Exit { code: 255 }));
    let calls: Vec<_> = process.unknown_calls().collect();
    assert_eq!(calls, [(425, "io_uring_setup", 1), (999, "(no such system call)", 1)]);
}

#[test]
fn an_undefined_instruction_is_reported_with_its_disassembly() {
    let program = build("faults.c", FREESTANDING);
    let (end, ..) = run_to_end(&program, &Run { args: &["illegal"], ..Run::default() });
    let End::Killed(killed) = &end else { panic!("{end}") };
    assert_eq!(killed.refused, Some(Refused { word: 0xcec0_8420, disassembly: disassemble(0xcec0_8420, killed.pc) }));
    let expected = "the processor has no such instruction, bytes 20 84 c0 ce (word cec08420), sm4e v0.4s, v1.4s";
    assert!(end.to_string().starts_with("ended by SIGILL at") && end.to_string().ends_with(expected), "{end}");
    assert_eq!(end.status(), Some(132));
}

/// They take seconds each.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn exceptions_and_fortran_work_across_shared_libraries() {
        for (source, input) in [("exceptions.cpp", &b"1.5 2.25"[..]), ("fortran.f90", b"1.5\n-3e2\n")] {
            let run = Run { input, ..Run::default() };
            let program = build_dynamic(source, HOSTED);
            let [here, qemu] = here_and_under_qemu(|under| under(&program, &run));
            // Standard error has addresses in it, which differ.
            assert_eq!((here.output, here.status), (qemu.output, qemu.status), "{source}");
        }
    }
}
