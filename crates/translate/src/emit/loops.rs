//! Blocks that branch to themselves: general-purpose registers that an iteration passes to the next one stay in registers of the host.

use cranelift_codegen::ir::{Block, BlockArg, InstBuilder as _, types};
use fxscope_isa::{Reg, StaticInst};

use super::Emitter;
use crate::unit::UnitBlock;

/// Most registers that stay in registers of the host.
const MOST_CARRIED: usize = 6;

/// How a block that branches to itself begins its next iteration.
#[derive(Clone)]
pub(super) struct OwnLoop {
    /// Where the block starts.
    start: u64,
    /// Where an iteration begins; its parameters are the values of the registers.
    head: Block,
    /// The registers, by decoder index.
    carried: Vec<u8>,
}

/// Returns the general-purpose registers that an iteration reads before it writes them, and writes.
fn carried(infos: &[StaticInst]) -> Vec<u8> {
    let (mut read, mut written) = (0u32, 0u32);
    for info in infos {
        let bits = |registers: &mut dyn Iterator<Item = Reg>| {
            registers.filter(|reg| reg.0 < 31).fold(0, |bits, reg| bits | 1 << reg.0)
        };
        read |= bits(&mut info.srcs.iter().chain(info.addr_srcs.iter())) & !written;
        written |= bits(&mut info.dsts.iter().chain(info.writeback));
    }
    (0..31).filter(|n| (read & written) >> n & 1 == 1).take(MOST_CARRIED).collect()
}

impl Emitter<'_> {
    /// Emits the beginning of an iteration, if the block branches to itself.
    pub(super) fn begin_own_loop(&mut self, block: &UnitBlock) {
        self.own_loop = None;
        if !block.branches_to(block.start) {
            return;
        }
        let carried = carried(&block.infos);
        let head = self.b.create_block();
        let values: Vec<BlockArg> = carried.iter().map(|&register| self.x(register).into()).collect();
        self.b.ins().jump(head, &values);
        self.b.switch_to_block(head);
        for &register in &carried {
            let value = self.b.append_block_param(head, types::I64);
            self.regs.hold_x(register, value);
        }
        self.own_loop = Some(OwnLoop { start: block.start, head, carried });
    }

    /// Returns where the block at `target` begins, and the values of its parameters; `None`: it is not in the unit.
    pub(super) fn place(&mut self, target: u64) -> Option<(Block, Vec<BlockArg>)> {
        match self.own_loop.clone() {
            Some(own) if own.start == target => {
                let values = own.carried.iter().map(|&register| self.x(register).into()).collect();
                Some((own.head, values))
            }
            _ => self.blocks.get(&target).map(|&block| (block, Vec::new())),
        }
    }
}
