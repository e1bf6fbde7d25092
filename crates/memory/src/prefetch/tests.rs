//! Which lines the prefetcher requests.

use super::*;

use crate::pointer::Pointer;
use fxscope_machine::spec::StreamReplacement;

const PLAIN: Steering = Steering::NONE;

pub(super) fn spec(l1_lines: u32, l2_lines: u32) -> PrefetchSpec {
    PrefetchSpec {
        policy: PrefetchPolicy::Stream,
        l1: true,
        l2: true,
        queue: 16,
        replacement: StreamReplacement::Fifo,
        l1_lines,
        l2_lines,
        ramp_lines: 2,
        l2_stop_hits: 0,
        tagged_pointers: true,
        ports: 12,
    }
}

const SHIFT: u32 = 8;

fn prefetcher(l1_lines: u32, l2_lines: u32) -> Prefetcher {
    Prefetcher::new(&spec(l1_lines, l2_lines), SHIFT)
}

/// An access to `addr`.
fn demand(p: &mut Prefetcher, addr: u64, missed: bool, steering: Steering) -> Option<Requests> {
    p.access(Access { addr, missed, steering })
}

/// A miss on `line` that no entry expects.
fn missed(p: &mut Prefetcher, line: u64, steering: Steering) {
    assert_eq!(demand(p, line << SHIFT, true, steering), None);
}

/// The first use of a line that has been prefetched.
fn used(p: &mut Prefetcher, line: u64, steering: Steering) -> Option<Requests> {
    demand(p, line << SHIFT, false, steering)
}

fn lines(r: &Requests, run: Run) -> Vec<u64> {
    (0..i64::from(run.count)).map(|i| run.first.wrapping_add_signed(r.step * i)).collect()
}

#[test]
fn addresses_follow_the_documented_table_for_distances_of_ten_and_four_lines() {
    // Hit on A+k: lines asked for in L2 and in L1, relative to A.
    let table: &[(u64, &[u64], &[u64])] = &[
        (1, &[2, 3], &[]),
        (2, &[4, 5], &[2, 3]),
        (3, &[6, 7], &[4, 5]),
        (4, &[8, 9], &[6, 7]),
        (5, &[10, 11], &[8, 9]),
        (6, &[12, 13], &[10]),
        (7, &[14, 15], &[11]),
        (8, &[16, 17], &[12]),
        (9, &[18, 19], &[13]),
        (10, &[20], &[14]),
        (11, &[21], &[15]),
        (12, &[22], &[16]),
        (13, &[23], &[17]),
        (14, &[24], &[18]),
        (15, &[25], &[19]),
    ];
    let a = 1000;
    let mut p = prefetcher(4, 10);
    missed(&mut p, a, PLAIN);
    for &(k, l2, l1) in table {
        let r = used(&mut p, a + k, PLAIN).expect("expected line");
        let behind = |run| lines(&r, run).iter().map(|line| line - a).collect::<Vec<_>>();
        assert_eq!(behind(r.l2), l2, "L2 at A+{k}");
        assert_eq!(behind(r.l1), l1, "L1 at A+{k}");
    }
}

#[test]
fn a_descending_stream_is_followed_downwards() {
    let mut p = prefetcher(4, 10);
    missed(&mut p, 1000, PLAIN);
    let r = used(&mut p, 999, PLAIN).expect("expected");
    assert_eq!(lines(&r, r.l2), [998, 997]);
    let r = used(&mut p, 998, PLAIN).expect("expected");
    assert_eq!((lines(&r, r.l2), lines(&r, r.l1)), (vec![996, 995], vec![998, 997]));
}

#[test]
fn a_stream_that_has_a_direction_is_not_continued_by_the_lines_behind_it() {
    let mut p = prefetcher(4, 10);
    missed(&mut p, 1000, PLAIN);
    assert!(used(&mut p, 1001, PLAIN).is_some());
    assert!([1000, 1001, 999].iter().all(|&line| used(&mut p, line, PLAIN).is_none()));
    assert!(used(&mut p, 1002, PLAIN).is_some());
}

#[test]
fn an_injected_stream_expects_one_line_only() {
    let mut p = strided(5, true);
    let stream = steering(13);
    let a = 0x10_0000;
    assert_eq!(demand(&mut p, a, true, stream), None, "the miss registers A+512");
    assert_eq!(demand(&mut p, a, false, stream), None, "two lines before");
    assert_eq!(demand(&mut p, a + 1_024, false, stream), None, "two lines behind");
    assert!(demand(&mut p, a + 512, false, stream).is_some());
}

