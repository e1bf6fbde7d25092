//! How processes begin and end.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::budget;
use crate::end::End;
use crate::fs::files::Files;
use crate::fs::{memory_files, terminals};
use crate::guest::{Guest, PID, Step};
use crate::ipc::futex;
use crate::kernel::Kernel;
use crate::mm::address_space::AddressSpace;
use crate::mm::pages::add_up;
use crate::process::Process;
use crate::random::Random;
use crate::sched::timers::Timers;
use crate::sched::wait::Wait;
use crate::signal::stop::{self, Job};
use crate::signal::{self, Origin, SigInfo, code, flags, number::SIGCHLD};
use crate::table::Id;
use crate::thread::Thread;
use crate::usage::Used;

/// The process that adopts children whose parent has ended.
const INIT: u32 = 1;

/// A process that has ended and that its parent has not waited for.
#[derive(Serialize, Deserialize)]
pub(crate) struct Zombie {
    pub pid: u32,
    pub ppid: u32,
    pub group: u32,
    pub session: u32,
    /// Its user.
    pub uid: u32,
    /// Its name, as that of its last thread.
    pub name: [u8; 16],
    pub end: ChildEnd,
    /// CPU time of it and its children, in ns of simulated time.
    pub cpu_ns: u64,
    /// What it and its children have used.
    pub used: Used,
}

/// How a child ended, as its parent sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ChildEnd {
    Exited(i32),
    Killed(u32),
}

impl ChildEnd {
    /// Returns the status for `wait4`.
    pub(crate) fn status(self) -> u32 {
        match self {
            ChildEnd::Exited(status) => (status as u32 & 0xff) << 8,
            ChildEnd::Killed(signal) => signal & 0x7f,
        }
    }

    /// Returns `si_code` and `si_status` for `SIGCHLD` and `waitid`.
    pub(crate) fn code_and_status(self) -> (i32, i32) {
        match self {
            ChildEnd::Exited(status) => (code::CLD_EXITED, status),
            ChildEnd::Killed(signal) => (code::CLD_KILLED, signal as i32),
        }
    }
}

impl Kernel<'_> {
    /// Returns a copy of the running process with the number `pid`, these open files and this address space.
    pub(crate) fn fork(&mut self, pid: u32, files: Files, space: Id<AddressSpace>) -> Process {
        let parent = &mut *self.process;
        Process {
            pid,
            ppid: parent.pid,
            group: parent.group,
            session: parent.session,
            space,
            attributes: parent.attributes.fork(self.system.now_ns),
            job: Job::default(),
            code_changed: false,
            changed_code: Vec::new(),
            code_full: false,
            files,
            symbols: Rc::clone(&parent.symbols),
            symbols_charge: Rc::clone(&parent.symbols_charge),
            charge: self.system.budget.charge(budget::PROCESS),
            fixed_bytes: budget::PROCESS,
            actions: parent.actions,
            pending: Vec::new(),
            timers: Timers::new(),
            allowed_cpus: parent.allowed_cpus.clone(),
            limits: parent.limits,
            random: Random(parent.random.next()),
            end: None,
            ended: false,
            leader_status: None,
            cpu_ns: 0,
            children_cpu_ns: 0,
            used: Used::default(),
            children_used: Used::default(),
            instructions: 0,
        }
    }

    /// Ends the wait of the parent that shares its address space (`vfork`): this process has executed a program, or has ended.
    pub(crate) fn release_parent(&mut self) {
        let pid = self.process.pid;
        let mut waiting =
            self.other_threads.iter_mut().filter(|thread| thread.waits_for(&Wait::Child { vfork: Some(pid) }));
        if let Some(parent) = waiting.next() {
            parent.finish_call(pid.into());
        }
    }

    /// Returns the process that adopts the children of the running one, which ends: the nearest ancestor that has requested it
    /// (`PR_SET_CHILD_SUBREAPER`), or [`INIT`].
    fn adopter(&self) -> u32 {
        let mut next = self.process.ppid;
        // A process is started after its parent.
        while let Some(ancestor) = self.other_processes.iter().find(|other| other.pid == next && !other.ended) {
            if ancestor.attributes.subreaper {
                return ancestor.pid;
            }
            next = ancestor.ppid;
        }
        INIT
    }

    /// Gives the children of the process, which ends, another parent, and sends them the signals that they have requested.
    fn leave_children(&mut self) {
        let (pid, adopter) = (self.process.pid, self.adopter());
        for zombie in self.system.zombies.iter_mut().filter(|zombie| zombie.ppid == pid) {
            zombie.ppid = adopter;
        }
        // `INIT` waits for all its children.
        self.system.zombies.retain(|zombie| zombie.ppid != INIT);
        let mut signals = Vec::new();
        for child in self.other_processes.iter_mut().filter(|other| other.ppid == pid) {
            child.ppid = adopter;
            signals.push((child.pid, child.attributes.death_signal));
        }
        let uid = self.process.attributes.users.real;
        for (child, signal) in signals.into_iter().filter(|&(_, signal)| signal != 0) {
            let info = SigInfo { signal, code: code::SI_USER, origin: Origin::Sender { pid, uid } };
            signal::send_to_process(self, child, info);
        }
    }

    /// Returns the groups of its session that only the process, which ends, may be able to continue: those of its children, and its
    /// own.
    fn groups_that_depend(&self) -> BTreeSet<u32> {
        let Process { pid, group, session, .. } = *self.process;
        let children = self.other_processes.iter().filter(|other| other.ppid == pid && other.session == session);
        children.map(|child| child.group).chain([group]).collect()
    }

    /// Leaves a zombie and sends `SIGCHLD`.
    fn tell_parent(&mut self, end: ChildEnd) {
        self.leave_children();
        let (pid, ppid) = (self.process.pid, self.process.ppid);
        let Some(parent) = self.other_processes.iter().find(|other| other.pid == ppid) else { return };
        let action = parent.actions[SIGCHLD as usize];
        if action.handler != signal::SIG_IGN && action.flags & flags::NOCLDWAIT == 0 {
            let cpu_ns = self.cpu_ns() + self.process.children_cpu_ns;
            let mut used = self.process.used;
            used.add(&self.process.children_used);
            let Process { group, session, .. } = *self.process;
            let (uid, name) = (self.process.attributes.users.real, self.thread.name);
            self.system.zombies.push(Zombie { pid, ppid, group, session, uid, name, end, cpu_ns, used });
        }
        for thread in self.other_threads.iter_mut().filter(|thread| thread.pid == ppid) {
            thread.poked |= thread.waits_for(&Wait::Child { vfork: None });
        }
        let (code, status) = end.code_and_status();
        let origin = Origin::Child { pid, uid: self.process.attributes.users.real, status };
        signal::send_to_process(self, ppid, SigInfo { signal: SIGCHLD, code, origin });
    }

    /// Ends every thread of the process.
    fn end_threads(&mut self) {
        let pid = self.process.pid;
        let work = self.thread.take_exit_work();
        futex::thread_ends(self, work);
        while let Some(mut thread) = self.other_threads.take(|thread| thread.pid == pid) {
            self.end_events_of(&thread);
            futex::thread_ends(self, thread.take_exit_work());
        }
        self.thread.blocked = None;
        self.thread.ended = true;
    }

    /// The process gives up its address space for another one, or for good. Pages that no other process has are free then;
    /// the parent that waits for it continues.
    pub(crate) fn leave_space(&mut self) {
        self.release_parent();
        if !self.shares_space() {
            self.mem.clear();
        }
    }
}

