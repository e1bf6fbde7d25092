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
    // Loads whose addresses take a hundred cycles hold ports, and then comes one that needs nothing and has a long chain
    // behind it.
    let loads = |n: usize| {
        let mut first = vec![mul(2, 2); 20];
        first.extend(vec![ldr(3, 2, DATA); n]);
        first
    };
    let mut second = vec![ldr(4, 5, DATA + 64)];
    second.extend(vec![mul(4, 4); 30]);
    let ports = machine().load_store.fetch_ports as usize;
    let expected = behind(&loads(ports), &second, 0);
    assert!(expected > behind(&loads(ports - 1), &second, 0) + 50, "it waits for a port");
    for leap in [1, 63, 1_000, 100_000] {
        assert_eq!(behind(&loads(ports), &second, leap), expected, "{leap} cycles");
    }
}
