//! A chip partitioned over several host threads.
//!
//! Most requests of a core concern only its own CMG. So a chip can be partitioned: each partition has some CMGs, whose
//! cores run as they do with the whole chip. A request that involves another CMG (a line of another CMG's memory, a
//! line that several CMGs hold, a page that gets its frame) blocks until every partition has blocked, synced or
//! finished. Blocked partitions then run one at a time, in the order of their CMGs, with the whole chip, and all
//! continue in parallel. Results do not depend on host thread timing: the same partitions doing the same work give the
//! same results.

use std::num::NonZero;
use std::ops::{Index, IndexMut, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use fxscope_calendar::Cycle;

use crate::chip::Chip;
use crate::cmg::Cmg;
use crate::frames::Frames;
use crate::ring::Ring;
use crate::tiers::Tier;

/// The CMGs of a chip, or those of a partition, by their numbers.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct Cmgs {
    list: Vec<Cmg>,
    first: usize,
}

impl Cmgs {
    fn from(first: usize, cmgs: impl IntoIterator<Item = Cmg>) -> Cmgs {
        Cmgs { list: cmgs.into_iter().collect(), first }
    }
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Cmg> {
        self.list.iter()
    }
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Cmg> {
        self.list.iter_mut()
    }
    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut Cmg> {
        self.list.get_mut(number.wrapping_sub(self.first))
    }
}

impl FromIterator<Cmg> for Cmgs {
    fn from_iter<I: IntoIterator<Item = Cmg>>(cmgs: I) -> Cmgs {
        Cmgs::from(0, cmgs)
    }
}

impl Index<usize> for Cmgs {
    type Output = Cmg;

    #[inline(always)]
    fn index(&self, number: usize) -> &Cmg {
        &self.list[number - self.first]
    }
}

impl IndexMut<usize> for Cmgs {
    #[inline(always)]
    fn index_mut(&mut self, number: usize) -> &mut Cmg {
        &mut self.list[number - self.first]
    }
}

/// The state of a partition in addition to its CMGs.
pub(crate) struct PartitionCtx {
    rendezvous: Arc<Rendezvous>,
    number: usize,
    /// No core of another CMG sends a request before this.
    pub(crate) others_lookahead: Cycle,
    pub(crate) deferred: DeferredOps,
}

/// Effects on other CMGs that nobody waits for. They are applied when the chip is whole.
#[derive(Default)]
pub(crate) struct DeferredOps {
    /// Lines of other CMGs' memory that have left an L2 of this partition.
    pub(crate) returned: Vec<u64>,
    /// Write-backs from a CMG to another one's memory, with the time at which each leaves.
    pub(crate) writes: Vec<(usize, u64, Cycle)>,
}

/// Some CMGs of a partitioned chip.
pub struct Partition {
    /// The chip as the cores of these CMGs see it.
    pub chip: Chip,
    guard: PanicGuard,
}

/// The result of a finished partition.
pub struct PartitionResult {
    snoops: u64,
    deferred: DeferredOps,
    _guard: PanicGuard,
}

/// A partitioned chip.
pub struct Partitioned {
    rendezvous: Arc<Rendezvous>,
}

impl Chip {
    /// Partitions the chip. `cmgs` are the CMGs of each partition: every CMG in exactly one, in order. No core runs
    /// ([`crate::Hierarchy::suspend`]). [`Partitioned::join`] puts the chip together again.
    #[must_use]
    pub fn partition(&mut self, cmgs: &[Range<usize>]) -> (Partitioned, Vec<Partition>) {
        let others_lookahead = self.cmgs.iter().map(|cmg| cmg.snoop_queues.lookahead()).min().unwrap_or(Cycle::MAX);
        let rendezvous = Arc::new(Rendezvous::new(self.take_shared(), cmgs));
        let partition = |number: usize| {
            let (cmgs, frames) = rendezvous.lock().leave(number);
            let rendezvous = Arc::clone(&rendezvous);
            let guard = PanicGuard(Arc::clone(&rendezvous));
            let ctx = PartitionCtx { rendezvous, number, others_lookahead, deferred: DeferredOps::default() };
            let chip = Chip {
                cmgs,
                ring: Ring::default(),
                tiers: Box::default(),
                frames,
                partition: Some(Box::new(ctx)),
                multicore: true,
                snoops: 0,
                shape: self.shape,
            };
            Partition { chip, guard }
        };
        let partitions = (0..cmgs.len()).map(partition).collect();
        (Partitioned { rendezvous }, partitions)
    }

    /// Does `what` with the whole chip: at once, or in this partition's turn.
    #[inline(always)]
    pub(crate) fn with_whole_chip<R>(&mut self, what: impl FnOnce(&mut Chip) -> R) -> R {
        match self.partition.take() {
            None => what(self),
            Some(ctx) => self.rendezvous(ctx, what),
        }
    }

