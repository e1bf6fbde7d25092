//! Descriptors of timers, signals and processes, transfers between pipes, and locks behave as under Linux.

use crate::common;

use common::{HOSTED, Run, build, here_and_under_qemu, run_here};

/// Compares what the program prints here and under QEMU, which leaves the calls to the host.
fn same_as_under_qemu(what: &str) {
    let program = build("descriptors.c", HOSTED);
    let [here, qemu] = here_and_under_qemu(|run| {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().canonicalize().expect("path");
        let outcome = run(&program, &Run { args: &[what, path.to_str().expect("UTF-8")], ..Run::default() });
        (outcome.output, outcome.error, outcome.status)
    });
    for (ours, theirs) in here.0.lines().zip(qemu.0.lines()) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(here, qemu);
    assert_eq!((here.1.as_str(), here.2), ("", 0));
}

#[test]
fn timers_with_descriptors_expire_in_simulated_time_and_can_be_polled() {
    same_as_under_qemu("timers");
}

#[test]
fn signals_are_read_from_descriptors_by_the_process_for_which_they_are_pending() {
    same_as_under_qemu("signals");
}

#[test]
fn process_descriptors_send_signals_become_readable_at_the_end_and_share_files() {
    same_as_under_qemu("processes");
}

#[test]
fn clone_returns_a_descriptor_of_the_child_through_which_its_files_can_be_copied() {
    let outcome = run_here(&build("descriptors.c", HOSTED), &Run { args: &["clone"], ..Run::default() });
    let expected = "\
        number(counter): 42 \nfcntl(counter, F_GETFD): 1 \nsyscall(SYS_pidfd_getfd, own, 101, 0): -1 EBADF\n\
        syscall(SYS_pidfd_send_signal, own, SIGKILL, 0, 0): 0 \npolled(own, POLLIN, -1): 1 \n\
        waitid(P_PIDFD, own, &info, WEXITED): 0 \n\
        info.si_code == CLD_KILLED && info.si_status == SIGKILL: 1 \n";
    assert_eq!((outcome.output.as_str(), outcome.error.as_str(), outcome.status), (expected, "", 0));
}

#[test]
fn pipes_exchange_bytes_with_pipes_files_and_sockets() {
    same_as_under_qemu("transfers");
}

#[test]
fn record_locks_exclude_other_processes_and_end_with_descriptors() {
    same_as_under_qemu("locks");
}

#[test]
fn changes_of_files_are_reported() {
    same_as_under_qemu("changes");
}

#[test]
fn direct_transfers_work_with_aligned_memory() {
    same_as_under_qemu("direct");
}

#[test]
fn epoll_instances_in_one_another_report_what_is_ready_and_no_more_than_linux_allows() {
    let [here, qemu] = here_and_under_qemu(|run| run(&build("epoll.c", HOSTED), &Run::default()));
    for (ours, theirs) in here.output.lines().zip(qemu.output.lines()) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(here, qemu);
    assert_eq!((here.error.as_str(), here.status), ("", 0));
}
