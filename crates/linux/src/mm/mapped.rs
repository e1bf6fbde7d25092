//! Which files are mapped where: for `/proc/self/maps`, and for writing shared mappings back.
//!
//! Mappings are copies of the file's contents. Those of a shared mapping are written back when it is unmapped, by `msync`, and
//! when the program ends. A file in the simulated memory takes room there in addition to its mappings.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher as _;
use std::path::PathBuf;
use std::sync::Arc;

use fxscope_guestmem::Memory;
use fxscope_guestmem::PAGE;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::fs::files::OpenFile;
use crate::fs::memory_files;
use crate::guest::Guest;

impl Guest {
    /// Returns the host paths of the files that are mapped now: before the first step, the program and its interpreter.
    #[must_use]
    pub fn mapped_files(&self) -> Vec<PathBuf> {
        let paths: BTreeSet<&[u8]> = self.space().mapped.paths().collect();
        paths.into_iter().map(|path| self.host_path(path)).collect()
    }
}

/// A file, or a part of it, in memory.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Mapped {
    /// Address after the mapping.
    pub end: u64,
    /// The file's path as the program sees it.
    pub path: Vec<u8>,
    /// Offset in the file of the mapping's first byte.
    pub offset: u64,
    pub inode: u64,
    /// The file to write changes back to, for a shared mapping that may be written.
    #[serde(skip)]
    pub write_back: Option<Arc<OpenFile>>,
    pub shared: bool,
}

impl Mapped {
    /// Returns a private mapping of a program's own file, of which nothing else is known.
    pub(crate) fn private(end: u64, path: Vec<u8>, offset: u64) -> Mapped {
        Mapped { end, path, offset, inode: 0, write_back: None, shared: false }
    }
}

/// What is mapped where.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct MappedFiles {
    /// By first address.
    files: BTreeMap<u64, Mapped>,
    /// Pages of mappings that are written back, with a hash of their contents in the file: only changed pages are written.
    clean: BTreeMap<u64, u64>,
}

impl MappedFiles {
    /// Records a new mapping at `start`; its range must have been passed to [`MappedFiles::remove`].
    pub(crate) fn insert(&mut self, mem: &mut Memory, start: u64, mapped: Mapped) {
        if mapped.write_back.is_some() {
            for page in (start..mapped.end).step_by(PAGE as usize) {
                self.clean.extend(page_hash(mem, page).map(|hash| (page, hash)));
            }
        }
        self.files.insert(start, mapped);
    }

