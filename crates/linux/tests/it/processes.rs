//! Programs that start processes, and wait for files, behave as under Linux.

use crate::common;

use std::os::unix::fs::PermissionsExt as _;

use common::{HOSTED, Run, build, run_here, same_as_qemu};

#[test]
fn processes_fork_communicate_and_are_waited_for() {
    same_as_qemu("processes.c", HOSTED, &Run::default());
}

#[test]
fn threads_wait_for_files_while_others_run() {
    same_as_qemu("processes.c", HOSTED, &Run { args: &["poll"], ..Run::default() });
}

#[test]
fn processes_learn_of_their_page_faults_waits_and_memory_and_those_of_their_children() {
    // Small pages that are allocated when they are touched, as on other machines.
    let run = Run { args: &["usage"], env: &["XOS_MMM_L_HPAGE_TYPE=none"], ..Run::default() };
    let outcome = run_here(&build("processes.c", HOSTED), &run);
    let expected = "thread: faults 1 waits 1\n\
                    process: faults 1 waits 1 memory 1\n\
                    stat: 1\n\
                    the most: 1\n\
                    child: faults 1 waits 1 memory 1\n\
                    children: faults 1 memory 1 stat 1\n";
    assert_eq!((outcome.output.as_str(), outcome.error.as_str(), outcome.status), (expected, "", 0));
}

#[test]
fn programs_execute_programs_and_scripts() {
    let program = build("processes.c", HOSTED);
    let folder = tempfile::tempdir().expect("temporary directory");
    std::fs::create_dir(folder.path().join("bin")).expect("create");
    // A separate shell: the host's is for another processor.
    std::fs::copy(&program, folder.path().join("bin/sh")).expect("copy");
    let script = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("script");
    std::fs::write(&script, "#! /bin/sh script\nexit\n").expect("write");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    let run = Run {
        args: &["exec", script.to_str().expect("UTF-8")],
        sysroot: Some(folder.path().to_owned()),
        ..Run::default()
    };
    let outcome = run_here(&program, &run);
    let expected = "child of spawn: a b\n\
                    spawned: exit 6\n\
                    child of spawn: a b\n\
                    spawn of nothing: No such file or directory\n\
                    counter 6\n\
                    vfork: exit 6\n\
                    no program: exit 5\n\
                    system 7\n\
                    popen echoed\n\
                    status 0\n\
                    script script more\n";
    assert_eq!(outcome.output, expected);
    assert_eq!(outcome.status, 11);
}
