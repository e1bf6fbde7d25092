//! Loads behind stores to the same place, or to what looks like it: forwarding and interlocks (manual 7.5).

use fxscope_counts::Signal;
use fxscope_isa::Access;

use crate::common::*;

fn load_of(bytes: u16, addr: u64) -> Inst {
    let load = op("base:LDR (immediate) [Unsigned offset]").based(&[x(2)]).writes(&[x(3)]);
    load.access(Access::Load, bytes, addr)
}

/// A load whose address takes some multiplications, behind a store without operands.
fn behind(store: Inst, load: Inst, multiplications: usize) -> Vec<Inst> {
    let mut program = vec![store];
    program.extend(vec![mul(2, 2); multiplications]);
    program.push(load);
    program
}

/// Cycles by which that load issues behind the store. The store's data pass EXA first; EXA's results reach the address
/// pipes a cycle late; integer and address operations begin at the same stage.
fn lead(spec: &fxscope_machine::Spec, multiplications: u64) -> u64 {
    if multiplications == 0 { 0 } else { 1 + 5 * multiplications + spec.bypass.integer_other_pipe }
}

/// Interlocks of `load` behind `store`, whose flow left the pipes long ago and whose data are there, but not written.
fn interlocks(rig: &mut Rig, store: Inst, load: Inst) -> u64 {
    // A division takes long enough that the store has not committed when the load reads.
    let slow = vec![op("base:SDIV [sf=1]").reads(&[x(8)]).writes(&[x(8)]); 3];
    let program: Vec<Inst> = slow.into_iter().chain(behind(store, load, 6)).collect();
    rig.count(&program).1.get(Signal::L1PipeAbortStldIntlk)
}

fn meets(store: Inst, load: Inst) -> bool {
    interlocks(&mut Rig::cached(machine()), store, load) > 0
}

/// Cycles from one flow of a load to the next one, of general registers.
fn period(spec: &fxscope_machine::Spec) -> u64 {
    spec.stages.commit_short + spec.load_store.resubmit
}

/// A machine on which loads find a store's data `forward` cycles after it has them, and not before.
fn forwarding_in(forward: u64) -> Rig {
    let mut spec = machine();
    spec.tables.load_store.forward = forward;
    Rig::cached(spec)
}

#[test]
fn a_store_forwards_to_a_load_of_the_same_bytes_or_of_fewer() {
    let spec = machine();
    let first = spec.stages.address + lead(&spec, 1);
    // Data leave EXA at X.
    let in_time = first - spec.stages.integer;
    for bytes in [8, 4, 2, 1] {
        let mut program = behind(str(1, 9, DATA), load_of(bytes, DATA), 1);
        program.push(mul(4, 3));
        let run = |forward: u64| {
            let (cycles, counts) = forwarding_in(forward).count(&program);
            (cycles, counts.get(Signal::L1PipeAbortStldIntlk))
        };
        let result = first + spec.load_store.load_integer;
        assert_eq!(run(in_time), (result + 5, 0), "{bytes} bytes");
        assert_eq!(run(in_time + 1), (result + period(&spec) + 5, 1), "{bytes} bytes, a cycle too early");
    }
}

#[test]
fn a_load_is_sent_again_until_the_store_has_the_data_that_it_forwards() {
    let spec = machine();
    let (s, ls) = (&spec.stages, &spec.load_store);
    // Both addresses go out together; the store's data take a multiplication.
    let program = [mul(1, 1), str(1, 9, DATA), ldr(3, 2, DATA), mul(4, 3)];
    let data = s.integer + 5;
    // Once the write has left the pipe the data come from the cache. Eight bytes leave room in the write buffer.
    let done = data + s.commit_short + ls.store_write + ls.merge_wait + s.commit_short;
    for forward in 0..45 {
        let (cycles, counts) = forwarding_in(forward).count(&program);
        let needed = data + forward;
        let times = (needed.min(done) - s.address).div_ceil(period(&spec));
        assert_eq!(counts.get(Signal::L1PipeAbortStldIntlk), times, "forwarded in {forward} cycles");
        assert_eq!(cycles, s.address + times * period(&spec) + ls.load_integer + 5, "forwarded in {forward} cycles");
    }
}

