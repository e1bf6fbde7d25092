//! The fully associative TLBs of a group of up to 64 classes during a batch. For each page, a bit mask has the classes
//! that hold it. So one look-up finds the classes that hit, and only those that miss are processed one by one.

use crate::bulk::batch::{Batch, PAGES};
use crate::class::Class;
use crate::size_masks::{Key, PageSizes};
use crate::{ENTRIES, Replacement, SEGMENTS, SIZES};

/// Maximum number of classes in a group.
pub const GROUP_SIZE: usize = 64;

/// How the TLBs of all classes work.
pub struct Rules<'a> {
    pub replacement: Replacement,
    pub sizes: &'a PageSizes,
    /// Mask of the sizes whose pages only the set-associative TLB holds.
    pub l2_only: u8,
}

/// The sizes that the classes of a group have for a segment, as bit masks of classes.
#[derive(Clone, Copy)]
struct View {
    /// For each size, the classes of which it is the largest and those of which it is the smallest, among sizes whose
    /// pages the fully associative TLB holds.
    with: [[u64; 2]; SIZES],
    /// Classes whose pages are all in the other TLB, and classes some of whose pages are.
    elsewhere: u64,
    partly: u64,
    /// The largest and the smallest size of each class.
    of: [[u8; 2]; GROUP_SIZE],
}

impl View {
    const NONE: View = View { with: [[0; 2]; SIZES], elsewhere: 0, partly: 0, of: [[0; 2]; GROUP_SIZE] };

    /// The view of classes with these size masks.
    fn new(masks: impl Iterator<Item = u8>, l2_only: u8) -> View {
        let mut view = View::NONE;
        for (class, all) in masks.enumerate() {
            let (here, bit) = (all & !l2_only, 1 << class);
            if here == 0 {
                view.elsewhere |= bit;
                continue;
            }
            let [largest, smallest] = [7 - here.leading_zeros(), here.trailing_zeros()];
            view.with[largest as usize][0] |= bit;
            view.with[smallest as usize][1] |= bit;
            view.partly |= if here == all { 0 } else { bit };
            view.of[class] = [largest as u8, smallest as u8];
        }
        view
    }

    /// Returns whether each class has one size and all its pages are in one TLB.
    fn decided(&self) -> bool {
        self.partly == 0 && self.with.iter().all(|[largest, smallest]| largest == smallest)
    }
}

/// A TLB entry of a class.
#[derive(Clone, Copy, Default)]
struct Entry {
    /// The page's numbers at the largest and the smallest size; 0 if the batch does not access the page.
    numbers: [u16; 2],
    /// The last access to the page, as far as known. Values up to [`BEFORE`] are before the batch.
    used: u16,
    /// The access that filled the entry, or the value of `used` at the start.
    came: u16,
}

/// Accesses before the batch: the entries held at its start are numbered from the oldest (1).
const BEFORE: u16 = ENTRIES as u16;

/// A class, and how many accesses of the batch it has processed.
pub type Progress<'a> = (&'a mut Class, &'a mut usize);

/// Size of tables indexed by page number: all values of the type, which makes bounds checks unnecessary.
pub const PAGE_NUMBERS: usize = 1 << u16::BITS;

/// A class's entries, as a ring.
#[derive(Clone, Copy, Default)]
struct Ring {
    /// Where the entries begin and end.
    first: u32,
    end: u32,
    /// The entry to replace next. From it on, entries are in the order of their use as far as known.
    next: u32,
    /// Accesses that missed.
    misses: u32,
}

/// Misses during a batch.
#[derive(Clone, Copy, Default)]
pub struct Missed {
    /// Accesses that some class missed: the maximum over groups.
    pub accesses: u64,
    /// Misses of all classes.
    pub misses: u64,
}

impl Missed {
    /// Combines misses of different classes at the same accesses.
    pub fn merge_classes(self, other: Missed) -> Missed {
        Missed { accesses: self.accesses.max(other.accesses), misses: self.misses + other.misses }
    }

