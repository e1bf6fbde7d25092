//! The sector cache: which line leaves, and which sector a line is in.

use fxscope_memory::chip::{Holder, Request};
use fxscope_memory::hierarchy::Cause;
use fxscope_memory::sectors::{Assignment, Joins, Limits, SECTORS, Sector};
use fxscope_memory::tags::{Line, Tags};

use super::*;

const NO_LIMIT: u8 = u8::MAX;

/// Puts `line` of `sector` into the only set of `tags`, arrived; returns the line that left.
fn fill(tags: &mut Tags, line: u64, sector: Sector) -> Option<u64> {
    tags.insert(0, line, Line::default().in_sector(sector), 0).1.map(|victim| victim.line)
}

/// A set of `ways` lines, named by how long ago they were used (1: latest), of which those of `zero` are in sector 0.
fn set(ways: u64, zero: &[u64]) -> Tags {
    let mut tags = Tags::new(1, ways as usize);
    for age in (1..=ways).rev() {
        fill(&mut tags, age, u8::from(!zero.contains(&age)));
    }
    tags
}

#[test]
fn a_sector_below_its_limit_takes_the_oldest_line_of_one_above_as_in_figure_12_2() {
    const N: u64 = 16;
    let mut tags = set(N, &[1, 3]);
    tags.limit(Limits::new([3, N as u8 - 3, 0, 0]));
    assert_eq!(fill(&mut tags, 100, 0), Some(N), "the oldest of sector 1, which is n - 1 of the figure's numbers");
}

#[test]
fn a_sector_above_its_limit_replaces_its_own_oldest_line_as_in_figure_12_3() {
    const N: u64 = 16;
    let mut tags = set(N, &[1, N]);
    tags.limit(Limits::new([3, N as u8 - 3, 0, 0]));
    assert_eq!(fill(&mut tags, 100, 1), Some(N - 1), "line n is older, and stays: sector 0 has less than it may");
}

#[test]
fn a_sector_at_its_limit_replaces_its_own_lines_although_older_ones_are_there() {
    let mut tags = set(4, &[1]);
    tags.limit(Limits::new([1, 3, 0, 0]));
    assert_eq!(fill(&mut tags, 100, 0), Some(1));
}

#[test]
fn changed_limits_are_approached_fill_by_fill() {
    let mut tags = set(4, &[]);
    tags.limit(Limits::new([3, 1, 0, 0]));
    assert_eq!([100, 101, 102, 103].map(|line| fill(&mut tags, line, 0)), [Some(4), Some(3), Some(2), Some(100)]);
    tags.limit(Limits::new([1, 3, 0, 0]));
    assert_eq!([200, 201, 202].map(|line| fill(&mut tags, line, 1)), [Some(101), Some(102), Some(1)]);
}

#[test]
fn where_no_sector_is_above_its_limit_one_that_is_at_it_gives_way() {
    let mut tags = set(4, &[4]);
    tags.limit(Limits::new([2, 3, 0, 0]));
    assert_eq!(fill(&mut tags, 100, 0), Some(3), "line 4 is older; sector 0 has less than it may");
}

#[test]
fn where_all_sectors_are_below_their_limits_the_oldest_line_leaves() {
    let mut tags = set(4, &[1, 4]);
    tags.limit(Limits::new([3, NO_LIMIT, 0, 0]));
    assert_eq!(fill(&mut tags, 100, 1), Some(4));
}

#[test]
fn a_sector_that_may_have_no_lines_takes_one_where_there_must_be_one_and_then_replaces_it() {
    let mut tags = set(4, &[1, 2, 3, 4]);
    tags.limit(Limits::new([4, 0, 0, 0]));
    assert_eq!([100, 101, 102].map(|line| fill(&mut tags, line, 1)), [Some(4), Some(100), Some(101)]);
    assert_eq!(fill(&mut tags, 103, 0), Some(102), "and gives it up");
}

#[test]
fn an_empty_place_is_filled_whatever_the_limits_are() {
    let mut tags = set(4, &[1, 2]);
    tags.limit(Limits::new([2, 2, 0, 0]));
    assert!(tags.remove(0, 3).is_some());
    assert_eq!(fill(&mut tags, 100, 0), None);
    assert_eq!(fill(&mut tags, 101, 0), Some(2), "now sector 0 has more than it may");
}

