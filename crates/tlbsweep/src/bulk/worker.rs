//! A worker: the classes that one host processor takes through batches of accesses. Workers are independent.

use std::cell::RefCell;
use std::cmp::Reverse;

use crate::SEGMENTS;
use crate::budget::Budget;
use crate::bulk::batch::Batch;
use crate::bulk::fifo_group::FifoGroup;
use crate::bulk::group::{GROUP_SIZE, Group, Missed, Progress, Rules};
use crate::bulk::sharing::Sharing;
use crate::class::Class;

thread_local! {
    static SCRATCH: RefCell<(Group, FifoGroup)> = RefCell::default();
}

/// Classes with less than one in this many of the misses of the class that misses most are cheap.
const RARE: u64 = 8;
/// Less than one in this many parts of a share is small.
const SMALL_PART: u64 = 6;
/// Cost of processing accesses apart from misses: one in this many of the misses of the class that misses most.
const ACCESS_COST: u64 = 4;

/// Classes with their index among all classes; classes split off meanwhile have none yet.
#[derive(Default)]
pub struct Worker {
    classes: Vec<(Option<usize>, Class)>,
    /// Classes that were dropped.
    dropped: Vec<Class>,
    /// Groups that are simulated as FIFO queues: indices of their classes, and what they share.
    groups: Vec<(Vec<usize>, Sharing)>,
}

impl Worker {
    /// Distributes classes to workers so that all have the same amount of work, if misses continue at their rates.
    pub fn distribute(classes: Vec<Class>, workers: usize) -> Vec<Worker> {
        let misses = |class: &Class| class.misses.iter().sum::<u64>();
        let most = classes.iter().map(misses).max().unwrap_or(0);
        let main = Worker::main_segment(&classes);
        let mut classes: Vec<(Option<usize>, Class)> = (0..).map(Some).zip(classes).collect();
        classes.sort_by_cached_key(|(_, class)| Reverse(misses(class)));
        let often = |class: &Class| class.l2.is_some() && misses(class) > most / RARE;
        let (mut related, others): (Vec<_>, Vec<_>) = classes.into_iter().partition(|(_, class)| often(class));
        // Classes that may share a second-level TLB stay together.
        related.sort_by_key(|(_, class)| class.masks.0[main]);
        let cost = |class: &Class| misses(class) + most / ACCESS_COST;
        let shares = balance(&related, workers, |(_, class)| cost(class), |(_, class)| class.masks.0[main]);
        let mut loads: Vec<(u64, Worker)> = std::iter::repeat_with(Default::default).take(workers).collect();
        for (class, share) in related.into_iter().zip(shares) {
            loads[share].1.classes.push(class);
        }
        for (index, class) in others {
            let Some((sum, worker)) = loads.iter_mut().min_by_key(|(sum, worker)| (*sum, worker.classes.len())) else {
                break;
            };
            *sum += misses(&class);
            worker.classes.push((index, class));
        }
        loads.into_iter().map(|(_, worker)| worker).collect()
    }

    /// The segment with the most misses.
    fn main_segment(classes: &[Class]) -> usize {
        let misses = |segment: &usize| classes.iter().map(|class| class.misses[*segment]).sum::<u64>();
        (0..SEGMENTS).max_by_key(misses).unwrap_or(0)
    }

    /// Collects all classes: first those passed to [`Worker::distribute`], in their order, then those split off, sorted
    /// by their masks; and the dropped classes.
    pub fn collect(workers: Vec<Worker>) -> (Vec<Class>, Vec<Class>) {
        let (mut classes, mut dropped) = (Vec::new(), Vec::new());
        for worker in workers {
            classes.extend(worker.classes);
            dropped.extend(worker.dropped);
        }
        classes.sort_by_key(|(index, class): &(Option<usize>, Class)| (index.unwrap_or(usize::MAX), class.masks.0));
        (classes.into_iter().map(|(_, class)| class).collect(), dropped)
    }

    /// Processes all accesses of the batches in every class. Between batches, drops the costliest classes if this
    /// worker alone has more than the budget allows in total.
    pub fn access(&mut self, batches: &[Batch], rules: &Rules, budget: &Budget) -> Missed {
        let mut missed = Missed::default();
        for batch in batches {
            missed = missed.merge_accesses(self.access_batch(batch, rules));
            if budget.exceeded(self.classes.len()) {
                self.write_back();
                let gone = budget.drop_costliest(&mut self.classes, |(_, class)| class);
                self.dropped.extend(gone.into_iter().map(|(_, class)| class));
            }
        }
        self.write_back();
        missed
    }

    /// Returns shared contents to the classes.
    fn write_back(&mut self) {
        for (indices, mut sharing) in self.groups.drain(..) {
            let mut classes: Vec<Option<&mut Class>> = self.classes.iter_mut().map(|(_, class)| Some(class)).collect();
            let mut group: Vec<&mut Class> = indices.iter().filter_map(|&index| classes[index].take()).collect();
            sharing.write_back(&mut group);
        }
    }

