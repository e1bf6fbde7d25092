//! Properties of a memory access that depend on the instruction alone (manual tables 7-2 to 7-6): set once.

use fxscope_isa::{MemOp, RegClass, Shape, StaticInst};
use fxscope_machine::Spec;

use crate::bound::BoundAccess;

/// How a store passes through the write buffer (manual table 7-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Writing {
    /// Log2 of the bytes of the aligned blocks its data are split into.
    pub shift: u8,
    /// Its data may merge with those of the previous store.
    pub merges: bool,
    /// Its writes count in both load/store pipes: those of vector registers do, by measured counts of loops.
    pub wide: bool,
}

/// Flag of predicates in forwarding classes.
const PREDICATE: u8 = 0x80;

/// Whether a store of one forwarding class may forward to a load of another (manual table 7-3). Class 0 does not
/// forward; 1 to 8 are scalar accesses of this many bytes, which forward to the same size and smaller ones; the others
/// are whole registers, which forward to their own class only.
#[inline(always)]
#[must_use]
pub fn forwards(store: u8, load: u8) -> bool {
    load != 0 && (load == store || (load <= store && store <= 8))
}

/// Binds an access to the machine's rules.
#[must_use]
pub fn bind_access(op: &MemOp, info: &StaticInst, spec: &Spec) -> BoundAccess {
    let vector_bytes = spec.clock.vector_bits as usize / 8;
    let access = Kind::of(op, info, vector_bytes);
    let words = match op.shape {
        Shape::Single => 1,
        Shape::Masked => 2,
        Shape::Indexed => 1 + vector_bytes / usize::from(op.reg_esize),
    };
    let word = spec.load_store.element_check_bytes.trailing_zeros() as u8;
    let line = spec.l1d.line_bytes.trailing_zeros() as u8;
    // Dependency detection takes structures for ones of the longest vectors, in whole lines (manual 7.5.2).
    let (check_bytes, check_shift) = match access.interleaved {
        true if op.shape == Shape::Masked => (u16::from(op.regs) * spec.load_store.structure_vector_bytes as u16, line),
        true => (op.bytes, line),
        false if access.elements && u32::from(op.mem_esize) < spec.load_store.element_check_bytes => (0, word),
        false => (0, 0),
    };
    BoundAccess {
        op: *op,
        eligible: access.eligible(op),
        forward: access.forward(op, vector_bytes),
        forwarded_in: if access.vector { spec.load_store.forward_vector } else { spec.load_store.forward } as u8,
        writing: access.writing(op, spec),
        interleaved: access.interleaved,
        check_bytes,
        check_shift,
        words: words as u8,
    }
}

/// The properties that the manual's tables distinguish.
struct Kind {
    /// Its register is a vector, a predicate.
    vector: bool,
    predicate: bool,
    /// Elements of several registers alternate in memory.
    interleaved: bool,
    /// It is made of vector elements, rather than one scalar or a whole register.
    elements: bool,
}

impl Kind {
    fn of(op: &MemOp, info: &StaticInst, vector_bytes: usize) -> Kind {
        let has = |class| info.dsts.iter().chain(info.srcs.iter()).any(|r| r.class() == class);
        let vector = has(RegClass::Vector);
        let whole = op.regs == 1 && (op.bytes <= u16::from(op.mem_esize) || usize::from(op.bytes) == vector_bytes);
        Kind {
            vector,
            predicate: op.shape == Shape::Single && has(RegClass::Predicate),
            interleaved: op.structure && op.bytes > u16::from(op.regs) * u16::from(op.mem_esize),
            elements: op.shape != Shape::Single || (vector && !whole),
        }
    }

    /// A store whose tag access may share a cycle with a store write, if its address and active elements allow (table
    /// 7-5).
    fn eligible(&self, op: &MemOp) -> bool {
        match op.shape {
            Shape::Single => !self.interleaved && op.bytes / u16::from(op.regs.max(1)) >= 8,
            Shape::Masked => !op.structure || op.mem_esize >= 8,
            Shape::Indexed => op.mem_esize >= 8,
        }
    }

    /// Its forwarding class (tables 7-3 and 7-4).
    fn forward(&self, op: &MemOp, vector_bytes: usize) -> u8 {
        match op.shape {
            Shape::Single if op.regs != 1 => 0,
            Shape::Single if self.predicate => PREDICATE | op.bytes as u8,
            Shape::Single if op.bytes <= 8 || (self.vector && usize::from(op.bytes) == vector_bytes) => op.bytes as u8,
            _ => 0,
        }
    }

    fn writing(&self, op: &MemOp, spec: &Spec) -> Writing {
        let log2 = |bytes: u32| bytes.trailing_zeros() as u8;
        let s = &spec.load_store;
        let [narrow, wide] = [s.narrow_write_bytes, s.write_buffer_bytes].map(log2);
        let each = op.bytes / u16::from(op.regs.max(1));
        let whole_vector = self.vector && op.regs == 1 && each > 16;
        let of = |shift, merges| Writing { shift, merges, wide: false };
        match op.shape {
            Shape::Masked if op.structure && op.mem_esize >= 4 => of(log2(s.flow_block), false),
            Shape::Masked => Writing { wide: !op.structure, ..of(wide, true) },
            Shape::Indexed => of(wide, true),
            Shape::Single if whole_vector => Writing { wide: true, ..of(wide, false) },
            Shape::Single if self.predicate => of(wide, false),
            Shape::Single if self.interleaved => of(wide, true),
            Shape::Single if self.elements && each == 16 && op.mem_esize < 8 => of(wide, true),
            Shape::Single => of(narrow, true),
        }
    }
}

/// Whether every aligned group of 8 bytes in memory is all active or all inactive (manual table 7-5).
#[inline(always)]
#[must_use]
pub fn whole_groups(mem: &BoundAccess, words: &[u64]) -> bool {
    if mem.op.shape != Shape::Masked || mem.op.mem_esize >= 8 {
        return true;
    }
    let all = u64::MAX / ((1 << mem.op.reg_esize.min(63)) - 1);
    words[1] == all || whole_groups_of(mem, words[1])
}

#[cold]
#[inline(never)]
fn whole_groups_of(mem: &BoundAccess, mask: u64) -> bool {
    let step = usize::from(mem.op.reg_esize);
    let group = 8 / usize::from(mem.op.mem_esize);
    let active = |i: usize| mask >> (i * step) & 1 == 1;
    (0..64 / step).step_by(group).all(|first| {
        let rest = first + 1..(first + group).min(64 / step);
        rest.into_iter().all(|i| active(i) == active(first))
    })
}
