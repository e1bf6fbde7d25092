//! Write-back of the vector pipes: where two results would leave a pipe in the same cycle, one is delayed (manual 2.9).
//!
//! The operation that began last yields. That can be an older one, which was visited, and whose result was used, before
//! the younger one that collides with it. It is corrected then, with the operations of the vector pipes that started
//! with its result, and with the commits after it.

use fxscope_calendar::{Calendar, Cycle};

use crate::bind::{BoundUop, Brief, READY};
use crate::bypass::FLA;
use crate::core::Pipeline;
use crate::dispatch::Station;

/// The number of last operations that are kept: a capacity of the simulator, one bit of a word for each. A result of an
/// operation that is not kept any more stays where it is, and younger ones yield to it (docs/model/limits.md#one-visit).
const KEPT: usize = 64;
/// Cycles whose results a pipe remembers, modulo this number: a capacity of the simulator. The operation itself knows its
/// cycle. Of two results in flight as many cycles apart, the one that was visited first counts as not kept.
const RING: usize = 1 << 12;

/// An operation of FLA or FLB that has been visited.
#[derive(Clone, Copy, serde::Deserialize, serde::Serialize)]
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
#[derive(Clone, serde::Deserialize, serde::Serialize)]
struct Leaving {
    /// Cycles in which a result leaves.
    taken: Calendar,
    /// The operation that it belongs to, by its place among those that are kept.
    #[serde(with = "fxscope_calendar::array")]
    whose: Box<[u8; RING]>,
}

/// The results that leave FLA and FLB.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Results {
    pipes: [Leaving; 2],
    /// Latencies that can be lengthened, in ascending order: each to a later one (manual table 2-7).
    latencies: [Cycle; 3],
    #[serde(with = "fxscope_calendar::array")]
    kept: Box<[Kept; KEPT]>,
    /// The place of the next operation, which is that of the oldest.
    next: usize,
    /// The operations of `kept` that must yield, as bits.
    displaced: u64,
}

impl Results {
    /// Nothing in flight.
    pub(crate) fn new(latencies: [Cycle; 3]) -> Results {
        let pipe = || Leaving { taken: Calendar::default(), whose: Box::new([0; RING]) };
        Results { pipes: [pipe(), pipe()], latencies, kept: Box::new([Kept::NOBODY; KEPT]), next: 0, displaced: 0 }
    }

    /// No result leaves before `now`.
    pub(crate) fn advance(&mut self, now: Cycle) {
        for pipe in &mut self.pipes {
            pipe.taken.advance(now);
        }
    }

    /// The kept operation whose result leaves `pipe` at `at`. One that is not kept began long ago.
    fn at(&self, pipe: usize, at: Cycle) -> Option<usize> {
        let n = usize::from(self.pipes[pipe - FLA].whose[at as usize % RING]);
        let it = &self.kept[n];
        (it.done == at && usize::from(it.pipe) == pipe).then_some(n)
    }

    /// Whether the result of operation `n` would collide at `at` with that of an operation that began before it.
    fn must_yield(&self, n: usize, at: Cycle) -> bool {
        let this = &self.kept[n];
        let pipe = usize::from(this.pipe);
        let taken = !self.pipes[pipe - FLA].taken.is_free(at);
        taken && self.at(pipe, at).is_none_or(|other| self.kept[other].start < this.start)
    }

    /// The result of operation `n` leaves as soon as it does not collide with that of an operation that began before
    /// it. A result of an operation that began later is displaced.
    fn place(&mut self, n: usize) {
        let Kept { brief, start, done, pipe, .. } = self.kept[n];
        let (basic, pipe) = (Cycle::from(brief.latency), usize::from(pipe));
        // Its old cycle is free for it.
        self.take_back(n);
        let latency = match self.latencies.iter().position(|&l| l == basic) {
            Some(first) => {
                let free = self.latencies[first..].iter().find(|&&l| !self.must_yield(n, start + l));
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

    /// The result of operation `n` does not leave in its cycle after all.
    fn take_back(&mut self, n: usize) {
        let Kept { done, pipe, .. } = self.kept[n];
        if self.at(usize::from(pipe), done) == Some(n) {
            self.pipes[usize::from(pipe) - FLA].taken.release(done);
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
    /// The last flow of `uop`, which began at `start`, would give its result at `done`. Returns when it does, and the
    /// time that counts for its commit.
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

    /// Another result leaves the pipe in the cycle of that of `n`, the youngest operation.
    #[cold]
    #[inline(never)]
    fn meet(&mut self, n: usize) -> (Cycle, Cycle) {
        self.results.place(n);
        let mut committed = 0;
        while let Some(other) = self.results.oldest_displaced() {
            let was = self.results.kept[other].done;
            self.results.place(other);
            if other != n {
                committed = committed.max(self.delay_result(other, was));
            }
        }
        let Kept { brief, done, .. } = self.results.kept[n];
        (done, done.max(committed.saturating_sub(self.to_commit(&brief))))
    }

    /// The result of operation `n` leaves at another time than `was`: corrects what followed from it. Returns the
    /// earliest commit of the youngest operation, which commits after this one.
    fn delay_result(&mut self, n: usize, was: Cycle) -> Cycle {
        let Kept { brief, done, group, .. } = self.results.kept[n];
        let complete = done + self.to_commit(&brief);
        let mut committed = complete + self.dispatch.delay_commits(group, complete);
        if brief.register == READY {
            return committed;
        }
        let value = &mut self.values[usize::from(brief.register)];
        // Unless the register has been overwritten.
        if value.at(FLA) == was {
            value.there = value.there + done - was;
        }
        let youngest = (self.results.next + KEPT - 1) % KEPT;
        let mut reader = (n + 1) % KEPT;
        while reader != youngest {
            let r = &self.results.kept[reader];
            let (reads, overwrites) = (r.brief.operands.contains(&brief.register), r.brief.register == brief.register);
            if reads && (was..done).contains(&r.start) {
                committed = committed.max(self.delay_start(reader, done));
            }
            if overwrites {
                break;
            }
            reader = (reader + 1) % KEPT;
        }
        committed
    }

    /// Operation `n` starts at or after `t`, when its operand is available. Returns as `delay_result` does.
    fn delay_start(&mut self, n: usize, t: Cycle) -> Cycle {
        let Kept { brief, start, done, pipe, station, .. } = self.results.kept[n];
        let pipe = usize::from(pipe);
        self.pipes[pipe].release(start);
        let again = self.pipes[pipe].book(t);
        let released = self.released[pipe];
        self.dispatch.move_release(station, start.saturating_sub(released), again.saturating_sub(released));
        self.results.take_back(n);
        self.results.kept[n].start = again;
        self.results.kept[n].done = again + Cycle::from(brief.latency);
        self.results.place(n);
        self.delay_result(n, done)
    }

    /// Cycles from the result of an operation to its commit.
    fn to_commit(&self, brief: &Brief) -> Cycle {
        Cycle::from(brief.to_commit - (brief.judgement & self.judgement_skipped))
    }
}
