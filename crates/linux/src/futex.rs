//! Futexes: the waiters, and what the end of a thread does to the locks it holds.

use fxscope_guestmem::Memory;

use crate::kernel::Kernel;
use crate::thread::Thread;
use crate::wait::{Blocked, Wait};

/// Bits of a lock word: the owner's thread number.
pub(crate) const OWNER: u32 = 0x3fff_ffff;
/// Bit of a lock word: the owner ended without unlocking.
pub(crate) const OWNER_DIED: u32 = 0x4000_0000;
/// Bit of a lock word: someone waits in the kernel.
pub(crate) const WAITERS: u32 = 0x8000_0000;
/// Every bit: a wake-up for everyone.
pub(crate) const ANY: u32 = u32::MAX;

/// Most entries of a robust list that are looked at (Linux's `ROBUST_LIST_LIMIT`): lists may be circular.
const ROBUST_LIMIT: usize = 2048;

/// What makes two futex addresses the same futex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// An address of one process.
    Private {
        /// The process.
        pid: u32,
        /// The address.
        address: u64,
    },
    /// Memory that processes share: its physical address.
    Shared(u64),
}

impl Key {
    /// The futex at `address`; `private`: the program promises that no other process uses it.
    pub(crate) fn of(mem: &Memory, pid: u32, address: u64, private: bool) -> Key {
        let shared = !private && mem.region_at(address).is_some_and(|r| r.shared);
        match mem.physical(address) {
            Some(physical) if shared => Key::Shared(physical),
            _ => Key::Private { pid, address },
        }
    }
}

/// The threads that wait for `key`, first come first, as indices into the list of threads.
fn waiters(k: &Kernel, key: Key, bits: u32, locks: bool) -> Vec<usize> {
    let mut found: Vec<(u64, usize)> = Vec::new();
    for (index, thread) in k.system.threads.iter().enumerate() {
        if let Some(Blocked { wait: Wait::Futex { key: its, bitset, lock, .. }, since, .. }) = &thread.blocked
            && *its == key
            && bitset & bits != 0
            && *lock == locks
        {
            found.push((*since, index));
        }
    }
    found.sort_unstable();
    found.into_iter().map(|(_, index)| index).collect()
}

/// Wakes up to `count` threads that wait for `key` with one of `bits`; how many.
pub(crate) fn wake(k: &mut Kernel, key: Key, count: u64, bits: u32) -> u64 {
    let chosen = waiters(k, key, bits, false);
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(chosen.len());
    for &index in &chosen[..count] {
        k.system.threads[index].finish_call(0);
    }
    count as u64
}

/// Makes up to `count` threads that wait for `from` wait for `to` (at `address`) instead; how many.
pub(crate) fn requeue(k: &mut Kernel, from: Key, to: Key, address: u64, count: u64) -> u64 {
    let chosen = waiters(k, from, ANY, false);
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(chosen.len());
    for &index in &chosen[..count] {
        if let Some(Blocked { wait: Wait::Futex { key, address: its, .. }, .. }) = &mut k.system.threads[index].blocked
        {
            (*key, *its) = (to, address);
        }
    }
    count as u64
}

/// Gives a priority-inheritance lock that its owner has let go to the first thread that waits for it. The
/// word to store there: 0 when nobody waits.
pub(crate) fn hand_over(k: &mut Kernel, key: Key) -> u32 {
    let chosen = waiters(k, key, ANY, true);
    let Some((&first, rest)) = chosen.split_first() else { return 0 };
    let thread = &mut k.system.threads[first];
    thread.finish_call(0);
    thread.tid | if rest.is_empty() { 0 } else { WAITERS }
}

/// What the end of a thread does to memory: marks the robust locks it holds, clears its number and wakes who
/// waits for that. Bad pointers are passed over, as Linux does.
pub(crate) fn thread_ends(k: &mut Kernel, t: &mut Thread) {
    let head = std::mem::take(&mut t.robust_list);
    if head != 0 {
        // A pointer that leads nowhere ends the walk.
        let _ = release_robust_locks(k, t, head);
    }
    let address = std::mem::take(&mut t.clear_tid);
    if address != 0 && k.mem.store(address, 0u32).is_ok() {
        let key = Key::of(&k.mem, k.pid, address, false);
        wake(k, key, 1, ANY);
    }
}

/// `struct robust_list_head`: first entry, distance from an entry to its lock word, entry being changed.
fn release_robust_locks(k: &mut Kernel, t: &Thread, head: u64) -> Result<(), fxscope_guestmem::MemFault> {
    let [mut entry, distance, pending]: [u64; 3] = k.mem.load(head)?;
    for _ in 0..ROBUST_LIMIT {
        // The lowest bit of a pointer marks a priority-inheritance lock.
        let (at, inherits) = (entry & !1, entry & 1 != 0);
        if at == head {
            break;
        }
        let next: u64 = k.mem.load(at)?;
        if at != pending & !1 {
            release_robust_lock(k, t, at.wrapping_add(distance), inherits)?;
        }
        entry = next;
    }
    if pending != 0 {
        release_robust_lock(k, t, (pending & !1).wrapping_add(distance), pending & 1 != 0)?;
    }
    Ok(())
}

fn release_robust_lock(
    k: &mut Kernel,
    t: &Thread,
    address: u64,
    inherits: bool,
) -> Result<(), fxscope_guestmem::MemFault> {
    let word: u32 = k.mem.load(address)?;
    let key = Key::of(&k.mem, k.pid, address, false);
    if word & OWNER != t.tid {
        // It had let the lock go and not yet woken who waits for it.
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
