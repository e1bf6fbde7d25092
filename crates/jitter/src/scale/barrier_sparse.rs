//! Phases that all cores end together, when most detours are so short that they need not be drawn.
//!
//! Long detours are drawn; the effect of the others is bounded ([`super::bounds`]). So each core has a time by which it
//! certainly finishes. Only cores that may be last by these bounds are examined with all their detours.

use std::ops::Range;

use rayon::prelude::*;

use super::Setup;
use super::barrier::{CORES_PER_PART, Finish};
use super::bounds::Bounds;
use super::detours::{Detour, Position, Streams, end};
use super::outcome::{Outcome, Recorder};
use crate::model::Model;

/// Detours of a part drawn at a time.
const DETOURS_PER_PART: f64 = 4096.0;

/// Parts that a thread processes per task.
const PARTS: usize = 32;

/// A run in progress.
pub(super) struct Run {
    bounds: Bounds,
    rest: Streams,
    long: Streams,
    parts: Vec<Part>,
    nodes: usize,
    horizon: u64,
    cell: u64,
    sources: usize,
}

/// Consecutive nodes. Cores are numbered through all nodes of the part.
struct Part {
    first: u32,
    cores: usize,
    positions: Vec<Position>,
    /// For each core, until when long detours occupy it at the latest.
    taken: Vec<u64>,
    /// Long detours by start; those before `from` are over, and remain for later ones that depend on them.
    detours: Vec<Long>,
    from: usize,
    /// Possible delay of each core in the current phase; 0 between phases.
    delays: Vec<u64>,
}

/// A detour before queueing, and the latest time at which it occupies its core.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Long {
    detour: Detour,
    from: u64,
    until: u64,
}

impl Run {
    pub(super) fn new(streams: &Streams, bounds: Bounds, model: &Model, setup: &Setup) -> Run {
        let (long, rest) = streams.split(&bounds.drawn);
        let nodes = (CORES_PER_PART / setup.cores as usize).max(1);
        let firsts: Vec<u32> = (0..setup.nodes).step_by(nodes).collect();
        let part =
            |&first: &u32| Part::new(&long, first..(first + nodes as u32).min(setup.nodes), setup.cores as usize);
        let parts = firsts.par_iter().map(part).collect();
        let drawn = model.sources.iter().zip(&bounds.drawn).filter(|(_, drawn)| **drawn);
        let few = Model { sources: drawn.map(|(source, _)| source.clone()).collect(), ..model.clone() };
        let cell = setup.cell(&few, nodes.min(setup.nodes as usize), DETOURS_PER_PART);
        Run { bounds, rest, long, parts, nodes, horizon: 0, cell, sources: model.sources.len() }
    }

    /// Runs all phases, each of which ends with an operation of `cost` nanoseconds.
    pub(super) fn all(mut self, setup: &Setup, cost: u64) -> Outcome {
        let mut recorder = Recorder::new(setup, self.sources, &setup.works(), setup.grain + cost);
        let mut now = 0;
        for _ in 0..setup.phases {
            let (last, until) = self.last(now, setup.grain);
            if last.time > now + setup.grain {
                let part = &self.parts[last.node as usize / self.nodes];
                let queue = part.queue(&self.rest, last, now.saturating_sub(self.bounds.back)..until);
                let more = (last.time - now - setup.grain) as f64;
                let steals = |stolen: &mut [u64]| {
                    end(&queue, now, setup.grain, |detour, delay| stolen[usize::from(detour.source)] += delay);
                };
                recorder.blame(more, steals);
            }
            recorder.phase(last.time + cost - now);
            now = last.time + cost;
        }
        recorder.done(now)
    }

    /// The last core, and the time by which it certainly finishes.
    fn last(&mut self, now: u64, work: u64) -> (Finish, u64) {
        let quiet = now + self.bounds.stretched(work + self.bounds.slack);
        let top = self.top(now, quiet);
        let until = top.time;
        let mut last = self.exact(top, now, work, until);
        let least = last.time;
        let reaching = |part: &mut Part| part.reaching(now, quiet, until, least);
        let mut others: Vec<Finish> = self.parts.par_iter_mut().with_min_len(PARTS).flat_map_iter(reaching).collect();
        others.sort_unstable_by_key(|core| std::cmp::Reverse((core.time, core.node, core.core)));
        for core in others {
            if core.time < last.time {
                break;
            }
            last = last.later(self.exact(core, now, work, until));
        }
        if last.time > quiet {
            return (last, until);
        }
        // Any core may be the last one.
        let of = |part: &Part| part.every(&self.rest, &self.bounds, now, work, until);
        (self.parts.par_iter().map(of).reduce(|| last, Finish::later), until)
    }

