//! Flags of open files, which differ between hosts and arm64.

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Flags of `openat` that differ between hosts and arm64: arm64's bit, and the host's flag.
const OPEN_FLAGS: [(u32, OFlags); 14] = [
    (0o100, OFlags::CREATE),
    (0o200, OFlags::EXCL),
    (0o400, OFlags::NOCTTY),
    (0o1000, OFlags::TRUNC),
    (0o2000, OFlags::APPEND),
    (0o4000, OFlags::NONBLOCK),
    (0o10000, OFlags::DSYNC),
    (0o40000, OFlags::DIRECTORY),
    (0o100_000, OFlags::NOFOLLOW),
    (0o200_000, OFlags::DIRECT),
    (0o1_000_000, OFlags::NOATIME),
    (0o4_010_000, OFlags::SYNC),
    (0o10_000_000, OFlags::PATH),
    (0o20_040_000, OFlags::TMPFILE),
];

/// `O_CLOEXEC`.
pub(crate) const O_CLOEXEC: u32 = 0o2_000_000;

/// Converts flags of the program, all of which get `O_CLOEXEC` on the host.
///
/// # Errors
/// `EINVAL` for an unknown access mode.
pub(crate) fn open_flags(guest: u32) -> Result<OFlags, Errno> {
    let mut flags = match guest & 3 {
        0 => OFlags::RDONLY,
        1 => OFlags::WRONLY,
        2 => OFlags::RDWR,
        _ => return Err(Errno::INVAL),
    };
    for (bit, host) in OPEN_FLAGS {
        if guest & bit == bit {
            flags |= host;
        }
    }
    Ok(flags | OFlags::CLOEXEC)
}

/// Converts flags of a host file to those of the program.
pub(crate) fn guest_open_flags(host: OFlags) -> u64 {
    let mut flags = host.bits() & 3;
    for (bit, flag) in OPEN_FLAGS {
        if host.contains(flag) {
            flags |= bit;
        }
    }
    u64::from(flags)
}
