//! Memory for host code. It is writable while code is added and executable while code runs, never both.

use std::io;

use memmap2::{Mmap, MmapMut};

/// Bytes of one mapping.
const CHUNK: usize = 1 << 20;
/// Alignment of functions.
const ALIGN: usize = 32;

/// Host code, in mappings that stay where they are until it is dropped.
#[derive(Default)]
pub(crate) struct CodeMemory {
    chunks: Vec<Mmap>,
    /// Bytes used in the last chunk.
    used: usize,
}

impl CodeMemory {
    /// Returns the bytes of all mappings.
    pub(crate) fn bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len()).sum()
    }

    /// Adds a function; returns its address. No code of this memory may be running.
    ///
    /// # Errors
    /// When the host refuses memory, or makes none executable.
    pub(crate) fn add(&mut self, code: &[u8]) -> io::Result<*const u8> {
        let fits = self.chunks.last().is_some_and(|chunk| self.used + code.len() <= chunk.len());
        let mut chunk = match self.chunks.pop() {
            Some(chunk) if fits => chunk.make_mut()?,
            other => {
                self.chunks.extend(other);
                self.used = 0;
                MmapMut::map_anon(code.len().max(CHUNK))?
            }
        };
        let at = self.used;
        chunk[at..at + code.len()].copy_from_slice(code);
        let chunk = chunk.make_exec()?;
        let address = chunk[at..].as_ptr();
        self.chunks.push(chunk);
        self.used = (at + code.len()).next_multiple_of(ALIGN);
        Ok(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_stay_where_they_are_while_others_are_added() {
        let mut memory = CodeMemory::default();
        let bodies: Vec<Vec<u8>> = (0..40u8).map(|n| vec![n; 60_000 + usize::from(n)]).collect();
        let places: Vec<*const u8> = bodies.iter().map(|body| memory.add(body).expect("memory")).collect();
        let chunks: Vec<&[u8]> = memory.chunks.iter().map(|chunk| &chunk[..]).collect();
        for (body, &place) in bodies.iter().zip(&places) {
            let inside = |chunk: &&&[u8]| chunk.as_ptr_range().contains(&place);
            let chunk = chunks.iter().find(inside).expect("in a mapping");
            let at = place as usize - chunk.as_ptr() as usize;
            assert_eq!(&chunk[at..at + body.len()], &body[..]);
        }
        assert!(memory.bytes() >= bodies.iter().map(Vec::len).sum());
    }

    #[test]
    fn a_function_longer_than_a_chunk_has_its_own() {
        let mut memory = CodeMemory::default();
        memory.add(&[1; 100]).expect("memory");
        memory.add(&vec![2; CHUNK + 1]).expect("memory");
        assert_eq!(memory.bytes(), 2 * CHUNK + 1);
    }
}
