//! An engine that translates frequently executed code into the host's instructions.
//!
//! [`Translator`] interprets and counts the executions of each block. From a block that has been executed often, it makes a
//! *unit*: the blocks that are reached from it by direct branches and have been executed, too, in one function of host code
//! ([`unit`], [`emit`]). A unit executes the same blocks in the same order as the interpreter, and counts their instructions, so
//! that [`Engine::run_until`] returns after the same instruction as with the interpreter.
//!
//! * Registers are in [`Cpu`] when a unit begins, between its blocks, and when it ends. Within a block, values stay in registers
//!   of the host. Flags are computed where they are read: in between, the operands of the instruction that sets them are kept.
//! * Integer instructions, branches, floating-point arithmetic, operations on predicates, and loads and stores of scalars whose
//!   translation is cached are host instructions. SVE instructions on vectors are calls of their fast paths
//!   ([`fxscope_aarch64::fast`]), everything else is a call of the interpreter's function for the instruction.
//! * A unit that ends continues in the next one directly, if the table of recent entries ([`front`]) has it. Calls, returns and indirect
//!   branches to other units go the same way.
//! * Timing needs [`Engine::run`], with the dynamic stream of each block. Blocks that it executes often are translated once more, one by
//!   one, as code that writes the stream ([`traced`]).
//!
//! Host code is in memory that is never writable and executable at the same time ([`code`]).
//!
//! [`Engine::run`]: fxscope_aarch64::Engine::run
//! [`Engine::run_until`]: fxscope_aarch64::Engine::run_until
//! [`Cpu`]: fxscope_aarch64::Cpu

mod code;
mod compiler;
mod context;
mod emit;
mod front;
mod traced;
mod translator;
mod unit;

pub use translator::Translator;
