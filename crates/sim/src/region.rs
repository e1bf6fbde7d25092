//! Regions: named parts of a run that the program marks, with the counts of each thread.
//!
//! A region that only the first thread of a process enters belongs to the whole process: every thread counts from its
//! beginning to its end. A region that other threads enter, too (one in parallel code), belongs to each thread: each
//! counts between its own markers. Ranks of an MPI program are programs of their own here: a region of a rank's first thread belongs to the
//! threads of that rank.

use std::collections::{BTreeMap, BTreeSet};

use fxscope_counts::Signals;
use fxscope_sampling::Exposure;

use crate::markers::Edge;

/// The region every run has.
pub const ALL: &str = "all";

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Counts {
    /// The counts. In a sampled run, those that are known without the sample.
    pub signals: Signals,
    /// How often each block was executed, in a sampled run; otherwise empty. The rest of the counts is estimated from it.
    pub exposure: Exposure,
    /// Those of them in which the block was neither timed nor followed.
    pub skipped: Exposure,
}

impl Counts {
    /// Returns the counts since `earlier`, an earlier state of the same counters.
    #[must_use]
    pub fn since(&self, earlier: &Counts) -> Counts {
        Counts {
            signals: self.signals.since(&earlier.signals),
            exposure: self.exposure.since(&earlier.exposure),
            skipped: self.skipped.since(&earlier.skipped),
        }
    }

    /// Adds other counts.
    pub fn merge(&mut self, other: &Counts) {
        self.signals.merge(&other.signals);
        self.exposure.merge(&other.exposure);
        self.skipped.merge(&other.skipped);
    }
}

/// The counts of a thread.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Counted {
    /// The CPU on which it ran last, as the machine numbers it.
    pub cpu: u32,
    /// The counts.
    pub counts: Counts,
}

/// Returns `all` without `part` of it, an earlier state of the same counters. A core may have been a little ahead then: no count falls
/// below 0.
pub(crate) fn less(all: &Counts, part: &Counts) -> Counts {
    let mut before = part.signals.clone();
    Counts {
        signals: before.advance(&all.signals),
        exposure: all.exposure.since(&part.exposure),
        skipped: all.skipped.since(&part.skipped),
    }
}

impl Counted {
    /// Returns the counts of signals.
    #[must_use]
    pub fn signals(&self) -> &Signals {
        &self.counts.signals
    }
}

/// The counts of all threads by number: 0 is the program's first thread, others follow in the order of their start.
pub type Totals = BTreeMap<u32, Counted>;

/// A region with its counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its name.
    pub name: String,
    /// How often it was entered; where ranks enter it, by the one that did so most often.
    pub calls: u64,
    /// The counts inside, all calls together.
    pub threads: Totals,
    /// The cost of starting threads inside; `None`: none was started, or the region belongs to each thread.
    pub starts: Option<ThreadStarts>,
}

/// Threads whose `clone` and first instruction are both in a region of the whole process. Times are sums over the calls
/// in which threads were started, ns of simulated time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct ThreadStarts {
    /// The number of threads.
    pub threads: u64,
    /// Calls in which threads were started.
    pub calls: u64,
    /// From the beginning of a call to the first instruction of the last thread that was started in it.
    pub until_ns: u64,
    /// The part of it from the first `clone` on.
    pub creating_ns: u64,
    /// The time of all calls, with or without such threads.
    pub region_ns: u64,
}

/// A region with unpaired markers: mostly a name that is spelled in two ways, or markers of two threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpaired {
    /// A region of this name was never left: it counts up to the end of the run.
    NeverLeft(String),
    /// A thread left a region of this name without having entered it, which has no effect; the number says how often.
    NeverEntered(String, u64),
}

/// A region that a thread is in.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
struct Open {
    thread: u32,
    first: bool,
    name: String,
    start: Totals,
    /// When it was entered, ns of simulated time.
    start_ns: u64,
    /// How often it was entered again inside: a library function may call another one that marks the same region.
    again: u32,
    /// The threads of the process that were started inside.
    starting: Option<Starting>,
}

/// Threads that were started in an open region.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
struct Starting {
    threads: u64,
    /// When the first of them was created, and when the last one executed its first instruction, ns of simulated time.
    first_created_ns: u64,
    last_began_ns: u64,
}

