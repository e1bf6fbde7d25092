//! Some nodes with their detours of the time at hand.

use super::streams::{Detour, Position, Streams, end};

/// Where a node's work ends, and on which core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Finish {
    time: u64,
    core: u16,
}

/// Ends a node's detours: begins later than any.
const NEVER: Detour = Detour { start: u64::MAX, core: 0, source: 0, length: 0 };

/// Consecutive nodes. Detours are drawn until `horizon`; those of a core wait for each other.
pub(super) struct Chunk {
    /// The number of its first node.
    number: u32,
    cores: usize,
    horizon: u64,
    /// By how much the horizon moves.
    cell: u64,
    positions: Vec<Position>,
    /// Until when each core is taken by what was drawn.
    busy: Vec<u64>,
    /// Detours of all nodes, those of a node in order and with `NEVER` at the end.
    detours: Vec<Detour>,
    /// Each node's first detour that may not be over, and where it is in `detours`.
    first: Vec<Detour>,
    from: Vec<u32>,
    /// The nodes that are struck in the phase at hand.
    struck: Vec<u32>,
    /// When each core of the node that is looked at ends its work, and in which look a detour moved it there.
    ends: Vec<(u64, u64)>,
    looks: u64,
    /// Room for what is drawn, and for the next `detours`.
    spare: Vec<Detour>,
    all: Vec<Detour>,
}

impl Chunk {
    pub(super) fn new(streams: &Streams, nodes: std::ops::Range<u32>, cores: u32, cell: u64) -> Chunk {
        let count = nodes.len();
        Chunk {
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

    /// Draws what begins in the next stretch of time. `now` is when the work of each node begins: what is over by then is
    /// forgotten.
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
    /// When a node's `work` that begins at `now` ends, where no more than one detour meets it, which is over then and
    /// forgotten. Adds to `stolen` what it took. `None` otherwise, and when more must be drawn to tell.
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

    /// Forgets a node's first detour.
    fn forget(&mut self, node: usize) {
        self.from[node] += 1;
        self.first[node] = self.detours[self.from[node] as usize];
    }

    /// When a node's `work` that begins at `now` ends, and on which core. `None`: more must be drawn to tell.
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

    /// As `finish`; draws what is needed.
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

    /// When each node ends its work that begins at times of its own. Adds to `stolen` what each source delayed nodes.
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

    /// When nodes end their work unless they are struck. Those that are come to `struck`; gives their number. Without
    /// branches, as nobody can foretell which ones these are.
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

    /// Adds to `stolen` by how much each source delayed a node's core that ended last.
    fn blame(&self, node: usize, finish: Finish, now: u64, work: u64, stolen: &mut [u64]) {
        let met = self.detours[self.from[node] as usize..].iter().take_while(|detour| detour.start < finish.time);
        let own = met.filter(|detour| detour.core == finish.core);
        end(own, now, work, |detour, delay| stolen[usize::from(detour.source)] += delay);
    }
}
