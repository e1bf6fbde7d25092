//! Cached translations for guest accesses. They affect only the simulator's speed.

use super::{PAGE_SHIFT, space::Translation};

pub(super) const ENTRIES: usize = 1 << 12;

/// An entry. Translated code reads it ([`super::View`]). No entry lies in two cache lines of the host.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Entry {
    /// Page number for which loads may use `base`, or `u64::MAX`.
    pub read: u64,
    /// Page number for which stores may use `base`, or `u64::MAX`.
    pub write: u64,
    /// Arena offset of the page.
    pub base: u64,
}

const EMPTY: Entry = Entry { read: u64::MAX, write: u64::MAX, base: 0 };

/// A direct-mapped table of translations of one address space.
pub(super) struct Tlb(Box<[Entry; ENTRIES]>);

impl Default for Tlb {
    fn default() -> Tlb {
        Tlb(vec![EMPTY; ENTRIES].into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!("fixed length")))
    }
}

impl Tlb {
    /// Returns the entry that would hold the translation of an address.
    #[inline(always)]
    pub(super) fn entry(&self, addr: u64) -> &Entry {
        &self.0[(addr >> PAGE_SHIFT) as usize & (ENTRIES - 1)]
    }

    /// Returns the address of the first entry on the host.
    pub(super) fn address(&self) -> *const Entry {
        self.0.as_ptr()
    }

    /// Caches a translation.
    pub(super) fn insert(&mut self, page: u64, translation: Translation) {
        let Translation { base, readable, writable } = translation;
        let page_if = |allowed| if allowed { page } else { u64::MAX };
        self.0[page as usize & (ENTRIES - 1)] = Entry { read: page_if(readable), write: page_if(writable), base };
    }

    /// Makes later stores to a page take the slow path.
    pub(super) fn forbid_stores(&mut self, page: u64) {
        let entry = &mut self.0[page as usize & (ENTRIES - 1)];
        if entry.write == page {
            entry.write = u64::MAX;
        }
    }

    /// Drops every translation.
    pub(super) fn flush(&mut self) {
        self.0.fill(EMPTY);
    }
}