/// The finished calls of a region.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
struct Done {
    name: String,
    /// Calls by the first thread of a process, and the counts of all threads meanwhile.
    calls: u64,
    all: Totals,
    /// Calls by each thread, and its own counts.
    own_calls: BTreeMap<u32, u64>,
    own: Totals,
    /// The first thread's time in it, and the threads that were started meanwhile.
    starts: ThreadStarts,
    /// Threads other than the first one have been in it.
    shared: bool,
}

/// The regions of a run.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub struct Regions {
    done: Vec<Done>,
    open: Vec<Open>,
    /// Names of regions that threads left without having entered them, and how often.
    never_entered: BTreeMap<String, u64>,
    /// Threads, other than the program's first, that have executed an instruction.
    began: BTreeSet<u32>,
    /// The ranks of MPI that threads belong to.
    ranks: BTreeMap<u32, u32>,
    /// Executions without counts do not count: they are outside of the part of the run that is timed.
    of_part: bool,
}

/// The counters at a point in time.
pub struct Snapshot {
    /// The counts of all threads.
    pub totals: Totals,
    /// Simulated time, ns.
    pub ns: u64,
}

/// Adds to a thread's counts.
pub fn add(totals: &mut Totals, thread: u32, counted: &Counted) {
    match totals.get_mut(&thread) {
        Some(total) => {
            total.cpu = counted.cpu;
            total.counts.merge(&counted.counts);
        }
        None => {
            totals.insert(thread, counted.clone());
        }
    }
}

/// Returns the counts of all threads together.
pub(crate) fn sum(totals: &Totals) -> Signals {
    let mut sum = Signals::default();
    totals.values().for_each(|counted| sum.merge(counted.signals()));
    sum
}

impl ThreadStarts {
    /// Adds a call that lasted from `start_ns` to `end_ns`.
    fn add_call(&mut self, start_ns: u64, end_ns: u64, starting: Option<&Starting>) {
        self.region_ns += end_ns.saturating_sub(start_ns);
        if let Some(Starting { threads, first_created_ns, last_began_ns }) = starting {
            // A thread may begin on a core that is a few cycles ahead of the one that ends the region.
            let last = (*last_began_ns).min(end_ns);
            self.threads += threads;
            self.calls += 1;
            self.until_ns += last.saturating_sub(start_ns);
            self.creating_ns += last.saturating_sub(*first_created_ns);
        }
    }
}

impl Regions {
    /// Returns the regions of a run of which a part is timed.
    pub(crate) fn of_part() -> Regions {
        Regions { of_part: true, ..Regions::default() }
    }

    /// `thread` belongs to a rank.
    pub(crate) fn has_rank(&mut self, thread: u32, rank: u32) {
        self.ranks.insert(thread, rank);
    }

    /// Returns whether a region that the first thread of a process enters, `leader`, belongs to `thread`, too.
    fn belongs_to(&self, leader: u32, thread: u32) -> bool {
        self.ranks.get(&leader).is_none_or(|rank| self.ranks.get(&thread) == Some(rank))
    }

    /// `thread`, the `first` of its process or another one, enters or leaves a region. Returns its name, unless the thread is still, or
    /// was already, in a region of that name.
    pub(crate) fn meets(
        &mut self,
        edge: Edge,
        thread: u32,
        first: bool,
        name: Option<String>,
        now: Snapshot,
    ) -> Option<String> {
        match edge {
            Edge::Begin => {
                let name = name.unwrap_or_default();
                let is_new = !self.has(thread, &name);
                self.begin(thread, first, name.clone(), now);
                is_new.then_some(name)
            }
            Edge::End => {
                let left = |open: &&Open| open.thread == thread && name.as_ref().is_none_or(|name| open.name == *name);
                let open = self.open.iter().rfind(left).filter(|open| open.again == 0).map(|open| open.name.clone());
                self.end(thread, name.as_deref(), &now);
                open
            }
        }
    }

    /// Returns whether a thread is in a region of this name.
    pub(crate) fn has(&self, thread: u32, name: &str) -> bool {
        self.open.iter().any(|open| open.thread == thread && open.name == name)
    }

    /// `thread`, which is the `first` of its process or another one, enters `name`; `now` is the state of the counters.
    /// Inside a region of that name, counting continues.
    pub fn begin(&mut self, thread: u32, first: bool, name: String, now: Snapshot) {
        match self.open.iter_mut().find(|open| open.thread == thread && open.name == name) {
            Some(open) => open.again += 1,
            None => {
                let Snapshot { totals: start, ns: start_ns } = now;
                self.open.push(Open { thread, first, name, start, start_ns, again: 0, starting: None });
            }
        }
    }

