//! The ranks of a program, the same on every node, replayed under noise.
//!
//! A rank works on its cores until its next call. A message is received at the earliest when it was sent: on the node
//! itself, and on the neighbouring nodes, from where it takes the network's time. A collective waits for all ranks of
//! all nodes. Cost: nodes times operations, in loops that the compiler vectorises, and the drawn detours.

use rayon::prelude::*;

use super::detours::Streams;
use super::halo::{DETOURS_PER_DRAW, NODES_FOR_THREADS, NODES_PER_TILE, neighbours};
use super::outcome::{Outcome, Recorder};
use super::tile::Tile;
use super::{LONGEST, PhaseEnd, Setup};
use crate::model::Model;
use crate::network::grid;
use crate::program::{Costs, Met, Op, RoundEnd, Schedule};

/// Largest number of noted times, over all nodes: 2 GiB.
const MOST_NOTED: u64 = 1 << 28;
/// Longest run of a program without noise, seconds.
const DAY: f64 = 86_400.0;

/// A replay.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    /// The program of each node.
    pub schedule: &'a Schedule,
    /// What each of its rounds costs on this number of nodes ([`Schedule::costs`]).
    pub costs: Costs,
    /// Nodes.
    pub nodes: u32,
    /// Cores of each rank, which all work until its next call.
    pub cores: u32,
    /// How often the program runs; each run starts when the previous one has ended on all nodes.
    pub repetitions: u64,
    /// Computation of a rank per run, averaged over all, nanoseconds.
    pub work: f64,
    /// Seed of all draws.
    pub seed: u64,
}

impl Replay<'_> {
    /// Returns the time of a run without noise, nanoseconds.
    #[must_use]
    pub fn quiet(&self) -> u64 {
        self.schedule.quiet(&self.costs).into_iter().fold(0, u64::saturating_add)
    }

    /// Returns its repetitions as phases of the same length.
    #[must_use]
    pub fn setup(&self) -> Setup {
        Setup {
            nodes: self.nodes,
            cores: self.schedule.ranks.saturating_mul(self.cores),
            grain: self.quiet().max(1),
            imbalance: 0.0,
            phases: self.repetitions,
            end: PhaseEnd::All { cost: 0 },
            seed: self.seed,
        }
    }

    /// Returns the expected number of draws and of operations of nodes in all repetitions, for the run time without
    /// noise.
    #[must_use]
    pub fn effort(&self, model: &Model) -> f64 {
        let operations = self.schedule.work() as f64 * f64::from(self.nodes) * self.repetitions as f64;
        // An operation takes about a tenth of the time of a draw.
        self.setup().detours(model) + operations / 10.0
    }

    fn check(&self) -> Result<Setup, String> {
        let setup = self.setup();
        let seconds = self.quiet() as f64 / 1e9;
        if seconds == 0.0 {
            return Err("the program takes no time; its ranks must compute".to_owned());
        }
        if seconds > DAY || seconds * self.repetitions as f64 > LONGEST {
            return Err(format!(
                "{} runs of the program take {seconds:.1e} s each without noise; a run may take {DAY:.0} s, and all {LONGEST:.0e} s",
                self.repetitions
            ));
        }
        setup.check()?;
        if u64::from(self.schedule.slots) * u64::from(self.nodes) > MOST_NOTED {
            return Err(format!(
                "{} messages are on their way at once on each of {} nodes; {MOST_NOTED} on all nodes are possible; \
                 take fewer nodes, or a program that receives earlier",
                self.schedule.slots, self.nodes
            ));
        }
        Ok(setup)
    }
}

/// Replays a program on all nodes under the noise of `model`; the phases of the outcome are its repetitions. The result
/// does not depend on the number of threads.
///
/// # Errors
/// If the model leaves a core no time, or the replay is out of bounds.
pub fn replay(model: &Model, replay: &Replay) -> Result<Outcome, String> {
    let setup = replay.check()?;
    let streams = Streams::new(model, setup.cores, setup.seed)?;
    Ok(Run::new(&streams, model, replay, &setup).all(&setup))
}

