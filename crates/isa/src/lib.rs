//! The ISA-neutral vocabulary between an instruction set and the timing model.
//!
//! An instruction set decodes each static instruction once into a [`StaticInst`]: which registers it
//! reads and writes, what it does to memory, whether it branches, and the name of the machine's
//! instruction row (its *timing class*). At run time it provides, per executed block, only what
//! changes between executions: addresses and active elements (see [`mem`]) and the branch outcome.

pub mod class;
pub mod classes;
pub mod inst;
pub mod mem;
pub mod partial;
pub mod reg;

pub use class::ClassId;
pub use classes::{Class, Classes};
pub use inst::{Branch, FpOp, Governing, InstKind, StaticInst};
pub use mem::{Access, MemOp, Shape};
pub use partial::{Partial, Subnormal};
pub use reg::{Reg, RegClass, RegList};
