//! Stores: the write buffer, store flows beside others, forwarding and interlocks.

use fxscope_base::Signal;

use crate::common::*;

/// Lines `0..64` are cached.
fn rig_of(spec: fxscope_machine::Spec) -> Rig {
    let mut rig = Rig::new(spec);
    rig.warm((0..64).map(|i| DATA + i * LINE));
    rig
}
fn rig() -> Rig {
    rig_of(machine())
}

const N: u64 = 1_000;

/// Flows find their places out of order, so that a run of stores ends some cycles sooner or later.
fn about(cycles: u64, expected: u64) {
    assert!(cycles.abs_diff(expected) * 100 <= expected, "{cycles} cycles, not about {expected}");
}

/// Long-run cycles of `N` bodies, each given its number.
fn steady(body: impl Fn(u64) -> Vec<Inst>) -> u64 {
    let program: Vec<Inst> = (0..2 * N).flat_map(body).collect();
    let half = rig().time(&program[..program.len() / 2]);
    rig().time(&program) - half
}

/// A block of 64 bytes in a cached line, another one for each number, the same again after 128.
fn block(i: u64) -> u64 {
    DATA + i % 128 * 64
}

#[test]
fn an_eligible_store_access_runs_beside_a_store_write() {
    assert_eq!(steady(|i| vec![st1d(1, 2, 0, block(i))]), N, "one a cycle");
}

#[test]
fn a_store_access_that_is_not_eligible_takes_a_cycle_of_its_own_from_the_writes() {
    // Four bytes: two accesses share a cycle, each write takes one alone.
    about(steady(|i| vec![str_bytes(1, 2, 4, block(i))]), N * 3 / 2);
}

#[test]
fn loads_and_store_writes_exclude_each_other() {
    // Two loads take one cycle, the store's access and the write of an earlier one another.
    let body = |i| vec![ld1d(1, 2, 0, DATA + 48 * LINE), ld1d(3, 2, 0, DATA + 49 * LINE), st1d(4, 2, 0, block(i))];
    about(steady(body), 2 * N);
}

#[test]
fn stores_into_a_block_that_waits_for_its_line_are_written_together() {
    let flows = |stores: u64| {
        let mut rig = rig();
        let program: Vec<Inst> = (0..stores).map(|i| str(1, 2, DATA + 80 * LINE + 8 * i)).collect();
        let (_, counts) = rig.count(&program);
        counts.get(Signal::L1Pipe0Val) + counts.get(Signal::L1Pipe1Val)
    };
    // Seven more accesses, but not one more write.
    assert_eq!(flows(8), flows(1) + 7);
}

#[test]
fn stores_into_different_blocks_are_written_one_by_one() {
    let mut rig = rig();
    let program: Vec<Inst> = (0..4).map(|i| str(1, 2, block(i))).collect();
    let (_, counts) = rig.count(&program);
    assert_eq!(counts.get(Signal::L1Pipe0Val) + counts.get(Signal::L1Pipe1Val), 4 + 4);
}

/// Stores that fill a write buffer of five entries with blocks of missing lines, then `n` that hit.
fn behind_full_write_buffer(n: u64) -> u64 {
    let mut spec = machine();
    spec.tables.load_store.write_buffer = 5;
    spec.tables.memory.latency_nearest = 1_001;
    spec.tables.memory.latency_farthest = 1_001;
    let mut rig = rig_of(spec);
    let missing = (0..5).map(|i| str(1, 2, DATA + 80 * LINE + 64 * i));
    let program: Vec<Inst> = missing.chain((0..n).map(|i| str(1, 2, block(i)))).collect();
    rig.time(&program)
}

#[test]
fn stores_commit_until_the_write_buffer_and_the_store_ports_are_full() {
    assert!(behind_full_write_buffer(24) < 100);
    assert!(behind_full_write_buffer(25) > 1_001);
}

