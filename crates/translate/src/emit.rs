//! Cranelift's intermediate code of a unit.
//!
//! Each block of the unit is one block here, with further ones for what seldom happens. All registers are always in `Cpu`;
//! [`registers`] knows which values the host has in its registers, too, and [`flags`] from what the flags follow.

mod branch;
mod flags;
mod float;
mod integer;
mod loops;
mod memory;
mod registers;
mod sve;
mod traced;

use std::collections::BTreeMap;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, BlockCall, Function, InstBuilder as _, JumpTableData, MemFlagsData, SigRef, Signature, Type,
    Value, types,
};
use cranelift_codegen::isa::{CallConv, TargetIsa};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use fxscope_aarch64::{Cpu, Inst, fast};
use fxscope_isa::{InstKind, Reg, StaticInst};

use crate::context::{self, Context};
use crate::front::FrontTable;
use crate::unit::UnitBlock;
use flags::Flags;
use loops::OwnLoop;
use registers::Registers;
use traced::Trace;

/// Most bytes of an access that translated code does itself.
const MOST_BYTES: i64 = 64;

/// What a unit returns when the next block is at `cpu.pc`.
pub(crate) const CONTINUES: u64 = 0;
/// What a unit returns in the lowest bits when an instruction has stopped its block.
pub(crate) const STOPPED: u64 = 1;
/// What a unit returns in the lowest bits before an instruction that the interpreter must execute, with the rest of the block.
pub(crate) const INTERPRET: u64 = 2;
/// What a traced block returns in the lowest bits after an instruction behind which the interpreter must execute the rest of the block.
pub(crate) const INTERPRET_REST: u64 = 3;
/// The lowest bits of what a unit returns.
pub(crate) const HOW: u64 = 3;
/// Where the index of that instruction is in what a unit returns, below the number of its block in the unit.
pub(crate) const INDEX_SHIFT: u32 = 2;
/// Where the number of the block begins, and above it the number of the unit.
pub(crate) const BLOCK_SHIFT: u32 = 16;
/// Where the number of the unit begins.
pub(crate) const UNIT_SHIFT: u32 = 32;

/// What the code of a unit depends on apart from its blocks.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'s> {
    /// The number of the unit.
    pub(crate) number: u32,
    /// Vector length in bytes.
    pub(crate) vl: usize,
    /// While the unit runs, floating-point results are rounded to nearest, denormal numbers are not flushed, and the inexact flag is
    /// set.
    pub(crate) plain: bool,
    /// Executions of blocks are counted ([`Context::executions`]).
    pub(crate) counts: bool,
    /// Where units for the same state of floating point begin. The table stays where it is as long as the unit exists.
    pub(crate) entries: &'s FrontTable,
}

/// An instruction of a unit.
#[derive(Clone, Copy)]
struct At<'u> {
    inst: &'u Inst,
    info: &'u StaticInst,
    name: &'static str,
    word: u32,
    /// The number of its block in the unit, and its index there.
    block: usize,
    index: usize,
}

/// Values that the whole unit uses.
#[derive(Clone, Copy)]
struct Fixed {
    cpu: Value,
    context: Value,
    memory: Value,
    translations: Value,
    arena: Value,
    /// The last offset in the arena at which an access may begin.
    last_place: Value,
    /// Signatures of [`context::execute`] and [`context::settle_flags`].
    execute: SigRef,
    settle: SigRef,
}

struct Emitter<'f> {
    b: FunctionBuilder<'f>,
    fixed: Fixed,
    /// Instructions left, as in [`Context::remaining`].
    remaining: Variable,
    /// The cost of the blocks executed so far, as in [`Context::cost`], if they are counted.
    cost: Option<Variable>,
    /// The blocks of the unit by their start.
    blocks: BTreeMap<u64, Block>,
    /// Return addresses of calls in the unit.
    returns: Vec<u64>,
    /// Set while a block is emitted that branches to itself.
    own_loop: Option<OwnLoop>,
    /// Where execution continues at the address that is its parameter, in another unit if there is one.
    elsewhere: Block,
    /// Where the unit returns what is its parameter.
    exit: Block,
    regs: Registers,
    flags: Flags,
    number: u32,
    vl: usize,
    /// Whether floating-point control and status allow the host's arithmetic while the unit runs ([`float`]).
    plain: bool,
    /// Whether the host has fused multiply-add.
    fused: bool,
    /// The dynamic stream, if the unit writes it: it is a block then, and its flags are in `cpu.nzcv` before and after it.
    trace: Option<Trace>,
}

