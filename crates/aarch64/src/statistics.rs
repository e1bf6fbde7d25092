//! How each instruction is counted: its statistical classes and its governing predicate.
//!
//! The classes are those of the PMU's events (A64FX PMU events 1.3; microarchitecture manual, table 14-1), which refer to the
//! lists of Arm's SVE supplement for floating-point, conversion and integer operations. Where the documents are silent, the
//! classes follow the counts of measured programs (docs/model/limits.md#instruction-mix).

use fxscope_isa::{Access, Class, Classes, Governing, InstKind, Reg, RegClass, StaticInst};

use crate::table::{Decoded, bits};

/// Moves within and between vector registers, with the additional class of each.
const MOVES: &[(&str, &[Class])] = &[
    ("FMOV", &[]),
    ("FDUP", &[]),
    ("FCPY", &[]),
    ("FCSEL", &[Class::InterRegister]),
    ("SEL", &[Class::InterRegister]),
    ("CPY", &[]),
    ("DUP", &[Class::InterElement]),
    ("INDEX", &[Class::InterElement]),
    ("INS", &[Class::InterElement]),
    ("INSR", &[Class::InterElement]),
    ("SMOV", &[Class::InterElement]),
    ("UMOV", &[Class::InterElement]),
    ("EXT", &[Class::InterElement]),
    ("TBL", &[Class::InterElement]),
    ("TBX", &[Class::InterElement]),
    ("ZIP1", &[Class::InterElement]),
    ("ZIP2", &[Class::InterElement]),
    ("UZP1", &[Class::InterElement]),
    ("UZP2", &[Class::InterElement]),
    ("TRN1", &[Class::InterElement]),
    ("TRN2", &[Class::InterElement]),
    ("REV", &[Class::InterElement]),
    ("SUNPKLO", &[Class::InterElement]),
    ("SUNPKHI", &[Class::InterElement]),
    ("UUNPKLO", &[Class::InterElement]),
    ("UUNPKHI", &[Class::InterElement]),
    ("SPLICE", &[Class::InterElement]),
    ("COMPACT", &[Class::InterElement]),
    ("CLASTA", &[Class::InterElement]),
    ("CLASTB", &[Class::InterElement]),
    ("LASTA", &[Class::InterElement]),
    ("LASTB", &[Class::InterElement]),
];

const ESTIMATES: [&str; 2] = ["FRECPE", "FRSQRTE"];
const MATH_ASSISTS: [&str; 4] = ["FEXPA", "FTMAD", "FTSMUL", "FTSSEL"];

/// Operations whose predicate operands select or are operated on, but do not govern.
const NOT_GOVERNED: [&str; 12] = [
    "SEL (vectors)",
    "ZIP1 (predicates)",
    "ZIP2 (predicates)",
    "UZP1 (predicates)",
    "UZP2 (predicates)",
    "TRN1 (predicates)",
    "TRN2 (predicates)",
    "REV (predicate)",
    "PUNPKLO",
    "PUNPKHI",
    "WRFFR",
    "RDFFR (unpredicated)",
];

/// Adds to `d`, decoded from `word` by the row `name`, its statistical classes and its governing predicate.
pub(crate) fn describe(name: &'static str, word: u32, d: &mut Decoded) {
    d.info.classes = classes(name, &d.info);
    // Operations on predicates alone use no pipe that counts elements.
    let on_elements = d.info.kind != InstKind::SvePredicate;
    if d.info.classes.has(Class::Governed) && on_elements && d.info.governing.is_none() {
        let esize = d.info.mem.map_or(1 << bits(word, 22, 2), |op| op.reg_esize);
        d.info.governing = Some(Governing { predicate: d.inst.pg, esize });
    }
}

/// Returns the classes of the instruction of row `name`.
fn classes(name: &str, info: &StaticInst) -> Classes {
    let name = name.strip_prefix("SVE ").unwrap_or(name);
    let mnemonic = name.split([' ', ',', '{']).next().unwrap_or(name);
    let mut found = match info.kind {
        InstKind::FpScalar | InstKind::AdvSimd | InstKind::Sve => on_vectors(mnemonic, name, info),
        InstKind::SvePredicate => on_predicates(mnemonic),
        InstKind::Memory | InstKind::System => on_memory(mnemonic, name, info),
        _ => Classes::default(),
    };
    if belongs_to_sve(info) {
        found = found.with(Class::Sve);
        if governed(name, info) {
            found = found.with(Class::Governed);
        }
    }
    if is_simd(name, info, found) { found.with(Class::Simd) } else { found }
}

/// Returns the classes of data processing on vector registers.
fn on_vectors(mnemonic: &str, name: &str, info: &StaticInst) -> Classes {
    if !meets(info, RegClass::Vector) {
        // Element counts in general-purpose registers: some read a predicate.
        let predicate = meets(info, RegClass::Predicate);
        return if predicate { Class::Predicate.into() } else { Classes::default() };
    }
    let moves = MOVES.iter().find(|(moving, _)| *moving == mnemonic);
    let of_zero_or_bits = name.starts_with("DUP (immediate)") || name.starts_with("CPY (immediate");
    if let Some((_, between)) = moves
        && !of_zero_or_bits
    {
        let found = between.iter().fold(Class::Move.into(), |set: Classes, &class| set.with(class));
        return if meets(info, RegClass::Gpr) { found.with(Class::InterRegister) } else { found };
    }
    let converts = mnemonic.starts_with("FCVT") || mnemonic == "SCVTF" || mnemonic == "UCVTF";
    if converts {
        return Class::Conversion.into();
    }
    if !mnemonic.starts_with('F') {
        return Class::VectorInteger.into();
    }
    let mut found: Classes = Class::FloatingPoint.into();
    if ESTIMATES.contains(&mnemonic) {
        found = found.with(Class::Estimate);
    }
    if MATH_ASSISTS.contains(&mnemonic) {
        found = found.with(Class::MathAssist);
    }
    found
}