#[test]
fn vectors_are_forwarded_in_their_own_time() {
    let vectors = (str_z(1, 9, DATA), ldr_z(3, 2, DATA));
    let general = (str(1, 9, DATA), load_of(8, DATA));
    for ((store, load), of_vectors) in [(vectors, true), (general, false)] {
        let interlocks = |forward: u64, forward_vector: u64| {
            let mut spec = machine();
            (spec.tables.load_store.forward, spec.tables.load_store.forward_vector) = (forward, forward_vector);
            interlocks(&mut Rig::cached(spec), store.clone(), load.clone())
        };
        assert_eq!(interlocks(0, 200) > 0, of_vectors);
        assert_eq!(interlocks(200, 0) > 0, !of_vectors);
    }
}

#[test]
fn a_load_that_waits_for_its_line_and_for_a_stores_data_is_sent_again_when_the_line_is_there() {
    let missing = DATA + 80 * LINE;
    let run = |load: u64| {
        let program = [mul(1, 1), str(1, 9, missing), ldr(3, 2, load), mul(4, 3)];
        let (cycles, counts) = Rig::cached(machine()).count(&program);
        (cycles, counts.get(Signal::L1PipeAbortStldIntlk))
    };
    let ls = &machine().load_store;
    assert!(machine().l2_timing.hit_nearest > 5 + ls.forward, "the data are there first");
    let (beside, none) = run(missing + 64);
    assert_eq!(none, 0);
    assert_eq!(run(missing), (beside, 1));
}

#[test]
fn a_round_through_memory_takes_whole_flows_of_its_load() {
    let spec = machine();
    let ls = &spec.load_store;
    // Of the value loaded, one multiplication in EXA makes the next address, and two behind it the value stored.
    let round = [ldr(3, 2, DATA), mul(2, 3), mul(1, 3), mul(1, 1), str(1, 9, DATA)];
    let (first, data) = (5 + spec.bypass.integer_other_pipe, 1 + 10);
    let times = (data + ls.forward - first).div_ceil(period(&spec));
    let rounds = 20;
    let cycles = Rig::cached(machine()).steady(&round, rounds);
    assert_eq!(cycles, rounds as u64 * (first + times * period(&spec) + ls.load_integer));
}

#[test]
fn only_the_documented_pairs_forward() {
    let scalar = |bytes: u16| (str_bytes(1, 9, bytes, DATA), load_of(bytes, DATA));
    for (store, load) in [scalar(1), scalar(2), scalar(4), scalar(8)] {
        assert!(!meets(store, load));
    }
    assert!(!meets(str_z(1, 9, DATA), ldr_z(3, 2, DATA)));
    assert!(!meets(str_p(1, 9, DATA), ldr_p(3, 2, DATA)));
    assert!(meets(str_bytes(1, 9, 4, DATA), load_of(8, DATA)), "more bytes than were stored");
    assert!(meets(str(1, 9, DATA + 8), load_of(8, DATA + 4)), "bytes before the store's");
    assert!(meets(str(1, 9, DATA + 8), load_of(8, DATA + 12)), "bytes behind them");
    assert!(meets(str_p(1, 9, DATA), load_of(8, DATA)), "a predicate, to a general register");
    assert!(meets(str(1, 9, DATA), ldr_p(3, 2, DATA)));
    assert!(meets(st1d(1, 9, 0, DATA), ld1d(3, 2, 0, DATA)), "predicated");
    assert!(meets(str_z(1, 9, DATA), ld1d(3, 2, 0, DATA)));
    assert!(meets(str_z(1, 9, DATA), load_of(8, DATA)));
}

