//! Progress of a laboratory, for its caller.

use std::time::Duration;

use fxscope_session::Session;

/// Receives the progress of a laboratory, and can stop it. All methods do nothing by default.
///
/// Runs are made in batches, several at a time in the background, or one by one in the foreground, where the program may use
/// the streams of this process.
pub trait Progress: Sync {
    /// A message for the user.
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

    /// Progress of the run in the foreground.
    fn foreground_at(&self, how_far: &fxscope_session::Progress) {
        let _ = how_far;
    }

    /// The run in the foreground has ended.
    fn foreground_ended(&self) {}

    /// Progress of a measurement of this host.
    fn measured(&self, elapsed: Duration, whole: Duration) {
        let _ = (elapsed, whole);
    }

    /// The measurement has ended.
    fn measurement_ended(&self) {}

    /// Returns whether to stop now. Called often, and from several threads.
    fn stop_requested(&self) -> bool {
        false
    }
}

/// Shows nothing and never stops.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {}
