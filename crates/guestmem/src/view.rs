//! What translated code needs to access memory as [`Memory::load_hit`] and [`Memory::store_hit`] do.

use std::mem::{offset_of, size_of};

use super::tlb::{ENTRIES, Entry};
use super::{ADDRESS, Memory, PAGE_SHIFT};

/// Where the arena and the cached translations are on the host, for code that is generated at run time.
///
/// An access to `bytes` bytes at guest address `a` hits when all of the following hold; everything else is left to
/// [`Memory::load`] and [`Memory::store`]:
///
/// * entry number `a >> PAGE_SHIFT & (ENTRIES - 1)` of the table has, at [`View::READ`] for a load or [`View::WRITE`] for a store,
///   the number of the page of the access's first byte, `(a & ADDRESS) >> PAGE_SHIFT`, and of its last byte;
/// * `at + bytes` does not exceed [`View::arena_bytes`], where `at` is the arena offset at [`View::BASE`] of the entry plus the
///   offset in the page.
///
/// The bytes are then those at `arena + at`. The pointers are valid as long as the memory that they were taken from is not
/// dropped; the entries change with every access that misses, and with every system call.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The first entry of the table of translations.
    pub translations: *const u8,
    /// The first byte of the arena.
    pub arena: *mut u8,
    /// Size of the arena.
    pub arena_bytes: u64,
}

impl View {
    /// Significant bits of an address.
    pub const ADDRESS_BITS: u32 = ADDRESS.count_ones();
    /// Log2 of the size of a page in bytes.
    pub const PAGE_SHIFT: u32 = PAGE_SHIFT;
    /// Number of entries, a power of two.
    pub const ENTRIES: usize = ENTRIES;
    /// Size of an entry in bytes.
    pub const ENTRY_BYTES: usize = size_of::<Entry>();
    /// Offset of the number (8 bytes) of the page that loads may access through an entry.
    pub const READ: usize = offset_of!(Entry, read);
    /// The same for stores.
    pub const WRITE: usize = offset_of!(Entry, write);
    /// Offset of the page's arena offset (8 bytes).
    pub const BASE: usize = offset_of!(Entry, base);
}

impl Memory {
    /// Returns where translated code finds memory and the translations of the active address space.
    #[must_use]
    pub fn view(&mut self) -> View {
        let arena_bytes = self.arena.bytes.len() as u64;
        let arena = self.arena.bytes.as_mut_ptr();
        View { translations: self.tlb.address().cast(), arena, arena_bytes }
    }
}
