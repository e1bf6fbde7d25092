//! The contents of a program's file. Of files on the host only the parts needed are read, piece by piece: the memory that loading
//! takes does not depend on the file's size.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use object::read::{ReadCache, ReadRef};

/// Maximum bytes of headers: more than the largest table of program headers has.
const HEADER_BYTES: u64 = 8 << 20;

/// Maximum bytes of section headers, symbol tables and notes: names are a convenience, and the program runs without.
const NAME_BYTES: u64 = 256 << 20;

/// Reading a file's names may temporarily use at most 1/8 of the machine's memory.
const NAME_SHARE: u64 = 8;

/// A program's file on the host.
pub(crate) struct ProgramFile {
    file: File,
    cache: ReadCache<File>,
    /// Bytes of tables that may still be read.
    left: Cell<u64>,
    name_bytes: u64,
}

impl ProgramFile {
    /// Opens the file at `path`. `memory_bytes` is the memory of the machine.
    ///
    /// # Errors
    /// The host's; also when it is not a regular file.
    pub(crate) fn open(path: &Path, memory_bytes: u64) -> io::Result<ProgramFile> {
        ProgramFile::of(fxscope_host::open(path, u64::MAX)?, memory_bytes)
    }

    /// The same for a file that is already open.
    ///
    /// # Errors
    /// The host's; also when it is not a regular file.
    pub(crate) fn of(file: File, memory_bytes: u64) -> io::Result<ProgramFile> {
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let cache = ReadCache::new(file.try_clone()?);
        let name_bytes = NAME_BYTES.min(memory_bytes / NAME_SHARE);
        Ok(ProgramFile { file, cache, left: Cell::new(HEADER_BYTES), name_bytes })
    }
}

/// The source from which a program is loaded.
#[derive(Clone, Copy)]
pub(crate) enum Content<'a> {
    /// The complete contents, in memory.
    Bytes(&'a [u8]),
    /// A host file.
    File(&'a ProgramFile),
}

impl<'a> Content<'a> {
    /// Returns its length in bytes.
    pub(crate) fn bytes(self) -> u64 {
        self.len().unwrap_or(0)
    }

    /// Returns its first bytes, at most `most`.
    pub(crate) fn start(self, most: u64) -> &'a [u8] {
        self.read_bytes_at(0, self.bytes().min(most)).unwrap_or_default()
    }

    /// Sets the read limit for headers.
    pub(crate) fn limit_to_headers(self) {
        if let Content::File(file) = self {
            file.left.set(HEADER_BYTES);
        }
    }

    /// Sets the read limit for names, which may be larger than headers.
    pub(crate) fn limit_to_names(self) {
        if let Content::File(file) = self {
            file.left.set(file.name_bytes);
        }
    }

    /// Copies the bytes from `offset` on.
    ///
    /// # Errors
    /// The host's; also when the contents end before.
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
            // Only complete tables are read.
            Content::File(_) => Err(()),
        }
    }
}
