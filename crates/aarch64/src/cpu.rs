//! Architectural state of one thread.

use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};
use fxscope_isa::{Partial, Subnormal, mem};
use serde::{Deserialize, Serialize};

use crate::hpc::HpcExtension;
use fxscope_guestmem::MemFault;

/// Largest vector length in bytes.
pub const MAX_VL: usize = 64;

/// Number of words the dynamic stream can hold: more than any block can produce.
pub const STREAM_WORDS: usize = 1 << 14;

/// One SIMD&FP / SVE register. Bytes beyond the vector length are always zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C, align(64))]
pub struct Vreg(pub [u64; 8]);

impl Vreg {
    /// All bits zero.
    pub const ZERO: Vreg = Vreg([0; 8]);

    /// Returns the register as elements of type `T`, element 0 first (all 64 bytes).
    #[inline(always)]
    #[must_use]
    pub fn lanes<T: Pod>(&self) -> &[T] {
        bytemuck::cast_slice(&self.0)
    }
    /// Returns the register as mutable elements of type `T`, element 0 first (all 64 bytes).
    #[inline(always)]
    pub fn lanes_mut<T: Pod>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
    /// Returns a register with `low` in its lowest bytes and zero above, as a SIMD&FP write leaves it.
    #[inline(always)]
    #[must_use]
    pub fn from_low(low: u128) -> Vreg {
        Vreg([low as u64, (low >> 64) as u64, 0, 0, 0, 0, 0, 0])
    }
    /// Returns the lowest 128 bits.
    #[inline(always)]
    #[must_use]
    pub fn low(&self) -> u128 {
        u128::from(self.0[0]) | u128::from(self.0[1]) << 64
    }
}

/// Execution stopped before the end of the block; [`Cpu::trap`] has the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop;

/// Why execution of a block stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trap {
    /// `SVC`: a system call. `pc` already points to the next instruction.
    SystemCall,
    /// An instruction that does not exist, or that user code may not execute.
    Undefined,
    /// `BRK #imm`.
    Breakpoint(u16),
    /// A memory access that the address space does not allow.
    Memory(MemFault),
    /// A misaligned exclusive, atomic or stack access, or a misaligned branch target.
    Misaligned(u64),
    /// Decoded code may be stale (`IC IVAU`): blocks must be decoded again. `pc` already points to the next instruction.
    CodeChanged,
    /// An access to a window of the hardware barrier. The barrier blades, which the cores of a CMG share, determine the value
    /// read and the effect of a write. `pc` already points to the next instruction.
    Window(crate::hpc::WindowAccess),
    /// `WFE`, and no event has occurred since the last one. `pc` already points to the next instruction.
    WaitForEvent,
    /// `SEV`: an event for all cores. `pc` already points to the next instruction.
    SendEvent,
}

/// Condition flags as a number: bit 3 N, bit 2 Z, bit 1 C, bit 0 V.
pub type Nzcv = u8;

/// The architectural state of one guest thread.
///
/// `x` holds the 31 general-purpose registers, the stack pointer at 31, a register that always reads as zero at [`Cpu::XZR`] and
/// a write-only register at [`Cpu::SINK`]. Handlers therefore need no test for register 31: the decoder selects the index (see
/// `table::Ctx`).
///
/// The dynamic stream belongs to the last block, not to the state: it is neither copied nor serialised.
#[derive(Serialize, Deserialize)]
pub struct Cpu {
    /// General-purpose registers; use [`Cpu::x`] and [`Cpu::set_x`].
    #[serde(with = "crate::serialise::array")]
    pub x: [u64; 64],
    /// Vector registers.
    pub z: [Vreg; 32],
    /// Predicate registers: one bit for each byte of a vector. Bits beyond the vector length are zero.
    pub p: [u64; 16],
    /// The first-fault register, as a predicate.
    pub ffr: u64,
    /// Condition flags.
    pub nzcv: Nzcv,
    /// Floating-point control and status.
    pub fp: crate::fp::FpEnv,
    /// Address of the next instruction, after a block has ended.
    pub pc: u64,
    /// Vector length in bytes: 16, 32 or 64.
    pub vl: usize,
    /// Thread pointer, `TPIDR_EL0`.
    pub tpidr: u64,
    /// `TPIDRRO_EL0`.
    pub tpidrro: u64,
    /// Exclusive monitor: address and size of the last load-exclusive and the value it read.
    pub monitor: Option<Monitor>,
    /// The event register: whether an event has occurred that no `WFE` has consumed.
    pub event: bool,
    /// Why the block stopped, after an instruction returned [`Stop`].
    pub trap: Trap,
    /// Value of the virtual counter `CNTVCT_EL0`, kept current by the driver.
    pub counter: u64,
    /// `CNTFRQ_EL0` in Hz.
    pub counter_hz: u64,
    /// Identification and cache-type registers as user code sees them.
    pub id: IdRegisters,
    /// Registers of the HPC extension.
    pub hpc: HpcExtension,
    #[serde(skip, default = "empty_stream")]
    stream: Box<[u64; STREAM_WORDS]>,
    #[serde(skip)]
    stream_len: usize,
    /// Instructions of the block whose governing predicates had inactive elements, in any order.
    #[serde(skip)]
    partials: Vec<Partial>,
    /// Instructions of the block that encountered subnormal numbers, in order.
    #[serde(skip)]
    subnormals: Vec<Subnormal>,
}

