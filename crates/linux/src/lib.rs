//! Runs AArch64 Linux programs: loads ELF files, answers system calls, delivers signals.
//!
//! * [`elf`] checks and maps a program; [`symbols`] names its functions.
//! * [`guest`] starts it and executes it block by block. A driver calls [`Guest::step`], looks at what
//!   ran, and keeps the time: [`Guest::set_now_ns`]. Everything a program can learn about time follows from that.
//! * [`syscalls`] is the table of system calls; the handlers stand beside it, by subject.
//! * [`signal`] has dispositions, frames and delivery.
//! * [`kernel`] is what the threads of a process share, [`thread`] what each has for itself; `scheduler` says which
//!   of them runs, and `cpus` on which CPU.
//!
//! Invariants: the same program, input, files and seed give the same execution. Programs reach host memory
//! only through `fxscope_guestmem::Memory`. A bad pointer in a system call is `EFAULT` to the program.

mod address_space;
mod attempt;
mod barrier;
mod budget;
mod channels;
mod clock;
mod cmg;
mod content;
mod cpus;
mod descriptors;
pub mod disasm;
pub mod elf;
mod end;
mod files;
mod futex;
pub mod guest;
pub mod hwpfctl;
mod kernel;
mod layout;
mod load;
mod mapped;
mod memory_files;
pub mod pages;
pub mod platform;
mod process;
mod processes;
mod random;
pub mod rounds;
mod scheduler;
mod setup;
pub mod signal;
mod stack;
mod start_error;
pub mod symbols;
pub mod syscalls;
mod system;
mod table;
mod terminal;
pub mod thread;
mod timers;
mod umask;
mod vfs;
mod wait;

pub use clock::ClockSource;
pub use cpus::{CpuState, SLICE_NS};
pub use elf::{ElfError, Image};
pub use end::{End, Killed, OutOfMemory, Refused, Waiting};
pub use guest::{Guest, Step};
pub use platform::{BarrierPlatform, Cache, CacheKind, CpuPlace, Platform};
pub use scheduler::QUANTUM;
pub use setup::{Setup, Stdio};
pub use start_error::StartError;
pub use symbols::{Place, Probe, Symbols};
pub use terminal::TerminalWatch;
pub use vfs::access::{Access, Denied, Refusal};
pub use vfs::default_sysroot;
pub use vfs::shared_memory::SharedFolder;
