//! The AArch64 instruction set: decode once, execute many times.
//!
//! * [`coverage`]: what decoding shows of each encoding, for documents and tests.
//! * [`cpu`]: architectural state of one thread.
//! * [`table`]: encodings as data, and the decoder built from them.
//! * [`insn`]: one file for each instruction group; each entry has encoding, operands, timing class and semantics side by side.
//!   New instructions are added here only.
//! * [`fp`]: floating-point arithmetic with Arm's NaN, rounding, flush-to-zero and flag rules.
//! * [`hpc`]: the registers of the HPC extension.
//! * [`engine`]: the interface of what executes code block by block; [`interpreter`]: the engine that executes decoded
//!   instructions one after the other.
//! * [`fast`]: fast paths of instructions, for engines that generate code.
//! * [`spin`]: spin loops, whose identical iterations can be skipped.
//!
//! Invariant: nothing here depends on time. Executing an instruction changes architectural state and appends words to the dynamic
//! stream (`fxscope_isa::mem`), which the timing model reads afterwards.

mod accesses;
pub mod coverage;
pub mod cpu;
pub mod engine;
pub mod fast;
pub mod fp;
mod governed;
pub mod hpc;
pub mod insn;
pub mod interpreter;
mod serialise;
pub mod spin;
mod statistics;
pub mod table;

pub use accesses::DataAccess;
pub use cpu::{Cpu, Stop, Trap, Vreg};
pub use engine::{BlockId, Counting, Engine, Exit, Outcome, StaticBlock};
pub use governed::Governed;
pub use interpreter::{Block, Interpreter};
pub use table::{Ctx, Decoded, Encoding, Inst};
