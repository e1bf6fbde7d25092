//! The `futex` system call and robust lists.

use rustix::io::Errno;

use super::{Args, Result};
use crate::abi::time::Time;
use crate::ipc::futex::{ANY, Key, OWNER, OWNER_DIED, WAITERS, hand_over, requeue, wake};
use crate::kernel::Kernel;
use crate::mm::user;
use crate::sched::wait::{Blocked, FOR_EVER, Wait};

/// Operations (Linux `futex.h`).
mod op {
    pub const WAIT: u64 = 0;
    pub const WAKE: u64 = 1;
    pub const REQUEUE: u64 = 3;
    pub const CMP_REQUEUE: u64 = 4;
    pub const WAKE_OP: u64 = 5;
    pub const LOCK_PI: u64 = 6;
    pub const UNLOCK_PI: u64 = 7;
    pub const TRYLOCK_PI: u64 = 8;
    pub const WAIT_BITSET: u64 = 9;
    pub const WAKE_BITSET: u64 = 10;
    pub const LOCK_PI2: u64 = 13;
    /// Only threads of one process use the futex.
    pub const PRIVATE: u64 = 0x80;
    /// The time limit is on the real-time clock.
    pub const CLOCK_REALTIME: u64 = 0x100;
}

/// Returns whether the fourth argument of an operation is a time limit.
fn has_time_limit(operation: u64) -> bool {
    matches!(operation, op::WAIT | op::WAIT_BITSET | op::LOCK_PI | op::LOCK_PI2)
}

/// Checks the address of a futex, which must be a multiple of 4 and readable; returns its key and value.
fn checked(k: &mut Kernel<'_>, address: u64, private: bool) -> std::result::Result<(Key, u32), Errno> {
    if !address.is_multiple_of(4) {
        return Err(Errno::INVAL);
    }
    let word = user::read::<u32>(k.mem, address)?;
    Ok((Key::of(k.mem, k.process.pid, address, private), word))
}

/// Returns the time limit in simulated ns since the start. Only `FUTEX_WAIT` takes a duration.
fn time_limit(k: &mut Kernel<'_>, operation: u64, realtime: bool, pointer: u64) -> Result {
    if !has_time_limit(operation) || pointer == 0 {
        return Ok(FOR_EVER);
    }
    let time = user::read::<Time>(k.mem, pointer)?.to_ns()?;
    Ok(match operation {
        op::WAIT => k.system.now_ns.saturating_add(time),
        _ => k.system.since_start(time, realtime || operation == op::LOCK_PI),
    })
}

pub(super) fn futex(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (private, realtime) = (a[1] & op::PRIVATE != 0, a[1] & op::CLOCK_REALTIME != 0);
    let operation = a[1] & 0xffff_ffff & !(op::PRIVATE | op::CLOCK_REALTIME);
    if realtime && !matches!(operation, op::WAIT | op::WAIT_BITSET | op::LOCK_PI2) {
        return Err(Errno::NOSYS);
    }
    let limit = time_limit(k, operation, realtime, a[3])?;
    if private && matches!(operation, op::WAKE | op::WAKE_BITSET) && k.mem.region_at(a[0]).is_none() {
        // A futex of one process is only a number to Linux when it is woken: nobody waits at an address without memory.
        return if a[0].is_multiple_of(4) { Ok(0) } else { Err(Errno::INVAL) };
    }
    let (key, word) = checked(k, a[0], private)?;
    let (value, other, last) = (a[2] as u32, a[4], a[5] as u32);
    let bitset = if matches!(operation, op::WAIT_BITSET | op::WAKE_BITSET) { last } else { ANY };
    if bitset == 0 {
        return Err(Errno::INVAL);
    }
    match operation {
        op::WAIT | op::WAIT_BITSET if word != value => Err(Errno::AGAIN),
        op::WAIT | op::WAIT_BITSET => {
            wait(k, Wait::Futex { key, address: a[0], bitset, lock: false }, limit);
            Ok(0)
        }
        op::WAKE | op::WAKE_BITSET => Ok(wake(k, key, count(value), bitset)),
        op::REQUEUE => move_waiters(k, key, value, a[3] as u32, other, private),
        op::CMP_REQUEUE if word != last => Err(Errno::AGAIN),
        op::CMP_REQUEUE => move_waiters(k, key, value, a[3] as u32, other, private),
        op::WAKE_OP => wake_op(k, key, value, a[3] as u32, other, last, private),
        op::LOCK_PI | op::LOCK_PI2 => lock(k, a[0], key, word, Some(limit)),
        op::TRYLOCK_PI => lock(k, a[0], key, word, None),
        op::UNLOCK_PI if word & OWNER != k.thread.tid => Err(Errno::PERM),
        op::UNLOCK_PI => {
            let next = hand_over(k, key);
            user::write(k.mem, a[0], next)?;
            Ok(0)
        }
        _ => Err(Errno::NOSYS),
    }
}

