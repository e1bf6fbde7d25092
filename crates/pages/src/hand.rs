//! Lanes that one of the host's processors takes through rows of accesses. Hands have nothing to do with each other.

use std::cell::RefCell;

use crate::group::{GROUP, Group, Missed, Progress, Rules};
use crate::lanes::Lane;
use crate::limit::Limit;
use crate::queue::Queues;
use crate::row::Row;

thread_local! {
    static ROOM: RefCell<(Group, Queues)> = RefCell::default();
}

/// Lanes, each with its place among all lanes; those that were split off meanwhile have none yet.
#[derive(Default)]
pub struct Hand {
    lanes: Vec<(Option<usize>, Lane)>,
    /// How often they missed so far.
    misses: u64,
    /// Lanes that were given up.
    given_up: Vec<Lane>,
}

impl Hand {
    /// Deals lanes out to so many hands, which have as much to do if lanes go on missing as often as they did.
    pub fn dealt(lanes: Vec<Lane>, hands: usize) -> Vec<Hand> {
        let misses = |lane: &Lane| lane.misses.iter().sum::<u64>();
        let mut lanes: Vec<(usize, Lane)> = lanes.into_iter().enumerate().collect();
        lanes.sort_by_cached_key(|(_, lane)| std::cmp::Reverse(misses(lane)));
        let mut hands: Vec<Hand> = std::iter::repeat_with(Hand::default).take(hands).collect();
        for (place, lane) in lanes {
            let Some(hand) = hands.iter_mut().min_by_key(|hand| (hand.misses, hand.lanes.len())) else { break };
            hand.misses += misses(&lane);
            hand.lanes.push((Some(place), lane));
        }
        hands
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
                let gone = limit.give_up(&mut self.lanes, |(_, lane)| lane);
                self.given_up.extend(gone.into_iter().map(|(_, lane)| lane));
            }
        }
        missed
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
        let end = row.keys().len();
        let lanes = self.lanes.iter_mut().map(|(_, lane)| lane).zip(seen);
        let waiting = lanes.filter(|(_, seen)| **seen != end);
        let (mut queued, mut others): (Vec<Progress>, Vec<Progress>) =
            waiting.partition(|(lane, _)| Queues::fits(lane, row, rules));
        ROOM.with_borrow_mut(|(group, queues)| {
            let queued = groups(&mut queued).map(|lanes| queues.see(lanes, row, rules));
            let others = groups(&mut others).map(|lanes| group.see(lanes, row, rules));
            queued.chain(others).fold(Missed::default(), Missed::beside)
        })
    }
}

/// Groups of lanes that have seen as many accesses.
fn groups<'a, 'b>(lanes: &'a mut [Progress<'b>]) -> impl Iterator<Item = &'a mut [Progress<'b>]> {
    lanes.sort_by_key(|(_, seen)| **seen);
    lanes.chunk_by_mut(|one, other| one.1 == other.1).flat_map(|lanes| lanes.chunks_mut(GROUP))
}