    /// Returns the number of file mappings.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// Iterates over the paths of all files, once per mapping.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.files.values().map(|mapped| &mapped.path[..])
    }

    /// Iterates over the files to which mappings are written back.
    pub(crate) fn written_back_to(&self) -> impl Iterator<Item = &OpenFile> {
        self.files.values().filter_map(|mapped| mapped.write_back.as_deref())
    }

    /// Iterates over the mappings that are written back: their first addresses and the files.
    pub(crate) fn written_back(&self) -> impl Iterator<Item = (u64, &OpenFile)> {
        self.files.iter().filter_map(|(&start, mapped)| Some((start, mapped.write_back.as_deref()?)))
    }

    /// Makes the mapping at `start` write back to `file`. `None`: there is no such mapping.
    pub(crate) fn write_back_to(&mut self, start: u64, file: OpenFile) -> Option<()> {
        self.files.get_mut(&start)?.write_back = Some(Arc::new(file));
        Some(())
    }

    /// Returns the file mapped at an address; the offset is that of the address.
    pub(crate) fn at(&self, address: u64) -> Option<Mapped> {
        let (&start, mapped) = self.files.range(..=address).next_back()?;
        (address < mapped.end).then(|| Mapped { offset: mapped.offset + (address - start), ..mapped.clone() })
    }

    /// Returns the first address in `[start, end)` that belongs to a shared mapping of a file not opened for writing: it can
    /// never be made writable.
    pub(crate) fn first_unwritable(&self, start: u64, end: u64) -> Option<u64> {
        let unwritable = |(_, m): &(&u64, &Mapped)| m.end > start && m.shared && m.write_back.is_none();
        self.files.range(..end).find(unwritable).map(|(&first, _)| first.max(start))
    }

    /// Removes what is mapped in `[start, end)`, writing changes of shared mappings back.
    pub(crate) fn remove(&mut self, mem: &mut Memory, start: u64, end: u64) {
        self.split(start);
        self.split(end);
        self.give_back(mem, start, end);
        self.files.retain(|&at, _| at < start || at >= end);
        self.clean.retain(|&page, _| page < start || page >= end);
    }

    /// Moves the records of `[from, from + len)` to `to`.
    pub(crate) fn move_range(&mut self, from: u64, len: u64, to: u64) {
        self.split(from);
        self.split(from + len);
        let inside: Vec<u64> = self.files.range(from..from + len).map(|(&at, _)| at).collect();
        for at in inside {
            if let Some(mut mapped) = self.files.remove(&at) {
                mapped.end = mapped.end - from + to;
                self.files.insert(at - from + to, mapped);
            }
        }
        let inside: Vec<u64> = self.clean.range(from..from + len).map(|(&page, _)| page).collect();
        for page in inside {
            let hash = self.clean.remove(&page);
            self.clean.extend(hash.map(|hash| (page - from + to, hash)));
        }
    }

    /// Writes the pages of shared mappings in `[start, end)` to their files, without extending the files.
    ///
    /// # Errors
    /// The host's; `ENOSPC` when there is no room for a file in the simulated memory.
    pub(crate) fn write_back(&mut self, mem: &mut Memory, start: u64, end: u64) -> Result<(), Errno> {
        self.write_pages(mem, start, end, false)
    }

    /// The same for pages that this address space no longer needs: the room of each is available for its copy in the file. Errors
    /// are ignored, as under Linux without `msync`.
    pub(crate) fn give_back(&mut self, mem: &mut Memory, start: u64, end: u64) {
        let _ = self.write_pages(mem, start, end, true);
    }

    fn write_pages(&mut self, mem: &mut Memory, start: u64, end: u64, give_back: bool) -> Result<(), Errno> {
        for (&first, mapped) in self.files.range(..end).filter(|(_, m)| m.end > start) {
            let Some(file) = &mapped.write_back else { continue };
            let file_bytes = rustix::fs::fstat(&file.host)?.st_size as u64;
            for page in (first.max(start)..mapped.end.min(end)).step_by(PAGE as usize) {
                let hash = page_hash(mem, page);
                if hash.is_none() || hash.as_ref() == self.clean.get(&page) {
                    continue;
                }
                let offset = mapped.offset + (page - first);
                let mut content = vec![0; PAGE.min(file_bytes.saturating_sub(offset)) as usize];
                mem.read(page, &mut content).map_err(|_| Errno::FAULT)?;
                if give_back {
                    mem.discard(page, page + PAGE);
                }
                write_all(mem, file, &content, offset)?;
                self.clean.extend(hash.map(|hash| (page, hash)));
            }
        }
        Ok(())
    }

    /// Makes `at` a boundary between two mappings if it lies inside one.
    fn split(&mut self, at: u64) {
        let Some((&start, mapped)) = self.files.range_mut(..at).next_back() else { return };
        if mapped.end > at {
            let upper = Mapped { offset: mapped.offset + (at - start), ..mapped.clone() };
            mapped.end = at;
            self.files.insert(at, upper);
        }
    }
}

/// Returns a hash of a page's contents; `None`: nothing is there, or the program may not read it.
fn page_hash(mem: &mut Memory, page: u64) -> Option<u64> {
    mem.physical(page)?;
    let mut content = vec![0; PAGE as usize];
    mem.read(page, &mut content).ok()?;
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(&content);
    Some(hasher.finish())
}

fn write_all(mem: &mut Memory, file: &OpenFile, mut content: &[u8], mut offset: u64) -> Result<(), Errno> {
    while !content.is_empty() {
        let n = memory_files::growing(mem, file, Some(offset), content.len() as u64, |fitting| {
            rustix::io::retry_on_intr(|| rustix::io::pwrite(&file.host, &content[..fitting as usize], offset))
        })?;
        content = &content[n..];
        offset += n as u64;
    }
    Ok(())
}
