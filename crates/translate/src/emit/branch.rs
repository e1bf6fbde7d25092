//! The end of a block: where execution continues, and whether it may.

use std::collections::BTreeMap;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder as _, MemFlagsData, Value, types};
use cranelift_codegen::isa::CallConv;
use fxscope_aarch64::fp::FpEnv;
use fxscope_aarch64::{BlockId, Cpu};
use fxscope_isa::Branch;

use super::{At, CONTINUES, Emitter, signature};
use crate::context::Context;
use crate::front::{FRONT, FrontEntry, FrontTable};
use crate::unit::UnitBlock;

/// Most return addresses with which the target of a return is compared.
const MOST_RETURNS: usize = 8;

/// The next block.
#[derive(Clone, Copy)]
pub(super) enum Next {
    /// The one at this address.
    Always(u64),
    /// The one at `taken` if `cond` is not zero, else the one at `other`.
    Either { cond: Value, taken: u64, other: u64 },
    /// The one at an address that the program has computed.
    Computed(Value),
}

/// Returns the return addresses of calls in a unit at which blocks of it start.
pub(super) fn returns(blocks: &[UnitBlock], starts: &BTreeMap<u64, Block>) -> Vec<u64> {
    let calls = |block: &&UnitBlock| {
        let last = block.infos.last().map(|info| info.branch);
        matches!(last, Some(Branch::Call | Branch::IndirectCall)) && starts.contains_key(&block.end)
    };
    blocks.iter().filter(calls).map(|block| block.end).take(MOST_RETURNS).collect()
}

