//! The detours of a node, in order, from counter-based random draws: independent of whatever else is simulated.

use std::ops::Range;
use std::sync::Arc;

use crate::model::{Arrival, Correlation, Length, Lengths, Model, Phase, Source, Target, Trace};
use crate::random::Stream;

/// A detour, before or after queueing behind earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Detour {
    /// Start, nanoseconds.
    pub start: u64,
    /// Core in the node.
    pub core: u16,
    /// Source in the model.
    pub source: u8,
    /// Length, nanoseconds.
    pub length: u32,
}

impl Detour {
    /// Returns the end, nanoseconds.
    #[must_use]
    pub fn end(self) -> u64 {
        self.start + u64::from(self.length)
    }
}

/// Draws of a stream: the first ones place it, the others belong to its detours.
const PLACE: u64 = 0;
const PLACE_FURTHER: u64 = 1;
const PER_DETOUR: u64 = 4;

/// Draw of a cell: its number of detours.
const COUNT: u64 = 0;
/// Approximate mean number of detours per cell.
const PER_CELL: f64 = 4.0;

/// Index of the draw for the gap of a stream's detour `n`.
fn gap_draw(n: u64) -> u64 {
    PER_DETOUR * (n + 1)
}

fn core_draw(n: u64) -> u64 {
    PER_DETOUR * (n + 1) + 1
}

fn length_draw(n: u64) -> u64 {
    PER_DETOUR * (n + 1) + 2
}

/// Rounds a non-negative number to the nearest integer. The library's rounding is a call; conversion to signed is one
/// instruction.
fn nearest(x: f64) -> u64 {
    (x + 0.5) as i64 as u64
}

/// When a core with these detours, each of which starts after the previous one, finishes `work` started at `now`.
/// `delayed` receives each detour that delays it, and by how much.
pub(super) fn end<'a>(
    detours: impl IntoIterator<Item = &'a Detour>,
    now: u64,
    work: u64,
    mut delayed: impl FnMut(&Detour, u64),
) -> u64 {
    let mut end = now + work;
    for detour in detours.into_iter().filter(|detour| detour.end() > now) {
        if detour.start >= end {
            break;
        }
        let delay = detour.end() - detour.start.max(now);
        delayed(detour, delay);
        end += delay;
    }
    end
}

/// What a stream's detours strike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strikes {
    /// The core that the stream belongs to.
    Own,
    /// A random core.
    Drawn,
    /// All cores.
    All,
}

/// Inter-arrival times, nanoseconds.
#[derive(Clone, Debug)]
enum Times {
    Periodic {
        period: f64,
        phase: Phase,
        missing: f64,
    },
    Exponential {
        mean: f64,
    },
    /// Poisson arrivals in cells of a fixed length, with the distribution of the number per cell: any time can be drawn
    /// independently.
    Cells {
        cell: u64,
        chances: Vec<f64>,
    },
    Least {
        least: f64,
        beyond: f64,
    },
    Even {
        least: f64,
        most: f64,
    },
    Trace(Arc<Replay>),
}

impl Times {
    /// Poisson arrivals with this mean time between them.
    fn cells(mean: f64) -> Times {
        let cell = (PER_CELL * mean).ceil().min(1e18) as u64;
        let here = cell as f64 / mean;
        let terms = std::iter::successors(Some((0u32, (-here).exp())), |&(k, term)| {
            let next = (k + 1, term * here / f64::from(k + 1));
            (next.1 > 1e-18).then_some(next)
        });
        let chances = terms.scan(0.0, |sum, (_, term)| {
            *sum += term;
            Some(*sum)
        });
        Times::Cells { cell, chances: chances.collect() }
    }
}

/// A recording: the detours of its cores, from all sources that are parts of it.
#[derive(Clone, Debug)]
struct Replay {
    duration: u64,
    /// Start, length and source of each detour, by core, ascending.
    cores: Vec<Vec<(u64, u32, u8)>>,
}

/// A source of noise, prepared for drawing.
#[derive(Clone, Debug)]
struct Plan {
    number: u8,
    draws: Stream,
    times: Times,
    length: Length,
    cores: Vec<u16>,
    strikes: Strikes,
    correlation: Correlation,
    same_length: bool,
}

/// All sources of a model on nodes of a given size.
#[derive(Clone, Debug)]
pub struct Streams {
    plans: Vec<Plan>,
}

/// Position of a node's sequential streams: next arrival, and number of earlier ones.
#[derive(Clone, Debug, Default)]
pub struct Position {
    next: Vec<u64>,
    count: Vec<u32>,
}