#[test]
fn of_the_sectors_that_give_way_a_line_on_its_way_stays_while_another_has_arrived() {
    let mut tags: Tags = Tags::new(1, 3);
    tags.limit(Limits::new([1, 2, 0, 0]));
    tags.insert(0, 10, Line::arriving(100).in_sector(1), 0);
    tags.insert(0, 11, Line::arriving(20).in_sector(1), 0);
    tags.insert(0, 12, Line::default(), 0);
    let mut replace = |line, now| {
        let (_, victim) = tags.insert(0, line, Line::arriving(200).in_sector(1), now);
        victim.map(|victim| victim.line)
    };
    assert_eq!(replace(13, 50), Some(11), "line 10 comes at 100, line 12 is of another sector");
    assert_eq!(replace(14, 60), Some(10), "none of sector 1 has come: the oldest");
}

#[test]
fn limits_that_cannot_be_reached_leave_replacement_as_it_is_without_sectors() {
    let mut limited = set(4, &[1, 3]);
    limited.limit(Limits::new([4, NO_LIMIT, 5, 4]));
    let mut plain = set(4, &[1, 3]);
    for line in 100..120 {
        assert_eq!(fill(&mut limited, line, (line % 2) as u8), fill(&mut plain, line, 0));
    }
}

/// The rules of replacement on a plain list, latest line first: for each line its number and its sector.
struct Oracle {
    ways: usize,
    limits: [u8; SECTORS],
    lines: Vec<(u64, Sector)>,
}

impl Oracle {
    fn held(&self, sector: Sector) -> usize {
        self.lines.iter().filter(|line| line.1 == sector).count()
    }

    /// Whether sectors have a number of lines that compares so with their limit, and which is the oldest line of these.
    fn oldest(&self, of: impl Fn(Sector, usize, usize) -> bool) -> Option<usize> {
        self.lines.iter().rposition(|&(_, s)| of(s, self.held(s), self.limits[usize::from(s)].into()))
    }

    fn fill(&mut self, line: u64, sector: Sector) -> Option<u64> {
        let full = self.lines.len() == self.ways;
        let leaves = full.then(|| {
            let own = self.oldest(|s, held, limit| s == sector && held >= limit);
            let above = || self.oldest(|s, held, limit| s != sector && held > limit);
            let at = || self.oldest(|s, held, limit| s != sector && held == limit);
            own.or_else(above).or_else(at).unwrap_or(self.ways - 1)
        });
        let victim = leaves.map(|i| self.lines.remove(i).0);
        self.lines.insert(0, (line, sector));
        victim
    }
}

/// Numbers that look random: the top bits of a multiplicative sequence.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % n
    }
}

#[test]
fn replacement_is_that_of_a_plain_list_for_random_accesses_limits_and_changes_of_sector() {
    let mut numbers = Numbers(1);
    for ways in [1, 2, 4, 7, 14, 16] {
        let mut tags: Tags = Tags::new(1, ways);
        let mut oracle = Oracle { ways, limits: [NO_LIMIT; SECTORS], lines: Vec::new() };
        for step in 0..20_000 {
            if numbers.below(200) == 0 {
                oracle.limits = [(); SECTORS].map(|()| numbers.below(ways as u64 + 2) as u8);
                tags.limit(Limits::new(oracle.limits));
            }
            let (line, sector) = (numbers.below(2 * ways as u64 + 1), numbers.below(SECTORS as u64) as u8);
            let found = oracle.lines.iter().position(|l| l.0 == line);
            let slot = tags.find(0, line);
            assert_eq!(slot.is_some(), found.is_some(), "{ways} ways, step {step}");
            match (slot, found, numbers.below(8)) {
                (Some(_), Some(at), 0) => {
                    let state = tags.remove(0, line).expect("found");
                    assert_eq!(state.sector(), oracle.lines.remove(at).1);
                }
                (Some(slot), Some(at), _) => {
                    // A hit, after which the line is in the sector of the access.
                    tags.touch(slot);
                    *tags.line_mut(slot) = tags.line(slot).in_sector(sector);
                    oracle.lines.remove(at);
                    oracle.lines.insert(0, (line, sector));
                }
                _ => assert_eq!(fill(&mut tags, line, sector), oracle.fill(line, sector), "{ways} ways, step {step}"),
            }
        }
    }
}

