//! The umask of a process.

use std::sync::{Mutex, PoisonError};

use rustix::fs::Mode;

/// Permissions that new files of a process do not get.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Umask(Mode);

/// Guards the host process's umask, which all simulated processes of all threads share.
static HOST: Mutex<()> = Mutex::new(());

impl Umask {
    pub(crate) fn new(bits: u32) -> Umask {
        Umask(Mode::from_raw_mode(bits & 0o777))
    }

    /// Returns the initial umask of programs, which is the host's.
    pub(crate) fn of_host() -> Umask {
        let _alone = HOST.lock().unwrap_or_else(PoisonError::into_inner);
        let mode = rustix::process::umask(Mode::empty());
        rustix::process::umask(mode);
        Umask(mode)
    }

    pub(crate) fn bits(self) -> u32 {
        self.0.as_raw_mode()
    }

    /// Calls `make` under this umask.
    pub(crate) fn making<T>(self, make: impl FnOnce() -> T) -> T {
        let _alone = HOST.lock().unwrap_or_else(PoisonError::into_inner);
        let before = rustix::process::umask(self.0);
        let made = make();
        rustix::process::umask(before);
        made
    }
}