/// Returns the signature of a unit: `fn(*mut Cpu, *mut Context) -> u64`.
fn signature(convention: CallConv) -> Signature {
    let pointer = AbiParam::new(types::I64);
    let mut signature = Signature::new(convention);
    signature.params = vec![pointer; 2];
    signature.returns = vec![pointer];
    signature
}

/// Builds the function of a unit, which begins at the block that [`Context::entry`] says.
pub(crate) fn unit(
    function: &mut Function,
    builder: &mut FunctionBuilderContext,
    isa: &dyn TargetIsa,
    blocks: &[UnitBlock],
    surroundings: Surroundings<'_>,
) {
    // With this convention, a unit may continue in another one as its last action.
    function.signature = signature(CallConv::Tail);
    let mut emitter = Emitter::begin(FunctionBuilder::new(function, builder), isa, blocks, surroundings);
    for (number, block) in blocks.iter().enumerate() {
        emitter.block(number, block);
    }
    emitter.go_elsewhere(surroundings.entries);
    emitter.finish(isa);
}

/// Builds the function of a block that writes the dynamic stream: `fn(*mut Cpu, *mut Context) -> u64`, with the host's convention. No subnormal
/// number has been met before.
pub(crate) fn traced(
    function: &mut Function,
    builder: &mut FunctionBuilderContext,
    isa: &dyn TargetIsa,
    block: &UnitBlock,
    surroundings: Surroundings<'_>,
) {
    function.signature = signature(isa.default_call_conv());
    let blocks = std::slice::from_ref(block);
    let mut emitter = Emitter::begin(FunctionBuilder::new(function, builder), isa, blocks, surroundings);
    emitter.begin_trace(isa);
    emitter.block(0, block);
    emitter.finish(isa);
}

/// Builds the function that calls units from outside: `fn(*mut Cpu, *mut Context, unit) -> u64`, with the host's convention.
pub(crate) fn gate(function: &mut Function, builder: &mut FunctionBuilderContext, isa: &dyn TargetIsa) {
    function.signature = signature(isa.default_call_conv());
    function.signature.params.push(AbiParam::new(types::I64));
    let mut b = FunctionBuilder::new(function, builder);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let &[cpu, context, unit] = b.block_params(entry) else { unreachable!("three parameters") };
    let signature = b.import_signature(signature(CallConv::Tail));
    let call = b.ins().call_indirect(signature, unit, &[cpu, context]);
    let result = b.inst_results(call)[0];
    b.ins().return_(&[result]);
    b.seal_all_blocks();
    b.finalize(isa.frontend_config());
}

