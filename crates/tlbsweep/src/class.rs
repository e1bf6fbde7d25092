//! Second TLBs that are nearly alike, while they see accesses. What they have in common sees these once.

use crate::bits::ones;
use crate::choice::{Choice, Key, Sizes};
use crate::group::GROUP;
use crate::lanes::Lane;
use crate::row::Row;
use crate::sets::{SetAssociative, use_or_replace};
use crate::{SEGMENTS, SIZES};

/// Ways of sets that can be seen together; lanes before sets of other ways are taken one by one.
const WAYS: usize = 4;

/// The pages of a set, the most recently used first.
type Pages = [Key; WAYS];

/// One of the second TLBs of a lane, for its assignments that have one size for each segment that is accessed.
struct Member {
    /// The place of its lane in its group.
    lane: usize,
    sets: SetAssociative,
}

impl Member {
    /// Its sets; without any if these have several states.
    #[inline(always)]
    fn pages(&mut self) -> &mut [Pages] {
        self.sets.plain().unwrap_or_default()
    }
}

/// A set as some members have it.
#[derive(Clone, Copy)]
struct State {
    pages: Pages,
    /// These members, a bit each.
    members: u64,
}

/// A set of several members: as some of them have it; states of others stand elsewhere. So it is a cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Set {
    first: State,
    /// The page that was accessed last, and the members that did, which is still to be seen: until another page is accessed, other
    /// members may come to this one, and for those that did so before it changes nothing.
    last: (Key, u64),
    /// How many pages of `first` count: less than all as long as members that differ behind them need not be told apart.
    depth: usize,
}

impl Set {
    /// Of `members`, which have the pages of one of them, or differ from it as told by way.
    fn new(members: u64, pages: Pages, differing: &[u64; WAYS]) -> Set {
        let depth = differing.iter().take_while(|&&differing| differing == 0).count();
        Set { depth, first: State { pages, members }, last: (Key::NONE, 0) }
    }

    /// If members use a page again that all have, and need not be told apart for that, they have used it.
    fn use_again(&mut self, page: Key, members: u64) -> bool {
        let pages = &mut self.first.pages[..self.depth];
        let Some(place) = pages.iter().position(|&other| other == page) else { return false };
        if place != 0 && members != self.first.members {
            return false;
        }
        pages[..=place].rotate_right(1);
        true
    }

