//! One second-level TLB that stands for nearly identical ones of several classes. What they have in common processes
//! each access once.

use crate::bit_matrix::ones;
use crate::bulk::batch::Batch;
use crate::bulk::group::GROUP_SIZE;
use crate::class::Class;
use crate::set_associative::{SetAssociative, access_lru};
use crate::size_masks::{Key, PageSizes, SizeMasks};
use crate::{SEGMENTS, SIZES};

/// Ways of TLBs that can be shared; others are simulated separately.
const WAYS: usize = 4;

/// The pages of a set, most recently used first.
type Pages = [Key; WAYS];

/// The second-level TLB of a class, or of those of its assignments that have one size for each segment accessed.
struct Member {
    /// Index of the class in its group.
    class: usize,
    sets: SetAssociative,
}

impl Member {
    /// The member's sets; empty if any set has several states.
    #[inline(always)]
    fn pages(&mut self) -> &mut [Pages] {
        self.sets.single_state_sets().unwrap_or_default()
    }
}

/// The contents of a set in some members.
#[derive(Clone, Copy)]
struct State {
    pages: Pages,
    /// Bit mask of these members.
    members: u64,
}

/// A set of all members: the state of some of them; other states are stored separately. It fills one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Set {
    first: State,
    /// The page accessed last and the members that accessed it, not processed yet. Until another page is accessed,
    /// further members may access this page, and a repeated access changes nothing.
    last: (Key, u64),
    /// How many pages of `first` are valid for all members. Members may differ in the others, and need not be
    /// distinguished until those matter.
    depth: usize,
}

impl Set {
    /// A set of `members`. `pages` are those of one member; `differing` has, for each way, the bits in which others
    /// differ.
    fn new(members: u64, pages: Pages, differing: &[u64; WAYS]) -> Set {
        let depth = differing.iter().take_while(|&&differing| differing == 0).count();
        Set { depth, first: State { pages, members }, last: (Key::NONE, 0) }
    }

    /// Makes a page that all members hold the most recently used. Returns `false` if members must be distinguished
    /// first.
    fn promote(&mut self, page: Key, members: u64) -> bool {
        let pages = &mut self.first.pages[..self.depth];
        let Some(place) = pages.iter().position(|&other| other == page) else { return false };
        if place != 0 && members != self.first.members {
            return false;
        }
        pages[..=place].rotate_right(1);
        true
    }

    /// Gives each distinct member its own state; `of` returns the pages that a member had at the start.
    fn distinguish(&mut self, others: &mut Vec<State>, mut of: impl FnMut(usize) -> Pages) {
        let (depth, first) = (std::mem::replace(&mut self.depth, WAYS), self.first);
        for member in ones(first.members) {
            let mut pages = of(member);
            pages[..depth].copy_from_slice(&first.pages[..depth]);
            others.push(State { pages, members: 1 << member });
        }
        if let Some(one) = others.pop() {
            self.first = one;
        }
        self.join(others);
    }

    /// Processes an access of members, which have been distinguished; `missed` gets the mask of the members that miss.
    #[inline(always)]
    fn touch(&mut self, others: &mut Vec<State>, page: Key, members: u64, mut missed: impl FnMut(u64)) {
        if self.first.members == members {
            // No other state has any of these members.
            if !access_lru(&mut self.first.pages, page) {
                missed(members);
            }
        } else {
            self.touch_some(others, page, members, missed);
        }
    }

    /// The same when members have several states, or when not all members of a state access the page.
    fn touch_some(&mut self, others: &mut Vec<State>, page: Key, members: u64, mut missed: impl FnMut(u64)) {
        for at in 0..=others.len() {
            let state = if at == 0 { &mut self.first } else { &mut others[at - 1] };
            let (seeing, before) = (state.members & members, *state);
            // The most recently used page is often accessed again, which changes nothing.
            if seeing == 0 || state.pages[0] == page {
                continue;
            }
            state.members = seeing;
            if !access_lru(&mut state.pages, page) {
                missed(seeing);
            }
            if before.members != seeing {
                others.push(State { members: before.members & !seeing, ..before });
            }
        }
        self.join(others);
    }