    /// Combines misses of the same classes at consecutive accesses.
    pub fn merge_accesses(self, other: Missed) -> Missed {
        Missed { accesses: self.accesses + other.accesses, misses: self.misses + other.misses }
    }
}

/// State of a group, reused from batch to batch.
pub struct Group {
    views: [View; SEGMENTS],
    /// For each page number, bit mask of the classes that hold the page.
    held: Box<[u64; PAGE_NUMBERS]>,
    /// For each page number, the last access to the page in the batch, or 0.
    used: Box<[u16; PAGE_NUMBERS]>,
    /// The entries of all classes.
    entries: Vec<Entry>,
    rings: [Ring; GROUP_SIZE],
    /// For each class, the accesses that missed.
    missed: Box<[[u16; PAGES]; GROUP_SIZE]>,
}

/// Returns an array of `N` copies of `one`, on the heap.
pub fn boxed_array<T: Clone, const N: usize>(one: T) -> Box<[T; N]> {
    vec![one; N].try_into().unwrap_or_else(|_| unreachable!("they are as many"))
}

impl Default for Group {
    fn default() -> Group {
        Group {
            views: [View::NONE; SEGMENTS],
            held: boxed_array(0),
            used: boxed_array(0),
            entries: Vec::new(),
            rings: [Ring::default(); GROUP_SIZE],
            missed: boxed_array([0; PAGES]),
        }
    }
}

impl Group {
    /// Processes accesses in classes that have processed the same number of accesses of a batch, up to the first access
    /// at which some assignments of a class hit and others miss.
    pub fn access(&mut self, classes: &mut [Progress], batch: &Batch, rules: &Rules) -> Missed {
        let from = *classes[0].1;
        self.begin(classes, batch, rules);
        let (lru, decided) = (rules.replacement == Replacement::Lru, self.decided(batch));
        let (seen, accesses) = match (lru, decided) {
            (false, _) => self.access_until_split::<false, false>(classes.len(), batch, from, rules),
            (true, false) => self.access_until_split::<true, false>(classes.len(), batch, from, rules),
            (true, true) => self.access_until_split::<true, true>(classes.len(), batch, from, rules),
        };
        for (number, (class, so_far)) in classes.iter_mut().enumerate() {
            **so_far = seen;
            self.end(number, class, batch, rules);
        }
        Missed { accesses, misses: self.rings[..classes.len()].iter().map(|ring| u64::from(ring.misses)).sum() }
    }

    /// Returns whether all classes have one size for each segment accessed.
    fn decided(&self, batch: &Batch) -> bool {
        batch.segments().all(|segment| self.views[segment].decided())
    }

    /// Loads what the classes hold.
    fn begin(&mut self, classes: &[Progress], batch: &Batch, rules: &Rules) {
        for segment in batch.segments() {
            self.views[segment] = View::new(classes.iter().map(|(class, _)| class.masks.0[segment]), rules.l2_only);
        }
        self.held[..rules.sizes.len() * PAGES].fill(0);
        if rules.replacement == Replacement::Lru {
            self.used[..rules.sizes.len() * PAGES].fill(0);
        }
        self.entries.clear();
        for (number, (class, _)) in classes.iter().enumerate() {
            let first = self.entries.len() as u32;
            for (age, key) in class.by_age(rules.replacement).enumerate() {
                let accessed = key != Key::NONE && batch.accesses(key.segment());
                let of = |size: u8| if accessed { batch.find(key, usize::from(size), rules.sizes) } else { 0 };
                let numbers = self.views[key.segment()].of[number].map(of);
                numbers.iter().for_each(|&page| self.held[usize::from(page)] |= 1 << number);
                let used = age as u16 + 1;
                self.entries.push(Entry { numbers, used, came: used });
            }
            self.rings[number] = Ring { first, end: self.entries.len() as u32, next: first, misses: 0 };
        }
    }

