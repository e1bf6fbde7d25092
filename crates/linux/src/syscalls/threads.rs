//! System calls that start and end threads.

use bytemuck::{Pod, Zeroable};
use fxscope_aarch64::{Blocks, Cpu};
use fxscope_guestmem::Memory;
use rustix::io::Errno;

use super::{Args, Result, guest};
use crate::budget;
use crate::futex;
use crate::kernel::{End, Kernel};
use crate::processes::Parked;
use crate::signal::AltStack;
use crate::thread::Thread;
use crate::wait::{Blocked, Wait};

/// Flags of `clone` (Linux `sched.h`).
mod flag {
    pub const VM: u64 = 0x100;
    pub const SIGHAND: u64 = 0x800;
    pub const VFORK: u64 = 0x4000;
    pub const THREAD: u64 = 0x1_0000;
    pub const SETTLS: u64 = 0x8_0000;
    pub const PARENT_SETTID: u64 = 0x10_0000;
    pub const CHILD_CLEARTID: u64 = 0x20_0000;
    pub const CHILD_SETTID: u64 = 0x100_0000;
    /// New name spaces and other things that are not modelled.
    pub const UNSUPPORTED: u64 = 0x7e02_3080;
}

/// What `clone` and `clone3` ask for.
#[derive(Clone, Copy)]
struct Request {
    flags: u64,
    /// The child's stack pointer, or 0 for the parent's.
    stack: u64,
    tls: u64,
    parent_tid: u64,
    child_tid: u64,
}

/// `clone(flags, stack, parent_tid, tls, child_tid)`.
pub(super) fn clone(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    let request = Request { flags: a[0] & !0xff, stack: a[1], parent_tid: a[2], tls: a[3], child_tid: a[4] };
    start(k, t, request)
}

/// `struct clone_args` in its first version.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
}

pub(super) fn clone3(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    if a[1] < size_of::<CloneArgs>() as u64 {
        return Err(Errno::INVAL);
    }
    let args: CloneArgs = guest::read(&mut k.mem, a[0])?;
    if args.flags & 0xff != 0 || (args.stack == 0) != (args.stack_size == 0) {
        return Err(Errno::INVAL);
    }
    let request = Request {
        flags: args.flags,
        stack: args.stack.wrapping_add(args.stack_size),
        tls: args.tls,
        parent_tid: args.parent_tid,
        child_tid: args.child_tid,
    };
    start(k, t, request)
}

fn start(k: &mut Kernel, t: &mut Thread, request: Request) -> Result {
    let flags = request.flags;
    let has = |bit| flags & bit != 0;
    let contradictory = (has(flag::THREAD) && !has(flag::SIGHAND)) || (has(flag::SIGHAND) && !has(flag::VM));
    if contradictory || has(flag::UNSUPPORTED) {
        return Err(Errno::INVAL);
    }
    k.check_tasks()?;
    if !has(flag::THREAD) {
        return start_process(k, t, request);
    }
    k.afford(budget::THREAD)?;
    let tid = k.system.new_id();
    let mut child = Box::new(t.duplicate(tid, k.pid));
    prepare(k, &mut child, request)?;
    if !has(flag::VFORK) {
        child.alt_stack = AltStack::NONE;
    }
    child.cpu_number = k.cpu_of_new(&child.affinity, t);
    child.charge = k.budget.charge(budget::THREAD);
    child.created_ns = k.now_ns;
    k.system.threads.push_back(child);
    Ok(tid.into())
}

/// `fork` and `vfork`. Memory in common without waiting for the child is not there: nothing uses it today.
fn start_process(k: &mut Kernel, t: &mut Thread, request: Request) -> Result {
    let waits = request.flags & flag::VFORK != 0;
    // A child that borrows memory itself has none to lend: its own children get a copy.
    let borrows = request.flags & flag::VM != 0 && k.borrows_from.is_none();
    if borrows && !waits {
        return Err(Errno::INVAL);
    }
    k.afford(budget::PROCESS)?;
    let (pid, files) = (k.system.new_id(), k.files.fork()?);
    let mem = if borrows { k.mem.sibling() } else { k.mem.fork() }.map_err(|_| Errno::NOMEM)?;
    let mut process = k.fork(pid, files, mem, borrows);
    let mut child = Box::new(t.duplicate(pid, pid));
    child.cpu_number = k.cpu_of_new(&child.affinity, t);
    let in_child = Request { flags: request.flags & !flag::PARENT_SETTID, ..request };
    if borrows {
        prepare(k, &mut child, in_child)?;
    } else {
        process.mem.use_arena_of(&mut k.mem);
        let prepared = prepare(&mut process, &mut child, in_child);
        k.mem.use_arena_of(&mut process.mem);
        if let Err(error) = prepared {
            give_back(k, &mut process.mem);
            return Err(error);
        }
    }
    if request.flags & flag::PARENT_SETTID != 0
        && let Err(error) = guest::write(&mut k.mem, request.parent_tid, pid)
    {
        give_back(k, &mut process.mem);
        return Err(error);
    }
    let blocks = Blocks::new(child.cpu.vl);
    k.system.processes.insert(pid, Box::new(Parked { kernel: process, blocks }));
    k.system.threads.push_back(child);
    if waits {
        t.block(k, Blocked::new(Wait::Child { vfork: Some(pid) }));
    }
    Ok(pid.into())
}

/// Gives the pages of an address space back that no process has got.
fn give_back(k: &mut Kernel, mem: &mut Memory) {
    mem.use_arena_of(&mut k.mem);
    mem.clear();
    k.mem.use_arena_of(mem);
}

/// What the flags say about the new thread's registers and the words that are told its number.
fn prepare(k: &mut Kernel, child: &mut Thread, request: Request) -> std::result::Result<(), Errno> {
    let has = |bit| request.flags & bit != 0;
    child.cpu.set_x(0, 0);
    if request.stack != 0 {
        child.cpu.set_x(Cpu::SP, request.stack);
    }
    if has(flag::SETTLS) {
        child.cpu.tpidr = request.tls;
    }
    if has(flag::PARENT_SETTID) {
        guest::write(&mut k.mem, request.parent_tid, child.tid)?;
    }
    if has(flag::CHILD_SETTID) {
        guest::write(&mut k.mem, request.child_tid, child.tid)?;
    }
    if has(flag::CHILD_CLEARTID) {
        child.clear_tid = request.child_tid;
    }
    Ok(())
}

pub(super) fn set_tid_address(_: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    t.clear_tid = a[0];
    Ok(t.tid.into())
}

/// `exit`: ends the thread, and with the last one the process. Its status is that of the first thread.
pub(super) fn exit(k: &mut Kernel, t: &mut Thread, a: &Args) -> Result {
    let status = a[0] as i32 & 0xff;
    futex::thread_ends(k, t);
    if t.tid == k.pid {
        k.leader_status = Some(status);
    }
    if k.system.threads.iter().any(|other| other.pid == k.pid) {
        t.ended = true;
    } else {
        k.end = Some(End::Exit { code: k.leader_status.unwrap_or(status) });
    }
    Ok(0)
}

/// `exit_group`: ends the process.
pub(super) fn exit_group(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    k.end = Some(End::Exit { code: a[0] as i32 & 0xff });
    Ok(0)
}
