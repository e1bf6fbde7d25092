//! The fully associative TLBs of several lanes while they see accesses in a row, for lanes that none of these can split, when the
//! page that came first is the one to go: what a lane holds is then what it missed last.

use crate::alike::{Alike, Miss, Seen};
use crate::choice::Key;
use crate::group::{GROUP, Missed, NUMBERS, Progress, Rules, room};
use crate::lanes::Lane;
use crate::row::{PAGES, Row};
use crate::{ENTRIES, Replacement, SEGMENTS, SIZES};

/// Room for a lane's queue: what it holds at first, and a page for each access. As an odd number of cache lines, so that those of
/// lanes that are as far do not fall into the same sets of the host's caches.
const QUEUE: usize = ENTRIES + PAGES + 32;
/// Room for all queues, so many that no number beyond it is ever met.
const ROOM: usize = (GROUP * QUEUE).next_power_of_two();

/// Lanes of a segment, a bit each: for each size those that have it, and those whose pages another TLB has.
#[derive(Clone, Copy)]
struct View {
    with: [u64; SIZES],
    elsewhere: u64,
    /// The size of each lane.
    of: [u8; GROUP],
}

impl View {
    const NONE: View = View { with: [0; SIZES], elsewhere: 0, of: [0; GROUP] };
}

/// Room for the queues of a group.
pub struct Queues {
    views: [View; SEGMENTS],
    /// The lanes that hold a page, a bit each, by its number.
    held: Box<[u64; NUMBERS]>,
    /// The numbers of the pages that each lane held or missed, in order; 0 if there is no access to one in the row.
    pages: Box<[u16; ROOM]>,
    /// Where in `pages` the page stands that a lane is to replace next.
    first: [u32; GROUP],
    /// The accesses that some lane missed.
    missed: Box<[Miss; PAGES]>,
}

impl Default for Queues {
    fn default() -> Queues {
        Queues {
            views: [View::NONE; SEGMENTS],
            held: room(0),
            pages: room(0),
            first: [0; GROUP],
            missed: room(Miss::default()),
        }
    }
}

impl Queues {
    /// Whether a lane can be seen so: for each segment that is accessed it has one size, or all is in one page of its smallest.
    pub fn fits(lane: &Lane, row: &Row, rules: &Rules) -> bool {
        let one = |segment: usize| {
            let mask = lane.choice.0[segment];
            mask.is_power_of_two()
                || mask & rules.served == 0 && Self::in_one_page(lane, row, segment, rules.sizes.smallest_of(mask))
        };
        rules.replacement == Replacement::Fifo && row.segments().all(one)
    }

    /// Whether all that a row has of a segment and a lane holds of it is in one page of `1 << shift` bytes.
    fn in_one_page(lane: &Lane, row: &Row, segment: usize, shift: u32) -> bool {
        let (first, apart) = row.span(segment);
        let here = |key: Key| key.segment() != segment || key == Key::NONE || key.apart(first) <= shift;
        apart <= shift && lane.by_age(Replacement::Fifo).all(here)
    }

    /// Lanes that fit, which have seen as many accesses of a row, see all others of it; those that are `alike` see together what they
    /// missed.
    pub fn see(&mut self, lanes: &mut [Progress], alike: &mut Alike, row: &Row, rules: &Rules) -> Missed {
        let from = *lanes[0].1;
        let entries = self.begin(lanes, row, rules);
        let accesses = self.see_from(lanes.len(), row, from, rules.sizes.len(), entries);
        let with = &self.views.each_ref().map(|view| view.with);
        let all = &mut lanes.iter_mut().map(|(lane, _)| &mut **lane).collect::<Vec<&mut Lane>>();
        let together = alike.see(all, Seen { row, rules, missed: &self.missed[..accesses], with });
        let mut missed = Missed { accesses: accesses as u64, lanes: 0 };
        for (number, (lane, seen)) in lanes.iter_mut().enumerate() {
            **seen = row.keys().len();
            missed.lanes += self.end(number, lane, row, rules, together >> number & 1 != 0) as u64;
        }
        missed
    }