    /// Merges equal states.
    fn join(&mut self, others: &mut Vec<State>) {
        let mut at = 0;
        while at < others.len() {
            let State { pages, members } = others[at];
            let mut before = std::iter::once(&mut self.first).chain(&mut others[..at]);
            match before.find(|state| state.pages == pages) {
                Some(same) => {
                    same.members |= members;
                    others.swap_remove(at);
                }
                None => at += 1,
            }
        }
    }
}

/// Misses by segment.
struct MissCounts {
    /// Misses of all members.
    common: [u64; SEGMENTS],
    /// Additional misses of each member.
    own: [[u64; GROUP_SIZE]; SEGMENTS],
}

impl MissCounts {
    const NONE: MissCounts = MissCounts { common: [0; SEGMENTS], own: [[0; GROUP_SIZE]; SEGMENTS] };

    /// Counts a miss of `members`; `all` are all members.
    #[inline(always)]
    fn miss(&mut self, segment: usize, members: u64, all: u64) {
        if members == all {
            self.common[segment] += 1;
        } else {
            ones(members).for_each(|member| self.own[segment][member] += 1);
        }
    }

    /// The misses of a member.
    fn of(&self, member: usize) -> [u64; SEGMENTS] {
        std::array::from_fn(|segment| self.common[segment] + self.own[segment][member])
    }
}

/// The second-level TLBs of several classes, the members, while they process together what the classes missed.
pub struct SharedL2Tlb {
    /// Bit mask of the classes in their group.
    pub classes: u64,
    members: Vec<Member>,
    /// For each class of the group, the bit mask of its members.
    of: Vec<u64>,
    /// Bit mask of all members.
    all: u64,
    /// Log2 bytes of the pages that all members have for the segment that misses most.
    shift: u32,
    sets: Vec<Set>,
    /// For each set, further states; all states are disjoint.
    others: Vec<Vec<State>>,
    counts: Box<MissCounts>,
}

impl SharedL2Tlb {
    /// Creates a TLB without classes.
    pub fn new(shift: u32) -> SharedL2Tlb {
        let counts = Box::new(MissCounts::NONE);
        SharedL2Tlb {
            classes: 0,
            members: Vec::new(),
            of: vec![0; GROUP_SIZE],
            all: 0,
            shift,
            sets: Vec::new(),
            others: Vec::new(),
            counts,
        }
    }

    /// Takes the second-level TLB of a class. Takes nothing if it cannot be shared.
    pub fn add(&mut self, number: usize, class: &mut Class, batch: &Batch) {
        let first = self.members.len();
        let sizes = batch.segments().map(|segment| class.masks.0[segment].count_ones() as usize);
        let new = sizes.fold(1, usize::saturating_mul);
        if new > GROUP_SIZE - first {
            return;
        }
        let fits = |sets: &mut SetAssociative| sets.can_share(WAYS, |segment| batch.accesses(segment));
        let Some(sets) = class.l2.take_if(fits) else { return };
        match split_by_size(class, batch).as_slice() {
            [_] => self.members.push(Member { class: number, sets }),
            several => {
                self.members.extend(several.iter().map(|one| Member { class: number, sets: sets.restricted(one) }))
            }
        }
        self.of[number] = (first..self.members.len()).fold(0, |all, member| all | 1 << member);
        (self.classes, self.all) = (self.classes | 1 << number, self.all | self.of[number]);
    }

    /// Returns the second-level TLBs to their classes.
    pub fn release(self, classes: &mut [&mut Class]) {
        let mut members = self.members.into_iter().peekable();
        while let Some(Member { class: number, sets }) = members.next() {
            let mut parts = vec![sets];
            while let Some(member) = members.next_if(|member| member.class == number) {
                parts.push(member.sets);
            }
            classes[number].l2 = SetAssociative::merged(parts, &classes[number].masks);
        }
    }

    /// Returns whether each member has one size for each segment accessed.
    pub fn decided(&self, batch: &Batch) -> bool {
        let one = |member: &Member, segment: usize| member.sets.masks().0[segment].is_power_of_two();
        self.members.iter().all(|member| batch.segments().all(|segment| one(member, segment)))
    }

