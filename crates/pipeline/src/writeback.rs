//! Results that leave the vector pipes: where two would leave one pipe together, one comes later (manual 2.9).
//!
//! The operation that began last gives way. That can be an elder one, which was visited, and its result given out, before
//! the younger one that is in its way. It is put right then, with the operations of the vector pipes that were to start
//! with its result, and with what commits behind it.

use fxscope_calendar::{Calendar, Cycle};

use crate::bind::{BoundUop, Brief, READY};
use crate::bypass::FLA;
use crate::core::Pipeline;
use crate::dispatch::Station;

/// Operations that are kept in view, the last ones: more than the stations of both pipes hold, and the bits of a word.
const KEPT: usize = 64;
/// Cycles whose results a pipe remembers. Who left in a cycle says itself whether it was that one.
const RING: usize = 1 << 12;

/// An operation of FLA or FLB that has been given its times.
#[derive(Clone, Copy)]
struct Kept {
    brief: Brief,
    /// The start of its last flow, which makes the result.
    start: Cycle,
    /// When its result leaves the pipe.
    done: Cycle,
    pipe: u8,
    station: Station,
    /// Its place among the groups of the commit stack.
    group: u16,
}

impl Kept {
    const NOBODY: Kept =
        Kept { brief: Brief::NOTHING, start: 0, done: 0, pipe: FLA as u8, station: Station::Rsbr, group: 0 };
}

/// The results of one pipe by the cycle in which they leave it.
struct Leaving {
    /// Cycles in which one leaves.
    taken: Calendar,
    /// Whose it is, of those that are kept.
    whose: Box<[u8; RING]>,
}

/// The results that leave FLA and FLB.
pub(crate) struct Results {
    pipes: [Leaving; 2],
    /// Latencies that change, in ascending order: each to one behind it (manual table 2-7).
    latencies: [Cycle; 3],
    kept: Box<[Kept; KEPT]>,
    /// Where the next operation is kept, and so the place of the oldest.
    next: usize,
    /// As bits: those of `kept` that must give way.
    displaced: u64,
}

impl Results {
    /// Nothing in flight.
    pub(crate) fn new(latencies: [Cycle; 3]) -> Results {
        let pipe = || Leaving { taken: Calendar::default(), whose: Box::new([0; RING]) };
        Results { pipes: [pipe(), pipe()], latencies, kept: Box::new([Kept::NOBODY; KEPT]), next: 0, displaced: 0 }
    }

    /// No result leaves before `now` any more.
    pub(crate) fn advance(&mut self, now: Cycle) {
        for pipe in &mut self.pipes {
            pipe.taken.advance(now);
        }
    }

    /// Whose result leaves `pipe` at `at`, of those that are kept. One that is not began long ago.
    fn at(&self, pipe: usize, at: Cycle) -> Option<usize> {
        let n = usize::from(self.pipes[pipe - FLA].whose[at as usize % RING]);
        let it = &self.kept[n];
        (it.done == at && usize::from(it.pipe) == pipe).then_some(n)
    }

    /// Operation `n` would meet one that began before it if its result left at `at`.
    fn gives_way(&self, n: usize, at: Cycle) -> bool {
        let this = &self.kept[n];
        let pipe = usize::from(this.pipe);
        let taken = !self.pipes[pipe - FLA].taken.is_free(at);
        taken && self.at(pipe, at).is_none_or(|other| self.kept[other].start < this.start)
    }

    /// The result of operation `n` leaves as soon as none of an operation that began before it does so. Whoever began
    /// later and leaves then is displaced.
    fn place(&mut self, n: usize) {
        let Kept { brief, start, done, pipe, .. } = self.kept[n];
        let (basic, pipe) = (Cycle::from(brief.latency), usize::from(pipe));
        // Its old place is not in its way.
        self.take_back(n);
        let latency = match self.latencies.iter().position(|&l| l == basic) {
            Some(first) => {
                let free = self.latencies[first..].iter().find(|&&l| !self.gives_way(n, start + l));
                *free.unwrap_or(&self.latencies[self.latencies.len() - 1])
            }
            None => done - start,
        };
        let done = start + latency;
        if let Some(other) = self.at(pipe, done)
            && self.kept[other].start > start
        {
            self.displaced |= 1 << other;
        }
        self.kept[n].done = done;
        self.pipes[pipe - FLA].taken.reserve(done);
        self.pipes[pipe - FLA].whose[done as usize % RING] = n as u8;
    }

