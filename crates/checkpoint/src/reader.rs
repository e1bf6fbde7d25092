//! Reading a snapshot.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::manifest::{About, Chunk, Manifest, PageKey};
use crate::pack::unpacked;
use crate::store::{Store, pages_name, snapshot_name};
use crate::{CHUNK, Error};

/// A whole snapshot, whose files are open: reading it needs no access to the folder any more.
#[derive(Debug)]
pub struct Reader {
    number: u64,
    manifest: Manifest,
    /// By index in [`Manifest::packs`].
    packs: Vec<File>,
    /// The path of the manifest, for messages.
    path: String,
}

impl Reader {
    pub(crate) fn open(store: Store, number: u64, manifest: Manifest) -> Result<Reader, Error> {
        let packs = manifest.packs.iter().map(|&pack| {
            let name = pages_name(pack);
            store.file(&name).map_err(store.failed(&name))
        });
        let packs = packs.collect::<Result<_, _>>()?;
        Ok(Reader { number, manifest, packs, path: store.path_of(&snapshot_name(number)) })
    }

    /// Returns its number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns what it is about.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.manifest.about
    }

    /// Returns the state.
    ///
    /// # Errors
    /// When a chunk cannot be read ([`io::ErrorKind::InvalidData`]: it has changed).
    pub fn state(&self) -> io::Result<Vec<u8>> {
        let mut state = Vec::new();
        for chunk in &self.manifest.state {
            state.extend(self.chunk(chunk)?);
        }
        Ok(state)
    }

    /// Calls `take` for each page that is not all zeros.
    ///
    /// # Errors
    /// Those of `take`, and of [`Reader::state`].
    pub fn pages(&self, take: &mut dyn FnMut(PageKey, &[u8]) -> io::Result<()>) -> io::Result<()> {
        self.manifest.pages.iter().try_for_each(|(key, chunk)| take(*key, &self.chunk(chunk)?))
    }

    fn chunk(&self, chunk: &Chunk) -> io::Result<Vec<u8>> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, format!("{}: its pages have changed", self.path));
        let mut stored = vec![0; (chunk.stored as usize).min(CHUNK)];
        let pack = self.packs.get(chunk.pack as usize).ok_or_else(damaged)?;
        pack.read_exact_at(&mut stored, chunk.offset)?;
        unpacked(chunk, stored).ok_or_else(damaged)
    }
}