impl Streams {
    /// Returns the streams of `model` on nodes of `cores` cores.
    ///
    /// # Errors
    /// See [`Model::check`].
    pub fn new(model: &Model, cores: u32, seed: u64) -> Result<Streams, String> {
        model.check(cores)?;
        let plan = |(i, source)| Plan::new(i, source, cores, Stream::new(seed).of(i as u64));
        let mut plans: Vec<Plan> = Vec::new();
        for (i, source) in model.sources.iter().enumerate() {
            match source.arrival.trace().and_then(|trace| same_recording(&model.sources[..i], source, trace)) {
                Some(first) => plans
                    .iter_mut()
                    .filter(|plan| usize::from(plan.number) == first)
                    .for_each(|plan| plan.join(i, source)),
                None => plans.push(plan((i, source))),
            }
        }
        Ok(Streams { plans })
    }

    /// Returns the streams of some sources, and those of the others. The others must allow drawing any time
    /// independently: `extend` then ignores their position.
    pub(super) fn split(&self, some: &[bool]) -> (Streams, Streams) {
        let plans =
            |which: bool| self.plans.iter().filter(move |plan| some[usize::from(plan.number)] == which).cloned();
        (Streams { plans: plans(true).collect() }, Streams { plans: plans(false).collect() })
    }

    /// Returns the initial position of a node's streams.
    #[must_use]
    pub fn position(&self, node: u32) -> Position {
        let mut position = Position::default();
        for plan in self.plans.iter().filter(|plan| plan.is_sequential()) {
            for index in 0..plan.stream_count() {
                position.next.push(plan.first(plan.stream(node, index)));
                position.count.push(0);
            }
        }
        position
    }

    /// Appends the detours of a node that start from `from` to before `to`, unordered. `position` is at `from`.
    pub fn extend(&self, node: u32, position: &mut Position, from: u64, to: u64, out: &mut Vec<Detour>) {
        self.draw(node, None, position, from..to, out);
    }

    /// Returns the detours of a core that start in a time range, unordered, for streams that allow drawing any time
    /// independently.
    pub(super) fn of_core(&self, node: u32, core: u16, time: Range<u64>) -> Vec<Detour> {
        let mut own = Vec::new();
        self.draw(node, Some(core), &mut Position::default(), time, &mut own);
        own.retain(|detour| detour.core == core);
        own
    }

    /// Appends the detours of a node. With a core, some detours of other cores are omitted.
    fn draw(&self, node: u32, core: Option<u16>, position: &mut Position, time: Range<u64>, out: &mut Vec<Detour>) {
        let mut at = 0;
        for plan in &self.plans {
            match &plan.times {
                Times::Periodic { period, phase, missing } => {
                    let times = (*period, *phase, *missing);
                    plan.streams_striking(core).for_each(|index| plan.periodic(node, index, times, time.clone(), out))
                }
                Times::Trace(trace) => plan.replay(node, trace, time.clone(), out),
                Times::Cells { cell, chances } => plan.cells(node, core, (*cell, chances), time.clone(), out),
                _ => {
                    for index in 0..plan.stream_count() {
                        plan.sequential(node, index, (&mut position.next[at], &mut position.count[at]), time.end, out);
                        at += 1;
                    }
                }
            }
        }
    }
}

/// The first earlier source that is part of the same recording and strikes the same cores simultaneously.
fn same_recording(before: &[Source], source: &Source, trace: &Trace) -> Option<usize> {
    let same = |other: &Source| {
        let goes_with = other.arrival.trace().is_some_and(|other| trace.goes_with(other));
        goes_with && (&other.on, other.correlation) == (&source.on, source.correlation)
    };
    before.iter().position(same)
}

impl Replay {
    fn new(number: usize, trace: &Trace) -> Replay {
        let mut replay = Replay { duration: trace.duration, cores: vec![Vec::new(); trace.cores.len()] };
        replay.join(number, trace);
        replay
    }

    /// Adds a part of the recording with the same cores.
    fn join(&mut self, number: usize, trace: &Trace) {
        for (all, detours) in self.cores.iter_mut().zip(&trace.cores) {
            all.extend(detours.iter().map(|&(start, length)| (start, length, number as u8)));
            all.sort_unstable();
        }
    }
}

