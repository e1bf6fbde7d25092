//! The contents of a program's file. Of files on the host only what is asked for is read, a piece at a time: how large a file is
//! says nothing about what it takes to load it.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use object::read::{ReadCache, ReadRef};

/// Most bytes of headers: more than the largest table of program headers has.
const HEADER_BYTES: u64 = 8 << 20;

/// Most bytes of section headers, symbol tables and notes: names are a convenience, and the program runs without.
const NAME_BYTES: u64 = 256 << 20;

/// The largest part of the machine's memory that reading a file's names may take for the time being.
const NAME_SHARE: u64 = 8;

/// A program's file on the host.
pub(crate) struct ProgramFile {
    file: File,
    cache: ReadCache<File>,
    /// Bytes that may still be read for tables.
    left: Cell<u64>,
    name_bytes: u64,
}

impl ProgramFile {
    /// Opens the file at `path`. `memory_bytes` is the memory of the machine.
    ///
    /// # Errors
    /// The host's; that it is no regular file.
    pub(crate) fn open(path: &Path, memory_bytes: u64) -> io::Result<ProgramFile> {
        ProgramFile::of(fxscope_host::open(path, u64::MAX)?, memory_bytes)
    }

    /// The same for a file that is open already.
    ///
    /// # Errors
    /// The host's; that it is no regular file.
    pub(crate) fn of(file: File, memory_bytes: u64) -> io::Result<ProgramFile> {
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let cache = ReadCache::new(file.try_clone()?);
        let name_bytes = NAME_BYTES.min(memory_bytes / NAME_SHARE);
        Ok(ProgramFile { file, cache, left: Cell::new(HEADER_BYTES), name_bytes })
    }
}

/// What a program is loaded from.
#[derive(Clone, Copy)]
pub(crate) enum Content<'a> {
    /// All of it, in memory.
    Bytes(&'a [u8]),
    /// A file of the host.
    File(&'a ProgramFile),
}

impl<'a> Content<'a> {
    /// Its length in bytes.
    pub(crate) fn bytes(self) -> u64 {
        self.len().unwrap_or(0)
    }

    /// Its first bytes, at most `most`.
    pub(crate) fn start(self, most: u64) -> &'a [u8] {
        self.read_bytes_at(0, self.bytes().min(most)).unwrap_or_default()
    }

    /// From now on headers are read.
    pub(crate) fn headers_follow(self) {
        if let Content::File(file) = self {
            file.left.set(HEADER_BYTES);
        }
    }

    /// From now on names are read, of which there may be more than of headers.
    pub(crate) fn names_follow(self) {
        if let Content::File(file) = self {
            file.left.set(file.name_bytes);
        }
    }

    /// Copies the bytes from `offset` on.
    ///
    /// # Errors
    /// The host's; when the contents end before.
    pub(crate) fn copy(self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match self {
            Content::Bytes(bytes) => {
                let from = usize::try_from(offset).ok().and_then(|start| bytes.get(start..)?.get(..out.len()));
                out.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
            Content::File(file) => file.file.read_exact_at(out, offset),
        }
    }
}

impl<'a> ReadRef<'a> for Content<'a> {
    fn len(self) -> Result<u64, ()> {
        match self {
            Content::Bytes(bytes) => Ok(bytes.len() as u64),
            Content::File(file) => (&file.cache).len(),
        }
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        match self {
            Content::Bytes(bytes) => bytes.read_bytes_at(offset, size),
            Content::File(file) => {
                file.left.set(file.left.get().checked_sub(size).ok_or(())?);
                (&file.cache).read_bytes_at(offset, size)
            }
        }
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        match self {
            Content::Bytes(bytes) => bytes.read_bytes_at_until(range, delimiter),
            // Only whole tables are read.
            Content::File(_) => Err(()),
        }
    }
}
