//! Named parts of a run, marked by the program, and what was counted in them for each thread.
//!
//! A region that the first thread of a process enters is one of the whole process: every thread counts, from its beginning to
//! its end. A region that other threads enter, too, is each thread's own, as programs do that mark regions inside of
//! parallel code: then each thread counts between its own marks.

use std::collections::{BTreeMap, BTreeSet};

use fxscope_base::Signals;

/// The region every run has.
pub const ALL: &str = "all";

/// What was counted while a thread had a core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The core it ran on last, as the machine numbers it.
    pub cpu: u32,
    /// The counts.
    pub signals: Signals,
}

/// The counts of all threads, by their numbers: 0 for the program's first one, then in the order of their start.
pub type Totals = BTreeMap<u32, Counted>;

/// What was counted in a named part of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its name.
    pub name: String,
    /// Times it was entered.
    pub calls: u64,
    /// What was counted inside, all calls together.
    pub threads: Totals,
}

/// A region whose marks do not come in pairs: mostly a name that is spelled in two ways, or marks of two threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpaired {
    /// One of this name was never left: it counts up to the end of the run.
    NeverLeft(String),
    /// A thread left one of this name so many times without having entered it; that counts nothing.
    NeverEntered(String, u64),
}

/// A region that a thread is in.
struct Open {
    thread: u32,
    first: bool,
    name: String,
    start: Totals,
    /// Times it was entered once more inside: a library's function may call another one that marks the same.
    again: u32,
}

/// Spans of one name that are over.
struct Done {
    name: String,
    /// Times the first thread of a process was in it, and what all threads counted meanwhile.
    calls: u64,
    all: Totals,
    /// Times each thread was in it, and what it counted itself.
    own_calls: BTreeMap<u32, u64>,
    own: Totals,
    /// Threads other than the first ones have been in it.
    shared: bool,
}

/// Regions while a program runs.
#[derive(Default)]
pub struct Regions {
    done: Vec<Done>,
    open: Vec<Open>,
    /// Names that threads left without having entered, and how often.
    never_entered: BTreeMap<String, u64>,
}

/// Adds to a thread's counts.
pub fn add(totals: &mut Totals, thread: u32, counted: &Counted) {
    match totals.get_mut(&thread) {
        Some(total) => {
            total.cpu = counted.cpu;
            total.signals.merge(&counted.signals);
        }
        None => {
            totals.insert(thread, counted.clone());
        }
    }
}

/// The counts of all threads together.
pub(crate) fn sum(totals: &Totals) -> Signals {
    let mut sum = Signals::default();
    totals.values().for_each(|counted| sum.merge(&counted.signals));
    sum
}

impl Regions {
    /// `thread`, which is the `first` of its process or another one, enters `name`; `now` is the state of the counters.
    /// Inside of a region of that name it counts on.
    pub fn begin(&mut self, thread: u32, first: bool, name: String, now: Totals) {
        match self.open.iter_mut().find(|open| open.thread == thread && open.name == name) {
            Some(open) => open.again += 1,
            None => self.open.push(Open { thread, first, name, start: now, again: 0 }),
        }
    }

    /// A thread leaves the region called `name` that it entered last, or the last one of all. One that was never entered
    /// counts nothing.
    pub fn end(&mut self, thread: u32, name: Option<&str>, now: &Totals) {
        let left = |open: &Open| open.thread == thread && name.is_none_or(|name| open.name == name);
        let Some(last) = self.open.iter().rposition(left) else {
            *self.never_entered.entry(name.unwrap_or_default().to_owned()).or_default() += 1;
            return;
        };
        if self.open[last].again > 0 {
            self.open[last].again -= 1;
            return;
        }
        let Open { first, name, start, .. } = self.open.remove(last);
        let done = match self.done.iter().position(|done| done.name == name) {
            Some(known) => &mut self.done[known],
            None => {
                let (all, own) = (Totals::new(), Totals::new());
                self.done.push(Done { name, calls: 0, all, own_calls: BTreeMap::new(), own, shared: false });
                self.done.last_mut().expect("just pushed")
            }
        };
        done.calls += u64::from(first);
        done.shared |= !first;
        *done.own_calls.entry(thread).or_default() += 1;
        for (&number, counted) in now {
            let since = start.get(&number).map_or(counted.signals.clone(), |s| counted.signals.since(&s.signals));
            let counted = Counted { cpu: counted.cpu, signals: since };
            if number == thread {
                add(&mut done.own, number, &counted);
            }
            if first && counted.signals != Signals::default() {
                add(&mut done.all, number, &counted);
            }
        }
    }