impl Plan {
    fn new(number: usize, source: &Source, cores: u32, draws: Stream) -> Plan {
        let struck: Vec<u16> = match &source.on {
            Target::Cores | Target::Node => (0..cores as u16).collect(),
            Target::Chosen(chosen) => chosen.clone(),
        };
        let poisson = matches!(source.arrival, Arrival::Poisson { .. });
        let strikes = match (&source.on, source.correlation) {
            (Target::Node, _) => Strikes::Drawn,
            // Poisson arrivals on all cores are one stream with the total rate, each on a random core.
            (_, Correlation::Independent) if poisson => Strikes::Drawn,
            (_, Correlation::Independent) => Strikes::Own,
            _ => Strikes::All,
        };
        let times = match &source.arrival {
            Arrival::Periodic { period, phase, missing } => {
                Times::Periodic { period: period.0, phase: *phase, missing: *missing }
            }
            Arrival::Poisson { rate } => {
                let same_recording = strikes == Strikes::Drawn && source.on != Target::Node;
                match same_recording {
                    true => Times::cells(1e9 / (rate * struck.len() as f64)),
                    false => Times::Exponential { mean: 1e9 / rate },
                }
            }
            Arrival::Gaps { at_least, at_most: Some(most), .. } => Times::Even { least: at_least.0, most: most.0 },
            Arrival::Gaps { at_least, mean, .. } => Times::Least { least: at_least.0, beyond: mean.0 - at_least.0 },
            Arrival::Trace(trace) => Times::Trace(Arc::new(Replay::new(number, trace))),
        };
        Plan {
            number: number as u8,
            draws,
            times,
            length: source.length.clone(),
            cores: struck,
            strikes,
            correlation: source.correlation,
            same_length: source.lengths == Lengths::Same,
        }
    }

    /// Adds another part of the recording that it replays.
    fn join(&mut self, number: usize, source: &Source) {
        if let (Times::Trace(replay), Arrival::Trace(trace)) = (&mut self.times, &source.arrival) {
            Arc::make_mut(replay).join(number, trace);
        }
    }

    /// Returns whether the next arrival depends on the previous one.
    fn is_sequential(&self) -> bool {
        !matches!(self.times, Times::Periodic { .. } | Times::Cells { .. } | Times::Trace(_))
    }

    /// Number of its streams in a node.
    fn stream_count(&self) -> usize {
        if self.strikes == Strikes::Own { self.cores.len() } else { 1 }
    }

    /// Those of its streams that may strike a core; without a core, all.
    fn streams_striking(&self, core: Option<u16>) -> Range<usize> {
        match core {
            Some(core) if self.strikes == Strikes::Own => {
                let index = self.cores.iter().position(|&own| own == core);
                index.map_or(0..0, |index| index..index + 1)
            }
            _ => 0..self.stream_count(),
        }
    }

    /// The draws of a stream of a core, a node or all nodes.
    fn stream(&self, node: u32, index: usize) -> Stream {
        match (self.correlation, self.strikes) {
            (Correlation::Aligned, _) => self.draws.of(0),
            (_, Strikes::Own) => self.own(node, self.cores[index]),
            _ => self.draws.of(u64::from(node)),
        }
    }

    /// Draws of a core.
    fn own(&self, node: u32, core: u16) -> Stream {
        self.draws.of(u64::from(node) << 16 | u64::from(core))
    }

    /// Time of the first arrival. Streams are in steady state, so that nothing starts with the program.
    fn first(&self, stream: Stream) -> u64 {
        let (place, further) = (stream.unit(PLACE), stream.unit(PLACE_FURTHER));
        let time = match self.times {
            Times::Exponential { mean } => -mean * further.ln(),
            // The residual gap: uniform over the part common to all gaps, then as the tail of the gap distribution.
            Times::Least { least, beyond } if place * (least + beyond) < least => further * least,
            Times::Least { least, beyond } => least - beyond * further.ln(),
            Times::Even { least, most } if place * f64::midpoint(least, most) < least => further * least,
            Times::Even { least, most } => least + (most - least) * (1.0 - further.sqrt()),
            Times::Periodic { .. } | Times::Cells { .. } | Times::Trace(_) => 0.0,
        };
        nearest(time)
    }

    /// Nanoseconds from arrival `n` to the next.
    fn gap(&self, stream: Stream, n: u64) -> u64 {
        let u = stream.unit(gap_draw(n));
        let gap = match self.times {
            Times::Exponential { mean } => -mean * u.ln(),
            Times::Least { least, beyond } => least - beyond * u.ln(),
            Times::Even { least, most } => least + (most - least) * u,
            Times::Periodic { period, .. } => period,
            Times::Cells { .. } | Times::Trace(_) => 1.0,
        };
        nearest(gap)
    }