#[test]
fn data_in_two_entries_of_the_write_buffer_are_not_forwarded() {
    assert!(!meets(str(1, 9, DATA + 8), load_of(8, DATA + 8)));
    assert!(meets(str(1, 9, DATA + 12), load_of(8, DATA + 12)), "across 16 bytes");
    assert!(meets(str_z(1, 9, DATA + 8), ldr_z(3, 2, DATA + 8)), "across 64 bytes");
}

#[test]
fn a_load_beside_a_store_in_the_same_block_does_not_wait() {
    assert!(!meets(str(1, 9, DATA), load_of(8, DATA + 8)));
}

#[test]
fn a_cancelled_load_is_sent_again_until_the_store_is_written() {
    let mut rig = Rig::cached(machine());
    let (s, ls) = (rig.spec.stages.clone(), rig.spec.load_store.clone());
    let mut program = behind(str_bytes(1, 9, 4, DATA), load_of(8, DATA), 1);
    program.push(mul(4, 3));
    let (cycles, counts) = rig.count(&program);
    // The store commits without delay, is written when none has merged with it after W5, and the write leaves the pipe a
    // flow's length later.
    let done = s.address + s.commit_short + ls.store_write + ls.merge_wait + s.commit_short;
    // The load goes out behind the store's address, and again each time its flow has ended.
    let (first, period) = (s.address + lead(&rig.spec, 1), period(&rig.spec));
    let times = (done - first).div_ceil(period);
    assert_eq!(counts.get(Signal::L1PipeAbortStldIntlk), times);
    assert_eq!(cycles, first + times * period + ls.load_integer + 5);
}

#[test]
fn each_cancelled_flow_takes_a_load_store_pipe() {
    let mut rig = Rig::cached(machine());
    let (_, counts) = rig.count(&behind(str_bytes(1, 9, 4, DATA), load_of(8, DATA), 1));
    let flows = counts.get(Signal::L1Pipe0Val) + counts.get(Signal::L1Pipe1Val);
    // A store's access and write, the load's last flow.
    assert_eq!(flows, 3 + counts.get(Signal::L1PipeAbortStldIntlk));
}

#[test]
fn inactive_elements_interlock_unless_all_of_a_store_are_inactive() {
    let store = |mask| {
        let store = op("sve:ST1D (scalar plus immediate)").based(&[x(9), p(0)]).reads(&[z(1)]);
        store.masked(Access::Store, 8, DATA, mask)
    };
    assert!(meets(store(0x01), load_of(8, DATA + 56)), "element 7 is inactive");
    assert!(!meets(store(0), load_of(8, DATA)));
}

#[test]
fn a_gathers_pair_in_one_flow_is_checked_as_a_whole_line() {
    let at = |offsets: [u64; 2]| std::array::from_fn(|i| offsets.get(i).map(|o| DATA + o));
    assert!(meets(str(1, 9, DATA + 240), gather(3, 2, 4, 0, at([0, 64]))));
    assert!(!meets(str(1, 9, DATA + 240), gather(3, 2, 4, 0, at([0, 128]))), "two flows");
    assert!(!meets(str(1, 9, DATA + 256), gather(3, 2, 4, 0, at([0, 64]))), "another line");
}

#[test]
fn vector_elements_under_four_bytes_are_checked_in_units_of_four() {
    let bytes = |addr| {
        let load = op("sve:LD1B (scalar plus immediate)").based(&[x(2), p(0)]).writes(&[z(3)]);
        load.masked(Access::Load, 1, addr, u64::MAX)
    };
    assert!(meets(str_bytes(1, 9, 1, DATA), bytes(DATA + 1)), "bytes 1 to 64");
    assert!(meets(str_bytes(1, 9, 1, DATA + 67), bytes(DATA + 1)));
    assert!(!meets(str_bytes(1, 9, 1, DATA + 68), bytes(DATA + 1)));
    assert!(!meets(str_bytes(1, 9, 1, DATA), load_of(2, DATA + 1)), "scalars are checked by bytes");
}

