//! What a snapshot consists of.

use serde::{Deserialize, Serialize};

use crate::CHUNK;
use crate::sealed::{self, Broken};

/// The most bytes of a state. More is not believed.
const MAX_STATE: u64 = 16 << 30;

/// What a snapshot is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The version of the program that took it.
    pub tool: String,
    /// Instructions that the run had executed.
    pub instructions: u64,
    /// Its simulated time, ns.
    pub now_ns: u64,
    /// When it was taken, seconds since 1970.
    pub unix_seconds: u64,
    /// How long the run had taken, in seconds.
    pub wall_seconds: f64,
    /// More that the run needs to continue, in a form of its own.
    pub more: Vec<u8>,
}

/// Identifies a page: an object, and the page's number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PageKey {
    /// The object.
    pub object: u32,
    /// The number of the page.
    pub index: u64,
}

/// Identifies the contents of a chunk.
pub(crate) type Digest = [u8; 32];

/// Where a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Chunk {
    /// Index of its pack in [`Manifest::packs`].
    pub pack: u32,
    /// Its first byte in the pack.
    pub offset: u64,
    /// Bytes that it takes there: as many as it has, or fewer if it is compressed.
    pub stored: u32,
    /// Bytes that it has.
    pub bytes: u32,
    pub digest: Digest,
}

/// A snapshot, without its chunks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// What it is about.
    pub about: About,
    /// The numbers of the packs that have its chunks.
    pub(crate) packs: Vec<u64>,
    /// The chunks of its state, in order.
    pub(crate) state: Vec<Chunk>,
    pub(crate) pages: Vec<(PageKey, Chunk)>,
}

impl Manifest {
    /// Returns a file with it.
    #[must_use]
    pub fn to_file(&self) -> Vec<u8> {
        // Serialising to memory cannot fail: nothing in it can.
        sealed::seal(&postcard::to_stdvec(self).unwrap_or_default())
    }

    /// Reads a file. Whatever it has, what it returns can be used.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_file(file: &[u8]) -> Result<Manifest, String> {
        Manifest::read(file).map_err(|broken| match broken {
            Broken::Version(found) => format!("format {found}"),
            Broken::Damaged(what) => what.to_owned(),
        })
    }

    pub(crate) fn read(file: &[u8]) -> Result<Manifest, Broken> {
        let contents = sealed::contents(file)?;
        let manifest: Manifest =
            postcard::from_bytes(contents).map_err(|_| Broken::Damaged("it says something impossible"))?;
        let sound = |chunk: &Chunk| {
            (chunk.pack as usize) < manifest.packs.len()
                && (1..=CHUNK as u32).contains(&chunk.bytes)
                && (1..=chunk.bytes).contains(&chunk.stored)
                && chunk.offset.checked_add(chunk.stored.into()).is_some()
        };
        if !manifest.chunks().all(sound) || manifest.state_bytes() > MAX_STATE {
            return Err(Broken::Damaged("it says something impossible"));
        }
        Ok(manifest)
    }

    /// Iterates over all chunks, those of the state first.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.state.iter().chain(self.pages.iter().map(|(_, chunk)| chunk))
    }

    /// Returns the bytes of the state.
    pub(crate) fn state_bytes(&self) -> u64 {
        self.state.iter().map(|chunk| u64::from(chunk.bytes)).sum()
    }

    /// Returns the number of pages that are not all zeros.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.pages.len()
    }
}
