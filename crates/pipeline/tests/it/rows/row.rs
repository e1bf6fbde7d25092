//! A row of `instructions.csv` as an instruction: which registers it reads and writes, and what it does to memory.
//!
//! Registers follow the pipes of the row's first and last flow; memory accesses follow its mnemonic.

use fxscope_isa::{Access, MemOp, Reg, Shape};
use fxscope_machine::{Flow, Pipes, Recipe};

use crate::common::*;

/// Pipes of SIMD&FP operations.
pub const FL: Pipes = Pipes::FLA.or(Pipes::FLB);
/// Pipes of address generation.
pub const EAG: Pipes = Pipes::EAGA.or(Pipes::EAGB);

/// A kind of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    General,
    Vector,
    Predicate,
}

impl Kind {
    /// Register `n` of this kind.
    pub fn reg(self, n: u8) -> Reg {
        match self {
            Kind::General => x(n),
            Kind::Vector => z(n),
            Kind::Predicate => p(n),
        }
    }

    /// What operations in `pipes` work on.
    fn of(pipes: Pipes) -> Kind {
        match () {
            () if pipes.meets(FL) => Kind::Vector,
            () if pipes.meets(Pipes::PRX) => Kind::Predicate,
            () => Kind::General,
        }
    }
}

/// A row for the vector length in force.
pub struct Row<'a> {
    pub class: &'static str,
    pub recipe: &'a Recipe,
    /// Bytes of a vector.
    pub vector: u64,
}

/// Branches that a row does not show as such: they pass an integer pipe.
pub const EXECUTED_BRANCHES: [&str; 5] = ["base:CBZ", "base:CBNZ", "base:TBZ", "base:TBNZ", "base:RET"];

