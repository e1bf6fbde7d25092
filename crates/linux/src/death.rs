//! Processes that end abnormally in a run of several, for reports: which, by what, and where.

use serde::{Deserialize, Serialize};

use crate::end::End;
use crate::kernel::Kernel;
use crate::signal::number::{SIGPIPE, SIGSEGV};
use crate::signal::{Origin, SigInfo};
use crate::stack::{Frame, Registers, Walker};

/// Deaths that are kept; of further ones there is only the number.
const MOST_DEATHS: usize = 64;

/// A process that a signal has ended, or a rank with an exit status other than 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Death {
    /// Its number.
    pub pid: u32,
    /// The number of the thread at which it ended.
    pub tid: u32,
    /// When, ns of simulated time.
    pub at_ns: u64,
    /// How it ended.
    pub end: End,
    /// The process that sent the signal, unless it is the process itself or the kernel.
    pub sender: Option<u32>,
    /// The stack of the thread then; where a handler has raised the signal of a fault again, at the fault.
    pub stack: Vec<Frame>,
}

/// The deaths of a run, in the order in which they happened.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Deaths {
    pub(crate) list: Vec<Death>,
    /// The number of further ones.
    pub(crate) more: u64,
}

/// A fault whose signal a thread handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fault {
    pub signal: u32,
    pub address: u64,
    pub registers: Registers,
}

impl Kernel<'_> {
    /// Remembers where the thread is, which is about to handle a signal, if an instruction of its own has caused that.
    pub(crate) fn note_fault(&mut self, info: &SigInfo) {
        if let Origin::Fault { address, .. } = info.origin {
            let registers = Registers::of(&self.thread.cpu);
            self.thread.fault = Some(Fault { signal: info.signal, address, registers });
        }
    }

    /// Returns the fault of the thread that a signal is about: a handler that cannot continue raises the signal again.
    pub(crate) fn fault_behind(&self, info: &SigInfo) -> Option<Fault> {
        let by_itself = match info.origin {
            Origin::Sender { pid, .. } | Origin::Queued { pid, .. } => pid == self.process.pid,
            Origin::Fault { .. } => self.thread.cpu.pc == 0 && info.signal == SIGSEGV,
            Origin::Child { .. } => false,
        };
        self.thread.fault.filter(|fault| by_itself && fault.signal == info.signal)
    }

    /// Records that a signal ends the process.
    pub(crate) fn note_killed(&mut self, info: &SigInfo, end: &End) {
        let own = self.process.pid;
        let sender = match info.origin {
            Origin::Sender { pid, .. } | Origin::Queued { pid, .. } => Some(pid).filter(|&pid| pid != own && pid != 0),
            Origin::Fault { .. } | Origin::Child { .. } => None,
        };
        // Programs whose reader has ended are meant to end so.
        if self.system.family.all().len() > 1 && info.signal != SIGPIPE {
            let fault = self.fault_behind(info).map(|fault| fault.registers);
            self.note_death(end.clone(), sender, fault);
        }
    }

    /// Records that the process exits, if it is a rank and its status is not 0.
    pub(crate) fn note_exit(&mut self, code: i32) {
        if code != 0 && self.system.family.is_first_of_rank(self.process.pid) {
            self.note_death(End::Exit { code }, None, None);
        }
    }

    fn note_death(&mut self, end: End, sender: Option<u32>, at: Option<Registers>) {
        if self.system.deaths.list.len() >= MOST_DEATHS {
            self.system.deaths.more += 1;
            return;
        }
        let space = &self.spaces[self.process.space];
        let walker =
            Walker { memory: self.mem, space: space.id, symbols: &self.process.symbols, mapped: &space.mapped };
        let stack = walker.frames(at.unwrap_or_else(|| Registers::of(&self.thread.cpu)));
        let (pid, tid, at_ns) = (self.process.pid, self.thread.tid, self.system.now_ns);
        self.system.deaths.list.push(Death { pid, tid, at_ns, end, sender, stack });
    }
}
