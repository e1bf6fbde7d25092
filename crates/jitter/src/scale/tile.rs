//! A tile: some nodes with their detours in the current time window.

use std::ops::Range;

use super::detours::{Detour, Position, Streams, end};

/// When and on which core the work of a group ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Finish {
    time: u64,
    core: u16,
}

/// Sentinel after a node's detours: later than any.
const NEVER: Detour = Detour { start: u64::MAX, core: 0, source: 0, length: 0 };

/// Consecutive nodes. Detours are drawn up to `horizon`; those of a core queue up.
///
/// The cores of a node form groups of equal size that work independently: the cores of a rank, or all of them. Group
/// `g` of node `n` has the index `g * nodes + n`.
pub(super) struct Tile {
    /// Number of its first node.
    number: u32,
    nodes: usize,
    cores: usize,
    /// For each core of a node, its group.
    group_of: Vec<u32>,
    groups: u32,
    horizon: u64,
    /// Step by which the horizon advances.
    cell: u64,
    positions: Vec<Position>,
    /// For each core, until when drawn detours occupy it.
    busy: Vec<u64>,
    /// Detours of all groups: those of a group in order, with `NEVER` at the end.
    detours: Vec<Detour>,
    /// Each group's first detour that may not be over yet, and its place in `detours`.
    first: Vec<Detour>,
    from: Vec<u32>,
    /// Nodes struck in the current phase.
    struck: Vec<u32>,
    /// For each core of the current group, when its work ends, and the examination in which a detour moved it there.
    ends: Vec<(u64, u64)>,
    looks: u64,
    /// Buffer for drawn detours and for the next `detours`.
    spare: Vec<Detour>,
    all: Vec<Detour>,
}

impl Tile {
    /// Returns the tile of some nodes with `groups` groups of `cores` cores each.
    pub(super) fn new(streams: &Streams, nodes: Range<u32>, groups: u32, cores: u32, cell: u64) -> Tile {
        let count = nodes.len();
        let all = count * groups as usize;
        Tile {
            number: nodes.start,
            nodes: count,
            cores: groups as usize * cores as usize,
            group_of: (0..groups).flat_map(|group| std::iter::repeat_n(group, cores as usize)).collect(),
            groups,
            horizon: 0,
            cell,
            positions: nodes.map(|node| streams.position(node)).collect(),
            busy: vec![0; all * cores as usize],
            detours: vec![NEVER; all],
            first: vec![NEVER; all],
            from: (0..all as u32).collect(),
            struck: vec![0; count],
            ends: vec![(0, 0); groups as usize * cores as usize],
            looks: 0,
            spare: Vec::new(),
            all: Vec::new(),
        }
    }

    /// Draws detours that start in the next time window. Drops detours that end before `now`, the time of each group.
    fn extend(&mut self, streams: &Streams, now: impl Fn(usize) -> u64) {
        let to = self.horizon + self.cell;
        let mut all = std::mem::take(&mut self.all);
        all.clear();
        for node in 0..self.nodes {
            self.spare.clear();
            let number = self.number + node as u32;
            streams.extend(number, &mut self.positions[node], self.horizon, to, &mut self.spare);
            self.spare.sort_unstable();
            let busy = &mut self.busy[node * self.cores..][..self.cores];
            for detour in &mut self.spare {
                let busy = &mut busy[usize::from(detour.core)];
                detour.start = detour.start.max(*busy);
                *busy = detour.end();
            }
            for group in 0..self.groups {
                let index = group as usize * self.nodes + node;
                let (begin, now) = (all.len(), now(index));
                let old = self.detours[self.from[index] as usize..].iter().take_while(|d| **d != NEVER);
                all.extend(old.filter(|d| d.end() > now));
                let own = |d: &&Detour| self.groups == 1 || self.group_of[usize::from(d.core)] == group;
                all.extend(self.spare.iter().filter(own));
                if !all[begin..].is_sorted() {
                    all[begin..].sort_unstable();
                }
                all.push(NEVER);
                (self.from[index], self.first[index]) = (begin as u32, all[begin]);
            }
        }
        self.all = std::mem::replace(&mut self.detours, all);
        self.horizon = to;
    }

