//! Blocks of a trace file and variable-length integers.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

/// Maximum size of a block, packed or not, bytes.
pub const LARGEST: usize = 1 << 22;
/// Bytes before a block's contents: kind, packed length, unpacked length, checksum.
pub const PREFIX: usize = 13;

/// Kinds of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    Header = 1,
    Causes = 2,
    Detours = 3,
    Summary = 4,
}

impl BlockKind {
    pub fn of(byte: u8) -> Option<BlockKind> {
        [BlockKind::Header, BlockKind::Causes, BlockKind::Detours, BlockKind::Summary]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// Writes a block with a single call.
pub fn write_block(out: &mut impl Write, kind: BlockKind, contents: &[u8]) -> io::Result<()> {
    let mut packer = DeflateEncoder::new(vec![0; PREFIX], Compression::default());
    packer.write_all(contents)?;
    let mut block = packer.finish()?;
    let packed = block.len() - PREFIX;
    if contents.len() > LARGEST || packed > LARGEST {
        return Err(io::Error::other("a block of the trace would be too large"));
    }
    block[0] = kind as u8;
    block[1..5].copy_from_slice(&(packed as u32).to_le_bytes());
    block[5..9].copy_from_slice(&(contents.len() as u32).to_le_bytes());
    let sum = checksum(&block[..9], &block[PREFIX..]);
    block[9..13].copy_from_slice(&sum.to_le_bytes());
    out.write_all(&block)
}

/// Returns the CRC-32 of a block's kind, lengths and packed bytes.
pub fn checksum(prefix: &[u8], packed: &[u8]) -> u32 {
    let mut sum = flate2::Crc::new();
    sum.update(prefix);
    sum.update(packed);
    sum.sum()
}

/// Unpacks a block of `length` bytes. `None` if its length differs.
pub fn unpack(packed: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(length);
    let read = DeflateDecoder::new(packed).take(length as u64 + 1).read_to_end(&mut out).ok()?;
    (read == length).then_some(out)
}

/// Appends an integer, seven bits per byte, lowest first.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Removes an integer from the front. `None` if there is none or it exceeds 64 bits.
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if shift == 63 && part > 1 {
            return None;
        }
        value |= part << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