    /// `thread` of the process whose first thread is `leader` is about to execute an instruction at `now_ns`. If it is
    /// its first one, the regions that its `clone` at `created_ns` lies in contain its start.
    pub fn runs(&mut self, thread: u32, leader: u32, created_ns: u64, now_ns: u64) {
        if thread == leader || !self.began.insert(thread) {
            return;
        }
        let of_process = |open: &&mut Open| open.first && open.thread == leader && open.start_ns <= created_ns;
        for open in self.open.iter_mut().filter(of_process) {
            let starting = open.starting.get_or_insert(Starting {
                threads: 0,
                first_created_ns: created_ns,
                last_began_ns: now_ns,
            });
            starting.threads += 1;
            starting.first_created_ns = starting.first_created_ns.min(created_ns);
            starting.last_began_ns = starting.last_began_ns.max(now_ns);
        }
    }

    /// A thread leaves the region called `name` that it entered last, or the last one of all. One that was never
    /// entered counts nothing.
    pub fn end(&mut self, thread: u32, name: Option<&str>, now: &Snapshot) {
        let left = |open: &Open| open.thread == thread && name.is_none_or(|name| open.name == name);
        let Some(last) = self.open.iter().rposition(left) else {
            *self.never_entered.entry(name.unwrap_or_default().to_owned()).or_default() += 1;
            return;
        };
        if self.open[last].again > 0 {
            self.open[last].again -= 1;
            return;
        }
        let Open { first, name, start, start_ns, starting, .. } = self.open.remove(last);
        if self.of_part && now.totals == start {
            return;
        }
        let of_region: Vec<u32> = match first {
            true => now.totals.keys().copied().filter(|&number| self.belongs_to(thread, number)).collect(),
            false => vec![thread],
        };
        let place = self.done.iter().position(|done| done.name == name).unwrap_or_else(|| {
            let (all, own) = (Totals::new(), Totals::new());
            let (own_calls, starts) = (BTreeMap::new(), ThreadStarts::default());
            self.done.push(Done { name, calls: 0, all, own_calls, own, starts, shared: false });
            self.done.len() - 1
        });
        let done = &mut self.done[place];
        done.calls += u64::from(first);
        done.shared |= !first;
        *done.own_calls.entry(thread).or_default() += 1;
        if first {
            done.starts.add_call(start_ns, now.ns, starting.as_ref());
        }
        for number in of_region {
            let Some(counted) = now.totals.get(&number) else { continue };
            let since = start.get(&number).map_or(counted.counts.clone(), |s| counted.counts.since(&s.counts));
            let counted = Counted { cpu: counted.cpu, counts: since };
            if number == thread {
                add(&mut done.own, number, &counted);
            }
            if first && counted.counts != Counts::default() {
                add(&mut done.all, number, &counted);
            }
        }
    }

    /// Returns what all threads have counted in regions of this name by `now`, whose counts may be some cycles behind those
    /// with which a thread has entered one.
    pub(crate) fn so_far(&self, name: &str, now: &Totals) -> Signals {
        let done = self.done.iter().find(|done| done.name == name);
        let open = || self.open.iter().filter(|open| open.name == name);
        let shared = done.is_some_and(|done| done.shared) || open().any(|open| !open.first);
        let mut counted = done.map_or_else(Signals::default, |done| sum(if shared { &done.own } else { &done.all }));
        for Open { thread, start, .. } in open() {
            let counts = |number: u32| if shared { number == *thread } else { self.belongs_to(*thread, number) };
            for (number, threads) in now.iter().filter(|(number, _)| counts(**number)) {
                let mut before = start.get(number).map_or_else(Signals::default, |start| start.signals().clone());
                counted.merge(&before.advance(threads.signals()));
            }
        }
        counted
    }

    /// Returns the regions that are still open, and those that were left without having been entered; each name once.
    pub fn unpaired(&self) -> Vec<Unpaired> {
        let open: BTreeSet<&String> = self.open.iter().map(|open| &open.name).collect();
        let never_left = open.into_iter().cloned().map(Unpaired::NeverLeft);
        let never_entered = self.never_entered.iter().map(|(name, times)| Unpaired::NeverEntered(name.clone(), *times));
        never_left.chain(never_entered).collect()
    }

