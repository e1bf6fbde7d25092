//! The hardware barrier as programs access it: the driver's device file and `/sys`, and the windows.

use crate::common;

use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};

use common::{HOSTED, build, platform};
use fxscope_linux::{Code, CpuPlace, Guest, Platform, Setup};

/// Runs a program on two CMGs, with CPUs 12, 13 and 24, 25; returns the exit status and the output.
fn run(program: &Path, args: &[&str], change: impl FnOnce(&mut Platform)) -> (i32, String) {
    let mut machine = platform(64);
    machine.cpus = [(12, 4), (13, 4), (24, 5), (25, 5)].map(|(cpu, node)| CpuPlace { cpu, node }).to_vec();
    change(&mut machine);
    let mut output = tempfile::tempfile().expect("temporary file");
    let mut setup = Setup::new(machine, program.to_str().expect("UTF-8 path")).expect("setup");
    setup.args.extend(args.iter().map(|arg| arg.as_bytes().to_vec()));
    setup.stdio.output = output.try_clone().expect("duplicate handle").into();
    let mut process = Guest::open(program, setup).expect("opens");
    let mut code: Code = Code::of(&process);
    let end = process.run_functional(&mut code, 10_000_000).cloned().expect("ends");
    let mut text = String::new();
    output.rewind().expect("rewind");
    output.read_to_string(&mut text).expect("text");
    (end.status().expect("status"), text)
}

#[test]
fn the_driver_behaves_as_its_library_documents() {
    let expected = [
        "device: 1",
        "one core: EINVAL",
        "two CMGs: EINVAL",
        "no mask: EFAULT",
        "two cores: ok",
        "blade 0 of CMG 1",
        "not bound: EPERM",
        "assign: ok",
        "window 0",
        "assign again: EINVAL",
        "place: ok",
        "core 1 of CMG 1",
        "nowhere: EFAULT",
        "no such request: ENOTTY",
        "hwinfo: 2 6 4 13",
        "CMG1/core_map: 24 0,25 1",
        "CMG1/used_bb_bmap: 0001",
        "CMG1/used_bw_bmap: 24 0000,25 0001",
        "CMG1/init_sync_bb0: 0003,0002",
        "CMG0/used_bb_bmap: 0000",
        "unassign: ok",
        "unassign again: EINVAL",
        "free of another file: EINVAL",
        "free: ok",
        "free again: EINVAL",
        "CMG1/init_sync_bb0: 0000,0000",
    ];
    let (status, text) = run(&build("barrier.c", HOSTED), &["driver"], |_| {});
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    assert_eq!(status, 0);
}

#[test]
fn blades_and_windows_are_freed_when_the_last_descriptor_of_the_file_is_closed() {
    let (_, text) = run(&build("barrier.c", HOSTED), &["closed"], |_| {});
    let found: Vec<_> = text.lines().skip(3).collect();
    assert_eq!(found, ["CMG0/used_bb_bmap: 0001", "CMG0/used_bb_bmap: 0000", "CMG0/used_bw_bmap: 12 0000,13 0000"]);
}

#[test]
fn access_to_an_unassigned_window_ends_a_program_with_sigill() {
    const SIGILL: i32 = 4;
    assert_eq!(run(&build("barrier.c", HOSTED), &["undefined"], |_| {}), (128 + SIGILL, "device: 1\n".to_owned()));
}

#[test]
fn a_machine_without_hardware_barrier_has_no_device_for_it() {
    let (status, text) = run(&build("barrier.c", HOSTED), &["driver"], |machine| machine.barrier = None);
    assert_eq!((status, text.as_str()), (0, "open: ENOENT\n"));
}

/// `kernels/prebuilt/barrier.elf`, which checks that no thread leaves a barrier before all have reached it.
fn kernel() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/prebuilt/barrier.elf")
}

#[test]
fn threads_meet_at_the_hardware_barrier_of_their_cmg() {
    for waiting in ["poll", "wfe"] {
        let wait = format!("waiting={waiting}");
        let (status, text) = run(&kernel(), &["kind=hardware", "threads=12", "rounds=20", &wait], |machine| {
            machine.cpus = (12..24).map(|cpu| CpuPlace { cpu, node: 4 }).collect();
        });
        assert!(text.starts_with("barrier ok kind=hardware threads=12"), "{text}");
        assert_eq!(status, 0);
    }
}

#[test]
fn threads_of_two_cmgs_cannot_share_a_hardware_barrier() {
    let (status, text) = run(&kernel(), &["kind=hardware", "threads=3"], |_| {});
    assert_eq!((status, text.as_str()), (2, ""));
}