#[test]
fn structures_are_checked_as_whole_lines() {
    let load = |addr| structures("sve:LD2D (scalar plus immediate)", Access::Load, 2, 8, 3, 2, addr);
    assert!(meets(str(1, 9, DATA + 248), load(DATA)), "128 bytes, in the line of the store");
    assert!(!meets(str(1, 9, DATA + 256), load(DATA)));
    assert!(meets(str(1, 9, DATA + 504), load(DATA + 192)), "two lines");
}

#[test]
fn structures_of_short_vectors_are_checked_as_ones_of_sixty_four_bytes() {
    let mut spec = machine();
    spec.tables.clock.vector_bits = 128;
    let load = |addr| {
        let mut load = structures("sve:LD2D (scalar plus immediate)", Access::Load, 2, 8, 3, 2, addr);
        load.info.mem.as_mut().expect("a load").bytes = 32;
        load
    };
    // 32 bytes are read, but 128 are checked, and they reach the next line.
    assert!(interlocks(&mut Rig::cached(spec.clone()), str(1, 9, DATA + 256), load(DATA + 192)) > 0);
    assert_eq!(interlocks(&mut Rig::cached(spec), str(1, 9, DATA + 256), load(DATA + 128)), 0);
}

/// The machine, with stores that are written in W5 whether others could merge with them or not.
fn without_merge_wait() -> fxscope_machine::Spec {
    let mut spec = machine();
    spec.tables.load_store.merge_wait = 0;
    spec
}

/// Two pages apart: the compared bits are the same.
const ALIAS: u64 = 2 * 4096;

#[test]
fn a_load_across_a_page_is_checked_by_the_bits_within_a_page() {
    assert!(meets(str(1, 9, DATA + ALIAS), ld1d(3, 2, 0, DATA + 4096 - 8)));
    assert!(!meets(str(1, 9, DATA + ALIAS), ld1d(3, 2, 0, DATA + 4096 - 64)));
    assert!(!meets(str(1, 9, DATA + ALIAS), load_of(8, DATA)), "one that stays within its page is checked in full");
}

#[test]
fn a_load_that_meets_a_store_in_the_pipes_is_checked_by_the_bits_within_a_page() {
    let spec = without_merge_wait();
    let (s, ls) = (&spec.stages, &spec.load_store);
    let count = |multiplications| {
        let program = behind(str(1, 9, DATA + ALIAS), load_of(8, DATA), multiplications);
        Rig::cached(without_merge_wait()).count(&program).1.get(Signal::L1PipeAbortStldIntlk)
    };
    // The store's access has no more than those bits at first, and its write from W5 on.
    let [access, write] = [0, s.commit_short + ls.store_write].map(|from| from..from + ls.partial_address_stages);
    assert!(access.contains(&lead(&spec, 0)) && write.contains(&period(&spec)));
    assert_eq!(count(0), 2, "once for the access, and when it comes again, for the write");
    assert!(!access.contains(&lead(&spec, 1)) && !write.contains(&lead(&spec, 1)));
    assert_eq!(count(1), 0);
    assert!(write.contains(&lead(&spec, 2)));
    assert_eq!(count(2), 1);
}

#[test]
fn a_load_behind_a_store_whose_line_is_missing_waits_for_that_line_when_their_places_in_a_page_meet() {
    let mut rig = Rig::cached(without_merge_wait());
    let missing = DATA + 7 * ALIAS;
    let alone = rig.time(&behind(str(1, 9, missing), load_of(8, DATA + 64), 6));
    let mut rig = Rig::cached(without_merge_wait());
    let (cycles, counts) = rig.count(&behind(str(1, 9, missing), load_of(8, DATA), 6));
    assert_eq!(
        counts.get(Signal::L1PipeAbortStldIntlk),
        2,
        "again when the line is there, and meets the store's write"
    );
    assert!(cycles > alone + rig.spec.l2_timing.hit_nearest);
}
