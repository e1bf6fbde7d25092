//! System calls that start and end threads.

use bytemuck::{Pod, Zeroable};
use fxscope_aarch64::Cpu;
use rustix::io::Errno;

use super::{Args, Result, pidfd};
use crate::budget;
use crate::end::End;
use crate::ipc::futex;
use crate::kernel::Kernel;
use crate::mm::address_space::AddressSpace;
use crate::mm::user;

use crate::sched::wait::{Blocked, Wait};
use crate::signal::AltStack;
use crate::system::Started;
use crate::table::Id;
use crate::thread::Thread;

/// Flags of `clone` (Linux `sched.h`).
mod flag {
    pub const VM: u64 = 0x100;
    pub const SIGHAND: u64 = 0x800;
    pub const PIDFD: u64 = 0x1000;
    pub const VFORK: u64 = 0x4000;
    pub const THREAD: u64 = 0x1_0000;
    pub const SETTLS: u64 = 0x8_0000;
    pub const PARENT_SETTID: u64 = 0x10_0000;
    pub const CHILD_CLEARTID: u64 = 0x20_0000;
    pub const CHILD_SETTID: u64 = 0x100_0000;
    /// New name spaces and other features that are not modelled.
    pub const UNSUPPORTED: u64 = 0x7e02_2080;
}

/// The request of `clone` and `clone3`.
#[derive(Clone, Copy)]
struct Request {
    flags: u64,
    /// The child's stack pointer, or 0 for the parent's.
    stack: u64,
    tls: u64,
    parent_tid: u64,
    child_tid: u64,
    /// Where a descriptor of the child is written, with `CLONE_PIDFD`.
    pidfd: u64,
}

