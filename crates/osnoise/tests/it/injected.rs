//! Noise injected into a real measurement by a thread of higher priority on the same core. Requires the right to
//! real-time priorities and a core without other real-time threads, so it runs only on request: `make jitter-test`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fxscope_osnoise::measure::{self, Control, Plan, native};
use fxscope_osnoise::trace::{Detour, Header, Item, Method, Reader};

use crate::common;
use common::steal::{Taken, steal};

/// The trace's header and its detours, with starts in `CLOCK_MONOTONIC`.
fn detours(file: &[u8]) -> (Header, Vec<Detour>) {
    let mut reader = Reader::new(file).expect("a trace");
    let begin = reader.header().monotonic_start;
    let mut all = Vec::new();
    while let Some(item) = reader.next_item().expect("whole") {
        if let Item::Detours(_, some) = item {
            all.extend(some.into_iter().map(|detour| Detour { start: detour.start + begin, ..detour }));
        }
    }
    (reader.header().clone(), all)
}

/// The injected detours, each with the time that was actually taken. A detour starts with the piece of work or the
/// interval in which it was found.
fn injected(taken: &[Taken], detours: &[Detour], quantum: u64) -> Vec<(u64, u64)> {
    let real = |one: &Taken| one.to - one.from;
    let of = |one: &Taken| {
        // Much shorter or longer detours are the host's own.
        let near = |detour: &&Detour| (real(one) / 2..real(one) * 2).contains(&detour.length);
        let there =
            |detour: &&Detour| (detour.start.saturating_sub(SLACK)..detour.end() + quantum + SLACK).contains(&one.from);
        detours.iter().filter(near).filter(there).map(|detour| (real(one), detour.length)).collect::<Vec<_>>()
    };
    taken.iter().flat_map(of).collect()
}

/// Tolerance between two clocks, ns.
const SLACK: u64 = 20_000;

fn within_a_tenth(found: f64, real: f64) -> bool {
    (found / real - 1.0).abs() < 0.1
}

#[test]
#[ignore = "takes real-time priorities; make jitter-test runs it"]
fn injected_noise_is_found_with_its_rate_and_length() {
    let core = *native::allowed().expect("known").last().expect("a core");
    let length = Duration::from_millis(1);
    for (method, period) in [(Method::Spin, 20), (Method::Fwq, 25), (Method::Ftq, 30)] {
        let plan = Plan {
            method,
            cores: vec![core],
            duration: Duration::from_secs(4),
            quantum: None,
            threshold: Some(100_000),
            blocks: 1,
            priority: Some(20),
            system_clock: false,
        };
        let stop = AtomicBool::new(false);
        let mut file = Vec::new();
        let taken = std::thread::scope(|scope| {
            let go_on = || !stop.load(Ordering::Relaxed);
            let injecting = scope.spawn(move || steal(core, Duration::from_millis(period), length, go_on));
            measure::run(&plan, &mut file, Control::until(&AtomicBool::new(false))).expect("measurable as root");
            stop.store(true, Ordering::Relaxed);
            injecting.join().expect("injects")
        });
        let (header, detours) = detours(&file);
        let measured = header.monotonic_start..header.monotonic_start + header.wanted - 2 * header.quantum;
        // When the injecting thread was itself delayed (by the real-time limit or a hypervisor), the detour includes
        // that delay, of unknown length.
        let asked = length.as_nanos() as u64;
        let known = |one: &Taken| {
            let inside = measured.contains(&one.from) && measured.contains(&one.to);
            inside && one.from - one.due < asked && one.to - one.from < asked * 51 / 50
        };
        let all = taken.iter().filter(|one| measured.contains(&one.from)).count();
        let taken: Vec<Taken> = taken.into_iter().filter(known).collect();
        let found = injected(&taken, &detours, header.quantum);
        let mean =
            |part: fn(&(u64, u64)) -> u64| found.iter().map(part).sum::<u64>() as f64 / found.len().max(1) as f64;
        let (real, seen) = (mean(|pair| pair.0), mean(|pair| pair.1));
        let (count, known) = (found.len() as f64, taken.len() as f64);
        println!(
            "{}: {count} detours of {known} ({all} with unknown ones), {seen:.0} ns of {real:.0} ns",
            method.name()
        );
        assert_eq!(native::allowed().expect("known").last(), Some(&core), "cores are given back");
        assert!(2 * taken.len() > all && all > 50, "this host holds up real-time threads too often: {known} of {all}");
        assert!(within_a_tenth(count, known), "{method:?}: {count} detours for {known}");
        assert!(within_a_tenth(seen, real), "{method:?}: {seen} for {real} ns");
    }
}
