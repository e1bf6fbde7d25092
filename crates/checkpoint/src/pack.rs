//! Packs: the chunks that a snapshot adds to its folder.

use std::collections::HashMap;
use std::io::{self, Write};

use rayon::prelude::*;
use sha2::{Digest as _, Sha256};
use zstd::bulk::Compressor;

use crate::CHUNK;
use crate::manifest::{Chunk, Digest, Manifest, PageKey};

/// The level of compression: the fastest that compresses well. Higher ones take several times as long for a tenth less.
const LEVEL: i32 = 1;

/// A chunk for a pack.
#[derive(Debug)]
pub(crate) enum Item {
    /// The next part of the state.
    State(Vec<u8>),
    Page(PageKey, Vec<u8>),
}

impl Item {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Item::State(bytes) | Item::Page(_, bytes) => bytes,
        }
    }
}

/// Where a chunk of the folder is: the number of its pack, and the place there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub pack: u64,
    pub offset: u64,
    pub stored: u32,
}

/// Chunks that the folder has and that later snapshots may use.
pub(crate) type Known = HashMap<Digest, Place>;

/// A snapshot that is being stored.
pub(crate) struct Packing<'k, W> {
    /// Its number, and that of its pack.
    number: u64,
    to: W,
    /// Bytes written so far.
    pub written: u64,
    known: &'k Known,
    /// The chunks of this pack.
    new: Known,
    /// The index of each pack in the manifest.
    packs: HashMap<u64, u32>,
    pub manifest: Manifest,
}

impl<'k, W: Write> Packing<'k, W> {
    pub(crate) fn new(number: u64, to: W, known: &'k Known) -> Packing<'k, W> {
        let (new, packs, manifest) = (Known::new(), HashMap::new(), Manifest::default());
        Packing { number, to, written: 0, known, new, packs, manifest }
    }

    /// Stores items, those that the folder does not have yet.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn add(&mut self, items: &[Item]) -> io::Result<()> {
        let digests: Vec<Digest> = items.par_iter().map(|item| Sha256::digest(item.bytes()).into()).collect();
        let is_new: Vec<bool> = digests.iter().map(|digest| self.place(digest).is_none()).collect();
        let compressed: Vec<Option<Vec<u8>>> = items
            .par_iter()
            .zip(&is_new)
            .map_init(compressor, |compressor, (item, &is_new)| {
                is_new.then(|| compressed(compressor.as_mut(), item.bytes())).flatten()
            })
            .collect();
        for ((item, digest), compressed) in items.iter().zip(digests).zip(compressed) {
            let bytes = item.bytes();
            let place = match self.place(&digest) {
                Some(place) => place,
                None => self.store(digest, compressed.as_deref().unwrap_or(bytes))?,
            };
            let Place { pack, offset, stored } = place;
            let chunk = Chunk { pack: self.index_of(pack), offset, stored, bytes: bytes.len() as u32, digest };
            match item {
                Item::State(_) => self.manifest.state.push(chunk),
                Item::Page(key, _) => self.manifest.pages.push((*key, chunk)),
            }
        }
        Ok(())
    }

    fn place(&self, digest: &Digest) -> Option<Place> {
        self.new.get(digest).or_else(|| self.known.get(digest)).copied()
    }

    fn store(&mut self, digest: Digest, stored: &[u8]) -> io::Result<Place> {
        self.to.write_all(stored)?;
        let place = Place { pack: self.number, offset: self.written, stored: stored.len() as u32 };
        self.written += stored.len() as u64;
        self.new.insert(digest, place);
        Ok(place)
    }

    fn index_of(&mut self, pack: u64) -> u32 {
        let packs = &mut self.manifest.packs;
        *self.packs.entry(pack).or_insert_with(|| {
            packs.push(pack);
            packs.len() as u32 - 1
        })
    }

    /// Returns what it was written to.
    pub(crate) fn into_parts(self) -> (W, Manifest, u64) {
        (self.to, self.manifest, self.written)
    }
}

