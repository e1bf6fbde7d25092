//! Processes: how they begin, how one after the other runs, and how they end. The one that runs is kept in place in
//! [`Guest`]; the others are parked. Their address spaces have pages of the same arena, which is with the one that
//! runs, as is [`System`].
//!
//! [`System`]: crate::scheduler::System

use std::rc::Rc;

use fxscope_aarch64::Blocks;
use fxscope_guestmem::Memory;

use crate::budget;
use crate::files::Files;
use crate::futex;
use crate::guest::{Guest, PID, Step};
use crate::kernel::{End, Kernel, Random};
use crate::memory_files;
use crate::pages::add_up;
use crate::scheduler::System;
use crate::signal::{self, Origin, SigInfo, code, flags, number::SIGCHLD};
use crate::thread::Thread;
use crate::timers::Timers;
use crate::wait::Wait;

/// The process that takes over children whose parent has ended.
const INIT: u32 = 1;

/// A process that is not the one that runs.
pub(crate) struct Parked {
    pub kernel: Kernel,
    pub blocks: Blocks,
}

/// A process that has ended and that its parent has not asked about.
pub(crate) struct Zombie {
    pub pid: u32,
    pub ppid: u32,
    pub group: u32,
    pub end: ChildEnd,
    /// Simulated time it and its children spent running, in ns.
    pub cpu_ns: u64,
}

/// How a child ended, as its parent is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildEnd {
    Exited(i32),
    Killed(u32),
}

impl ChildEnd {
    /// The status of `wait4`.
    pub(crate) fn status(self) -> u32 {
        match self {
            ChildEnd::Exited(status) => (status as u32 & 0xff) << 8,
            ChildEnd::Killed(signal) => signal & 0x7f,
        }
    }

    /// `si_code` and `si_status` of `SIGCHLD` and `waitid`.
    pub(crate) fn code_and_status(self) -> (i32, i32) {
        match self {
            ChildEnd::Exited(status) => (code::CLD_EXITED, status),
            ChildEnd::Killed(signal) => (code::CLD_KILLED, signal as i32),
        }
    }
}

impl Kernel {
    /// A process like this one with the number `pid`, these open files and the address space `mem`: a copy of this one's, or an
    /// empty one when it `borrows` this one's.
    pub(crate) fn fork(&mut self, pid: u32, files: Files, mem: Memory, borrows: bool) -> Kernel {
        Kernel {
            mem,
            platform: self.platform.clone(),
            now_ns: self.now_ns,
            end: None,
            files,
            mapped: self.mapped.clone(),
            pages: self.pages.fork(!borrows),
            symbols: Rc::clone(&self.symbols),
            symbols_charge: Rc::clone(&self.symbols_charge),
            budget: self.budget.clone(),
            charge: self.budget.charge(budget::PROCESS),
            fixed_bytes: budget::PROCESS,
            names_charge: Rc::clone(&self.names_charge),
            actions: self.actions,
            heap_start: self.heap_start,
            brk: self.brk,
            pid,
            ppid: self.pid,
            group: self.group,
            session: self.session,
            borrows_from: borrows.then_some(self.pid),
            allowed_cpus: self.allowed_cpus.clone(),
            pending: Vec::new(),
            timers: Timers::new(),
            leader_status: None,
            cpu_ns: 0,
            children_cpu_ns: 0,
            system: System::new(0),
            start_unix_ns: self.start_unix_ns,
            random: Random(self.random.next()),
            limits: self.limits,
            code_changed: false,
        }
    }

    /// Ends the wait of a parent that has lent its memory (`vfork`), because this process has a program of its own or
    /// has ended.
    pub(crate) fn release_parent(&mut self) {
        let pid = self.pid;
        let waits =
            |t: &&mut Box<Thread>| t.blocked.as_ref().is_some_and(|b| b.wait == Wait::Child { vfork: Some(pid) });
        if let Some(parent) = self.system.threads.iter_mut().find(waits) {
            parent.finish_call(pid.into());
        }
    }

    /// Exchanges address spaces with the process whose memory this one borrows, if it does: before it runs, and
    /// again before another one does.
    pub(crate) fn exchange_memory(&mut self) {
        let Some(lender) = self.borrows_from.and_then(|pid| self.system.processes.get_mut(&pid)) else { return };
        lender.kernel.mem.use_arena_of(&mut self.mem);
        std::mem::swap(&mut lender.kernel.mem, &mut self.mem);
        std::mem::swap(&mut lender.kernel.pages, &mut self.pages);
    }