#[test]
fn the_tag_of_a_pointer_chooses_the_sector_where_tags_do_and_the_default_where_they_do_not() {
    let tagged = Assignment::new(true, 2, 0, true);
    assert_eq!([0, 1, 2, 3].map(|tag| tagged.of(tag, 0)), [0, 1, 2, 3]);
    let untagged = Assignment::new(false, 2, 0, true);
    assert_eq!([0, 1, 2, 3].map(|tag| untagged.of(tag, 0)), [2; 4]);
}

#[test]
fn the_four_sectors_of_l1_belong_to_the_two_of_l2_that_the_core_uses() {
    for (group, expected) in [(0, [0, 1, 0, 1]), (1, [2, 3, 2, 3])] {
        let assignment = Assignment::new(true, 0, group, true);
        assert_eq!([0, 1, 2, 3].map(|sector| assignment.in_l2(sector).sector), expected);
    }
}

#[test]
fn data_that_were_given_a_sector_have_it_whatever_the_pointer_says() {
    let assignment = Assignment::new(true, 0, 0, true).with_data(vec![(0x2000..0x3000, 3), (0x1000..0x1100, 1)]);
    let sectors = [0xfff, 0x1000, 0x10ff, 0x1100, 0x1fff, 0x2000, 0x2fff, 0x3000].map(|addr| assignment.of(2, addr));
    assert_eq!(sectors, [0, 1, 1, 0, 0, 3, 3, 0]);
    assert!(!assignment.moves(), "a line's sector follows from its address");
}

/// A core whose accesses have the sectors of their pointers, with these ways of L1D and L2.
fn core(l1: Option<[u8; SECTORS]>, l2: Option<[u8; 2]>) -> Core {
    core_with(Assignment::new(true, 0, 0, true), l1, l2)
}

fn core_with(assignment: Assignment, l1: Option<[u8; SECTORS]>, l2: Option<[u8; 2]>) -> Core {
    let mut core = Core::new(&machine());
    core.memory.core.assign_sectors(assignment);
    core.memory.run().limit_sectors(l1, l2);
    core
}

/// A pointer to `addr` that names a sector.
fn tagged(addr: u64, sector: u64) -> u64 {
    addr | sector << 56
}

/// Line `n` of one L1D set.
fn line(n: u64) -> u64 {
    n * L1_SET
}

/// Which of the first eight lines of the set L1D has at `t`. Looking has an effect: it comes last in a test.
fn in_l1(core: &mut Core, t: Cycle) -> Vec<u64> {
    (0..8).filter(|&n| core.load(line(n), t).1 == Level::L1).collect()
}

/// The sector of a line in the core's L2.
fn l2_sector(core: &mut Core, addr: u64) -> Option<Sector> {
    let place = core.memory.run().translate(addr.into(), 0, &mut Signals::default());
    core.memory.chip().sector_of(0, place.physical / LINE)
}

#[test]
fn a_stream_in_a_sector_of_one_way_leaves_three_ways_of_l1_to_other_data() {
    for (sector, expected) in [(1, vec![0, 1, 2]), (0, vec![])] {
        let mut core = core(Some([3, 1, 0, 0]), None);
        (0..3).for_each(|n| core.store(line(n), 1_000 * n));
        (10..30).for_each(|n| core.store(tagged(line(n), sector), 1_000 * n));
        assert_eq!(in_l1(&mut core, 50_000), expected, "stream in sector {sector}");
    }
}

#[test]
fn the_four_sectors_of_l1_are_separate() {
    let mut core = core(Some([1, 1, 1, 1]), None);
    (0..4).for_each(|n| core.store(tagged(line(n), n), 1_000 * n));
    (10..20).for_each(|n| core.store(tagged(line(n), 2), 1_000 * n));
    assert_eq!(in_l1(&mut core, 50_000), [0, 1, 3]);
}

#[test]
fn tags_of_pointers_have_no_effect_where_they_do_not_choose_sectors() {
    let mut core = core_with(Assignment::new(false, 0, 0, true), Some([3, 1, 0, 0]), None);
    (0..3).for_each(|n| core.store(line(n), 1_000 * n));
    (10..30).for_each(|n| core.store(tagged(line(n), 1), 1_000 * n));
    assert_eq!(in_l1(&mut core, 50_000), [], "all are in sector 0");
}

