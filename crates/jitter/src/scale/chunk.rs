//! Some nodes with their detours of the time at hand.

use super::streams::{Detour, Position, Streams};

/// Where a node's work ends, and on which core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Finish {
    time: u64,
    core: u16,
}

/// Consecutive nodes. Detours are drawn until `horizon`; those of a core wait for each other.
pub(super) struct Chunk {
    /// The first of its nodes.
    first: u32,
    cores: usize,
    horizon: u64,
    /// By how much the horizon moves.
    cell: u64,
    positions: Vec<Position>,
    /// Until when each core is taken by what was drawn.
    busy: Vec<u64>,
    /// Detours of all nodes, those of a node in order.
    detours: Vec<Detour>,
    /// Where each node's detours are that are not over; the end of the last node's at the end.
    from: Vec<usize>,
    until: Vec<usize>,
    /// When the first detour begins that may not be over, for each node.
    next: Vec<u64>,
    /// When each core of the node that is looked at ends its work, and in which look a detour moved it there.
    ends: Vec<(u64, u64)>,
    looks: u64,
    spare: Vec<Detour>,
}

impl Chunk {
    pub(super) fn new(streams: &Streams, nodes: std::ops::Range<u32>, cores: u32, cell: u64) -> Chunk {
        let count = nodes.len();
        Chunk {
            first: nodes.start,
            cores: cores as usize,
            horizon: 0,
            cell,
            positions: nodes.map(|node| streams.position(node)).collect(),
            busy: vec![0; count * cores as usize],
            detours: Vec::new(),
            from: vec![0; count],
            until: vec![0; count],
            next: vec![u64::MAX; count],
            ends: vec![(0, 0); cores as usize],
            looks: 0,
            spare: Vec::new(),
        }
    }

    /// Draws what begins in the next stretch of time. `now` is when the work of each node begins: what is over by then is
    /// forgotten.
    fn extend(&mut self, streams: &Streams, now: impl Fn(usize) -> u64) {
        let to = self.horizon + self.cell;
        let mut all = Vec::with_capacity(self.detours.len());
        for node in 0..self.positions.len() {
            let begin = all.len();
            let now = now(node);
            all.extend(self.detours[self.from[node]..self.until[node]].iter().filter(|d| d.end() > now));
            self.spare.clear();
            let number = self.first + node as u32;
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
            (self.from[node], self.until[node]) = (begin, all.len());
            self.next[node] = all.get(begin).map_or(u64::MAX, |d| d.start);
        }
        self.detours = all;
        self.horizon = to;
    }

    /// Forgets what of a node is over at `now`, from the front.
    fn forget(&mut self, node: usize, now: u64) {
        let mut from = self.from[node];
        while from < self.until[node] && self.detours[from].end() <= now {
            from += 1;
        }
        self.from[node] = from;
        self.next[node] = if from < self.until[node] { self.detours[from].start } else { u64::MAX };
    }

    /// When a node's `work` that begins at `now` ends, and on which core. `None`: more must be drawn to tell.
    fn finish(&mut self, node: usize, now: u64, work: u64) -> Option<Finish> {
        self.forget(node, now);
        let plain = now + work;
        let mut last = Finish { time: plain, core: 0 };
        self.looks += 1;
        for detour in &self.detours[self.from[node]..self.until[node]] {
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
        for node in 0..starts.len() {
            let (now, work) = (starts[node], works[node]);
            ends[node] = now + work;
            if self.next[node] < now + work {
                let finish = self.finish_drawing(streams, node, now, work, |node| starts[node]);
                ends[node] = finish.time;
                self.blame(node, finish, now, work, stolen);
            }
        }
    }

    /// Adds to `stolen` by how much each source delayed a node's core that ended last.
    fn blame(&self, node: usize, finish: Finish, now: u64, work: u64, stolen: &mut [u64]) {
        let mut end = now + work;
        for detour in &self.detours[self.from[node]..self.until[node]] {
            if detour.start >= finish.time {
                break;
            }
            if detour.core == finish.core && detour.start < end && detour.end() > now {
                let delay = detour.end() - detour.start.max(now);
                stolen[usize::from(detour.source)] += delay;
                end += delay;
            }
        }
    }
}