/// Returns a compressor; without memory for one, chunks are stored as they are.
fn compressor() -> Option<Compressor<'static>> {
    Compressor::new(LEVEL).ok()
}

/// Returns compressed bytes if they are fewer.
fn compressed(compressor: Option<&mut Compressor<'_>>, bytes: &[u8]) -> Option<Vec<u8>> {
    compressor?.compress(bytes).ok().filter(|compressed| compressed.len() < bytes.len())
}

/// Returns the contents of a chunk from what is stored; `None`: it has changed.
pub(crate) fn unpacked(chunk: &Chunk, stored: Vec<u8>) -> Option<Vec<u8>> {
    let bytes = match chunk.stored == chunk.bytes {
        true => stored,
        false => zstd::bulk::decompress(&stored, CHUNK).ok()?,
    };
    let same = bytes.len() == chunk.bytes as usize && chunk.digest == <Digest>::from(Sha256::digest(&bytes));
    same.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with room for this number of bytes.
    struct Disk {
        room: usize,
        written: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let part = bytes.len().min(self.room - self.written.len());
            if part == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.written.extend_from_slice(&bytes[..part]);
            Ok(part)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Bytes that hardly compress.
    fn noise(seed: u64) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut byte = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        (0..CHUNK).map(|_| byte()).collect()
    }

    fn page(index: u64, bytes: Vec<u8>) -> Item {
        Item::Page(PageKey { object: 0, index }, bytes)
    }

    #[test]
    fn equal_chunks_are_stored_once_and_those_that_compress_take_less() {
        let known = Known::new();
        let mut packing = Packing::new(1, Vec::new(), &known);
        let items = [page(1, noise(1)), page(5, noise(1)), Item::State(vec![7; 1000]), page(6, vec![9; CHUNK])];
        packing.add(&items).expect("in memory");
        packing.add(&[page(7, noise(1))]).expect("in memory");
        let (bytes, manifest, written) = packing.into_parts();
        assert!(written == bytes.len() as u64 && written < CHUNK as u64 + 200, "{written}");
        assert_eq!((manifest.pages(), manifest.state.len(), &manifest.packs), (4, 1, &vec![1]));
        for (chunk, item) in manifest
            .state
            .iter()
            .zip([&items[2]])
            .chain(manifest.pages.iter().map(|(_, chunk)| chunk).zip([0, 1, 3, 0].map(|n| &items[n])))
        {
            let stored = &bytes[chunk.offset as usize..][..chunk.stored as usize];
            assert_eq!(unpacked(chunk, stored.to_vec()).expect("unchanged"), item.bytes());
        }
    }

    #[test]
    fn a_disk_that_fills_at_any_byte_is_an_error() {
        let known = Known::new();
        let items = [page(1, noise(1)), Item::State(vec![7; 1000]), page(2, noise(2))];
        for room in (0..2 * CHUNK).step_by(CHUNK / 8 - 1) {
            let mut packing = Packing::new(1, Disk { room, written: Vec::new() }, &known);
            assert_eq!(packing.add(&items).map_err(|error| error.kind()), Err(io::ErrorKind::StorageFull), "{room}");
        }
    }

    #[test]
    fn a_changed_bit_of_a_stored_chunk_is_noticed() {
        let known = Known::new();
        let mut packing = Packing::new(1, Vec::new(), &known);
        packing.add(&[page(1, noise(1)[..500].to_vec()), page(2, vec![3; 5000])]).expect("in memory");
        let (bytes, manifest, _) = packing.into_parts();
        for (_, chunk) in &manifest.pages {
            let stored = bytes[chunk.offset as usize..][..chunk.stored as usize].to_vec();
            for bit in 0..8 * stored.len() {
                let mut changed = stored.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                // Some bits of a compressed frame say nothing.
                let same = unpacked(chunk, changed);
                assert!(same.is_none() || same == unpacked(chunk, stored.clone()), "bit {bit}");
            }
        }
    }
}