/// `clone(flags, stack, parent_tid, tls, child_tid)`.
pub(super) fn clone(k: &mut Kernel<'_>, a: &Args) -> Result {
    let flags = a[0] & !0xff;
    // Both use the same argument.
    if flags & flag::PIDFD != 0 && flags & flag::PARENT_SETTID != 0 {
        return Err(Errno::INVAL);
    }
    start(k, Request { flags, stack: a[1], parent_tid: a[2], tls: a[3], child_tid: a[4], pidfd: a[2] })
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

pub(super) fn clone3(k: &mut Kernel<'_>, a: &Args) -> Result {
    if a[1] < size_of::<CloneArgs>() as u64 {
        return Err(Errno::INVAL);
    }
    let args: CloneArgs = user::read(k.mem, a[0])?;
    if args.flags & 0xff != 0 || (args.stack == 0) != (args.stack_size == 0) {
        return Err(Errno::INVAL);
    }
    let request = Request {
        flags: args.flags,
        stack: args.stack.wrapping_add(args.stack_size),
        tls: args.tls,
        parent_tid: args.parent_tid,
        child_tid: args.child_tid,
        pidfd: args.pidfd,
    };
    start(k, request)
}

fn start(k: &mut Kernel<'_>, request: Request) -> Result {
    let flags = request.flags;
    let has = |bit| flags & bit != 0;
    let contradictory = (has(flag::THREAD) && has(flag::PIDFD))
        || (has(flag::THREAD) && !has(flag::SIGHAND))
        || (has(flag::SIGHAND) && !has(flag::VM));
    if contradictory || has(flag::UNSUPPORTED) {
        return Err(Errno::INVAL);
    }
    k.check_tasks()?;
    if !has(flag::THREAD) {
        return start_process(k, request);
    }
    k.afford(budget::THREAD)?;
    let tid = k.system.new_id();
    let mut child = k.thread.duplicate(tid, k.process.pid);
    prepare(k, &mut child, request)?;
    if !has(flag::VFORK) {
        child.alt_stack = AltStack::NONE;
    }
    child.cpu_number = k.cpu_of_new(&child.affinity);
    child.charge = k.system.budget.charge(budget::THREAD);
    child.created_ns = k.system.now_ns;
    k.inherit_events(k.process.pid, tid);
    k.system.family.adds_thread(tid, k.process.pid);
    k.system.started.push(Started { thread: child, process: None });
    Ok(tid.into())
}

/// `fork` and `vfork`. A child that shares memory while its parent runs is not supported: nothing uses it today.
fn start_process(k: &mut Kernel<'_>, request: Request) -> Result {
    let waits = request.flags & flag::VFORK != 0;
    let shares = request.flags & flag::VM != 0;
    if shares && !waits {
        return Err(Errno::INVAL);
    }
    k.afford(budget::PROCESS)?;
    let (pid, files) = (k.system.new_id(), k.process.files.fork()?);
    let mut child = k.thread.duplicate(pid, pid);
    child.cpu_number = k.cpu_of_new(&child.affinity);
    let in_child = Request { flags: request.flags & !flag::PARENT_SETTID, ..request };
    let pidfd = open_pidfd(k, request, pid)?;
    let space = if shares {
        share_space(k, &mut child, request, in_child)
    } else {
        fork_space(k, &mut child, request, in_child)
    };
    let space = match (space, pidfd) {
        (Err(error), Some(fd)) => {
            k.process.files.close(fd)?;
            return Err(error);
        }
        (space, _) => space?,
    };
    k.inherit_events(pid, pid);
    let process = k.fork(pid, files, space);
    k.system.family.starts(pid, k.process.pid);
    k.system.started.push(Started { thread: child, process: Some(process) });
    if waits {
        k.block(Blocked::new(Wait::Child { vfork: Some(pid) }));
    }
    Ok(pid.into())
}

/// Writes a descriptor of the process `pid`, which is about to begin, if requested. Returns its number.
fn open_pidfd(k: &mut Kernel<'_>, request: Request, pid: u32) -> std::result::Result<Option<i32>, Errno> {
    if request.flags & flag::PIDFD == 0 {
        return Ok(None);
    }
    let fd = pidfd::open(k, pid, false, 0)? as i32;
    if let Err(error) = user::write(k.mem, request.pidfd, fd) {
        k.process.files.close(fd)?;
        return Err(error);
    }
    Ok(Some(fd))
}

/// Prepares a child that uses its parent's address space.
fn share_space(
    k: &mut Kernel<'_>,
    child: &mut Thread,
    request: Request,
    in_child: Request,
) -> std::result::Result<Id<AddressSpace>, Errno> {
    prepare(k, child, in_child)?;
    write_parent_tid(k, request, child.tid)?;
    Ok(k.process.space)
}

/// Copies the address space for a child and writes the child's words in it.
fn fork_space(
    k: &mut Kernel<'_>,
    child: &mut Thread,
    request: Request,
    in_child: Request,
) -> std::result::Result<Id<AddressSpace>, Errno> {
    let (own, copy) = (k.mem.active(), k.mem.fork().map_err(|_| Errno::NOMEM)?);
    k.mem.activate(copy);
    let prepared = prepare(k, child, in_child);
    k.mem.activate(own);
    let prepared = prepared.and_then(|()| write_parent_tid(k, request, child.tid));
    if let Err(error) = prepared {
        k.mem.remove_space(copy);
        return Err(error);
    }
    let AddressSpace { mapped, pages, heap_start, brk, .. } = k.space();
    let (mapped, pages, heap_start, brk) = (mapped.clone(), pages.fork(true), *heap_start, *brk);
    Ok(k.spaces.insert(AddressSpace { id: copy, mapped, pages, heap_start, brk }))
}

/// Writes the child's thread ID to the parent's memory, if requested.
fn write_parent_tid(k: &mut Kernel<'_>, request: Request, tid: u32) -> std::result::Result<(), Errno> {
    let asked = request.flags & flag::PARENT_SETTID != 0;
    if asked { user::write(k.mem, request.parent_tid, tid) } else { Ok(()) }
}

/// Sets the new thread's registers according to the flags, and records the words to which its thread ID is written.
fn prepare(k: &mut Kernel<'_>, child: &mut Thread, request: Request) -> std::result::Result<(), Errno> {
    let has = |bit| request.flags & bit != 0;
    child.cpu.set_x(0, 0);
    if request.stack != 0 {
        child.cpu.set_x(Cpu::SP, request.stack);
    }
    if has(flag::SETTLS) {
        child.cpu.tpidr = request.tls;
    }
    write_parent_tid(k, request, child.tid)?;
    if has(flag::CHILD_SETTID) {
        user::write(k.mem, request.child_tid, child.tid)?;
    }
    if has(flag::CHILD_CLEARTID) {
        child.clear_tid = request.child_tid;
    }
    Ok(())
}

pub(super) fn set_tid_address(k: &mut Kernel<'_>, a: &Args) -> Result {
    k.thread.clear_tid = a[0];
    Ok(k.thread.tid.into())
}

/// `exit`: ends the thread, and with the last one the process. Its status is that of the first thread.
pub(super) fn exit(k: &mut Kernel<'_>, a: &Args) -> Result {
    let status = a[0] as i32 & 0xff;
    let work = k.thread.take_exit_work();
    futex::thread_ends(k, work);
    if k.thread.tid == k.process.pid {
        k.process.leader_status = Some(status);
    }
    if k.other_threads.iter().any(|other| other.pid == k.process.pid) {
        let uses = k.thread.uses;
        k.process.used.add_thread(&uses);
        k.thread.ended = true;
    } else {
        let code = k.process.leader_status.unwrap_or(status);
        k.note_exit(code);
        k.process.end = Some(End::Exit { code });
    }
    Ok(0)
}

/// `exit_group`: ends the process.
pub(super) fn exit_group(k: &mut Kernel<'_>, a: &Args) -> Result {
    let code = a[0] as i32 & 0xff;
    k.note_exit(code);
    k.process.end = Some(End::Exit { code });
    Ok(0)
}
