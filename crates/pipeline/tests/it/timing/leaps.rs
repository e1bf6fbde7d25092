//! A leap over identical iterations: what is in flight is as far from its end as before.

use crate::common::*;

/// Cycles to the commit of `second`, which comes behind `first` at once, or after a leap.
fn behind(first: &[Inst], second: &[Inst], leap: u64) -> u64 {
    let mut rig = Rig::cached(machine());
    rig.drain();
    let start = rig.decode;
    let mut blocks = [Block::new(CODE, first, &rig.spec), Block::new(CODE + 4 * first.len() as u64, second, &rig.spec)];
    rig.run_blocks(&mut blocks[..1], &[0]);
    if leap > 0 {
        let now = rig.core.tally();
        rig.core.fast_forward(leap, &now.since(&now), 1);
    }
    rig.run_blocks(&mut blocks[1..], &[0]);
    rig.core.now() - start - leap
}

#[test]
fn fetch_ports_of_loads_in_flight_are_taken_as_long_after_a_leap() {
    // Loads whose addresses take a hundred cycles hold all ports.
    let mut first = vec![mul(2, 2); 20];
    first.extend(vec![ldr(3, 2, DATA); 40]);
    let second = [ldr(4, 5, DATA + 64), mul(6, 4), mul(6, 6), mul(6, 6)];
    let alone = behind(&[nop()], &second, 0);
    let expected = behind(&first, &second, 0);
    assert!(expected > alone + 100);
    for leap in [1, 63, 1_000, 100_000] {
        assert_eq!(behind(&first, &second, leap), expected, "{leap} cycles");
    }
}

#[test]
fn store_ports_of_gathers_in_flight_are_taken_as_long_after_a_leap() {
    let mut first = vec![mul(2, 2); 20];
    first.extend(vec![gather(1, 2, 3, 0, [Some(DATA); 8]); 9]);
    let second = [gather(1, 5, 3, 0, [Some(DATA + 64); 8]), ldr(4, 5, DATA + 64), mul(6, 4)];
    let expected = behind(&first, &second, 0);
    for leap in [1, 63, 1_000, 100_000] {
        assert_eq!(behind(&first, &second, leap), expected, "{leap} cycles");
    }
}
