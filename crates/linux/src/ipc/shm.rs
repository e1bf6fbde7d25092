//! System V shared memory: the segments, their keys and identifiers (sysvipc(7)).
//!
//! The memory of a segment is an object of guest memory ([`fxscope_guestmem::ObjectId`]). Its attachments are the regions that map
//! the object, so that `munmap`, `fork`, `execve` and the end of a process count them without further ado.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fxscope_guestmem::{Memory, ObjectId, PAGE};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::budget::{Budget, Charge};
use crate::kernel::Kernel;

/// Maximum number of segments (Linux's default of `kernel.shmmni`).
pub(crate) const MOST: u64 = 4096;
/// Maximum bytes of a segment, and maximum pages of all (Linux's defaults of `kernel.shmmax` and `kernel.shmall`).
pub(crate) const MOST_BYTES: u64 = u64::MAX - (1 << 24);
/// Bytes by which the table grows with a segment on the host.
const BYTES_ON_HOST: u64 = 512;

/// `IPC_PRIVATE`: no key leads to the segment.
pub(crate) const PRIVATE: i32 = 0;
/// Bit of a segment's mode: it is removed with its last attachment (`SHM_DEST`).
pub(crate) const REMOVED: u32 = 0o1000;

/// Log2 of the number of indices: an identifier is an index and, above it, a sequence number (`IPCMNI_SHIFT`).
const INDEX_BITS: u32 = 15;
/// Sequence numbers are smaller.
const SEQUENCES: u32 = 1 << 16;

/// A segment.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct SharedSegment {
    /// The key that leads to it, or [`PRIVATE`].
    pub key: i32,
    /// The sequence number of its identifier.
    pub sequence: u32,
    /// Its memory.
    pub object: ObjectId,
    /// Its size in bytes as requested.
    pub bytes: u64,
    /// Rights and [`REMOVED`].
    pub mode: u32,
    /// User and group: now, and of its creator.
    pub owner: [u32; 2],
    pub creator: [u32; 2],
    /// The process that created it, and the last one that attached or detached it.
    pub creator_pid: u32,
    pub last_pid: u32,
    /// Times of the last attachment, detachment and change, in s since 1970.
    pub attached: u64,
    pub detached: u64,
    pub changed: u64,
}

/// All segments by index.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct SharedSegments {
    list: BTreeMap<u32, SharedSegment>,
    /// The index given last, and the current sequence number.
    last: Option<u32>,
    sequence: u32,
    /// The cost of the table on the host.
    #[serde(skip)]
    charge: Charge,
}

impl SharedSegments {
    /// Returns the number of segments.
    pub(crate) fn len(&self) -> u64 {
        self.list.len() as u64
    }

    /// Returns the index and the segment of an identifier.
    ///
    /// # Errors
    /// `EINVAL` if there is none.
    pub(crate) fn find(&mut self, id: i32) -> Result<(u32, &mut SharedSegment), Errno> {
        let id = u32::try_from(id).map_err(|_| Errno::INVAL)?;
        let index = id & ((1 << INDEX_BITS) - 1);
        let segment = self.list.get_mut(&index).filter(|segment| segment.sequence == id >> INDEX_BITS);
        Ok((index, segment.ok_or(Errno::INVAL)?))
    }

    /// Returns the identifier and the segment of a key.
    pub(crate) fn with_key(&self, key: i32) -> Option<(i32, &SharedSegment)> {
        let mut found = self.list.iter().filter(|(_, segment)| segment.key == key && key != PRIVATE);
        found.next().map(|(&index, segment)| (id(index, segment), segment))
    }

    /// Returns the identifier and the segment at an index.
    pub(crate) fn at(&self, index: u32) -> Option<(i32, &SharedSegment)> {
        self.list.get(&index).map(|segment| (id(index, segment), segment))
    }

    /// Returns the highest index in use, or 0.
    pub(crate) fn highest(&self) -> u32 {
        self.list.last_key_value().map_or(0, |(&index, _)| index)
    }