impl Row<'_> {
    fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.recipe.uops.iter().flat_map(|u| &u.flows)
    }

    /// Why the row has no loop: it steers fetch, or decode waits for commit around it.
    pub fn left_out(&self) -> Option<&'static str> {
        let empty = self.recipe.uops.iter().any(|u| u.flows.is_empty());
        match () {
            () if self.recipe.pre_sync || self.recipe.post_sync => Some("pre-sync or post-sync"),
            () if self.recipe.sequential && empty => Some("a barrier or a system instruction"),
            () if self.flows().any(|f| f.pipes.meets(Pipes::BR)) => Some("a branch"),
            () if EXECUTED_BRANCHES.contains(&self.class) => Some("a branch"),
            () => None,
        }
    }

    /// The class without its table and conditions.
    fn mnemonic(&self) -> &str {
        let name = self.class.split_once(':').map_or(self.class, |(_, name)| name);
        name.split([' ', '{']).next().unwrap_or(name)
    }

    fn base_table(&self) -> bool {
        self.class.starts_with("base:")
    }

    /// Moves the base register on: the last micro-operation does.
    pub fn updates(&self) -> bool {
        self.class.contains("[Post-index") || self.class.contains("[Pre-index")
    }

    /// Micro-operations that lead to the result, the update of the base left out.
    pub fn result_uops(&self) -> usize {
        self.recipe.uops.len() - usize::from(self.updates())
    }

    /// The micro-operations that number `k` waits for, with the flow that does. The manual prints no dependence where a
    /// vector micro-operation follows the load of one element: it puts that into the register, and could do nothing
    /// else.
    pub fn depends(&self, k: usize) -> Vec<(usize, usize)> {
        let uop = &self.recipe.uops[k];
        let inserts = uop.flows.iter().any(|f| f.pipes.meets(FL)) && self.class.contains("LD");
        if inserts && self.class.contains("(single structure)") {
            return vec![(k - 1, 0)];
        }
        uop.depends.iter().map(|d| (k - d.places as usize, d.flow as usize)).collect()
    }

    /// The registers it reads.
    pub fn reads(&self) -> Option<Kind> {
        let first = self.recipe.uops.iter().find_map(|u| u.flows.first().map(|f| (u, f)));
        first.map(|(uop, flow)| match uop.flows.get(1) {
            // Two pipes together compare vectors; a store's second flow is its data.
            Some(second) if second.independent && self.access().is_none() => Kind::of(flow.pipes.or(second.pipes)),
            _ => Kind::of(flow.pipes),
        })
    }

    /// The registers it writes, if its result has a latency.
    pub fn writes(&self) -> Option<Kind> {
        let uops = &self.recipe.uops[..self.result_uops()];
        let last = uops.last()?;
        let flow = last.flows.last()?;
        if uops.iter().flat_map(|u| &u.flows).all(|f| f.latency == 0) || self.class.contains("{ST") {
            return None;
        }
        match self.access() {
            Some(Access::Load | Access::Atomic) if self.base_table() => Some(Kind::General),
            Some(Access::Load) if self.class == "sve:LDR (predicate)" => Some(Kind::Predicate),
            Some(Access::Load) => Some(Kind::Vector),
            Some(_) => None,
            // A vector compare writes a predicate.
            None if last.flows.len() == 2 && flow.independent => Some(Kind::Predicate),
            None => Some(Kind::of(flow.pipes)),
        }
    }

    /// Whether its result comes from a load/store pipe: loads, and transfers from vector registers.
    pub fn loads(&self) -> bool {
        let last = self.recipe.uops[self.result_uops() - 1].flows.last();
        last.is_some_and(|f| f.pipes.0 & !EAG.0 == 0 && f.latency >= 5)
    }

    /// What it does to memory.
    pub fn access(&self) -> Option<Access> {
        let name = self.mnemonic();
        let starts = |prefixes: &[&str]| prefixes.iter().any(|p| name.starts_with(p));
        let reads = self.flows().any(|f| f.pipes.meets(EAG) && f.latency >= 5);
        match () {
            () if self.recipe.fetch_ports == 0 => None,
            () if starts(&["PRF"]) => Some(Access::PrefetchLoad(1)),
            () if starts(&["SYS"]) => Some(Access::ZeroLine),
            () if starts(&["STX", "STLX", "CAS", "SWP"]) => Some(Access::Atomic),
            () if starts(&["ST"]) => Some(Access::Store),
            () if starts(&["LD"]) && reads && self.base_table() && self.recipe.store_ports > 0 => Some(Access::Atomic),
            () if starts(&["LD"]) => Some(Access::Load),
            () => None,
        }
    }

    /// Registers transferred.
    fn registers(&self) -> u8 {
        let name = self.mnemonic();
        let listed = (2..=4).find(|n| self.class.contains(&format!("{n} register")));
        let digit = name.as_bytes().get(2).filter(|d| (b'2'..=b'4').contains(d)).map(|d| d - b'0');
        let pair = ["LDP", "LDNP", "STP", "STNP", "LDAXP", "LDXP", "STXP", "STLXP", "CASP", "LDPSW"].contains(&name);
        listed.or(digit).unwrap_or(if pair { 2 } else { 1 })
    }

    /// Bytes of an element, by the last letter of the mnemonic.
    fn element(&self) -> u8 {
        match self.mnemonic().as_bytes().last() {
            Some(b'B') => 1,
            Some(b'H') => 2,
            Some(b'W') => 4,
            _ => 8,
        }
    }

    /// Its memory access.
    pub fn mem(&self) -> Option<MemOp> {
        let (access, regs) = (self.access()?, self.registers());
        let esize = self.element();
        let vector = self.vector as u16;
        let single = MemOp { regs, ..MemOp::single(access, 8) };
        let whole = self.mnemonic() == "LDR" || self.mnemonic() == "STR";
        let gathers = self.flows().any(|f| f.all_pipes);
        Some(match () {
            () if access == Access::ZeroLine => MemOp { bytes: LINE as u16, ..single },
            () if gathers => {
                let reg_esize = if self.class.contains("[32-bit") { 4 } else { 8 };
                let mem_esize = esize.min(reg_esize);
                MemOp { shape: Shape::Indexed, bytes: mem_esize.into(), mem_esize, reg_esize, ..single }
            }
            () if self.class == "sve:LDR (predicate)" || self.class == "sve:STR (predicate)" => {
                MemOp { bytes: vector / 8, ..single }
            }
            () if self.class.starts_with("sve:") && whole => MemOp { bytes: vector, ..single },
            () if self.class.starts_with("sve:") => {
                let bytes = vector * u16::from(regs);
                let structure = regs > 1;
                MemOp { shape: Shape::Masked, bytes, mem_esize: esize, reg_esize: esize, structure, ..single }
            }
            () if self.base_table() => {
                MemOp { bytes: u16::from(regs) * u16::from(esize), mem_esize: esize, reg_esize: esize, ..single }
            }
            () => {
                let plain = ["LD1", "ST1", "LDP", "LDNP", "STP", "STNP"];
                let structure = regs > 1 && !plain.contains(&self.mnemonic());
                let each = if self.full() { 16 } else { 8 };
                MemOp { bytes: each * u16::from(regs), structure, ..single }
            }
        })
    }

    /// An AdvSIMD access of whole 16-byte registers.
    fn full(&self) -> bool {
        self.class.contains("(multiple structures)") && !self.class.contains("8B|4H")
    }

    /// The instruction: it reads register `from` and writes `to`, both of the row's own kinds. Its access lies at `at`.
    pub fn inst(&self, from: u8, to: u8, at: u64) -> Inst {
        let mut inst = op(self.class);
        let source = self.reads().map(|kind| kind.reg(from));
        if let Some(mem) = self.mem() {
            inst.info.mem = Some(mem);
            inst.words = self.words(&mem, at);
            inst = inst.based(source.as_slice());
            if mem.access == Access::Store {
                inst = inst.reads(&(0..mem.regs).map(|_| self.data().reg(15)).collect::<Vec<_>>());
            }
        } else {
            inst = inst.reads(source.as_slice());
        }
        let count = if self.access().is_some() { self.registers() } else { 1 };
        if let Some(kind) = self.writes() {
            // Of several registers the one that the chain goes through comes last.
            let others = (1..count).map(|k| kind.reg(11 + k));
            inst = inst.writes(&others.chain([kind.reg(to)]).collect::<Vec<_>>());
        }
        if self.updates() {
            inst.info.writeback = source;
        }
        inst
    }

    /// The kind of registers a store takes its data from; follows from its data flow.
    fn data(&self) -> Kind {
        let data = self.flows().filter(|f| f.pipes.0 & EAG.0 == 0).map(|f| Kind::of(f.pipes)).last();
        data.unwrap_or(Kind::General)
    }

    fn words(&self, mem: &MemOp, at: u64) -> Vec<u64> {
        let mask = (0..self.vector).step_by(mem.reg_esize.into()).map(|b| 1_u64 << b).sum();
        match mem.shape {
            Shape::Single => vec![at],
            Shape::Masked => vec![at, mask],
            Shape::Indexed => {
                // A gather finds each pair of elements in one block of 128 bytes; no two elements of a scatter share
                // an entry of the write buffer.
                let step = if mem.access == Access::Store { 64 } else { u64::from(mem.mem_esize) };
                let elements = self.vector / u64::from(mem.reg_esize);
                [mask].into_iter().chain((0..elements).map(|i| at + step * i)).collect()
            }
        }
    }
}
