//! The registers of the sector cache as programs see them: which are shared, and what the kernel writes to them.

use crate::common;

use std::io::{Read as _, Seek as _};

use common::{HOSTED, build, platform};
use fxscope_linux::{Code, CpuPlace, Guest, Platform, Setup};

/// Runs `sectors.c` on a machine with CPUs 12 and 13 on one CMG and CPU 24 on another; returns the exit status and the output.
fn run(second: &str, change: impl FnOnce(&mut Platform)) -> (i32, String) {
    let program = build("sectors.c", HOSTED);
    let mut machine = platform(64);
    machine.cpus = [(12, 4), (13, 4), (24, 5)].map(|(cpu, node)| CpuPlace { cpu, node }).to_vec();
    change(&mut machine);
    let mut output = tempfile::tempfile().expect("temporary file");
    let mut setup = Setup::new(machine, program.to_str().expect("UTF-8 path")).expect("setup");
    setup.args.push(second.as_bytes().to_vec());
    setup.stdio.output = output.try_clone().expect("duplicate handle").into();
    let mut process = Guest::open(&program, setup).expect("opens");
    let mut code: Code = Code::of(&process);
    let end = process.run_functional(&mut code, 10_000_000).cloned().expect("ends");
    let mut text = String::new();
    output.rewind().expect("rewind");
    output.read_to_string(&mut text).expect("text");
    (end.status().expect("status"), text)
}

#[test]
fn cores_of_a_cmg_share_the_ways_of_l2_and_each_has_its_own_for_l1() {
    let (_, text) = run("13", |_| {});
    assert_eq!(text, "start: L1 0, L2 0\nsecond: L1 0x22, L2 0xa04\nfirst: L1 0x22, L2 0xc02\n");
}

#[test]
fn cores_of_different_cmgs_do_not_share_the_ways_of_l2() {
    let (_, text) = run("24", |machine| machine.hpc.set_l2_sector_ways([6, 8]));
    assert_eq!(text, "start: L1 0, L2 0x806\nsecond: L1 0x22, L2 0x806\nfirst: L1 0x22, L2 0xa04\n");
}

#[test]
fn without_the_sector_cache_access_to_its_registers_ends_a_program_with_sigill() {
    const SIGILL: i32 = 4;
    let (status, text) = run("13", |machine| machine.hpc.disable_sectors());
    assert_eq!((status, text.as_str()), (128 + SIGILL, ""));
}
