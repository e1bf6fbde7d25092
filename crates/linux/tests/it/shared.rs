//! Mappings that share memory, beside reads and writes of the files that they map.

use crate::common;

use common::{HOSTED, Run, build, run_here, same_outcome};

/// Runs a part of the program here and under QEMU in a folder, and compares the outcomes.
fn same(what: &str) {
    let folder = tempfile::tempdir().expect("temporary directory");
    let program = build("shared_mappings.c", HOSTED);
    let run = Run { args: &[what, folder.path().to_str().expect("UTF-8 path")], ..Run::default() };
    same_outcome(&program, &run);
}

/// Checks what a part of the program prints.
fn prints(what: &str, expected: &str) {
    let outcome = run_here(&build("shared_mappings.c", HOSTED), &Run { args: &[what, "/"], ..Run::default() });
    assert_eq!((outcome.output.as_str(), outcome.status), (expected, 0), "{}", outcome.error);
}

#[test]
fn mappings_of_one_file_and_its_reads_and_writes_see_one_another() {
    same("files");
}

#[test]
fn processes_that_map_one_file_share_words_futexes_and_exclusives() {
    same("processes");
}

#[test]
fn mappings_follow_the_length_and_the_copies_of_a_file() {
    same("lengths");
}

/// The machine has room for one copy of the file.
#[test]
fn private_mappings_of_a_file_share_pages_that_they_do_not_write() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let arguments = ["read-only", folder.path().to_str().expect("UTF-8 path")];
    let run = Run { args: &arguments, memory_bytes: Some(28 << 20), ..Run::default() };
    same_outcome(&build("shared_mappings.c", HOSTED), &run);
}

/// What Linux prints: QEMU cannot map memory a second time.
#[test]
fn remapped_memory_keeps_its_pages() {
    let expected = "a second mapping: 1 2\nthe first: 3\ngrown: 3 2 4\nmoved over the second: 1 4\nthe file: 8\n\
                    anonymous: 5\na second mapping of private memory: EINVAL\n\
                    a second mapping without moving: ENOMEM\nwhat is not mapped: EFAULT\nprivate: 2\n\
                    not needed: shared 7, private 0\n";
    prints("remapped", expected);
}

#[test]
fn code_written_through_one_mapping_runs_in_another_after_cache_maintenance_at_either() {
    let expected = "after maintenance at the writable address: 11\nafter maintenance at the executable address: 20\n\
                    after maintenance at the writable address: 12\nafter maintenance at the executable address: 30\n\
                    after a write of the file: 13\nin a child, before and after: 37\n\
                    executed: /memfd:program (deleted)\n";
    prints("code", expected);
}

#[test]
fn system_v_segments_live_as_long_as_their_attachments_or_until_they_are_removed() {
    same_outcome(&build("sysv_shm.c", HOSTED), &Run::default());
}

#[test]
fn system_v_segments_are_listed_and_limited() {
    let outcome = run_here(&build("sysv_shm.c", HOSTED), &Run { args: &["all"], ..Run::default() });
    let expected = "another program has nothing attached\nattached after another program: 1\nhighest 2, used 3, total 6, resident 1\nhighest 2, smallest 1, most 4096\nat index 2: 1, at 1: EINVAL\n\
                    at index 1 again: 1, another identifier: 1\n24301 0 600                 65531  1000\n\
                    0 32769 600                     1  1000\n0 2 600                196603  1000\n\
                    18446744073692774399\n4096\nthen 4093 more: ENOSPC\n";
    assert_eq!((outcome.output.as_str(), outcome.status), (expected, 0), "{}", outcome.error);
}
