//! Sets of semaphores (semop(2), semctl(2)).

use std::collections::BTreeMap;

use bytemuck::{Pod, Zeroable};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::SysV;

/// Largest value of a semaphore (`SEMVMX`).
pub(crate) const VALUE_MAX: u16 = 32_767;
/// Most semaphores in a set (`SEMMSL`), most sets (`SEMMNI`), most semaphores of all sets (`SEMMNS`), and most operations of
/// a call (`SEMOPM`).
pub(crate) const SET_MAX: u64 = 32_000;
/// Most sets.
pub(crate) const SETS: usize = 32_000;
/// Most operations of a call.
pub(crate) const OPERATIONS: u64 = 500;

/// Host bytes of a set, of a semaphore, and of an adjustment.
const SET: u64 = 256;
const SEMAPHORE: u64 = 8;
const ADJUSTMENT: u64 = 64;

/// Flags of an operation.
pub(crate) const NO_WAIT: u16 = 0o4000;
const UNDO: u16 = 0x1000;

/// One semaphore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Semaphore {
    /// Its value.
    pub value: u16,
    /// The process that changed it last.
    pub pid: u32,
}

/// A set of semaphores.
#[derive(Serialize, Deserialize)]
pub(crate) struct Set {
    /// The semaphores.
    pub semaphores: Vec<Semaphore>,
    /// Time of the last operation, in seconds since 1970, or 0.
    pub operated: u64,
    /// Time of the last change by `semctl`.
    pub changed: u64,
}

impl Set {
    /// Returns a set of so many semaphores.
    pub(crate) fn new(count: usize, now: u64) -> Set {
        Set { semaphores: vec![Semaphore::default(); count], operated: 0, changed: now }
    }

    /// Returns the bytes that it takes on the host.
    pub(crate) fn bytes(&self) -> u64 {
        SET + SEMAPHORE * self.semaphores.len() as u64
    }
}

/// `struct sembuf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Operation {
    /// Index of the semaphore.
    pub number: u16,
    /// What is added; 0: it must be 0.
    pub change: i16,
    /// Flags.
    pub flags: u16,
}

/// What a call has to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// Index of the semaphore.
    pub number: u16,
    /// It must become 0; otherwise, it must increase.
    pub zero: bool,
    /// The operation must not wait.
    pub no_wait: bool,
}

/// What must be added to semaphores when processes end: by process, set and index.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Undo(BTreeMap<(u32, u32, u16), i32>);

impl Undo {
    /// Returns the bytes that it takes on the host.
    pub(super) fn bytes(&self) -> u64 {
        ADJUSTMENT * self.0.len() as u64
    }

    /// Forgets what concerns a set, or one of its semaphores.
    pub(crate) fn forget(&mut self, set: u32, number: Option<u16>) {
        self.0.retain(|&(_, other, index), _| other != set || number.is_some_and(|number| number != index));
    }
}

impl SysV {
    /// Performs all operations on a set, or none.
    ///
    /// # Errors
    /// `ERANGE` when a value would become too large; `EFBIG`, `EINVAL` for semaphores that do not exist.
    pub(crate) fn operate(
        &mut self,
        id: u32,
        operations: &[Operation],
        pid: u32,
        now: u64,
    ) -> Result<Option<Missing>, Errno> {
        let (_, set) = self.sets.find(id)?;
        let mut values = set.semaphores.clone();
        for operation in operations {
            let semaphore = values.get_mut(usize::from(operation.number)).ok_or(Errno::FBIG)?;
            let next = i32::from(semaphore.value) + i32::from(operation.change);
            let zero = operation.change == 0;
            if zero && semaphore.value != 0 || next < 0 {
                let no_wait = operation.flags & NO_WAIT != 0;
                return Ok(Some(Missing { number: operation.number, zero, no_wait }));
            }
            if next > i32::from(VALUE_MAX) {
                return Err(Errno::RANGE);
            }
            *semaphore = Semaphore { value: next as u16, pid };
        }
        (set.semaphores, set.operated) = (values, now);
        for operation in operations.iter().filter(|operation| operation.flags & UNDO != 0 && operation.change != 0) {
            let adjustment = self.undo.0.entry((pid, id, operation.number)).or_default();
            *adjustment =
                (*adjustment - i32::from(operation.change)).clamp(-i32::from(VALUE_MAX) - 1, VALUE_MAX.into());
        }
        self.undo.0.retain(|_, adjustment| *adjustment != 0);
        Ok(None)
    }

