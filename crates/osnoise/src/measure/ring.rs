//! Passes detours from a measuring thread to the writer without locks, system calls or allocation.

use std::sync::atomic::{AtomicU64, Ordering};

/// A single-producer single-consumer ring of detours, in ticks.
pub struct Ring {
    slots: Box<[(AtomicU64, AtomicU64)]>,
    written: AtomicU64,
    read: AtomicU64,
    dropped: AtomicU64,
}

impl Ring {
    /// Creates a ring for `size` detours, rounded up to a power of two; its memory is touched.
    #[must_use]
    pub fn new(size: usize) -> Ring {
        let size = size.next_power_of_two();
        let slots: Box<[_]> = (0..size).map(|i| (AtomicU64::new(i as u64), AtomicU64::new(1))).collect();
        let [written, read, dropped] = [const { AtomicU64::new(0) }; 3];
        Ring { slots, written, read, dropped }
    }

    /// Adds a detour; if the ring is full, only counts it as dropped.
    #[inline]
    pub fn push(&self, start: u64, length: u64) {
        let written = self.written.load(Ordering::Relaxed);
        if written - self.read.load(Ordering::Acquire) >= self.slots.len() as u64 {
            self.dropped.store(self.dropped.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            return;
        }
        let slot = &self.slots[written as usize & (self.slots.len() - 1)];
        slot.0.store(start, Ordering::Relaxed);
        slot.1.store(length, Ordering::Relaxed);
        self.written.store(written + 1, Ordering::Release);
    }

    /// Takes the oldest detour: start and length.
    pub fn pop(&self) -> Option<(u64, u64)> {
        let read = self.read.load(Ordering::Relaxed);
        if read == self.written.load(Ordering::Acquire) {
            return None;
        }
        let slot = &self.slots[read as usize & (self.slots.len() - 1)];
        let detour = (slot.0.load(Ordering::Relaxed), slot.1.load(Ordering::Relaxed));
        self.read.store(read + 1, Ordering::Release);
        Some(detour)
    }

    /// Detours dropped because the ring was full.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}
