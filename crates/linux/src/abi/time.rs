//! Points in time and durations in the format of system calls.

use rustix::io::Errno;

/// Time in Linux's format: seconds and nanoseconds (or, in `timeval`, microseconds).
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct Time {
    pub seconds: i64,
    pub fraction: i64,
}

impl Time {
    pub(crate) fn from_ns(ns: u64) -> Time {
        Time { seconds: (ns / 1_000_000_000) as i64, fraction: (ns % 1_000_000_000) as i64 }
    }
    /// Converts ns to a `timeval`, in microseconds.
    pub(crate) fn from_ns_in_us(ns: u64) -> Time {
        let t = Time::from_ns(ns);
        Time { fraction: t.fraction / 1000, ..t }
    }
    /// Converts to ns; `EINVAL` for a negative time, or a fraction of a second or more.
    pub(crate) fn to_ns(self) -> Result<u64, Errno> {
        let seconds = u64::try_from(self.seconds).map_err(|_| Errno::INVAL)?;
        if !(0..1_000_000_000).contains(&self.fraction) {
            return Err(Errno::INVAL);
        }
        Ok(seconds.saturating_mul(1_000_000_000).saturating_add(self.fraction as u64))
    }
}