    /// What all threads have counted in regions of this name by `now`, whose counts may be some cycles behind those with which a
    /// thread has entered one.
    pub(crate) fn so_far(&self, name: &str, now: &Totals) -> Signals {
        let done = self.done.iter().find(|done| done.name == name);
        let open = || self.open.iter().filter(|open| open.name == name);
        let shared = done.is_some_and(|done| done.shared) || open().any(|open| !open.first);
        let mut counted = done.map_or_else(Signals::default, |done| sum(if shared { &done.own } else { &done.all }));
        for Open { thread, start, .. } in open() {
            for (number, threads) in now.iter().filter(|(number, _)| !shared || *number == thread) {
                let mut before = start.get(number).map_or_else(Signals::default, |start| start.signals.clone());
                counted.merge(&before.advance(&threads.signals));
            }
        }
        counted
    }

    /// The regions that are still open, and what was left without having been entered; each name once.
    pub fn unpaired(&self) -> Vec<Unpaired> {
        let open: BTreeSet<&String> = self.open.iter().map(|open| &open.name).collect();
        let never_left = open.into_iter().cloned().map(Unpaired::NeverLeft);
        let never_entered = self.never_entered.iter().map(|(name, times)| Unpaired::NeverEntered(name.clone(), *times));
        never_left.chain(never_entered).collect()
    }

