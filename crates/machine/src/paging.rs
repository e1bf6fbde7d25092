//! Which translation tables pages of a size are in.

use crate::spec::Tlb;

/// Where the descriptors of pages of one size are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Number of the granule in `tlb.granules`.
    pub granule: usize,
    /// Level of the tables; 0 is that of descriptors for one granule.
    pub level: u32,
}

impl Tlb {
    /// Log2 of the bytes that a descriptor of a level of a granule's tables stands for.
    #[must_use]
    pub fn span(&self, leaf: Leaf) -> u32 {
        let shift = self.granules[leaf.granule].trailing_zeros();
        shift + leaf.level * (shift - self.descriptor_bytes.trailing_zeros())
    }

    /// Where pages of `bytes`, a power of two, have their descriptors: one each or a contiguous group, in the first
    /// granule that has such pages.
    #[must_use]
    pub fn leaf(&self, bytes: u64) -> Option<Leaf> {
        let shift = bytes.ilog2();
        (0..self.granules.len()).find_map(|granule| {
            let group = self.contiguous[granule].trailing_zeros();
            let mut leaves = (0..).map(|level| Leaf { granule, level }).take_while(|&leaf| self.span(leaf) <= shift);
            leaves.find(|&leaf| shift == self.span(leaf) || shift == self.span(leaf) + group)
        })
    }
}