/// Replays a program as often as asked, or as about `most` draws allow, and at least once; returns the replay that ran. The
/// first repetition shows how many draws the others take.
///
/// # Errors
/// If one repetition needs more draws even without noise, or when [`replay`] refuses.
pub fn replay_affordable<'a>(model: &Model, asked: &Replay<'a>, most: f64) -> Result<(Replay<'a>, Outcome), String> {
    asked.check()?;
    let effort = asked.effort(model);
    if effort * 4.0 <= most / 10.0 {
        return Ok((asked.clone(), replay(model, asked)?));
    }
    let each = effort / asked.repetitions as f64;
    if each > most {
        return Err(format!(
            "one run of the program on {} nodes takes about {each:.1e} draws, more than {most:.1e}; allow more of them, \
             or take fewer nodes or a shorter program",
            asked.nodes
        ));
    }
    let with = |repetitions| Replay { repetitions, ..asked.clone() };
    let first = replay(model, &with(1))?;
    let possible = (most / (each * first.slowdown())) as u64;
    match possible.min(asked.repetitions) {
        0 | 1 => Ok((with(1), first)),
        some => Ok((with(some), replay(model, &with(some))?)),
    }
}

/// A run in progress.
struct Run<'a> {
    streams: &'a Streams,
    replay: &'a Replay<'a>,
    parts: Vec<Part>,
    /// When each node sends a message, and when it has those of its neighbours.
    sent: Vec<u64>,
    there: Vec<u64>,
    grid: [u32; 3],
    sources: usize,
}

/// Consecutive nodes.
struct Part {
    tile: Tile,
    nodes: usize,
    /// Time of each rank, by rank, then node.
    clocks: Vec<u64>,
    /// Noted times, by slot, then node.
    noted: Vec<u64>,
    works: Vec<u64>,
    ends: Vec<u64>,
    /// What delayed ranks since the last synchronisation of all: the index of the rank's clock, the source, and for how
    /// long.
    delays: Vec<(u32, u8, u64)>,
    /// The same by source, in sections with messages: a delay may reach any other rank.
    sums: Vec<u64>,
}

impl Part {
    fn new(streams: &Streams, nodes: std::ops::Range<u32>, replay: &Replay, cell: u64, sources: usize) -> Part {
        let (count, schedule) = (nodes.len(), replay.schedule);
        Part {
            tile: Tile::new(streams, nodes, schedule.ranks, replay.cores, cell),
            nodes: count,
            clocks: vec![0; count * schedule.ranks as usize],
            noted: vec![0; count * schedule.slots as usize],
            works: vec![0; count],
            ends: vec![0; count],
            delays: Vec::new(),
            sums: vec![0; sources],
        }
    }

    /// Runs the operations of a round; `shared` says whether its section has messages.
    fn run(&mut self, streams: &Streams, ops: &[Op], shared: bool) {
        for op in ops {
            match *op {
                Op::Work { rank, ns } => self.work(streams, rank as usize, ns, shared),
                Op::Note { rank, slot } => {
                    let from = rank as usize * self.nodes;
                    self.noted[slot as usize * self.nodes..][..self.nodes]
                        .copy_from_slice(&self.clocks[from..][..self.nodes]);
                }
            }
        }
    }

    fn work(&mut self, streams: &Streams, rank: usize, ns: u64, shared: bool) {
        let Part { tile, nodes, clocks, works, ends, delays, sums, .. } = self;
        let base = rank * *nodes;
        works.fill(ns);
        tile.each(streams, rank, clocks, works, ends, |node, source, delay| match shared {
            true => sums[usize::from(source)] += delay,
            false => delays.push(((base + node) as u32, source, delay)),
        });
        clocks[base..][..*nodes].copy_from_slice(ends);
    }

    fn noted(&self, met: &Met) -> &[u64] {
        &self.noted[met.slot as usize * self.nodes..][..self.nodes]
    }

    /// Lets the rank wait until these times.
    fn wait(&mut self, met: &Met, until: &[u64]) {
        let clocks = &mut self.clocks[met.rank as usize * self.nodes..][..self.nodes];
        clocks.iter_mut().zip(until).for_each(|(clock, &until)| *clock = until.max(*clock));
    }

    /// As `wait`, until the times noted on the node itself.
    fn wait_here(&mut self, met: &Met) {
        for node in 0..self.nodes {
            let until = self.noted[met.slot as usize * self.nodes + node];
            let clock = &mut self.clocks[met.rank as usize * self.nodes + node];
            *clock = until.max(*clock);
        }
    }

    /// The latest time of a rank, and its index.
    fn last(&self) -> (u64, usize) {
        let latest = self.clocks.iter().copied().max().unwrap_or(0);
        (latest, self.clocks.iter().position(|&clock| clock == latest).unwrap_or(0))
    }

    /// Lets all ranks start at `now`.
    fn start(&mut self, now: u64) {
        self.clocks.fill(now);
        self.delays.clear();
        self.sums.fill(0);
    }
}

