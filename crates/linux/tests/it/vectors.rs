//! Vector lengths and vector registers as described in Linux's `Documentation/arch/arm64/sve.rst`. QEMU's user mode keeps
//! registers across system calls and ignores flags at `execve`, so it is not a reference here.

use crate::common;

use common::{HOSTED, Run, build, run_here};

fn lines(args: &[&str]) -> Vec<String> {
    let outcome = run_here(&build("vectors.c", HOSTED), &Run { args, ..Run::default() });
    assert_eq!((outcome.status, outcome.error.as_str()), (0, ""), "{}", outcome.output);
    outcome.output.lines().map(str::to_owned).collect()
}

#[test]
fn vector_lengths_are_multiples_of_16_up_to_8192_and_clamped_to_the_machines() {
    let expected = [
        "set 16: 16",
        "set 32: 32",
        "set 48: 32",
        "set 64: 64",
        "set 80: 64",
        "set 256: 64",
        "set 8192: 64",
        "set 8208: EINVAL",
        "set 65536: EINVAL",
        "set 8: EINVAL",
        "set 17: EINVAL",
        "set -16: EINVAL",
        "set 524352: EINVAL",
        "set 64: 64",
    ];
    assert_eq!(lines(&[])[..14], expected);
}

#[test]
fn execve_keeps_a_vector_length_set_as_inherited_or_for_the_next_program() {
    let expected = [
        // Neither: the default again.
        "flags 0: 0x20, now: rdvl 32, get 0x20",
        "thread: rdvl 32, get 0x20",
        "executed: rdvl 64, get 0x40",
        "again: rdvl 64, get 0x40",
        // PR_SVE_VL_INHERIT: kept by each execve, with the flag.
        "flags 0x20000: 0x20020, now: rdvl 32, get 0x20020",
        "thread: rdvl 32, get 0x20020",
        "executed: rdvl 32, get 0x20020",
        "again: rdvl 32, get 0x20020",
        // PR_SVE_SET_VL_ONEXEC: returned, but in effect only in the next program.
        "flags 0x40000: 0x20, now: rdvl 64, get 0x40",
        "thread: rdvl 64, get 0x40",
        "executed: rdvl 32, get 0x20",
        "again: rdvl 64, get 0x40",
        "flags 0x60000: 0x20020, now: rdvl 64, get 0x20040",
        "thread: rdvl 64, get 0x20040",
        "executed: rdvl 32, get 0x20020",
        "again: rdvl 32, get 0x20020",
    ];
    assert_eq!(lines(&[])[14..], expected);
}

#[test]
fn a_system_call_leaves_the_low_128_bits_of_vectors_and_clears_all_other_sve_state() {
    let expected = [
        "getpid: low kept, above zero, p zero, ffr zero",
        "no such call: low kept, above zero, p zero, ffr zero",
        "kill with a handler: low kept, above zero, p zero, ffr zero",
        "signals: 1",
    ];
    assert_eq!(lines(&["state"]), expected);
}
