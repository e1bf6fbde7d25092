//! Futexes: the waiters, and how the end of a thread affects the locks it holds.

use fxscope_guestmem::{Memory, ObjectAddress};
use serde::{Deserialize, Serialize};

use crate::kernel::Kernel;
use crate::sched::wait::{Blocked, Wait};
use crate::thread::Thread;

/// Bits of a lock word: the owner's thread ID.
pub(crate) const OWNER: u32 = 0x3fff_ffff;
/// Bit of a lock word: the owner ended without unlocking.
pub(crate) const OWNER_DIED: u32 = 0x4000_0000;
/// Bit of a lock word: a thread waits in the kernel.
pub(crate) const WAITERS: u32 = 0x8000_0000;
/// All bits: wakes every waiter.
pub(crate) const ANY: u32 = u32::MAX;

/// Maximum number of robust list entries examined (Linux's `ROBUST_LIST_LIMIT`): lists may be circular.
const ROBUST_LIMIT: usize = 2048;

/// The identity of a futex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Key {
    /// A private address of one process.
    Private {
        /// The process.
        pid: u32,
        /// The address.
        address: u64,
    },
    /// Memory shared by processes: the same for all mappings of it.
    Shared(ObjectAddress),
}

impl Key {
    /// Returns the key of the futex at `address`; `private`: the program guarantees that no other process uses it.
    pub(crate) fn of(mem: &Memory, pid: u32, address: u64, private: bool) -> Key {
        match mem.object_at(address).filter(|_| !private) {
            Some(place) => Key::Shared(place),
            None => Key::Private { pid, address },
        }
    }
}

/// Returns the threads that wait for `key`, in the order of arrival.
fn waiters<'a>(k: &'a mut Kernel<'_>, key: Key, bits: u32, locks: bool) -> Vec<&'a mut Thread> {
    let waits = |thread: &&mut Thread| match &thread.blocked {
        Some(Blocked { wait: Wait::Futex { key: its, bitset, lock, .. }, .. }) => {
            *its == key && bitset & bits != 0 && *lock == locks
        }
        _ => false,
    };
    let mut found: Vec<&mut Thread> = k.other_threads.iter_mut().filter(waits).collect();
    found.sort_unstable_by_key(|thread| thread.blocked.as_ref().map(|blocked| blocked.since));
    found
}

/// Wakes up to `count` threads that wait for `key` with one of `bits`; returns their number.
pub(crate) fn wake(k: &mut Kernel<'_>, key: Key, count: u64, bits: u32) -> u64 {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let chosen = waiters(k, key, bits, false).into_iter().take(count);
    chosen.map(|thread| thread.finish_call(0)).count() as u64
}

/// Requeues up to `count` threads from `from` to `to` (at `address`); returns their number.
pub(crate) fn requeue(k: &mut Kernel<'_>, from: Key, to: Key, address: u64, count: u64) -> u64 {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let chosen = waiters(k, from, ANY, false).into_iter().take(count);
    let requeued = chosen.map(|thread| {
        if let Some(Blocked { wait: Wait::Futex { key, address: its, .. }, .. }) = &mut thread.blocked {
            (*key, *its) = (to, address);
        }
    });
    requeued.count() as u64
}

/// Hands a released priority-inheritance lock to the first waiter. Returns the new lock word: 0 if nobody waits.
pub(crate) fn hand_over(k: &mut Kernel<'_>, key: Key) -> u32 {
    let mut chosen = waiters(k, key, ANY, true);
    let Some((first, rest)) = chosen.split_first_mut() else { return 0 };
    first.finish_call(0);
    first.tid | if rest.is_empty() { 0 } else { WAITERS }
}

/// What remains to be done in the memory of a process when one of its threads ends.
#[derive(Clone, Copy)]
pub(crate) struct ExitWork {
    tid: u32,
    robust_list: u64,
    clear_tid: u64,
}

impl Thread {
    /// Takes the work to do at its end, which is done only once.
    pub(crate) fn take_exit_work(&mut self) -> ExitWork {
        let (robust_list, clear_tid) = (std::mem::take(&mut self.robust_list), std::mem::take(&mut self.clear_tid));
        ExitWork { tid: self.tid, robust_list, clear_tid }
    }
}

/// Performs the end of a thread of the process: marks the robust locks that it holds, clears its thread ID and wakes those who
/// wait for that. Bad pointers are ignored, as under Linux.
pub(crate) fn thread_ends(k: &mut Kernel<'_>, work: ExitWork) {
    if work.robust_list != 0 {
        // A bad pointer ends the walk.
        let _ = release_robust_locks(k, work.tid, work.robust_list);
    }
    let address = work.clear_tid;
    if address != 0 && k.mem.store(address, 0u32).is_ok() {
        let key = Key::of(k.mem, k.process.pid, address, false);
        wake(k, key, 1, ANY);
    }
}

/// Reads `struct robust_list_head`: first entry, offset from an entry to its lock word, entry being changed.
fn release_robust_locks(k: &mut Kernel<'_>, tid: u32, head: u64) -> Result<(), fxscope_guestmem::MemFault> {
    let [mut entry, distance, pending]: [u64; 3] = k.mem.load(head)?;
    for _ in 0..ROBUST_LIMIT {
        // The lowest bit of a pointer marks a priority-inheritance lock.
        let (at, inherits) = (entry & !1, entry & 1 != 0);
        if at == head {
            break;
        }
        let next: u64 = k.mem.load(at)?;
        if at != pending & !1 {
            release_robust_lock(k, tid, at.wrapping_add(distance), inherits)?;
        }
        entry = next;
    }
    if pending != 0 {
        release_robust_lock(k, tid, (pending & !1).wrapping_add(distance), pending & 1 != 0)?;
    }
    Ok(())
}

fn release_robust_lock(
    k: &mut Kernel<'_>,
    tid: u32,
    address: u64,
    inherits: bool,
) -> Result<(), fxscope_guestmem::MemFault> {
    let word: u32 = k.mem.load(address)?;
    let key = Key::of(k.mem, k.process.pid, address, false);
    if word & OWNER != tid {
        // It had released the lock but not yet woken the next waiter.
        if word == 0 && !inherits {
            wake(k, key, 1, ANY);
        }
        return Ok(());
    }
    if inherits {
        let next = hand_over(k, key);
        return k.mem.store(address, next | OWNER_DIED);
    }
    k.mem.store(address, word & WAITERS | OWNER_DIED)?;
    if word & WAITERS != 0 {
        wake(k, key, 1, ANY);
    }
    Ok(())
}
