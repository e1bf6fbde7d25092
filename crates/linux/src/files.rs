//! The open files of a process: its own table of descriptors over host files.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::process::Stdio;
use crate::vfs::View;

/// `AT_FDCWD`: relative to the current directory.
pub(crate) const AT_FDCWD: i32 = -100;

/// One descriptor.
struct Descriptor {
    host: OwnedFd,
    close_on_exec: bool,
}

/// The table of descriptors and the current directory.
pub struct Files {
    table: Vec<Option<Descriptor>>,
    current: OwnedFd,
    pub(crate) view: View,
    /// Absolute path of the program (`/proc/self/exe`).
    pub(crate) program: Vec<u8>,
}

impl Files {
    pub(crate) fn new(stdio: Stdio, program: &Path, view: View) -> std::io::Result<Files> {
        let open = |host| Some(Descriptor { host, close_on_exec: false });
        // A program given as bytes has no file to find.
        let program = std::fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
        Ok(Files {
            table: vec![open(stdio.input), open(stdio.output), open(stdio.error)],
            current: open_directory(CWD, b".")?,
            view,
            program: program.as_os_str().as_bytes().to_owned(),
        })
    }

    fn get(&self, fd: i32) -> Result<&Descriptor, Errno> {
        let index = usize::try_from(fd).map_err(|_| Errno::BADF)?;
        self.table.get(index).and_then(Option::as_ref).ok_or(Errno::BADF)
    }

    fn get_mut(&mut self, fd: i32) -> Result<&mut Descriptor, Errno> {
        let index = usize::try_from(fd).map_err(|_| Errno::BADF)?;
        self.table.get_mut(index).and_then(Option::as_mut).ok_or(Errno::BADF)
    }

    /// The host file of a descriptor.
    pub(crate) fn host(&self, fd: i32) -> Result<BorrowedFd<'_>, Errno> {
        Ok(self.get(fd)?.host.as_fd())
    }

    /// The directory that relative paths start from.
    pub(crate) fn directory(&self, fd: i32) -> Result<BorrowedFd<'_>, Errno> {
        if fd == AT_FDCWD { Ok(self.current.as_fd()) } else { self.host(fd) }
    }

    /// Makes `path` the current directory.
    pub(crate) fn change_directory(&mut self, path: &[u8]) -> Result<(), Errno> {
        self.current = open_directory(&self.current, path)?;
        Ok(())
    }

    /// Makes an open directory the current one.
    pub(crate) fn change_directory_to(&mut self, fd: i32) -> Result<(), Errno> {
        self.current = open_directory(self.host(fd)?, b".")?;
        Ok(())
    }

    /// Puts a host file at the lowest free number from `from` on; at most `limit` descriptors.
    pub(crate) fn insert(&mut self, host: OwnedFd, close_on_exec: bool, from: i32, limit: u64) -> Result<i32, Errno> {
        let from = usize::try_from(from).map_err(|_| Errno::INVAL)?;
        let free = (from..).find(|&i| self.table.get(i).is_none_or(Option::is_none));
        let index = free.filter(|&i| (i as u64) < limit).ok_or(Errno::MFILE)?;
        if index >= self.table.len() {
            self.table.resize_with(index + 1, || None);
        }
        self.table[index] = Some(Descriptor { host, close_on_exec });
        Ok(index as i32)
    }

    /// A second descriptor for the same open file, the lowest free one from `from` on.
    pub(crate) fn duplicate(&mut self, fd: i32, close_on_exec: bool, from: i32, limit: u64) -> Result<i32, Errno> {
        let host = rustix::io::fcntl_dupfd_cloexec(self.host(fd)?, 0)?;
        self.insert(host, close_on_exec, from, limit)
    }

    /// As [`Files::duplicate`], but at exactly `to`, closing what is there.
    pub(crate) fn duplicate_to(&mut self, fd: i32, to: i32, close_on_exec: bool, limit: u64) -> Result<i32, Errno> {
        if to < 0 || to as u64 >= limit {
            return Err(Errno::BADF);
        }
        let host = rustix::io::fcntl_dupfd_cloexec(self.host(fd)?, 0)?;
        if let Some(old) = self.table.get_mut(to as usize) {
            *old = None;
        }
        self.insert(host, close_on_exec, to, limit)
    }

    pub(crate) fn close(&mut self, fd: i32) -> Result<(), Errno> {
        self.get(fd)?;
        self.table[fd as usize] = None;
        Ok(())
    }

    /// One more than the highest descriptor there may be.
    pub(crate) fn end(&self) -> i32 {
        self.table.len() as i32
    }

    pub(crate) fn close_on_exec(&self, fd: i32) -> Result<bool, Errno> {
        Ok(self.get(fd)?.close_on_exec)
    }

    pub(crate) fn set_close_on_exec(&mut self, fd: i32, on: bool) -> Result<(), Errno> {
        self.get_mut(fd)?.close_on_exec = on;
        Ok(())
    }
}

fn open_directory(from: impl AsFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(from, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}