    /// All regions, the whole run first; regions still open end here.
    pub fn finish(mut self, now: &Totals) -> Vec<Region> {
        while let Some(open) = self.open.last_mut() {
            let thread = open.thread;
            open.again = 0;
            self.end(thread, None, now);
        }
        let region = |done: Done| {
            let own_calls = done.own_calls.values().copied().max().unwrap_or(0);
            let (calls, threads) = if done.shared { (own_calls, done.own) } else { (done.calls, done.all) };
            Region { name: done.name, calls, threads }
        };
        let all = Region { name: ALL.to_string(), calls: 1, threads: now.clone() };
        std::iter::once(all).chain(self.done.into_iter().map(region)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fxscope_base::Signal;

    /// Cycles counted by threads 0, 1, ….
    fn cycles<const N: usize>(n: [u64; N]) -> Totals {
        let counted = |n| {
            let mut signals = Signals::default();
            signals.set(Signal::CpuCycles, n);
            Counted { cpu: 12, signals }
        };
        (0..).zip(n.map(counted)).collect()
    }

    fn seen(regions: Regions, now: &Totals) -> Vec<(String, u64, Vec<u64>)> {
        let threads = |r: &Region| r.threads.values().map(|c| c.signals.get(Signal::CpuCycles)).collect();
        regions.finish(now).into_iter().map(|r| (r.name.clone(), r.calls, threads(&r))).collect()
    }

    #[test]
    fn nested_regions_count_their_own_spans_and_calls_add_up() {
        let mut r = Regions::default();
        r.begin(0, true, "outer".into(), cycles([10]));
        r.begin(0, true, "inner".into(), cycles([20]));
        r.end(0, None, &cycles([25]));
        r.begin(0, true, "inner".into(), cycles([30]));
        r.end(0, None, &cycles([33]));
        r.end(0, None, &cycles([40]));
        r.end(0, None, &cycles([41]));
        let want = [("all".into(), 1, vec![50]), ("inner".into(), 2, vec![8]), ("outer".into(), 1, vec![30])];
        assert_eq!(seen(r, &cycles([50])), want);
    }

    /// The first thread is in two regions: "a" from cycle 10 on and "b" from 20 on.
    fn within_two() -> Regions {
        let mut r = Regions::default();
        r.begin(0, true, "a".into(), cycles([10]));
        r.begin(0, true, "b".into(), cycles([20]));
        r
    }

    #[test]
    fn what_a_region_has_counted_so_far_is_known_at_any_time() {
        let so_far = |r: &Regions, now: Totals| r.so_far("a", &now).get(Signal::CpuCycles);
        let mut r = Regions::default();
        assert_eq!(so_far(&r, cycles([7])), 0);
        r.begin(0, true, "a".into(), cycles([10]));
        assert_eq!(so_far(&r, cycles([9])), 0, "a moment behind");
        assert_eq!(so_far(&r, cycles([15, 4])), 9, "all threads while it is the process's");
        r.end(0, None, &cycles([20, 6]));
        assert_eq!(so_far(&r, cycles([30, 9])), 16);
        r.begin(1, false, "a".into(), cycles([30, 10]));
        assert_eq!(so_far(&r, cycles([40, 13])), 13, "each thread's own once others enter it");
    }

    #[test]
    fn regions_that_end_by_name_may_overlap() {
        let mut r = within_two();
        r.end(0, Some("a"), &cycles([35]));
        r.end(0, Some("c"), &cycles([36]));
        r.end(0, Some("b"), &cycles([40]));
        let want = [("all".into(), 1, vec![50]), ("a".into(), 1, vec![25]), ("b".into(), 1, vec![20])];
        assert_eq!(seen(r, &cycles([50])), want);
    }

    #[test]
    fn marks_that_lack_the_other_end_are_known_by_name() {
        let mut r = within_two();
        r.end(0, Some("b"), &cycles([30]));
        r.end(1, Some("a"), &cycles([35]));
        r.end(0, Some("A"), &cycles([36]));
        r.end(0, Some("A"), &cycles([37]));
        let never_entered = |name: &str, times| Unpaired::NeverEntered(name.to_owned(), times);
        assert_eq!(r.unpaired(), [Unpaired::NeverLeft("a".to_owned()), never_entered("A", 2), never_entered("a", 1)]);
        r.end(0, Some("a"), &cycles([40]));
        assert_eq!(r.unpaired(), [never_entered("A", 2), never_entered("a", 1)]);
    }

    #[test]
    fn a_region_entered_inside_of_itself_is_counted_once() {
        let mut r = Regions::default();
        r.begin(0, true, "a".into(), cycles([10]));
        r.begin(0, true, "a".into(), cycles([11]));
        r.end(0, Some("a"), &cycles([20]));
        r.end(0, Some("a"), &cycles([30]));
        let want = [("all".into(), 1, vec![50]), ("a".into(), 1, vec![20])];
        assert_eq!(seen(r, &cycles([50])), want);
    }

    #[test]
    fn a_region_of_the_first_thread_counts_for_all_threads_started_inside_too() {
        let mut r = Regions::default();
        r.begin(0, true, "parallel".into(), cycles([10, 3]));
        r.end(0, None, &cycles([30, 9, 5]));
        let want = [("all".into(), 1, vec![40, 9, 6]), ("parallel".into(), 1, vec![20, 6, 5])];
        assert_eq!(seen(r, &cycles([40, 9, 6])), want);
    }

    #[test]
    fn a_region_that_other_threads_enter_too_is_each_thread_s_own() {
        let mut r = Regions::default();
        r.begin(0, true, "each".into(), cycles([10, 10]));
        r.begin(1, false, "each".into(), cycles([12, 12]));
        r.end(1, None, &cycles([20, 20]));
        r.end(0, None, &cycles([30, 30]));
        assert_eq!(seen(r, &cycles([40, 40]))[1], ("each".into(), 1, vec![20, 8]));
    }
}