impl<'a> Run<'a> {
    fn new(streams: &'a Streams, model: &Model, replay: &'a Replay<'a>, setup: &Setup) -> Run<'a> {
        let sources = model.sources.len();
        let ends: Vec<u32> = (0..setup.nodes).step_by(NODES_PER_TILE).chain([setup.nodes]).collect();
        let cell = setup.cell(model, setup.nodes as usize, DETOURS_PER_DRAW);
        let part = |pair: &[u32]| Part::new(streams, pair[0]..pair[1], replay, cell, sources);
        let parts = ends.par_windows(2).map(part).collect();
        let (sent, there) = (vec![0; setup.nodes as usize], vec![0; setup.nodes as usize]);
        Run { streams, replay, parts, sent, there, grid: grid(setup.nodes), sources }
    }

    /// Runs all repetitions.
    fn all(mut self, setup: &Setup) -> Outcome {
        let replay = self.replay;
        let quiet = replay.schedule.quiet(&replay.costs);
        let shared = sections_with_messages(replay.schedule);
        let mut recorder = Recorder::new(setup, self.sources, &[], 0);
        recorder.whole(replay.quiet() * replay.repetitions, replay.work * replay.repetitions as f64);
        let mut now = 0;
        for _ in 0..replay.repetitions {
            let begun = now;
            let mut section = 0;
            for (round, &cost) in replay.schedule.rounds.iter().zip(&replay.costs) {
                self.compute(&round.ops, shared[section]);
                match &round.end {
                    RoundEnd::Messages { met, .. } => met.iter().for_each(|met| self.meet(met, cost)),
                    RoundEnd::Collective { .. } | RoundEnd::Finish => {
                        let next = self.gather(&mut recorder, now + quiet[section], cost);
                        (now, section) = (next, section + 1);
                    }
                }
            }
            recorder.phase(now - begun);
        }
        // A message that is sent before a synchronisation and received after it may make up for a delay.
        recorder.settle(now.saturating_sub(replay.quiet() * replay.repetitions) as f64);
        recorder.done(now)
    }

    fn compute(&mut self, ops: &[Op], shared: bool) {
        let streams = self.streams;
        match self.replay.nodes < NODES_FOR_THREADS {
            true => self.parts.iter_mut().for_each(|part| part.run(streams, ops, shared)),
            false => self.parts.par_iter_mut().for_each(|part| part.run(streams, ops, shared)),
        }
    }

    /// Lets a rank of each node wait for a noted time.
    fn meet(&mut self, met: &Met, cost: u64) {
        if !met.receives || self.replay.nodes == 1 {
            return self.parts.iter_mut().for_each(|part| part.wait_here(met));
        }
        for (part, sent) in self.parts.iter().zip(self.sent.chunks_mut(NODES_PER_TILE)) {
            sent.copy_from_slice(part.noted(met));
        }
        neighbours(cost, self.grid, &self.sent, &mut self.there);
        let there = self.there.chunks(NODES_PER_TILE);
        self.parts.iter_mut().zip(there).for_each(|(part, there)| part.wait(met, there));
    }

    /// Lets all ranks of all nodes wait for each other, then for `cost`; returns when they continue. Without noise this is
    /// at `expected`.
    fn gather(&mut self, recorder: &mut Recorder, expected: u64, cost: u64) -> u64 {
        let lasts = self.parts.iter().map(Part::last).enumerate();
        let (part, (time, index)) =
            lasts.max_by_key(|&(part, (time, _))| (time, std::cmp::Reverse(part))).expect("there are nodes");
        let next = time + cost;
        let parts = &self.parts;
        recorder.blame(next.saturating_sub(expected) as f64, |stolen| {
            let own = parts[part].delays.iter().filter(|delay| delay.0 as usize == index);
            own.for_each(|&(_, source, delay)| stolen[usize::from(source)] += delay);
            let sums = parts.iter().flat_map(|part| part.sums.iter().enumerate());
            sums.for_each(|(source, delay)| stolen[source] += delay);
        });
        self.parts.iter_mut().for_each(|part| part.start(next));
        next
    }
}

/// For each section from one synchronisation of all ranks to the next, whether it has messages.
fn sections_with_messages(schedule: &Schedule) -> Vec<bool> {
    let mut sections = vec![false];
    for round in &schedule.rounds {
        match round.end {
            RoundEnd::Messages { .. } => sections.iter_mut().rev().take(1).for_each(|section| *section = true),
            RoundEnd::Collective { .. } | RoundEnd::Finish => sections.push(false),
        }
    }
    sections
}
