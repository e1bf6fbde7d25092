//! Runs AArch64 Linux programs: loads ELF files, serves system calls, delivers signals.
//!
//! * [`guest`]: the processes and threads of a run, executed block by block. A driver calls [`Guest::step`], examines what ran,
//!   and sets the time with [`Guest::set_now_ns`]. Everything a program can learn about time follows from that.
//! * [`code`]: the code of its processes, as the engine that executes it has it (`fxscope_aarch64::engine`).
//! * `system` is what all processes share, `process` what the threads of one share, [`thread`] what belongs to each thread.
//! * `kernel`: what system calls, faults and signals act on: a thread, its process and the rest, borrowed separately.
//! * `abi`, `mm`, `fs`, `sched`, `ipc`, [`signal`]: the subsystems of the kernel.
//! * [`syscalls`]: the table of system calls, with a file of handlers for each subject. They use the subsystems; no subsystem
//!   uses them.
//! * `snapshot`: guests as bytes.
//!
//! Invariants: the same program, input, files and seed give the same execution. Programs access host memory only through
//! `fxscope_guestmem::Memory`. A bad pointer in a system call is `EFAULT` to the program.

mod abi;
mod attributes;
mod budget;
pub mod code;
mod counted;
mod death;
pub mod disasm;
mod end;
mod family;
mod fs;
mod functional;
pub mod guest;
mod hang;
pub mod hwpfctl;
mod ipc;
mod kernel;
mod mm;
mod net;
pub mod perf;
pub mod platform;
mod process;
mod processes;
mod random;
mod sched;
mod setup;
pub mod signal;
mod snapshot;
mod spin;
mod stack;
mod start_error;
pub mod symbols;
pub mod syscalls;
mod system;
mod table;
pub mod thread;
mod thread_local;
mod usage;

pub use abi::elf::{self, ElfError, Image};
pub use code::Code;
pub use death::Death;
pub use end::{End, Killed, OutOfMemory, Refused, Waiting};
pub use family::Member;
pub use fs::terminal::TerminalWatch;
pub use fs::vfs::access::{Access, Denied, Refusal};
pub use fs::vfs::shared_memory::SharedFolder;
pub use fs::vfs::{default_sysroot, in_sysroot};
pub use functional::{BlockObserver, Tick};
pub use guest::{Guest, Step};
pub use hang::{Doing, ThreadState};
pub use mm::pages;
pub use platform::{BarrierPlatform, Cache, CacheKind, CpuPlace, MemoryNode, Platform};
pub use sched::clock::ClockSource;
pub use sched::cpus::{CpuState, SLICE_NS};
pub use sched::turns::QUANTUM;
pub use setup::{Setup, Stdio};
pub use snapshot::{
    PageId, Restored, SnapshotError, SnapshotSink, SnapshotSource, Surroundings, WrittenFiles, read_state, write_state,
};
pub use stack::Frame;
pub use start_error::StartError;
pub use symbols::{Place, Probe, Symbols};
pub use thread_local::ThreadLocal;
