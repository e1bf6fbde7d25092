//! Lanes that one of the host's processors takes through rows of accesses. Hands have nothing to do with each other.

use std::cell::RefCell;
use std::cmp::Reverse;

use crate::SEGMENTS;
use crate::alike::Alike;
use crate::group::{GROUP, Group, Missed, Progress, Rules};
use crate::lanes::Lane;
use crate::limit::Limit;
use crate::queue::Queues;
use crate::row::Row;

thread_local! {
    static ROOM: RefCell<(Group, Queues)> = RefCell::default();
}

/// Lanes that miss less than one of so many times of what another one does take little.
const SELDOM: u64 = 8;
/// A part of less than one of so many of a share is small.
const SMALL: u64 = 6;
/// What seeing accesses takes for a lane, beside what its misses do: one of so many times of these, for the lane that misses most.
const SEEING: u64 = 4;

/// Lanes, each with its place among all lanes; those that were split off meanwhile have none yet.
#[derive(Default)]
pub struct Hand {
    lanes: Vec<(Option<usize>, Lane)>,
    /// Lanes that were given up.
    given_up: Vec<Lane>,
    /// Groups of lanes that are seen in queues, by their places here, and what of each group is alike.
    groups: Vec<(Vec<usize>, Alike)>,
}

impl Hand {
    /// Deals lanes out to so many hands, which have as much to do if lanes go on missing as often as they did.
    pub fn dealt(lanes: Vec<Lane>, hands: usize) -> Vec<Hand> {
        let misses = |lane: &Lane| lane.misses.iter().sum::<u64>();
        let most = lanes.iter().map(misses).max().unwrap_or(0);
        let main = Hand::main_segment(&lanes);
        let mut lanes: Vec<(Option<usize>, Lane)> = (0..).map(Some).zip(lanes).collect();
        lanes.sort_by_cached_key(|(_, lane)| Reverse(misses(lane)));
        let often = |lane: &Lane| lane.behind.is_some() && misses(lane) > most / SELDOM;
        let (mut kin, others): (Vec<_>, Vec<_>) = lanes.into_iter().partition(|(_, lane)| often(lane));
        // Lanes that may be alike behind stay together.
        kin.sort_by_key(|(_, lane)| lane.choice.0[main]);
        let cost = |lane: &Lane| misses(lane) + most / SEEING;
        let shares = shares(&kin, hands, |(_, lane)| cost(lane), |(_, lane)| lane.choice.0[main]);
        let mut dealt: Vec<(u64, Hand)> = std::iter::repeat_with(Default::default).take(hands).collect();
        for (lane, share) in kin.into_iter().zip(shares) {
            dealt[share].1.lanes.push(lane);
        }
        for (place, lane) in others {
            let Some((sum, hand)) = dealt.iter_mut().min_by_key(|(sum, hand)| (*sum, hand.lanes.len())) else { break };
            *sum += misses(&lane);
            hand.lanes.push((place, lane));
        }
        dealt.into_iter().map(|(_, hand)| hand).collect()
    }

    /// The segment that lanes missed most.
    fn main_segment(lanes: &[Lane]) -> usize {
        let misses = |segment: &usize| lanes.iter().map(|lane| lane.misses[*segment]).sum::<u64>();
        (0..SEGMENTS).max_by_key(misses).unwrap_or(0)
    }

    /// All lanes of hands as they were before [`Hand::dealt`], then those that were split off, in the order of their choices; and
    /// those that were given up.
    pub fn gathered(hands: Vec<Hand>) -> (Vec<Lane>, Vec<Lane>) {
        let (mut lanes, mut given_up) = (Vec::new(), Vec::new());
        for hand in hands {
            lanes.extend(hand.lanes);
            given_up.extend(hand.given_up);
        }
        lanes.sort_by_key(|(place, lane): &(Option<usize>, Lane)| (place.unwrap_or(usize::MAX), lane.choice.0));
        (lanes.into_iter().map(|(_, lane)| lane).collect(), given_up)
    }

    /// Each lane sees all accesses of rows in their order. When there are more than all hands together may have in the end, those
    /// that cost most are given up between two rows.
    pub fn see(&mut self, rows: &[Row], rules: &Rules, limit: &Limit) -> Missed {
        let mut missed = Missed::default();
        for row in rows {
            missed = missed.then(self.see_row(row, rules));
            if limit.exceeded(self.lanes.len()) {
                self.settle();
                let gone = limit.give_up(&mut self.lanes, |(_, lane)| lane);
                self.given_up.extend(gone.into_iter().map(|(_, lane)| lane));
            }
        }
        self.settle();
        missed
    }

    /// What is known of lanes together is handed over to each.
    fn settle(&mut self) {
        for (places, mut alike) in self.groups.drain(..) {
            let mut lanes: Vec<Option<&mut Lane>> = self.lanes.iter_mut().map(|(_, lane)| Some(lane)).collect();
            let mut group: Vec<&mut Lane> = places.iter().filter_map(|&place| lanes[place].take()).collect();
            alike.settle(&mut group);
        }
    }