    /// Finds out what members have in common.
    pub fn begin(&mut self) {
        let SharedL2Tlb { members, sets, others, .. } = self;
        let first = members.first_mut().map(|member| member.pages().to_vec()).unwrap_or_default();
        let mut differing = vec![[0; WAYS]; first.len()];
        for member in members {
            for ((differing, mine), first) in differing.iter_mut().zip(member.pages()).zip(&first) {
                (0..WAYS).for_each(|way| differing[way] |= mine[way].differing(first[way]));
            }
        }
        sets.clear();
        sets.extend(first.iter().zip(&differing).map(|(&pages, differing)| Set::new(self.all, pages, differing)));
        others.iter_mut().for_each(Vec::clear);
        others.resize(first.len(), Vec::new());
        *self.counts = MissCounts::NONE;
    }

    /// Processes the accesses that classes missed in a batch, most of which are to the segment `main`.
    pub fn access_missed(
        &mut self,
        missed: impl Iterator<Item = (Key, u64)>,
        main: usize,
        batch: &Batch,
        sizes: &PageSizes,
    ) {
        let shifts = self.shifts(batch, sizes);
        for (key, classes) in missed {
            let segment = key.segment();
            if segment != main {
                for class in ones(classes) {
                    ones(self.of[class]).for_each(|member| self.miss(key, shifts[segment][member], 1 << member));
                }
            } else if classes == self.classes {
                self.miss(key, self.shift, self.all);
            } else {
                self.miss(key, self.shift, ones(classes).fold(0, |these, class| these | self.of[class]));
            }
        }
    }

    /// For each segment accessed, log2 bytes of each member's pages.
    fn shifts(&self, batch: &Batch, sizes: &PageSizes) -> [[u32; GROUP_SIZE]; SEGMENTS] {
        let mut shifts = [[0; GROUP_SIZE]; SEGMENTS];
        for segment in batch.segments() {
            for (shift, member) in shifts[segment].iter_mut().zip(&self.members) {
                *shift = sizes.smallest_of(member.sets.masks().0[segment]);
            }
        }
        shifts
    }

    /// Members `these` access the page of `1 << shift` bytes around `key`, because their classes missed it.
    #[inline(always)]
    fn miss(&mut self, key: Key, shift: u32, these: u64) {
        let page = key.page(shift);
        let (number, page) = (page as usize & (self.sets.len() - 1), Key::from_page(page, shift));
        let last = &mut self.sets[number].last;
        if last.0 == page {
            last.1 |= these;
            return;
        }
        let before = std::mem::replace(last, (page, these));
        self.touch(number, before);
    }

    /// Processes members' access to a page in a set.
    #[inline(always)]
    fn touch(&mut self, number: usize, (page, these): (Key, u64)) {
        let SharedL2Tlb { members, sets, others, counts, all, .. } = self;
        let (set, others) = (&mut sets[number], &mut others[number]);
        if set.depth != WAYS && these != 0 && !set.promote(page, these) {
            set.distinguish(others, |member| members[member].pages()[number]);
        }
        if set.depth == WAYS {
            set.touch(others, page, these, |missing| counts.miss(page.segment(), missing, *all));
        }
    }

    /// Writes back to the members what they hold now and what they missed.
    pub fn write_back(&mut self) {
        for number in 0..self.sets.len() {
            let last = self.sets[number].last;
            self.touch(number, last);
        }
        let kept = |set: &Set| std::array::from_fn(|way| if way < set.depth { 0 } else { u64::MAX });
        let common: Vec<(Pages, [u64; WAYS])> = self.sets.iter().map(|set| (set.first.pages, kept(set))).collect();
        for (number, member) in self.members.iter_mut().enumerate() {
            member.sets.add_misses(&self.counts.of(number));
            for (mine, (common, kept)) in member.pages().iter_mut().zip(&common) {
                (0..WAYS).for_each(|way| mine[way] = mine[way].where_set(kept[way], common[way]));
            }
        }
        for (number, others) in self.others.iter().enumerate() {
            for (state, member) in others.iter().flat_map(|state| ones(state.members).map(move |one| (state, one))) {
                self.members[member].pages()[number] = state.pages;
            }
        }
    }
}

