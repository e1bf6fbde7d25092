//! Invalidations and downgrades queued for cores that are not running.
//!
//! One core at a time has its quantum. When it takes a line from another core of the CMG, that core's private caches
//! cannot change yet: the snoop waits in the core's queue until the core runs again.

use fxscope_calendar::Cycle;

/// What another cache's request does to a line that this core holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum SnoopKind {
    /// The core gives the line up.
    Invalidate,
    /// The core keeps a shared copy, which it must not write without asking.
    Downgrade,
}

/// A snoop of a line that a core holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Snoop {
    /// The line.
    pub line: u64,
    /// When the snoop reaches the core. Up to then the core uses its copy as before.
    pub at: Cycle,
    /// What it does to the line.
    pub kind: SnoopKind,
}

/// The snoop queues of a CMG's cores, and how far ahead each core is known to send no requests.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct SnoopQueues {
    /// For each core, in the order in which they were sent.
    queues: Box<[Vec<Snoop>]>,
    /// Snoops in all queues.
    pending: usize,
    /// For each core, a time before which it sends no request; [`Cycle::MAX`] if it runs or has nothing to do.
    lookahead: Box<[Cycle]>,
}

impl SnoopQueues {
    /// Empty queues of `cores` cores, none of which waits for its quantum.
    #[must_use]
    pub fn new(cores: usize) -> SnoopQueues {
        SnoopQueues { queues: vec![Vec::new(); cores].into(), pending: 0, lookahead: vec![Cycle::MAX; cores].into() }
    }

    /// Core number `core` sends no request before `from`; [`Cycle::MAX`] when it runs or has nothing to do.
    pub fn set_lookahead(&mut self, core: usize, from: Cycle) {
        self.lookahead[core] = from;
    }

    /// No waiting core sends a request before this.
    #[must_use]
    pub fn lookahead(&self) -> Cycle {
        self.lookahead.iter().copied().min().unwrap_or(Cycle::MAX)
    }

    /// Queues a snoop for each core whose bit is set.
    pub fn push(&mut self, cores: u64, snoop: Snoop) {
        for core in (0..self.queues.len()).filter(|&core| cores >> core & 1 == 1) {
            self.queues[core].push(snoop);
            self.pending += 1;
        }
    }

    /// A core requests `line` itself: queued invalidations of it are superseded by the answer and removed. Returns
    /// whether there was one.
    #[inline(always)]
    pub fn absorb_invalidations(&mut self, core: usize, line: u64) -> bool {
        self.pending > 0 && self.absorb_some(core, line)
    }

    /// The same, when snoops are pending.
    #[inline(never)]
    fn absorb_some(&mut self, core: usize, line: u64) -> bool {
        let queue = &mut self.queues[core];
        let before = queue.len();
        if before > 0 {
            queue.retain(|snoop| snoop.line != line || snoop.kind == SnoopKind::Downgrade);
        }
        let absorbed = before - queue.len();
        self.pending -= absorbed;
        absorbed > 0
    }

    /// Removes and returns the first snoop that has reached a core by `now`.
    pub fn pop(&mut self, core: usize, now: Cycle) -> Option<Snoop> {
        let queue = &mut self.queues[core];
        let arrived = queue.iter().position(|snoop| snoop.at <= now)?;
        self.pending -= 1;
        Some(queue.remove(arrived))
    }
}
