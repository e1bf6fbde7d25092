//! Files that are mapped shared, or privately and read-only, as libraries are: each has one object of guest memory, which all its
//! mappings use, in all processes.
//!
//! The object is what Linux has in its page cache. It gets a page from the host's file when a program first touches the page,
//! and gives changed pages back when the last mapping is removed; those of files on the host also at `msync`, `fsync`, and when a
//! process ends. Meanwhile, reads and writes of the file see and change the pages of the object. The host has the file's length.
//! A file in the simulated memory has each page once: in the object or on the host.

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use fxscope_guestmem::{Memory, ObjectId, PAGE, PageSource};
use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;

use crate::fs::files::OpenFile;
use crate::fs::memory_files::{self, Identity, allocated, identity};
use crate::fs::vfs::Origin;
use crate::fs::vfs::resolve::path_of;
use crate::kernel::Kernel;

/// One more than the highest number of a page that a file can have.
const PAGES_END: u64 = 1 << 47;

/// The open file through which the pages of a mapped file are read and written.
pub(crate) struct MappedFile {
    /// Shares position and flags with a descriptor of the program.
    pub open: OpenFile,
    /// Whether a program has mapped it from a descriptor that is open for writing.
    pub writable: bool,
}

impl MappedFile {
    fn is_in_memory(&self) -> bool {
        self.open.origin == Origin::Memory
    }

    fn bytes(&self) -> Result<u64, Errno> {
        Ok(rustix::fs::fstat(&self.open.host)?.st_size as u64)
    }

