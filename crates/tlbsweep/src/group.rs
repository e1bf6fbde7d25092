//! The fully associative TLBs of several lanes while they see accesses in a row. What they hold is known by page, a bit for
//! each lane, so that it is asked once for all of them which hit; only those that miss are looked at one by one.

use crate::choice::{Key, Sizes};
use crate::lanes::Lane;
use crate::row::{PAGES, Row};
use crate::{ENTRIES, Replacement, SEGMENTS, SIZES};

/// Most lanes of a group.
pub const GROUP: usize = 64;

/// How TLBs work for all lanes.
pub struct Rules<'a> {
    pub replacement: Replacement,
    pub sizes: &'a Sizes,
    /// Sizes whose pages are not for the fully associative TLB, as a mask.
    pub served: u8,
}

/// The sizes that the lanes of a group have for a segment; lanes are a bit each.
#[derive(Clone, Copy)]
struct View {
    /// For each size the lanes of which it is the largest, and those of which it is the smallest, of the sizes whose pages the
    /// fully associative TLB has.
    with: [[u64; 2]; SIZES],
    /// Lanes of which the other TLB has all pages, and those of which it has some.
    elsewhere: u64,
    partly: u64,
    /// The largest and the smallest size of each lane.
    of: [[u8; 2]; GROUP],
}

impl View {
    const NONE: View = View { with: [[0; 2]; SIZES], elsewhere: 0, partly: 0, of: [[0; 2]; GROUP] };

    /// Of lanes with these sizes, as masks.
    fn new(masks: impl Iterator<Item = u8>, served: u8) -> View {
        let mut view = View::NONE;
        for (lane, all) in masks.enumerate() {
            let (here, bit) = (all & !served, 1 << lane);
            if here == 0 {
                view.elsewhere |= bit;
                continue;
            }
            let [largest, smallest] = [7 - here.leading_zeros(), here.trailing_zeros()];
            view.with[largest as usize][0] |= bit;
            view.with[smallest as usize][1] |= bit;
            view.partly |= if here == all { 0 } else { bit };
            view.of[lane] = [largest as u8, smallest as u8];
        }
        view
    }

    /// Whether each lane has one size, whose pages are all in one TLB.
    fn decided(&self) -> bool {
        self.partly == 0 && self.with.iter().all(|[largest, smallest]| largest == smallest)
    }
}

/// An entry of a lane's TLB.
#[derive(Clone, Copy, Default)]
struct Entry {
    /// The numbers of its page of the largest and of the smallest size; 0 if there is no access to it in the row.
    numbers: [u16; 2],
    /// The access that used it last, as far as is known: up to [`BEFORE`] before the row.
    used: u16,
    /// When it came, or what `used` was at the beginning.
    came: u16,
}

/// Accesses before the row, of which each entry that is there at its beginning has one, the oldest the first.
const BEFORE: u16 = ENTRIES as u16;

/// A lane, and how many accesses of the row it has seen.
pub type Progress<'a> = (&'a mut Lane, &'a mut usize);

/// As many numbers as a page may have for its type, which spares asking whether one is less.
pub const NUMBERS: usize = 1 << u16::BITS;

/// Where a lane is.
#[derive(Clone, Copy, Default)]
struct Place {
    /// Its entries begin here, and end there.
    first: u32,
    end: u32,
    /// The one to be replaced next: from it on they are in the order of their use as far as is known.
    next: u32,
    /// Accesses that missed.
    misses: u32,
}

/// What missed.
#[derive(Clone, Copy, Default)]
pub struct Missed {
    /// Accesses that some lane missed, as far as one group can tell.
    pub accesses: u64,
    /// Misses of all lanes.
    pub lanes: u64,
}

impl Missed {
    /// Of other lanes at the same accesses.
    pub fn beside(self, other: Missed) -> Missed {
        Missed { accesses: self.accesses.max(other.accesses), lanes: self.lanes + other.lanes }
    }

    /// Of accesses behind these.
    pub fn then(self, other: Missed) -> Missed {
        Missed { accesses: self.accesses + other.accesses, lanes: self.lanes + other.lanes }
    }
}

