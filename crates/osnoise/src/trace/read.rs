//! Reads traces.

use std::io::{self, ErrorKind, Read};

use thiserror::Error;

use super::bytes::{BlockKind, LARGEST, PREFIX, checksum, take, unpack};
use super::{Cause, Detour, Header, MAGIC, Summary, VERSION};

/// Why a trace cannot be read.
#[derive(Debug, Error)]
pub enum Error {
    /// The file is empty.
    #[error("is empty: the measurement wrote nothing, or the file was not copied; measure again")]
    Empty,
    /// The file is not a trace.
    #[error("is not a trace of fxscope jitter measure; convert other programs' files with fxscope jitter import")]
    Foreign,
    /// A later format version.
    #[error(
        "is a trace of format {0}, but this program reads format {VERSION}; use the version of fxscope that wrote it"
    )]
    Version(u8),
    /// The file ends before the first detour.
    #[error("ends in its header: the measurement was cut off at the start and contains no detours")]
    NoHeader,
    /// The file is corrupt.
    #[error("is damaged at byte {at} ({what}); the part before can be read")]
    Damaged {
        /// Offset of the damaged block.
        at: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A read error.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
}

/// A piece of a trace.
#[derive(Debug, PartialEq)]
pub enum Item {
    /// Detours of a core, after those returned before.
    Detours(u32, Vec<Detour>),
    /// The end.
    End(Box<Summary>),
    /// The file ends although the trace has no end: the measurement was cut off.
    CutOff,
}

/// Reads a trace piece by piece.
pub struct Reader<R: Read> {
    input: R,
    header: Header,
    causes: Vec<Cause>,
    at: u64,
    done: bool,
}

/// A block as read from the file.
enum Block {
    Whole(BlockKind, Vec<u8>),
    /// The file ends before or within it.
    None,
}

impl<R: Read> Reader<R> {
    /// Reads a trace's header.
    ///
    /// # Errors
    /// If there is none.
    pub fn new(mut input: R) -> Result<Reader<R>, Error> {
        let mut begin = [0; MAGIC.len() + 1];
        let read = fill(&mut input, &mut begin)?;
        if read == 0 {
            return Err(Error::Empty);
        }
        if begin[..read.min(MAGIC.len())] != MAGIC[..read.min(MAGIC.len())] {
            return Err(Error::Foreign);
        }
        if read < begin.len() {
            return Err(Error::NoHeader);
        }
        if begin[MAGIC.len()] != VERSION {
            return Err(Error::Version(begin[MAGIC.len()]));
        }
        let mut at = begin.len() as u64;
        let header = match block(&mut input, &mut at)? {
            Block::Whole(BlockKind::Header, bytes) => json(&bytes, begin.len() as u64)?,
            Block::Whole(..) => return Err(Error::Damaged { at: begin.len() as u64, what: "no header" }),
            Block::None => return Err(Error::NoHeader),
        };
        Ok(Reader { input, header, causes: vec![Cause::unknown()], at, done: false })
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the causes of all detours read so far.
    pub fn causes(&self) -> &[Cause] {
        &self.causes
    }

    /// Returns the next piece; `None` after the end.
    ///
    /// # Errors
    /// If the file is damaged. Earlier pieces remain valid.
    pub fn next_item(&mut self) -> Result<Option<Item>, Error> {
        while !self.done {
            let at = self.at;
            match block(&mut self.input, &mut self.at).inspect_err(|_| self.done = true)? {
                Block::None => {
                    self.done = true;
                    return Ok(Some(Item::CutOff));
                }
                Block::Whole(kind, bytes) => {
                    if let Some(item) = self.item(kind, &bytes, at).inspect_err(|_| self.done = true)? {
                        return Ok(Some(item));
                    }
                }
            }
        }
        Ok(None)
    }

    /// The contents of a block; `None` if it only names causes.
    fn item(&mut self, kind: BlockKind, bytes: &[u8], at: u64) -> Result<Option<Item>, Error> {
        match kind {
            BlockKind::Header => Err(Error::Damaged { at, what: "a second header" }),
            BlockKind::Causes => {
                let causes: Vec<Cause> = json(bytes, at)?;
                self.causes.extend(causes);
                Ok(None)
            }
            BlockKind::Detours => {
                let what = "malformed detours";
                let detours = detours(bytes, self.causes.len()).ok_or(Error::Damaged { at, what })?;
                Ok(Some(detours))
            }
            BlockKind::Summary => {
                self.done = true;
                Ok(Some(Item::End(Box::new(json(bytes, at)?))))
            }
        }
    }
}

fn json<T: serde::de::DeserializeOwned>(bytes: &[u8], at: u64) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|_| Error::Damaged { at, what: "malformed text" })
}

/// Reads until `buffer` is full or the input ends; returns the number of bytes.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match input.read(&mut buffer[read..]) {
            Ok(0) => break,
            Ok(n) => read += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(read)
}

fn block(input: &mut impl Read, at: &mut u64) -> Result<Block, Error> {
    let begin = *at;
    let damaged = |what| Error::Damaged { at: begin, what };
    let mut prefix = [0; PREFIX];
    if fill(input, &mut prefix)? < PREFIX {
        return Ok(Block::None);
    }
    let number = |from: usize| u32::from_le_bytes([prefix[from], prefix[from + 1], prefix[from + 2], prefix[from + 3]]);
    let (packed, length) = (number(1) as usize, number(5) as usize);
    let kind = BlockKind::of(prefix[0]).ok_or_else(|| damaged("an unknown kind of block"))?;
    if packed > LARGEST || length > LARGEST {
        return Err(damaged("a block above the maximum size"));
    }
    let mut bytes = vec![0; packed];
    if fill(input, &mut bytes)? < packed {
        return Ok(Block::None);
    }
    if checksum(&prefix[..9], &bytes) != number(9) {
        return Err(damaged("wrong checksum"));
    }
    *at += (PREFIX + packed) as u64;
    let bytes = unpack(&bytes, length).ok_or_else(|| damaged("it cannot be unpacked"))?;
    Ok(Block::Whole(kind, bytes))
}

/// The detours of a block; `None` if malformed.
fn detours(mut bytes: &[u8], causes: usize) -> Option<Item> {
    let bytes = &mut bytes;
    let core = u32::try_from(take(bytes)?).ok()?;
    let count = usize::try_from(take(bytes)?).ok()?;
    // Each takes at least three bytes.
    if count > bytes.len() / 3 {
        return None;
    }
    let mut detours = Vec::with_capacity(count);
    let mut start = 0u64;
    for _ in 0..count {
        start = start.checked_add(take(bytes)?)?;
        let length = take(bytes)?;
        let cause = u32::try_from(take(bytes)?).ok().filter(|&cause| (cause as usize) < causes)?;
        start.checked_add(length)?;
        detours.push(Detour { start, length, cause });
    }
    bytes.is_empty().then_some(Item::Detours(core, detours))
}