impl Guest {
    /// Ends the running process. `Some`: the run has ended, too.
    pub(crate) fn end_process(&mut self, end: End) -> Option<Step> {
        let mut k = self.kernel();
        k.flush_host_files();
        k.note_touched();
        k.process.used = k.used_by(k.process);
        k.end_threads();
        k.undo_semaphores();
        let pid = k.process.pid;
        if pid == PID {
            self.first_end = Some(end.clone());
        }
        if self.processes.len() == 1 {
            return Some(self.end_run(end));
        }
        let mut k = self.kernel();
        if !k.shares_space() {
            let used = k.spaces[k.process.space].pages.page_use();
            k.system.page_use.extend(used);
            k.system.page_use = add_up(std::mem::take(&mut k.system.page_use));
            let folios = std::mem::take(&mut k.system.folio_counts);
            k.system.folio_counts = folios.plus(&k.spaces[k.process.space].pages.take_folio_counts());
        }
        k.leave_space();
        k.process.files.close_all();
        k.forget_unmapped();
        k.release_locks(&[], Some(pid));
        memory_files::recount(&mut k);
        k.process.charge.set(0);
        k.process.ended = true;
        k.system.family.ends(pid, k.process.instructions);
        terminals::leave(&mut k);
        let groups = k.groups_that_depend();
        k.system.objects.process_ended(pid);
        let end = match end {
            End::Killed(killed) => ChildEnd::Killed(killed.signal),
            End::Exit { code } => ChildEnd::Exited(code),
            End::Deadlock { .. } => return None,
        };
        k.tell_parent(end);
        stop::hang_up_orphans(&mut k, &groups);
        None
    }

    /// Ends the run. Its result is that of its first process.
    pub(crate) fn end_run(&mut self, end: End) -> Step {
        self.kernel().flush_host_files();
        self.end = Some(self.first_end.take().unwrap_or(end));
        Step::Ended
    }

    /// Removes the thread that ran before, if it has ended, and its process, if that has ended, too.
    pub(crate) fn forget_ended(&mut self, previous: Id<Thread>) {
        if !self.threads[previous].ended {
            return;
        }
        let thread = self.threads.remove(previous);
        self.kernel().end_events_of(&thread);
        let process = thread.process;
        if !self.processes[process].ended {
            return;
        }
        let space = self.processes.remove(process).space;
        if !self.processes.values().any(|other| other.space == space) {
            self.memory.remove_space(self.spaces.remove(space).id);
        }
    }
}
