//! `inject CORE PERIOD_MS LENGTH_US SECONDS`: as root, occupies a core at known times, and prints for each time when it
//! was due, when it began and when it ended, in ns of `CLOCK_MONOTONIC`. A concurrent measurement must find these
//! detours.

use std::process::ExitCode;
use std::time::{Duration, Instant};

#[path = "../tests/it/common/steal.rs"]
mod steal;

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let [core, period, length, seconds] = numbers[..] else {
        eprintln!("usage: inject CORE PERIOD_MS LENGTH_US SECONDS");
        return ExitCode::FAILURE;
    };
    let end = Instant::now() + Duration::from_secs(seconds);
    let (period, length) = (Duration::from_millis(period), Duration::from_micros(length));
    for one in steal::steal(core as u32, period, length, || Instant::now() < end) {
        println!("{} {} {}", one.due, one.from, one.to);
    }
    ExitCode::SUCCESS
}
