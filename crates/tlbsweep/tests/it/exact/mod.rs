//! One pass counts what separate simulations of each assignment count.

mod plain;
mod streams;

use fxscope_memory::tlb::Tlb;
use fxscope_tlbsweep::{Access, Analysis, Arrangement, Counts, Replacement, SweepOptions, SweepResults, TlbConfig};
use proptest::prelude::*;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Page sizes of A64FX.
const SIZES: [u64; 5] = [4 * KIB, 64 * KIB, 2 * MIB, 32 * MIB, 1024 * MIB];
/// Page sizes of the K computer.
const K_SIZES: [u64; 4] = [8 * KIB, 4 * MIB, 32 * MIB, 256 * MIB];

fn a64fx() -> TlbConfig {
    TlbConfig::of(&fxscope_machine::load("a64fx", &[]).expect("built in").tables.tlb)
}

fn k_computer(served: &[u64]) -> TlbConfig {
    TlbConfig {
        entries: 16,
        replacement: Replacement::Lru,
        set_entries: 256,
        ways: 2,
        arrangement: Arrangement::SplitBySize(served.to_vec()),
    }
}

/// Designs so small that short streams overflow them in every way.
fn small() -> impl Strategy<Value = TlbConfig> {
    let arrangement = prop_oneof![
        Just(Arrangement::TwoLevel),
        Just(Arrangement::SplitBySize(vec![64 * KIB])),
        Just(Arrangement::SplitBySize(vec![4 * KIB, 2 * MIB])),
        Just(Arrangement::SplitBySize(Vec::new())),
    ];
    let replacement = prop_oneof![Just(Replacement::Fifo), Just(Replacement::Lru)];
    (1usize..9, replacement, 0u32..4, 1usize..5, arrangement).prop_map(
        |(entries, replacement, log_sets, ways, arrangement)| TlbConfig {
            entries,
            replacement,
            set_entries: ways << log_sets,
            ways,
            arrangement,
        },
    )
}

/// Two-level designs whose first level misses often, with 4-way second-level sets.
fn before_sets_of_four() -> impl Strategy<Value = TlbConfig> {
    (3usize..17, 0u32..9).prop_map(|(entries, log_sets)| TlbConfig { entries, set_entries: 4 << log_sets, ..a64fx() })
}

/// TLBs of the timing model: two-level or split by page size, with either replacement policy.
fn model() -> impl Strategy<Value = [(&'static str, &'static str); 4]> {
    let only = prop_oneof![Just("[]"), Just("[64KiB]"), Just("[4KiB, 2MiB]")];
    let entries = prop_oneof![Just(("16", "64")), Just(("4", "8"))];
    (only, prop_oneof![Just("lru"), Just("fifo")], entries).prop_map(|(only, replacement, (first, second))| {
        [
            ("tlb.l2_only_sizes", only),
            ("tlb.l1_replacement", replacement),
            ("tlb.l1_entries", first),
            ("tlb.l2_entries", second),
        ]
    })
}

fn options(sizes: &[u64], segments: usize) -> SweepOptions {
    SweepOptions {
        sizes: sizes.to_vec(),
        segments,
        allowed: Vec::new(),
        max_classes: 1_000_000,
        keep: Vec::new(),
        costs: [1, 10],
    }
}

fn analysed(config: &TlbConfig, options: &SweepOptions, stream: &[Access]) -> SweepResults {
    let mut analysis = Analysis::new(config, options).expect("fits");
    analysis.accesses(stream);
    analysis.finish()
}

fn simulated(config: &TlbConfig, sizes: &[u64], assignment: &[usize], stream: &[Access]) -> Counts {
    let sizes: Vec<u64> = assignment.iter().map(|&size| sizes[size]).collect();
    plain::simulate(config, &sizes, stream)
}