impl<'f> Emitter<'f> {
    /// Emits what comes before the first block.
    fn begin(
        mut b: FunctionBuilder<'f>,
        isa: &dyn TargetIsa,
        blocks: &[UnitBlock],
        surroundings: Surroundings<'_>,
    ) -> Emitter<'f> {
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let (cpu, context) = (b.block_params(entry)[0], b.block_params(entry)[1]);
        let mut signature = |params: usize, returns: &[Type]| {
            let mut signature = Signature::new(isa.default_call_conv());
            signature.params = vec![AbiParam::new(types::I64); params];
            signature.returns = returns.iter().map(|&ty| AbiParam::new(ty)).collect();
            b.import_signature(signature)
        };
        let (execute, settle) = (signature(3, &[types::I8]), signature(2, &[]));
        let mut field = |offset: usize| b.ins().load(types::I64, MemFlagsData::trusted(), context, offset as i32);
        let arena_bytes = field(offset_of!(Context, arena_bytes));
        let fixed = Fixed {
            cpu,
            context,
            memory: field(offset_of!(Context, memory)),
            translations: field(offset_of!(Context, translations)),
            arena: field(offset_of!(Context, arena)),
            last_place: arena_bytes,
            execute,
            settle,
        };
        let left = field(offset_of!(Context, remaining));
        let fixed = Fixed { last_place: b.ins().iadd_imm_s(arena_bytes, -MOST_BYTES), ..fixed };
        let remaining = b.declare_var(types::I64);
        b.def_var(remaining, left);
        let cost = surroundings.counts.then(|| {
            let cost = b.declare_var(types::I64);
            let so_far = b.ins().load(types::I64, MemFlagsData::trusted(), context, offset_of!(Context, cost) as i32);
            b.def_var(cost, so_far);
            cost
        });
        let starts: BTreeMap<u64, Block> = blocks.iter().map(|block| (block.start, b.create_block())).collect();
        let entries: Vec<Block> = blocks.iter().map(|block| starts[&block.start]).collect();
        enter(&mut b, context, &entries);
        let (elsewhere, exit) = (b.create_block(), b.create_block());
        b.append_block_param(elsewhere, types::I64);
        b.append_block_param(exit, types::I64);
        b.set_cold_block(exit);
        let Surroundings { number, vl, plain, .. } = surroundings;
        Emitter {
            b,
            fixed,
            remaining,
            cost,
            returns: branch::returns(blocks, &starts),
            blocks: starts,
            own_loop: None,
            elsewhere,
            exit,
            regs: Registers::default(),
            flags: Flags::Context,
            number,
            vl,
            plain,
            fused: has_fused(isa),
            trace: None,
        }
    }

    /// Emits what comes last.
    fn finish(mut self, isa: &dyn TargetIsa) {
        self.exit();
        self.b.seal_all_blocks();
        self.b.finalize(isa.frontend_config());
    }

    /// Emits a block, by its number in the unit.
    fn block(&mut self, number: usize, block: &UnitBlock) {
        self.b.switch_to_block(self.blocks[&block.start]);
        self.regs = Registers::default();
        if self.trace.is_some() {
            self.flags = Flags::InCpu;
        } else {
            self.flags = Flags::Context;
            self.begin_own_loop(block);
        }
        let count = block.insts.len();
        for index in 0..count {
            self.look(block, index);
            let at = At {
                inst: &block.insts[index],
                info: &block.infos[index],
                name: block.names[index],
                word: block.words[index],
                block: number,
                index,
            };
            if index + 1 == count && self.branch(at, block) {
                return;
            }
            self.inst(at);
        }
        self.end_block(block, branch::Next::Always(block.end));
    }

    /// Emits an instruction that is not a branch.
    fn inst(&mut self, at: At<'_>) {
        // Fast paths of SVE leave no words in the dynamic stream.
        let is_inline = self.integer(at) || self.access(at) || self.float(at) || self.trace.is_none() && self.sve(at);
        if !is_inline {
            self.execute(at);
        }
    }

    /// Emits a call of the interpreter's function for an instruction.
    fn execute(&mut self, at: At<'_>) {
        // What the system's instructions read and write, no list has.
        let anything = at.info.kind == InstKind::System || at.name.is_empty();
        let written = |reg: Reg| anything || at.info.writeback == Some(reg) || at.info.dsts.iter().any(|r| r == reg);
        let reads_flags = anything || at.info.srcs.iter().any(|reg| reg == Reg::NZCV);
        // A traced block may be left behind the instruction: what it has written must be in `Cpu`.
        if reads_flags || self.trace.is_some() && written(Reg::NZCV) {
            self.settle_flags();
        }
        if self.trace.is_some() {
            self.call_traced(at);
        } else {
            let stopped = self.call(at);
            if can_stop(at) {
                self.unless_stopped(stopped, at);
            }
        }
        self.regs.forget(written);
        if written(Reg::NZCV) {
            self.flags_are_in_cpu();
        }
    }

    /// Emits the call of the instruction's fast path, or else of its executing function; returns whether the instruction has
    /// stopped, as a number.
    fn call(&mut self, at: At<'_>) -> Value {
        let path = fast::find(at.name, at.word, self.vl);
        let path = path.or_else(|| if self.plain { fast::find_float(at.name, at.word) } else { None });
        let function = path.map_or(context::execute as *const () as u64, |path| path as *const () as u64);
        let function = self.constant(function);
        let inst = self.constant(std::ptr::from_ref(at.inst) as u64);
        let Fixed { cpu, memory, execute, .. } = self.fixed;
        let call = self.b.ins().call_indirect(execute, function, &[cpu, memory, inst]);
        self.b.inst_results(call)[0]
    }

    /// Leaves the unit if `stopped` is not zero: the instruction has stopped.
    fn unless_stopped(&mut self, stopped: Value, at: At<'_>) {
        let (out, on) = (self.cold_block(), self.b.create_block());
        self.b.ins().brif(stopped, out, &[], on, &[]);
        self.b.switch_to_block(out);
        self.leave_at(at, STOPPED);
        self.b.switch_to_block(on);
    }

    /// Leaves the unit before an instruction that the interpreter must execute.
    fn leave_before(&mut self, at: At<'_>) {
        self.leave_at(at, INTERPRET);
    }

    /// Leaves the unit at an instruction.
    fn leave_at(&mut self, at: At<'_>, how: u64) {
        if how == INTERPRET {
            self.store_words();
        }
        self.store_flags();
        let place = (at.index as u64) << INDEX_SHIFT | (at.block as u64) << BLOCK_SHIFT;
        self.leave(how | place | u64::from(self.number) << UNIT_SHIFT);
    }

    /// Leaves the unit, which returns `how`.
    fn leave(&mut self, how: u64) {
        let how = self.constant(how);
        self.b.ins().jump(self.exit, &[how.into()]);
    }

    /// Emits what all ways out of the unit share.
    fn exit(&mut self) {
        self.b.switch_to_block(self.exit);
        if self.trace.is_none() {
            self.store_counts();
        }
        let how = self.b.block_params(self.exit)[0];
        self.b.ins().return_(&[how]);
    }

    /// Writes what the context has of instructions and costs.
    fn store_counts(&mut self) {
        let left = self.b.use_var(self.remaining);
        self.set_field(offset_of!(Context, remaining), left);
        if let Some(cost) = self.cost {
            let cost = self.b.use_var(cost);
            self.set_field(offset_of!(Context, cost), cost);
        }
    }

    fn cold_block(&mut self) -> Block {
        let block = self.b.create_block();
        self.b.set_cold_block(block);
        block
    }

    fn constant(&mut self, value: u64) -> Value {
        self.b.ins().iconst(types::I64, value as i64)
    }

    /// Writes a field of the context.
    fn set_field(&mut self, offset: usize, value: Value) {
        self.b.ins().store(MemFlagsData::trusted(), value, self.fixed.context, offset as i32);
    }

    /// Reads from `Cpu`.
    fn load_cpu(&mut self, ty: Type, offset: usize) -> Value {
        self.b.ins().load(ty, MemFlagsData::trusted(), self.fixed.cpu, offset as i32)
    }

    /// Writes to `Cpu`.
    fn store_cpu(&mut self, value: Value, offset: usize) {
        self.b.ins().store(MemFlagsData::trusted(), value, self.fixed.cpu, offset as i32);
    }

    /// Returns a value as if of 64 bits: zero-extended.
    fn widen(&mut self, value: Value) -> Value {
        if self.b.func.dfg.value_type(value) == types::I64 { value } else { self.b.ins().uextend(types::I64, value) }
    }

    fn compare(&mut self, cond: IntCC, a: Value, b: Value) -> Value {
        self.b.ins().icmp(cond, a, b)
    }
}