/// Returns the classes of the predicate group: those that compare only general-purpose registers do not access a predicate.
fn on_predicates(mnemonic: &str) -> Classes {
    if mnemonic.starts_with("CTERM") { Classes::default() } else { Class::Predicate.into() }
}

/// Returns the classes of memory accesses, prefetches without effect, and barriers.
fn on_memory(mnemonic: &str, name: &str, info: &StaticInst) -> Classes {
    let sve = belongs_to_sve(info);
    let of_pair = |text: &str| name.contains(text);
    let applies = [
        (Class::Isb, mnemonic == "ISB"),
        (Class::Dsb, mnemonic == "DSB"),
        (Class::Dmb, mnemonic == "DMB"),
        (Class::Prefetch, mnemonic.starts_with("PRF")),
        (Class::Exclusive, exclusive(mnemonic)),
        (Class::PreIndex, of_pair("[Pre-index]")),
        (Class::PostIndex, of_pair("[Post-index]") || of_pair("post-index")),
        (Class::ScalarTransfer, of_pair("SIMD&FP")),
        (Class::Structure, structure(mnemonic)),
        (Class::Broadcast, broadcast(mnemonic)),
        (Class::FirstFault, mnemonic.starts_with("LDFF") || mnemonic.starts_with("LDNF")),
        (Class::WholeVector, sve && matches!(name, "LDR (vector)" | "STR (vector)")),
        (Class::WholePredicate, sve && matches!(name, "LDR (predicate)" | "STR (predicate)")),
    ];
    applies.iter().filter(|(_, applies)| *applies).fold(Classes::default(), |set, (class, _)| set.with(*class))
}

/// Returns whether it is LDXR, LDAXRB, STXP, …: not swaps and ordered accesses, whose names lack the X.
fn exclusive(mnemonic: &str) -> bool {
    ["LDX", "LDAX", "STX", "STLX"].iter().any(|start| mnemonic.starts_with(start))
}

/// Returns whether it is LD2 to LD4 or ST2 to ST4, with or without an element size or R after the digit.
fn structure(mnemonic: &str) -> bool {
    let digit = mnemonic.strip_prefix("LD").or_else(|| mnemonic.strip_prefix("ST"));
    digit.is_some_and(|rest| rest.starts_with(['2', '3', '4']))
}

/// Returns whether it is LD1R, LD1RB, LD1RQD, …: those of several registers are structures.
fn broadcast(mnemonic: &str) -> bool {
    mnemonic.starts_with("LD1R")
}

/// Returns whether it operates on vectors of elements: not scalars, and not what SVE adds for general-purpose registers or
/// prefetches. MOVPRFX does not count (docs/model/limits.md#instruction-mix).
fn is_simd(name: &str, info: &StaticInst, classes: Classes) -> bool {
    let writes = |class| info.dsts.iter().any(|reg: Reg| reg.class() == class);
    match info.kind {
        InstKind::AdvSimd => !name.contains("scalar"),
        InstKind::Crypto => true,
        InstKind::Sve => meets(info, RegClass::Vector) || writes(RegClass::Predicate),
        InstKind::SvePredicate => writes(RegClass::Predicate),
        InstKind::Memory => {
            let vectors = meets_data(info, RegClass::Vector) || meets_data(info, RegClass::Predicate);
            vectors && !classes.has(Class::ScalarTransfer) && !is_prefetch(info)
        }
        _ => false,
    }
}

fn is_prefetch(info: &StaticInst) -> bool {
    info.mem.is_some_and(|op| matches!(op.access, Access::PrefetchLoad(_) | Access::PrefetchStore(_)))
}

/// Returns whether it is an SVE instruction.
fn belongs_to_sve(info: &StaticInst) -> bool {
    info.class.name().starts_with("sve:")
}

/// Returns whether a predicate selects the elements it operates on.
fn governed(name: &str, info: &StaticInst) -> bool {
    let reads =
        |list: &fxscope_isa::RegList| list.iter().any(|reg| reg.class() == RegClass::Predicate && reg != Reg::FFR);
    let operand = match info.kind {
        InstKind::Memory => return reads(&info.addr_srcs),
        InstKind::Sve | InstKind::SvePredicate => reads(&info.srcs),
        _ => false,
    };
    let counted_in = ["INCP", "DECP"].iter().any(|end| name.split(' ').next().is_some_and(|m| m.ends_with(end)));
    operand && !counted_in && !NOT_GOVERNED.contains(&name)
}

/// Returns whether one of its operands or results is in `class`.
fn meets(info: &StaticInst, class: RegClass) -> bool {
    info.srcs.iter().chain(info.dsts.iter()).any(|reg| reg.class() == class)
}

/// Returns whether the data it loads or stores are in `class`; the first-fault register does not count.
fn meets_data(info: &StaticInst, class: RegClass) -> bool {
    info.srcs.iter().chain(info.dsts.iter()).any(|reg| reg.class() == class && reg != Reg::FFR)
}
