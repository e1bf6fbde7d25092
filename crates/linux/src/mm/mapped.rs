//! Which files are mapped where: for `/proc/self/maps`, and for the rights that mappings may get.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

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
    pub shared: bool,
    /// Whether the file was open for writing.
    pub writable: bool,
}

impl Mapped {
    /// Returns a private mapping of a program's own file, of which nothing else is known.
    pub(crate) fn private(end: u64, path: Vec<u8>, offset: u64) -> Mapped {
        Mapped { end, path, offset, inode: 0, shared: false, writable: false }
    }
}

/// What is mapped where.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct MappedFiles {
    /// By first address.
    files: BTreeMap<u64, Mapped>,
}

impl MappedFiles {
    /// Records a new mapping at `start`; its range must have been passed to [`MappedFiles::remove`].
    pub(crate) fn insert(&mut self, start: u64, mapped: Mapped) {
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

    /// Returns the file mapped at an address; the offset is that of the address.
    pub(crate) fn at(&self, address: u64) -> Option<Mapped> {
        let (&start, mapped) = self.files.range(..=address).next_back()?;
        (address < mapped.end).then(|| Mapped { offset: mapped.offset + (address - start), ..mapped.clone() })
    }

    /// Returns the first address in `[start, end)` that belongs to a shared mapping of a file not opened for writing: it can
    /// never be made writable.
    pub(crate) fn first_unwritable(&self, start: u64, end: u64) -> Option<u64> {
        let unwritable = |(_, m): &(&u64, &Mapped)| m.end > start && m.shared && !m.writable;
        self.files.range(..end).find(unwritable).map(|(&first, _)| first.max(start))
    }

    /// Removes what is mapped in `[start, end)`.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        self.split(start);
        self.split(end);
        self.files.retain(|&at, _| at < start || at >= end);
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