/// Returns how many threads to wake: a negative number wakes one, as under Linux.
fn count(value: u32) -> u64 {
    (value as i32).max(1) as u64
}

fn wait(k: &mut Kernel<'_>, wait: Wait, until_ns: u64) {
    let restart = until_ns == FOR_EVER;
    k.block(Blocked { until_ns, restart, ..Blocked::new(wait) });
}

/// `FUTEX_REQUEUE`: wakes some waiters and requeues others.
fn move_waiters(k: &mut Kernel<'_>, from: Key, woken: u32, moved: u32, address: u64, private: bool) -> Result {
    if (woken as i32) < 0 || (moved as i32) < 0 {
        return Err(Errno::INVAL);
    }
    let (to, _) = checked(k, address, private)?;
    let woken = if woken == 0 { 0 } else { wake(k, from, woken.into(), ANY) };
    Ok(woken + requeue(k, from, to, address, moved.into()))
}

/// `FUTEX_WAKE_OP`: changes a second futex, wakes waiters of the first, and of the second if the comparison with its old value
/// holds. The operation is encoded as `op:4 comparison:4 operand:12 comparand:12`.
fn wake_op(k: &mut Kernel<'_>, first: Key, n1: u32, n2: u32, address: u64, code: u32, private: bool) -> Result {
    let (second, old) = checked(k, address, private)?;
    let signed = |shift: u32| ((code << shift) as i32) >> 20;
    let (mut operand, comparand) = (signed(8) as u32, signed(20));
    if code >> 31 != 0 {
        operand = 1 << (operand & 31);
    }
    let new = match code >> 28 & 7 {
        0 => operand,
        1 => old.wrapping_add(operand),
        2 => old | operand,
        3 => old & !operand,
        4 => old ^ operand,
        _ => return Err(Errno::NOSYS),
    };
    let value = old as i32;
    let also_second = match code >> 24 & 0xf {
        0 => value == comparand,
        1 => value != comparand,
        2 => value < comparand,
        3 => value <= comparand,
        4 => value > comparand,
        5 => value >= comparand,
        _ => return Err(Errno::NOSYS),
    };
    user::write(k.mem, address, new)?;
    let woken = wake(k, first, count(n1), ANY);
    Ok(woken + if also_second { wake(k, second, count(n2), ANY) } else { 0 })
}

/// Acquires a priority-inheritance lock, or waits for it until the limit; `None`: does not wait. Priorities are not modelled, so
/// nothing is inherited.
fn lock(k: &mut Kernel<'_>, address: u64, key: Key, word: u32, until_ns: Option<u64>) -> Result {
    let owner = word & OWNER;
    if owner == k.thread.tid {
        return Err(Errno::DEADLK);
    }
    if owner == 0 {
        user::write(k.mem, address, k.thread.tid | word & (WAITERS | OWNER_DIED))?;
        return Ok(0);
    }
    if !k.other_threads.iter().any(|other| other.tid == owner) {
        return Err(Errno::SRCH);
    }
    let Some(until_ns) = until_ns else { return Err(Errno::AGAIN) };
    user::write(k.mem, address, word | WAITERS)?;
    wait(k, Wait::Futex { key, address, bitset: ANY, lock: true }, until_ns);
    Ok(0)
}

/// Bytes of `struct robust_list_head`.
const HEAD_BYTES: u64 = 24;

pub(super) fn set_robust_list(k: &mut Kernel<'_>, a: &Args) -> Result {
    if a[1] != HEAD_BYTES {
        return Err(Errno::INVAL);
    }
    k.thread.robust_list = a[0];
    Ok(0)
}

pub(super) fn get_robust_list(k: &mut Kernel<'_>, a: &Args) -> Result {
    let tid = a[0] as u32;
    let other = k.other_threads.iter().find(|other| other.tid == tid).map(|other| other.robust_list);
    let head = if tid == 0 || tid == k.thread.tid { k.thread.robust_list } else { other.ok_or(Errno::SRCH)? };
    user::write(k.mem, a[1], head)?;
    user::write(k.mem, a[2], HEAD_BYTES)?;
    Ok(0)
}