    #[cold]
    #[inline(never)]
    fn rendezvous<R>(&mut self, mut ctx: Box<PartitionCtx>, what: impl FnOnce(&mut Chip) -> R) -> R {
        self.frames = Arc::default();
        let own = std::mem::take(&mut self.cmgs);
        self.put_shared(ctx.rendezvous.gather(ctx.number, own));
        self.apply(&mut ctx.deferred);
        let result = what(self);
        (self.cmgs, self.frames) = ctx.rendezvous.release(ctx.number, self.take_shared());
        self.partition = Some(ctx);
        result
    }

    /// A partition waits until every other one has synced, too, has blocked, or has finished, and all blocked ones have
    /// been served. The more often partitions sync, the sooner blocked ones are served.
    pub fn sync(&mut self) {
        let Some(ctx) = self.partition.take() else { return };
        self.frames = Arc::default();
        let own = std::mem::take(&mut self.cmgs);
        (self.cmgs, self.frames) = ctx.rendezvous.sync(ctx.number, own);
        self.partition = Some(ctx);
    }

    /// Applies what a partition has done to other CMGs.
    fn apply(&mut self, deferred: &mut DeferredOps) {
        for line in deferred.returned.drain(..) {
            let home = self.home(line);
            self.snoop_filter(home).remove(line);
        }
        for (cmg, line, t) in deferred.writes.drain(..) {
            self.write_memory_remotely::<true>(cmg, line, t);
        }
    }

    /// Takes out all that partitions divide or share.
    fn take_shared(&mut self) -> Shared {
        Shared {
            cmgs: std::mem::take(&mut self.cmgs),
            ring: std::mem::take(&mut self.ring),
            tiers: std::mem::take(&mut self.tiers),
            frames: std::mem::take(&mut self.frames),
        }
    }

    fn put_shared(&mut self, shared: Shared) {
        let Shared { cmgs, ring, tiers, frames } = shared;
        (self.cmgs, self.ring, self.tiers, self.frames) = (cmgs, ring, tiers, frames);
    }
}

impl Partition {
    /// The cores of these CMGs have done their work.
    ///
    /// # Panics
    /// When the chip is not the one of this partition.
    pub fn finish(mut self) -> PartitionResult {
        self.chip.frames = Arc::default();
        let ctx = self.chip.partition.take().expect("a partition has a context");
        ctx.rendezvous.finish(ctx.number, std::mem::take(&mut self.chip.cmgs));
        PartitionResult { snoops: self.chip.snoops, deferred: ctx.deferred, _guard: self.guard }
    }
}

impl Partitioned {
    /// Puts `chip` together after all its partitions have finished. Returns how often a partition has blocked.
    pub fn join(self, chip: &mut Chip, results: Vec<PartitionResult>) -> u64 {
        let (shared, blocked) = self.rendezvous.all();
        chip.put_shared(shared);
        for mut result in results {
            chip.apply(&mut result.deferred);
            chip.snoops += result.snoops;
        }
        // Partitions have advanced their own CMGs only.
        chip.advance(Cycle::MAX);
        blocked
    }
}

/// All that partitions divide or share.
struct Shared {
    cmgs: Cmgs,
    ring: Ring,
    tiers: Box<[Tier]>,
    frames: Arc<Frames>,
}

/// Where partitions meet.
struct Rendezvous {
    state: Mutex<RendezvousState>,
    changed: Condvar,
    /// Counts changes of the state.
    changes: AtomicU64,
    /// The host has a processor for each partition: waiting ones spin for a while before they sleep.
    spins: bool,
    /// The CMGs of each partition.
    partitions: Box<[Range<usize>]>,
}

/// What has been handed in, and who is where.
struct RendezvousState {
    /// The CMGs of partitions that have arrived, by partition.
    cmgs: Vec<Option<Cmgs>>,
    /// `None` while a partition has the whole chip.
    shared: Option<(Ring, Box<[Tier]>, Arc<Frames>)>,
    /// Partitions that have not arrived.
    running: usize,
    /// Those that wait for the whole chip, one bit each.
    blocked: u64,
    /// Those that have arrived and will continue.
    staying: usize,
    /// How often all have continued.
    rounds: u64,
    /// How often a partition has blocked.
    blocks: u64,
    /// The thread of a partition has panicked: no other one may wait any longer.
    broken: bool,
}

impl RendezvousState {
    fn take_whole(&mut self) -> Shared {
        let (ring, tiers, frames) = self.shared.take().expect("no other partition has the whole chip");
        let cmgs = self.cmgs.iter_mut().flat_map(|cmgs| cmgs.take().expect("all have arrived").list).collect();
        Shared { cmgs, ring, tiers, frames }
    }

