//! The trace format: traces round-trip; damage is reported without a panic.

use fxscope_osnoise::trace::{
    Cause, CoreHeader, Detour, Error, Header, Item, Kind, MAGIC, Method, Reader, Summary, Writer, bin, bin_begin,
};
use proptest::prelude::*;

fn header() -> Header {
    Header {
        host: "node".to_owned(),
        kernel: "Linux 6.1".to_owned(),
        processor: "A64FX".to_owned(),
        virtual_machine: Some(false),
        method: Method::Spin,
        program: "fxscope".to_owned(),
        clock: "CNTVCT_EL0".to_owned(),
        clock_hz: 1e8,
        quantum: 0,
        threshold: 1000,
        wanted: 1_000_000_000,
        monotonic_start: 7,
        unix_start: 8,
        priority: None,
        overhead: None,
        cores: vec![CoreHeader { core: 3, minimum: 10.0 }],
        notes: vec!["a note".to_owned()],
    }
}

type Pushed = (u32, u64, u64, usize);

fn causes() -> Vec<Cause> {
    vec![
        Cause::unknown(),
        Cause::new(Kind::Interrupt, "local_timer:236"),
        Cause::new(Kind::KernelThread, "kworker/0:1"),
        Cause::new(Kind::Task, "\u{1b}[31m\""),
    ]
}

/// A trace of detours (core, time since the previous one, length, cause), and the expected contents.
fn written(pushed: &[Pushed], end: bool) -> (Vec<u8>, Vec<(u32, Detour, Cause)>) {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, &header()).expect("to memory");
    let mut now = std::collections::BTreeMap::new();
    let mut expected = Vec::new();
    for (i, &(core, since, length, cause)) in pushed.iter().enumerate() {
        let start = now.entry(core).or_insert(0u64);
        *start += since;
        let cause = &causes()[cause];
        let detour = Detour { start: *start, length, cause: writer.cause(cause) };
        writer.push(core, detour).expect("to memory");
        expected.push((core, detour, cause.clone()));
        if i % 7 == 6 {
            writer.flush().expect("to memory");
        }
    }
    let summary = Summary { duration: 5, ..Summary::default() };
    if end {
        writer.finish(&summary).expect("to memory");
    } else {
        writer.flush().expect("to memory");
        drop(writer);
    }
    (out, expected)
}

type Read = (Vec<(u32, Detour, Cause)>, Result<Option<Item>, Error>);

/// All detours, and how the trace ended.
fn read(bytes: &[u8]) -> Result<Read, Error> {
    let mut reader = Reader::new(bytes)?;
    let mut found = Vec::new();
    loop {
        match reader.next_item() {
            Ok(Some(Item::Detours(core, detours))) => {
                let named = |detour: Detour| (core, detour, reader.causes()[detour.cause as usize].clone());
                found.extend(detours.into_iter().map(named));
            }
            other => return Ok((found, other)),
        }
    }
}

fn by_core(mut detours: Vec<(u32, Detour, Cause)>) -> Vec<(u32, Detour, Cause)> {
    detours.sort_by_key(|(core, ..)| *core);
    detours
}

fn pushed() -> impl Strategy<Value = Vec<Pushed>> {
    let length = prop_oneof![0..100_000u64, any::<u32>().prop_map(u64::from)];
    prop::collection::vec((0..5u32, 0..1u64 << 40, length, 0..4usize), 0..200)
}

proptest! {
    #[test]
    fn traces_round_trip(pushed in pushed()) {
        let (bytes, expected) = written(&pushed, true);
        let (found, end) = read(&bytes).expect("whole");
        prop_assert_eq!(by_core(found), by_core(expected));
        prop_assert!(matches!(end, Ok(Some(Item::End(summary))) if summary.duration == 5));
    }

    #[test]
    fn a_truncated_trace_gives_complete_blocks_and_reports_the_cut(pushed in pushed(), cut in 0.0..1.0f64) {
        let (bytes, expected) = written(&pushed, true);
        let cut = (bytes.len() as f64 * cut) as usize;
        match read(&bytes[..cut]) {
            Ok((found, end)) => {
                prop_assert!(matches!(end, Ok(Some(Item::CutOff))), "{:?}", end);
                for core in 0..5 {
                    let of = |all: &[(u32, Detour, Cause)]| all.iter().filter(|d| d.0 == core).cloned().collect::<Vec<_>>();
                    prop_assert!(of(&expected).starts_with(&of(&found)));
                }
            }
            Err(Error::Empty) => prop_assert_eq!(cut, 0),
            Err(Error::NoHeader) => prop_assert!(cut > 0),
            Err(other) => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn damage_is_reported_and_no_wrong_data_is_read(pushed in pushed(), at in any::<prop::sample::Index>(), flip in 1..=255u8) {
        let (mut bytes, expected) = written(&pushed, true);
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        if let Ok((found, end)) = read(&bytes) {
            prop_assert!(matches!(end, Err(Error::Damaged { .. }) | Ok(Some(Item::CutOff))), "{:?}", end);
            prop_assert!(found.iter().all(|detour| expected.contains(detour)));
        }
    }

    #[test]
    fn arbitrary_bytes_after_a_valid_start_do_not_panic(rest in prop::collection::vec(any::<u8>(), 0..300)) {
        let (mut bytes, _) = written(&[], false);
        bytes.extend(rest);
        let _ = read(&bytes);
    }

    #[test]
    fn a_time_lies_within_its_bin(time in 1..u64::MAX) {
        let bin = bin(time);
        // Bins hold whole ns: their edges are rounded.
        prop_assert!(bin_begin(bin) <= time as f64 * 1.0001 && time as f64 <= bin_begin(bin + 1) * 1.0001);
    }
}

#[test]
fn bins_start_at_powers_of_two() {
    for octave in 0..63 {
        assert_eq!(bin(1 << octave), octave * 4);
        if octave > 8 {
            assert_eq!(bin((1 << octave) - 1), octave * 4 - 1);
        }
    }
    assert_eq!(bin(0), 0);
}

#[test]
fn files_that_are_not_traces_are_distinguished() {
    let message = |bytes: &[u8]| Reader::new(bytes).err().expect("no trace").to_string();
    assert!(message(b"").starts_with("is empty"));
    assert!(message(b"# rtla").starts_with("is not a trace of fxscope jitter measure; convert other programs' files"));
    assert!(message(&MAGIC).starts_with("ends in its header"));
    let mut later = MAGIC.to_vec();
    later.push(9);
    assert!(message(&later).starts_with("is a trace of format 9, but this program reads format 1"));
}

#[test]
fn a_block_claiming_gigabytes_is_refused_before_allocation() {
    let (mut bytes, _) = written(&[], false);
    bytes.extend([3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    let (_, end) = read(&bytes).expect("a header");
    let Err(Error::Damaged { what, .. }) = end else { panic!("{end:?}") };
    assert_eq!(what, "a block above the maximum size");
}

#[test]
fn a_detour_of_a_busy_core_takes_few_bytes() {
    // A timer tick every ms of 2 to 6 µs, as on a quiet host with 1000 Hz.
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &header()).expect("to memory");
    for i in 0..20_000 {
        let detour = Detour { start: i * 1_000_000 + i % 64, length: 2_000 + i * 7919 % 4_000, cause: 0 };
        writer.push(0, detour).expect("to memory");
    }
    writer.finish(&Summary::default()).expect("to memory");
    assert!(bytes.len() < 20_000 * 6, "{} bytes for 20000 detours", bytes.len());
}
