//! How programs end.

use serde::{Deserialize, Serialize};

use crate::signal;
use crate::stack::Frame;

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// It called `exit`; the low 8 bits of its status.
    Exit {
        /// 0–255.
        code: i32,
    },
    /// A signal ended it.
    Killed(Killed),
    /// All its threads wait for something that can never happen.
    Deadlock {
        /// All threads, by ascending number.
        threads: Vec<Waiting>,
    },
}

/// A thread of a run that cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Number of its process.
    pub pid: u32,
    /// Number of the thread.
    pub tid: u32,
    /// Address of its next instruction: the one after the system call in which it waits.
    pub pc: u64,
    /// The function, as `name+offset`, if the program has symbols.
    pub function: Option<String>,
    /// What it is waiting for; `None`: it runs.
    pub waits_for: Option<String>,
    /// Its stack, the innermost function first.
    pub stack: Vec<Frame>,
}

/// A program ended by a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Killed {
    /// The signal's number.
    pub signal: u32,
    /// Address of the instruction.
    pub pc: u64,
    /// The function, as `name+offset`, if the program has symbols.
    pub function: Option<String>,
    /// The address that could not be accessed, for signals about an access.
    pub address: Option<u64>,
    /// The undefined instruction, for signals about one.
    pub refused: Option<Refused>,
    /// Set if the program touched a page for which the machine had no memory.
    pub out_of_memory: Option<OutOfMemory>,
}

/// Use of memory when it ran out, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutOfMemory {
    /// Memory of the machine.
    pub limit: u64,
    /// Pages of the program's processes.
    pub pages: u64,
    /// Files in memory (`memfd_create`, `/dev/shm`).
    pub files: u64,
}

impl std::fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mib = |bytes: u64| (bytes as f64 / f64::from(1 << 20) * 10.0).round() / 10.0;
        let OutOfMemory { limit, pages, files } = *self;
        let others = limit.saturating_sub(pages + files);
        write!(
            f,
            "out of memory: of the machine's {} MiB the program uses {} MiB for pages, {} MiB for files in memory and {} MiB for \
             processes, threads, pipes and the like; give the machine more with --memory, or choose a smaller problem",
            mib(limit),
            mib(pages),
            mib(files),
            mib(others)
        )
    }
}

/// An instruction that does not exist, or that user code may not execute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The instruction.
    pub word: u32,
    /// Its disassembly, if the disassembler knows it.
    pub disassembly: Option<String>,
}

impl End {
    /// Returns the exit status that a shell would show: the program's own, or 128 plus the number of the signal that ended it.
    /// `None` if the simulation could not continue.
    #[must_use]
    pub fn status(&self) -> Option<i32> {
        match self {
            End::Exit { code } => Some(*code),
            End::Killed(k) => Some(128 + k.signal as i32),
            End::Deadlock { .. } => None,
        }
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Exit { code } => write!(f, "exited with status {code}"),
            End::Killed(k) => {
                write!(f, "ended by {} at {:#x}", signal::name(k.signal), k.pc)?;
                in_function(f, k.function.as_deref())?;
                k.address.filter(|&a| a != k.pc).map_or(Ok(()), |a| write!(f, ", accessing {a:#x}"))?;
                k.out_of_memory.as_ref().map_or(Ok(()), |memory| write!(f, ": {memory}"))?;
                k.refused.as_ref().map_or(Ok(()), |r| write!(f, ": the processor has no such instruction, {r}"))
            }
            End::Deadlock { threads } => {
                write!(f, "deadlock: every thread waits for something that cannot happen")?;
                for t in threads {
                    let waits_for = t.waits_for.as_deref().unwrap_or("nothing");
                    write!(f, "\n  process {}, thread {}: waits for {waits_for}, at {:#x}", t.pid, t.tid, t.pc)?;
                    in_function(f, t.function.as_deref())?;
                }
                Ok(())
            }
        }
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d] = self.word.to_le_bytes();
        write!(f, "bytes {a:02x} {b:02x} {c:02x} {d:02x} (word {:08x})", self.word)?;
        self.disassembly.as_deref().map_or(Ok(()), |text| write!(f, ", {text}"))
    }
}

fn in_function(f: &mut std::fmt::Formatter<'_>, function: Option<&str>) -> std::fmt::Result {
    function.map_or(Ok(()), |name| write!(f, " in {name}"))
}
