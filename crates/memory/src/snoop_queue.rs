//! Invalidations and downgrades queued for cores that are not running.
//!
//! One core runs at a time. When it takes a line from another core of the CMG, that core's private caches cannot change
//! yet: the snoop waits in the core's queue until the core runs again.

use fxscope_calendar::Cycle;

/// What another cache's request does to a line that this core holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum SnoopKind {
    /// The core loses the line.
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
    /// Empty queues of `cores` cores, none of which is waiting.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn snoop(line: u64, at: Cycle, kind: SnoopKind) -> Snoop {
        Snoop { line, at, kind }
    }

    #[test]
    fn a_snoop_reaches_each_core_that_it_was_sent_to_once_and_not_before_its_time() {
        let mut queues = SnoopQueues::new(4);
        let (late, early) = (snoop(5, 100, SnoopKind::Invalidate), snoop(6, 50, SnoopKind::Downgrade));
        queues.push(0b1010, late);
        queues.push(0b0010, early);
        assert_eq!((queues.pop(0, 1_000), queues.pop(2, 1_000)), (None, None));
        assert_eq!((queues.pop(1, 49), queues.pop(1, 50), queues.pop(1, 99)), (None, Some(early), None));
        assert_eq!((queues.pop(1, 100), queues.pop(1, 100)), (Some(late), None));
        assert_eq!(queues.pop(3, 100), Some(late));
        assert_eq!(queues.pending, 0);
    }

    #[test]
    fn a_core_s_own_request_supersedes_invalidations_of_its_line_and_nothing_else() {
        let mut queues = SnoopQueues::new(2);
        assert!(!queues.absorb_invalidations(0, 5));
        queues.push(0b11, snoop(5, 100, SnoopKind::Invalidate));
        queues.push(0b01, snoop(5, 110, SnoopKind::Downgrade));
        queues.push(0b01, snoop(6, 120, SnoopKind::Invalidate));
        assert!(queues.absorb_invalidations(0, 5) && !queues.absorb_invalidations(0, 5));
        assert_eq!(queues.pending, 3);
        assert_eq!([queues.pop(0, 200), queues.pop(0, 200)].map(|snoop| snoop.map(|s| s.at)), [Some(110), Some(120)]);
        assert_eq!(queues.pop(1, 200).map(|snoop| snoop.at), Some(100), "the other core asked for nothing");
    }

    #[test]
    fn requests_of_waiting_cores_are_expected_from_the_earliest_of_their_times_on() {
        let mut queues = SnoopQueues::new(3);
        assert_eq!(queues.lookahead(), Cycle::MAX);
        queues.set_lookahead(1, 70);
        queues.set_lookahead(2, 60);
        assert_eq!(queues.lookahead(), 60);
        queues.set_lookahead(2, Cycle::MAX);
        assert_eq!(queues.lookahead(), 70);
    }
}
