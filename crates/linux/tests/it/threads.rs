//! Programs with several threads give the same output and exit status as under QEMU.

use crate::common;

use common::{HOSTED, Run, build, run_here, run_to_end, same_as_qemu};
use fxscope_linux::End;

#[test]
fn posix_threads_synchronise() {
    same_as_qemu("threads.c", HOSTED, &Run::default());
}

#[test]
fn a_robust_lock_whose_owner_ends_passes_to_the_next_thread_with_a_warning() {
    // QEMU's user mode has no robust locks.
    let outcome = run_here(&build("threads.c", HOSTED), &Run { args: &["robust"], ..Run::default() });
    assert_eq!(outcome.output, "robust: Owner died, then Success\n".repeat(2));
    assert_eq!(outcome.status, 0);
}

#[test]
fn two_hundred_threads_run_and_one_ends_the_process() {
    same_as_qemu("many_threads.c", HOSTED, &Run::default());
}

#[test]
fn signals_reach_the_thread_they_are_for() {
    same_as_qemu("thread_signals.c", HOSTED, &Run::default());
}

#[test]
fn timers_interrupt_waiting_and_computing() {
    same_as_qemu("timers.c", HOSTED, &Run::default());
}

#[test]
fn cpp_threads_pass_results_and_exceptions() {
    same_as_qemu("threads.cpp", HOSTED, &Run::default());
}

#[test]
fn openmp_programs_share_loops_and_tasks() {
    for threads in ["OMP_NUM_THREADS=4", "OMP_NUM_THREADS=7"] {
        same_as_qemu("openmp.c", &["-O2", "-fopenmp"], &Run { env: &[threads], ..Run::default() });
    }
}

#[test]
fn runs_with_threads_repeat_exactly() {
    let program = build("threads.c", HOSTED);
    assert_eq!(run_here(&program, &Run::default()), run_here(&program, &Run::default()));
}

#[test]
fn a_deadlock_report_names_what_every_thread_waits_for() {
    let program = build("many_threads.c", HOSTED);
    let (end, ..) = run_to_end(&program, &Run { args: &["deadlock"], ..Run::default() });
    let End::Deadlock { threads } = &end else { panic!("{end}") };
    let numbers: Vec<_> = threads.iter().map(|t| (t.pid, t.tid)).collect();
    assert_eq!(numbers, [(1000, 1000), (1000, 1001)]);
    for thread in threads {
        assert!(thread.waits_for.as_deref().is_some_and(|what| what.contains("futex at 0x")), "{end}");
        assert!(thread.function.as_deref().is_some_and(|f| f.contains("lock")), "{end}");
    }
    assert_ne!(threads[0].waits_for, threads[1].waits_for);
    assert_eq!(end.status(), None);
}