    /// Takes over what lanes hold: how many pages each.
    fn begin(&mut self, lanes: &[Progress], row: &Row, rules: &Rules) -> usize {
        self.held[..rules.sizes.len() * PAGES].fill(0);
        for segment in row.segments() {
            let view = &mut self.views[segment];
            *view = View::NONE;
            for (number, (lane, _)) in lanes.iter().enumerate() {
                let (mask, bit) = (lane.choice.0[segment], 1 << number);
                let sizes = if mask & rules.served != 0 { &mut view.elsewhere } else { &mut view.with[size_of(mask)] };
                *sizes |= bit;
                view.of[number] = size_of(mask) as u8;
            }
        }
        let mut entries = 0;
        for (number, (lane, _)) in lanes.iter().enumerate() {
            self.first[number] = (number * QUEUE) as u32;
            let queue = &mut self.pages[number * QUEUE..];
            entries = 0;
            for (key, place) in lane.by_age(Replacement::Fifo).zip(queue) {
                let accessed = key != Key::NONE && row.accesses(key.segment());
                let size = size_of(lane.choice.0[key.segment()]);
                *place = if accessed { row.find(key, size, rules.sizes) } else { 0 };
                self.held[usize::from(*place)] |= 1 << number;
                entries += 1;
            }
        }
        entries
    }

    /// Lanes, each of which holds so many `entries`, see the accesses of a row from one on: how many of them some lane missed.
    fn see_from(&mut self, lanes: usize, row: &Row, from: usize, sizes: usize, entries: usize) -> usize {
        let all = u64::MAX >> (GROUP - lanes);
        let Queues { views, first, .. } = self;
        let missed: &mut [Miss; PAGES] = &mut self.missed;
        let held: &mut [u64; NUMBERS] = &mut self.held;
        let queues: &mut [u16; ROOM] = &mut self.pages;
        let mut accesses = 0;
        for (access, (key, pages)) in row.keys().iter().zip(row.numbers()).enumerate().skip(from) {
            let view = &views[key.segment()];
            let mut hit = view.elsewhere;
            for (&page, with) in pages.iter().zip(&view.with).take(sizes) {
                hit |= held[usize::from(page)] & with;
            }
            if hit == all {
                continue;
            }
            missed[accesses % PAGES] = Miss { access: access as u16, lanes: all & !hit };
            accesses += 1;
            let mut missing = all & !hit;
            for (&page, with) in pages.iter().zip(&view.with).take(sizes) {
                held[usize::from(page)] |= missing & with;
            }
            while missing != 0 {
                let lane = missing.trailing_zeros() as usize % GROUP;
                let bit = missing & missing.wrapping_neg();
                missing ^= bit;
                let first = &mut first[lane];
                let at = *first as usize;
                *first += 1;
                held[usize::from(queues[at % ROOM])] &= !bit;
                queues[(at + entries) % ROOM] = pages[usize::from(view.of[lane]) % SIZES];
            }
        }
        accesses
    }

    /// A lane of a number takes over what it holds now; its second TLB sees what missed, unless it has: how many accesses.
    fn end(&mut self, number: usize, lane: &mut Lane, row: &Row, rules: &Rules, seen: bool) -> usize {
        let before: Vec<Key> = lane.by_age(Replacement::Fifo).collect();
        let misses = self.first[number] as usize - number * QUEUE;
        let queue = &self.pages[number * QUEUE..][..before.len() + misses];
        let at = row.by_page();
        let last = (misses..queue.len()).map(|place| before.get(place).copied().unwrap_or_else(|| at(queue[place])));
        lane.hold(last, Replacement::Fifo);
        if seen {
            return misses;
        }
        let missed = &queue[before.len()..];
        let shifts = lane.choice.0.map(|mask| rules.sizes.largest_of(mask));
        lane.miss_in_turn(missed.iter().map(|&page| at(page)), &shifts);
        misses
    }
}

/// The only size of a mask, or the smallest.
fn size_of(mask: u8) -> usize {
    mask.trailing_zeros() as usize % SIZES
}