    fn see_row(&mut self, row: &Row, rules: &Rules) -> Missed {
        let end = row.keys().len();
        let (mut seen, mut missed) = (vec![0; self.lanes.len()], Missed::default());
        while seen.iter().any(|&seen| seen != end) {
            missed = missed.then(self.see_until_split(&mut seen, row, rules));
            for lane in 0..seen.len() {
                let Some(&key) = row.keys().get(seen[lane]) else { continue };
                let waiting = &mut self.lanes[lane].1;
                let missing = waiting.missing(key, rules.sizes, rules.served);
                if missing != 0 && missing != waiting.choice.0[key.segment()] {
                    let other = waiting.split_off(key.segment(), missing);
                    self.lanes.push((None, other));
                    seen.push(seen[lane]);
                }
            }
        }
        missed
    }

    /// Each lane sees more accesses than the `seen` it has seen, until it has seen all or a lane is to be split.
    fn see_until_split(&mut self, seen: &mut [usize], row: &Row, rules: &Rules) -> Missed {
        let waiting = (0..seen.len()).filter(|&place| seen[place] != row.keys().len());
        let (queued, others): (Vec<usize>, Vec<usize>) =
            waiting.partition(|&place| Queues::fits(&self.lanes[place].1, row, rules));
        let (queued, others) = (groups(queued, seen), groups(others, seen));
        if !self.groups.iter().map(|(places, _)| places).eq(&queued) {
            self.settle();
            self.groups.extend(queued.into_iter().map(|places| (places, Alike::default())));
        }
        let lanes = self.lanes.iter_mut().map(|(_, lane)| lane);
        let mut lanes: Vec<Option<Progress>> = lanes.zip(seen).map(Some).collect();
        let mut group =
            |places: &[usize]| places.iter().filter_map(|&place| lanes[place].take()).collect::<Vec<Progress>>();
        ROOM.with_borrow_mut(|(room, queues)| {
            let mut missed = Missed::default();
            for (places, alike) in &mut self.groups {
                missed = missed.beside(queues.see(&mut group(places), alike, row, rules));
            }
            others.iter().fold(missed, |missed, places| missed.beside(room.see(&mut group(places), row, rules)))
        })
    }
}

/// In which of several shares of about the same `cost` each item is. Of items of one kind, which stand together, a small part is not
/// cut off.
fn shares<T>(items: &[T], shares: usize, cost: impl Fn(&T) -> u64, kind: impl Fn(&T) -> u8) -> Vec<usize> {
    let all: u64 = items.iter().map(&cost).sum();
    let share = |at: u64| ((at * shares as u64 / all.max(1)) as usize).min(shares - 1);
    let (mut before, mut of) = (0, Vec::new());
    for kin in items.chunk_by(|one, other| kind(one) == kind(other)) {
        let small = all / (shares as u64 * SMALL);
        let end = before + kin.iter().map(&cost).sum::<u64>();
        let (first, last) = (share(before + small), share(end.saturating_sub(small)));
        for item in kin {
            of.push(share(before + cost(item) / 2).clamp(first, last.max(first)));
            before += cost(item);
        }
    }
    of
}

/// Groups of lanes that have seen as many accesses.
fn groups(mut places: Vec<usize>, seen: &[usize]) -> Vec<Vec<usize>> {
    places.sort_by_key(|&place| seen[place]);
    let as_far = places.chunk_by(|&one, &other| seen[one] == seen[other]);
    as_far.flat_map(|places| places.chunks(GROUP)).map(<[usize]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(items: &[(u64, u8)], hands: usize) -> Vec<usize> {
        shares(items, hands, |item| item.0, |item| item.1)
    }

    #[test]
    fn a_small_part_of_a_kind_is_not_cut_off_and_a_large_one_is() {
        let kinds = |lengths: [usize; 3]| -> Vec<(u64, u8)> {
            (0..3u8).flat_map(|kind| vec![(10, kind); lengths[usize::from(kind)]]).collect()
        };
        assert_eq!(of(&kinds([24, 25, 46]), 2), [vec![0; 49], vec![1; 46]].concat());
        assert_eq!(of(&kinds([24, 30, 26]), 2), [vec![0; 40], vec![1; 40]].concat());
    }

    proptest! {
        #[test]
        fn shares_take_about_as_long(items in prop::collection::vec((1u64..100, 0u8..4), 0..200), hands in 1usize..5) {
            let mut items = items;
            items.sort_by_key(|item| item.1);
            let found = of(&items, hands);
            prop_assert_eq!(found.len(), items.len());
            prop_assert!(found.is_sorted() && found.iter().all(|&share| share < hands));
            let all: u64 = items.iter().map(|item| item.0).sum();
            for share in 0..hands {
                let sum: u64 = items.iter().zip(&found).filter(|(_, of)| **of == share).map(|(item, _)| item.0).sum();
                prop_assert!(sum <= all / hands as u64 * (SMALL + 2) / SMALL + 200, "{} of {}", sum, all);
            }
        }
    }
}