#[test]
fn a_line_found_by_an_access_of_another_sector_moves_to_it_in_mode_0_and_stays_in_mode_1() {
    for (moves, expected) in [(true, vec![1, 2]), (false, vec![0, 1, 2])] {
        let assignment = Assignment::new(true, 0, 0, moves);
        let mut core = core_with(assignment, Some([3, 1, 0, 0]), None);
        (0..3).for_each(|n| core.store(line(n), 1_000 * n));
        assert_eq!(core.load(tagged(line(0), 1), 5_000).1, Level::L1, "found in any sector");
        core.store(tagged(line(10), 1), 6_000);
        core.store(tagged(line(11), 1), 7_000);
        assert_eq!(in_l1(&mut core, 50_000), expected, "moves: {moves}");
    }
}

#[test]
fn a_line_that_is_found_moves_only_while_a_cache_has_limits() {
    for (l1, l2, sector) in [(None, None, 0), (Some([4, 4, 0, 0]), None, 1), (None, Some([14, 14]), 1)] {
        let mut core = core_with(Assignment::new(true, 0, 0, true), l1, l2);
        core.store(line(0), 1_000);
        assert_eq!(core.load(tagged(line(0), 1), 2_000).1, Level::L1);
        (1..5).for_each(|n| core.store(line(n), 2_000 + 1_000 * n));
        assert_eq!(l2_sector(&mut core, line(0)), Some(sector), "with the sector that it had in L1D");
    }
}

#[test]
fn lines_stay_in_their_sectors_from_when_they_are_told_to() {
    let mut core = core_with(Assignment::new(true, 0, 0, true), Some([3, 1, 0, 0]), None);
    core.memory.core.assign_sectors(Assignment::new(true, 0, 0, false));
    assert_eq!(core.memory.core.sectors(), &Assignment::new(true, 0, 0, false));
    (0..3).for_each(|n| core.store(line(n), 1_000 * n));
    core.load(tagged(line(0), 1), 5_000);
    (10..12).for_each(|n| core.store(tagged(line(n), 1), 1_000 * n));
    assert_eq!(in_l1(&mut core, 50_000), [0, 1, 2]);
}

#[test]
fn lines_of_l2_are_in_the_sector_of_the_core_s_pair_that_the_lowest_bit_of_their_sector_names() {
    for (group, expected) in [(0, [0, 1, 0, 1]), (1, [2, 3, 2, 3])] {
        let mut core = core_with(Assignment::new(true, 0, group, true), None, None);
        (0..4).for_each(|n| core.store(tagged(line(n), n), 1_000 * n));
        assert_eq!([0, 1, 2, 3].map(|n| l2_sector(&mut core, line(n))), expected.map(Some));
    }
}

#[test]
fn instructions_are_in_the_sector_of_l2_that_the_default_sector_names() {
    for (default, expected) in [(0, 2), (1, 3), (2, 2)] {
        let mut core = core_with(Assignment::new(false, default, 1, true), None, None);
        core.memory.run().fetch(0x4000, 100, &mut core.signals);
        assert_eq!(l2_sector(&mut core, 0x4000), Some(expected), "default sector {default}");
    }
}

#[test]
fn an_l1_miss_moves_the_line_that_l2_has_to_its_sector_in_mode_0_only() {
    for (moves, expected) in [(true, 1), (false, 0)] {
        let mut core = core_with(Assignment::new(true, 0, 0, moves), None, None);
        core.store(line(0), 100);
        (1..6).for_each(|n| core.store(line(n), 1_000 * n));
        assert_eq!(core.load(tagged(line(0), 1), 20_000).1, Level::L2);
        assert_eq!(l2_sector(&mut core, line(0)), Some(expected), "moves: {moves}");
    }
}

#[test]
fn a_line_that_goes_back_to_l2_takes_its_sector_with_it() {
    let mut core = core(None, Some([4, 10]));
    core.load(line(0), 100);
    core.store(tagged(line(0), 3), 1_000);
    assert_eq!(l2_sector(&mut core, line(0)), Some(0), "L2 does not know yet");
    (1..6).for_each(|n| core.store(line(n), 1_000 + 1_000 * n));
    assert_eq!(l2_sector(&mut core, line(0)), Some(1));
}

