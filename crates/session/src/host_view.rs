//! Host information in a record.

use std::fs::File;
use std::io::{Read as _, Seek as _};

/// Host information that the run's thread could not read after the run.
pub(crate) struct HostView {
    /// CPUs that this process may use.
    pub cpus: u32,
    /// `/proc/self/status`, which has current values at each read from its beginning.
    status: Option<File>,
}

impl HostView {
    pub fn new() -> HostView {
        let cpus = std::thread::available_parallelism().map_or(0, |n| n.get() as u32);
        HostView { cpus, status: File::open("/proc/self/status").ok() }
    }

    /// Returns the peak memory of this process, bytes; 0 if unknown.
    pub fn peak_rss_bytes(&self) -> u64 {
        let Some(mut status) = self.status.as_ref() else { return 0 };
        let mut text = String::new();
        let _ = status.rewind().and_then(|()| status.read_to_string(&mut text));
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")).and_then(|n| n.parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    }
}