    /// Undoes what a process that has ended has done with `SEM_UNDO`. Returns the sets that have changed.
    pub(crate) fn process_ends(&mut self, pid: u32) -> Vec<u32> {
        let of_process = self.undo.0.range((pid, 0, 0)..=(pid, u32::MAX, u16::MAX));
        let adjustments: Vec<((u32, u32, u16), i32)> = of_process.map(|(&key, &value)| (key, value)).collect();
        let mut changed = Vec::new();
        for (key, adjustment) in adjustments {
            self.undo.0.remove(&key);
            let (_, id, number) = key;
            let Ok((_, set)) = self.sets.find(id) else { continue };
            let Some(semaphore) = set.semaphores.get_mut(usize::from(number)) else { continue };
            let value = (i32::from(semaphore.value) + adjustment).clamp(0, VALUE_MAX.into());
            *semaphore = Semaphore { value: value as u16, pid };
            changed.push(id);
        }
        changed.dedup();
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::super::objects::Caller;
    use super::*;

    fn with_set(count: usize) -> (SysV, u32) {
        let mut sysv = SysV::default();
        let caller = Caller { pid: 1, uid: 0, gid: 0, privileged: true };
        let id = sysv.sets.get((0, 0o600), caller, 10, |_| Ok(()), || Ok(Set::new(count, 0))).expect("made");
        (sysv, id)
    }

    fn op(number: u16, change: i16, flags: u16) -> Operation {
        Operation { number, change, flags }
    }

    fn values(sysv: &mut SysV, id: u32) -> Vec<u16> {
        sysv.sets.find(id).expect("there").1.semaphores.iter().map(|s| s.value).collect()
    }

    #[test]
    fn all_operations_of_a_call_happen_or_none() {
        let (mut sysv, id) = with_set(2);
        assert_eq!(sysv.operate(id, &[op(0, 3, 0), op(1, 1, 0)], 5, 9), Ok(None));
        let missing = Missing { number: 1, zero: false, no_wait: true };
        assert_eq!(sysv.operate(id, &[op(0, -2, 0), op(1, -2, NO_WAIT)], 5, 9), Ok(Some(missing)));
        assert_eq!(values(&mut sysv, id), [3, 1]);
        let zero = Missing { number: 0, zero: true, no_wait: false };
        assert_eq!(sysv.operate(id, &[op(0, 0, 0)], 5, 9), Ok(Some(zero)));
        assert_eq!(sysv.operate(id, &[op(0, -3, 0), op(0, 0, 0)], 5, 9), Ok(None));
        assert_eq!(sysv.operate(id, &[op(2, 1, 0)], 5, 9), Err(Errno::FBIG));
        assert_eq!(sysv.operate(id, &[op(0, i16::MAX, 0), op(0, 1, 0)], 5, 9), Err(Errno::RANGE));
    }

    #[test]
    fn the_end_of_a_process_undoes_its_operations() {
        let (mut sysv, id) = with_set(2);
        assert_eq!(sysv.operate(id, &[op(0, 5, 0), op(1, 1, 0)], 1, 0), Ok(None));
        assert_eq!(sysv.operate(id, &[op(0, -2, UNDO), op(1, 4, UNDO)], 2, 0), Ok(None));
        assert_eq!(sysv.operate(id, &[op(1, -3, 0)], 1, 0), Ok(None));
        assert_eq!((sysv.process_ends(2), values(&mut sysv, id)), (vec![id], vec![5, 0]), "not below 0");
        assert_eq!(sysv.process_ends(2), []);
    }
}
