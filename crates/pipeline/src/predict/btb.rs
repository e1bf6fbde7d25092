//! The branch target buffer (BTB, manual 3.2.4): known branches and their targets.

use fxscope_machine::spec::Frontend;

/// A branch; its address has two free bits.
#[derive(Clone, Copy, serde::Deserialize, serde::Serialize)]
struct Entry {
    /// Address of the branch, with [`REHASHED`] for an entry found by history.
    tag: u64,
    /// Its target, or the noted direction of a conditional branch.
    value: u64,
}

/// Marks the tag of an entry that is indexed by address and history.
const REHASHED: u64 = 1;

/// A set-associative buffer with the least recently used entry replaced.
///
/// Each branch has one entry under its address. An indirect branch whose target changes gets more entries, each indexed
/// by its address and the histories of directions and targets (rehash).
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Btb {
    /// `ways` for each set, most recent first.
    entries: Box<[Entry]>,
    ways: usize,
    set_mask: usize,
    /// Hash of the last targets of indirect branches (THR).
    history: u64,
    /// Bits by which it shifts with each target.
    step: u32,
    /// Bits that select a set.
    index_bits: u32,
    /// The directions that take part in the hash.
    directions: u64,
}

impl Btb {
    /// An empty buffer.
    pub fn new(spec: &Frontend) -> Btb {
        let ways = spec.btb_ways as usize;
        let sets = spec.btb_entries as usize / ways;
        let index_bits = sets.trailing_zeros();
        Btb {
            entries: vec![Entry { tag: u64::MAX, value: 0 }; sets * ways].into(),
            ways,
            set_mask: sets - 1,
            history: 0,
            step: index_bits.div_ceil(spec.rehash_targets).max(1),
            index_bits,
            directions: (1 << spec.rehash_directions) - 1,
        }
    }

    /// The entry of the branch at `pc`.
    #[inline(always)]
    pub fn find(&mut self, pc: u64) -> Option<u64> {
        self.look_up(pc >> 2, pc)
    }

    /// The target of the indirect branch at `pc` for these directions of the last branches, the newest in bit 0.
    pub fn find_rehashed(&mut self, pc: u64, directions: u64) -> Option<u64> {
        self.look_up(self.rehash(pc, directions), pc | REHASHED)
    }

    /// Notes `value` for the branch at `pc`.
    pub fn enter(&mut self, pc: u64, value: u64) {
        self.put(pc >> 2, pc, value);
    }

    /// Notes `target` for the indirect branch at `pc` with these directions before it.
    pub fn enter_rehashed(&mut self, pc: u64, directions: u64, target: u64) {
        self.put(self.rehash(pc, directions), pc | REHASHED, target);
    }

    /// An indirect branch has led to `target`.
    pub fn pass(&mut self, target: u64) {
        let folded = target >> 2 ^ target >> (2 + self.index_bits);
        self.history = self.history << self.step ^ folded;
    }

    fn rehash(&self, pc: u64, directions: u64) -> u64 {
        pc >> 2 ^ self.history ^ (directions & self.directions)
    }

    /// The first way of the set of `index`.
    #[inline(always)]
    fn set(&self, index: u64) -> usize {
        (index as usize & self.set_mask) * self.ways
    }

    #[inline(always)]
    fn look_up(&mut self, index: u64, tag: u64) -> Option<u64> {
        let set = self.set(index);
        let first = &self.entries[set];
        if first.tag == tag { Some(first.value) } else { self.look_further(set, tag) }
    }

    #[cold]
    #[inline(never)]
    fn look_further(&mut self, set: usize, tag: u64) -> Option<u64> {
        let ways = &mut self.entries[set..set + self.ways];
        let way = ways.iter().position(|e| e.tag == tag)?;
        let found = ways[way];
        ways.copy_within(..way, 1);
        ways[0] = found;
        Some(found.value)
    }

    fn put(&mut self, index: u64, tag: u64, value: u64) {
        let set = self.set(index);
        if self.look_up(index, tag).is_none() {
            self.entries[set..set + self.ways].copy_within(..self.ways - 1, 1);
        }
        self.entries[set] = Entry { tag, value };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::tests::spec;

    /// Distance of branches in the same set, bytes.
    fn round() -> u64 {
        4 * u64::from(spec().btb_entries / spec().btb_ways)
    }

    #[test]
    fn a_set_holds_as_many_branches_as_it_has_ways() {
        let ways = u64::from(spec().btb_ways);
        let mut targets = Btb::new(&spec());
        (0..ways).for_each(|i| targets.enter(64 + i * round(), i));
        assert!((0..ways).all(|i| targets.find(64 + i * round()) == Some(i)));
        // Branches of other sets do not replace them.
        targets.enter(68, 9);
        assert!((0..ways).all(|i| targets.find(64 + i * round()) == Some(i)));
    }

    #[test]
    fn the_least_recently_used_branch_of_a_full_set_leaves() {
        let ways = u64::from(spec().btb_ways);
        let mut targets = Btb::new(&spec());
        (0..ways).for_each(|i| targets.enter(64 + i * round(), i));
        targets.find(64);
        targets.enter(64 + ways * round(), 9);
        assert_eq!(targets.find(64 + round()), None);
        assert_eq!((targets.find(64), targets.find(64 + ways * round())), (Some(0), Some(9)));
    }

    #[test]
    fn an_indirect_branch_has_targets_for_different_histories() {
        let mut targets = Btb::new(&spec());
        targets.enter_rehashed(64, 0b01, 1000);
        targets.enter_rehashed(64, 0b10, 2000);
        assert_eq!(targets.find_rehashed(64, 0b01), Some(1000));
        assert_eq!(targets.find_rehashed(64, 0b10), Some(2000));
        targets.pass(4096 + 64);
        assert_eq!(targets.find_rehashed(64, 0b01), None);
    }
}