/// Room for a group.
pub struct Group {
    views: [View; SEGMENTS],
    /// The lanes that hold a page, a bit each.
    held: Box<[u64; NUMBERS]>,
    /// When a page was used last in the row, or 0.
    used: Box<[u16; NUMBERS]>,
    /// The entries of all lanes.
    entries: Vec<Entry>,
    places: [Place; GROUP],
    /// The accesses that missed, of each lane.
    missed: Box<[[u16; PAGES]; GROUP]>,
}

/// Room for as many, each as `one` is.
pub fn room<T: Clone, const N: usize>(one: T) -> Box<[T; N]> {
    vec![one; N].try_into().unwrap_or_else(|_| unreachable!("they are as many"))
}

impl Default for Group {
    fn default() -> Group {
        Group {
            views: [View::NONE; SEGMENTS],
            held: room(0),
            used: room(0),
            entries: Vec::new(),
            places: [Place::default(); GROUP],
            missed: room([0; PAGES]),
        }
    }
}

impl Group {
    /// Lanes, which have seen as many accesses of a row, see more of them up to the first at which some of a lane's assignments
    /// hit and others miss.
    pub fn see(&mut self, lanes: &mut [Progress], row: &Row, rules: &Rules) -> Missed {
        let from = *lanes[0].1;
        self.begin(lanes, row, rules);
        let (lru, decided) = (rules.replacement == Replacement::Lru, self.decided(row));
        let (seen, accesses) = match (lru, decided) {
            (false, _) => self.see_until_split::<false, false>(lanes.len(), row, from, rules),
            (true, false) => self.see_until_split::<true, false>(lanes.len(), row, from, rules),
            (true, true) => self.see_until_split::<true, true>(lanes.len(), row, from, rules),
        };
        for (number, (lane, so_far)) in lanes.iter_mut().enumerate() {
            **so_far = seen;
            self.end(number, lane, row, rules);
        }
        Missed { accesses, lanes: self.places[..lanes.len()].iter().map(|place| u64::from(place.misses)).sum() }
    }

    /// Whether all lanes have one size for each segment that is accessed.
    fn decided(&self, row: &Row) -> bool {
        row.segments().all(|segment| self.views[segment].decided())
    }

    /// Takes over what lanes hold.
    fn begin(&mut self, lanes: &[Progress], row: &Row, rules: &Rules) {
        for segment in row.segments() {
            self.views[segment] = View::new(lanes.iter().map(|(lane, _)| lane.choice.0[segment]), rules.served);
        }
        self.held[..rules.sizes.len() * PAGES].fill(0);
        if rules.replacement == Replacement::Lru {
            self.used[..rules.sizes.len() * PAGES].fill(0);
        }
        self.entries.clear();
        for (number, (lane, _)) in lanes.iter().enumerate() {
            let first = self.entries.len() as u32;
            for (age, key) in lane.by_age(rules.replacement).enumerate() {
                let accessed = key != Key::NONE && row.accesses(key.segment());
                let of = |size: u8| if accessed { row.find(key, usize::from(size), rules.sizes) } else { 0 };
                let numbers = self.views[key.segment()].of[number].map(of);
                numbers.iter().for_each(|&page| self.held[usize::from(page)] |= 1 << number);
                let used = age as u16 + 1;
                self.entries.push(Entry { numbers, used, came: used });
            }
            self.places[number] = Place { first, end: self.entries.len() as u32, next: first, misses: 0 };
        }
    }

