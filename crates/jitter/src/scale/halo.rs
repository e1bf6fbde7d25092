//! Phases in which nodes wait only for some other nodes (halo exchange, panels): each node has its own clock.
//!
//! Cost: nodes × phases × partners, in loops that the compiler vectorises.

use rayon::prelude::*;

use super::detours::Streams;
use super::outcome::{Outcome, Recorder};
use super::tile::Tile;
use super::{PhaseEnd, Setup};
use crate::model::Model;

/// Nodes that a thread processes together.
pub(super) const NODES_PER_TILE: usize = 256;
/// Number of nodes from which several threads are used.
pub(super) const NODES_FOR_THREADS: u32 = 2048;

/// Detours drawn at a time, over all nodes.
pub(super) const DETOURS_PER_DRAW: f64 = 4e6;

/// A run in progress.
pub(super) struct Run {
    streams: Streams,
    tiles: Vec<Tile>,
    /// Computation of each node.
    works: Vec<u64>,
    sources: usize,
}

impl Run {
    pub(super) fn new(streams: Streams, model: &Model, setup: &Setup) -> Run {
        let ends: Vec<u32> = (0..setup.nodes).step_by(NODES_PER_TILE).chain([setup.nodes]).collect();
        let cell = setup.cell(model, setup.nodes as usize, DETOURS_PER_DRAW);
        let tile = |pair: &[u32]| Tile::new(&streams, pair[0]..pair[1], 1, setup.cores, cell);
        let tiles = ends.par_windows(2).map(tile).collect();
        Run { streams, tiles, works: setup.works(), sources: model.sources.len() }
    }

    /// Runs all phases; the run ends with the last node.
    pub(super) fn all(mut self, setup: &Setup) -> Outcome {
        let quiet = if setup.imbalance > 0.0 { quiet(setup, &self.works) } else { plain(setup) };
        let mut recorder = Recorder::new(setup, self.sources, &self.works, 0);
        let nodes = setup.nodes as usize;
        let (mut starts, mut ends) = (vec![0; nodes], vec![0; nodes]);
        let (mut before, mut worked) = (0, 0.0);
        let mut works = self.works.clone();
        let sum = |works: &[u64]| works.iter().map(|&work| work as f64).sum::<f64>();
        let mut each = sum(&works);
        let mut stolen = vec![vec![0; self.sources]; self.tiles.len()];
        for phase in 0..setup.phases {
            shrink(setup, phase, &self.works, &mut works);
            if matches!(setup.end, PhaseEnd::Panel { .. }) {
                each = sum(&works);
            }
            worked += each;
            self.compute(setup, &starts, &works, &mut ends, &mut stolen);
            let now = start_times(setup, phase, &ends, &mut starts);
            recorder.phase(now - before);
            before = now;
        }
        let all = |source: usize| stolen.iter().map(|tile| tile[source]).sum::<u64>();
        let shares: Vec<u64> = (0..self.sources).map(all).collect();
        recorder.whole(quiet, worked / nodes as f64);
        recorder.blame(before.saturating_sub(quiet) as f64, |stolen| stolen.copy_from_slice(&shares));
        recorder.done(before)
    }

    fn compute(&mut self, setup: &Setup, starts: &[u64], works: &[u64], ends: &mut [u64], stolen: &mut [Vec<u64>]) {
        let streams = &self.streams;
        type Item<'a> = ((((&'a mut Tile, &'a [u64]), &'a [u64]), &'a mut [u64]), &'a mut Vec<u64>);
        let of = |((((tile, starts), works), ends), stolen): Item| {
            tile.each(streams, 0, starts, works, ends, |_, source, delay| stolen[usize::from(source)] += delay);
        };
        const N: usize = NODES_PER_TILE;
        if setup.nodes < NODES_FOR_THREADS {
            let each = self.tiles.iter_mut().zip(starts.chunks(N)).zip(works.chunks(N));
            return each.zip(ends.chunks_mut(N)).zip(stolen).for_each(of);
        }
        let each = self.tiles.par_iter_mut().zip(starts.par_chunks(N)).zip(works.par_chunks(N));
        each.zip(ends.par_chunks_mut(N)).zip(stolen).with_min_len(64).for_each(of);
    }
}

/// Remaining work of each node in a phase.
fn shrink(setup: &Setup, phase: u64, all: &[u64], works: &mut [u64]) {
    if let PhaseEnd::Panel { .. } = setup.end {
        let factor = panel_share(phase, setup.phases);
        works.iter_mut().zip(all).for_each(|(work, &all)| *work = ((all as f64 * factor).round() as u64).max(1));
    }
}

/// Returns the work of a phase relative to the mean: three times the square of the remaining part.
pub(super) fn panel_share(phase: u64, phases: u64) -> f64 {
    let left = 1.0 - (phase as f64 + 0.5) / phases as f64;
    3.0 * left * left
}

