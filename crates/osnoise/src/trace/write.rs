//! Writes traces.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use super::bytes::{BlockKind, put, write_block};
use super::{Cause, Detour, Header, MAGIC, Summary, VERSION};

/// Detours per block.
const BLOCK: usize = 1 << 14;

/// Writes a trace incrementally.
pub struct Writer<W: Write> {
    out: W,
    /// Detours not written yet, by core.
    waiting: BTreeMap<u32, Vec<Detour>>,
    /// Indices of causes.
    numbers: HashMap<Cause, u32>,
    /// Causes whose names are not written yet.
    new: Vec<Cause>,
}

impl<W: Write> Writer<W> {
    /// Starts a trace.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(mut out: W, header: &Header) -> io::Result<Writer<W>> {
        let mut begin = MAGIC.to_vec();
        begin.push(VERSION);
        out.write_all(&begin)?;
        write_block(&mut out, BlockKind::Header, &serde_json::to_vec(header)?)?;
        out.flush()?;
        let numbers = HashMap::from([(Cause::unknown(), super::UNKNOWN)]);
        Ok(Writer { out, waiting: BTreeMap::new(), numbers, new: Vec::new() })
    }

    /// Returns the index of a cause in this trace.
    pub fn cause(&mut self, cause: &Cause) -> u32 {
        if let Some(&number) = self.numbers.get(cause) {
            return number;
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(cause.clone(), number);
        self.new.push(cause.clone());
        number
    }

    /// Adds a detour of a core. Those of each core must come in order of their starts.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn push(&mut self, core: u32, detour: Detour) -> io::Result<()> {
        let waiting = self.waiting.entry(core).or_default();
        waiting.push(detour);
        if waiting.len() >= BLOCK { self.flush() } else { Ok(()) }
    }

    /// Writes all pending detours, so that an interruption loses nothing before this point.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        if !self.new.is_empty() {
            let names = serde_json::to_vec(&std::mem::take(&mut self.new))?;
            write_block(&mut self.out, BlockKind::Causes, &names)?;
        }
        for (&core, detours) in &mut self.waiting {
            if !detours.is_empty() {
                write_block(&mut self.out, BlockKind::Detours, &packed(core, detours))?;
                detours.clear();
            }
        }
        self.out.flush()
    }

    /// Ends the trace, and returns the output.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self, summary: &Summary) -> io::Result<W> {
        self.flush()?;
        write_block(&mut self.out, BlockKind::Summary, &serde_json::to_vec(summary)?)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Encodes the core, the number of detours, and for each the time since the previous start, the length and the cause.
fn packed(core: u32, detours: &[Detour]) -> Vec<u8> {
    let mut out = Vec::with_capacity(detours.len() * 6 + 16);
    put(&mut out, core.into());
    put(&mut out, detours.len() as u64);
    let mut before = 0;
    for detour in detours {
        // Starts of a core never decrease; if a caller's do, they are clamped.
        let start = detour.start.max(before);
        put(&mut out, start - before);
        put(&mut out, detour.length);
        put(&mut out, detour.cause.into());
        before = start;
    }
    out
}
