//! Prebuilt programs, discarded streams, and a progress receiver.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fxscope_lab::Progress;
use fxscope_linux::Stdio;
use fxscope_session::Scenario;

/// The folder of the prebuilt kernels.
pub fn kernels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/prebuilt")
}

/// Returns a run of a prebuilt kernel.
pub fn kernel(name: &str, arguments: &[&str]) -> Scenario {
    Scenario::new(kernels().join(format!("{name}.elf"))).with_arguments(arguments)
}

/// Standard streams without input, whose output is discarded.
pub fn nowhere() -> Option<Stdio> {
    let null = || OpenOptions::new().write(true).open("/dev/null").expect("a device").into();
    Some(Stdio { input: File::open("/dev/null").expect("a device").into(), output: null(), error: null() })
}

/// Records the progress it receives.
#[derive(Default)]
pub struct RecordedProgress {
    pub announced: AtomicUsize,
    pub ended: AtomicUsize,
    pub messages: Mutex<Vec<String>>,
    pub stop: AtomicBool,
}

impl Progress for RecordedProgress {
    fn message(&self, text: &str) {
        self.messages.lock().expect("no test has panicked").push(text.to_owned());
    }

    fn batch_started(&self, runs: usize) {
        self.announced.fetch_add(runs, Ordering::Relaxed);
    }

    fn run_ended(&self, _name: &str) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
