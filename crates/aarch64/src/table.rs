//! Encodings as data, and the decoder built from them.
//!
//! An instruction is one [`Encoding`]: a bit pattern written as in the Arm manual, a name, and a function that turns an
//! instruction word into a [`Decoded`] instruction: operands with the function that executes it ([`Inst`]) and its description
//! for the timing model ([`StaticInst`]).

use std::sync::LazyLock;

use fxscope_isa::{Reg, RegList, StaticInst};

use crate::cpu::{Cpu, Stop, Trap};
use crate::insn;
use crate::statistics;
use fxscope_guestmem::Memory;

/// Executes one instruction. After `Ok`, the next one in the block follows; a branch writes `cpu.pc`.
pub type Exec = fn(&mut Cpu, &mut Memory, &Inst) -> Result<(), Stop>;

/// A decoded instruction: exactly what its executing function needs. 32 bytes.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Inst {
    /// The semantics.
    pub exec: Exec,
    /// Immediate, offset or absolute branch target.
    pub imm: i64,
    /// A second immediate: return address, mask, …
    pub imm2: u64,
    /// Destination register (decoder index for general-purpose registers, see [`Cpu`]).
    pub rd: u8,
    /// First source register.
    pub rn: u8,
    /// Second source register.
    pub rm: u8,
    /// Third source register.
    pub ra: u8,
    /// Governing predicate register, or condition code.
    pub pg: u8,
    /// Log2 of the element size in bytes.
    pub esz: u8,
    /// Other data for the semantics: shift amount, pattern, lane index, …
    pub aux: u16,
}

/// What decoding may depend on in addition to the word.
#[derive(Clone, Copy, Debug)]
pub struct Ctx {
    /// Address of the instruction.
    pub pc: u64,
    /// Vector length in bytes.
    pub vl: usize,
}

/// A decoded instruction with its description for the timing model.
#[derive(Clone, Copy)]
pub struct Decoded {
    /// For execution.
    pub inst: Inst,
    /// For timing.
    pub info: StaticInst,
    /// Whether the block must end after this instruction (branches, system calls, intentional traps).
    pub ends_block: bool,
}

impl Decoded {
    /// Returns an instruction of timing class `class` executed by `exec`, without operands yet.
    #[must_use]
    pub fn new(c: &Ctx, class: &'static str, exec: Exec) -> Decoded {
        let mut info = StaticInst::new(class);
        info.addr = c.pc;
        Decoded {
            inst: Inst { exec, imm: 0, imm2: 0, rd: 0, rn: 0, rm: 0, ra: 0, pg: 0, esz: 0, aux: 0 },
            info,
            ends_block: false,
        }
    }

    // Operand helpers: each records the register for timing and returns the index for `Inst`.

