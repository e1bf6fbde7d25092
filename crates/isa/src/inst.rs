//! The static description of one instruction.

use crate::{ClassId, Classes, MemOp, Reg, RegList};

/// How an instruction changes the flow of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub enum Branch {
    /// Not a branch.
    #[default]
    None,
    /// Unconditional, target in the instruction.
    Direct,
    /// Conditional on the flags, target in the instruction.
    Conditional,
    /// Compare-and-branch or test-and-branch, target in the instruction.
    Compare,
    /// Direct call.
    Call,
    /// Indirect jump.
    Indirect,
    /// Indirect call.
    IndirectCall,
    /// Function return.
    Return,
}

/// Floating-point work of one instruction, for operation counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FpOp {
    /// Operations per element: 1 for add or multiply, 2 for a fused multiply-add, 0 for none.
    pub per_element: u8,
    /// Bytes of one element (2, 4 or 8).
    pub esize: u8,
    /// Elements operated on when all are active.
    pub elements: u8,
    /// Whether the element count depends on the vector length (SVE): "scale" events count it.
    pub scalable: bool,
}

/// The statistical kind of an instruction: one list for all counters that classify instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum InstKind {
    /// Scalar integer arithmetic, logic, moves.
    #[default]
    Integer,
    /// Scalar floating point.
    FpScalar,
    /// AdvSIMD.
    AdvSimd,
    /// SVE data processing.
    Sve,
    /// SVE predicate processing.
    SvePredicate,
    /// SVE MOVPRFX.
    MovPrfx,
    /// Memory access (what kind: see [`StaticInst::mem`]).
    Memory,
    /// Branch.
    Branch,
    /// Barrier, hint, system register, system call.
    System,
    /// Cryptographic.
    Crypto,
}

/// A governing predicate: which elements of a vector an instruction works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Governing {
    /// Number of the predicate register.
    pub predicate: u8,
    /// Bytes of an element: the predicate's bit for the lowest byte decides.
    pub esize: u8,
}

/// One static instruction, decoded once.
#[derive(Clone, Copy, Debug)]
pub struct StaticInst {
    /// Address of the instruction.
    pub addr: u64,
    /// The machine's instruction row.
    pub class: ClassId,
    /// Statistical kind.
    pub kind: InstKind,
    /// Further statistical classes.
    pub classes: Classes,
    /// The predicate that says which elements are active, if one does.
    pub governing: Option<Governing>,
    /// Registers an operation needs before it can execute, addresses of memory operands excluded.
    /// For a store: the data. Accumulators and merged destinations are sources too.
    pub srcs: RegList,
    /// The one of `srcs` that a result is added to or merged with: the addend of a multiply-add, a destination that is
    /// read. If there are several micro-operations, the first one does not need it.
    pub accumulator: Option<Reg>,
    /// The one of `srcs` of which one element stands for a whole vector. If a micro-operation of its own makes that vector,
    /// it waits for this operand alone.
    pub element: Option<Reg>,
    /// Registers from which memory addresses are formed (the governing predicate included).
    pub addr_srcs: RegList,
    /// Result registers; for loads in the order of the loading micro-operations.
    pub dsts: RegList,
    /// Base register updated by a pre- or post-indexed access.
    pub writeback: Option<Reg>,
    /// Memory access, if there is one.
    pub mem: Option<MemOp>,
    /// Branch kind.
    pub branch: Branch,
    /// Floating-point work.
    pub fp: FpOp,
    /// Whether younger instructions wait until it commits, and it waits for all older ones (system call, barrier).
    pub serialising: bool,
    /// Whether it always enters the kernel (system call, breakpoint).
    pub enters_kernel: bool,
    /// Whether threads communicate through it (atomic, ordered or exclusive access, barrier, event): such instructions of all
    /// cores are executed in the order of simulated time.
    pub synchronises: bool,
    /// Whether it reads the time.
    pub reads_time: bool,
}

impl StaticInst {
    /// Returns an instruction of `class` without operands.
    #[must_use]
    pub fn new(class: &'static str) -> StaticInst {
        StaticInst {
            addr: 0,
            class: ClassId::of(class),
            kind: InstKind::Integer,
            classes: Classes::default(),
            governing: None,
            srcs: RegList::EMPTY,
            accumulator: None,
            element: None,
            addr_srcs: RegList::EMPTY,
            dsts: RegList::EMPTY,
            writeback: None,
            mem: None,
            branch: Branch::None,
            fp: FpOp::default(),
            serialising: false,
            enters_kernel: false,
            synchronises: false,
            reads_time: false,
        }
    }
}