    /// Returns all regions, the whole run first; regions that are still open end here.
    pub fn finish(mut self, now: &Snapshot) -> Vec<Region> {
        while let Some(open) = self.open.last_mut() {
            let thread = open.thread;
            open.again = 0;
            self.end(thread, None, now);
        }
        let ranks = self.ranks;
        let region = |done: Done| {
            let most_calls = done.own_calls.values().copied().max().unwrap_or(0);
            let by_ranks = done.own_calls.keys().any(|thread| ranks.contains_key(thread));
            let calls = if done.shared || by_ranks { most_calls } else { done.calls };
            let threads = if done.shared { done.own } else { done.all };
            let starts = Some(done.starts).filter(|starts| starts.threads > 0 && !done.shared);
            Region { name: done.name, calls, threads, starts }
        };
        // A launcher of ranks has often ended before the part that is timed, or sleeps in all of it.
        let counted = now.totals.iter().filter(|(_, counted)| !self.of_part || counted.counts != Counts::default());
        let threads = counted.map(|(&number, counted)| (number, counted.clone())).collect();
        let all = Region { name: ALL.to_string(), calls: 1, threads, starts: None };
        std::iter::once(all).chain(self.done.into_iter().map(region)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fxscope_counts::Signal;

    /// Cycles counted by threads 0, 1, ….
    fn cycles<const N: usize>(n: [u64; N]) -> Totals {
        let counted = |n| {
            let mut signals = Signals::default();
            signals.set(Signal::CpuCycles, n);
            Counted { cpu: 12, counts: Counts { signals, ..Counts::default() } }
        };
        (0..).zip(n.map(counted)).collect()
    }

    /// The same, at the time that thread 0 has counted.
    fn at<const N: usize>(n: [u64; N]) -> Snapshot {
        Snapshot { totals: cycles(n), ns: n[0] }
    }

    fn seen(regions: Regions, now: &Snapshot) -> Vec<(String, u64, Vec<u64>)> {
        let threads = |r: &Region| r.threads.values().map(|c| c.signals().get(Signal::CpuCycles)).collect();
        regions.finish(now).into_iter().map(|r| (r.name.clone(), r.calls, threads(&r))).collect()
    }

    #[test]
    fn nested_regions_count_their_own_spans_and_calls_add_up() {
        let mut r = Regions::default();
        r.begin(0, true, "outer".into(), at([10]));
        r.begin(0, true, "inner".into(), at([20]));
        r.end(0, None, &at([25]));
        r.begin(0, true, "inner".into(), at([30]));
        r.end(0, None, &at([33]));
        r.end(0, None, &at([40]));
        r.end(0, None, &at([41]));
        let want = [("all".into(), 1, vec![50]), ("inner".into(), 2, vec![8]), ("outer".into(), 1, vec![30])];
        assert_eq!(seen(r, &at([50])), want);
    }

    /// The first thread is in two regions: "a" from cycle 10 on and "b" from 20 on.
    fn within_two() -> Regions {
        let mut r = Regions::default();
        r.begin(0, true, "a".into(), at([10]));
        r.begin(0, true, "b".into(), at([20]));
        r
    }

    #[test]
    fn what_a_region_has_counted_so_far_is_known_at_any_time() {
        let so_far = |r: &Regions, now: Snapshot| r.so_far("a", &now.totals).get(Signal::CpuCycles);
        let mut r = Regions::default();
        assert_eq!(so_far(&r, at([7])), 0);
        r.begin(0, true, "a".into(), at([10]));
        assert_eq!(so_far(&r, at([9])), 0, "a moment behind");
        assert_eq!(so_far(&r, at([15, 4])), 9, "all threads while it is the process's");
        r.end(0, None, &at([20, 6]));
        assert_eq!(so_far(&r, at([30, 9])), 16);
        r.begin(1, false, "a".into(), at([30, 10]));
        assert_eq!(so_far(&r, at([40, 13])), 13, "each thread's own once others enter it");
    }

    #[test]
    fn regions_that_end_by_name_may_overlap() {
        let mut r = within_two();
        r.end(0, Some("a"), &at([35]));
        r.end(0, Some("c"), &at([36]));
        r.end(0, Some("b"), &at([40]));
        let want = [("all".into(), 1, vec![50]), ("a".into(), 1, vec![25]), ("b".into(), 1, vec![20])];
        assert_eq!(seen(r, &at([50])), want);
    }

    #[test]
    fn marks_that_lack_the_other_end_are_known_by_name() {
        let mut r = within_two();
        r.end(0, Some("b"), &at([30]));
        r.end(1, Some("a"), &at([35]));
        r.end(0, Some("A"), &at([36]));
        r.end(0, Some("A"), &at([37]));
        let never_entered = |name: &str, times| Unpaired::NeverEntered(name.to_owned(), times);
        assert_eq!(r.unpaired(), [Unpaired::NeverLeft("a".to_owned()), never_entered("A", 2), never_entered("a", 1)]);
        r.end(0, Some("a"), &at([40]));
        assert_eq!(r.unpaired(), [never_entered("A", 2), never_entered("a", 1)]);
    }

    #[test]
    fn a_region_entered_inside_of_itself_is_counted_once() {
        let mut r = Regions::default();
        r.begin(0, true, "a".into(), at([10]));
        r.begin(0, true, "a".into(), at([11]));
        r.end(0, Some("a"), &at([20]));
        r.end(0, Some("a"), &at([30]));
        let want = [("all".into(), 1, vec![50]), ("a".into(), 1, vec![20])];
        assert_eq!(seen(r, &at([50])), want);
    }

    #[test]
    fn a_region_of_the_first_thread_counts_for_all_threads_started_inside_too() {
        let mut r = Regions::default();
        r.begin(0, true, "parallel".into(), at([10, 3]));
        r.end(0, None, &at([30, 9, 5]));
        let want = [("all".into(), 1, vec![40, 9, 6]), ("parallel".into(), 1, vec![20, 6, 5])];
        assert_eq!(seen(r, &at([40, 9, 6])), want);
    }

    #[test]
    fn a_region_of_ranks_counts_each_of_them_once() {
        let mut r = Regions::default();
        (0..4).for_each(|thread| r.has_rank(thread, thread / 2));
        r.begin(0, true, "each".into(), at([10, 10, 10, 10, 7]));
        r.begin(2, true, "each".into(), at([12, 12, 12, 12, 8]));
        assert_eq!(r.so_far("each", &at([20, 20, 20, 20, 9]).totals).get(Signal::CpuCycles), 10 + 10 + 8 + 8);
        r.end(2, None, &at([20, 20, 20, 20, 9]));
        r.end(0, None, &at([30, 30, 30, 30, 9]));
        assert_eq!(seen(r, &at([40, 40, 40, 40, 9]))[1], ("each".into(), 1, vec![20, 20, 8, 8]));
    }

    #[test]
    fn a_region_that_other_threads_enter_too_is_each_thread_s_own() {
        let mut r = Regions::default();
        r.begin(0, true, "each".into(), at([10, 10]));
        r.begin(1, false, "each".into(), at([12, 12]));
        r.end(1, None, &at([20, 20]));
        r.end(0, None, &at([30, 30]));
        assert_eq!(seen(r, &at([40, 40]))[1], ("each".into(), 1, vec![20, 8]));
    }

    #[test]
    fn a_region_has_the_time_until_the_last_thread_that_is_started_inside_begins() {
        let mut r = Regions::default();
        r.runs(1, 0, 3, 5);
        r.begin(0, true, "a".into(), at([100]));
        r.runs(1, 0, 3, 110);
        r.runs(2, 0, 130, 150);
        r.runs(3, 0, 140, 145);
        r.end(0, None, &at([300]));
        r.begin(0, true, "a".into(), at([400]));
        r.end(0, None, &at([500]));
        let starts = ThreadStarts { threads: 2, calls: 1, until_ns: 50, creating_ns: 20, region_ns: 300 };
        assert_eq!(r.finish(&at([600]))[1].starts, Some(starts));
    }

    #[test]
    fn threads_that_are_created_before_a_region_or_begin_after_it_are_not_started_inside() {
        let mut r = Regions::default();
        r.begin(0, true, "a".into(), at([100]));
        r.runs(1, 0, 99, 120);
        r.end(0, None, &at([200]));
        r.runs(2, 0, 150, 210);
        r.runs(3, 7, 150, 160);
        assert_eq!(r.finish(&at([300]))[1].starts, None);
    }

    #[test]
    fn another_process_starts_no_threads_in_a_region() {
        let mut r = Regions::default();
        r.begin(0, true, "a".into(), at([100]));
        r.runs(8, 7, 150, 160);
        assert_eq!(r.finish(&at([300]))[1].starts, None);
    }
}
