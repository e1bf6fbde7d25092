//! `DC ZVA`: how long it takes by where its line is, and what becomes of the line.

use super::*;

/// A core whose pages are known, with the line of address 0 nowhere.
fn core(spec: &Spec) -> Core {
    let mut core = Core::new(spec);
    core.memory.run().translate(0.into(), 0, &mut Signals::default());
    core
}

/// Cycles from a `DC ZVA` at `t` to its core's knowing that it is done.
fn zero(core: &mut Core, addr: u64, t: Cycle) -> Cycle {
    core.memory.run().zero_line(addr.into(), t, &mut core.signals) - t
}

/// Cycles from the request's start in the L2 pipeline to the line being ready to send, on a hit.
fn hit(spec: &Spec) -> Cycle {
    let way = spec.l2_timing.request + u64::from(spec.l1d.line_bytes / spec.l2_timing.fill_bytes_per_cycle);
    spec.l2_timing.hit_nearest - way - spec.load_store.move_in - spec.load_store.load_integer
}

/// The time to L2 and back, and that of zeroing there.
fn in_l2(spec: &Spec) -> Cycle {
    2 * spec.l2_timing.request + hit(spec) + spec.l2_timing.zero
}

/// The address 0 is read or written, and four other lines of its L1D set replace it there.
fn only_in_l2(core: &mut Core, write: bool) {
    core.access(0, 100, write);
    for i in 1..5 {
        core.load(i * L1_SET, 1_000 * i);
    }
}

#[test]
fn zeroing_a_line_reads_no_memory_and_leaves_it_in_l2() {
    let mut core = core(&machine());
    zero(&mut core, 0, 5_000);
    assert_eq!(core.get(Signal::BusReadTotalMem), 0);
    assert_eq!(core.get(Signal::L2dCacheRefill), 0);
    assert_eq!(core.load(0, 9_000).1, Level::L2);
    assert_eq!(core.get(Signal::BusReadTotalMem), 0);
}

#[test]
fn a_line_that_l1_does_not_have_is_zeroed_in_the_same_time_whether_l2_has_it_or_not() {
    for cycles in [0, 116, 1_000] {
        let mut spec = machine();
        spec.tables.l2_timing.zero = cycles;
        assert_eq!(zero(&mut core(&spec), 0, 10_000), in_l2(&spec), "nowhere");
        for write in [false, true] {
            let mut core = core(&spec);
            only_in_l2(&mut core, write);
            assert_eq!(zero(&mut core, 0, 10_000), in_l2(&spec), "in L2, written: {write}");
        }
    }
}

#[test]
fn l2_asks_for_the_core_s_own_copy_first() {
    let spec = machine();
    let (request, ls) = (spec.l2_timing.request, &spec.load_store);
    let mut clean = core(&spec);
    clean.load(0, 100);
    assert_eq!(zero(&mut clean, 0, 10_000), in_l2(&spec) + 2 * request + ls.move_out_clean);
    assert_eq!(clean.get(Signal::L1dCacheWb), 0);
    let mut dirty = core(&spec);
    dirty.store(0, 100);
    let took = zero(&mut dirty, 0, 10_000);
    // The write-back has reached the bank, and the bus has begun at one of its slots of two cycles.
    let least = in_l2(&spec) + 2 * request + ls.move_out_dirty;
    assert!((least..=least + 2).contains(&took), "{took} cycles, at least {least}");
    assert_eq!(dirty.get(Signal::L1dCacheWb), 1);
    for core in [&mut clean, &mut dirty] {
        assert_eq!(core.load(0, 12_000).1, Level::L2, "L1 has given it up");
        assert_eq!(core.get(Signal::BusReadTotalMem), 1, "the first access's own");
    }
}

#[test]
fn a_line_on_its_way_into_l1_is_given_up_when_it_has_arrived() {
    let spec = machine();
    let mut core = core(&spec);
    let there = core.access(0, 10_000, false).at;
    let took = zero(&mut core, 0, 10_001);
    let request = spec.l2_timing.request;
    let given_up = there + spec.load_store.move_out_clean;
    assert_eq!(10_001 + took, given_up + request + hit(&spec) + spec.l2_timing.zero + request);
}

#[test]
fn a_line_that_l2_is_zeroing_is_read_when_the_zeros_are_written() {
    let spec = machine();
    let request = spec.l2_timing.request;
    for behind in [1, 20, 80] {
        let mut core = core(&spec);
        let heard = 10_000 + zero(&mut core, 0, 10_000);
        let zeroed = heard - request;
        let (took, level) = core.load(0, 10_000 + behind);
        assert_eq!(level, Level::L2);
        assert_eq!(10_000 + behind + took, zeroed + spec.l2_timing.hit_nearest - request, "{behind} behind");
    }
    let mut core = core(&spec);
    core.load(LINE, 5_000);
    only_in_l2(&mut core, true);
    zero(&mut core, 0, 10_000);
    assert_eq!(core.load(LINE, 10_001), (spec.load_store.load_integer, Level::L1), "other lines do not wait");
}

#[test]
fn a_read_behind_the_zeroing_takes_as_long_as_any_other_that_hits_l2() {
    let spec = machine();
    let mut core = core(&spec);
    let heard = 10_000 + zero(&mut core, 0, 10_000);
    assert_eq!(core.load(0, heard), (spec.l2_timing.hit_nearest, Level::L2));
}

#[test]
fn zeroing_takes_the_path_between_l1_and_l2_as_the_notice_of_a_clean_eviction_does() {
    let spec = machine();
    let request = spec.l2_timing.request;
    let mut alone = core(&spec);
    only_in_l2(&mut alone, false);
    // The line comes to the bus at the beginning of a slot of two cycles.
    let fill_starts = 10_100;
    let t = fill_starts - request - hit(&spec);
    let ready = alone.access(0, t, false).at;
    for zeroed in 1..=4 {
        let mut core = core(&spec);
        only_in_l2(&mut core, false);
        (0..zeroed).for_each(|i| _ = zero(&mut core, (20 + i) * LINE, fill_starts));
        assert_eq!(core.access(0, t, false).at, ready + zeroed * spec.l2_timing.release);
    }
}
