//! What the record says of the host.

use std::fs::File;
use std::io::{Read as _, Seek as _};

/// What the record says of the host, as far as the run's thread could not find it out afterwards.
pub(crate) struct HostView {
    /// CPUs that this process may use.
    pub cpus: u32,
    /// `/proc/self/status`, which shows the current values whenever it is read from its beginning.
    status: Option<File>,
}

impl HostView {
    pub fn new() -> HostView {
        let cpus = std::thread::available_parallelism().map_or(0, |n| n.get() as u32);
        HostView { cpus, status: File::open("/proc/self/status").ok() }
    }

    /// The most memory this process has had, bytes; 0 when the host does not tell.
    pub fn peak_rss_bytes(&self) -> u64 {
        let Some(mut status) = self.status.as_ref() else { return 0 };
        let mut text = String::new();
        let _ = status.rewind().and_then(|()| status.read_to_string(&mut text));
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")).and_then(|n| n.parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    }
}
