//! Translation tables: the descriptors that lead to a page, and the cache of those that point to further tables.
//!
//! Tables of one granule are as large as the granule. A leaf descriptor stands for one granule or, levels higher, for a
//! block; a group of neighbouring leaf descriptors that are marked contiguous stands for one larger page.

use fxscope_machine::paging::Leaf;
use fxscope_machine::spec::Tlb as TlbSpec;

/// Bits of a virtual address; the number of its address space is above them.
pub const VIRTUAL_BITS: u32 = 48;

/// Tables of one granule.
#[derive(Clone, Copy, Debug, serde::Deserialize, serde::Serialize)]
struct Granule {
    /// Log2 bytes.
    shift: u32,
    /// Address bits that each level translates.
    bits: u32,
}

impl Granule {
    /// Log2 of the bytes that a descriptor of a level stands for. Level 0 is that of single pages.
    fn span(self, level: u32) -> u32 {
        self.shift + level * self.bits
    }

    /// The highest level.
    fn top(self) -> u32 {
        (VIRTUAL_BITS - 1 - self.shift) / self.bits
    }
}

/// The path of tables to a page, by level: from [`Path::top`] down to [`Path::leaf`].
#[derive(Clone, Copy, Debug)]
pub struct Path {
    addr: u64,
    granule: Granule,
    /// Which granule.
    number: u64,
    leaf: u32,
}

impl Path {
    /// The level of the table that a register points to.
    #[must_use]
    pub fn top(&self) -> u32 {
        self.granule.top()
    }
    /// The level of the page's own descriptor.
    #[must_use]
    pub fn leaf(&self) -> u32 {
        self.leaf
    }
    /// Size of a table, bytes.
    #[must_use]
    pub fn table_bytes(&self) -> u64 {
        1 << self.granule.shift
    }
    /// The identity of the table of a level among all tables of all address spaces; never 0.
    #[must_use]
    pub fn name(&self, level: u32) -> u64 {
        let covered = self.granule.span(level + 1).min(VIRTUAL_BITS);
        self.addr >> covered << covered | self.number << 8 | u64::from(level + 1)
    }
    /// The offset of the descriptor in the table of a level, bytes.
    #[must_use]
    pub fn offset(&self, level: u32) -> u64 {
        let covered = self.granule.span(level + 1).min(VIRTUAL_BITS);
        let index = (self.addr % (1 << covered)) >> self.granule.span(level);
        index << (self.granule.shift - self.granule.bits)
    }
}

/// A table descriptor in the cache.
#[derive(Clone, Copy, Default, serde::Deserialize, serde::Serialize)]
struct Cached {
    /// [`Path::name`] of the table it leads to, or 0.
    name: u64,
    /// Physical address of that table.
    base: u64,
}

/// Shapes of tables, and the translation table cache.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Tables {
    granules: Box<[Granule]>,
    /// By log2 of a page's size, the granule and the level of its descriptor.
    #[serde(with = "fxscope_calendar::array")]
    leaves: [(usize, u32); 64],
    /// The most recently used first.
    cache: Box<[Cached]>,
}

impl Tables {
    /// An empty cache.
    #[must_use]
    pub fn new(spec: &TlbSpec) -> Tables {
        let granule = |&bytes: &u64| {
            let shift = bytes.trailing_zeros();
            Granule { shift, bits: shift - spec.descriptor_bytes.trailing_zeros() }
        };
        Tables {
            granules: spec.granules.iter().map(granule).collect(),
            // Every page size has a level in the tables; others, which no page has, count as single pages.
            leaves: std::array::from_fn(|shift| {
                spec.leaf(1 << shift).map_or((0, 0), |Leaf { granule, level }| (granule, level))
            }),
            cache: vec![Cached::default(); spec.table_cache as usize].into(),
        }
    }

    /// The path to the page of `1 << shift` bytes at `addr`, which has the number of its address space above its
    /// virtual bits.
    #[must_use]
    pub fn path(&self, addr: u64, shift: u32) -> Path {
        let (granule, level) = self.leaves[shift as usize];
        Path { addr, granule: self.granules[granule], number: granule as u64, leaf: level }
    }

    /// The lowest table of the path that a cached descriptor points to: its level and physical address.
    pub fn cached(&mut self, path: &Path) -> Option<(u32, u64)> {
        (path.leaf()..path.top()).find_map(|level| {
            let name = path.name(level);
            let i = self.cache.iter().position(|entry| entry.name == name)?;
            self.cache[..=i].rotate_right(1);
            Some((level, self.cache[0].base))
        })
    }

