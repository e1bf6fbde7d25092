//! Phases that all cores end together.
//!
//! The last core of a phase is all that counts. A detour that is alone on its core, far from the ones before and after, is no
//! matter where every phase that it could meet has a longer one from beginning to end, and is forgotten as soon as it is drawn.

use std::ops::Range;

use rayon::prelude::*;

use super::Setup;
use super::outcome::{Outcome, Recorder};
use super::streams::{Detour, Position, Streams, end};
use crate::model::Model;

/// Parts of a phase whose longest detours are known. Any three one after the other lie within a phase or at its edge.
const SLOTS: u64 = 4;

/// Cores that a part has, about: their state fits a cache.
pub(super) const CORES_PER_PART: usize = 1 << 14;
/// Detours that are drawn at a time for a part.
const DETOURS_PER_PART: f64 = 32768.0;
/// Detours at hand from which on several threads look at a phase.
const DETOURS_FOR_THREADS: usize = 1 << 20;

/// Where a node's work ends, and on which core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Finish {
    pub time: u64,
    pub node: u32,
    pub core: u16,
}

impl Finish {
    /// The later one; of equal ones that of the lower node and core, so that the order of comparisons is no matter.
    pub(super) fn later(self, other: Finish) -> Finish {
        let key = |f: Finish| (f.time, std::cmp::Reverse((f.node, f.core)));
        if key(self) >= key(other) { self } else { other }
    }
}

/// A run under way.
pub(super) struct Run {
    streams: Streams,
    parts: Vec<Part>,
    /// Until when detours are drawn, and by how much that moves.
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

    /// When the last core ends the work that all begin at `now`; `most` is the largest.
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

    /// Draws what begins in the next stretch of time.
    fn extend(&mut self, now: u64) {
        let (from, to) = (self.horizon, self.horizon + self.cell);
        let streams = &self.streams;
        self.parts
            .par_iter_mut()
            .for_each_init(Scratch::default, |scratch, part| part.extend(streams, now, from..to, scratch));
        self.horizon = to;
    }

    /// The last core as far as detours are drawn.
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

/// Consecutive nodes whose phases begin at the same time. Cores are numbered through all nodes of the part.
struct Part {
    first: u32,
    cores: usize,
    /// Computation of each node.
    works: Vec<u64>,
    least: u64,
    most: u64,
    positions: Vec<Position>,
    /// Until when each core is taken by what was drawn, and when detours begin that no phase has together with those.
    taken: Vec<(u64, u64)>,
    /// Detours that may be the last ones of their phases, in order; those before `from` are over.
    detours: Vec<Detour>,
    from: usize,
    /// By how much each core is delayed in the phase that is looked at; 0 between looks.
    delays: Vec<u64>,
}

/// What drawing needs for a while.
#[derive(Default)]
struct Scratch {
    /// Of a node, before its detours have waited for each other.
    plain: Vec<Detour>,
    /// Of a part.
    drawn: Vec<Drawn>,
    /// Which of `drawn` was the last one of each core of a node, and one more; 0: none.
    latest: Vec<usize>,
}

/// A detour that was drawn, and whether no phase has it together with another of its core.
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

    /// Draws what begins in `time`. What is over at `now` is forgotten.
    fn extend(&mut self, streams: &Streams, now: u64, time: Range<u64>, scratch: &mut Scratch) {
        let Range { start: from, end: to } = time;
        let Scratch { plain, drawn, latest } = scratch;
        drawn.clear();
        latest.resize(self.cores, 0);
        for node in 0..self.positions.len() {
            plain.clear();
            streams.extend(self.first + node as u32, &mut self.positions[node], from, to, plain);
            // Those of a core must be in order, no matter which core comes first.
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

    /// Adds the detours of a node to `drawn`: those of a core wait for each other.
    fn queue(&mut self, node: usize, plain: &[Detour], drawn: &mut Vec<Drawn>, latest: &mut [usize]) {
        let begin = drawn.len();
        latest.fill(0);
        for &detour in plain {
            let core = usize::from(detour.core);
            let number = node * self.cores + core;
            let (busy, reach) = &mut self.taken[number];
            let start = detour.start.max(*busy);
            let length = u64::from(detour.length);
            // What the core lost to detours that a phase may have together with this one.
            let together = start < *reach;
            let lost = if together { *reach - *busy - self.most } else { 0 };
            *busy = start + length;
            *reach = *busy + self.most + lost + length;
            if together && latest[core] > begin {
                drawn[latest[core] - 1].alone = false;
            }
            drawn.push(Drawn { detour: Detour { start, core: number as u16, ..detour }, alone: !together });
            latest[core] = drawn.len();
        }
    }

    /// For each slot of the time from `from` to `to` what a lone detour that begins in it must reach to be the last one of any
    /// phase; empty where too little is drawn for that to tell, or nodes have unequal work.
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
        // Of three slots, all of which lie in the same phase whenever the first one is the first of a phase.
        let three: Vec<u32> = longest.windows(3).map(|w| w[0].max(w[1]).max(w[2])).collect();
        // A phase that a detour in slot `k` meets has one of `k - 3` to `k + 2` as the first that it has from its beginning.
        let floor = |k: usize| match k.checked_sub(3).and_then(|first| three.get(first..k + 3)) {
            Some(firsts) => firsts.iter().copied().min().unwrap_or(0),
            None => 0,
        };
        (0..slots).map(floor).collect()
    }

    /// When the last node ends the work that all begin at `now`.
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

    /// Adds to `stolen` by how much each source delayed the core that ended last, which is of this part, in a phase from `now` on.
    fn blame(&self, finish: Finish, now: u64, stolen: &mut [u64]) {
        let node = (finish.node - self.first) as usize;
        let core = (node * self.cores) as u16 + finish.core;
        let met = self.detours[self.from..].iter().take_while(|detour| detour.start < finish.time);
        let own = met.filter(|detour| detour.core == core);
        end(own, now, self.works[node], |detour, delay| stolen[usize::from(detour.source)] += delay);
    }
}
