//! The table by which units are found quickly: direct-mapped, by the start of a block. Translated code reads it, too.

/// Entries of a table, a power of two.
pub(crate) const FRONT: usize = 1 << 12;

/// Where the translation of a block begins.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct FrontEntry {
    /// The start of the block. An entry without a block has one that belongs elsewhere in the table, so that no address is equal.
    pub(crate) start: u64,
    /// Address of the unit's code.
    pub(crate) code: usize,
    /// The number of the block in the unit.
    pub(crate) block: u32,
}

impl FrontEntry {
    /// Log2 of the size of an entry.
    pub(crate) const SHIFT: u32 = size_of::<FrontEntry>().trailing_zeros();

    /// Returns what is at place `slot` when there is no block.
    fn none(slot: usize) -> FrontEntry {
        FrontEntry { start: !((slot as u64) << 2), code: 0, block: 0 }
    }
}

/// A table of entries that were used recently.
pub(crate) struct FrontTable(Box<[FrontEntry; FRONT]>);

fn slot(pc: u64) -> usize {
    (pc >> 2) as usize & (FRONT - 1)
}

impl FrontTable {
    /// Returns an empty table.
    pub(crate) fn new() -> FrontTable {
        let entries = (0..FRONT).map(FrontEntry::none).collect::<Vec<_>>().try_into();
        FrontTable(entries.unwrap_or_else(|_| unreachable!("the length is fixed")))
    }

    /// Returns the address of the first entry, which stays the same.
    pub(crate) fn address(&self) -> *const FrontEntry {
        self.0.as_ptr()
    }

    /// Returns the entry of the block at `pc`.
    pub(crate) fn get(&self, pc: u64) -> Option<FrontEntry> {
        let entry = self.0[slot(pc)];
        (entry.start == pc).then_some(entry)
    }

    /// Adds an entry in place of another one.
    pub(crate) fn insert(&mut self, entry: FrontEntry) {
        self.0[slot(entry.start)] = entry;
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        self.0.iter_mut().enumerate().for_each(|(slot, entry)| *entry = FrontEntry::none(slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_table_has_no_block_at_any_address() {
        let table = FrontTable::new();
        let ends = [0, u64::MAX, 1 << 63].iter().flat_map(|end| (0..4 * FRONT as u64 + 8).map(move |at| end ^ at));
        assert!(ends.into_iter().all(|pc| table.get(pc).is_none()));
    }

    #[test]
    fn an_entry_is_found_until_another_one_takes_its_place() {
        let mut table = FrontTable::new();
        let entry = |start| FrontEntry { start, code: 1, block: 2 };
        table.insert(entry(0x1000));
        assert_eq!(table.get(0x1000).map(|entry| entry.block), Some(2));
        assert!(table.get(0x1004).is_none());
        table.insert(entry(0x1000 + 4 * FRONT as u64));
        assert!(table.get(0x1000).is_none());
        table.clear();
        assert!(table.get(0x1000 + 4 * FRONT as u64).is_none());
    }
}