    /// The result of operation `n` does not leave when it was to.
    fn take_back(&mut self, n: usize) {
        let Kept { done, pipe, .. } = self.kept[n];
        if self.at(usize::from(pipe), done) == Some(n) {
            self.pipes[usize::from(pipe) - FLA].taken.give_back(done);
        }
        self.kept[n].done = 0;
    }

    /// The oldest of those that are displaced.
    fn oldest_displaced(&mut self) -> Option<usize> {
        let behind_oldest = self.displaced.rotate_right(self.next as u32).trailing_zeros() as usize;
        let n = (self.next + behind_oldest) % KEPT;
        let any = self.displaced != 0;
        self.displaced &= !(u64::from(any) << n);
        any.then_some(n)
    }
}

impl Pipeline {
    /// The last flow of `uop`, which began at `start`, would give its result at `done`. Returns when it does, and what
    /// counts as that for its commit.
    #[inline(always)]
    pub(crate) fn leave(
        &mut self,
        uop: &BoundUop,
        pipe: usize,
        station: Station,
        start: Cycle,
        done: Cycle,
    ) -> (Cycle, Cycle) {
        let group = self.dispatch.open_group();
        let r = &mut self.results;
        let n = r.next;
        r.next = (n + 1) % KEPT;
        r.kept[n] = Kept { brief: uop.brief, start, done, pipe: pipe as u8, station, group };
        let leaving = &mut r.pipes[pipe - FLA];
        if !leaving.taken.is_free(done) {
            return self.meet(n);
        }
        leaving.taken.reserve(done);
        leaving.whose[done as usize % RING] = n as u8;
        (done, done)
    }

    /// Another result leaves the pipe when that of `n`, the youngest operation, would.
    #[cold]
    #[inline(never)]
    fn meet(&mut self, n: usize) -> (Cycle, Cycle) {
        self.results.place(n);
        let mut committed = 0;
        while let Some(other) = self.results.oldest_displaced() {
            let was = self.results.kept[other].done;
            self.results.place(other);
            if other != n {
                committed = committed.max(self.comes_later(other, was));
            }
        }
        let Kept { brief, done, .. } = self.results.kept[n];
        (done, done.max(committed.saturating_sub(self.to_commit(&brief))))
    }

    /// The result of operation `n`, which was to leave at `was`, leaves at another time: what followed from that is put
    /// right. Returns when the youngest operation commits at the earliest, as it does so behind this one.
    fn comes_later(&mut self, n: usize, was: Cycle) -> Cycle {
        let Kept { brief, done, group, .. } = self.results.kept[n];
        let complete = done + self.to_commit(&brief);
        let mut committed = complete + self.dispatch.commits_later(group, complete);
        if brief.register == READY {
            return committed;
        }
        let value = &mut self.values[usize::from(brief.register)];
        // Unless the register has another value meanwhile.
        if value.at(FLA) == was {
            value.there = value.there + done - was;
        }
        let youngest = (self.results.next + KEPT - 1) % KEPT;
        let mut reader = (n + 1) % KEPT;
        while reader != youngest {
            let r = &self.results.kept[reader];
            let (reads, overwrites) = (r.brief.operands.contains(&brief.register), r.brief.register == brief.register);
            if reads && (was..done).contains(&r.start) {
                committed = committed.max(self.starts_later(reader, done));
            }
            if overwrites {
                break;
            }
            reader = (reader + 1) % KEPT;
        }
        committed
    }

    /// Operation `n` starts from `t` on, where its operand is there. Returns as `comes_later` does.
    fn starts_later(&mut self, n: usize, t: Cycle) -> Cycle {
        let Kept { brief, start, done, pipe, station, .. } = self.results.kept[n];
        let pipe = usize::from(pipe);
        self.pipes[pipe].give_back(start);
        let again = self.pipes[pipe].book(t);
        let released = self.released[pipe];
        self.dispatch.move_release(station, start.saturating_sub(released), again.saturating_sub(released));
        self.results.take_back(n);
        self.results.kept[n].start = again;
        self.results.kept[n].done = again + Cycle::from(brief.latency);
        self.results.place(n);
        self.comes_later(n, done)
    }

    /// Cycles from the result of an operation to its commit.
    fn to_commit(&self, brief: &Brief) -> Cycle {
        Cycle::from(brief.to_commit - (brief.judgement & self.judgement_skipped))
    }
}
