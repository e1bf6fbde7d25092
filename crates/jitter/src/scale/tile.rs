//! A tile: some nodes with their detours in the current time window.

use super::detours::{Detour, Position, Streams, end};

/// When and on which core a node's work ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Finish {
    time: u64,
    core: u16,
}

/// Sentinel after a node's detours: later than any.
const NEVER: Detour = Detour { start: u64::MAX, core: 0, source: 0, length: 0 };

/// Consecutive nodes. Detours are drawn up to `horizon`; those of a core queue up.
pub(super) struct Tile {
    /// Number of its first node.
    number: u32,
    cores: usize,
    horizon: u64,
    /// Step by which the horizon advances.
    cell: u64,
    positions: Vec<Position>,
    /// For each core, until when drawn detours occupy it.
    busy: Vec<u64>,
    /// Detours of all nodes: those of a node in order, with `NEVER` at the end.
    detours: Vec<Detour>,
    /// Each node's first detour that may not be over yet, and its index in `detours`.
    first: Vec<Detour>,
    from: Vec<u32>,
    /// Nodes struck in the current phase.
    struck: Vec<u32>,
    /// For each core of the current node, when its work ends, and the examination in which a detour moved it there.
    ends: Vec<(u64, u64)>,
    looks: u64,
    /// Buffer for drawn detours and for the next `detours`.
    spare: Vec<Detour>,
    all: Vec<Detour>,
}

impl Tile {
    pub(super) fn new(streams: &Streams, nodes: std::ops::Range<u32>, cores: u32, cell: u64) -> Tile {
        let count = nodes.len();
        Tile {
            number: nodes.start,
            cores: cores as usize,
            horizon: 0,
            cell,
            positions: nodes.map(|node| streams.position(node)).collect(),
            busy: vec![0; count * cores as usize],
            detours: vec![NEVER; count],
            first: vec![NEVER; count],
            from: (0..count as u32).collect(),
            struck: vec![0; count],
            ends: vec![(0, 0); cores as usize],
            looks: 0,
            spare: Vec::new(),
            all: Vec::new(),
        }
    }

    /// Draws detours that start in the next time window. Drops detours that end before `now`, the start of each node's
    /// work.
    fn extend(&mut self, streams: &Streams, now: impl Fn(usize) -> u64) {
        let to = self.horizon + self.cell;
        let mut all = std::mem::take(&mut self.all);
        all.clear();
        for node in 0..self.positions.len() {
            let begin = all.len();
            let now = now(node);
            let old = self.detours[self.from[node] as usize..].iter().take_while(|d| **d != NEVER);
            all.extend(old.filter(|d| d.end() > now));
            self.spare.clear();
            let number = self.number + node as u32;
            streams.extend(number, &mut self.positions[node], self.horizon, to, &mut self.spare);
            self.spare.sort_unstable();
            let busy = &mut self.busy[node * self.cores..][..self.cores];
            for &detour in &self.spare {
                let busy = &mut busy[usize::from(detour.core)];
                let start = detour.start.max(*busy);
                *busy = start + u64::from(detour.length);
                all.push(Detour { start, ..detour });
            }
            if !all[begin..].is_sorted() {
                all[begin..].sort_unstable();
            }
            all.push(NEVER);
            (self.from[node], self.first[node]) = (begin as u32, all[begin]);
        }
        self.all = std::mem::replace(&mut self.detours, all);
        self.horizon = to;
    }

    /// Returns when work of a node that starts at `now` ends, if at most one detour hits it; drops that detour. Adds its time
    /// to `stolen`. `None` in other cases, or if more must be drawn.
    fn once(&mut self, node: usize, now: u64, work: u64, stolen: &mut [u64]) -> Option<u64> {
        while self.first[node].end() <= now {
            self.forget(node);
        }
        let detour = self.first[node];
        if detour.start >= now + work {
            return Some(now + work);
        }
        let delay = detour.end() - detour.start.max(now);
        let end = now + work + delay;
        if self.detours[self.from[node] as usize + 1].start < end || end > self.horizon {
            return None;
        }
        self.forget(node);
        stolen[usize::from(detour.source)] += delay;
        Some(end)
    }

    /// Drops a node's first detour.
    fn forget(&mut self, node: usize) {
        self.from[node] += 1;
        self.first[node] = self.detours[self.from[node] as usize];
    }

    /// When and on which core a node's `work` that starts at `now` ends. `None` if more must be drawn.
    fn finish(&mut self, node: usize, now: u64, work: u64) -> Option<Finish> {
        let plain = now + work;
        let mut last = Finish { time: plain, core: 0 };
        self.looks += 1;
        for detour in &self.detours[self.from[node] as usize..] {
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

    /// As `finish`, drawing as needed.
    fn finish_drawing(
        &mut self,
        streams: &Streams,
        node: usize,
        now: u64,
        work: u64,
        others: impl Fn(usize) -> u64,
    ) -> Finish {
        loop {
            match self.finish(node, now, work) {
                Some(finish) => return finish,
                None => self.extend(streams, &others),
            }
        }
    }

    /// When each node ends work that starts at its own time. Adds each source's delays to `stolen`.
    pub(super) fn each(
        &mut self,
        streams: &Streams,
        starts: &[u64],
        works: &[u64],
        ends: &mut [u64],
        stolen: &mut [u64],
    ) {
        let most = starts.iter().zip(works).map(|(now, work)| now + work).max().unwrap_or(0);
        while self.horizon < most {
            self.extend(streams, |node| starts[node]);
        }
        let struck = self.plain(starts, works, ends);
        for i in 0..struck {
            let node = self.struck[i] as usize;
            let (now, work) = (starts[node], works[node]);
            if let Some(end) = self.once(node, now, work, stolen) {
                ends[node] = end;
                continue;
            }
            let finish = self.finish_drawing(streams, node, now, work, |node| starts[node]);
            ends[node] = finish.time;
            self.blame(node, finish, now, work, stolen);
        }
    }

    /// When nodes end their work unless they are struck. Collects struck nodes in `struck` and returns their number.
    /// Branch-free, since struck nodes are unpredictable.
    fn plain(&mut self, starts: &[u64], works: &[u64], ends: &mut [u64]) -> usize {
        let mut struck = 0;
        let nodes = starts.iter().zip(works).zip(ends).zip(&self.first).zip(0..);
        for ((((start, work), end), first), node) in nodes {
            *end = start + work;
            self.struck[struck] = node;
            struck += usize::from(first.start < *end);
        }
        struck
    }

    /// Adds to `stolen` how much each source delayed the core of a node that finished last.
    fn blame(&self, node: usize, finish: Finish, now: u64, work: u64, stolen: &mut [u64]) {
        let met = self.detours[self.from[node] as usize..].iter().take_while(|detour| detour.start < finish.time);
        let own = met.filter(|detour| detour.core == finish.core);
        end(own, now, work, |detour, delay| stolen[usize::from(detour.source)] += delay);
    }
}