    /// Drops the bytes of a page from the host's file, which is one in the simulated memory. Returns how many bytes became free.
    fn punch(&self, index: u64) -> Result<u64, Errno> {
        let before = allocated(&rustix::fs::fstat(&self.open.host)?);
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&self.open.host, mode, index * PAGE, PAGE)?;
        Ok(before.saturating_sub(allocated(&rustix::fs::fstat(&self.open.host)?)))
    }

    /// Makes room on the host for the pages with these numbers of a file of `bytes` bytes.
    fn reserve(&self, pages: &[u64], bytes: u64) -> Result<(), Errno> {
        for index in pages {
            let len = PAGE.min(bytes - index * PAGE);
            let reserved = rustix::fs::fallocate(&self.open.host, FallocateFlags::KEEP_SIZE, index * PAGE, len);
            // With other errors, the file system cannot reserve room.
            if let Err(error @ (Errno::NOSPC | Errno::DQUOT)) = reserved {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Writes pages of `object` to the host's file, without extending it: all changed ones. `leave`: they leave the object, so
    /// that their room is available for the copy on the host.
    fn write_back(&self, mem: &mut Memory, object: ObjectId, leave: bool) -> Result<(), Errno> {
        if !self.writable {
            return Ok(());
        }
        let bytes = self.bytes()?;
        let mut pages = mem.dirty_pages(object);
        pages.retain(|index| index * PAGE < bytes);
        if !self.is_in_memory() {
            self.reserve(&pages, bytes)?;
        }
        for (done, &index) in pages.iter().enumerate() {
            let mut content = vec![0; PAGE.min(bytes - index * PAGE) as usize];
            mem.read_object(object, index * PAGE, &mut content);
            if leave {
                mem.drop_pages(object, index, index + 1, false);
            }
            if let Err(error) = self.write_page(mem, &content, index) {
                mem.clean_pages(object, &pages[..done]);
                return Err(error);
            }
        }
        mem.clean_pages(object, &pages);
        Ok(())
    }

    fn write_page(&self, mem: &mut Memory, content: &[u8], index: u64) -> Result<(), Errno> {
        if self.is_in_memory() && content.iter().all(|&byte| byte == 0) {
            return self.punch(index).map(|_| ());
        }
        let mut done = 0;
        while done < content.len() {
            let (at, rest) = (index * PAGE + done as u64, &content[done..]);
            done += memory_files::growing(mem, &self.open, Some(at), rest.len() as u64, |fitting| {
                rustix::io::retry_on_intr(|| rustix::io::pwrite(&self.open.host, &rest[..fitting as usize], at))
            })?;
        }
        Ok(())
    }

    /// Calls `transfer` while the description is not in a mode that moves or aligns transfers at an offset.
    fn plainly<T>(&self, transfer: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
        let flags = rustix::fs::fcntl_getfl(&self.open.host)?;
        let plain = flags - (OFlags::APPEND | OFlags::DIRECT);
        if plain == flags {
            return transfer();
        }
        rustix::fs::fcntl_setfl(&self.open.host, plain)?;
        let result = transfer();
        rustix::fs::fcntl_setfl(&self.open.host, flags)?;
        result
    }

    /// Reads page number `index` up to the end of the file. Returns whether the file has a part of it.
    fn read_page(&self, index: u64, page: &mut [u8]) -> Result<bool, Errno> {
        let mut done = 0;
        while done < page.len() {
            let at = index * PAGE + done as u64;
            match rustix::io::retry_on_intr(|| rustix::io::pread(&self.open.host, &mut page[done..], at))? {
                0 => break,
                got => done += got,
            }
        }
        Ok(done > 0)
    }
}

impl PageSource for MappedFile {
    fn load(&self, index: u64, page: &mut [u8]) -> bool {
        index < PAGES_END && self.plainly(|| self.read_page(index, page)).unwrap_or(false)
    }

    fn moved(&self, index: u64) -> Option<u64> {
        (self.is_in_memory() && self.writable).then(|| self.punch(index).ok()).flatten()
    }
}

/// A mapped file.
pub(crate) struct SharedFile {
    pub object: ObjectId,
    pub file: Arc<MappedFile>,
    /// Only private mappings have used it so far: length and time of the last change of the host's file when it was last mapped.
    /// With another one, another program has changed the file.
    pub private: Option<State>,
}

/// Length of a file in bytes, and the time of its last change in s and ns.
type State = (u64, i64, u64);

/// Returns the state of a file.
fn state_of(file: BorrowedFd<'_>) -> Result<State, Errno> {
    let stat = rustix::fs::fstat(file)?;
    Ok((stat.st_size as u64, stat.st_mtime as i64, stat.st_mtime_nsec as u64))
}

impl SharedFile {
    /// Writes changed pages to the host's file. Those of a file in the simulated memory leave the object.
    ///
    /// # Errors
    /// The host's; `ENOSPC` when there is no room.
    fn flush(&self, mem: &mut Memory) -> Result<(), Errno> {
        let leave = self.file.is_in_memory();
        self.file.plainly(|| self.file.write_back(mem, self.object, leave))
    }

    /// Updates the object after a write to the host's file.
    fn written(&self, mem: &mut Memory, offset: u64, bytes: &[u8]) {
        mem.write_object(self.object, offset, bytes);
        if !self.file.is_in_memory() || !self.file.writable || bytes.is_empty() {
            return;
        }
        for index in offset / PAGE..=(offset + bytes.len() as u64 - 1) / PAGE {
            if mem.soil_page(self.object, index)
                && let Ok(freed) = self.file.punch(index)
            {
                mem.set_elsewhere(mem.elsewhere_bytes().saturating_sub(freed));
            }
        }
    }
}

/// All files that have an object.
#[derive(Default)]
pub(crate) struct SharedFiles(BTreeMap<Identity, SharedFile>);

impl SharedFiles {
    /// Returns the entry of a host file.
    pub(crate) fn of(&self, file: BorrowedFd<'_>) -> Option<&SharedFile> {
        if self.0.is_empty() { None } else { self.0.get(&identity(file).ok()?) }
    }

    /// Iterates over the entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &SharedFile> {
        self.0.values()
    }

    /// Adds an entry and makes the file the source of its object.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn insert(&mut self, mem: &mut Memory, object: ObjectId, file: MappedFile) -> Result<(), Errno> {
        self.put(mem, object, file, None)
    }

    fn put(
        &mut self,
        mem: &mut Memory,
        object: ObjectId,
        file: MappedFile,
        private: Option<State>,
    ) -> Result<(), Errno> {
        let (identity, file) = (identity(file.open.host.as_fd())?, Arc::new(file));
        mem.set_source(object, file.clone());
        self.0.insert(identity, SharedFile { object, file, private });
        Ok(())
    }

    /// Copies what the object of a file has into bytes just read from the host's file at `offset`.
    pub(crate) fn after_read(&self, mem: &Memory, file: BorrowedFd<'_>, offset: u64, bytes: &mut [u8]) {
        if let Some(shared) = self.of(file) {
            mem.read_object(shared.object, offset, bytes);
        }
    }

    /// Updates the object of a file after `bytes` have been written to the host's file at `offset`, or at its position.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn after_write(
        &self,
        mem: &mut Memory,
        file: BorrowedFd<'_>,
        offset: Option<u64>,
        bytes: &[u8],
    ) -> Result<(), Errno> {
        let Some(shared) = self.of(file) else { return Ok(()) };
        let offset = match offset {
            Some(_) if rustix::fs::fcntl_getfl(file)?.contains(OFlags::APPEND) => {
                (rustix::fs::fstat(file)?.st_size as u64).saturating_sub(bytes.len() as u64)
            }
            Some(at) => at,
            None => rustix::fs::tell(file)?.saturating_sub(bytes.len() as u64),
        };
        shared.written(mem, offset, bytes);
        Ok(())
    }

    /// Updates the object of a file whose length has been set.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn after_resize(&self, mem: &mut Memory, file: BorrowedFd<'_>) -> Result<(), Errno> {
        let Some(shared) = self.of(file) else { return Ok(()) };
        let bytes = shared.file.bytes()?;
        mem.drop_pages(shared.object, bytes.div_ceil(PAGE), PAGES_END, true);
        if bytes % PAGE != 0 {
            mem.zero_rest_of_page(shared.object, bytes);
        }
        Ok(())
    }

    /// Writes the changed pages of a file to the host, so that the host's file has all its contents.
    ///
    /// # Errors
    /// The host's; `ENOSPC` when there is no room.
    pub(crate) fn flush(&self, mem: &mut Memory, file: BorrowedFd<'_>) -> Result<(), Errno> {
        self.of(file).map_or(Ok(()), |shared| shared.flush(mem))
    }

    /// Writes the changed pages of a file on the host (`fsync`). Files in the simulated memory have nothing behind them.
    ///
    /// # Errors
    /// The host's; `ENOSPC` when there is no room.
    pub(crate) fn sync(&self, mem: &mut Memory, file: BorrowedFd<'_>) -> Result<(), Errno> {
        let on_host = self.of(file).filter(|shared| !shared.file.is_in_memory());
        on_host.map_or(Ok(()), |shared| shared.flush(mem))
    }

    /// Updates the object of a file, flushed before, after the host's file has changed from `start` up to `end`, or to its end.
    pub(crate) fn after_change(&self, mem: &mut Memory, file: BorrowedFd<'_>, start: u64, end: Option<u64>) {
        if let Some(shared) = self.of(file) {
            shared.reload(mem, start, end.unwrap_or(PAGES_END * PAGE));
        }
    }
}

