//! System calls: dispatch from the table to the handlers, which are in one file per subject.
//!
//! A handler receives the process, the calling thread and six arguments, and returns the value for `x0` or an error number. A
//! call that has to wait records the reason in the thread (`Thread::block`); its result is written when the wait is over.

mod barrier;
mod children;
mod exec;
mod fifo;
mod files;
mod futex;
mod identity;
mod inotify;
mod locks;
mod memory;
mod mqueue;
mod numa;
mod paths;
mod perf;
mod pidfd;
mod poll;
mod prctl;
mod process;
mod process_vm;
mod procmem;
mod pty;
mod scheduling;
mod shm;
mod signalfd;
mod signals;
mod sockets;
mod splice;
mod stat;
mod streams;
mod sysv;
mod table;
mod threads;
mod time;
mod timerfd;
mod timers;
mod transfer;

use rustix::io::Errno;

use crate::fs::{memory_files, terminals};
use crate::kernel::Kernel;

pub use table::TABLE;

/// The six arguments of a system call.
pub type Args = [u64; 6];

/// The value for `x0`, or an error number.
pub type Result = std::result::Result<u64, Errno>;

/// A handler of a system call.
pub type Handler = fn(&mut Kernel<'_>, &Args) -> Result;

/// One system call of arm64 Linux.
#[derive(Clone, Copy)]
pub struct SystemCall {
    /// Its number, in `x8`.
    pub number: u64,
    /// Its name.
    pub name: &'static str,
    /// Its handler; `None`: the call fails with `ENOSYS`, and is counted and reported.
    pub handler: Option<Handler>,
}

/// One more than the highest number in the table.
const NUMBERS: usize = TABLE[TABLE.len() - 1].number as usize + 1;

/// The table by number.
static BY_NUMBER: [Option<&SystemCall>; NUMBERS] = {
    let mut by_number = [None; NUMBERS];
    let mut i = 0;
    while i < TABLE.len() {
        by_number[TABLE[i].number as usize] = Some(&TABLE[i]);
        i += 1;
    }
    by_number
};

fn find(number: u64) -> Option<&'static SystemCall> {
    usize::try_from(number).ok().and_then(|n| *BY_NUMBER.get(n)?)
}

/// Returns the name of a system call, such as `openat`.
#[must_use]
pub fn name(number: u64) -> &'static str {
    find(number).map_or("(no such system call)", |call| call.name)
}

/// Returns whether a system call may reduce the bytes of files in the simulated memory: by closing, deleting, shortening or
/// unmapping them. Calls that add to them account for that themselves.
fn may_release_files(number: u64) -> bool {
    let name = name(number);
    let closes = ["close", "close_range", "dup3", "execve", "execveat", "recvmsg", "recvmmsg", "shutdown"];
    let deletes = ["unlinkat", "renameat", "renameat2", "openat", "openat2", "truncate", "ftruncate", "fallocate"];
    let maps = ["mmap", "munmap", "mremap", "shmat", "shmdt", "sendfile", "copy_file_range", "splice", "lseek"];
    closes.contains(&name) || deletes.contains(&name) || maps.contains(&name)
}

/// Performs the system call that the thread has just made.
pub(crate) fn call(k: &mut Kernel<'_>) {
    k.thread.discard_sve_state();
    let number = k.thread.cpu.x(8);
    let args: Args = std::array::from_fn(|n| k.thread.cpu.x(n as u8));
    let result = match find(number).and_then(|call| call.handler) {
        Some(handler) => handler(k, &args),
        None => {
            k.system.note_unknown(number);
            Err(Errno::NOSYS)
        }
    };
    if k.mem.has_unmapped() {
        k.forget_unmapped();
    }
    if k.mem.elsewhere_bytes() > 0 && may_release_files(number) {
        memory_files::recount(k);
    }
    if !k.system.network.flight.is_empty() {
        k.system.network.flight.sweep();
    }
    terminals::tell_leaders(k);
    k.settle_charges();
    if k.thread.blocked.is_some() {
        return;
    }
    // The mask applied to the wait only, which has ended without a signal.
    if let Some(mask) = k.thread.mask_after_suspend.take() {
        k.thread.mask = mask;
    }
    match result {
        // A signal to the simulator interrupted the host's call: repeat it after the driver has run.
        Err(Errno::INTR) => {
            k.thread.cpu.pc = k.thread.cpu.pc.wrapping_sub(4);
        }
        Ok(value) => k.thread.cpu.set_x(0, value),
        Err(error) => k.thread.cpu.set_x(0, i64::from(error.raw_os_error()).wrapping_neg() as u64),
    }
}
