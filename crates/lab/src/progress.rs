//! How far a laboratory is, for the caller that waits for it.

use std::time::Duration;

use fxscope_session::Session;

/// Learns how far a laboratory is, and can end it. All methods do nothing unless implemented.
///
/// Runs come in batches, several at a time and out of sight, or one by one in the foreground, where the program may use the
/// streams of this process.
pub trait Progress: Sync {
    /// Something that the user should read.
    fn message(&self, text: &str) {
        let _ = text;
    }

    /// A batch of this many runs starts.
    fn batch_started(&self, runs: usize) {
        let _ = runs;
    }

    /// A run of the batch starts.
    fn run_started(&self, name: &str) {
        let _ = name;
    }

    /// A run of the batch has ended, or was in the cache.
    fn run_ended(&self, name: &str) {
        let _ = name;
    }

    /// The batch has ended.
    fn batch_ended(&self) {}

    /// A run in the foreground starts.
    fn foreground_started(&self, session: &mut Session) {
        let _ = session;
    }

    /// How far the run in the foreground is.
    fn foreground_at(&self, how_far: &fxscope_session::Progress) {
        let _ = how_far;
    }

    /// The run in the foreground has ended.
    fn foreground_ended(&self) {}

    /// How far a measurement of this host is.
    fn measured(&self, elapsed: Duration, whole: Duration) {
        let _ = (elapsed, whole);
    }

    /// The measurement has ended.
    fn measurement_ended(&self) {}

    /// Whether to end now. Asked often, and from several threads.
    fn stop_requested(&self) -> bool {
        false
    }
}

/// Says nothing and never stops.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {}
