//! Noise that is injected into a real measurement: a thread of higher priority on the same core. It takes the right to real-time
//! priorities and a core that no other real-time thread uses, so that it runs on request: `make jitter-test`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fxscope_noise::clock::monotonic;
use fxscope_noise::measure::{self, Plan, Watch, native};
use fxscope_noise::trace::{Detour, Item, Method, Reader};

/// Takes `length` every `period` from a core until it is stopped: how often, and how long all together, ns.
fn inject(core: u32, period: Duration, length: Duration, stop: &AtomicBool) -> (u64, u64) {
    native::pin(&[core]).expect("a core of this process");
    native::prioritise(40).expect("real-time priority: run this as root");
    let (mut count, mut taken) = (0, 0);
    let mut next = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        next += period;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        let begin = monotonic();
        while monotonic() - begin < length.as_nanos() as u64 {
            std::hint::spin_loop();
        }
        count += 1;
        taken += monotonic() - begin;
    }
    (count, taken)
}

fn detours(file: &[u8]) -> Vec<Detour> {
    let mut reader = Reader::new(file).expect("a trace");
    let mut all = Vec::new();
    while let Some(item) = reader.next_item().expect("whole") {
        if let Item::Detours(_, some) = item {
            all.extend(some);
        }
    }
    all
}

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
        let (begun, (count, taken)) = std::thread::scope(|scope| {
            let begun = Instant::now();
            let injecting = scope.spawn(|| inject(core, Duration::from_millis(period), length, &stop));
            measure::run(&plan, &mut file, Watch::until(&AtomicBool::new(false))).expect("measurable as root");
            stop.store(true, Ordering::Relaxed);
            (begun.elapsed(), injecting.join().expect("injects"))
        });
        // What is much shorter or longer is the host's own.
        let near = |detour: &Detour| (500_000..2_000_000).contains(&detour.length);
        let found: Vec<u64> = detours(&file).iter().filter(|d| near(d)).map(|d| d.length).collect();
        let rate = found.len() as f64 / 4.0;
        let mean = found.iter().sum::<u64>() as f64 / found.len().max(1) as f64;
        let (real_rate, real_mean) = (count as f64 / begun.as_secs_f64(), taken as f64 / count as f64);
        println!("{}: {rate:.2}/s of {real_rate:.2}/s, {mean:.0} ns of {real_mean:.0} ns", method.name());
        assert_eq!(native::allowed().expect("known").last(), Some(&core), "cores are given back");
        assert!(within_a_tenth(rate, real_rate), "{method:?}: {rate} for {real_rate} a second");
        assert!(within_a_tenth(mean, real_mean), "{method:?}: {mean} for {real_mean} ns");
    }
}
