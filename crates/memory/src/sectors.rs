//! The sector cache: the sector of an access, and the sectors that give up a line for it.
//!
//! A sector is a number that each line carries. A limit is the most lines of a set that a sector should have. It is
//! applied when a line is replaced, never by evicting lines, and a line is found whatever its sector is
//! (microarchitecture manual 12.2; A64FX specification, HPC extension 1.2).

use std::ops::Range;

/// Number of sectors of a cache.
pub const SECTORS: usize = 4;

/// The number of a sector, below [`SECTORS`].
pub type Sector = u8;

/// More ways than any cache has: no limit.
const NO_LIMIT: u8 = u8::MAX;

/// Most lines of each sector in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Limits([u8; SECTORS]);

impl Limits {
    /// Limits of sectors 0 to 3, in ways.
    #[must_use]
    pub fn new(ways: [u8; SECTORS]) -> Limits {
        Limits(ways)
    }

    /// The same with other limits for one pair of sectors (0: sectors 0 and 1; 1: 2 and 3), or with none for them.
    #[must_use]
    pub fn with_pair(mut self, pair: Sector, ways: Option<[u8; 2]>) -> Limits {
        let first = 2 * usize::from(pair & 1);
        self.0[first..first + 2].copy_from_slice(&ways.unwrap_or([NO_LIMIT; 2]));
        self
    }

    /// These limits, if any of them can be reached in a cache with `ways` ways.
    #[must_use]
    pub fn within(self, ways: usize) -> Option<Limits> {
        self.0.iter().any(|&most| usize::from(most) < ways).then_some(self)
    }

    /// The sectors, as a mask, one of which gives up its oldest line for a fill into `sector` when the sectors have
    /// `held` lines of a full set. A sector at its limit replaces its own lines (manual, figure 12-3). One below its
    /// limit takes lines from sectors above theirs (figure 12-2), or else from sectors at theirs: the lines of a sector
    /// below its limit stay.
    #[inline(always)]
    #[must_use]
    pub fn giving(self, held: [u8; SECTORS], sector: Sector) -> u8 {
        let own = usize::from(sector);
        if held[own] > 0 && held[own] >= self.0[own] {
            return 1 << own;
        }
        let (mut above, mut full, mut any) = (0, 0, 0);
        for (i, (&held, &most)) in held.iter().zip(&self.0).enumerate() {
            above |= u8::from(held > most) << i;
            full |= u8::from(held >= most && held > 0) << i;
            any |= u8::from(held > 0) << i;
        }
        [above, full, any].into_iter().find(|&mask| mask != 0).unwrap_or(any)
    }
}

impl Default for Limits {
    /// No sector has a limit.
    fn default() -> Limits {
        Limits([NO_LIMIT; SECTORS])
    }
}

/// The sector of L2 that an access belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Joins {
    /// The sector.
    pub sector: Sector,
    /// Whether a line found in another sector moves to this one.
    pub moves: bool,
}

/// How the accesses of a core get their sectors: by bits 57:56 of the pointer, or by where the data are.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Assignment {
    /// The bits of a pointer's sector that count: all, or none when tags of pointers do not choose sectors.
    tag_mask: Sector,
    /// The sector of accesses whose pointers do not choose one, and of instructions.
    default: Sector,
    /// Which pair of L2's sectors the core uses.
    group: Sector,
    /// A line found by an access of another sector moves to it.
    moves: bool,
    /// Address ranges with a fixed sector, lowest address first.
    data: Box<[(Range<u64>, Sector)]>,
}

impl Assignment {
    /// Sectors by the tags of pointers if `tags`, by `default` (below [`SECTORS`]) otherwise; `group`, 0 or 1, of L2's
    /// sectors. With `moves`, a line found by an access of another sector moves to that sector (mode 0 of
    /// `IMP_SCCR_ASSIGN_EL1`).
    #[must_use]
    pub fn new(tags: bool, default: Sector, group: Sector, moves: bool) -> Assignment {
        let last = SECTORS as Sector - 1;
        Assignment {
            tag_mask: if tags { last } else { 0 },
            default: if tags { 0 } else { default & last },
            group: group & 1,
            moves,
            data: Box::default(),
        }
    }

    /// The same with sectors by address: `data` have the ones named, everything else the default sector, whatever
    /// pointers say. Ranges must not overlap.
    #[must_use]
    pub fn with_data(self, data: Vec<(Range<u64>, Sector)>) -> Assignment {
        if data.is_empty() { self } else { self.by_address(data) }
    }

    /// The same, also if there are no such data at present.
    #[must_use]
    pub fn by_address(self, mut data: Vec<(Range<u64>, Sector)>) -> Assignment {
        data.sort_unstable_by_key(|(range, _)| range.start);
        // A line's sector follows from its address then: it never moves.
        Assignment { tag_mask: 0, moves: false, data: data.into(), ..self }
    }

    /// The sector of a data access to `addr` through a pointer with `tag` in its bits 57:56.
    #[inline(always)]
    #[must_use]
    pub fn of(&self, tag: Sector, addr: u64) -> Sector {
        if self.data.is_empty() { tag & self.tag_mask | self.default } else { self.at(addr) }
    }

    #[cold]
    #[inline(never)]
    fn at(&self, addr: u64) -> Sector {
        let i = self.data.partition_point(|(range, _)| range.end <= addr);
        self.data.get(i).filter(|(range, _)| range.start <= addr).map_or(self.default, |&(_, sector)| sector)
    }

    /// The sector of instructions, and of the translation tables, which no pointer names either.
    #[must_use]
    pub fn code(&self) -> Sector {
        self.default
    }

    /// Which pair of L2's sectors the core uses.
    #[must_use]
    pub fn group(&self) -> Sector {
        self.group
    }

    /// What L2 is to do for an access of `sector` of this core's L1: it belongs to one of the pair's sectors.
    #[inline(always)]
    #[must_use]
    pub fn in_l2(&self, sector: Sector) -> Joins {
        Joins { sector: self.group << 1 | sector & 1, moves: self.moves }
    }

    /// Whether a line found by an access of another sector moves to it.
    #[inline(always)]
    #[must_use]
    pub fn moves(&self) -> bool {
        self.moves
    }
}