/// Allocates the dynamic stream of one block.
fn empty_stream() -> Box<[u64; STREAM_WORDS]> {
    vec![0; STREAM_WORDS].into_boxed_slice().try_into().expect("fixed length")
}

impl Clone for Cpu {
    fn clone(&self) -> Cpu {
        Cpu { stream: empty_stream(), stream_len: 0, partials: Vec::new(), subnormals: Vec::new(), ..*self }
    }
}

/// An armed exclusive monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitor {
    /// Address of the exclusive load.
    pub addr: u64,
    /// Its size in bytes, both registers of a pair together.
    pub bytes: u8,
    /// The value it read.
    pub value: u128,
}

impl Monitor {
    /// Returns whether memory still holds the value that the load-exclusive read.
    pub fn holds(&self, mem: &mut fxscope_guestmem::Memory) -> bool {
        let mut bytes = [0; 16];
        let len = usize::from(self.bytes).min(bytes.len());
        mem.read(self.addr, &mut bytes[..len]).is_ok() && u128::from_le_bytes(bytes) == self.value
    }
}

/// Identification registers that user code can read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdRegisters {
    /// `MIDR_EL1` (emulated for user code by Linux).
    pub midr: u64,
    /// `MPIDR_EL1`.
    pub mpidr: u64,
    /// `CTR_EL0`.
    pub ctr: u64,
    /// `DCZID_EL0`.
    pub dczid: u64,
    /// `ID_AA64ISAR0_EL1`.
    pub isar0: u64,
    /// `ID_AA64ISAR1_EL1`.
    pub isar1: u64,
    /// `ID_AA64PFR0_EL1`.
    pub pfr0: u64,
    /// `ID_AA64ZFR0_EL1`.
    pub zfr0: u64,
    /// Not in use: `ID_AA64MMFR0_EL1` and the other registers that user code reads as zero need no storage.
    pub reserved: u64,
}

impl IdRegisters {
    /// Returns the bytes of the block that `DC ZVA` zeroes, or 0 when it is prohibited.
    #[inline(always)]
    #[must_use]
    pub fn zva_bytes(&self) -> u64 {
        if self.dczid & 0x10 != 0 { 0 } else { 4 << (self.dczid & 0xf) }
    }
}

impl Cpu {
    /// Where the address of the dynamic stream's first word is, and the number of its words (8 bytes each): for translated code, which
    /// writes words as [`Cpu::note`] does. No block has more than [`STREAM_WORDS`].
    pub const STREAM: usize = offset_of!(Cpu, stream);
    /// See [`Cpu::STREAM`].
    pub const STREAM_LEN: usize = offset_of!(Cpu, stream_len);

    /// Index of the register that reads as zero.
    pub const XZR: u8 = 32;
    /// Index of the write-only register.
    pub const SINK: u8 = 33;
    /// Index of the stack pointer.
    pub const SP: u8 = 31;

    /// Returns a thread with all registers zero and the given vector length in bytes (16, 32 or 64).
    #[must_use]
    pub fn new(vl: usize) -> Cpu {
        assert!(matches!(vl, 16 | 32 | 64), "vector length {vl} bytes");
        Cpu {
            x: [0; 64],
            z: [Vreg::ZERO; 32],
            p: [0; 16],
            ffr: 0,
            nzcv: 0,
            fp: crate::fp::FpEnv::default(),
            pc: 0,
            vl,
            tpidr: 0,
            tpidrro: 0,
            monitor: None,
            event: false,
            trap: Trap::Undefined,
            counter: 0,
            counter_hz: 100_000_000,
            id: IdRegisters::default(),
            hpc: HpcExtension::default(),
            stream: empty_stream(),
            stream_len: 0,
            partials: Vec::new(),
            subnormals: Vec::new(),
        }
    }

