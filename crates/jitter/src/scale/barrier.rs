//! Phases that all cores end together with a barrier.
//!
//! Only the last core of a phase counts. A detour that is alone on its core, far from earlier and later ones, does not
//! matter if every phase that it could affect contains a longer one from start to end; it is dropped as soon as it is
//! drawn.

use std::ops::Range;

use rayon::prelude::*;

use super::Setup;
use super::detours::{Detour, Position, Streams, end};
use super::outcome::{Outcome, Recorder};
use crate::model::Model;

/// Slots per phase whose longest detours are known. Any three adjacent slots lie within a phase or at its edge.
const SLOTS: u64 = 4;

/// Approximate number of cores per part: their state fits a cache.
pub(super) const CORES_PER_PART: usize = 1 << 14;
/// Detours drawn at a time for a part.
const DETOURS_PER_PART: f64 = 32768.0;
/// Number of pending detours from which several threads examine a phase.
const DETOURS_FOR_THREADS: usize = 1 << 20;

/// When and on which core a node's work ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Finish {
    pub time: u64,
    pub node: u32,
    pub core: u16,
}

impl Finish {
    /// Returns the later one; of equal ones, that of the lower node and core, so that the order of comparisons does not
    /// matter.
    pub(super) fn later(self, other: Finish) -> Finish {
        let key = |f: Finish| (f.time, std::cmp::Reverse((f.node, f.core)));
        if key(self) >= key(other) { self } else { other }
    }
}

/// A run in progress.
pub(super) struct Run {
    streams: Streams,
    parts: Vec<Part>,
    /// Until when detours are drawn, and the step of this horizon.
    horizon: u64,
    cell: u64,
    sources: usize,
}

impl Run {
    pub(super) fn new(streams: Streams, model: &Model, setup: &Setup) -> Run {
        let works = setup.works();
        let nodes = (CORES_PER_PART / setup.cores as usize).max(1);
        let part = |(i, works): (usize, &[u64])| Part::new(&streams, (i * nodes) as u32, works, setup.cores);
        let parts = works.par_chunks(nodes).enumerate().map(part).collect();
        Run {
            parts,
            streams,
            horizon: 0,
            cell: setup.cell(model, nodes.min(works.len()), DETOURS_PER_PART),
            sources: model.sources.len(),
        }
    }

    /// Runs all phases, each of which ends with an operation of `cost` nanoseconds.
    pub(super) fn all(mut self, setup: &Setup, cost: u64) -> Outcome {
        let works = setup.works();
        let most = works.iter().copied().max().unwrap_or(0);
        let mut recorder = Recorder::new(setup, self.sources, &works, most + cost);
        let mut now = 0;
        for _ in 0..setup.phases {
            let last = self.last(now, most);
            if last.time > now + most {
                let part = &self.parts[last.node as usize / self.parts[0].works.len()];
                recorder.blame((last.time - now - most) as f64, |stolen| part.blame(last, now, stolen));
            }
            recorder.phase(last.time + cost - now);
            now = last.time + cost;
        }
        recorder.done(now)
    }

    /// When the last core finishes work that all start at `now`; `most` is the largest work.
    fn last(&mut self, now: u64, most: u64) -> Finish {
        let mut end = now + most;
        loop {
            while self.horizon < end {
                self.extend(now);
            }
            let last = self.look(now);
            if last.time <= self.horizon {
                return last;
            }
            end = last.time;
        }
    }

    /// Draws detours that start in the next time window.
    fn extend(&mut self, now: u64) {
        let (from, to) = (self.horizon, self.horizon + self.cell);
        let streams = &self.streams;
        self.parts
            .par_iter_mut()
            .for_each_init(Scratch::default, |scratch, part| part.extend(streams, now, from..to, scratch));
        self.horizon = to;
    }

    /// The last core, from the detours drawn so far.
    fn look(&mut self, now: u64) -> Finish {
        let at_hand: usize = self.parts.iter().map(|part| part.detours.len()).sum();
        let later = |a: Option<Finish>, b: Option<Finish>| a.into_iter().chain(b).reduce(Finish::later);
        let last = match at_hand < DETOURS_FOR_THREADS {
            true => self.parts.iter_mut().map(|part| Some(part.last(now))).fold(None, later),
            false => self.parts.par_iter_mut().map(|part| Some(part.last(now))).reduce(|| None, later),
        };
        last.expect("there are nodes")
    }
}

/// Consecutive nodes whose phases start together. Cores are numbered through all nodes of the part.
struct Part {
    first: u32,
    cores: usize,
    /// Computation of each node.
    works: Vec<u64>,
    least: u64,
    most: u64,
    positions: Vec<Position>,
    /// For each core: until when drawn detours occupy it, and from when on detours cannot share a phase with those.
    taken: Vec<(u64, u64)>,
    /// Detours that may be the last ones of their phases, by start; those before `from` are over.
    detours: Vec<Detour>,
    from: usize,
    /// Delay of each core in the current phase; 0 between phases.
    delays: Vec<u64>,
}

/// Temporary buffers for drawing.
#[derive(Default)]
struct Scratch {
    /// Detours of a node before queueing.
    plain: Vec<Detour>,
    /// Detours of a part.
    drawn: Vec<Drawn>,
    /// For each core of a node, the index plus one of its last detour in `drawn`; 0 if none.
    latest: Vec<usize>,
}

/// A drawn detour, and whether no phase contains another detour of its core.
#[derive(Clone, Copy)]
struct Drawn {
    detour: Detour,
    alone: bool,
}