    /// Detours of a stream up to `to`.
    fn sequential(&self, node: u32, index: usize, position: (&mut u64, &mut u32), to: u64, out: &mut Vec<Detour>) {
        let (next, count) = position;
        if *next >= to {
            return;
        }
        let stream = self.stream(node, index);
        while *next < to {
            let n = u64::from(*count);
            self.strike(node, index, stream, n, *next, out);
            *next += self.gap(stream, n);
            *count += 1;
        }
    }

    /// Detours of a core, or of all cores, in a time range, drawn by cells.
    fn cells(
        &self,
        node: u32,
        core: Option<u16>,
        (cell, chances): (u64, &[f64]),
        range: Range<u64>,
        out: &mut Vec<Detour>,
    ) {
        if range.is_empty() {
            return;
        }
        for number in range.start / cell..=(range.end - 1) / cell {
            let stream = self.stream(node, 0).of(number);
            let even = stream.unit(COUNT);
            let count = chances.iter().take_while(|&&chance| chance <= even).count() as u64;
            for n in 0..count {
                let start = number * cell + stream.below(gap_draw(n), cell);
                if range.contains(&start) && core.is_none_or(|core| core == self.struck(stream, n)) {
                    self.strike(node, 0, stream, n, start, out);
                }
            }
        }
    }

    /// Detours of a periodic stream with a period, a phase and a share of missing periods.
    fn periodic(&self, node: u32, index: usize, times: (f64, Phase, f64), range: Range<u64>, out: &mut Vec<Detour>) {
        let (period, phase, missing) = times;
        let stream = self.stream(node, index);
        let first = if phase == Phase::Aligned { 0.0 } else { stream.unit(PLACE) * period };
        let at = |n: u64| nearest(first + n as f64 * period);
        let mut n = ((range.start as f64 - first) / period - 1.0).max(0.0) as u64;
        while at(n) < range.start {
            n += 1;
        }
        while at(n) < range.end {
            // Uses the draw that other arrivals use for the gap.
            if missing > 0.0 && stream.unit(gap_draw(n)) < missing {
                n += 1;
                continue;
            }
            self.strike(node, index, stream, n, at(n), out);
            n += 1;
        }
    }

    /// Replays a trace: each group of cores, each node, or all nodes start at their own moment. A group has as many
    /// cores as were recorded, one recorded core each, so that what struck these simultaneously strikes the group
    /// simultaneously.
    fn replay(&self, node: u32, trace: &Replay, range: Range<u64>, out: &mut Vec<Detour>) {
        let stream_count = trace.cores.len();
        for (i, &core) in self.cores.iter().enumerate() {
            let (stream, first) = match self.strikes {
                Strikes::All => (self.stream(node, 0), 0),
                // A random recorded core comes first, since a node may have fewer cores.
                _ => {
                    let group = self.own(node, self.cores[i - i % stream_count]);
                    (group, group.below(PLACE_FURTHER, stream_count as u64) as usize)
                }
            };
            let index = (first + i) % stream_count;
            let offset = stream.below(PLACE, trace.duration);
            let detours = &trace.cores[index];
            let mut round = (range.start + offset) / trace.duration;
            let mut at = detours.partition_point(|d| d.0 < (range.start + offset) % trace.duration);
            while !detours.is_empty() {
                if at == detours.len() {
                    (at, round) = (0, round + 1);
                }
                let start = round * trace.duration + detours[at].0 - offset;
                if start >= range.end {
                    break;
                }
                out.push(Detour { start, core, source: detours[at].2, length: detours[at].1 });
                at += 1;
            }
        }
    }

    /// The random core that arrival `n` of a stream strikes.
    fn struck(&self, stream: Stream, n: u64) -> u16 {
        self.cores[stream.below(core_draw(n), self.cores.len() as u64) as usize]
    }

    /// The detours of arrival `n` of a stream.
    fn strike(&self, node: u32, index: usize, stream: Stream, n: u64, start: u64, out: &mut Vec<Detour>) {
        let mut push = |core: u16, u: f64| {
            let length = nearest(self.length.quantile(u)) as u32;
            if length > 0 {
                out.push(Detour { start, core, source: self.number, length });
            }
        };
        let own = |core: u16| match self.same_length || self.correlation == Correlation::Independent {
            true => stream.unit(length_draw(n)),
            false => self.own(node, core).of(u64::MAX).unit(length_draw(n)),
        };
        match self.strikes {
            Strikes::Own => push(self.cores[index], own(self.cores[index])),
            Strikes::Drawn => {
                let core = self.struck(stream, n);
                push(core, own(core));
            }
            Strikes::All => self.cores.iter().for_each(|&core| push(core, own(core))),
        }
    }
}