    /// Processes accesses from `from` on, up to the first at which some assignments of a class hit and others miss.
    /// Returns the position of that access and the number of accesses that some class missed. If `DECIDED`, each class
    /// has one size for each segment accessed, and no class can split.
    fn access_until_split<const LRU: bool, const DECIDED: bool>(
        &mut self,
        classes: usize,
        batch: &Batch,
        from: usize,
        rules: &Rules,
    ) -> (usize, u64) {
        let (all, sizes) = (u64::MAX >> (GROUP_SIZE - classes), rules.sizes.len());
        let Group { views, entries, rings, .. } = self;
        let held: &mut [u64; PAGE_NUMBERS] = &mut self.held;
        let used: &mut [u16; PAGE_NUMBERS] = &mut self.used;
        let missed: &mut [[u16; PAGES]; GROUP_SIZE] = &mut self.missed;
        let (mut at, mut accesses) = (from, 0);
        for (key, pages) in batch.keys()[from..].iter().zip(&batch.numbers()[from..]) {
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
                let class = missing.trailing_zeros() as usize % GROUP_SIZE;
                missing &= missing - 1;
                let [largest, smallest] = view.of[class].map(|size| pages[usize::from(size) % SIZES]);
                let numbers = [largest, if DECIDED { largest } else { smallest }];
                let ring = &mut rings[class];
                if LRU {
                    ring.skip_used(entries, used);
                }
                let old = &mut entries[ring.next as usize];
                held[usize::from(old.numbers[0])] &= !(1 << class);
                if !DECIDED {
                    held[usize::from(old.numbers[1])] &= !(1 << class);
                }
                *old = Entry { numbers, used: now, came: now };
                missed[class][ring.misses as usize % PAGES] = at as u16 - 1;
                ring.misses += 1;
                ring.next = ring.after(ring.next);
            }
        }
        (at, accesses)
    }

    /// Writes back what a class holds now; its second-level TLB processes the misses.
    fn end(&mut self, number: usize, class: &mut Class, batch: &Batch, rules: &Rules) {
        let before: Vec<Key> = class.by_age(rules.replacement).collect();
        let Ring { first, end, next, misses } = self.rings[number];
        let entries = &mut self.entries[first as usize..end as usize];
        entries.rotate_left((next - first) as usize);
        if rules.replacement == Replacement::Lru {
            entries.sort_unstable_by_key(|entry| entry.used.max(self.used[usize::from(entry.numbers[0])]));
        }
        let at = batch.key_of_access();
        let address = |came: u16| match came.checked_sub(BEFORE + 1) {
            None => before[usize::from(came) - 1],
            Some(access) => at(access),
        };
        class.hold(entries.iter().map(|entry| address(entry.came)), rules.replacement);
        let missed = &self.missed[number][..misses as usize];
        let shifts = class.masks.0.map(|mask| rules.sizes.largest_of(mask));
        class.record_misses(missed.iter().map(|&access| at(access)), &shifts);
    }
}

impl Ring {
    /// The index after `at`.
    #[inline(always)]
    fn after(&self, at: u32) -> u32 {
        if at + 1 == self.end { self.first } else { at + 1 }
    }

    /// Advances to the least recently used entry. `used` is the last access to each page. Entries that have been used
    /// since they were sorted move to their place in the order.
    #[inline(always)]
    fn skip_used(&mut self, entries: &mut [Entry], used: &[u16; PAGE_NUMBERS]) {
        loop {
            let next = &mut entries[self.next as usize];
            let last = used[usize::from(next.numbers[0])];
            if last <= next.used {
                return;
            }
            next.used = last;
            self.sort_in(entries);
        }
    }

    /// Moves the next entry behind entries used before it.
    fn sort_in(&mut self, entries: &mut [Entry]) {
        let mut at = self.next;
        self.next = self.after(at);
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