impl Part {
    fn new(streams: &Streams, first: u32, works: &[u64], cores: u32) -> Part {
        let (count, cores) = (works.len(), cores as usize);
        Part {
            first,
            cores,
            works: works.to_vec(),
            least: works.iter().copied().min().unwrap_or(0),
            most: works.iter().copied().max().unwrap_or(0),
            positions: (first..).take(count).map(|node| streams.position(node)).collect(),
            taken: vec![(0, 0); count * cores],
            detours: Vec::new(),
            from: 0,
            delays: vec![0; count * cores],
        }
    }

    /// Draws detours that start in `time`; drops those that end before `now`.
    fn extend(&mut self, streams: &Streams, now: u64, time: Range<u64>, scratch: &mut Scratch) {
        let Range { start: from, end: to } = time;
        let Scratch { plain, drawn, latest } = scratch;
        drawn.clear();
        latest.resize(self.cores, 0);
        for node in 0..self.positions.len() {
            plain.clear();
            streams.extend(self.first + node as u32, &mut self.positions[node], from, to, plain);
            // Those of a core must be in order; the order of cores does not matter.
            if !plain.is_sorted_by_key(|d| (d.core, d.start)) {
                plain.sort_unstable();
            }
            self.queue(node, plain, drawn, latest);
        }
        let floors = self.floors(drawn, from, to);
        let slot = (self.least / SLOTS).max(1);
        let most = self.most;
        self.detours.drain(..self.from);
        self.detours.retain(|d| d.end() > now);
        self.from = 0;
        let matters = |drawn: &&Drawn| {
            let (detour, length) = (drawn.detour, u64::from(drawn.detour.length));
            let beyond = detour.end() + most + length > to;
            let floor = floors.get(((detour.start - from) / slot) as usize).copied().unwrap_or(0);
            !drawn.alone || beyond || length >= slot || detour.length >= floor
        };
        self.detours.extend(drawn.iter().filter(matters).map(|drawn| drawn.detour));
        self.detours.sort_unstable();
    }

    /// Adds the detours of a node to `drawn`, queueing those of each core.
    fn queue(&mut self, node: usize, plain: &[Detour], drawn: &mut Vec<Drawn>, latest: &mut [usize]) {
        let begin = drawn.len();
        latest.fill(0);
        for &detour in plain {
            let core = usize::from(detour.core);
            let number = node * self.cores + core;
            let (busy, reach) = &mut self.taken[number];
            let start = detour.start.max(*busy);
            let length = u64::from(detour.length);
            // Time that the core lost to detours that may share a phase with this one.
            let shares_phase = start < *reach;
            let lost = if shares_phase { *reach - *busy - self.most } else { 0 };
            *busy = start + length;
            *reach = *busy + self.most + lost + length;
            if shares_phase && latest[core] > begin {
                drawn[latest[core] - 1].alone = false;
            }
            drawn.push(Drawn { detour: Detour { start, core: number as u16, ..detour }, alone: !shares_phase });
            latest[core] = drawn.len();
        }
    }

    /// For each slot from `from` to `to`, the length that a lone detour starting there must reach to be the last of any
    /// phase; empty if too little is drawn to tell, or nodes have unequal work.
    fn floors(&self, drawn: &[Drawn], from: u64, to: u64) -> Vec<u32> {
        let slot = (self.least / SLOTS).max(1);
        let slots = ((to - from) / slot) as usize;
        if self.least != self.most || self.least < SLOTS || slots > drawn.len() {
            return Vec::new();
        }
        let mut longest = vec![0; slots];
        for Drawn { detour, .. } in drawn {
            if let Some(longest) = longest.get_mut(((detour.start - from) / slot) as usize) {
                *longest = detour.length.max(*longest);
            }
        }
        // Three slots lie within the same phase whenever the first is the first of a phase.
        let three: Vec<u32> = longest.windows(3).map(|w| w[0].max(w[1]).max(w[2])).collect();
        // The first complete slot of a phase that a detour in slot `k` hits is one of `k - 3` to `k + 2`.
        let floor = |k: usize| match k.checked_sub(3).and_then(|first| three.get(first..k + 3)) {
            Some(firsts) => firsts.iter().copied().min().unwrap_or(0),
            None => 0,
        };
        (0..slots).map(floor).collect()
    }

    /// When the last node finishes work that all start at `now`.
    fn last(&mut self, now: u64) -> Finish {
        while self.detours.get(self.from).is_some_and(|d| d.end() <= now) {
            self.from += 1;
        }
        let mut last = Finish { time: now + self.most, node: self.first, core: 0 };
        let mut seen = 0;
        for detour in &self.detours[self.from..] {
            if detour.start >= last.time {
                break;
            }
            seen += 1;
            if detour.end() <= now {
                continue;
            }
            let number = usize::from(detour.core);
            let node = number / self.cores;
            let end = now + self.works[node] + self.delays[number];
            if detour.start < end {
                let delay = detour.end() - detour.start.max(now);
                self.delays[number] += delay;
                let core = (number % self.cores) as u16;
                last = last.later(Finish { time: end + delay, node: self.first + node as u32, core });
            }
        }
        for detour in &self.detours[self.from..][..seen] {
            self.delays[usize::from(detour.core)] = 0;
        }
        last
    }

    /// Adds to `stolen` how much each source delayed the last core, which belongs to this part, in a phase that starts
    /// at `now`.
    fn blame(&self, finish: Finish, now: u64, stolen: &mut [u64]) {
        let node = (finish.node - self.first) as usize;
        let core = (node * self.cores) as u16 + finish.core;
        let met = self.detours[self.from..].iter().take_while(|detour| detour.start < finish.time);
        let own = met.filter(|detour| detour.core == core);
        end(own, now, self.works[node], |detour, delay| stolen[usize::from(detour.source)] += delay);
    }
}