/// Computes when each node starts its next phase; returns the latest of these times.
fn start_times(setup: &Setup, phase: u64, ends: &[u64], starts: &mut [u64]) -> u64 {
    match setup.end {
        PhaseEnd::Neighbours { cost, grid } => neighbours(cost, grid, ends, starts),
        PhaseEnd::Panel { cost, grid } => panel(cost, grid, phase, ends, starts),
        PhaseEnd::Some { halo, grid, every, .. } if !(phase + 1).is_multiple_of(every) => {
            neighbours(halo, grid, ends, starts)
        }
        PhaseEnd::All { cost } | PhaseEnd::Some { cost, .. } => {
            let now = last(ends) + cost;
            starts.fill(now);
            now
        }
    }
}

/// The later of two times below 2^62 ns. Compared as floating-point numbers: these bit patterns have the same order,
/// and SSE2 can compare several at once, unlike 64-bit integers.
fn later(a: u64, b: u64) -> u64 {
    let number = |time: u64| f64::from_bits(time | 1 << 62);
    if number(a) > number(b) { a } else { b }
}

/// The latest of some times.
fn last(times: &[u64]) -> u64 {
    let mut latest = [0; 8];
    let eights = times.chunks_exact(8);
    let rest = eights.remainder().iter().copied().fold(0, later);
    for eight in eights {
        for i in 0..8 {
            latest[i] = later(latest[i], eight[i]);
        }
    }
    latest.into_iter().fold(rest, later)
}

/// Computes when each node has the messages of its neighbours, from when each sends them; returns the latest time.
pub(super) fn neighbours(cost: u64, grid: [u32; 3], ends: &[u64], starts: &mut [u64]) -> u64 {
    let [nx, ny, nz] = grid.map(|n| n as usize);
    let row = |y: usize, z: usize| &ends[(z * ny + y) * nx..][..nx];
    let one = |(number, out): (usize, &mut [u64])| {
        let (y, z) = (number % ny, number / ny);
        let own = row(y, z);
        let others = [row((y + 1) % ny, z), row((y + ny - 1) % ny, z), row(y, (z + 1) % nz), row(y, (z + nz - 1) % nz)];
        for x in 0..nx {
            let far = later(later(others[0][x], others[1][x]), later(others[2][x], others[3][x]));
            out[x] = later(own[x], far) + cost;
        }
        for x in 1..nx {
            out[x] = later(out[x], own[x - 1] + cost);
        }
        for x in 1..nx {
            out[x - 1] = later(out[x - 1], own[x] + cost);
        }
        out[0] = later(out[0], own[nx - 1] + cost);
        out[nx - 1] = later(out[nx - 1], own[0] + cost);
        last(out)
    };
    if ends.len() < NODES_FOR_THREADS as usize {
        starts.chunks_mut(nx).enumerate().map(one).fold(0, u64::max)
    } else {
        starts.par_chunks_mut(nx).enumerate().with_min_len(4096 / nx + 1).map(one).reduce(|| 0, u64::max)
    }
}

fn panel(cost: u64, [rows, columns]: [u32; 2], phase: u64, ends: &[u64], starts: &mut [u64]) -> u64 {
    let rows = rows as usize;
    let owner = (phase % u64::from(columns)) as usize;
    let ready = last(&ends[owner * rows..][..rows]) + cost;
    let column = |(ends, starts): (&[u64], &mut [u64])| {
        let now = last(ends).max(ready);
        starts.fill(now);
        now
    };
    ends.chunks(rows).zip(starts.chunks_mut(rows)).map(column).fold(0, u64::max)
}

/// Nanoseconds without noise and imbalance.
fn plain(setup: &Setup) -> u64 {
    match setup.end {
        PhaseEnd::All { cost } | PhaseEnd::Neighbours { cost, .. } => setup.phases * (setup.grain + cost),
        PhaseEnd::Some { cost, halo, every, .. } => {
            let collectives = setup.phases / every;
            setup.phases * setup.grain + collectives * cost + (setup.phases - collectives) * halo
        }
        PhaseEnd::Panel { cost, .. } => {
            let work = |phase| ((setup.grain as f64 * panel_share(phase, setup.phases)).round() as u64).max(1);
            (0..setup.phases).map(|phase| work(phase) + cost).sum()
        }
    }
}

/// Nanoseconds without noise, with imbalance.
fn quiet(setup: &Setup, all: &[u64]) -> u64 {
    let mut works = all.to_vec();
    let (mut starts, mut ends) = (vec![0; all.len()], vec![0; all.len()]);
    for phase in 0..setup.phases {
        shrink(setup, phase, all, &mut works);
        ends.iter_mut().zip(&starts).zip(&works).for_each(|((end, start), work)| *end = start + work);
        start_times(setup, phase, &ends, &mut starts);
    }
    starts.into_iter().max().unwrap_or(0)
}