/// Continues at the block that [`Context::entry`] says.
fn enter(b: &mut FunctionBuilder<'_>, context: Value, blocks: &[Block]) {
    if let &[only] = blocks {
        b.ins().jump(only, &[]);
        return;
    }
    let entry = b.ins().load(types::I32, MemFlagsData::trusted(), context, offset_of!(Context, entry) as i32);
    let calls: Vec<BlockCall> = blocks.iter().map(|&block| b.func.dfg.block_call(block, &[])).collect();
    // There are no other entries; the first one stands for them.
    let other = b.create_block();
    b.set_cold_block(other);
    let default = b.func.dfg.block_call(other, &[]);
    let table = b.create_jump_table(JumpTableData::new(default, &calls));
    b.ins().br_table(entry, table);
    b.switch_to_block(other);
    b.ins().jump(blocks[0], &[]);
}

/// Returns whether an instruction can stop its block.
fn can_stop(at: At<'_>) -> bool {
    let computes = matches!(
        at.info.kind,
        InstKind::FpScalar | InstKind::AdvSimd | InstKind::Sve | InstKind::SvePredicate | InstKind::MovPrfx
    );
    !computes || at.info.mem.is_some() || at.name.is_empty()
}

/// Returns whether the host multiplies and adds in one instruction: always, except on older ones of x86-64.
fn has_fused(isa: &dyn TargetIsa) -> bool {
    let flag = isa.isa_flags().into_iter().find(|flag| flag.name == "has_fma");
    flag.is_none_or(|flag| flag.as_bool() == Some(true))
}

/// Offset of a general-purpose register in `Cpu`, by decoder index.
fn x_offset(index: u8) -> usize {
    offset_of!(Cpu, x) + 8 * usize::from(index)
}