    /// Caches a descriptor that was read: it points to the table of a level, which is at `base`.
    pub fn remember(&mut self, path: &Path, level: u32, base: u64) {
        self.cache.rotate_right(1);
        self.cache[0] = Cached { name: path.name(level), base };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> Tables {
        Tables::new(&fxscope_machine::load("a64fx", &[]).expect("built in").tables.tlb)
    }

    /// Offsets of the descriptors that are read for a page, from the top down.
    fn offsets(addr: u64, shift: u32) -> Vec<u64> {
        let path = tables().path(addr, shift);
        (path.leaf()..=path.top()).rev().map(|level| path.offset(level) / 8).collect()
    }

    #[test]
    fn each_level_of_64_kib_tables_translates_13_bits_below_the_6_of_the_first() {
        let addr = 5 << 42 | 77 << 29 | 8_191 << 16;
        assert_eq!(offsets(addr, 16), [5, 77, 8_191]);
    }

    #[test]
    fn each_level_of_4_kib_tables_translates_9_bits() {
        let addr = 1 << 39 | 2 << 30 | 3 << 21 | 511 << 12;
        assert_eq!(offsets(addr, 12), [1, 2, 3, 511]);
    }

    #[test]
    fn a_page_of_2_mib_is_a_group_of_32_descriptors_among_those_of_64_kib() {
        let addr = 9 << 21;
        assert_eq!(offsets(addr, 21), [0, 0, 9 * 32]);
        assert_eq!(offsets(addr + (31 << 16), 21), [0, 0, 9 * 32 + 31]);
    }

    #[test]
    fn blocks_end_a_walk_above_the_lowest_level() {
        let addr = 3 << 42 | 64 << 29;
        assert_eq!(offsets(addr, 29), [3, 64], "512 MiB");
        assert_eq!(offsets(addr, 34), [3, 64], "16 GiB: 32 of them");
        let addr = 1 << 39 | 2 << 30 | 16 << 21;
        assert_eq!(offsets(addr, 25), [1, 2, 16], "32 MiB: 16 blocks of 2 MiB under 4 KiB tables");
        assert_eq!(offsets(addr, 30), [1, 2], "1 GiB");
    }

    #[test]
    fn tables_of_different_spaces_levels_granules_and_places_are_different_ones() {
        let tables = tables();
        let mut names: Vec<u64> = Vec::new();
        for space in [1, 2] {
            for (addr, shift) in [(0, 16), (1 << 29, 16), (0, 12), (1 << 21, 12)] {
                let path = tables.path(space << VIRTUAL_BITS | addr, shift);
                names.extend((path.leaf()..=path.top()).map(|level| path.name(level)));
            }
        }
        names.sort_unstable();
        names.dedup();
        // For each space: three and one more, four and one more.
        assert_eq!(names.len(), 2 * (3 + 1 + 4 + 1));
    }

    #[test]
    fn the_cache_keeps_the_sixteen_most_recently_used_descriptors() {
        let mut tables = tables();
        let path = |n: u64| path_to_table(n);
        (1..=16).for_each(|n| tables.remember(&path(n), 0, 100 * n));
        assert_eq!(tables.cached(&path(1)), Some((0, 100)), "and used now");
        tables.remember(&path(17), 0, 1_700);
        assert_eq!(tables.cached(&path(2)), None, "the least recently used has left");
        assert_eq!(tables.cached(&path(1)), Some((0, 100)));
        assert_eq!(tables.cached(&path(17)), Some((0, 1_700)));
    }

    /// The path to a page of the `n`th table of single pages.
    fn path_to_table(n: u64) -> Path {
        tables().path(n << 29, 16)
    }

    #[test]
    fn the_lowest_table_that_is_known_is_where_a_walk_begins() {
        let mut tables = tables();
        let path = tables.path(7 << 16, 16);
        tables.remember(&path, 1, 0x10_0000);
        assert_eq!(tables.cached(&path), Some((1, 0x10_0000)));
        tables.remember(&path, 0, 0x20_0000);
        assert_eq!(tables.cached(&path), Some((0, 0x20_0000)));
        let block = tables.path(7 << 29, 29);
        assert_eq!(tables.cached(&block), Some((1, 0x10_0000)), "the same table, from which blocks come, too");
    }
}