    /// General-purpose source register `n`; 31 is the zero register.
    pub fn src_x(&mut self, n: u32) -> u8 {
        general(n, &mut self.info.srcs, Cpu::XZR)
    }
    /// General-purpose source register `n`; 31 is the stack pointer.
    pub fn src_sp(&mut self, n: u32) -> u8 {
        general(n, &mut self.info.srcs, Cpu::SP)
    }
    /// General-purpose destination register `n`; 31 is the zero register.
    pub fn dst_x(&mut self, n: u32) -> u8 {
        general(n, &mut self.info.dsts, Cpu::SINK)
    }
    /// General-purpose destination register `n`; 31 is the stack pointer.
    pub fn dst_sp(&mut self, n: u32) -> u8 {
        general(n, &mut self.info.dsts, Cpu::SP)
    }
    /// Base register of a memory access; 31 is the stack pointer.
    pub fn addr_sp(&mut self, n: u32) -> u8 {
        general(n, &mut self.info.addr_srcs, Cpu::SP)
    }
    /// Index register of a memory access; 31 is the zero register.
    pub fn addr_x(&mut self, n: u32) -> u8 {
        general(n, &mut self.info.addr_srcs, Cpu::XZR)
    }
    /// Vector register that addresses are formed from.
    pub fn addr_z(&mut self, n: u32) -> u8 {
        self.info.addr_srcs.push(Reg::vector(n as u8));
        n as u8
    }
    /// Governing predicate of a memory access.
    pub fn addr_p(&mut self, n: u32) -> u8 {
        self.info.addr_srcs.push(Reg::predicate(n as u8));
        n as u8
    }
    /// Vector source register.
    pub fn src_z(&mut self, n: u32) -> u8 {
        self.info.srcs.push(Reg::vector(n as u8));
        n as u8
    }
    /// Vector destination register.
    pub fn dst_z(&mut self, n: u32) -> u8 {
        self.info.dsts.push(Reg::vector(n as u8));
        n as u8
    }
    /// Vector register that is read and written (destructive forms, merging, accumulators).
    pub fn both_z(&mut self, n: u32) -> u8 {
        self.acc_z(n);
        self.dst_z(n)
    }
    /// Vector source register that the result is added to or merged with.
    pub fn acc_z(&mut self, n: u32) -> u8 {
        self.info.accumulator = Some(Reg::vector(n as u8));
        self.src_z(n)
    }
    /// Vector source register of which one element is used for all elements of the result.
    pub fn element_z(&mut self, n: u32) -> u8 {
        self.info.element = Some(Reg::vector(n as u8));
        self.src_z(n)
    }
    /// General-purpose source register that the result is added to or merged with; 31 is the zero register.
    pub fn acc_x(&mut self, n: u32) -> u8 {
        self.info.accumulator = (n != 31).then(|| Reg::gpr(n as u8));
        self.src_x(n)
    }
    /// Predicate source register.
    pub fn src_p(&mut self, n: u32) -> u8 {
        self.info.srcs.push(Reg::predicate(n as u8));
        n as u8
    }
    /// Predicate destination register.
    pub fn dst_p(&mut self, n: u32) -> u8 {
        self.info.dsts.push(Reg::predicate(n as u8));
        n as u8
    }
    /// Records that the condition flags are read.
    pub fn src_flags(&mut self) {
        self.info.srcs.push(Reg::NZCV);
    }
    /// Records that the condition flags are written.
    pub fn dst_flags(&mut self) {
        self.info.dsts.push(Reg::NZCV);
    }
}

/// Records general-purpose register `n` in `list`, unless it is the zero register.
fn general(n: u32, list: &mut RegList, as_31: u8) -> u8 {
    if n != 31 {
        list.push(Reg::gpr(n as u8));
        n as u8
    } else {
        if as_31 == Cpu::SP {
            list.push(Reg::SP);
        }
        as_31
    }
}

/// Returns bits `[lo + len - 1 : lo]` of `word`.
#[inline(always)]
#[must_use]
pub const fn bits(word: u32, lo: u32, len: u32) -> u32 {
    word >> lo & ((1u64 << len) - 1) as u32
}

/// Returns bits `[lo + len - 1 : lo]` of `word`, sign-extended.
#[inline(always)]
#[must_use]
pub const fn sbits(word: u32, lo: u32, len: u32) -> i64 {
    let v = bits(word, lo, len) as i64;
    v << (64 - len) >> (64 - len)
}

/// A bit pattern of an instruction word.
///
/// Written as in the Arm manual: fields from bit 31 down, separated by spaces. A run of `0`, `1` and `x` is literal (`x` = any);
/// `name:width` is an operand field. Underscores are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Fixed bits.
    pub mask: u32,
    /// Their values.
    pub value: u32,
}

impl Pattern {
    /// Parses a pattern. Used in constants, so a mistake is a compile error.
    #[must_use]
    pub const fn parse(text: &str) -> Pattern {
        let t = text.as_bytes();
        let (mut mask, mut value, mut n, mut i) = (0u32, 0u32, 0u32, 0usize);
        while i < t.len() {
            match t[i] {
                b' ' | b'_' => i += 1,
                b'0' | b'1' | b'x' => {
                    n += 1;
                    assert!(n <= 32, "pattern longer than 32 bits");
                    if t[i] != b'x' {
                        mask |= 1 << (32 - n);
                        value |= ((t[i] - b'0') as u32) << (32 - n);
                    }
                    i += 1;
                }
                _ => {
                    while t[i] != b':' {
                        i += 1;
                    }
                    i += 1;
                    let mut width = 0;
                    while i < t.len() && t[i] >= b'0' && t[i] <= b'9' {
                        width = width * 10 + (t[i] - b'0') as u32;
                        i += 1;
                    }
                    assert!(width > 0, "field without width");
                    n += width;
                }
            }
        }
        assert!(n == 32, "pattern must have 32 bits");
        Pattern { mask, value }
    }

