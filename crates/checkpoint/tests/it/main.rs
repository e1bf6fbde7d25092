//! The integration tests of `fxscope-checkpoint`, as one program.

mod damage;
mod folders;
mod killed;
mod parcels;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use fxscope_checkpoint::{About, CHUNK, Folder, PageKey, Reader, Saved, Writer};

/// The contents of a snapshot: a state, and pages of one object.
#[derive(Clone, Debug, Default, PartialEq)]
struct Contents {
    state: Vec<u8>,
    pages: BTreeMap<u64, Vec<u8>>,
}

impl Contents {
    /// Contents of these pages, each with bytes that follow from its seed and hardly compress.
    fn of(pages: &[(u64, u64)]) -> Contents {
        let state = pages.iter().flat_map(|(index, seed)| [index.to_le_bytes(), seed.to_le_bytes()].concat()).collect();
        Contents { state, pages: pages.iter().map(|&(index, seed)| (index, noise(seed))).collect() }
    }

    /// Adds a snapshot with them.
    fn save(&self, writer: &mut Writer, instructions: u64) -> std::io::Result<Saved> {
        let mut snapshot = writer.begin()?;
        snapshot.write_all(&self.state)?;
        for (&index, page) in &self.pages {
            snapshot.page(PageKey { object: 0, index }, page)?;
        }
        snapshot.finish(About { instructions, ..About::default() })
    }

    /// Reads those of a snapshot.
    fn read(reader: &Reader) -> std::io::Result<Contents> {
        let mut pages = BTreeMap::new();
        reader.pages(&mut |key, bytes| {
            pages.insert(key.index, bytes.to_vec());
            Ok(())
        })?;
        Ok(Contents { state: reader.state()?, pages })
    }
}

/// The bytes of a page that hardly compress.
fn noise(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..CHUNK / 8).flat_map(|_| word()).collect()
}

fn folder_in(parent: &Path) -> Folder {
    Folder::create(&parent.join("snapshots"), b"a run").unwrap_or_else(|error| panic!("{error}"))
}

fn writer_of(folder: &Folder, keep: usize) -> Writer {
    folder.writer(keep).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the contents of a snapshot that must be whole.
fn contents(folder: &Folder, number: u64) -> Contents {
    let reader = folder.snapshot(number).unwrap_or_else(|error| panic!("{error}"));
    Contents::read(&reader).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the names of a folder's files, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("readable");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
