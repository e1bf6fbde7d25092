//! The open files of a process: its descriptor table over host files.

use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::abi::stack::at;
use crate::budget::{self, Charge};
use crate::fs::locks::{FileId, file_id};
use crate::fs::objects::Object;
use crate::fs::umask::Umask;
use crate::fs::vfs::resolve::path_of;
use crate::fs::vfs::tree::{Kind, Node};
use crate::fs::vfs::{Origin, View};
use crate::ipc::channels::Channel;
use crate::setup::Stdio;

/// Flags for opening directories from which paths start.
pub(crate) const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// `AT_FDCWD`: relative to the current directory.
pub(crate) const AT_FDCWD: i32 = -100;

/// An open file.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub host: OwnedFd,
    pub origin: Origin,
    /// The open file description: duplicated descriptors share it, with position and flags.
    pub description: Description,
}

/// Identifies an open file description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Description(u64);

impl Description {
    /// Returns a new description, not shared with any open file.
    pub(crate) fn new() -> Description {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Description(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl OpenFile {
    /// Returns a newly opened file.
    pub(crate) fn new(host: OwnedFd, origin: Origin) -> OpenFile {
        OpenFile { host, origin, description: Description::new() }
    }

    /// Returns a second handle of the same description.
    ///
    /// # Errors
    /// When the host is out of descriptors.
    pub(crate) fn try_clone(&self) -> Result<OpenFile, Errno> {
        let host = rustix::io::fcntl_dupfd_cloexec(&self.host, 0)?;
        Ok(OpenFile { host, origin: self.origin.clone(), description: self.description })
    }
}

/// One descriptor.
pub(crate) struct Descriptor {
    pub file: OpenFile,
    pub close_on_exec: bool,
    /// The host resources of the open file.
    pub channel: Option<Rc<Channel>>,
}

/// The program that a process runs.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Program {
    /// Absolute path (`/proc/self/exe`).
    pub path: Vec<u8>,
    /// Arguments, including the program's name.
    pub args: Vec<Vec<u8>>,
    /// Environment, each entry as `NAME=value`.
    pub env: Vec<Vec<u8>>,
    /// The auxiliary vector as on the stack.
    pub auxv: Vec<u8>,
    /// The cost of all this.
    #[serde(skip)]
    pub charge: Charge,
}

impl Program {
    /// Returns a copy without its charge.
    pub(crate) fn uncharged(&self) -> Program {
        let (path, args) = (self.path.clone(), self.args.clone());
        Program { path, args, env: self.env.clone(), auxv: self.auxv.clone(), charge: Charge::default() }
    }

    /// Returns whether an interpreter started it: the auxiliary vector then has its address.
    pub(crate) fn has_interpreter(&self) -> bool {
        let words = self.auxv.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap_or_default()));
        let words: Vec<u64> = words.collect();
        words.chunks_exact(2).any(|entry| entry[0] == at::BASE && entry[1] != 0)
    }
}

/// The descriptor table, the current directory, and the resolution of paths.
pub struct Files {
    pub(crate) table: Vec<Option<Descriptor>>,
    pub(crate) current: OpenFile,
    pub(crate) view: Rc<View>,
    pub(crate) program: Rc<Program>,
    pub(crate) umask: Umask,
    /// One more than the highest host descriptor that may be used.
    host_limit: u64,
    /// Device and inode numbers of the process's original standard streams.
    pub(crate) inherited: [(u64, u64); 3],
    /// Their descriptions.
    pub(crate) streams: [Description; 3],
}

/// Returns the device and inode numbers of the standard streams.
fn identities(stdio: &Stdio) -> std::io::Result<[(u64, u64); 3]> {
    let identity = |file: &OwnedFd| rustix::fs::fstat(file).map(|stat| (stat.st_dev, stat.st_ino));
    Ok([identity(&stdio.input)?, identity(&stdio.output)?, identity(&stdio.error)?])
}

impl Files {
    pub(crate) fn new(stdio: Stdio, program: Program, view: Rc<View>) -> std::io::Result<Files> {
        let inherited = identities(&stdio)?;
        let streams = [stdio.input, stdio.output, stdio.error].map(|host| OpenFile::new(host, Origin::Host));
        let descriptions = streams.each_ref().map(|file| file.description);
        let open = |file| Some(Descriptor { file, close_on_exec: false, channel: None });
        let current = rustix::fs::openat(CWD, ".", DIRECTORY, Mode::empty())?;
        Ok(Files {
            table: streams.map(open).into(),
            current: OpenFile::new(current, Origin::Host),
            view,
            program: Rc::new(program),
            umask: Umask::of_host(),
            host_limit: budget::host_descriptors(),
            inherited,
            streams: descriptions,
        })
    }