#[test]
fn prefetch_instructions_and_zeroed_lines_are_in_the_sector_of_their_pointer() {
    let mut core = core(Some([3, 1, 0, 0]), None);
    (0..3).for_each(|n| core.store(line(n), 1_000 * n));
    for n in 4..7 {
        core.memory.run().translate(line(n).into(), 0, &mut core.signals);
        core.memory.run().prefetch_instruction(tagged(line(n), 1).into(), 8, 1, 10_000 * n, &mut core.signals);
        assert_eq!(l2_sector(&mut core, line(n)), Some(1));
    }
    core.memory.run().translate(line(10).into(), 0, &mut core.signals);
    core.memory.run().prefetch_instruction(tagged(line(10), 1).into(), 8, 2, 80_000, &mut core.signals);
    core.memory.run().zero_line(tagged(line(11), 1).into(), 90_000, &mut core.signals);
    assert_eq!([10, 11].map(|n| l2_sector(&mut core, line(n))), [Some(1); 2]);
    assert_eq!(in_l1(&mut core, 100_000), [0, 1, 2, 6], "each prefetch replaced the one before");
}

#[test]
fn hardware_prefetches_are_in_the_sector_of_the_access_that_they_follow() {
    let mut spec = machine();
    (spec.tables.prefetch.l1, spec.tables.prefetch.l2) = (true, true);
    let mut core = Core::new(&spec);
    core.memory.core.assign_sectors(Assignment::new(true, 0, 0, true));
    (0..8).for_each(|n| core.store(tagged(n * LINE, 1), 1_000 * n));
    let ahead = u64::from(spec.prefetch.l1_lines);
    assert!((8..8 + ahead).all(|n| l2_sector(&mut core, n * LINE) == Some(1)), "asked for, and for sector 1");
}

#[test]
fn prefetched_lines_of_data_that_have_their_sectors_by_address_are_in_the_sector_of_their_own_address() {
    let mut spec = machine();
    (spec.tables.prefetch.l1, spec.tables.prefetch.l2) = (true, true);
    let mut core = Core::new(&spec);
    let data = vec![(0..10 * LINE, 1)];
    core.memory.core.assign_sectors(Assignment::new(true, 0, 0, true).with_data(data));
    (0..8).for_each(|n| core.store(n * LINE, 1_000 * n));
    assert_eq!([9, 10].map(|n| l2_sector(&mut core, n * LINE)), [Some(1), Some(0)]);
}

/// Addresses of one set of L2: bits that its index leaves out.
fn of_one_l2_set(n: u64) -> u64 {
    n << 37
}

#[test]
fn a_stream_leaves_the_lines_of_a_sector_of_l2_that_has_no_more_than_its_ways() {
    let usable = machine().l2.ways - machine().l2.reserved_ways;
    assert_eq!(usable, 14, "assistant cores have two ways");
    for (ways, kept) in [(Some([4, 10]), 10), (None, 0)] {
        let mut core = core(None, ways);
        (0..10).for_each(|n| core.store(tagged(of_one_l2_set(n), 1), 1_000 * n));
        (10..100).for_each(|n| core.store(of_one_l2_set(n), 1_000 * n));
        let held = (0..10).filter(|&n| l2_sector(&mut core, of_one_l2_set(n)) == Some(1)).count();
        assert_eq!(held, kept, "{ways:?}");
    }
}

#[test]
fn cores_of_a_cmg_limit_the_same_sectors_of_l2_and_the_last_one_is_obeyed() {
    let spec = machine();
    let mut chip = Chip::new(&spec);
    let mut signals = Signals::default();
    let mut read = |chip: &mut Chip, core, n, sector| {
        let joins = Joins { sector, moves: true };
        let (at, cause) = (1_000 * n, Cause::Demand);
        let request = Request { line: of_one_l2_set(n) / LINE, at, cause, holder: Holder::Data, write: false, joins };
        chip.read::<true>(CoreId { cmg: 0, core }, request, &mut signals);
    };
    chip.limit_sectors(0, 0, Some([12, 2]));
    chip.limit_sectors(0, 0, Some([4, 10]));
    (0..10).for_each(|n| read(&mut chip, 0, n, 1));
    (10..100).for_each(|n| read(&mut chip, 1, n, 0));
    assert!((0..10).all(|n| chip.holds(0, of_one_l2_set(n) / LINE)));
    chip.limit_sectors(0, 1, Some([7, 7]));
    (100..200).for_each(|n| read(&mut chip, 1, n, 0));
    assert!((0..10).all(|n| chip.holds(0, of_one_l2_set(n) / LINE)), "the other pair has limits of its own");
    chip.limit_sectors(0, 0, Some([12, 2]));
    (200..300).for_each(|n| read(&mut chip, 1, n, 0));
    let left = (0..10).filter(|&n| chip.holds(0, of_one_l2_set(n) / LINE)).count();
    assert_eq!(left, 2, "brought down to its new limit fill by fill");
}
