//! What the instructions of an executed block have accessed in memory, from the dynamic stream.

use fxscope_isa::{Access, MemOp, Shape};

use crate::cpu::Cpu;
use crate::engine::StaticBlock;

/// An access to memory by an instruction or an element of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataAccess {
    /// The first address.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// Whether it may write.
    pub writes: bool,
}

impl StaticBlock {
    /// Iterates over what its first `executed` instructions have accessed; it is the last block that `cpu` has executed. Accesses
    /// under a mask are given as a whole.
    pub fn accesses<'a>(&'a self, cpu: &'a Cpu, executed: usize) -> impl Iterator<Item = DataAccess> + 'a {
        let mut stream = cpu.stream();
        let infos = &self.infos[..executed.min(self.infos.len())];
        infos.iter().filter_map(|info| info.mem).flat_map(move |op| {
            let words = words(&op, cpu.vl).min(stream.len());
            let (own, rest) = stream.split_at(words);
            stream = rest;
            let addresses = match op.shape {
                Shape::Single => own,
                Shape::Masked => &own[..own.len().min(1)],
                Shape::Indexed => &own[own.len().min(1)..],
            };
            let (bytes, writes) = (u64::from(op.bytes), op.access != Access::Load);
            addresses.iter().map(move |&address| DataAccess { address, bytes, writes })
        })
    }
}

/// Returns the number of words that an access leaves in the dynamic stream, with vectors of `vl` bytes (`fxscope_isa::mem`).
fn words(op: &MemOp, vl: usize) -> usize {
    match op.shape {
        Shape::Single => 1,
        Shape::Masked => 2,
        Shape::Indexed => 1 + vl / usize::from(op.reg_esize.max(1)),
    }
}
