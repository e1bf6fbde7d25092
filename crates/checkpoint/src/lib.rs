//! A folder with the snapshots of one run.
//!
//! | File | What it holds |
//! |---|---|
//! | `run` | how the run was started; written once |
//! | `000007.snapshot` | the *manifest* of a snapshot: what it is about, and where each of its chunks is |
//! | `000007.pages` | the chunks that no earlier pack had when snapshot 7 was taken: a *pack* |
//! | `ended` | the run has ended |
//!
//! A chunk is a page of memory or a part of the state, at most [`CHUNK`] bytes, compressed. Chunks are identified by SHA-256 of their
//! contents: each is stored once, whichever snapshots have it. When most of a pack is no longer needed, the next snapshot stores the
//! rest again, so that the pack can be removed.
//!
//! A snapshot exists once its manifest has its name, and its chunks are on the disk before that. A process that is killed at any
//! time, or a full disk, leaves the snapshots that were there. Reading detects damage: manifests have a digest of themselves, and
//! chunks are compared with theirs.

mod folder;
mod manifest;
mod pack;
pub mod parcel;
mod reader;
mod sealed;
mod store;
mod writer;

pub use folder::{Folder, Listed};
pub use manifest::{About, Manifest, PageKey};
pub use reader::Reader;
pub use sealed::VERSION;
pub use writer::{Saved, Snapshot, Writer};

/// The most bytes of a chunk: a page of guest memory.
pub const CHUNK: usize = 64 << 10;

/// Why a folder of snapshots cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The host's.
    #[error("{path}: {source}")]
    Host {
        /// The folder, or the file in it.
        path: String,
        /// The host's error.
        source: std::io::Error,
    },
    /// The folder has something else.
    #[error("{0}: has other files; give a new folder, or an empty one")]
    Foreign(String),
    /// It has a run already.
    #[error("{0}: has the snapshots of another run; give another folder, or continue that run with fxscope resume {0}")]
    HasRun(String),
    /// It has no run.
    #[error("{0}: no folder of snapshots, as fxscope run --checkpoint makes them")]
    NoRun(String),
    /// Another process uses it.
    #[error("{0}: a run that has not ended uses it")]
    InUse(String),
    /// A file is of another version.
    #[error("{path}: has format {found}; this program reads format {VERSION}")]
    Version {
        /// The file.
        path: String,
        /// Its format.
        found: u32,
    },
    /// A file is damaged.
    #[error("{path}: is damaged: {what}")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong.
        what: &'static str,
    },
    /// There is no such snapshot.
    #[error("{path}: has no snapshot {number}")]
    Missing {
        /// The folder.
        path: String,
        /// The snapshot's number.
        number: u64,
    },
}