#[test]
fn the_seventeenth_stream_takes_the_place_of_the_first() {
    let mut p = prefetcher(4, 10);
    for i in 1..18 {
        missed(&mut p, i * 1000, PLAIN);
    }
    assert!(used(&mut p, 1001, PLAIN).is_none());
    assert!(used(&mut p, 2001, PLAIN).is_some());
}

/// How many of `streams` streams, which come in turns, are expected when they come again, in percent.
fn followed(replacement: StreamReplacement, streams: u64) -> u64 {
    let mut p = Prefetcher::new(&PrefetchSpec { replacement, ..spec(4, 10) }, SHIFT);
    let (warm, turns) = (200, 1_000);
    let mut expected = 0;
    for turn in 0..warm + turns {
        for stream in 0..streams {
            let requests = demand(&mut p, (stream * 1_000_000 + turn) << SHIFT, true, PLAIN);
            expected += u64::from(turn >= warm && requests.is_some());
        }
    }
    100 * expected / (turns * streams)
}

#[test]
fn with_random_replacement_a_few_streams_too_many_cost_few_of_the_others() {
    use StreamReplacement::{Fifo, Random};
    assert_eq!([16, 17, 19].map(|streams| followed(Fifo, streams)), [100, 0, 0], "each takes the next one's place");
    // A stream in the queue stays for a turn with the probability (15/16)^m when m streams miss in a turn; when it has
    // missed it comes into the queue. The share f of expected streams solves f = (15/16)^(n (1 - f)).
    for streams in [17, 19] {
        let next = |f: f64| (15.0_f64 / 16.0).powf(streams as f64 * (1.0 - f));
        let f = (0..1_000).fold(0.9, |f, _| next(f));
        let got = followed(Random, streams) as f64 / 100.0;
        assert!((got - f).abs() < 0.1, "{streams}: {got} for {f}");
    }
}

#[test]
fn the_lower_bits_of_addresses_do_not_matter_to_a_stream() {
    let mut p = prefetcher(4, 10);
    assert_eq!(demand(&mut p, (1000 << SHIFT) + 248, true, PLAIN), None);
    assert!(demand(&mut p, (1001 << SHIFT) + 7, true, PLAIN).is_some());
    assert!(demand(&mut p, (1002 << SHIFT) + 100, true, PLAIN).is_some());
}

#[test]
fn a_use_of_a_line_that_did_not_miss_starts_no_stream() {
    let mut p = prefetcher(4, 10);
    for line in 1000..1003 {
        assert!(used(&mut p, line, PLAIN).is_none());
    }
}

#[test]
fn a_stream_through_pointers_that_switch_prefetching_off_is_not_followed() {
    let off = steering(6);
    let mut p = prefetcher(4, 10);
    missed(&mut p, 1000, off);
    assert!((1001..1003).all(|line| used(&mut p, line, PLAIN).is_none()), "it was not registered");
    missed(&mut p, 2000, PLAIN);
    assert!(used(&mut p, 2001, off).is_none());
    let no_l2 = steering(2);
    let r = used(&mut p, 2001, no_l2).expect("registered");
    assert_eq!((r.l1.count, r.l2.count), (0, 0), "L1 starts with the second hit");
    let r = used(&mut p, 2002, no_l2).expect("followed");
    assert_eq!((r.l1.count, r.l2.count), (2, 0));
}

#[test]
fn a_distance_of_no_lines_switches_a_level_off() {
    let mut p = prefetcher(0, 10);
    missed(&mut p, 1000, PLAIN);
    let all: Vec<_> = (1001..1010).filter_map(|line| used(&mut p, line, PLAIN)).collect();
    assert!(all.iter().all(|r| r.l1.count == 0) && all.iter().any(|r| r.l2.count > 0));
}

/// The farthest lines that a stream asks for, ahead of its access, once its distances have grown.
fn reach(registers: &Registers) -> (u64, u64) {
    let mut p = prefetcher(6, 40);
    p.set_registers(registers);
    missed(&mut p, 1000, PLAIN);
    let all: Vec<_> = (1001..1100).filter_map(|line| Some((line, used(&mut p, line, PLAIN)?))).collect();
    let (line, last) = all.last().expect("followed");
    assert_eq!((last.l1.count, last.l2.count), (1, 1), "one line each in the end");
    (last.l1.first - line, last.l2.first - line)
}

