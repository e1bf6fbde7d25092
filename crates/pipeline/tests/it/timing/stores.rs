//! Stores: the write buffer, store flows beside others.

use fxscope_counts::Signal;
use fxscope_isa::Access;

use crate::common::*;

const N: u64 = 1_000;

/// Flows find their places out of order, so that a run of stores ends some cycles sooner or later.
fn about(cycles: u64, expected: u64) {
    assert!(cycles.abs_diff(expected) * 100 <= expected, "{cycles} cycles, not about {expected}");
}

/// Long-run cycles of `N` bodies, each given its number.
fn steady(body: impl Fn(u64) -> Vec<Inst>) -> u64 {
    let program: Vec<Inst> = (0..2 * N).flat_map(body).collect();
    let half = Rig::cached(machine()).time(&program[..program.len() / 2]);
    Rig::cached(machine()).time(&program) - half
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
    about(steady(|i| vec![str_bytes(1, 2, 4, block(i) + 12)]), N * 3 / 2);
}

#[test]
fn loads_and_store_writes_exclude_each_other() {
    // Two loads take one cycle, the store's access and the write of an earlier one another.
    // The places in a page that are read are not written: they distinguish stores in the pipes from loads.
    let read = DATA + 56 * LINE;
    let body = |i| vec![ld1d(1, 2, 0, read), ld1d(3, 2, 0, read + LINE), st1d(4, 2, 0, block(i % 32))];
    about(steady(body), 2 * N);
}

#[test]
fn stores_into_different_blocks_are_written_one_by_one() {
    let mut rig = Rig::cached(machine());
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
    let mut rig = Rig::cached(spec);
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
    let written = |i: u64| str(1, 2, block(i));
    // Without active elements nothing is written, and the port is held as long.
    let nothing = |i: u64| st1w(1, 2, 0, block(i), 0);
    for store in [&written as &dyn Fn(u64) -> Inst, &nothing] {
        let mut first = vec![ldr(9, 9, DATA + 90 * LINE)];
        first.extend((0..25).map(store));
        let mut rig = Rig::cached(machine());
        let s = rig.spec.stages.clone();
        let write = rig.spec.load_store.store_write;
        let committed = rig.time(&first[..1]);
        let mut rig = Rig::cached(machine());
        // The first store commits with the load and is written at W5; only then the last one's address goes out.
        assert!(rig.time(&first) >= committed + write + s.commit_short);
        let mut rig = Rig::cached(machine());
        assert!(rig.time(&first[..25]) < committed + write + s.commit_short);
    }
}

#[test]
fn a_store_of_words_with_all_elements_active_is_eligible() {
    assert_eq!(steady(|i| vec![st1w(1, 2, 0, block(i), ALL_S)]), N);
}

/// Flows in the load/store pipes.
fn flows(counts: &Counts) -> u64 {
    counts.get(Signal::L1Pipe0Val) + counts.get(Signal::L1Pipe1Val)
}

/// Writes of `stores` (one access each), which count in this number of `pipes`, into a line that is not there yet: what can
/// join has joined, and no access is beside a write.
fn writes_into_missing_line(stores: &[Inst], pipes: u64) -> u64 {
    let mut rig = Rig::cached(machine());
    let (_, counts) = rig.count(stores);
    let accesses = stores.len() as u64;
    // Moving the line in takes both pipes.
    let cycles = flows(&counts) - accesses - 2 * rig.spec.load_store.move_in;
    assert_eq!(cycles % pipes, 0);
    cycles / pipes
}

const MISSING: u64 = DATA + 80 * LINE;

#[test]
fn general_stores_join_within_sixteen_bytes_and_vectors_within_sixty_four() {
    let words: Vec<Inst> = (0..16).map(|i| str_bytes(1, 2, 4, MISSING + 4 * i)).collect();
    assert_eq!(writes_into_missing_line(&words, 1), 4, "64 bytes, 16 a write");
    let mut halves = vec![st1w(1, 2, 0, MISSING, ALL_S), st1w(1, 2, 0, MISSING + 32, ALL_S)];
    assert_eq!(
        writes_into_missing_line(&halves, 2),
        2,
        "the second one joins the first, and continues in the next block"
    );
    halves[1] = str_z(1, 2, MISSING);
    assert_eq!(writes_into_missing_line(&halves, 2), 2, "STR of a vector joins nothing");
}

#[test]
fn a_store_across_blocks_of_the_write_buffer_is_split() {
    assert_eq!(writes_into_missing_line(&[st1d(1, 2, 0, MISSING + 64)], 2), 1);
    assert_eq!(writes_into_missing_line(&[st1d(1, 2, 0, MISSING + 72)], 2), 2);
    assert_eq!(writes_into_missing_line(&[str(1, 2, MISSING + 8)], 1), 1);
    assert_eq!(writes_into_missing_line(&[str(1, 2, MISSING + 12)], 1), 2, "16 bytes for general registers");
}

/// `DC ZVA` of the line of `addr`.
fn zero(base: u8, addr: u64) -> Inst {
    op("base:SYS").based(&[x(base)]).access(Access::ZeroLine, LINE as u16, addr)
}

/// Cycles of `rounds` times four lines of L1D, each zeroed and written in four stores, in an order given by two numbers
/// for each instruction: which line, and which store of it; the zeroing comes as store 0.
fn zeroed_lines(rounds: u64, order: &[(u64, u64)]) -> u64 {
    let instruction = |&(line, store): &(u64, u64)| match store {
        0 => zero(1, DATA + line * LINE),
        _ => st1d(1, 2, 0, DATA + line * LINE + (store - 1) * 64),
    };
    let program: Vec<Inst> = (0..rounds).flat_map(|_| order.iter().map(instruction)).collect();
    Rig::cached(machine()).time(&program)
}

#[test]
fn zeroing_waits_until_the_stores_before_it_are_written() {
    let each: Vec<(u64, u64)> = (0..4).flat_map(|line| (0..5).map(move |store| (line, store))).collect();
    let all_first: Vec<(u64, u64)> =
        (0..4).map(|line| (line, 0)).chain((0..4).flat_map(|line| (1..5).map(move |store| (line, store)))).collect();
    // Stores to a line wait for its zeroing: line by line nothing overlaps, with all zeroed first four of them do.
    let round = |order: &[(u64, u64)]| (zeroed_lines(100, order) - zeroed_lines(50, order)) / 50;
    let (alone, together) = (round(&each), round(&all_first));
    let l2 = machine().l2_timing.hit_nearest;
    assert!(alone > 4 * 2 * l2, "{alone} cycles, twice to L2 and back for each line");
    assert!(together < alone / 2, "{together} cycles, {alone} line by line");
}

#[test]
fn each_zeroing_keeps_an_entry_of_the_write_buffer_until_l2_has_answered() {
    const LINES: u64 = 400;
    for entries in [2, 8] {
        let mut spec = machine();
        spec.tables.load_store.write_buffer = entries;
        let (l2, ls) = (&spec.l2_timing, &spec.load_store);
        // What a load that hits L2 takes, without the line's way into L1 and to the load.
        let fill = u64::from(spec.l1d.line_bytes / l2.fill_bytes_per_cycle) + ls.move_in + ls.load_integer;
        let each = l2.hit_nearest - fill + l2.request + l2.zero;
        let run = |lines: u64| -> u64 {
            let program: Vec<Inst> = (0..lines).map(|i| zero(1, DATA + i % 64 * LINE)).collect();
            Rig::cached(spec.clone()).time(&program)
        };
        about(run(2 * LINES) - run(LINES), LINES * each / u64::from(entries));
    }
}