    /// Returns when work of a group that starts at `now` ends, if at most one detour hits it; drops that detour, which
    /// `steal` receives. `None` in other cases, or if more must be drawn.
    fn once(&mut self, index: usize, now: u64, work: u64, steal: &mut impl FnMut(u8, u64)) -> Option<u64> {
        while self.first[index].end() <= now {
            self.forget(index);
        }
        let detour = self.first[index];
        if detour.start >= now + work {
            return Some(now + work);
        }
        let delay = detour.end() - detour.start.max(now);
        let end = now + work + delay;
        if self.detours[self.from[index] as usize + 1].start < end || end > self.horizon {
            return None;
        }
        self.forget(index);
        steal(detour.source, delay);
        Some(end)
    }

    /// Drops a group's first detour.
    fn forget(&mut self, index: usize) {
        self.from[index] += 1;
        self.first[index] = self.detours[self.from[index] as usize];
    }

    /// When and on which core a group's `work` that starts at `now` ends. `None` if more must be drawn.
    fn finish(&mut self, index: usize, now: u64, work: u64) -> Option<Finish> {
        let plain = now + work;
        let mut last = Finish { time: plain, core: 0 };
        self.looks += 1;
        for detour in &self.detours[self.from[index] as usize..] {
            if detour.start >= last.time {
                break;
            }
            if detour.end() <= now {
                continue;
            }
            let (end, look) = &mut self.ends[usize::from(detour.core)];
            if *look != self.looks {
                (*end, *look) = (plain, self.looks);
            }
            if detour.start < *end {
                *end += detour.end() - detour.start.max(now);
                if (*end, last.core) > (last.time, detour.core) {
                    last = Finish { time: *end, core: detour.core };
                }
            }
        }
        (last.time <= self.horizon).then_some(last)
    }

    /// As `finish`, drawing as needed; `times` are those of all groups.
    fn finish_drawing(&mut self, streams: &Streams, index: usize, work: u64, times: &[u64]) -> Finish {
        loop {
            match self.finish(index, times[index], work) {
                Some(finish) => return finish,
                None => self.extend(streams, |index| times[index]),
            }
        }
    }

    /// When group `group` of each node ends work that starts at its own time; `times` are those of all groups. `steal`
    /// receives what delays the last core of a node: the node, the source, and for how long.
    pub(super) fn each(
        &mut self,
        streams: &Streams,
        group: usize,
        times: &[u64],
        works: &[u64],
        ends: &mut [u64],
        mut steal: impl FnMut(usize, u8, u64),
    ) {
        let base = group * self.nodes;
        let starts = &times[base..][..self.nodes];
        let most = starts.iter().zip(works).map(|(now, work)| now + work).max().unwrap_or(0);
        while self.horizon < most {
            self.extend(streams, |index| times[index]);
        }
        let struck = self.plain(base, starts, works, ends);
        for i in 0..struck {
            let node = self.struck[i] as usize;
            let (now, work, index) = (starts[node], works[node], base + node);
            let mut steal = |source, delay| steal(node, source, delay);
            if let Some(end) = self.once(index, now, work, &mut steal) {
                ends[node] = end;
                continue;
            }
            let finish = self.finish_drawing(streams, index, work, times);
            ends[node] = finish.time;
            self.blame(index, finish, now, work, steal);
        }
    }

    /// When nodes end their work unless they are struck; `base` is the index of the group of the first one. Collects
    /// struck nodes in `struck` and returns their number. Branch-free, since struck nodes are unpredictable.
    fn plain(&mut self, base: usize, starts: &[u64], works: &[u64], ends: &mut [u64]) -> usize {
        let mut struck = 0;
        let nodes = starts.iter().zip(works).zip(ends).zip(&self.first[base..]).zip(0..);
        for ((((start, work), end), first), node) in nodes {
            *end = start + work;
            self.struck[struck] = node;
            struck += usize::from(first.start < *end);
        }
        struck
    }

    /// Passes to `steal` how much each detour delayed the core of a group that finished last.
    fn blame(&self, index: usize, finish: Finish, now: u64, work: u64, mut steal: impl FnMut(u8, u64)) {
        let met = self.detours[self.from[index] as usize..].iter().take_while(|detour| detour.start < finish.time);
        let own = met.filter(|detour| detour.core == finish.core);
        end(own, now, work, |detour, delay| steal(detour.source, delay));
    }
}
