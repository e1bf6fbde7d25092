//! What the manual's tables 7-2 to 7-6 say of each kind of access.

use fxscope_isa::{Access, MemOp, Reg, Shape, StaticInst};
use fxscope_pipeline::lsu::rules::{Writing, bind_access, forwards};

use crate::common::*;

/// An access of one register: `bytes` bytes, in elements of `esize`.
fn single(regs: u8, esize: u8, bytes: u16) -> MemOp {
    MemOp { regs, mem_esize: esize, reg_esize: esize, ..MemOp::single(Access::Store, bytes) }
}

/// The same of vector registers whose elements alternate in memory if there is more than one of each.
fn multiple(regs: u8, esize: u8, bytes: u16) -> MemOp {
    MemOp { structure: true, ..single(regs, esize, bytes) }
}

/// A predicated access of `regs` whole vectors.
fn masked(regs: u8, esize: u8) -> MemOp {
    MemOp { shape: Shape::Masked, structure: regs > 1, ..single(regs, esize, 64 * u16::from(regs)) }
}

/// An access of elements at addresses of their own.
fn indexed(esize: u8, reg_esize: u8) -> MemOp {
    MemOp { shape: Shape::Indexed, reg_esize, ..single(1, esize, esize.into()) }
}

const NARROW: u8 = 4;
const WIDE: u8 = 6;
const BLOCK: u8 = 7;

const fn joins(shift: u8) -> Writing {
    Writing { shift, merges: true, wide: false }
}
const fn alone(shift: u8) -> Writing {
    Writing { shift, merges: false, wide: false }
}
const fn in_both_pipes(writing: Writing) -> Writing {
    Writing { wide: true, ..writing }
}

/// Expected: whether its tag access may share a cycle with a write, its forwarding class, how it is written, and the
/// bytes and the log2 of the blocks that are compared with other accesses.
type Row = (&'static str, Reg, MemOp, bool, u8, Writing, (u16, u8));

const PREDICATE: u8 = 0x80;

fn rows() -> Vec<Row> {
    let (x, z, p) = (x(1), z(1), p(1));
    vec![
        ("STRB", x, single(1, 1, 1), false, 1, joins(NARROW), (0, 0)),
        ("STR w", x, single(1, 4, 4), false, 4, joins(NARROW), (0, 0)),
        ("STR x", x, single(1, 8, 8), true, 8, joins(NARROW), (0, 0)),
        ("STP w", x, single(2, 4, 8), false, 0, joins(NARROW), (0, 0)),
        ("STP x", x, single(2, 8, 16), true, 0, joins(NARROW), (0, 0)),
        ("STR d", z, single(1, 8, 8), true, 8, joins(NARROW), (0, 0)),
        ("STR q", z, single(1, 16, 16), true, 0, joins(NARROW), (0, 0)),
        ("STR z", z, single(1, 16, 64), true, 64, in_both_pipes(alone(WIDE)), (0, 0)),
        ("STR p", p, single(1, 8, 8), true, PREDICATE | 8, alone(WIDE), (0, 0)),
        ("ST1 .16B", z, single(1, 1, 16), true, 0, joins(WIDE), (0, 2)),
        ("ST1 .4S", z, single(1, 4, 16), true, 0, joins(WIDE), (0, 0)),
        ("ST1 .2D", z, single(1, 8, 16), true, 0, joins(NARROW), (0, 0)),
        ("ST1 .8B", z, single(1, 1, 8), true, 8, joins(NARROW), (0, 2)),
        ("ST2 .4S", z, multiple(2, 4, 32), false, 0, joins(WIDE), (32, 8)),
        ("ST2 .S[i]", z, multiple(2, 4, 8), false, 0, joins(NARROW), (0, 0)),
        ("ST4 .D[i]", z, multiple(4, 8, 32), true, 0, joins(NARROW), (0, 0)),
        ("ST1B", z, masked(1, 1), true, 0, in_both_pipes(joins(WIDE)), (0, 2)),
        ("ST1H", z, masked(1, 2), true, 0, in_both_pipes(joins(WIDE)), (0, 2)),
        ("ST1D", z, masked(1, 8), true, 0, in_both_pipes(joins(WIDE)), (0, 0)),
        ("ST2B", z, masked(2, 1), false, 0, joins(WIDE), (128, 8)),
        ("ST3W", z, masked(3, 4), false, 0, alone(BLOCK), (192, 8)),
        ("ST2D", z, masked(2, 8), true, 0, alone(BLOCK), (128, 8)),
        ("ST1D scatter", z, indexed(8, 8), true, 0, joins(WIDE), (0, 0)),
        ("ST1W scatter", z, indexed(4, 4), false, 0, joins(WIDE), (0, 0)),
        ("ST1B scatter", z, indexed(1, 4), false, 0, joins(WIDE), (0, 2)),
    ]
}

#[test]
fn each_kind_of_access_has_the_properties_of_its_row() {
    let spec = machine();
    for (name, register, op, eligible, forward, writing, check) in rows() {
        let mut info = StaticInst::new("base:STR (immediate) [Unsigned offset]");
        info.srcs.push(register);
        let bound = bind_access(&op, &info, &spec);
        assert_eq!((bound.eligible, bound.forward, bound.writing), (eligible, forward, writing), "{name}");
        assert_eq!((bound.check_bytes, bound.check_shift), check, "{name}");
        let ls = &spec.load_store;
        let forwarded_in = if register.class() == z(0).class() { ls.forward_vector } else { ls.forward };
        assert_eq!(u64::from(bound.forwarded_in), forwarded_in, "{name}");
        let words = match op.shape {
            Shape::Single => 1,
            Shape::Masked => 2,
            Shape::Indexed => 1 + 64 / op.reg_esize,
        };
        assert_eq!((bound.words, bound.interleaved), (words, check.1 == 8), "{name}");
    }
}

#[test]
fn stores_forward_to_loads_of_their_class_or_of_fewer_bytes() {
    let classes = [0, 1, 2, 4, 8, 64, PREDICATE | 8];
    for store in classes {
        for load in classes {
            let scalar = |class: u8| (1..=8).contains(&class);
            let expected = load != 0 && (store == load || (scalar(store) && scalar(load) && load < store));
            assert_eq!(forwards(store, load), expected, "{store} to {load}");
        }
    }
}
