//! The real core: the work of measuring threads, and their placement.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

use super::loops::{Core, Team};
use crate::clock::Clock;

/// Integer work: a chain of dependent operations, so that the core cannot overlap units.
pub struct Native<C> {
    clock: C,
    state: u64,
}

impl<C: Clock> Native<C> {
    /// Creates a core with a clock.
    pub fn new(clock: C) -> Native<C> {
        Native { clock, state: 1 }
    }
}

/// Operations per unit of work.
const OPERATIONS: u32 = 32;

impl<C: Clock> Core for Native<C> {
    #[inline(always)]
    fn now(&mut self) -> u64 {
        self.clock.now()
    }

    #[inline(always)]
    fn work(&mut self, units: u32) {
        let mut x = self.state;
        for _ in 0..units {
            for _ in 0..OPERATIONS {
                x = std::hint::black_box(x ^ (x << 13)).wrapping_add(1);
            }
        }
        self.state = x;
    }
}

/// Rows and columns of a block's matrices: three of them fit into an L2 cache of 256 KiB.
pub const ORDER: usize = 96;

/// A block of a matrix multiplication as the unit of work.
pub struct Multiplication<C> {
    clock: C,
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
}

impl<C: Clock> Multiplication<C> {
    /// Allocates and touches the matrices.
    pub fn new(clock: C) -> Multiplication<C> {
        let matrix = |seed: usize| (0..ORDER * ORDER).map(|i| ((i * seed) % 17) as f64 / 17.0 - 0.5).collect();
        Multiplication { clock, a: matrix(7), b: matrix(5), c: vec![1e-9; ORDER * ORDER] }
    }
}

impl<C: Clock> Core for Multiplication<C> {
    #[inline(always)]
    fn now(&mut self) -> u64 {
        self.clock.now()
    }

    fn work(&mut self, units: u32) {
        for _ in 0..units {
            for (row, c) in self.c.chunks_exact_mut(ORDER).enumerate() {
                for (k, b) in self.b.chunks_exact(ORDER).enumerate() {
                    let a = self.a[row * ORDER + k];
                    for (c, b) in c.iter_mut().zip(b) {
                        *c += a * b;
                    }
                }
            }
            std::hint::black_box(&mut self.c);
        }
    }
}

/// A spinning barrier.
pub struct Barrier {
    threads: u32,
    arrived: AtomicU32,
    passed: AtomicU64,
    last: AtomicU64,
}

impl Barrier {
    /// Creates a barrier for `threads` threads.
    #[must_use]
    pub fn new(threads: u32) -> Barrier {
        Barrier { threads, arrived: AtomicU32::new(0), passed: AtomicU64::new(0), last: AtomicU64::new(u64::MAX) }
    }
}

/// A thread at a barrier.
pub struct Member<'a> {
    /// The barrier.
    pub barrier: &'a Barrier,
    /// Whether this thread announces the last barrier.
    pub leads: bool,
}

impl Team for Member<'_> {
    #[inline]
    fn wait(&mut self) -> u64 {
        let barrier = self.barrier;
        let number = barrier.passed.load(Ordering::Relaxed);
        if barrier.arrived.fetch_add(1, Ordering::AcqRel) + 1 == barrier.threads {
            barrier.arrived.store(0, Ordering::Relaxed);
            barrier.passed.store(number + 1, Ordering::Release);
        } else {
            while barrier.passed.load(Ordering::Acquire) == number {
                std::hint::spin_loop();
            }
        }
        number
    }

    fn finish_after(&mut self, barrier: u64) {
        // Two barriers ahead, so that the one in between informs all others.
        if self.leads && self.barrier.last.load(Ordering::Relaxed) == u64::MAX {
            self.barrier.last.store(barrier, Ordering::Release);
        }
    }

    fn last(&self) -> u64 {
        self.barrier.last.load(Ordering::Acquire)
    }
}

/// Returns the cores that this thread may run on.
///
/// # Errors
/// The system's error.
pub fn allowed() -> std::io::Result<Vec<u32>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).map(|core| core as u32).collect())
}

/// Pins this thread to cores.
///
/// # Errors
/// The system's error.
pub fn pin(cores: &[u32]) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    for &core in cores.iter().filter(|&&core| (core as usize) < CpuSet::MAX_CPU) {
        set.set(core as usize);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// Gives this thread a real-time priority (`SCHED_FIFO`).
///
/// # Errors
/// A message that says how to permit it.
pub fn prioritise(priority: u8) -> Result<(), String> {
    let level = priority.try_into().map(ThreadPriority::Crossplatform);
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let level = level.map_err(|e| e.to_string())?;
    set_thread_priority_and_policy(thread_native_id(), level, policy).map_err(|e| format!("{e:?}"))
}
