//! Results that leave the vector pipes: where two would leave one pipe together, one comes later (manual 2.9).
//!
//! The operation that began last gives way. That can be an elder one, which was visited before the younger one that
//! is in its way: too late to change it. Programs repeat themselves, so it is expected to give way the next time. The
//! first time, its result comes late for those who are visited from then on, and another operation takes longer in its
//! stead, so that code that runs once has as many results lengthened as it should.

use fxscope_base::{Calendar, Cycle};

use crate::bypass::{ByPipe, FLA};
use crate::resolve::RUop;

/// Cycles whose results a pipe remembers; each carries its cycle with it.
const RING: usize = 1 << 12;
/// Registers by number.
const REGISTERS: usize = 256;
/// Set in what is known of a micro-operation when it should have given way once before.
const MET: u8 = 0x80;
/// Bits of the number that stands for a micro-operation of the program.
pub(crate) const ID_BITS: u32 = 12;

/// A result that leaves a pipe.
#[derive(Clone, Copy)]
struct Leaving {
    at: Cycle,
    latency: Cycle,
    /// The micro-operation that makes it.
    id: u16,
    /// The register that gets it.
    register: u8,
    /// It gave way to another one that was expected here.
    gone: bool,
}

impl Leaving {
    fn start(&self) -> Cycle {
        self.at - self.latency
    }
}

/// The results of one pipe by the cycle in which they leave it.
struct Ring {
    /// Cycles in which one leaves, or was to leave: few bits, to be looked at first.
    taken: Calendar,
    /// Cycle, micro-operation, latency and whether it has gone.
    words: Box<[u64; RING]>,
    registers: Box<[u8; RING]>,
}

impl Ring {
    #[inline(always)]
    fn is_free(&self, at: Cycle) -> bool {
        self.taken.is_free(at) || self.words[at as usize % RING] >> 24 != at
    }

    #[inline(always)]
    fn put(&mut self, r: Leaving) {
        let latency = r.latency.min(0xff);
        let place = r.at as usize % RING;
        self.taken.reserve(r.at);
        self.words[place] = r.at << 24 | u64::from(r.id) << 9 | latency << 1 | u64::from(r.gone);
        self.registers[place] = r.register;
    }

    /// The result is expected to meet another one here: it leaves later.
    fn leave_mark(&mut self, r: Leaving) {
        if self.is_free(r.at) {
            self.put(r);
        }
    }

    fn get(&self, at: Cycle) -> Option<Leaving> {
        let (word, register) = (self.words[at as usize % RING], self.registers[at as usize % RING]);
        let id = (word >> 9 & ((1 << ID_BITS) - 1)) as u16;
        (!self.is_free(at)).then_some(Leaving { at, latency: word >> 1 & 0xff, id, register, gone: word & 1 == 1 })
    }
}

/// The results that leave FLA and FLB.
pub(crate) struct Results {
    pipes: [Ring; 2],
    /// Latencies that change, in ascending order: each to one behind it (manual table 2-7).
    latencies: [Cycle; 3],
    /// Which of `latencies` each micro-operation should have had at least when it was visited last, because of younger
    /// ones that began before it; 0 when none was in its way. [`MET`] stays.
    least: Box<[u8; 1 << ID_BITS]>,
    /// Operations that have to take longer in the stead of others that gave way for the first time.
    owed: u32,
}

impl Results {
    /// Nothing in flight.
    pub(crate) fn new(latencies: [Cycle; 3]) -> Results {
        let pipe = || Ring { taken: Calendar::default(), words: Box::new([0; RING]), registers: Box::new([0; RING]) };
        Results { pipes: [pipe(), pipe()], latencies, least: Box::new([0; 1 << ID_BITS]), owed: 0 }
    }

    /// No result leaves before `now` any more.
    pub(crate) fn advance(&mut self, now: Cycle) {
        for pipe in &mut self.pipes {
            pipe.taken.advance(now);
        }
    }

    /// The result of `uop`, which began at `start`, would leave the vector pipe at `done`. Returns when it does. `ready`
    /// says when registers have their values.
    #[inline(always)]
    pub(crate) fn leave(
        &mut self,
        pipe: usize,
        uop: &RUop,
        start: Cycle,
        done: Cycle,
        ready: &mut [ByPipe; REGISTERS],
    ) -> Cycle {
        let (id, register) = (uop.result_id, uop.dsts[0]);
        let this = Leaving { at: done, latency: done - start, id, register, gone: false };
        let waits = u32::from(self.least[usize::from(id)] & !MET) | self.owed;
        if self.pipes[pipe].is_free(done) && waits == 0 {
            self.pipes[pipe].put(this);
            return done;
        }
        self.meet(pipe, this, ready)
    }

    /// Another result leaves the pipe in the same cycle, or is expected to.
    #[inline(never)]
    fn meet(&mut self, pipe: usize, this: Leaving, ready: &mut [ByPipe; REGISTERS]) -> Cycle {
        let known = &mut self.least[usize::from(this.id)];
        let least = usize::from(*known & !MET);
        *known &= MET;
        let last = self.latencies.len() - 1;
        let Some(mut basic) = self.latencies.iter().position(|&l| l == this.latency) else {
            return self.insist(pipe, this, ready);
        };
        if self.owed > 0 && least == 0 && basic < last {
            self.owed -= 1;
            basic += 1;
        }
        let with = |latency: Cycle| Leaving { at: this.start() + latency, latency, ..this };
        for place in basic..last {
            let this = with(self.latencies[place]);
            let meets = self.pipes[pipe].get(this.at).is_some_and(|other| !other.gone && other.start() < this.start());
            if place < least {
                self.pipes[pipe].leave_mark(Leaving { gone: true, ..this });
            } else if !meets {
                return self.insist(pipe, this, ready);
            }
        }
        self.insist(pipe, with(self.latencies[last]), ready)
    }

    /// The result leaves as it is. One that is there from an operation that began later should not be.
    fn insist(&mut self, pipe: usize, this: Leaving, ready: &mut [ByPipe; REGISTERS]) -> Cycle {
        let other = self.pipes[pipe].get(this.at).filter(|other| other.start() > this.start());
        self.pipes[pipe].put(this);
        if let Some(other) = other {
            self.gives_way(pipe, other, ready);
        }
        this.at
    }

    /// A result that has been given out should have left later: it does so the next time.
    fn gives_way(&mut self, pipe: usize, other: Leaving, ready: &mut [ByPipe; REGISTERS]) {
        let place = self.latencies.iter().position(|&l| l == other.latency);
        let Some(next) = place.map(|place| place + 1).filter(|&next| next < self.latencies.len()) else { return };
        let known = &mut self.least[usize::from(other.id)];
        let first_time = *known & MET == 0;
        *known = (*known & !MET).max(next as u8) | MET;
        if other.gone {
            return;
        }
        self.owed += u32::from(first_time);
        let later = self.latencies[next] - other.latency;
        self.pipes[pipe].leave_mark(Leaving { at: other.at + later, latency: self.latencies[next], ..other });
        let ready = &mut ready[usize::from(other.register)];
        // Unless the register has another value meanwhile.
        if ready[FLA] == other.at {
            ready.iter_mut().for_each(|t| *t += later);
        }
    }
}
