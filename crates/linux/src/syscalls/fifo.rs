//! Opening files: `openat`, which for a FIFO waits until the other end is open, too.

use std::os::fd::AsFd as _;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::files;
use crate::fs::attempt::{Attempt, has_writer};
use crate::fs::files::OpenFile;
use crate::fs::vfs::resolve::{Last, Target, resolve};
use crate::kernel::Kernel;

type Outcome<T> = std::result::Result<T, Errno>;

/// Opens a path. `None`: the thread waits for the other end of a FIFO.
pub(super) fn open(k: &mut Kernel<'_>, dir: i32, name: &[u8], flags: OFlags, mode: Mode) -> Outcome<Option<OpenFile>> {
    if flags.intersects(OFlags::NONBLOCK | OFlags::PATH) {
        return files::open(k, dir, name, flags, mode).map(Some);
    }
    let file = match k.thread.opening.take() {
        Some(file) => file,
        None => match files::open(k, dir, name, flags | OFlags::NONBLOCK, mode) {
            // A FIFO without a reader: the handle refers to it later, whatever happens to its name.
            Err(Errno::NXIO) if flags & OFlags::RWMODE == OFlags::WRONLY => {
                files::open(k, dir, name, OFlags::PATH, Mode::empty())?
            }
            file => file?,
        },
    };
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file.host)?.st_mode);
    let has_name = kind.is_file() || kind.is_dir();
    if !has_name && matches!(resolve(k, dir, name, Last::Follow), Ok(Target::Descriptor(_))) {
        // Already open, with its own flags.
        return Ok(Some(file));
    }
    let status = rustix::fs::fcntl_getfl(&file.host)?;
    let attempt = match flags & OFlags::RWMODE {
        _ if status.contains(OFlags::PATH) && kind != FileType::Fifo => return Err(Errno::NXIO),
        _ if status.contains(OFlags::PATH) => Some(Attempt::FifoWriter),
        OFlags::RDONLY if kind == FileType::Fifo && !has_writer(file.host.as_fd()) => Some(Attempt::FifoReader),
        _ => None,
    };
    if let Some(attempt) = attempt {
        k.thread.opening = Some(file);
        k.try_later(attempt);
        return Ok(None);
    }
    if status.contains(OFlags::NONBLOCK) {
        rustix::fs::fcntl_setfl(&file.host, status - OFlags::NONBLOCK)?;
    }
    Ok(Some(file))
}