    fn put_whole(&mut self, mut shared: Shared, partitions: &[Range<usize>]) {
        let mut list = shared.cmgs.list.drain(..);
        let cmgs = |cmgs: &Range<usize>| Cmgs::from(cmgs.start, list.by_ref().take(cmgs.len()));
        self.cmgs = partitions.iter().map(cmgs).map(Some).collect();
        self.shared = Some((shared.ring, shared.tiers, shared.frames));
    }

    fn arrive(&mut self, partition: usize, cmgs: Cmgs) {
        self.cmgs[partition] = Some(cmgs);
        self.running -= 1;
    }

    /// When all have arrived and none is blocked, those that stay continue.
    fn continue_if_served(&mut self) {
        if self.running == 0 && self.blocked == 0 && self.shared.is_some() {
            self.running = std::mem::take(&mut self.staying);
            self.rounds += 1;
        }
    }

    fn leave(&mut self, partition: usize) -> (Cmgs, Arc<Frames>) {
        let (.., frames) = self.shared.as_ref().expect("no partition has the whole chip");
        (self.cmgs[partition].take().expect("it has arrived"), Arc::clone(frames))
    }
}

impl Rendezvous {
    /// How often a waiting partition looks for changes before it sleeps: longer than partitions mostly differ.
    const SPINS: u32 = 4_000;

    fn new(shared: Shared, partitions: &[Range<usize>]) -> Rendezvous {
        let mut state = RendezvousState {
            cmgs: Vec::new(),
            shared: None,
            running: partitions.len(),
            blocked: 0,
            staying: 0,
            rounds: 0,
            blocks: 0,
            broken: false,
        };
        state.put_whole(shared, partitions);
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        Rendezvous {
            state: Mutex::new(state),
            changed: Condvar::new(),
            changes: AtomicU64::new(0),
            spins: processors >= partitions.len(),
            partitions: partitions.into(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, RendezvousState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all that wait for a change.
    fn notify(&self) {
        self.changes.fetch_add(1, Ordering::Release);
        self.changed.notify_all();
    }

    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, RendezvousState>,
        until: impl Fn(&RendezvousState) -> bool,
    ) -> MutexGuard<'a, RendezvousState> {
        let mut spins = if self.spins { Rendezvous::SPINS } else { 0 };
        while !until(&state) {
            assert!(!state.broken, "the thread of another partition has panicked");
            if spins == 0 {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let seen = self.changes.load(Ordering::Acquire);
            drop(state);
            while spins > 0 && self.changes.load(Ordering::Acquire) == seen {
                std::hint::spin_loop();
                spins -= 1;
            }
            state = self.lock();
        }
        state
    }

    /// A partition hands in its CMGs and waits until it has the whole chip.
    fn gather(&self, partition: usize, own: Cmgs) -> Shared {
        let mut state = self.lock();
        state.arrive(partition, own);
        state.blocked |= 1 << partition;
        state.blocks += 1;
        state.staying += 1;
        if state.running == 0 {
            self.notify();
        }
        let next =
            |state: &RendezvousState| state.blocked.trailing_zeros() as usize == partition && state.shared.is_some();
        let mut state = self.wait(state, |state| state.running == 0 && next(state));
        state.blocked &= !(1 << partition);
        state.take_whole()
    }

    /// A partition gives the whole chip back, and continues with its own CMGs when all blocked ones have been served.
    fn release(&self, partition: usize, shared: Shared) -> (Cmgs, Arc<Frames>) {
        let mut state = self.lock();
        state.put_whole(shared, &self.partitions);
        let round = state.rounds;
        state.continue_if_served();
        self.notify();
        self.wait(state, |state| state.rounds > round).leave(partition)
    }

    /// A partition lets blocked ones be served, and continues afterwards.
    fn sync(&self, partition: usize, own: Cmgs) -> (Cmgs, Arc<Frames>) {
        let mut state = self.lock();
        state.arrive(partition, own);
        state.staying += 1;
        let round = state.rounds;
        if state.running == 0 {
            state.continue_if_served();
            self.notify();
        }
        self.wait(state, |state| state.rounds > round).leave(partition)
    }

    /// A partition has done its work.
    fn finish(&self, partition: usize, own: Cmgs) {
        let mut state = self.lock();
        state.arrive(partition, own);
        if state.running == 0 {
            state.continue_if_served();
            self.notify();
        }
    }

    /// Everything, after all partitions have finished, and how often one has blocked.
    fn all(&self) -> (Shared, u64) {
        let mut state = self.lock();
        (state.take_whole(), state.blocks)
    }
}

/// Lets nobody wait for a thread that has panicked.
struct PanicGuard(Arc<Rendezvous>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().broken = true;
            self.0.notify();
        }
    }
}
