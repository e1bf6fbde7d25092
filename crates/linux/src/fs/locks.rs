//! Record locks (`fcntl(2)`, "Advisory record locking"): which part of which file is locked, and by whom.
//!
//! They exclude the processes of the run from each other, not other programs on the host.

use std::collections::{BTreeMap, BTreeSet};

use rustix::io::Errno;

use crate::budget::Charge;
use crate::fs::files::{Description, OpenFile};
use crate::kernel::Kernel;
use crate::sched::wait::Wait;

/// A host file: device and inode.
pub(crate) type FileId = (u64, u64);

/// Maximum number of locked ranges in a run before a further one is locked; each costs [`LOCK`] bytes.
const MOST: usize = 1 << 14;

/// Cost of a lock on the host, in bytes.
const LOCK: u64 = 128;

/// Who holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A process: the lock ends when it closes any descriptor of the file.
    Process(u32),
    /// An open file description: the lock ends with its last descriptor.
    Description(Description),
}

/// A locked range, or one to lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lock {
    pub owner: Owner,
    /// The first byte, and the last one.
    pub first: u64,
    pub last: u64,
    /// Whether others may not even read it.
    pub exclusive: bool,
}

impl Lock {
    fn overlaps(&self, other: &Lock) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    fn excludes(&self, other: &Lock) -> bool {
        self.owner != other.owner && self.overlaps(other) && (self.exclusive || other.exclusive)
    }
}

/// A lock for which a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WantedLock {
    pub file: FileId,
    pub lock: Lock,
}

/// All record locks of a run.
#[derive(Default)]
pub(crate) struct Locks {
    files: BTreeMap<FileId, Vec<Lock>>,
    charge: Charge,
}

impl Locks {
    /// Returns whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    fn count(&self) -> usize {
        self.files.values().map(Vec::len).sum()
    }

    /// Returns a lock that prevents this one: that of the lowest range.
    pub(crate) fn obstacle(&self, wanted: &WantedLock) -> Option<Lock> {
        self.files.get(&wanted.file)?.iter().find(|lock| lock.excludes(&wanted.lock)).copied()
    }

    /// Replaces what the owner has locked in the range of `lock` by `lock`, or by nothing.
    fn replace(&mut self, file: FileId, lock: Lock, locked: bool) {
        let list = self.files.entry(file).or_default();
        let (own, mut rest): (Vec<Lock>, Vec<Lock>) = list.drain(..).partition(|l| l.owner == lock.owner);
        let mut kept: Vec<Lock> = Vec::new();
        for old in own {
            if !old.overlaps(&lock) {
                kept.push(old);
                continue;
            }
            if old.first < lock.first {
                kept.push(Lock { last: lock.first - 1, ..old });
            }
            if old.last > lock.last {
                kept.push(Lock { first: lock.last + 1, ..old });
            }
        }
        if locked {
            kept.push(lock);
        }
        kept.sort_unstable_by_key(|lock| lock.first);
        // Adjacent ranges of the same kind are one lock.
        kept.dedup_by(|next, lock| {
            let joined = lock.exclusive == next.exclusive && lock.last.checked_add(1) == Some(next.first);
            if joined {
                lock.last = next.last;
            }
            joined
        });
        rest.extend(kept);
        rest.sort_by_key(|lock| lock.first);
        *list = rest;
        self.tidy();
    }

    /// Removes the locks that are not to be kept. Returns whether there were any.
    fn retain(&mut self, mut keep: impl FnMut(FileId, &Lock) -> bool) -> bool {
        let before = self.count();
        for (&file, list) in &mut self.files {
            list.retain(|lock| keep(file, lock));
        }
        self.tidy();
        self.count() < before
    }

    fn tidy(&mut self) {
        self.files.retain(|_, list| !list.is_empty());
    }
}

/// Returns the identity of an open file.
pub(crate) fn file_id(file: &OpenFile) -> Result<FileId, Errno> {
    rustix::fs::fstat(&file.host).map(|stat| (stat.st_dev, stat.st_ino))
}

