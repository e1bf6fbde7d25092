//! The ring buffers in which performance events put their records (`perf_event_open(2)`, section "MMAP layout").
//!
//! A buffer is a memory object that programs have mapped: a page that describes it, and a power of two of pages with records. It
//! exists as long as it is mapped. The program says with `data_tail` how far it has read; records for which there is no room are
//! lost and counted. In a mapping that cannot be written, new records replace old ones.

use std::cell::Cell;

use fxscope_guestmem::{Memory, ObjectId};

/// Places of fields of `struct perf_event_mmap_page`: what has been written and read so far, in bytes, and where the records are.
const DATA_HEAD: u64 = 1024;
const DATA_TAIL: u64 = 1032;
const DATA_OFFSET: u64 = 1040;

/// When a buffer wakes the threads that wait for its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wakeup {
    /// Each time there are as many samples more; 0: as at half of the buffer.
    Samples(u32),
    /// Each time there are as many bytes more; 0: half of the buffer.
    Bytes(u32),
}

/// A ring buffer.
#[derive(Debug)]
pub(crate) struct Ring {
    object: ObjectId,
    /// The serial number of the object: no later one gets it.
    serial: u64,
    /// Offset of the records in the object, and their room, in bytes.
    start: u64,
    bytes: u64,
    /// New records replace old ones.
    overwrites: bool,
    head: Cell<u64>,
    /// The value of `head` from which bytes count for the next wake-up, and the samples that do.
    woken: Cell<u64>,
    samples: Cell<u32>,
    /// Records without room since the last one that had.
    pub lost: Cell<u64>,
    /// Nothing is written while it is set (`PERF_EVENT_IOC_PAUSE_OUTPUT`).
    pub paused: Cell<bool>,
}

impl Ring {
    /// Returns the buffer in an object with this serial number whose pages exist: the records are behind the first `start` bytes.
    pub(crate) fn new(mem: &mut Memory, object: ObjectId, serial: u64, place: [u64; 2], overwrites: bool) -> Ring {
        let [start, bytes] = place;
        mem.write_object(object, DATA_OFFSET, bytemuck::cast_slice(&place));
        Ring {
            object,
            serial,
            start,
            bytes,
            overwrites,
            head: Cell::new(0),
            woken: Cell::new(0),
            samples: Cell::new(0),
            lost: Cell::new(0),
            paused: Cell::new(false),
        }
    }

    /// Returns whether a program still has it.
    pub(crate) fn is_mapped(&self, mem: &Memory) -> bool {
        mem.has_object_of(self.serial)
    }

    /// Returns how many records of `bytes` bytes it can have.
    pub(crate) fn capacity(&self, bytes: u64) -> u64 {
        self.bytes / bytes.max(1)
    }

    /// Returns the bytes that the program has not read yet; more than there can be, if it has written nonsense.
    pub(crate) fn unread(&self, mem: &Memory) -> u64 {
        let mut tail = [0; 8];
        mem.read_object(self.object, DATA_TAIL, &mut tail);
        self.head.get().wrapping_sub(u64::from_ne_bytes(tail))
    }

    /// Returns whether there is room for `bytes` bytes.
    pub(crate) fn has_room(&self, mem: &Memory, bytes: u64) -> bool {
        bytes < self.bytes && (self.overwrites || self.unread(mem).saturating_add(bytes) < self.bytes)
    }

    /// Writes a record, for which there is room.
    pub(crate) fn write(&self, mem: &mut Memory, record: &[u8]) {
        let head = self.head.get();
        let at = head % self.bytes;
        let (first, rest) = record.split_at(record.len().min((self.bytes - at) as usize));
        mem.write_object(self.object, self.start + at, first);
        mem.write_object(self.object, self.start, rest);
        let head = head.wrapping_add(record.len() as u64);
        self.head.set(head);
        mem.write_object(self.object, DATA_HEAD, &head.to_ne_bytes());
    }

    /// Notes a record that has been written. Returns whether those who wait are woken.
    pub(crate) fn wakes(&self, wakeup: Wakeup, is_sample: bool) -> bool {
        let bytes = match wakeup {
            Wakeup::Samples(every @ 1..) => {
                let samples = self.samples.get() + u32::from(is_sample);
                self.samples.set(if samples >= every { 0 } else { samples });
                return samples >= every;
            }
            Wakeup::Samples(0) | Wakeup::Bytes(0) => self.bytes / 2,
            Wakeup::Bytes(bytes) => u64::from(bytes).min(self.bytes),
        };
        let wakes = self.head.get().wrapping_sub(self.woken.get()) > bytes;
        if wakes {
            self.woken.set(self.head.get());
        }
        wakes
    }
}