impl Emitter<'_> {
    /// Emits a branch, the last instruction of `block`, with what ends the block. Returns `false`, and emits nothing, for other
    /// instructions.
    pub(super) fn branch(&mut self, at: At<'_>, block: &UnitBlock) -> bool {
        let (inst, target, other) = (at.inst, at.inst.imm as u64, block.end);
        let either = |cond| Next::Either { cond, taken: target, other };
        let next = match at.name {
            "B" => Next::Always(target),
            "BL" => {
                let link = self.constant(inst.imm2);
                self.set_x(30, link);
                Next::Always(target)
            }
            "B.cond" => either(self.holds(inst.pg)),
            "CBZ" | "CBNZ" => {
                let value = self.word(inst.rn, at.word >> 31 == 1);
                let cc = if at.name == "CBZ" { IntCC::Equal } else { IntCC::NotEqual };
                either(self.b.ins().icmp_imm_u(cc, value, 0))
            }
            "TBZ" | "TBNZ" => {
                let value = self.x(inst.rn);
                let bit = self.b.ins().band_imm_s(value, (1u64 << inst.aux) as i64);
                let cc = if at.name == "TBZ" { IntCC::Equal } else { IntCC::NotEqual };
                either(self.b.ins().icmp_imm_u(cc, bit, 0))
            }
            "BR" | "RET" | "BLR" => {
                let target = self.jump_target(inst.rn);
                if at.name == "BLR" {
                    let link = self.constant(inst.imm2);
                    self.set_x(30, link);
                }
                Next::Computed(target)
            }
            _ => return false,
        };
        self.end_block(block, next);
        true
    }

    /// Returns the address that a register holds: the top byte of one in the lower half of the address space (bit 55 clear) is
    /// ignored.
    fn jump_target(&mut self, index: u8) -> Value {
        let address = self.x(index);
        let shifted = self.b.ins().ishl_imm_u(address, 8);
        let extended = self.b.ins().sshr_imm_u(shifted, 8);
        self.b.ins().band(address, extended)
    }

    /// Ends a block: flags go to memory, and the next block begins if there are instructions left.
    pub(super) fn end_block(&mut self, block: &UnitBlock, next: Next) {
        self.store_flags();
        if self.trace.is_some() {
            self.store_words();
            return self.leave_for(next);
        }
        self.count_execution(block.id);
        let left = self.b.use_var(self.remaining);
        let left = self.b.ins().iadd_imm_s(left, -(block.insts.len() as i64));
        self.b.def_var(self.remaining, left);
        let (out, on) = (self.cold_block(), self.b.create_block());
        let zero = self.constant(0);
        let done = self.compare(IntCC::SignedLessThanOrEqual, left, zero);
        self.b.ins().brif(done, out, &[], on, &[]);
        self.b.switch_to_block(out);
        self.leave_for(next);
        self.b.switch_to_block(on);
        self.go_on(next);
    }

    /// Counts an execution of a block, if the unit counts.
    fn count_execution(&mut self, id: BlockId) {
        let Some(cost) = self.cost else { return };
        let (trusted, place) = (MemFlagsData::trusted(), size_of::<u32>() as i32 * id.0 as i32);
        let mut field = |offset: usize| self.b.ins().load(types::I64, trusted, self.fixed.context, offset as i32);
        let (executions, costs) = (field(offset_of!(Context, executions)), field(offset_of!(Context, costs)));
        let before = self.b.ins().load(types::I32, trusted, executions, place);
        let after = self.b.ins().iadd_imm_s(before, 1);
        self.b.ins().store(trusted, after, executions, place);
        let own = self.b.ins().uload32(trusted, costs, place);
        let so_far = self.b.use_var(cost);
        let sum = self.b.ins().iadd(so_far, own);
        self.b.def_var(cost, sum);
    }

    /// Leaves the unit for good; the next block is `next`.
    fn leave_for(&mut self, next: Next) {
        let pc = self.address_of(next);
        self.store_cpu(pc, offset_of!(Cpu, pc));
        self.leave(CONTINUES);
    }

    /// Returns the address of the next block.
    fn address_of(&mut self, next: Next) -> Value {
        match next {
            Next::Always(target) => self.constant(target),
            Next::Either { cond, taken, other } => {
                let (taken, other) = (self.constant(taken), self.constant(other));
                self.b.ins().select(cond, taken, other)
            }
            Next::Computed(target) => target,
        }
    }

    /// Continues with the next block, in the unit or outside.
    fn go_on(&mut self, next: Next) {
        match next {
            Next::Always(target) => match self.place(target) {
                Some((block, values)) => {
                    self.b.ins().jump(block, &values);
                }
                None => self.leave_to_constant(target),
            },
            Next::Either { cond, taken, other } => {
                let mut outside = Vec::new();
                let [taken, other] = [taken, other].map(|target| {
                    self.place(target).unwrap_or_else(|| {
                        let block = self.b.create_block();
                        outside.push((block, target));
                        (block, Vec::new())
                    })
                });
                self.b.ins().brif(cond, taken.0, &taken.1, other.0, &other.1);
                for (block, target) in outside {
                    self.b.switch_to_block(block);
                    self.leave_to_constant(target);
                }
            }
            Next::Computed(target) => {
                for address in self.returns.clone() {
                    let (here, elsewhere) = (self.blocks[&address], self.b.create_block());
                    let wanted = self.constant(address);
                    let same = self.compare(IntCC::Equal, target, wanted);
                    self.b.ins().brif(same, here, &[], elsewhere, &[]);
                    self.b.switch_to_block(elsewhere);
                }
                self.leave_to(target);
            }
        }
    }

    fn leave_to_constant(&mut self, target: u64) {
        let pc = self.b.ins().iconst(types::I64, target as i64);
        self.leave_to(pc);
    }

    /// Leaves the unit; the next block is at `pc`.
    fn leave_to(&mut self, pc: Value) {
        self.b.ins().jump(self.elsewhere, &[pc.into()]);
    }

    /// Emits how execution continues outside the unit: in the unit that `entries` has for the next block, or else outside all units.
    pub(super) fn go_elsewhere(&mut self, entries: &FrontTable) {
        let trusted = MemFlagsData::trusted();
        self.b.switch_to_block(self.elsewhere);
        let pc = self.b.block_params(self.elsewhere)[0];
        self.store_cpu(pc, offset_of!(Cpu, pc));
        let (found, out) = (self.b.create_block(), self.cold_block());
        if !self.plain {
            self.stay_if_not_plain(out);
        }
        let table = self.constant(entries.address() as u64);
        // Instructions are four bytes long, entries longer.
        let offset = self.b.ins().ishl_imm_u(pc, i64::from(FrontEntry::SHIFT) - 2);
        let offset = self.b.ins().band_imm_u(offset, (FRONT as i64 - 1) << FrontEntry::SHIFT);
        let entry = self.b.ins().iadd(table, offset);
        let start = self.b.ins().load(types::I64, trusted, entry, offset_of!(FrontEntry, start) as i32);
        let same = self.compare(IntCC::Equal, start, pc);
        self.b.ins().brif(same, found, &[], out, &[]);
        self.b.switch_to_block(found);
        self.store_counts();
        let block = self.b.ins().load(types::I32, trusted, entry, offset_of!(FrontEntry, block) as i32);
        self.set_field(offset_of!(Context, entry), block);
        let code = self.b.ins().load(types::I64, trusted, entry, offset_of!(FrontEntry, code) as i32);
        let signature = self.b.import_signature(signature(CallConv::Tail));
        self.b.ins().return_call_indirect(signature, code, &[self.fixed.cpu, self.fixed.context]);
        self.b.switch_to_block(out);
        self.leave(CONTINUES);
    }

    /// Continues at `out` if floating point may have become plain: other units are then faster.
    fn stay_if_not_plain(&mut self, out: Block) {
        let status = self.load_cpu(types::I32, offset_of!(Cpu, fp) + offset_of!(FpEnv, fpsr));
        let inexact = self.b.ins().band_imm_u(status, i64::from(FpEnv::IXC));
        let on = self.b.create_block();
        self.b.ins().brif(inexact, out, &[], on, &[]);
        self.b.switch_to_block(on);
    }
}
