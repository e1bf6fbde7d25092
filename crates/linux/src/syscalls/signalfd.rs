//! Signals read from a descriptor: `signalfd(2)`. A reader takes the signals that are pending for its own thread and process.

use std::cell::Cell;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::poll::{CLOEXEC, NONBLOCK};
use super::timerfd::insert;
use super::transfer::Piece;
use super::{Args, Result, streams};
use crate::fs::objects::{Level, Object, SignalFile};
use crate::kernel::Kernel;
use crate::mm::user;
use crate::sched::wait::{Blocked, Wait};
use crate::signal::{self, Origin, SigInfo, UNBLOCKABLE, code};

/// Bytes of a `struct signalfd_siginfo`.
const INFO: usize = 128;

pub(super) fn signalfd4(k: &mut Kernel<'_>, a: &Args) -> Result {
    if a[2] != 8 || a[3] & !(CLOEXEC | NONBLOCK) != 0 {
        return Err(Errno::INVAL);
    }
    let mask = user::read::<u64>(k.mem, a[1])? & !UNBLOCKABLE;
    let fd = a[0] as i32;
    if fd == -1 {
        let signals = SignalFile { level: Level::new(a[3] & NONBLOCK != 0)?, mask: Cell::new(mask) };
        return insert(k, Object::Signals(signals), a[3]);
    }
    k.process.files.host(fd)?;
    match k.process.files.object(fd) {
        Some(Object::Signals(signals)) => signals.mask.set(mask),
        _ => return Err(Errno::INVAL),
    }
    Ok(fd as u64)
}

/// Reads as many signals as fit, waiting until there is one.
pub(super) fn read(k: &mut Kernel<'_>, fd: i32, mask: u64, pieces: &[Piece]) -> Result {
    let room = pieces.iter().map(|piece| piece.len).sum::<u64>() / INFO as u64;
    if room == 0 {
        return Err(Errno::INVAL);
    }
    streams::check_writable(k, pieces)?;
    let mut bytes = Vec::new();
    while (bytes.len() / INFO) < room as usize {
        let Some(info) = signal::take(k, mask) else { break };
        bytes.extend(to_bytes(info));
    }
    if bytes.is_empty() {
        if rustix::fs::fcntl_getfl(k.process.files.host(fd)?)?.contains(OFlags::NONBLOCK) {
            return Err(Errno::AGAIN);
        }
        k.block(Blocked { restart: true, ..Blocked::new(Wait::Signal(mask)) });
        return Ok(0);
    }
    streams::scatter(k, pieces, 0, &bytes)?;
    Ok(bytes.len() as u64)
}

/// Returns the `struct signalfd_siginfo` of a signal.
fn to_bytes(info: SigInfo) -> [u8; INFO] {
    let mut bytes = [0; INFO];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &info.signal.to_le_bytes());
    put(8, &info.code.to_le_bytes());
    match info.origin {
        Origin::Fault { address, .. } => put(72, &address.to_le_bytes()),
        Origin::Sender { pid, uid } => {
            put(12, &pid.to_le_bytes());
            put(16, &uid.to_le_bytes());
        }
        Origin::Child { pid, uid, status } => {
            put(12, &pid.to_le_bytes());
            put(16, &uid.to_le_bytes());
            put(40, &status.to_le_bytes());
        }
        Origin::Queued { pid, uid, value } => {
            // A timer's signal has the timer's number and the overruns instead of the sender.
            let [first, second] = if info.code == code::SI_TIMER { [24, 32] } else { [12, 16] };
            put(first, &pid.to_le_bytes());
            put(second, &uid.to_le_bytes());
            put(44, &(value as u32).to_le_bytes());
            put(48, &value.to_le_bytes());
        }
    }
    bytes
}
