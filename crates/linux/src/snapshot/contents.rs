//! What is in files that snapshots deal with: those without a name, whose contents a snapshot holds, and those that the guest writes
//! on the host.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;

use fxscope_guestmem::PAGE;
use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A part of the contents of a file that the guest may write, up to its end when the snapshot was taken.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Written {
    /// Its length.
    pub bytes: u64,
    /// SHA-256.
    digest: [u8; 32],
}

impl Written {
    /// Returns what is in an open file now.
    pub(super) fn of(host: BorrowedFd<'_>) -> io::Result<Written> {
        Written::first(host, u64::MAX)
    }

    /// Returns what the first `most` bytes of an open file are now.
    fn first(host: BorrowedFd<'_>, most: u64) -> io::Result<Written> {
        let mut file = File::from(reopen(host, OFlags::RDONLY)?).take(most);
        let (mut contents, mut bytes) = (Sha256::new(), 0);
        let mut buffer = vec![0; PAGE as usize];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(Written { bytes, digest: contents.finalize().into() }),
                n => {
                    contents.update(&buffer[..n]);
                    bytes += n as u64;
                }
            }
        }
    }

    /// Checks that an open file of `now_bytes` bytes begins with this. What has been added behind it does not matter.
    ///
    /// # Errors
    /// The host's. In it: why the file is not as it was.
    pub(super) fn check(&self, host: BorrowedFd<'_>, now_bytes: u64) -> io::Result<Result<(), &'static str>> {
        if now_bytes < self.bytes {
            return Ok(Err("is shorter than at the snapshot, in which the program was writing it"));
        }
        let same = Written::first(host, self.bytes)? == *self;
        Ok(if same { Ok(()) } else { Err("was changed after the snapshot, and not only at its end") })
    }
}

/// Calls `take` for each page of an open file that is not all zeros, with its number; the last one may be short.
pub(super) fn each_page(
    host: &OwnedFd,
    bytes: u64,
    mut take: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let file = File::from(host.try_clone()?);
    let mut page = vec![0; PAGE as usize];
    for index in 0..bytes.div_ceil(PAGE) {
        let part = &mut page[..PAGE.min(bytes - index * PAGE) as usize];
        file.read_exact_at(part, index * PAGE)?;
        if part.iter().any(|&byte| byte != 0) {
            take(index, part)?;
        }
    }
    Ok(())
}

/// Returns a new file of zeros without a name.
pub(super) fn unnamed_file(bytes: u64) -> Result<OwnedFd, Errno> {
    let file = rustix::fs::memfd_create("restored", MemfdFlags::CLOEXEC)?;
    rustix::fs::ftruncate(&file, bytes)?;
    Ok(file)
}

/// Writes a page into such a file, which must have room for it.
pub(super) fn set_page(file: &OwnedFd, index: u64, page: &[u8]) -> io::Result<()> {
    let begin = index.checked_mul(PAGE).ok_or(io::ErrorKind::InvalidData)?;
    let end = begin.checked_add(page.len() as u64).ok_or(io::ErrorKind::InvalidData)?;
    if end > rustix::fs::fstat(file)?.st_size as u64 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    File::from(file.try_clone()?).write_all_at(page, begin)
}

/// Copies what is in a file into another one of the same length, which has zeros.
pub(super) fn copy(host: &OwnedFd, bytes: u64, to: &OwnedFd) -> io::Result<()> {
    each_page(host, bytes, |index, page| set_page(to, index, page))
}

/// Reopens the file of a host descriptor with a new description.
pub(super) fn reopen(host: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::open(format!("/proc/self/fd/{}", host.as_fd().as_raw_fd()), flags | OFlags::CLOEXEC, Mode::empty())
}