    /// Returns a table of reopened files, for a run with these standard streams and their descriptions.
    pub(crate) fn reopened(
        table: Vec<Option<Descriptor>>,
        current: OpenFile,
        view: Rc<View>,
        program: Rc<Program>,
        umask: Umask,
        (stdio, streams): (&Stdio, [Description; 3]),
    ) -> std::io::Result<Files> {
        let (host_limit, inherited) = (budget::host_descriptors(), identities(stdio)?);
        Ok(Files { table, current, view, program, umask, host_limit, inherited, streams })
    }

    fn get(&self, fd: i32) -> Result<&Descriptor, Errno> {
        let index = usize::try_from(fd).map_err(|_| Errno::BADF)?;
        self.table.get(index).and_then(Option::as_ref).ok_or(Errno::BADF)
    }

    fn get_mut(&mut self, fd: i32) -> Result<&mut Descriptor, Errno> {
        let index = usize::try_from(fd).map_err(|_| Errno::BADF)?;
        self.table.get_mut(index).and_then(Option::as_mut).ok_or(Errno::BADF)
    }

    /// Returns the open file of a descriptor.
    pub(crate) fn open_file(&self, fd: i32) -> Result<&OpenFile, Errno> {
        Ok(&self.get(fd)?.file)
    }

    /// Returns the host file of a descriptor.
    pub(crate) fn host(&self, fd: i32) -> Result<BorrowedFd<'_>, Errno> {
        Ok(self.get(fd)?.file.host.as_fd())
    }

    /// Returns whether a file is one of the process's original standard streams, under any number.
    pub(crate) fn is_inherited(&self, file: BorrowedFd<'_>) -> bool {
        rustix::fs::fstat(file).is_ok_and(|stat| self.inherited.contains(&(stat.st_dev, stat.st_ino)))
    }

    /// Returns the simulated file of a descriptor, if it is for one.
    pub(crate) fn simulated(&self, fd: i32) -> Option<&Node> {
        match &self.get(fd).ok()?.file.origin {
            Origin::Simulated(node) => Some(node),
            _ => None,
        }
    }

    /// Returns path and origin of the directory from which relative paths start.
    ///
    /// # Errors
    /// `EBADF`; `ENOTDIR`; `ENOENT` when it has been deleted.
    pub(crate) fn directory_path(&self, fd: i32) -> Result<(Vec<u8>, Origin), Errno> {
        let file = if fd == AT_FDCWD { &self.current } else { self.open_file(fd)? };
        if let Origin::Simulated(node) = &file.origin {
            let directory = node.kind == Kind::Directory;
            return if directory { Ok((node.path.clone(), file.origin.clone())) } else { Err(Errno::NOTDIR) };
        }
        if !FileType::from_raw_mode(rustix::fs::fstat(&file.host)?.st_mode).is_dir() {
            return Err(Errno::NOTDIR);
        }
        let path = path_of(file.host.as_fd()).ok_or(Errno::NOENT)?;
        Ok((self.view.guest_path(path, &file.origin), file.origin.clone()))
    }

    /// Returns the path of the current directory as the program sees it.
    pub(crate) fn current_path(&self) -> Result<Vec<u8>, Errno> {
        Ok(self.directory_path(AT_FDCWD)?.0)
    }

    /// Makes an open directory the current one.
    pub(crate) fn set_current(&mut self, directory: OpenFile) {
        self.current = directory;
    }

    /// Returns the target of the link in `/proc/self/fd` for an open file.
    pub(crate) fn link_text(&self, fd: i32) -> Vec<u8> {
        let Ok(file) = self.open_file(fd) else { return Vec::new() };
        if let Origin::Simulated(node) = &file.origin {
            return node.path.clone();
        }
        if let Some(name) = self.object(fd).and_then(Object::name) {
            return name.as_bytes().to_vec();
        }
        self.shown_path(file)
    }

    /// Returns the target of such a link for a host file.
    pub(crate) fn shown_path(&self, file: &OpenFile) -> Vec<u8> {
        let link = format!("/proc/self/fd/{}", file.host.as_raw_fd());
        let text = rustix::fs::readlink(link, Vec::new()).map(std::ffi::CString::into_bytes).unwrap_or_default();
        self.view.guest_path(text, &file.origin)
    }

    /// Iterates over all open files, once for each descriptor.
    pub(crate) fn open_files(&self) -> impl Iterator<Item = &OpenFile> {
        self.table.iter().flatten().map(|descriptor| &descriptor.file)
    }

    /// Inserts an open file at the lowest free number from `from` on; at most `limit` descriptors.
    pub(crate) fn insert(&mut self, file: OpenFile, close_on_exec: bool, from: i32, limit: u64) -> Result<i32, Errno> {
        self.put(Descriptor { file, close_on_exec, channel: None }, from, limit)
    }

    /// The same for an open file with host resources, at the lowest free number.
    pub(crate) fn insert_channel(
        &mut self,
        file: OpenFile,
        channel: Option<Rc<Channel>>,
        close_on_exec: bool,
        limit: u64,
    ) -> Result<i32, Errno> {
        self.put(Descriptor { file, close_on_exec, channel }, 0, limit)
    }

    fn put(&mut self, descriptor: Descriptor, from: i32, limit: u64) -> Result<i32, Errno> {
        self.check_host(&descriptor.file.host)?;
        let from = usize::try_from(from).map_err(|_| Errno::INVAL)?;
        let free = (from..).find(|&i| self.table.get(i).is_none_or(Option::is_none));
        let index = free.filter(|&i| (i as u64) < limit).ok_or(Errno::MFILE)?;
        if index >= self.table.len() {
            self.table.resize_with(index + 1, || None);
        }
        self.table[index] = Some(descriptor);
        Ok(index as i32)
    }

    /// Checks that the simulator still has descriptors for itself if a program keeps this one.
    fn check_host(&self, host: &OwnedFd) -> Result<(), Errno> {
        if (host.as_raw_fd() as u64) < self.host_limit { Ok(()) } else { Err(Errno::MFILE) }
    }

    /// Returns the host resources of a descriptor's open file.
    pub(crate) fn channel(&self, fd: i32) -> Option<&Channel> {
        self.get(fd).ok()?.channel.as_deref()
    }

    /// Checks that another descriptor may be inserted.
    pub(crate) fn check_free(&self, limit: u64) -> Result<(), Errno> {
        let free = (0..).find(|&i| self.table.get(i).is_none_or(Option::is_none));
        if free.is_some_and(|i| (i as u64) < limit) { Ok(()) } else { Err(Errno::MFILE) }
    }

    /// As [`Files::channel`], to be kept while the files change.
    pub(crate) fn kept_channel(&self, fd: i32) -> Option<Rc<Channel>> {
        self.get(fd).ok()?.channel.clone()
    }

    /// Returns the object of a descriptor, if the simulator implements it.
    pub(crate) fn object(&self, fd: i32) -> Option<&Object> {
        self.channel(fd).map(|channel| &channel.object).filter(|object| object.is_simulated())
    }

    /// Adds a descriptor for an open file of another process.
    pub(crate) fn duplicate_from(&mut self, other: &Files, fd: i32, limit: u64) -> Result<i32, Errno> {
        let (file, channel) = (other.second(fd)?, other.kept_channel(fd));
        self.put(Descriptor { file, close_on_exec: true, channel }, 0, limit)
    }

    /// Adds a descriptor for the same open file, the lowest free one from `from` on.
    pub(crate) fn duplicate(&mut self, fd: i32, close_on_exec: bool, from: i32, limit: u64) -> Result<i32, Errno> {
        let (file, channel) = (self.second(fd)?, self.get(fd)?.channel.clone());
        self.put(Descriptor { file, close_on_exec, channel }, from, limit)
    }

    /// As [`Files::duplicate`], but at exactly `to`, closing what is there.
    pub(crate) fn duplicate_to(&mut self, fd: i32, to: i32, close_on_exec: bool, limit: u64) -> Result<i32, Errno> {
        if to < 0 || to as u64 >= limit {
            return Err(Errno::BADF);
        }
        let (file, channel) = (self.second(fd)?, self.get(fd)?.channel.clone());
        if let Some(old) = self.table.get_mut(to as usize) {
            *old = None;
        }
        self.put(Descriptor { file, close_on_exec, channel }, to, limit)
    }

    /// Returns a second handle of an open file.
    pub(crate) fn second(&self, fd: i32) -> Result<OpenFile, Errno> {
        self.copy(self.open_file(fd)?)
    }

    fn copy(&self, file: &OpenFile) -> Result<OpenFile, Errno> {
        let copy = file.try_clone()?;
        self.check_host(&copy.host)?;
        Ok(copy)
    }

    pub(crate) fn close(&mut self, fd: i32) -> Result<(), Errno> {
        self.get(fd)?;
        self.table[fd as usize] = None;
        Ok(())
    }

    /// Returns the same files, for a child process.
    pub(crate) fn fork(&self) -> Result<Files, Errno> {
        let mut table = Vec::with_capacity(self.table.len());
        for entry in &self.table {
            table.push(match entry {
                Some(d) => {
                    let (file, channel) = (self.copy(&d.file)?, d.channel.clone());
                    Some(Descriptor { file, close_on_exec: d.close_on_exec, channel })
                }
                None => None,
            });
        }
        let current = self.copy(&self.current)?;
        let (view, program) = (Rc::clone(&self.view), Rc::clone(&self.program));
        let Files { umask, host_limit, inherited, streams, .. } = *self;
        Ok(Files { table, current, view, program, umask, host_limit, inherited, streams })
    }

    /// Closes the descriptors with the close-on-exec flag. Returns the files that they were for.
    pub(crate) fn close_for_exec(&mut self) -> Vec<FileId> {
        let closed = self.table.iter_mut().filter_map(|entry| entry.take_if(|d| d.close_on_exec));
        closed.filter_map(|descriptor| file_id(&descriptor.file).ok()).collect()
    }

    /// Closes everything.
    pub(crate) fn close_all(&mut self) {
        self.table.clear();
    }

    /// Returns one more than the highest descriptor allowed.
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