    /// Iterates over the identifiers and segments, in the order of their indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i32, &SharedSegment)> {
        self.list.iter().map(|(&index, segment)| (id(index, segment), segment))
    }

    /// Adds a segment at the lowest free index and sets its sequence number. Returns its identifier.
    pub(crate) fn insert(&mut self, segment: SharedSegment) -> i32 {
        let index = (0..).zip(self.list.keys()).find(|&(free, &used)| free != used).map(|(free, _)| free);
        let index = index.unwrap_or(self.list.len() as u32);
        if self.last.is_some_and(|last| index <= last) {
            self.sequence = (self.sequence + 1) % SEQUENCES;
        }
        self.last = Some(index);
        let segment = SharedSegment { sequence: self.sequence, ..segment };
        let id = id(index, &segment);
        self.list.insert(index, segment);
        self.charge.set(self.len() * BYTES_ON_HOST);
        id
    }

    /// Removes a segment now if nobody has attached it, or else with its last attachment; no key leads to it any more.
    pub(crate) fn remove(&mut self, mem: &mut Memory, index: u32) {
        let Some(segment) = self.list.get_mut(&index) else { return };
        segment.key = PRIVATE;
        segment.mode |= REMOVED;
        if mem.mappings_of(segment.object) == 0 {
            mem.release_object(segment.object);
            self.list.remove(&index);
            self.charge.set(self.len() * BYTES_ON_HOST);
        }
    }

    /// Records that nobody has attached the segment with this memory any more, at time `now` in s since 1970.
    pub(crate) fn unmapped(&mut self, mem: &mut Memory, object: ObjectId, now: u64) {
        let found = self.list.iter_mut().find(|(_, segment)| segment.object == object);
        let Some((&index, segment)) = found else { return };
        // A new segment has not been attached yet.
        if segment.attached != 0 {
            segment.detached = now;
        }
        if segment.mode & REMOVED != 0 {
            self.remove(mem, index);
        }
    }

    /// Makes the cost of the table part of `budget`.
    pub(crate) fn charge_to(&mut self, budget: &Budget) {
        self.charge = budget.charge(self.len() * BYTES_ON_HOST);
    }

    /// Returns whether the memory of every segment exists. That of a damaged snapshot may not.
    pub(crate) fn are_consistent(&self, mem: &Memory) -> bool {
        self.list.iter().all(|(&index, segment)| index < 1 << INDEX_BITS && mem.has_object(segment.object))
    }
}

/// Returns the identifier of a segment at an index.
fn id(index: u32, segment: &SharedSegment) -> i32 {
    ((segment.sequence % SEQUENCES) << INDEX_BITS | index) as i32
}

impl SharedSegment {
    /// Returns its bytes in whole pages.
    pub(crate) fn mapped_bytes(&self) -> u64 {
        self.bytes.next_multiple_of(PAGE)
    }
}

/// Returns the contents of `/proc/sysvipc/shm` (proc(5)).
pub(crate) fn listing(k: &Kernel<'_>) -> Vec<u8> {
    let mut text = format!(
        "{:>10} {:>10} {:>5} {:>21} {:>5} {:>5} {:>6} {:>5} {:>5} {:>5} {:>5} {:>10} {:>10} {:>10} {:>21} {:>21}\n",
        "key",
        "shmid",
        "perms",
        "size",
        "cpid",
        "lpid",
        "nattch",
        "uid",
        "gid",
        "cuid",
        "cgid",
        "atime",
        "dtime",
        "ctime",
        "rss",
        "swap",
    );
    for (id, segment) in k.system.segments.iter() {
        let SharedSegment { key, bytes, mode, owner, creator, creator_pid, last_pid, .. } = segment;
        let (attachments, resident) = (k.mem.mappings_of(segment.object), k.mem.pages_of(segment.object) * PAGE);
        let _ = writeln!(
            text,
            "{key:>10} {id:>10} {mode:>5o} {bytes:>21} {creator_pid:>5} {last_pid:>5} {attachments:>6} {:>5} {:>5} {:>5} \
             {:>5} {:>10} {:>10} {:>10} {resident:>21} {:>21}",
            owner[0], owner[1], creator[0], creator[1], segment.attached, segment.detached, segment.changed, 0,
        );
    }
    text.into_bytes()
}
