//! Noise at known times.

use std::time::Duration;

use fxscope_osnoise::clock::monotonic;
use fxscope_osnoise::measure::native;

/// Time taken from a core, ns (`CLOCK_MONOTONIC`).
pub struct Taken {
    /// When it was due.
    pub due: u64,
    pub from: u64,
    pub to: u64,
}

/// Takes a core for `length` every `period`, with a high real-time priority, until stopped. Returns the times.
pub fn steal(core: u32, period: Duration, length: Duration, go_on: impl Fn() -> bool) -> Vec<Taken> {
    native::pin(&[core]).expect("a core of this process");
    native::prioritise(40).expect("real-time priority: run this as root");
    let mut taken = Vec::new();
    let mut next = monotonic();
    while go_on() {
        next += period.as_nanos() as u64;
        std::thread::sleep(Duration::from_nanos(next.saturating_sub(monotonic())));
        let begin = monotonic();
        while monotonic() - begin < length.as_nanos() as u64 {
            std::hint::spin_loop();
        }
        taken.push(Taken { due: next, from: begin, to: monotonic() });
    }
    taken
}
