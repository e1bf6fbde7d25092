//! Processes stop and continue, and their parents learn of it, as under Linux.

use crate::common;

use common::{HOSTED, Run, build, run_here, run_to_end, same_as_qemu};
use fxscope_linux::End;

#[test]
fn processes_stop_and_continue_and_their_parents_learn_of_it() {
    same_as_qemu("stop.c", HOSTED, &Run::default());
}

#[test]
fn parents_that_do_not_want_to_know_of_stops_are_not_told_and_subreapers_adopt_children() {
    let outcome = run_here(&build("stop.c", HOSTED), &Run { args: &["more"], ..Run::default() });
    // wait(2), sigaction(2), PR_SET_CHILD_SUBREAPER(2const), PR_SET_PDEATHSIG(2const).
    let expected = "\
        waitpid(child, &status, WUNTRACED) == child: 1 \nnotes: 0 \nwaitpid(child, &status, 0) == child: 1 \n\
        notes: 1 \nlast_code == CLD_EXITED && last_status == 7: 1 \nprctl(PR_SET_CHILD_SUBREAPER, 1): 0 \n\
        waitpid(child, &status, 0) == child: 1 \nwaitpid(-1, &status, 0) > 0: 1 \nshown(status): 1010 \n\
        waitpid(-1, &status, 0): -1 ECHILD\n";
    assert_eq!((outcome.output.as_str(), outcome.error.as_str(), outcome.status), (expected, "", 0));
}

#[test]
fn a_program_that_nobody_can_continue_is_a_deadlock() {
    let (end, ..) = run_to_end(&build("stop.c", HOSTED), &Run { args: &["alone"], ..Run::default() });
    let End::Deadlock { threads } = &end else { panic!("{end}") };
    assert_eq!((threads.len(), threads[0].waits_for.as_deref()), (1, Some("SIGCONT")));
}