/// Compares every `step`th assignment.
fn compare(config: &TlbConfig, options: &SweepOptions, stream: &[Access], step: usize) -> Result<(), TestCaseError> {
    let results = analysed(config, options, stream);
    for assignment in results.assignments().step_by(step) {
        let expected = simulated(config, &options.sizes, &assignment, stream);
        prop_assert_eq!(results.counts(&assignment), Ok(expected), "{:?}", assignment);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn small_tlbs_match_under_every_assignment(config in small(), stream in streams::stream(3)) {
        compare(&config, &options(&SIZES[..4], 3), &stream, 1)?;
    }

    #[test]
    fn a64fx_tlbs_match_with_five_sizes_and_six_segments(stream in streams::stream(6), from in 0usize..97) {
        let options = options(&SIZES, 6);
        compare(&a64fx(), &options, &stream, 97 + from)?;
    }

    #[test]
    fn k_computer_tlbs_match_with_any_size_in_the_set_associative_tlb(stream in streams::stream(6), served in 0usize..4) {
        compare(&k_computer(&K_SIZES[served..=served]), &options(&K_SIZES, 6), &stream, 41)?;
    }

    #[test]
    fn segments_use_only_their_allowed_sizes(
        config in prop_oneof![Just(a64fx()), small()], stream in streams::stream(4),
        masks in prop::collection::vec(1u8..16, 4)
    ) {
        let options = SweepOptions { allowed: masks.clone(), ..options(&SIZES[..4], 4) };
        let results = analysed(&config, &options, &stream);
        let possible: u32 = masks.iter().map(|mask| mask.count_ones()).product();
        prop_assert_eq!(results.assignments().count(), possible as usize);
        for assignment in results.assignments() {
            prop_assert_eq!(results.counts(&assignment), Ok(simulated(&config, &SIZES[..4], &assignment, &stream)));
        }
        let refused = masks.iter().position(|mask| *mask != 15);
        if let Some(segment) = refused {
            let mut other = results.assignments().next().expect("one");
            other[segment] = (!masks[segment]).trailing_zeros() as usize;
            prop_assert!(results.counts(&other).is_err());
        }
    }

    #[test]
    fn twelve_segments_with_two_sizes_each_match(stream in streams::stream(12), from in 0usize..61) {
        compare(&a64fx(), &options(&SIZES[1..3], 12), &stream, 61 + from)?;
    }

    #[test]
    fn dropped_assignments_have_lower_bounds_and_kept_ones_exact_counts(
        config in prop_oneof![Just(a64fx()), small()], stream in streams::stream(4),
        max_classes in 4usize..40, kept in 0usize..256
    ) {
        let sizes = &SIZES[..4];
        let kept: Vec<usize> = (0..4).map(|segment| kept >> (2 * segment) & 3).collect();
        let options = SweepOptions { max_classes, keep: vec![kept.clone(), vec![0; 4]], ..options(sizes, 4) };
        let results = analysed(&config, &options, &stream);
        prop_assert!(results.classes() <= max_classes);
        for assignment in results.assignments().step_by(3) {
            let found = results.counts(&assignment).expect("fits");
            let all = simulated(&config, sizes, &assignment, &stream);
            if found.exact {
                prop_assert_eq!(found, all);
            }
            let none_above = |found: &[u64], all: &[u64]| found.iter().zip(all).all(|(found, all)| found <= all);
            prop_assert!(none_above(&found.first, &all.first) && none_above(&found.walks, &all.walks));
            prop_assert!(found.exact || !options.keep.contains(&assignment));
        }
    }

    #[test]
    fn counts_match_the_tlb_of_the_timing_model(
        stream in streams::stream(6),
        number in 0usize..15_625,
        settings in model(),
    ) {
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let spec = fxscope_machine::load("a64fx", &settings).expect("fits").tables.tlb;
        let results = analysed(&TlbConfig::of(&spec), &options(&SIZES, 6), &stream);
        let assignment = results.assignments().nth(number).expect("one of 5^6");
        let mut tlb = Tlb::new(&spec);
        let mut counts = Counts { exact: true, ..Counts::default() };
        for &Access { addr, segment } in &stream {
            let shift = SIZES[assignment[usize::from(segment)]].trailing_zeros();
            if tlb.hit(addr).is_some() {
                continue;
            }
            counts.first[usize::from(segment)] += 1;
            if tlb.second_level::<true>(addr, shift, 0).is_err() {
                counts.second[usize::from(segment)] += 1;
                tlb.insert(addr, shift, 0, 0);
            }
        }
        counts.walks = counts.second;
        let found = results.counts(&assignment).expect("fits");
        if spec.l2_only_sizes.is_empty() {
            prop_assert_eq!(found, counts);
        } else {
            prop_assert_eq!(found.walks, counts.walks);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn long_phases_of_misses_and_hits_match(
        config in prop_oneof![Just(a64fx()), Just(k_computer(&[64 * KIB])), Just(k_computer(&[])), small()],
        stream in streams::phases(3),
    ) {
        compare(&config, &options(&SIZES[..4], 3), &stream, 1)?;
    }

    #[test]
    fn long_phases_match_with_more_classes_than_fit_into_a_group(
        config in prop_oneof![Just(a64fx()), Just(k_computer(&[64 * KIB])), small()],
        stream in streams::phases(5),
        from in 0usize..13,
    ) {
        compare(&config, &options(&SIZES[..4], 5), &stream, 31 + from)?;
    }

    #[test]
    fn phases_of_gathers_match(config in before_sets_of_four(), stream in streams::gathers(4), from in 0usize..13) {
        compare(&config, &options(&SIZES[..4], 4), &stream, 17 + from)?;
    }
}

#[test]
fn long_streams_processed_by_several_workers_match() {
    let streams = [
        streams::gather(300_000),
        streams::anywhere(200_000),
        [streams::gather(40_000), streams::anywhere(90_000)].concat(),
    ];
    for (config, sizes) in [(a64fx(), &SIZES[..]), (k_computer(&[4 * MIB]), &K_SIZES[..])] {
        for stream in &streams {
            compare(&config, &options(sizes, 3), stream, 7).expect("as simulated");
        }
    }
}

#[test]
fn segments_that_fit_into_one_page_of_every_size_do_not_split_classes_of_a_gather() {
    // Two sizes for each of 27 more segments give too many assignments to enumerate, but they miss together.
    let beside = |i: usize| Access { addr: streams::base((3 + i % 27) as u8), segment: (3 + i % 27) as u8 };
    let stream = streams::gather(60_000);
    let with_others = stream.chunks(64).enumerate().map(|(i, part)| [part, &[beside(i)]].concat());
    let stream = with_others.collect::<Vec<Vec<Access>>>().concat();
    let options = options(&SIZES[1..3], 30);
    let results = analysed(&a64fx(), &options, &stream);
    for assignment in [[0; 30], [1; 30], std::array::from_fn(|segment| segment % 2)] {
        let expected = simulated(&a64fx(), &options.sizes, &assignment, &stream);
        assert_eq!(results.counts(&assignment), Ok(expected));
    }
}

#[test]
fn classes_that_remain_after_workers_drop_others_are_exact() {
    let stream = streams::gather(300_000);
    for max_classes in [9, 20, 60] {
        let options = SweepOptions { max_classes, keep: vec![vec![0; 3], vec![3; 3]], ..options(&SIZES, 3) };
        let results = analysed(&a64fx(), &options, &stream);
        assert!(results.classes() <= max_classes);
        let mut exact = 0;
        for assignment in results.assignments().step_by(4).chain(options.keep.clone()) {
            let found = results.counts(&assignment).expect("fits");
            let all = simulated(&a64fx(), &SIZES, &assignment, &stream);
            assert!(if found.exact {
                found == all
            } else {
                found.walks.iter().zip(all.walks).all(|(found, all)| *found <= all)
            });
            assert!(found.exact || !options.keep.contains(&assignment));
            exact += usize::from(found.exact);
        }
        assert!(exact >= 2);
    }
}

#[test]
fn segments_within_one_page_of_every_size_form_one_class() {
    let stream: Vec<Access> =
        (0..600u64).map(|i| Access { addr: streams::base((i % 6) as u8) + i, segment: (i % 6) as u8 }).collect();
    let results = analysed(&a64fx(), &options(&SIZES, 6), &stream);
    assert_eq!(results.classes(), 1);
    let counts = results.counts(&[0, 1, 2, 3, 4, 0]).expect("fits");
    assert_eq!((&counts.first[..6], &counts.walks[..6]), (&[1; 6][..], &[1; 6][..]));
}

#[test]
fn sizes_that_a_segment_is_not_allowed_do_not_affect_its_sets() {
    // One of the two 4 KiB pages would map to the set of the 2 MiB page around them, the other would not.
    let stream = [0, 4 * KIB].map(|offset| Access { addr: 1 << 40 | offset, segment: 0 });
    let config =
        TlbConfig { set_entries: 4, ways: 2, arrangement: Arrangement::SplitBySize(vec![4 * KIB, 2 << 20]), ..a64fx() };
    for stream in [stream, [stream[1], stream[0]]] {
        let results = analysed(&config, &SweepOptions { allowed: vec![4], ..options(&SIZES, 1) }, &stream);
        assert_eq!(results.counts(&[2]).expect("fits").walks[0], 1);
    }
}

#[test]
fn a_sweep_misses_once_per_page() {
    let stream: Vec<Access> = (0..1 << 16).map(|i| Access { addr: 1 << 40 | i << 12, segment: 0 }).collect();
    let results = analysed(&a64fx(), &options(&SIZES, 1), &stream);
    let misses = |size: usize| results.counts(&[size]).expect("fits").walks[0];
    assert_eq!([0, 1, 2, 3, 4].map(misses), [65_536, 4_096, 128, 8, 1]);
}

#[test]
fn unsupported_questions_are_refused_with_the_supported_range() {
    let message = |config: &TlbConfig, options: &SweepOptions| {
        Analysis::new(config, options).err().map(|e| e.to_string()).unwrap_or_default()
    };
    let good = options(&SIZES, 2);
    let with = |change: fn(&mut SweepOptions)| {
        let mut options = good.clone();
        change(&mut options);
        message(&a64fx(), &options)
    };
    assert!(with(|q| q.sizes = vec![65_536, 4_096]).contains("ascending powers of two"));
    assert!(with(|q| q.sizes = vec![1; 9]).contains("1 to 8"));
    assert!(with(|q| q.sizes.clear()).contains("1 to 8"));
    assert!(with(|q| q.allowed = vec![0]).contains("segment 0 is allowed none of the page sizes"));
    assert!(with(|q| q.segments = 33).contains("1 to 32 segments, not 33"));
    assert!(with(|q| q.keep = vec![vec![0, 5]]).contains("[0, 5]"));
    assert!(
        with(|q| (q.keep, q.max_classes) = (vec![vec![0, 0]], 1)).contains("must exceed the number of assignments")
    );
    assert!(message(&TlbConfig { entries: 0, ..a64fx() }, &good).contains("1 to 256 entries, not 0"));
    assert!(message(&TlbConfig { ways: 3, ..a64fx() }, &good).contains("sets a power of two"));
    assert!(message(&k_computer(&[7]), &good).contains("7 bytes"));
    let results = analysed(&a64fx(), &good, &[]);
    assert!(results.counts(&[0]).is_err() && results.counts(&[0, 5]).is_err() && results.counts(&[4, 4]).is_ok());
}

/// Takes a minute of processor time.
mod slow {
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        #[ignore = "make slow-test runs it"]
        fn classes_dropped_in_bulk_mode_have_lower_bounds(stream in streams::phases(4), max_classes in 4usize..40) {
            let options = SweepOptions { max_classes, keep: vec![vec![0; 4]], ..options(&SIZES[..4], 4) };
            let results = analysed(&a64fx(), &options, &stream);
            prop_assert!(results.classes() <= max_classes);
            for assignment in results.assignments().step_by(3) {
                let found = results.counts(&assignment).expect("fits");
                let all = simulated(&a64fx(), &SIZES[..4], &assignment, &stream);
                prop_assert!(found.walks.iter().zip(&all.walks).all(|(found, all)| found <= all));
                prop_assert!(!found.exact || found == all);
                prop_assert!(found.exact || assignment != [0; 4]);
            }
        }
    }
}