impl SharedFile {
    /// Drops the pages of `start..end`: they are read from the host's file again.
    fn reload(&self, mem: &mut Memory, start: u64, end: u64) {
        mem.drop_pages(self.object, start / PAGE, end.div_ceil(PAGE), false);
    }
}

impl Kernel<'_> {
    /// Returns the object of a descriptor's file, which is about to be mapped shared. If the descriptor is open for writing, the
    /// mapping may change it.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn shared_object(&mut self, fd: i32) -> Result<ObjectId, Errno> {
        let host = self.process.files.host(fd)?;
        let writable = rustix::fs::fcntl_getfl(host)? & OFlags::RWMODE == OFlags::RDWR;
        let known = self.system.shared_files.of(host);
        if let Some(SharedFile { object, file, private: None }) = known
            && (file.writable || !writable)
        {
            return Ok(*object);
        }
        let known = known.map(|shared| shared.object);
        let file = MappedFile { open: self.process.files.second(fd)?, writable };
        let object = known.unwrap_or_else(|| self.mem.add_object());
        self.system.shared_files.insert(self.mem, object, file)?;
        Ok(object)
    }

    /// Returns the object of a descriptor's file, which is about to be mapped privately. `read_only`: the mapping will hardly have
    /// pages of its own. `None`: there is no object, and the mapping should be a copy.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn private_object(&mut self, fd: i32, read_only: bool) -> Result<Option<ObjectId>, Errno> {
        let open = self.process.files.open_file(fd)?;
        let known = self.system.shared_files.of(open.host.as_fd());
        let known = known.map(|shared| (shared.object, shared.private));
        if let Some((object, None)) = known {
            return Ok(Some(object));
        }
        if !read_only || !matches!(open.origin, Origin::Host | Origin::Sysroot) {
            return Ok(None);
        }
        let state = state_of(open.host.as_fd())?;
        match known {
            Some((object, Some(before))) if before == state => return Ok(Some(object)),
            // Another program has changed the file.
            Some((object, _)) => self.mem.drop_pages(object, 0, PAGES_END, false),
            None => {}
        }
        // Without a free descriptor on the host, the mapping is a copy.
        let Ok(open) = self.process.files.second(fd) else { return Ok(None) };
        let object = known.map_or_else(|| self.mem.add_object(), |(object, _)| object);
        self.system.shared_files.put(self.mem, object, MappedFile { open, writable: false }, Some(state))?;
        Ok(Some(object))
    }

    /// Removes the objects that nobody maps any more. Changes are written to their files; errors appear in the notes of the run.
    pub(crate) fn forget_unmapped(&mut self) {
        for object in self.mem.take_unmapped() {
            if self.mem.mappings_of(object) == 0 {
                self.forget_file(object);
                let now = (self.system.start_unix_ns + self.system.now_ns) / 1_000_000_000;
                self.system.segments.unmapped(self.mem, object, now);
            }
        }
    }

    fn forget_file(&mut self, object: ObjectId) {
        let files = &mut self.system.shared_files.0;
        let Some(identity) = files.iter().find(|(_, shared)| shared.object == object).map(|(&id, _)| id) else {
            return;
        };
        let Some(SharedFile { file, .. }) = files.remove(&identity) else { return };
        let written = file.plainly(|| file.write_back(self.mem, object, true));
        self.mem.release_object(object);
        self.note_unwritten(&file, written);
    }

    /// Records that changes could not be written to a file. Only the first such files are recorded.
    fn note_unwritten(&mut self, file: &MappedFile, written: Result<(), Errno>) {
        const MOST: usize = 100;
        let Err(error) = written else { return };
        let path = path_of(file.open.host.as_fd()).unwrap_or_default();
        let unwritten = &mut self.system.unwritten;
        if unwritten.len() < MOST && !unwritten.iter().any(|(other, _)| *other == path) {
            unwritten.push((path, error.raw_os_error()));
        }
    }

    /// Writes all changes of mapped files on the host to them. Errors appear in the notes of the run.
    pub(crate) fn flush_host_files(&mut self) {
        let files: Vec<_> = self.system.shared_files.0.values().filter(|shared| !shared.file.is_in_memory()).collect();
        let written: Vec<_> = files.into_iter().map(|shared| (shared.file.clone(), shared.flush(self.mem))).collect();
        for (file, written) in written {
            self.note_unwritten(&file, written);
        }
    }

    /// Writes the changes of the files on the host that are mapped shared within `[start, end)`.
    ///
    /// # Errors
    /// The host's; `ENOSPC` when there is no room.
    pub(crate) fn flush_range(&mut self, start: u64, end: u64) -> Result<(), Errno> {
        let shared = self.mem.regions_within(start, end).filter(|region| region.shared);
        let objects: Vec<ObjectId> = shared.filter_map(|region| Some(region.backing?.object)).collect();
        for shared in self.system.shared_files.0.values() {
            if objects.contains(&shared.object) && !shared.file.is_in_memory() {
                shared.flush(self.mem)?;
            }
        }
        Ok(())
    }
}