    /// Gives borrowed memory back for good; what is left is an empty address space.
    pub(crate) fn return_memory(&mut self) {
        self.exchange_memory();
        self.borrows_from = None;
        self.release_parent();
    }
}

impl Guest {
    /// Puts the process `pid` in the place of the one that runs; that one is forgotten if it has ended.
    pub(crate) fn switch_process(&mut self, pid: u32) {
        self.kernel.exchange_memory();
        let Some(mut other) = self.kernel.system.processes.remove(&pid) else { return };
        std::mem::swap(&mut self.kernel, &mut other.kernel);
        std::mem::swap(&mut self.blocks, &mut other.blocks);
        std::mem::swap(&mut self.kernel.system, &mut other.kernel.system);
        self.kernel.mem.use_arena_of(&mut other.kernel.mem);
        self.kernel.now_ns = other.kernel.now_ns;
        if !std::mem::take(&mut self.process_ended) {
            self.kernel.system.processes.insert(other.kernel.pid, other);
        }
        self.kernel.exchange_memory();
    }

    /// The process that runs has ended. `Some`: so has the run.
    pub(crate) fn end_process(&mut self, end: End) -> Option<Step> {
        self.kernel.write_back_at_end();
        let pid = self.kernel.pid;
        self.kernel.note_touched(&self.thread);
        self.end_threads();
        if pid == PID {
            self.first_end = Some(end.clone());
        }
        if self.kernel.system.processes.is_empty() {
            return Some(self.end_run(end));
        }
        self.kernel.return_memory();
        let used = self.kernel.pages.page_use();
        self.kernel.system.page_use.extend(used);
        self.kernel.system.page_use = add_up(std::mem::take(&mut self.kernel.system.page_use));
        self.kernel.mem.clear();
        self.kernel.files.close_all();
        memory_files::recount(&mut self.kernel);
        self.kernel.charge.set(0);
        self.process_ended = true;
        let end = match end {
            End::Killed(killed) => ChildEnd::Killed(killed.signal),
            End::Exit { code } => ChildEnd::Exited(code),
            End::Deadlock { .. } => return None,
        };
        tell_parent(&mut self.kernel, &mut self.thread, end);
        None
    }

    /// Every thread of the process that runs ends.
    fn end_threads(&mut self) {
        let pid = self.kernel.pid;
        futex::thread_ends(&mut self.kernel, &mut self.thread);
        while let Some(index) = self.kernel.system.threads.iter().position(|t| t.pid == pid) {
            if let Some(mut thread) = self.kernel.system.threads.remove(index) {
                futex::thread_ends(&mut self.kernel, &mut thread);
            }
        }
        self.thread.blocked = None;
        self.thread.ended = true;
    }

    /// The run is over. It ends as its first process did.
    pub(crate) fn end_run(&mut self, end: End) -> Step {
        self.end = Some(self.first_end.take().unwrap_or(end));
        Step::Ended
    }
}

/// Leaves a zombie and sends `SIGCHLD`; children of the process go to [`INIT`].
fn tell_parent(k: &mut Kernel, t: &mut Thread, end: ChildEnd) {
    let (pid, ppid) = (k.pid, k.ppid);
    k.system.zombies.retain(|z| z.ppid != pid);
    for other in k.system.processes.values_mut().filter(|p| p.kernel.ppid == pid) {
        other.kernel.ppid = INIT;
    }
    let Some(parent) = k.system.processes.get(&ppid) else { return };
    let action = parent.kernel.actions[SIGCHLD as usize];
    if action.handler != signal::SIG_IGN && action.flags & flags::NOCLDWAIT == 0 {
        let cpu_ns = k.cpu_ns() + k.children_cpu_ns;
        k.system.zombies.push(Zombie { pid, ppid, group: k.group, end, cpu_ns });
    }
    let waits = |t: &&mut Box<Thread>| {
        t.pid == ppid && t.blocked.as_ref().is_some_and(|b| b.wait == Wait::Child { vfork: None })
    };
    for thread in k.system.threads.iter_mut().filter(waits) {
        thread.poked = true;
    }
    let (code, status) = end.code_and_status();
    let origin = Origin::Child { pid, uid: rustix::process::getuid().as_raw(), status };
    signal::send_to_process(k, t, ppid, SigInfo { signal: SIGCHLD, code, origin });
}