/// Splits a class's assignments by their sizes for the segments accessed.
fn split_by_size(class: &Class, batch: &Batch) -> Vec<SizeMasks> {
    let mut split_by_size = vec![class.masks];
    for segment in batch.segments() {
        let sizes = (0..SIZES).map(|size| 1 << size).filter(|size| class.masks.0[segment] & size != 0);
        let with = |size: u8| split_by_size.iter().map(move |masks| masks.with(segment, size));
        split_by_size = sizes.flat_map(with).collect();
    }
    split_by_size
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SEGMENTS_USED: usize = 3;

    /// An access to one of a few pages, and the classes that miss it.
    fn miss() -> impl Strategy<Value = (Key, u64)> {
        let main = (0u64..40).prop_map(|page| Key::new(0, page << 16));
        let other = (1..SEGMENTS_USED, 0u64..12).prop_map(|(segment, page)| Key::new(segment, page << 14));
        let classes = prop_oneof![Just(u64::MAX), any::<u64>(), (0..10u32).prop_map(|class| 1 << class)];
        (prop_oneof![3 => main, 1 => other], classes)
    }

    /// A class with these sizes. Its second-level TLB has processed all or, if it `differs`, half of some accesses.
    fn class(
        masks: [u8; SEGMENTS_USED],
        sizes: PageSizes,
        log_sets: u32,
        before: &[(Key, u64)],
        differs: bool,
    ) -> Class {
        let masks =
            masks.iter().enumerate().fold(SizeMasks::all(SEGMENTS_USED, 3, &[]), |all, (at, &mask)| all.with(at, mask));
        let mut sets = SetAssociative::new(1 << log_sets, WAYS, SEGMENTS_USED, masks, sizes);
        for (key, _) in before.iter().step_by(1 + usize::from(differs)) {
            sets.touch(*key, masks.0[key.segment()], |_, _| ());
        }
        Class::new(masks, 1, Some(sets))
    }

    /// Second-level misses of each assignment of a class.
    fn misses(class: &Class) -> Vec<[u64; SEGMENTS]> {
        let all = (0..27).map(|n| SizeMasks::one(&[n % 3, n / 3 % 3, n / 9]));
        let mine = all.filter(|one| (0..SEGMENTS_USED).all(|at| class.masks.0[at] & one.0[at] != 0));
        mine.map(|one| class.l2.as_ref().map_or([0; SEGMENTS], |sets| sets.misses(&class.masks.and(&one)))).collect()
    }

    proptest! {
        #[test]
        fn shared_tlbs_count_what_separate_ones_count(
            of in prop::collection::vec((1u8..8, 1u8..8, any::<bool>()), 1..10),
            main in 0u32..3,
            log_sets in 0u32..4,
            before in prop::collection::vec(miss(), 0..80),
            batches in prop::collection::vec(prop::collection::vec(miss(), 1..120), 1..5),
            after in prop::collection::vec(miss(), 0..80),
        ) {
            let sizes = PageSizes::new(&[1 << 12, 1 << 16, 1 << 21]).expect("sizes");
            let build = |&(one, other, differs): &(u8, u8, bool)| class([1 << main, one, other], sizes, log_sets, &before, differs);
            let (mut alone, mut classes): (Vec<Class>, Vec<Class>) = (of.iter().map(build).collect(), of.iter().map(build).collect());
            let mut classes: Vec<&mut Class> = classes.iter_mut().collect();
            let mut batch = Batch::new(&sizes);
            (0..SEGMENTS_USED).for_each(|segment| _ = batch.push(Key::new(segment, 0)));
            batch.number(&sizes);

            let mut shared = SharedL2Tlb::new(sizes.shift(main as usize));
            (0..classes.len()).for_each(|number| shared.add(number, classes[number], &batch));
            prop_assert!(shared.decided(&batch));
            shared.begin();
            let taken = shared.classes;
            for missed in &batches {
                let seen = missed.iter().map(|&(key, classes)| (key, classes & taken)).filter(|&(_, classes)| classes != 0);
                shared.access_missed(seen, 0, &batch, &sizes);
                shared.write_back();
                shared.begin();
            }
            shared.release(&mut classes);
            for (number, alone) in alone.iter_mut().enumerate() {
                let (masks, sets) = (alone.masks, alone.l2.as_mut().expect("l2"));
                for (key, _) in batches.iter().flatten().filter(|(_, classes)| classes & taken & 1 << number != 0) {
                    sets.touch(*key, masks.0[key.segment()], |_, _| ());
                }
                prop_assert_eq!(misses(classes[number]), misses(alone));
                for class in [&mut *alone, &mut *classes[number]] {
                    for (key, _) in &after {
                        class.l2.as_mut().expect("l2").touch(*key, masks.0[key.segment()], |_, _| ());
                    }
                }
                prop_assert_eq!(misses(classes[number]), misses(alone));
            }
        }
    }
}