#[test]
fn a_store_port_is_taken_until_the_store_is_written() {
    let stores = |n: u64| -> Vec<Inst> { (0..n).map(|i| str(1, 2, block(i))).collect() };
    let mut first = vec![ldr(9, 9, DATA + 90 * LINE)];
    first.extend(stores(25));
    let mut rig = rig();
    let s = rig.spec.stages.clone();
    let write = rig.spec.load_store.store_write;
    let committed = rig.time(&first[..1]);
    let mut rig = self::rig();
    // The first store commits with the load and is written at W5; only then the last one's address goes out.
    assert!(rig.time(&first) >= committed + write + s.commit_short);
    let mut rig = self::rig();
    assert!(rig.time(&first[..25]) < committed + write + s.commit_short);
}

/// Commit of an addition that uses what `load` reads behind `store`, and the interlocks on the way.
fn through_memory(rig: &mut Rig, store: Inst, load: Inst, user: Inst) -> (u64, u64) {
    let (cycles, counts) = rig.count(&[store, load, user]);
    (cycles, counts.get(Signal::L1PipeAbortStldIntlk))
}

#[test]
fn a_store_forwards_to_a_load_of_the_same_bytes_or_of_fewer() {
    let mut spec = machine();
    spec.tables.load_store.forward = 31;
    let mut rig = rig_of(spec);
    let executed = rig.spec.stages.integer;
    for bytes in [8, 4, 2, 1] {
        let load = op("base:LDR (immediate) [Unsigned offset]").based(&[x(2)]).writes(&[x(3)]);
        let load = load.access(fxscope_uop::Access::Load, bytes, DATA);
        let (cycles, interlocks) = through_memory(&mut rig, str(1, 2, DATA), load, mul(4, 3));
        // Data leave EXA at X; the load's result follows `forward` cycles later.
        assert_eq!((cycles, interlocks), (executed + 31 + 5, 0), "{bytes} bytes");
    }
}

#[test]
fn a_load_of_more_bytes_than_the_store_wrote_waits_until_they_are_written() {
    let mut rig = rig();
    let (s, ls) = (rig.spec.stages.clone(), rig.spec.load_store.clone());
    let (cycles, interlocks) = through_memory(&mut rig, str_bytes(1, 2, 4, DATA), ldr(3, 2, DATA), mul(4, 3));
    assert_eq!(interlocks, 1);
    let written = s.address + s.commit_short + ls.store_write;
    let result = written + ls.interlock_retry + ls.load_integer;
    assert!((result..=result + 1).contains(&(cycles - 5)), "{cycles} cycles");
}

#[test]
fn predicated_vector_stores_never_forward() {
    let mut rig = rig();
    let (_, interlocks) = through_memory(&mut rig, st1d(1, 2, 0, DATA), ld1d(3, 2, 0, DATA), fadd(4, 3));
    assert_eq!(interlocks, 1);
}

#[test]
fn a_load_beside_a_store_in_the_same_block_does_not_wait() {
    let mut rig = rig();
    let (s, ls) = (rig.spec.stages.clone(), rig.spec.load_store.clone());
    let (cycles, interlocks) = through_memory(&mut rig, str(1, 2, DATA), ldr(3, 2, DATA + 8), mul(4, 3));
    assert_eq!((cycles, interlocks), (s.address + ls.load_integer + 5, 0));
}

#[test]
fn a_store_without_active_elements_interlocks_with_nothing() {
    let mut rig = rig();
    let store = op("sve:ST1D (scalar plus immediate)").based(&[x(2), p(0)]).reads(&[z(1)]);
    let store = store.masked(fxscope_uop::Access::Store, 8, DATA, 0);
    let (_, interlocks) = through_memory(&mut rig, store, ld1d(3, 2, 0, DATA), fadd(4, 3));
    assert_eq!(interlocks, 0);
}

#[test]
fn a_store_of_words_with_all_elements_active_is_eligible() {
    assert_eq!(steady(|i| vec![st1w(1, 2, 0, block(i), ALL_S)]), N);
}
