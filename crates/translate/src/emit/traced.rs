//! Traced blocks, which write the dynamic stream as the interpreter does.
//!
//! How many words an instruction leaves follows from its description, so that each word has a place that is known here. The number of words
//! in `Cpu` is valid when the block is left, and while functions are called that write words themselves.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AbiParam, InstBuilder as _, MemFlagsData, SigRef, Signature, Value, types};
use cranelift_codegen::isa::TargetIsa;
use fxscope_aarch64::Cpu;
use fxscope_aarch64::cpu::stream_words;
use fxscope_isa::{InstKind, Reg, RegClass};

use super::{At, Emitter, can_stop};
use crate::context;
use crate::unit::UnitBlock;

/// The stream of a traced block.
pub(super) struct Trace {
    /// Its first word.
    stream: Value,
    /// The words so far.
    words: usize,
    /// Signatures of [`context::execute_traced`] and [`context::look`].
    execute: SigRef,
    look: SigRef,
}

impl Emitter<'_> {
    /// The unit writes the stream. Emitted before the block.
    pub(super) fn begin_trace(&mut self, isa: &dyn TargetIsa) {
        let mut signature = |params: usize, returns: usize| {
            let mut signature = Signature::new(isa.default_call_conv());
            signature.params = vec![AbiParam::new(types::I64); params];
            signature.returns = vec![AbiParam::new(types::I8); returns];
            self.b.import_signature(signature)
        };
        let (execute, look) = (signature(4, 1), signature(2, 0));
        self.trace = Some(Trace { stream: self.fixed.cpu, words: 0, execute, look });
    }

    /// Emits the checks of governing predicates before instruction number `index`, if the block is traced.
    pub(super) fn look(&mut self, block: &UnitBlock, index: usize) {
        let Some(Trace { look, .. }) = self.trace else { return };
        if index == 0 {
            let stream = self.load_cpu(types::I64, Cpu::STREAM);
            if let Some(trace) = &mut self.trace {
                trace.stream = stream;
            }
        }
        for governed in block.governed.iter().filter(|governed| governed.at == index) {
            let predicate = self.load_cpu(types::I64, offset_of!(Cpu, p) + 8 * usize::from(governed.predicate & 15));
            let elements = self.constant(governed.elements);
            let active = self.b.ins().band(predicate, elements);
            let all = self.compare(IntCC::Equal, active, elements);
            let (partial, on) = (self.cold_block(), self.b.create_block());
            self.b.ins().brif(all, on, &[], partial, &[]);
            self.b.switch_to_block(partial);
            let function = self.constant(context::look as *const () as u64);
            let governed = self.constant(std::ptr::from_ref(governed) as u64);
            self.b.ins().call_indirect(look, function, &[self.fixed.cpu, governed]);
            self.b.ins().jump(on, &[]);
            self.b.switch_to_block(on);
        }
    }

    /// Emits the word of an access, if the block is traced.
    pub(super) fn note(&mut self, word: Value) {
        let Some(trace) = &mut self.trace else { return };
        let (stream, place) = (trace.stream, 8 * trace.words as i32);
        trace.words += 1;
        self.b.ins().store(MemFlagsData::trusted(), word, stream, place);
    }

    /// Writes the number of words so far, if the block is traced.
    pub(super) fn store_words(&mut self) {
        if let Some(Trace { words, .. }) = self.trace {
            let words = self.constant(words as u64);
            self.store_cpu(words, Cpu::STREAM_LEN);
        }
    }

    /// Emits a call of the interpreter's function for an instruction of a traced block. If the instruction stops, or meets subnormal
    /// numbers, the block is left.
    pub(super) fn call_traced(&mut self, at: At<'_>) {
        let Some(Trace { execute, .. }) = self.trace else { return };
        if at.info.mem.is_some() || at.info.kind == InstKind::System {
            self.store_words();
        }
        let function = self.constant(context::execute_traced as *const () as u64);
        let [inst, index] = [std::ptr::from_ref(at.inst) as u64, at.index as u64].map(|value| self.constant(value));
        let (cpu, memory) = (self.fixed.cpu, self.fixed.memory);
        let call = self.b.ins().call_indirect(execute, function, &[cpu, memory, inst, index]);
        let how = self.b.inst_results(call)[0];
        if let (Some(trace), Some(op)) = (&mut self.trace, &at.info.mem) {
            trace.words += stream_words(op, self.vl);
        }
        if can_stop(at) || may_meet_subnormals(at) {
            self.unless_left(how, at);
        }
    }

    /// Leaves the block if `how`, which a function has returned, is not zero.
    fn unless_left(&mut self, how: Value, at: At<'_>) {
        let (out, on) = (self.cold_block(), self.b.create_block());
        self.b.ins().brif(how, out, &[], on, &[]);
        self.b.switch_to_block(out);
        if at.info.mem.is_none() {
            self.store_words();
        }
        self.store_flags();
        let how = self.widen(how);
        let place = self.b.ins().bor_imm_u(how, (at.index as i64) << super::INDEX_SHIFT);
        self.b.ins().return_(&[place]);
        self.b.switch_to_block(on);
    }
}

/// Returns whether an instruction may meet subnormal numbers: it computes with vector registers.
fn may_meet_subnormals(at: At<'_>) -> bool {
    let vector = |reg: Reg| reg.class() == RegClass::Vector;
    at.info.mem.is_none() && at.info.srcs.iter().chain(at.info.dsts.iter()).any(vector)
}