    /// Members are told apart by all pages; `of` tells those that a member had at first.
    fn tell_apart(&mut self, others: &mut Vec<State>, mut of: impl FnMut(usize) -> Pages) {
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

    /// Members, which have been told apart, see an access to a page; `missed` is told which of them miss.
    #[inline(always)]
    fn touch(&mut self, others: &mut Vec<State>, page: Key, members: u64, mut missed: impl FnMut(u64)) {
        if self.first.members == members {
            // Others have none of these members.
            if !use_or_replace(&mut self.first.pages, page) {
                missed(members);
            }
        } else {
            self.touch_some(others, page, members, missed);
        }
    }

    /// The same where members have several states, or not all of a state see it.
    fn touch_some(&mut self, others: &mut Vec<State>, page: Key, members: u64, mut missed: impl FnMut(u64)) {
        for at in 0..=others.len() {
            let state = if at == 0 { &mut self.first } else { &mut others[at - 1] };
            let (seeing, before) = (state.members & members, *state);
            // The page that was used last is often used again, which changes nothing.
            if seeing == 0 || state.pages[0] == page {
                continue;
            }
            state.members = seeing;
            if !use_or_replace(&mut state.pages, page) {
                missed(seeing);
            }
            if before.members != seeing {
                others.push(State { members: before.members & !seeing, ..before });
            }
        }
        self.join(others);
    }

    /// States that are the same become one.
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
struct Counts {
    /// Of all members.
    common: [u64; SEGMENTS],
    /// Of each member besides.
    own: [[u64; GROUP]; SEGMENTS],
}

impl Counts {
    const NONE: Counts = Counts { common: [0; SEGMENTS], own: [[0; GROUP]; SEGMENTS] };

    /// Some of the members `all` missed.
    #[inline(always)]
    fn miss(&mut self, segment: usize, members: u64, all: u64) {
        if members == all {
            self.common[segment] += 1;
        } else {
            ones(members).for_each(|member| self.own[segment][member] += 1);
        }
    }

    /// Those of a member.
    fn of(&self, member: usize) -> [u64; SEGMENTS] {
        std::array::from_fn(|segment| self.common[segment] + self.own[segment][member])
    }
}

/// Second TLBs of lanes, which are the class's members, while they see together what the lanes missed.
pub struct Class {
    /// The lanes, a bit each, in their group.
    pub lanes: u64,
    members: Vec<Member>,
    /// For each lane of the group its members, a bit each.
    of: Vec<u64>,
    /// All members.
    all: u64,
    /// Log2 bytes of the pages that all have for the segment that misses most.
    shift: u32,
    sets: Vec<Set>,
    /// For each set other states; no member is in two.
    others: Vec<Vec<State>>,
    counts: Box<Counts>,
}

impl Class {
    /// Without lanes.
    pub fn new(shift: u32) -> Class {
        let counts = Box::new(Counts::NONE);
        Class {
            lanes: 0,
            members: Vec::new(),
            of: vec![0; GROUP],
            all: 0,
            shift,
            sets: Vec::new(),
            others: Vec::new(),
            counts,
        }
    }

    /// Takes what is behind a lane of a number, unless that cannot be seen together with others: then nothing is taken.
    pub fn take(&mut self, number: usize, lane: &mut Lane, row: &Row) {
        let first = self.members.len();
        let sizes = row.segments().map(|segment| lane.choice.0[segment].count_ones() as usize);
        let new = sizes.fold(1, usize::saturating_mul);
        if new > GROUP - first {
            return;
        }
        let fits = |sets: &mut SetAssociative| sets.splits(WAYS, |segment| row.accesses(segment));
        let Some(sets) = lane.behind.take_if(fits) else { return };
        match choices(lane, row).as_slice() {
            [_] => self.members.push(Member { lane: number, sets }),
            several => {
                self.members.extend(several.iter().map(|one| Member { lane: number, sets: sets.restricted(one) }))
            }
        }
        self.of[number] = (first..self.members.len()).fold(0, |all, member| all | 1 << member);
        (self.lanes, self.all) = (self.lanes | 1 << number, self.all | self.of[number]);
    }

    /// Gives lanes back what was taken from them.
    pub fn give_back(self, lanes: &mut [&mut Lane]) {
        let mut members = self.members.into_iter().peekable();
        while let Some(Member { lane: number, sets }) = members.next() {
            let mut parts = vec![sets];
            while let Some(member) = members.next_if(|member| member.lane == number) {
                parts.push(member.sets);
            }
            lanes[number].behind = SetAssociative::joined(parts, &lanes[number].choice);
        }
    }

    /// Whether each member has one size for each segment that is accessed.
    pub fn decided(&self, row: &Row) -> bool {
        let one = |member: &Member, segment: usize| member.sets.choice().0[segment].is_power_of_two();
        self.members.iter().all(|member| row.segments().all(|segment| one(member, segment)))
    }

    /// Finds out what members have in common.
    pub fn begin(&mut self) {
        let Class { members, sets, others, .. } = self;
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
        *self.counts = Counts::NONE;
    }

    /// Members see what lanes `missed` of a row: most of it at accesses to the segment `main`.
    pub fn see_missed(&mut self, missed: impl Iterator<Item = (Key, u64)>, main: usize, row: &Row, sizes: &Sizes) {
        let shifts = self.shifts(row, sizes);
        for (key, lanes) in missed {
            let segment = key.segment();
            if segment != main {
                for lane in ones(lanes) {
                    ones(self.of[lane]).for_each(|member| self.miss(key, shifts[segment][member], 1 << member));
                }
            } else if lanes == self.lanes {
                self.miss(key, self.shift, self.all);
            } else {
                self.miss(key, self.shift, ones(lanes).fold(0, |these, lane| these | self.of[lane]));
            }
        }
    }

    /// For each segment that is accessed log2 bytes of each member's pages.
    fn shifts(&self, row: &Row, sizes: &Sizes) -> [[u32; GROUP]; SEGMENTS] {
        let mut shifts = [[0; GROUP]; SEGMENTS];
        for segment in row.segments() {
            for (shift, member) in shifts[segment].iter_mut().zip(&self.members) {
                *shift = sizes.smallest_of(member.sets.choice().0[segment]);
            }
        }
        shifts
    }

    /// Lanes of members missed an access, to whose page of `1 << shift` bytes these come therefore.
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

    /// A set sees an access of members to a page.
    #[inline(always)]
    fn touch(&mut self, number: usize, (page, these): (Key, u64)) {
        let Class { members, sets, others, counts, all, .. } = self;
        let (set, others) = (&mut sets[number], &mut others[number]);
        if set.depth != WAYS && these != 0 && !set.use_again(page, these) {
            set.tell_apart(others, |member| members[member].pages()[number]);
        }
        if set.depth == WAYS {
            set.touch(others, page, these, |missing| counts.miss(page.segment(), missing, *all));
        }
    }

    /// The members take over what they hold now, and what they missed.
    pub fn settle(&mut self) {
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

/// A lane's assignments, by what they have for segments that are accessed.
fn choices(lane: &Lane, row: &Row) -> Vec<Choice> {
    let mut choices = vec![lane.choice];
    for segment in row.segments() {
        let sizes = (0..SIZES).map(|size| 1 << size).filter(|size| lane.choice.0[segment] & size != 0);
        let with = |size: u8| choices.iter().map(move |choice| choice.with(segment, size));
        choices = sizes.flat_map(with).collect();
    }
    choices
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SEGMENTS_USED: usize = 3;

    /// An access to one of few pages, and which lanes miss it.
    fn miss() -> impl Strategy<Value = (Key, u64)> {
        let main = (0u64..40).prop_map(|page| Key::new(0, page << 16));
        let other = (1..SEGMENTS_USED, 0u64..12).prop_map(|(segment, page)| Key::new(segment, page << 14));
        let lanes = prop_oneof![Just(u64::MAX), any::<u64>(), (0..10u32).prop_map(|lane| 1 << lane)];
        (prop_oneof![3 => main, 1 => other], lanes)
    }

    /// A lane with these sizes for its segments; what is behind it has seen all or, for one that differs, half of some accesses.
    fn lane(masks: [u8; SEGMENTS_USED], sizes: Sizes, log_sets: u32, before: &[(Key, u64)], differs: bool) -> Lane {
        let choice =
            masks.iter().enumerate().fold(Choice::all(SEGMENTS_USED, 3, &[]), |all, (at, &mask)| all.with(at, mask));
        let mut sets = SetAssociative::new(1 << log_sets, WAYS, SEGMENTS_USED, choice, sizes);
        for (key, _) in before.iter().step_by(1 + usize::from(differs)) {
            sets.touch(*key, choice.0[key.segment()], |_, _| ());
        }
        Lane::new(choice, 1, Some(sets))
    }

    /// The misses behind a lane of each of its assignments.
    fn misses(lane: &Lane) -> Vec<[u64; SEGMENTS]> {
        let all = (0..27).map(|n| Choice::one(&[n % 3, n / 3 % 3, n / 9]));
        let mine = all.filter(|one| (0..SEGMENTS_USED).all(|at| lane.choice.0[at] & one.0[at] != 0));
        mine.map(|one| lane.behind.as_ref().map_or([0; SEGMENTS], |sets| sets.misses(&lane.choice.and(&one)))).collect()
    }

    proptest! {
        #[test]
        fn what_lanes_see_together_is_what_each_sees(
            of in prop::collection::vec((1u8..8, 1u8..8, any::<bool>()), 1..10),
            main in 0u32..3,
            log_sets in 0u32..4,
            before in prop::collection::vec(miss(), 0..80),
            rows in prop::collection::vec(prop::collection::vec(miss(), 1..120), 1..5),
            after in prop::collection::vec(miss(), 0..80),
        ) {
            let sizes = Sizes::new(&[1 << 12, 1 << 16, 1 << 21]).expect("sizes");
            let build = |&(one, other, differs): &(u8, u8, bool)| lane([1 << main, one, other], sizes, log_sets, &before, differs);
            let (mut alone, mut lanes): (Vec<Lane>, Vec<Lane>) = (of.iter().map(build).collect(), of.iter().map(build).collect());
            let mut lanes: Vec<&mut Lane> = lanes.iter_mut().collect();
            let mut row = Row::new(&sizes);
            (0..SEGMENTS_USED).for_each(|segment| _ = row.push(Key::new(segment, 0)));
            row.number(&sizes);

            let mut class = Class::new(sizes.shift(main as usize));
            (0..lanes.len()).for_each(|number| class.take(number, lanes[number], &row));
            prop_assert!(class.decided(&row));
            class.begin();
            let taken = class.lanes;
            for missed in &rows {
                let seen = missed.iter().map(|&(key, lanes)| (key, lanes & taken)).filter(|&(_, lanes)| lanes != 0);
                class.see_missed(seen, 0, &row, &sizes);
                class.settle();
                class.begin();
            }
            class.give_back(&mut lanes);
            for (number, alone) in alone.iter_mut().enumerate() {
                let (choice, sets) = (alone.choice, alone.behind.as_mut().expect("behind"));
                for (key, _) in rows.iter().flatten().filter(|(_, lanes)| lanes & taken & 1 << number != 0) {
                    sets.touch(*key, choice.0[key.segment()], |_, _| ());
                }
                prop_assert_eq!(misses(lanes[number]), misses(alone));
                for lane in [&mut *alone, &mut *lanes[number]] {
                    for (key, _) in &after {
                        lane.behind.as_mut().expect("behind").touch(*key, choice.0[key.segment()], |_, _| ());
                    }
                }
                prop_assert_eq!(misses(lanes[number]), misses(alone));
            }
        }
    }
}