    /// The core that may finish last, and when at the latest. All others finish by `quiet`.
    fn top(&mut self, now: u64, quiet: u64) -> Finish {
        let mut until = quiet;
        loop {
            while self.horizon < until {
                self.extend(now);
            }
            let none = Finish { time: 0, node: u32::MAX, core: 0 };
            let latest = self.parts.par_iter_mut().with_min_len(PARTS).map(|part| part.latest(now, quiet));
            let top = latest.reduce(|| none, Finish::later);
            if top.time <= self.horizon {
                return top;
            }
            until = top.time;
        }
    }

    /// When a core finishes, which is known to be by `until`.
    fn exact(&self, core: Finish, now: u64, work: u64, until: u64) -> Finish {
        let part = &self.parts[core.node as usize / self.nodes];
        let queue = part.queue(&self.rest, core, now.saturating_sub(self.bounds.back)..until);
        Finish { time: end(&queue, now, work, ignore), ..core }
    }

    /// Draws long detours in the next time window.
    fn extend(&mut self, now: u64) {
        let to = self.horizon + self.cell;
        let (long, bounds) = (&self.long, &self.bounds);
        self.parts.par_iter_mut().for_each(|part| part.extend(long, bounds, now, self.horizon..to));
        self.horizon = to;
    }
}

impl Part {
    fn new(long: &Streams, nodes: Range<u32>, cores: usize) -> Part {
        let count = nodes.len() * cores;
        Part {
            first: nodes.start,
            cores,
            positions: nodes.map(|node| long.position(node)).collect(),
            taken: vec![0; count],
            detours: Vec::new(),
            from: 0,
            delays: vec![0; count],
        }
    }

    /// Draws detours that start in `time`; drops those that no longer matter from `now` on.
    fn extend(&mut self, long: &Streams, bounds: &Bounds, now: u64, time: Range<u64>) {
        self.detours.retain(|long| long.until + bounds.back > now);
        let mut plain = Vec::new();
        for (i, position) in self.positions.iter_mut().enumerate() {
            plain.clear();
            long.extend(self.first + i as u32, position, time.start, time.end, &mut plain);
            plain.sort_unstable();
            for detour in &plain {
                let number = i * self.cores + usize::from(detour.core);
                let from = detour.start.max(self.taken[number]);
                let until = from + bounds.stretched(u64::from(detour.length));
                self.taken[number] = until;
                self.detours.push(Long { detour: Detour { core: number as u16, ..*detour }, from, until });
            }
        }
        self.detours.sort_unstable();
        self.from = 0;
    }

    /// The core that may finish last of all; others finish by `quiet`.
    fn latest(&mut self, now: u64, quiet: u64) -> Finish {
        while self.detours.get(self.from).is_some_and(|long| long.until <= now) {
            self.from += 1;
        }
        let mut last = Finish { time: quiet, node: self.first, core: 0 };
        let mut seen = 0;
        for long in &self.detours[self.from..] {
            if long.detour.start >= last.time {
                break;
            }
            seen += 1;
            let number = long.detour.core;
            let delay = &mut self.delays[usize::from(number)];
            if long.until > now && long.from < quiet + *delay {
                *delay += long.until - long.from.max(now);
                let (time, delay) = (quiet + *delay, *delay);
                if delay > last.time - quiet {
                    last = Finish { time, ..self.core(number) };
                }
            }
        }
        self.clear(seen);
        last
    }

    /// Cores that long detours before `until` may make finish at `time` or later, and when at the latest; may contain
    /// duplicates.
    fn reaching(&mut self, now: u64, quiet: u64, until: u64, time: u64) -> Vec<Finish> {
        let mut cores = Vec::new();
        let mut seen = 0;
        for long in self.detours[self.from..].iter().take_while(|long| long.detour.start < until) {
            seen += 1;
            let number = long.detour.core;
            let delay = &mut self.delays[usize::from(number)];
            if long.until > now && long.from < quiet + *delay {
                *delay += long.until - long.from.max(now);
                let end = quiet + *delay;
                if end >= time {
                    cores.push(Finish { time: end, ..self.core(number) });
                }
            }
        }
        self.clear(seen);
        cores
    }

    /// Resets the delays of the first `seen` detours.
    fn clear(&mut self, seen: usize) {
        for long in &self.detours[self.from..][..seen] {
            self.delays[usize::from(long.detour.core)] = 0;
        }
    }

    /// The core with a number in the part.
    fn core(&self, number: u16) -> Finish {
        let (node, core) = (usize::from(number) / self.cores, usize::from(number) % self.cores);
        Finish { time: 0, node: self.first + node as u32, core: core as u16 }
    }

    /// All detours of a core that start in `time`, queued up.
    fn queue(&self, rest: &Streams, core: Finish, time: Range<u64>) -> Vec<Detour> {
        let number = (core.node - self.first) as usize * self.cores + usize::from(core.core);
        let first = self.detours.partition_point(|long| long.detour.start < time.start);
        let there = self.detours[first..].iter().map(|long| long.detour).take_while(|d| d.start < time.end);
        let own = there.filter(|detour| usize::from(detour.core) == number);
        let mut queue = rest.of_core(core.node, core.core, time.clone());
        queue.extend(own.map(|detour| Detour { core: core.core, ..detour }));
        in_order(&mut queue);
        queue
    }