    /// Returns a general-purpose register by decoder index.
    #[inline(always)]
    #[must_use]
    pub fn x(&self, index: u8) -> u64 {
        self.x[usize::from(index & 63)]
    }
    /// Returns the low half of a general-purpose register.
    #[inline(always)]
    #[must_use]
    pub fn w(&self, index: u8) -> u32 {
        self.x(index) as u32
    }
    /// Writes a general-purpose register by decoder index.
    #[inline(always)]
    pub fn set_x(&mut self, index: u8, value: u64) {
        self.x[usize::from(index & 63)] = value;
    }
    /// Writes the low half of a general-purpose register and clears the upper half.
    #[inline(always)]
    pub fn set_w(&mut self, index: u8, value: u32) {
        self.set_x(index, u64::from(value));
    }
    /// Returns vector register `n`.
    #[inline(always)]
    #[must_use]
    pub fn z(&self, n: u8) -> &Vreg {
        &self.z[usize::from(n & 31)]
    }
    /// Returns vector register `n`, mutable.
    #[inline(always)]
    pub fn z_mut(&mut self, n: u8) -> &mut Vreg {
        &mut self.z[usize::from(n & 31)]
    }
    /// Returns predicate register `n`.
    #[inline(always)]
    #[must_use]
    pub fn p(&self, n: u8) -> u64 {
        self.p[usize::from(n & 15)]
    }
    /// Writes predicate register `n`; bits beyond the vector length are dropped.
    #[inline(always)]
    pub fn set_p(&mut self, n: u8, value: u64) {
        self.p[usize::from(n & 15)] = value & self.p_mask();
    }
    /// Returns all predicate bits that exist at this vector length.
    #[inline(always)]
    #[must_use]
    pub fn p_mask(&self) -> u64 {
        u64::MAX >> (64 - self.vl)
    }
    /// Clears bytes of vector register `n` beyond the vector length.
    #[inline(always)]
    pub fn trim(&mut self, n: u8) {
        if self.vl < MAX_VL {
            let words = self.vl / 8;
            self.z[usize::from(n & 31)].0[words..].fill(0);
        }
    }
    /// Returns whether condition `cond` (0–15, as encoded) holds.
    #[inline(always)]
    #[must_use]
    pub fn holds(&self, cond: u8) -> bool {
        condition_holds(cond, self.nzcv)
    }

    /// Appends a word to the dynamic stream; [`mem`] defines the words of each access.
    #[inline(always)]
    pub fn note(&mut self, word: u64) {
        self.stream[self.stream_len & (STREAM_WORDS - 1)] = word;
        self.stream_len += 1;
    }
    /// Returns the words appended since [`Cpu::clear_stream`].
    #[inline(always)]
    #[must_use]
    pub fn stream(&self) -> &[u64] {
        &self.stream[..self.stream_len.min(STREAM_WORDS)]
    }
    /// Returns the instructions recorded since [`Cpu::clear_stream`] whose governing predicates had inactive elements; some of
    /// them may not have been executed.
    #[inline(always)]
    #[must_use]
    pub fn partials(&self) -> &[Partial] {
        &self.partials
    }
    /// Returns the instructions recorded since [`Cpu::clear_stream`] that encountered subnormal numbers and did not flush them.
    #[inline(always)]
    #[must_use]
    pub fn subnormals(&self) -> &[Subnormal] {
        &self.subnormals
    }
    /// Records an instruction of the block whose governing predicate has inactive elements.
    #[inline(always)]
    pub fn note_partial(&mut self, partial: Partial) {
        self.partials.push(partial);
    }
    /// Records that instruction `inst` of the block performed `operations` on subnormal elements.
    #[cold]
    #[inline(never)]
    pub fn note_subnormals(&mut self, inst: usize, operations: u32) {
        self.subnormals.push(Subnormal { inst: inst as u8, operations });
    }
    /// Clears the dynamic stream.
    #[inline(always)]
    pub fn clear_stream(&mut self) {
        self.stream_len = 0;
        self.partials.clear();
        self.subnormals.clear();
    }

    /// Stops with `trap`.
    #[cold]
    pub fn stop(&mut self, trap: Trap) -> Stop {
        self.trap = trap;
        Stop
    }
    /// Stops with a memory fault.
    #[cold]
    pub fn fault(&mut self, fault: MemFault) -> Stop {
        self.stop(Trap::Memory(fault))
    }
}

/// For each condition code, the set of flag values (as bit numbers) for which it holds.
const CONDITION: [u16; 16] = {
    let mut table = [0u16; 16];
    let mut cond = 0;
    while cond < 16 {
        let mut flags = 0;
        while flags < 16 {
            let (n, z, c, v) = (flags >> 3 & 1 == 1, flags >> 2 & 1 == 1, flags >> 1 & 1 == 1, flags & 1 == 1);
            let base = match cond >> 1 {
                0 => z,
                1 => c,
                2 => n,
                3 => v,
                4 => c && !z,
                5 => n == v,
                6 => n == v && !z,
                _ => true,
            };
            if base != (cond & 1 == 1 && cond != 15) {
                table[cond] |= 1 << flags;
            }
            flags += 1;
        }
        cond += 1;
    }
    table
};

/// Returns whether condition `cond` (0–15) holds for `flags`.
#[inline(always)]
#[must_use]
pub fn condition_holds(cond: u8, flags: Nzcv) -> bool {
    CONDITION[usize::from(cond & 15)] >> (flags & 15) & 1 == 1
}

/// Returns the number of words that an access of this kind appends to the dynamic stream, for a vector of `vl` bytes.
#[must_use]
pub fn stream_words(op: &mem::MemOp, vl: usize) -> usize {
    match op.shape {
        mem::Shape::Single => 1,
        mem::Shape::Masked => 2,
        mem::Shape::Indexed => 1 + vl / usize::from(op.reg_esize),
    }
}
