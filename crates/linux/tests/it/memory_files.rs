//! Files in the simulated machine's memory count against it: a guest program fills them in a machine of 32 MiB.

use crate::common;

use common::{HOSTED, Run, build, run_here};

/// Returns what the program prints on a machine with 32 MiB.
fn printed(how: &str) -> Vec<String> {
    let run = Run { args: &[how], memory_bytes: Some(32 << 20), ..Run::default() };
    let outcome = run_here(&build("memory_files.c", HOSTED), &run);
    assert_eq!((outcome.status, outcome.error.as_str()), (0, ""), "{}", outcome.output);
    outcome.output.lines().map(str::to_owned).collect()
}

#[test]
fn data_in_a_memfd_take_memory_and_are_refused_without_room() {
    let expected = [
        "write: ENOSPC",
        "MiB of a memfd: as expected",
        "overwrite: done",
        "write another: ENOSPC",
        "MiB of shared memory: as expected",
        "MiB free: as expected",
        "MiB of the file system: as expected",
        "MiB free in it: as expected",
        "shorten: done",
        "write: ENOSPC",
        "MiB beside other memory: as expected",
    ];
    assert_eq!(printed("written"), expected);
}

#[test]
fn files_below_dev_shm_take_memory_until_they_are_deleted_and_closed() {
    let expected = [
        "allocate: done",
        "allocate as much again: ENOSPC",
        "when it is closed: ENOSPC",
        "when it is deleted: done",
        "holes: done",
        "write into holes: done",
        "write: ENOSPC",
        "MiB until it is full: as expected",
        "write into holes: ENOSPC",
        "punch a hole: done",
        "write into holes: done",
        "empty: done",
    ];
    assert_eq!(printed("named"), expected);
}

#[test]
fn copies_into_a_memfd_end_when_memory_runs_out() {
    assert_eq!(printed("copied"), ["MiB sent: as expected", "send more: ENOSPC", "copy: ENOSPC"]);
}

#[test]
fn a_mapped_memfd_counts_once_and_unmapping_loses_nothing() {
    let expected = ["msync of more than half of the memory: done", "munmap: done", "bytes that differ: 0"];
    assert_eq!(printed("mapped"), expected);
}

#[test]
fn memory_of_a_killed_process_is_available_to_others() {
    let expected =
        ["write: ENOSPC", "MiB of a child: as expected", "signal 9", "write: ENOSPC", "MiB of its parent: as expected"];
    assert_eq!(printed("children"), expected);
}