    /// The last of all cores, examining each.
    fn every(&self, rest: &Streams, bounds: &Bounds, now: u64, work: u64, until: u64) -> Finish {
        let (back, back_rest) = (now.saturating_sub(bounds.back), now.saturating_sub(bounds.back_rest));
        let mut struck = vec![false; self.taken.len()];
        let matters = |long: &&Long| (back..until).contains(&long.detour.start);
        self.detours.iter().filter(matters).for_each(|long| struck[usize::from(long.detour.core)] = true);
        let mut last = Finish { time: now + work, node: self.first, core: 0 };
        let (mut all, mut queues) = (Vec::new(), vec![Vec::new(); self.cores]);
        for i in 0..self.positions.len() {
            all.clear();
            queues.iter_mut().for_each(Vec::clear);
            let node = self.first + i as u32;
            rest.extend(node, &mut Position::default(), back_rest, until, &mut all);
            all.iter().for_each(|detour| queues[usize::from(detour.core)].push(*detour));
            for (core, queue) in queues.iter_mut().enumerate() {
                let core = Finish { time: 0, node, core: core as u16 };
                let time = if struck[i * self.cores + usize::from(core.core)] {
                    end(&self.queue(rest, core, back..until), now, work, ignore)
                } else {
                    in_order(queue);
                    end(&*queue, now, work, ignore)
                };
                last = last.later(Finish { time, ..core });
            }
        }
        last
    }
}

/// Which source delayed a core does not matter.
fn ignore(_: &Detour, _: u64) {}

/// Queues up the detours of a core.
fn in_order(detours: &mut [Detour]) {
    detours.sort_unstable();
    let mut free = 0;
    for detour in detours {
        detour.start = detour.start.max(free);
        free = detour.end();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PhaseEnd, barrier};
    use super::*;

    fn model(rates: [f64; 3]) -> Model {
        let source = |cause: &str, rate: f64, length: &str, on: &str| {
            format!(
                "[[noise]]\ncause = \"{cause}\"\narrival = {{ kind = \"poisson\", rate = {rate} }}\nlength = {{ {length} }}\n\
                 on = {on}\nsource = \"test\"\nevidence = \"assumed\"\n"
            )
        };
        let text = [
            "version = 1\ntitle = \"t\"\n[[noise]]\ncause = \"tick\"\narrival = { kind = \"periodic\", period = \"300us\" }\n\
             length = { kind = \"uniform\", at_least = \"1us\", at_most = \"4us\" }\nsource = \"test\"\nevidence = \"assumed\"\n"
                .to_owned(),
            "[[noise]]\ncause = \"clock\"\narrival = { kind = \"periodic\", period = \"3ms\", missing = 0.3 }\non = \"node\"\n\
             length = { kind = \"fixed\", value = \"30us\" }\nsource = \"test\"\nevidence = \"assumed\"\n"
                .to_owned(),
            source("interrupts", rates[0], "kind = \"exponential\", mean = \"4us\", at_most = \"90us\"", "\"cores\""),
            source("threads", rates[1], "kind = \"two-point\", short = \"9us\", long = \"400us\", long_share = 0.2", "[0, 2]"),
            source("daemons", rates[2], "kind = \"pareto\", shape = 1.3, at_least = \"200us\", at_most = \"6ms\"", "\"node\""),
        ];
        crate::model::parse(&text.concat(), "t", None).unwrap()
    }

    /// Takes seven seconds of processor time.
    mod slow {
        use super::*;

        #[test]
        #[ignore = "make slow-test runs it"]
        fn detours_not_drawn_change_nothing() {
            let mut split = 0;
            for (nodes, rates) in
                [(1, [50.0, 20.0, 400.0]), (3, [900.0, 5.0, 90.0]), (12, [300.0, 9.0, 300.0]), (64, [60.0, 2.0, 9.0])]
            {
                let model = model(rates);
                for (grain, seed) in [(40_000, 1), (700_000, 2), (5_000_000, 3)] {
                    let phase_end = PhaseEnd::All { cost: 1500 };
                    let setup = Setup { nodes, cores: 3, grain, imbalance: 0.0, phases: 400, end: phase_end, seed };
                    let streams = Streams::new(&model, 3, seed).unwrap();
                    let all = barrier::Run::new(streams.clone(), &model, &setup).all(&setup, 1500);
                    // By descending length: daemons, then threads.
                    for long in [&[4][..], &[4, 3], &[4, 3, 2]] {
                        let Some(bounds) = Bounds::split(&model, &setup, long) else { continue };
                        let few = Run::new(&streams, bounds, &model, &setup).all(&setup, 1500);
                        assert_eq!(few, all, "{setup:?} {long:?}");
                        split += 1;
                    }
                }
            }
            assert_eq!(split, 36, "all can be split");
        }
    }
}
