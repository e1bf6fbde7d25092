//! Loads that run ahead of older stores to the same place (manual 7.5: pipeline flush).

use fxscope_counts::Signal;

use crate::common::*;

/// A store whose address takes two multiplications, a load that needs nothing, and a user of it.
fn program(load: Inst) -> Vec<Inst> {
    vec![mul(9, 9), mul(9, 9), str(1, 9, DATA), load, mul(4, 3)]
}

#[test]
fn a_load_ahead_of_a_store_with_an_unknown_address_elsewhere_does_not_wait() {
    let mut rig = Rig::cached(machine());
    let alone = rig.time(&program(ldr(3, 2, DATA + 64))[..3]);
    // The last of the five is in a group of its own.
    assert_eq!(rig.time(&program(ldr(3, 2, DATA + 64))), alone + 1);
}

#[test]
fn a_load_ahead_of_a_store_to_the_same_place_is_fetched_again_when_the_store_commits() {
    let mut rig = Rig::cached(machine());
    let (s, ls) = (rig.spec.stages.clone(), rig.spec.load_store.clone());
    let (cycles, counts) = rig.count(&program(ldr(3, 2, DATA)));
    let committed = s.integer + 10 + 1 + s.commit_short;
    let address = committed + 1 + rig.spec.frontend.fetch_to_decode + s.address;
    // By then the data are forwarded from the store port or the write buffer without more delay.
    assert!((address + ls.load_integer + 5..address + ls.load_integer + 7).contains(&cycles), "{cycles} {address}");
    assert_eq!(counts.get(Signal::L1PipeAbortStldIntlk), 0);
}

#[test]
fn everything_behind_a_load_that_ran_too_early_is_fetched_again() {
    let mut rig = Rig::cached(machine());
    let mut with = program(ldr(3, 2, DATA));
    let mut without = program(ldr(3, 2, DATA + 64));
    // Multiplications that depend on nothing before.
    with.extend(vec![mul(5, 5); 10]);
    without.extend(vec![mul(5, 5); 10]);
    let s = rig.spec.stages.clone();
    let refetched = s.integer + 10 + 1 + s.commit_short + 1 + rig.spec.frontend.fetch_to_decode;
    assert!(rig.time(&without) < refetched + s.integer + 50);
    assert!(rig.time(&with) >= refetched + s.integer + 50);
}