#[test]
fn the_stream_register_sets_how_far_ahead_a_stream_prefetches() {
    let set = |stream_detect| Registers { stream_detect, ..Registers::default() };
    assert_eq!(reach(&set(0)), (6, 40));
    assert_eq!(reach(&set(1 << 63 | 4 << 24 | 3 << 16)), (4, 12));
    assert_eq!(reach(&set(1 << 63 | 15 << 24 | 15 << 16)), (15, 60));
}

#[test]
fn a_distance_that_is_shortened_holds_for_streams_that_run_already() {
    let mut p = prefetcher(6, 40);
    missed(&mut p, 1000, PLAIN);
    for line in 1001..1050 {
        used(&mut p, line, PLAIN);
    }
    p.set_registers(&Registers { stream_detect: 1 << 63 | 2 << 24 | 1 << 16, ..Registers::default() });
    let r = used(&mut p, 1050, PLAIN).expect("followed");
    assert_eq!((r.l1.count, r.l2.count), (0, 0), "all asked for already");
    let lines: u64 = (1051..1200).filter_map(|line| Some(u64::from(used(&mut p, line, PLAIN)?.l2.count))).sum();
    // L2 lines up to 1049 + 40 are there; from 1051 to 1199 the stream must be 4 lines ahead.
    assert_eq!(lines, 1199 + 4 - (1049 + 40));
}

// ---- injection ----

fn steering(pf_func: u64) -> Steering {
    Pointer::from(pf_func << 60).steering
}

/// The manual's example of a stride of 512 bytes, in register pair `n`: table 11-4, with or without the queue.
fn strided(n: usize, allocate: bool) -> Prefetcher {
    let mut registers = Registers::default();
    registers.injection_ctrl[n] = 1 << 63 | u64::from(allocate) << 60 | 512;
    registers.injection_distance[n] = 1_024 << 32 | 10_240;
    let mut p = prefetcher(4, 10);
    p.set_registers(&registers);
    p
}

#[test]
fn allocated_injection_prefetches_at_its_distances_from_each_address_that_the_offset_predicted() {
    let mut p = strided(5, true);
    let stream = steering(13);
    let a = 0x10_0000;
    assert_eq!(demand(&mut p, a, true, stream), None, "the miss registers A+512");
    for i in 1..20 {
        let at = a + i * 512;
        let r = demand(&mut p, at, i % 2 == 0, stream).expect("predicted");
        assert_eq!(lines(&r, r.l1), [(at + 1_024) >> SHIFT], "the distance does not grow");
        assert_eq!(lines(&r, r.l2), [(at + 10_240) >> SHIFT]);
        assert_eq!((r.mode, r.entry), (Mode::Allocate, Some(0)));
    }
    assert_eq!(demand(&mut p, a + 21 * 512, false, stream), None, "one was left out");
}

#[test]
fn allocated_injection_with_an_offset_below_a_line_expects_the_same_line_again_but_not_by_the_same_access() {
    let mut registers = Registers::default();
    registers.injection_ctrl[0] = 1 << 63 | 1 << 60 | 64;
    registers.injection_distance[0] = 256 << 32;
    let mut p = prefetcher(4, 10);
    p.set_registers(&registers);
    assert_eq!(demand(&mut p, 0x1000, true, steering(8)), None);
    for i in 1..10 {
        let r = demand(&mut p, 0x1000 + i * 64, false, steering(8)).expect("predicted");
        assert_eq!((lines(&r, r.l1), r.l2.count), (vec![(0x1000 + i * 64 + 256) >> SHIFT], 0));
    }
}

#[test]
fn unallocated_injection_prefetches_with_every_access_and_leaves_the_queue_alone() {
    let mut p = strided(0, false);
    missed(&mut p, 5000, PLAIN);
    for i in 0..40 {
        let at = 0x10_0000 + i * 3_000;
        let r = demand(&mut p, at, false, steering(8)).expect("every access");
        assert_eq!((r.l1.first, r.l2.first), ((at + 1_024) >> SHIFT, (at + 10_240) >> SHIFT));
        assert_eq!((r.l1.count, r.l2.count, r.mode, r.entry), (1, 1, Mode::NoAllocate, None));
    }
    assert!(used(&mut p, 5001, PLAIN).is_some(), "the stream is still there");
}

#[test]
fn injection_registers_that_are_not_valid_prefetch_nothing() {
    let mut p = strided(2, true);
    for line in 1000..1010 {
        assert_eq!(demand(&mut p, line << SHIFT, true, steering(8)), None, "pair 0 is not set");
    }
    assert!((1001..1011).all(|line| used(&mut p, line, steering(8)).is_none()), "none has registered its successor");
    assert!((1001..1011).all(|line| used(&mut p, line, PLAIN).is_none()), "in either mode");
}