    fn access_batch(&mut self, batch: &Batch, rules: &Rules) -> Missed {
        let end = batch.keys().len();
        let (mut done, mut missed) = (vec![0; self.classes.len()], Missed::default());
        while done.iter().any(|&done| done != end) {
            missed = missed.merge_accesses(self.access_until_split(&mut done, batch, rules));
            for class in 0..done.len() {
                let Some(&key) = batch.keys().get(done[class]) else { continue };
                let waiting = &mut self.classes[class].1;
                let missing = waiting.missing(key, rules.sizes, rules.l2_only);
                if missing != 0 && missing != waiting.masks.0[key.segment()] {
                    let other = waiting.split_off(key.segment(), missing);
                    self.classes.push((None, other));
                    done.push(done[class]);
                }
            }
        }
        missed
    }

    /// Processes accesses in each class, from its count in `done` on, up to the end of the batch or until a class has
    /// to split.
    fn access_until_split(&mut self, done: &mut [usize], batch: &Batch, rules: &Rules) -> Missed {
        let waiting = (0..done.len()).filter(|&index| done[index] != batch.keys().len());
        let (queued, others): (Vec<usize>, Vec<usize>) =
            waiting.partition(|&index| FifoGroup::qualifies(&self.classes[index].1, batch, rules));
        let (queued, others) = (groups(queued, done), groups(others, done));
        if !self.groups.iter().map(|(indices, _)| indices).eq(&queued) {
            self.write_back();
            self.groups.extend(queued.into_iter().map(|indices| (indices, Sharing::default())));
        }
        let classes = self.classes.iter_mut().map(|(_, class)| class);
        let mut classes: Vec<Option<Progress>> = classes.zip(done).map(Some).collect();
        let mut group =
            |indices: &[usize]| indices.iter().filter_map(|&index| classes[index].take()).collect::<Vec<Progress>>();
        SCRATCH.with_borrow_mut(|(boxed_array, queues)| {
            let mut missed = Missed::default();
            for (indices, sharing) in &mut self.groups {
                missed = missed.merge_classes(queues.access(&mut group(indices), sharing, batch, rules));
            }
            others.iter().fold(missed, |missed, indices| {
                missed.merge_classes(boxed_array.access(&mut group(indices), batch, rules))
            })
        })
    }
}

/// Assigns items to `shares` shares of about equal `cost`; returns the share of each item. Items of a kind are
/// adjacent; no small part of a kind is separated from the rest.
fn balance<T>(items: &[T], shares: usize, cost: impl Fn(&T) -> u64, kind: impl Fn(&T) -> u8) -> Vec<usize> {
    let all: u64 = items.iter().map(&cost).sum();
    let share = |at: u64| ((at * shares as u64 / all.max(1)) as usize).min(shares - 1);
    let (mut before, mut of) = (0, Vec::new());
    for related in items.chunk_by(|one, other| kind(one) == kind(other)) {
        let small = all / (shares as u64 * SMALL_PART);
        let end = before + related.iter().map(&cost).sum::<u64>();
        let (first, last) = (share(before + small), share(end.saturating_sub(small)));
        for item in related {
            of.push(share(before + cost(item) / 2).clamp(first, last.max(first)));
            before += cost(item);
        }
    }
    of
}

/// Groups of classes that have processed the same number of accesses.
fn groups(mut indices: Vec<usize>, done: &[usize]) -> Vec<Vec<usize>> {
    indices.sort_by_key(|&index| done[index]);
    let as_far = indices.chunk_by(|&one, &other| done[one] == done[other]);
    as_far.flat_map(|indices| indices.chunks(GROUP_SIZE)).map(<[usize]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(items: &[(u64, u8)], workers: usize) -> Vec<usize> {
        balance(items, workers, |item| item.0, |item| item.1)
    }

    #[test]
    fn a_small_part_of_a_kind_stays_with_the_rest_and_a_large_one_is_separated() {
        let kinds = |lengths: [usize; 3]| -> Vec<(u64, u8)> {
            (0..3u8).flat_map(|kind| vec![(10, kind); lengths[usize::from(kind)]]).collect()
        };
        assert_eq!(of(&kinds([24, 25, 46]), 2), [vec![0; 49], vec![1; 46]].concat());
        assert_eq!(of(&kinds([24, 30, 26]), 2), [vec![0; 40], vec![1; 40]].concat());
    }

    proptest! {
        #[test]
        fn shares_have_about_equal_costs(items in prop::collection::vec((1u64..100, 0u8..4), 0..200), workers in 1usize..5) {
            let mut items = items;
            items.sort_by_key(|item| item.1);
            let found = of(&items, workers);
            prop_assert_eq!(found.len(), items.len());
            prop_assert!(found.is_sorted() && found.iter().all(|&share| share < workers));
            let all: u64 = items.iter().map(|item| item.0).sum();
            for share in 0..workers {
                let sum: u64 = items.iter().zip(&found).filter(|(_, of)| **of == share).map(|(item, _)| item.0).sum();
                prop_assert!(sum <= all / workers as u64 * (SMALL_PART + 2) / SMALL_PART + 200, "{} of {}", sum, all);
            }
        }
    }
}