impl Kernel<'_> {
    /// Locks a range that nothing prevents, or unlocks it.
    ///
    /// # Errors
    /// `ENOLCK` when the run has as many locks as it may.
    pub(crate) fn set_lock(&mut self, wanted: WantedLock, locked: bool) -> Result<(), Errno> {
        // One lock may become two, also when a part of it is unlocked.
        let most = if locked { MOST } else { 2 * MOST };
        if self.system.locks.count() + 2 > most || (locked && self.afford(2 * LOCK).is_err()) {
            return Err(Errno::NOLCK);
        }
        self.system.locks.replace(wanted.file, wanted.lock, locked);
        self.locks_changed();
        Ok(())
    }

    /// Accounts for the locks, and lets the threads that wait for one try again.
    fn locks_changed(&mut self) {
        let bytes = self.system.locks.count() as u64 * LOCK;
        if self.system.locks.charge.bytes() == 0 {
            self.system.locks.charge = self.system.budget.charge(bytes);
        }
        self.system.locks.charge.set(bytes);
        for thread in self.all_threads_mut() {
            thread.poked |= matches!(thread.blocked.as_ref().map(|b| &b.wait), Some(Wait::Lock(_)));
        }
    }

    /// Returns whether `process` would wait for itself if it waited for a lock of `holder`: that process waits, directly or through
    /// others, for one of `process`.
    pub(crate) fn lock_deadlock(&self, process: u32, holder: Owner) -> bool {
        let mut seen: Vec<u32> = Vec::new();
        let mut next = holder;
        while let Owner::Process(pid) = next {
            if pid == process {
                return true;
            }
            if seen.contains(&pid) {
                return false;
            }
            seen.push(pid);
            let waited_for = self.all_threads().filter(|thread| thread.pid == pid).find_map(|thread| {
                match thread.blocked.as_ref().map(|blocked| &blocked.wait) {
                    Some(Wait::Lock(wanted)) => self.system.locks.obstacle(wanted),
                    _ => None,
                }
            });
            match waited_for {
                Some(lock) => next = lock.owner,
                None => return false,
            }
        }
        false
    }

    /// Closes a descriptor of the running process and releases the locks that end with it.
    ///
    /// # Errors
    /// `EBADF`.
    pub(crate) fn close_descriptor(&mut self, fd: i32) -> Result<(), Errno> {
        let file = self.process.files.open_file(fd)?;
        let closed = if self.system.locks.is_empty() { None } else { file_id(file).ok() };
        self.process.files.close(fd)?;
        self.release_locks(closed.as_slice(), None);
        Ok(())
    }

    /// Releases the locks of the running process on files of which it has closed a descriptor, those of `ended`, a process that has
    /// ended, and those of descriptions without a descriptor.
    pub(crate) fn release_locks(&mut self, closed: &[FileId], ended: Option<u32>) {
        if self.system.locks.is_empty() || (closed.is_empty() && ended.is_none()) {
            return;
        }
        let own = self.process.pid;
        let open = self.all_processes().flat_map(|process| process.files.open_files());
        let open: BTreeSet<Description> = open.map(|file| file.description).collect();
        let released = self.system.locks.retain(|file, lock| match lock.owner {
            Owner::Process(pid) => ended != Some(pid) && (pid != own || !closed.contains(&file)),
            Owner::Description(description) => open.contains(&description),
        });
        if released {
            self.locks_changed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileId = (1, 2);

    fn lock(first: u64, last: u64, exclusive: bool) -> Lock {
        Lock { owner: Owner::Process(7), first, last, exclusive }
    }

    fn ranges(locks: &Locks) -> Vec<(u64, u64, bool)> {
        locks.files.get(&FILE).into_iter().flatten().map(|l| (l.first, l.last, l.exclusive)).collect()
    }

    #[test]
    fn unlocking_the_middle_leaves_two_locks_and_locking_it_again_joins_them() {
        let mut locks = Locks::default();
        locks.replace(FILE, lock(0, u64::MAX, true), true);
        locks.replace(FILE, lock(10, 19, true), false);
        assert_eq!(ranges(&locks), [(0, 9, true), (20, u64::MAX, true)]);
        locks.replace(FILE, lock(10, 19, false), true);
        assert_eq!(ranges(&locks), [(0, 9, true), (10, 19, false), (20, u64::MAX, true)]);
        locks.replace(FILE, lock(10, 19, true), true);
        assert_eq!(ranges(&locks), [(0, u64::MAX, true)]);
        locks.replace(FILE, lock(0, u64::MAX, true), false);
        assert!(locks.is_empty());
    }

    #[test]
    fn shared_locks_exclude_only_exclusive_ones_of_others() {
        let mut locks = Locks::default();
        locks.replace(FILE, lock(0, 9, false), true);
        let wanted = |owner, exclusive| WantedLock { file: FILE, lock: Lock { owner, ..lock(5, 6, exclusive) } };
        assert_eq!(locks.obstacle(&wanted(Owner::Process(8), false)), None);
        assert_eq!(locks.obstacle(&wanted(Owner::Process(7), true)), None);
        assert_eq!(locks.obstacle(&wanted(Owner::Process(8), true)), Some(lock(0, 9, false)));
    }
}
