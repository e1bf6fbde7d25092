//! Results that leave the vector pipes: where two would leave one pipe together, one comes later (manual 2.9).
//!
//! The operation that began last gives way. That can be an elder one, which was visited before the younger one that
//! is in its way: too late to change it. Programs repeat themselves, so it is expected to give way the next time.

use fxscope_base::Cycle;

/// Cycles whose results a pipe remembers; each carries its cycle with it.
const RING: usize = 1 << 12;
/// Bits of the number that stands for a micro-operation of the program.
pub(crate) const ID_BITS: u32 = 12;

/// A result that leaves a pipe.
#[derive(Clone, Copy)]
struct Leaving {
    at: Cycle,
    latency: Cycle,
    /// The micro-operation that makes it.
    id: u16,
    /// It gave way to another one that was expected here.
    gone: bool,
}

impl Leaving {
    fn start(&self) -> Cycle {
        self.at - self.latency
    }
}

/// The results of one pipe by the cycle in which they leave it: cycle, micro-operation, latency and whether it has gone.
struct Ring(Box<[u64; RING]>);

impl Ring {
    #[inline(always)]
    fn is_free(&self, at: Cycle) -> bool {
        self.0[at as usize % RING] >> 24 != at
    }

    #[inline(always)]
    fn put(&mut self, r: Leaving) {
        let latency = r.latency.min(0xff);
        self.0[r.at as usize % RING] = r.at << 24 | u64::from(r.id) << 9 | latency << 1 | u64::from(r.gone);
    }

    /// The result is expected to meet another one here: it leaves later.
    fn leave_mark(&mut self, r: Leaving) {
        if self.is_free(r.at) {
            self.put(r);
        }
    }

    fn get(&self, at: Cycle) -> Option<Leaving> {
        let word = self.0[at as usize % RING];
        let id = (word >> 9 & ((1 << ID_BITS) - 1)) as u16;
        (!self.is_free(at)).then_some(Leaving { at, latency: word >> 1 & 0xff, id, gone: word & 1 == 1 })
    }
}

/// The results that leave FLA and FLB.
pub(crate) struct Results {
    pipes: [Ring; 2],
    /// Latencies that change, in ascending order: each to one behind it (manual table 2-7).
    latencies: [Cycle; 3],
    /// Which of `latencies` each micro-operation should have had at least when it was visited last, because of younger
    /// ones that began before it; 0 when none was in its way.
    least: Box<[u8; 1 << ID_BITS]>,
}

impl Results {
    /// Nothing in flight.
    pub(crate) fn new(latencies: [Cycle; 3]) -> Results {
        let pipe = || Ring(Box::new([0; RING]));
        Results { pipes: [pipe(), pipe()], latencies, least: Box::new([0; 1 << ID_BITS]) }
    }

    /// The result of micro-operation `id`, which began at `start`, would leave the vector pipe at `done`. Returns when
    /// it does.
    #[inline(always)]
    pub(crate) fn leave(&mut self, pipe: usize, id: u16, start: Cycle, done: Cycle) -> Cycle {
        let this = Leaving { at: done, latency: done - start, id, gone: false };
        if self.pipes[pipe].is_free(done) && self.least[usize::from(id)] == 0 {
            self.pipes[pipe].put(this);
            return done;
        }
        self.meet(pipe, this)
    }

    /// Another result leaves the pipe in the same cycle, or is expected to.
    #[inline(never)]
    fn meet(&mut self, pipe: usize, this: Leaving) -> Cycle {
        let least = usize::from(std::mem::take(&mut self.least[usize::from(this.id)]));
        let Some(basic) = self.latencies.iter().position(|&l| l == this.latency) else {
            return self.insist(pipe, this);
        };
        for latency in basic..self.latencies.len() - 1 {
            let at = this.start() + self.latencies[latency];
            let meets = self.pipes[pipe].get(at).is_some_and(|other| !other.gone && other.start() < this.start());
            if latency < least {
                self.pipes[pipe].leave_mark(Leaving { at, latency: self.latencies[latency], gone: true, ..this });
            } else if !meets {
                return self.insist(pipe, Leaving { at, latency: self.latencies[latency], ..this });
            }
        }
        let latency = self.latencies[self.latencies.len() - 1];
        self.insist(pipe, Leaving { at: this.start() + latency, latency, ..this })
    }

    /// The result leaves as it is. One that is there from an operation that began later should not be.
    fn insist(&mut self, pipe: usize, this: Leaving) -> Cycle {
        if let Some(other) = self.pipes[pipe].get(this.at).filter(|other| other.start() > this.start()) {
            let place = self.latencies.iter().position(|&l| l == other.latency);
            let next = place.map_or(0, |place| (place + 1) % self.latencies.len());
            let least = &mut self.least[usize::from(other.id)];
            *least = (*least).max(next as u8);
        }
        self.pipes[pipe].put(this);
        this.at
    }
}
