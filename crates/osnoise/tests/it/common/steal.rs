//! Noise whose times are known.

use std::time::Duration;

use fxscope_osnoise::clock::monotonic;
use fxscope_osnoise::measure::native;

/// A time that was taken from the core, ns (`CLOCK_MONOTONIC`).
pub struct Taken {
    /// When it was to begin.
    pub due: u64,
    pub from: u64,
    pub to: u64,
}

/// Takes `length` every `period` from a core, with a high real-time priority, as long as it is told to. Gives when it did.
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