#[test]
fn injection_goes_downwards_with_negative_offsets_and_distances() {
    let below = |bytes: i64| (bytes as u64) & 0x1ff_fffc;
    let mut registers = Registers::default();
    registers.injection_ctrl[1] = 1 << 63 | 1 << 60 | below(-4_096);
    registers.injection_distance[1] = below(-8_192) << 32 | below(-65_536);
    let mut p = prefetcher(4, 10);
    p.set_registers(&registers);
    let a = 0x100_0000;
    assert_eq!(demand(&mut p, a, true, steering(9)), None);
    let r = demand(&mut p, a - 4_096, true, steering(9)).expect("predicted");
    assert_eq!((r.l1.first, r.l2.first), ((a - 4_096 - 8_192) >> SHIFT, (a - 4_096 - 65_536) >> SHIFT));
}

#[test]
fn streams_of_different_injection_registers_and_detected_ones_do_not_continue_each_other() {
    let mut registers = Registers::default();
    for n in 0..2 {
        registers.injection_ctrl[n] = 1 << 63 | 1 << 60 | 256;
        registers.injection_distance[n] = 512 << 32;
    }
    let mut p = prefetcher(4, 10);
    p.set_registers(&registers);
    missed(&mut p, 1000, steering(8));
    assert!(used(&mut p, 1001, steering(9)).is_none());
    assert!(used(&mut p, 1001, PLAIN).is_none());
    assert!(used(&mut p, 1001, steering(8)).is_some());
}

#[test]
fn without_tagged_pointers_injection_is_an_ordinary_stream() {
    let mut p = Prefetcher::new(&PrefetchSpec { tagged_pointers: false, ..spec(4, 10) }, SHIFT);
    assert!(!p.watches(steering(8)));
    missed(&mut p, 1000, steering(8));
    assert_eq!(used(&mut p, 1001, PLAIN).map(|r| r.mode), Some(Mode::Stream));
}

#[test]
fn each_level_has_its_own_reliableness() {
    let mut p = prefetcher(4, 10);
    p.set_registers(&Registers { stream_detect: 1 << 63 | 1 << 54, ..Registers::default() });
    missed(&mut p, 1000, PLAIN);
    let r = used(&mut p, 1001, PLAIN).expect("followed");
    assert_eq!((r.l1.reliableness, r.l2.reliableness), (Reliableness::Strong, Reliableness::Weak));
}

// ---- next line ----

fn next_line(spec: PrefetchSpec) -> Prefetcher {
    Prefetcher::new(&PrefetchSpec { policy: PrefetchPolicy::NextLine, ..spec }, SHIFT)
}

#[test]
fn next_line_prefetches_the_line_after_each_miss_and_after_each_prefetched_line_that_is_used() {
    let mut p = next_line(spec(4, 10));
    for (line, miss) in [(1000, true), (1001, false), (5000, true), (999, true), (1000, true)] {
        let r = demand(&mut p, (line << SHIFT) + 100, miss, PLAIN).expect("every access that it is shown");
        assert_eq!((lines(&r, r.l1), r.l2.count, r.entry), (vec![line + 1], 0, None), "whatever came before");
    }
}

#[test]
fn next_line_prefetches_into_l2_where_l1_is_switched_off() {
    let mut p = next_line(PrefetchSpec { l1: false, ..spec(4, 10) });
    let r = demand(&mut p, 1000 << SHIFT, true, PLAIN).expect("into L2");
    assert_eq!((r.l1.count, lines(&r, r.l2)), (0, vec![1001]));
    let mut p = next_line(spec(4, 10));
    let r = demand(&mut p, 1000 << SHIFT, true, steering(4)).expect("the pointer allows L2");
    assert_eq!((r.l1.count, lines(&r, r.l2)), (0, vec![1001]));
    assert_eq!(demand(&mut p, 1000 << SHIFT, true, steering(6)), None, "the pointer allows neither");
    p.set_registers(&Registers { stream_detect: 1 << 63 | 1 << 59 | 1 << 58, ..Registers::default() });
    assert_eq!(demand(&mut p, 1000 << SHIFT, true, PLAIN), None, "the register allows neither");
}

#[test]
fn next_line_has_no_distances_and_no_injection_mode() {
    let mut p = next_line(spec(0, 0));
    assert!(demand(&mut p, 1000 << SHIFT, true, PLAIN).is_some_and(|r| r.l1.count == 1));
    assert!(!p.watches(steering(8)));
    assert_eq!(demand(&mut p, 1000 << SHIFT, true, steering(8)), None);
}