    /// Returns whether `word` matches.
    #[inline(always)]
    #[must_use]
    pub const fn matches(&self, word: u32) -> bool {
        word & self.mask == self.value
    }
    /// Returns whether some word matches both.
    #[must_use]
    pub const fn overlaps(&self, other: &Pattern) -> bool {
        (self.value ^ other.value) & self.mask & other.mask == 0
    }
    /// Returns the buckets of [`INDEX`] that words of this pattern fall in: all subsets of the free bits, in ascending order.
    fn buckets(&self) -> impl Iterator<Item = usize> {
        let (fixed, free) = (self.value >> BUCKET_SHIFT, !self.mask >> BUCKET_SHIFT);
        let more = move |&subset: &u32| Some(subset.wrapping_sub(free) & free).filter(|&next| next != 0);
        std::iter::successors(Some(0), more).map(move |subset| (fixed | subset) as usize)
    }
    /// Returns whether every word that matches `other` matches this one.
    #[must_use]
    pub const fn contains(&self, other: &Pattern) -> bool {
        self.mask & other.mask == self.mask && (self.value ^ other.value) & self.mask == 0
    }
}

/// One row of the instruction table.
pub struct Encoding {
    /// Name in Arm's terms, unique: mnemonic and form, such as `"ADD (immediate)"`.
    pub name: &'static str,
    /// The bit pattern as written.
    pub notation: &'static str,
    /// The bit pattern.
    pub pattern: Pattern,
    /// Words that match the pattern but belong to other encodings (the manual's "see also" cases).
    pub except: &'static [Pattern],
    /// Decodes the operands. `None`: an unallocated combination of fields.
    pub decode: fn(u32, &Ctx) -> Option<Decoded>,
}

/// Writes one row: `enc!("NAME", "PATTERN", decode_fn)`, optionally with `except "PATTERN", …`.
#[macro_export]
macro_rules! enc {
    ($name:expr, $pattern:expr, $decode:expr $(, except $($except:literal),+)?) => {
        $crate::table::Encoding {
            name: $name,
            notation: $pattern,
            pattern: const { $crate::table::Pattern::parse($pattern) },
            except: const { &[$($($crate::table::Pattern::parse($except)),+)?] },
            decode: $decode,
        }
    };
}

impl Encoding {
    /// Returns whether `word` belongs to this row (its operand fields may still be unallocated).
    #[must_use]
    pub fn matches(&self, word: u32) -> bool {
        self.pattern.matches(word) && !self.except.iter().any(|p| p.matches(word))
    }
}

/// Returns all rows, in the order of the group files.
pub fn encodings() -> impl Iterator<Item = &'static Encoding> {
    insn::GROUPS.iter().flat_map(|group| group.rows)
}

/// Bits that select a bucket: 31–21.
const BUCKET_SHIFT: u32 = 21;
const BUCKETS: usize = 1 << (32 - BUCKET_SHIFT);

struct Index {
    /// Rows of bucket `b` are `rows[start[b]..start[b + 1]]`.
    start: Vec<u32>,
    rows: Vec<&'static Encoding>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut buckets: Vec<Vec<&'static Encoding>> = vec![Vec::new(); BUCKETS];
    for row in encodings() {
        for bucket in row.pattern.buckets() {
            buckets[bucket].push(row);
        }
    }
    let mut index = Index { start: vec![0], rows: Vec::new() };
    for bucket in &buckets {
        index.rows.extend(bucket);
        index.start.push(index.rows.len() as u32);
    }
    index
});

/// Returns the row that `word` belongs to.
#[must_use]
pub fn lookup(word: u32) -> Option<&'static Encoding> {
    let bucket = (word >> BUCKET_SHIFT) as usize;
    let range = INDEX.start[bucket] as usize..INDEX.start[bucket + 1] as usize;
    INDEX.rows[range].iter().copied().find(|e| e.matches(word))
}

/// Decodes `word`, or `None` when the table has no such instruction.
#[must_use]
pub fn decode(word: u32, c: &Ctx) -> Option<Decoded> {
    let row = lookup(word)?;
    let mut d = (row.decode)(word, c)?;
    statistics::describe(row.name, word, &mut d);
    Some(d)
}

/// Replaces a word that does not decode: the processor has no such instruction.
#[must_use]
pub fn undecodable(c: &Ctx) -> Decoded {
    fn exec(cpu: &mut Cpu, _: &mut Memory, _: &Inst) -> Result<(), Stop> {
        Err(cpu.stop(Trap::Undefined))
    }
    let mut d = Decoded::new(c, "base:HINT {NOP}", exec);
    d.ends_block = true;
    d
}
