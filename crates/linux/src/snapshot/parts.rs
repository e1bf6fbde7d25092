//! The parts of a snapshot: the state as one stream of bytes, and pages apart from it, so that nothing needs the memory for a copy of
//! all of them and equal pages can be stored once.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::SnapshotError;
use crate::fs::vfs::access::Access;
use crate::fs::vfs::default_sysroot;
use crate::fs::vfs::shared_memory::SharedFolder;
use crate::setup::Stdio;

/// Bytes of the state that are passed on together.
const BUFFER: usize = 64 << 10;

/// Which page a page of a snapshot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageId {
    /// 0: the memory of the machine. Others: the files without a name, from 1 on.
    pub object: u32,
    /// The page's number in it.
    pub index: u64,
}

/// Where a snapshot goes. What is written to it is the state.
pub trait SnapshotSink: Write {
    /// Takes a page: at most [`fxscope_guestmem::PAGE`] bytes that are not all zeros. Other pages are zeros.
    ///
    /// # Errors
    /// When it cannot be stored.
    fn page(&mut self, id: PageId, bytes: &[u8]) -> io::Result<()>;
}

/// Where a snapshot comes from.
pub trait SnapshotSource {
    /// Returns the whole state.
    ///
    /// # Errors
    /// When it cannot be read, or is not what was stored.
    fn state(&mut self) -> io::Result<Vec<u8>>;

    /// Passes on all pages.
    ///
    /// # Errors
    /// Those of `take`; when one cannot be read, or is not what was stored.
    fn pages(&mut self, take: &mut dyn FnMut(PageId, &[u8]) -> io::Result<()>) -> io::Result<()>;
}

/// What a restored guest gets from its new surroundings.
pub struct Surroundings<'a> {
    /// Its standard streams.
    pub stdio: &'a Stdio,
    /// As [`crate::Setup::sysroot`].
    pub sysroot: Option<PathBuf>,
    /// What it may access on the host.
    pub access: Access,
    /// As [`crate::Setup::shared_folder`].
    pub shared_folder: Option<Arc<SharedFolder>>,
}

impl<'a> Surroundings<'a> {
    /// Returns those of [`crate::Setup::new`] with these standard streams.
    #[must_use]
    pub fn new(stdio: &'a Stdio) -> Surroundings<'a> {
        Surroundings { stdio, sysroot: default_sysroot(), access: Access::standard(), shared_folder: None }
    }
}

/// Adds a value to the state of a snapshot.
///
/// # Errors
/// When it cannot be stored, or not be serialised.
pub fn write_state<T: Serialize + ?Sized>(value: &T, to: &mut dyn SnapshotSink) -> Result<(), SnapshotError> {
    let mut buffered = Buffered { bytes: Vec::with_capacity(BUFFER), to, failed: None };
    let written = postcard::to_io(value, &mut buffered).map(drop);
    match (written, buffered.finish()) {
        (_, Err(error)) => Err(SnapshotError::Host(error)),
        (Err(_), Ok(())) => Err(SnapshotError::NotKept { what: "a thread that waits for another program".into() }),
        (Ok(()), Ok(())) => Ok(()),
    }
}

/// Takes a value from the beginning of a state. Returns it, and the bytes behind it.
///
/// # Errors
/// When the bytes are something else.
pub fn read_state<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, &[u8]), SnapshotError> {
    postcard::take_from_bytes(bytes).map_err(|_| SnapshotError::Damaged)
}

/// Collects what postcard writes byte by byte.
struct Buffered<'a> {
    bytes: Vec<u8>,
    to: &'a mut dyn SnapshotSink,
    /// The error that postcard does not pass on.
    failed: Option<io::Error>,
}

impl Buffered<'_> {
    #[cold]
    fn pass_on(&mut self) -> io::Result<()> {
        let written = self.to.write_all(&self.bytes);
        self.bytes.clear();
        written.map_err(|error| {
            let kind = error.kind();
            self.failed = Some(error);
            kind.into()
        })
    }

    fn finish(mut self) -> io::Result<()> {
        let passed = self.pass_on();
        self.failed.map_or(passed, Err)
    }
}

impl Write for Buffered<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > BUFFER {
            self.pass_on()?;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
