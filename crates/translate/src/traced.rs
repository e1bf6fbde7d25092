//! Translated blocks for timing: each is executed by itself, and writes the dynamic stream.

use fxscope_aarch64::{BlockId, Cpu, Governed, Inst, Interpreter, Outcome};
use fxscope_guestmem::Memory;
use fxscope_isa::{InstKind, StaticInst};

use crate::context::{self, Context};
use crate::emit::{CONTINUES, HOW, INDEX_SHIFT, INTERPRET_REST, STOPPED};
use crate::unit::UnitBlock;

// What functions return that translated code calls, it returns, too.
const _: () = assert!(context::STOPPED as u64 == STOPPED && context::MET_SUBNORMALS as u64 == INTERPRET_REST);

/// The function of a block.
pub(crate) type Code = unsafe extern "C" fn(*mut Cpu, *mut Context) -> u64;

/// What is known of a block.
#[derive(Clone, Copy, Default)]
pub(crate) struct Traced {
    code: Option<Code>,
    /// Executions by the interpreter; [`NEVER`]: the block cannot be translated.
    count: u32,
    /// Its instructions.
    length: u16,
    /// Whether the code is right only for plain floating point without subnormal numbers so far.
    needs_plain: bool,
}

/// [`Traced::count`] of blocks that cannot be translated.
const NEVER: u32 = u32::MAX;

impl Traced {
    /// Counts an execution by the interpreter. Returns whether the block must be translated, which is after `often` of them.
    #[inline(always)]
    pub(crate) fn is_due(&mut self, often: u32) -> bool {
        if self.code.is_some() || self.count == NEVER {
            return false;
        }
        self.count += 1;
        self.count >= often
    }

    /// Returns the block `block` with the code at hand; `None`: it cannot be translated.
    pub(crate) fn translated(code: Option<Code>, infos: &[StaticInst]) -> Traced {
        let computes = |info: &StaticInst| {
            matches!(info.kind, InstKind::FpScalar | InstKind::AdvSimd | InstKind::Sve | InstKind::MovPrfx)
        };
        let count = if code.is_none() { NEVER } else { 0 };
        Traced { code, count, length: infos.len() as u16, needs_plain: infos.iter().any(computes) }
    }

    /// Returns the code, if it is right for the state of the thread.
    #[inline(always)]
    pub(crate) fn usable(&self, cpu: &Cpu) -> Option<Code> {
        self.code.filter(|_| !self.needs_plain || crate::translator::is_plain(cpu) && cpu.fp.denormals == 0)
    }

    /// Executes the code of the block, number `id`.
    #[inline(always)]
    pub(crate) fn run(
        &self,
        code: Code,
        id: BlockId,
        interpreter: &mut Interpreter,
        cpu: &mut Cpu,
        mem: &mut Memory,
    ) -> Outcome {
        cpu.clear_stream();
        let mut context = Context::new(mem, 0);
        // SAFETY: the code was made for this purpose, and refers to instructions that exist as long as it. It accesses `cpu`, `context`
        // and memory as the view allows, all of which this function borrows exclusively.
        #[allow(unsafe_code)]
        let left = unsafe { code(cpu, &raw mut context) };
        if left == CONTINUES {
            return Outcome { executed: self.length.into(), trap: None };
        }
        complete(left, id, interpreter, cpu, mem)
    }
}

/// Completes the execution of a block whose code has returned `left`.
#[cold]
#[inline(never)]
fn complete(left: u64, id: BlockId, interpreter: &mut Interpreter, cpu: &mut Cpu, mem: &mut Memory) -> Outcome {
    let at = (left >> INDEX_SHIFT) as usize;
    match left & HOW {
        STOPPED => Outcome::stopped(interpreter.start(id), at, cpu),
        INTERPRET_REST => interpreter.resume(id, at + 1, false, cpu, mem),
        _ => interpreter.resume(id, at, true, cpu, mem),
    }
}

/// What translated code refers to: it must exist as long as the code.
pub(crate) struct Referred {
    _insts: Box<[Inst]>,
    _governed: Box<[Governed]>,
}

impl From<UnitBlock> for Referred {
    fn from(block: UnitBlock) -> Referred {
        Referred { _insts: block.insts, _governed: block.governed }
    }
}