    /// Lanes see accesses of a row from one on, up to the first at which some of a lane's assignments hit and others miss: up to
    /// which, and how many of them some lane missed. Where all have one size for each segment, there is no such access.
    fn see_until_split<const LRU: bool, const DECIDED: bool>(
        &mut self,
        lanes: usize,
        row: &Row,
        from: usize,
        rules: &Rules,
    ) -> (usize, u64) {
        let (all, sizes) = (u64::MAX >> (GROUP - lanes), rules.sizes.len());
        let Group { views, entries, places, .. } = self;
        let held: &mut [u64; NUMBERS] = &mut self.held;
        let used: &mut [u16; NUMBERS] = &mut self.used;
        let missed: &mut [[u16; PAGES]; GROUP] = &mut self.missed;
        let (mut at, mut accesses) = (from, 0);
        for (key, pages) in row.keys()[from..].iter().zip(&row.numbers()[from..]) {
            let view = &views[key.segment()];
            let now = BEFORE + 1 + at as u16;
            let (mut hit, mut within) = (view.elsewhere, view.elsewhere);
            for (&page, [largest, smallest]) in pages.iter().zip(&view.with).take(sizes) {
                hit |= held[usize::from(page)] & largest;
                within |= held[usize::from(page)] & smallest;
            }
            let mut missing = all & !hit;
            if !DECIDED && (hit ^ within | missing & view.partly) != 0 {
                return (at, accesses);
            }
            at += 1;
            if LRU {
                pages[..sizes].iter().for_each(|&page| used[usize::from(page)] = now);
            }
            if missing == 0 {
                continue;
            }
            accesses += 1;
            for (&page, [largest, smallest]) in pages.iter().zip(&view.with).take(sizes) {
                held[usize::from(page)] |= missing & (largest | smallest);
            }
            while missing != 0 {
                let lane = missing.trailing_zeros() as usize % GROUP;
                missing &= missing - 1;
                let [largest, smallest] = view.of[lane].map(|size| pages[usize::from(size) % SIZES]);
                let numbers = [largest, if DECIDED { largest } else { smallest }];
                let place = &mut places[lane];
                if LRU {
                    place.pass_over_used(entries, used);
                }
                let old = &mut entries[place.next as usize];
                held[usize::from(old.numbers[0])] &= !(1 << lane);
                if !DECIDED {
                    held[usize::from(old.numbers[1])] &= !(1 << lane);
                }
                *old = Entry { numbers, used: now, came: now };
                missed[lane][place.misses as usize % PAGES] = at as u16 - 1;
                place.misses += 1;
                place.next = place.behind(place.next);
            }
        }
        (at, accesses)
    }

    /// A lane of a number takes over what it holds now; its second TLB sees what missed.
    fn end(&mut self, number: usize, lane: &mut Lane, row: &Row, rules: &Rules) {
        let before: Vec<Key> = lane.by_age(rules.replacement).collect();
        let Place { first, end, next, misses } = self.places[number];
        let entries = &mut self.entries[first as usize..end as usize];
        entries.rotate_left((next - first) as usize);
        if rules.replacement == Replacement::Lru {
            entries.sort_unstable_by_key(|entry| entry.used.max(self.used[usize::from(entry.numbers[0])]));
        }
        let at = row.by_number();
        let address = |came: u16| match came.checked_sub(BEFORE + 1) {
            None => before[usize::from(came) - 1],
            Some(access) => at(access),
        };
        lane.hold(entries.iter().map(|entry| address(entry.came)), rules.replacement);
        let missed = &self.missed[number][..misses as usize];
        let shifts = lane.choice.0.map(|mask| rules.sizes.largest_of(mask));
        lane.miss_in_turn(missed.iter().map(|&access| at(access)), &shifts);
    }
}

impl Place {
    /// The place of the entry behind another.
    #[inline(always)]
    fn behind(&self, at: u32) -> u32 {
        if at + 1 == self.end { self.first } else { at + 1 }
    }

    /// The next entry to be replaced becomes the least recently used; `used` tells when a page was used last. Entries that are
    /// passed over go where they belong.
    #[inline(always)]
    fn pass_over_used(&mut self, entries: &mut [Entry], used: &[u16; NUMBERS]) {
        loop {
            let next = &mut entries[self.next as usize];
            let last = used[usize::from(next.numbers[0])];
            if last <= next.used {
                return;
            }
            next.used = last;
            self.put_behind(entries);
        }
    }

    /// The next entry to be replaced goes behind those that were used before it.
    fn put_behind(&mut self, entries: &mut [Entry]) {
        let mut at = self.next;
        self.next = self.behind(at);
        while at != self.next {
            let before = if at == self.first { self.end - 1 } else { at - 1 };
            if entries[before as usize].used < entries[at as usize].used {
                return;
            }
            entries.swap(before as usize, at as usize);
            at = before;
        }
    }
}
