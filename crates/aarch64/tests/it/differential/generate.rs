//! Random cases: instruction words of one row, and initial states that exercise them.

use fxscope_aarch64::Encoding;
use fxscope_aarch64::table::{self, Ctx, Pattern, bits};
use fxscope_isa::{Access, Branch, InstKind, MemOp, Reg, RegClass, Shape, StaticInst};

use crate::differential::exclude::{
    FPCR, FPSR, SEMIHOSTING, SYSTEM, comparable, is_system, qemu_mistaken, system_differs, unpredictable,
};
use crate::differential::machine::{
    CODE, Case, End, Machine, PAGE, SCRATCH, State, WINDOW, WINDOW_BYTES, WINDOW_END, Window,
};
use crate::differential::rng::Rng;

/// Words tried until one decodes.
const WORD_TRIES: usize = 20_000;
/// Words, and states for each, tried until the accesses lie in the window.
const PLACE_TRIES: usize = 40;

/// Address range of the runner's own code and data.
const RUNNER: std::ops::Range<u64> = 0x40_0000..0x100_0000;

/// Returns a random word that belongs to `row` and decodes.
pub fn word(row: &'static Encoding, vl: usize, rng: &mut Rng) -> Option<u32> {
    let fits = |word: u32| {
        table::lookup(word).is_some_and(|r| std::ptr::eq(r, row) || r.name == row.name)
            && comparable(word)
            && !unpredictable(word)
            && (row.decode)(word, &Ctx { pc: CODE, vl }).is_some()
    };
    (0..WORD_TRIES).map(|_| random_word(&row.pattern, rng)).find(|&w| fits(w))
}

fn random_word(pattern: &Pattern, rng: &mut Rng) -> u32 {
    let mut word = rng.next() as u32;
    // Equal registers and register 31 would be rare otherwise. If the bits are not register fields, this is harmless.
    for lo in [0, 5, 10, 16] {
        if rng.chance(1, 10) {
            let same = bits(word, rng.pick(&[0, 5, 16]), 5);
            word = word & !(31 << lo) | same << lo;
        }
        if rng.chance(1, 20) {
            word |= 31 << lo;
        }
    }
    word = word & !pattern.mask | pattern.value;
    if is_system(word) {
        word = word & !(0xffff << 5) | rng.pick(SYSTEM) << 5;
    }
    word
}

/// Returns a word for [`lone`]: any word, one that is a few bits away from an instruction, or one of the system space.
pub fn lone_word(rows: &[&'static Encoding], vl: usize, rng: &mut Rng, machine: &mut Machine) -> (Case, End) {
    loop {
        let mut word = rng.next() as u32;
        match rng.below(8) {
            0 => word = word & 0x003f_ffff | 0xd500_0000,
            1..5 => {
                let row = rng.pick(rows);
                word = word & !row.pattern.mask | row.pattern.value;
                (0..rng.below(3)).for_each(|_| word ^= 1 << rng.below(32));
            }
            _ => {}
        }
        if let Some(case) = lone(word, vl, machine) {
            return case;
        }
    }
}

/// Returns a case of one word from a state of zeros, and how it ends on our side. With all registers zero, it cannot access
/// mapped memory. `None` if the two sides legitimately differ, or if the word is dangerous.
pub fn lone(word: u32, vl: usize, machine: &mut Machine) -> Option<(Case, End)> {
    if word == SEMIHOSTING || system_differs(word) || unpredictable(word) || qemu_mistaken(word) {
        return None;
    }
    let state = State { pc: CODE + PAGE / 2, ..bytemuck::Zeroable::zeroed() };
    let case = Case { vl, words: vec![word], state, window: None };
    let (outcome, ..) = machine.run(&case);
    // System calls, branches to themselves, and stack pointers that could be mistaken for the runner's signal stack.
    let runs_on = outcome.end == End::Completed && outcome.state.pc == case.state.pc;
    let moves_stack = outcome.state.sp != 0 && near_mapped(outcome.state.sp);
    (outcome.end != End::Other && !runs_on && !moves_stack).then_some((case, outcome.end))
}

/// Returns a random case for `row`, or `None` if none was found.
pub fn case(row: &'static Encoding, vl: usize, rng: &mut Rng, machine: &mut Machine) -> Option<Case> {
    for _ in 0..PLACE_TRIES {
        let mut case = Case { vl, words: vec![word(row, vl, rng)?], state: state(vl, rng), window: None };
        prepend_exclusive_load(&mut case, rng);
        case.state.pc = CODE + 4 * (0x1000 + rng.below(0x1000));
        let infos = case.infos()?;
        let info = *infos.last().expect("a case has instructions");
        if let Some(registers) = indirect_target(&info) {
            aim_branch(&mut case.state, registers, rng);
        }
        if info.mem.is_some() {
            case.window = Some(window(rng));
            if !place_access(&mut case, &info, row.name, rng, machine) {
                continue;
            }
        }
        // Cache maintenance: an address, but no access visible to the timing model. QEMU does not check it.
        if info.mem.is_none() && info.kind == InstKind::System {
            let registers = info.addr_srcs.iter().filter(|r| r.class() == RegClass::Gpr);
            registers.for_each(|r| set_gpr(&mut case.state, r, WINDOW + rng.below(WINDOW_BYTES as u64)));
        }
        let (outcome, ..) = machine.run(&case);
        // Whether a store-exclusive that would fail anyway reports a fault is IMPLEMENTATION DEFINED.
        let may_differ = is_store_exclusive(case.words[0]) || info.mem.is_none();
        if may_differ && matches!(outcome.end, End::Memory | End::Misaligned) {
            continue;
        }
        // A branch to itself would never end; one into the runner would execute its code.
        let target = outcome.state.pc;
        if info.branch != Branch::None && ((case.state.pc..case.end()).contains(&target) || RUNNER.contains(&target)) {
            continue;
        }
        return Some(case);
    }
    None
}

/// Returns instructions with an unrelated random state and window.
pub fn bare(vl: usize, words: Vec<u32>, rng: &mut Rng) -> Case {
    let mut state = state(vl, rng);
    state.pc = CODE + 4 * (0x1000 + rng.below(0x1000));
    Case { vl, words, state, window: Some(window(rng)) }
}

pub fn is_store_exclusive(word: u32) -> bool {
    let compare_and_swap_pair = bits(word, 21, 1) == 1 && bits(word, 31, 1) == 0;
    word & 0x3fc0_0000 == 0x0800_0000 && !compare_and_swap_pair
}

/// Returns whether a word is a load-exclusive.
pub fn is_load_exclusive(word: u32) -> bool {
    word & 0x3fc0_0000 == 0x0840_0000
}

/// Puts the matching load-exclusive before most store-exclusives, so that they can succeed.
fn prepend_exclusive_load(case: &mut Case, rng: &mut Rng) {
    let store = case.words[0];
    if !is_store_exclusive(store) || rng.chance(1, 4) {
        return;
    }
    let (rt, rn, rt2) = (bits(store, 0, 5), bits(store, 5, 5), bits(store, 10, 5));
    let free: Vec<u32> = (0..31).filter(|&r| r != rn && r != rt && r != rt2).collect();
    let first = rng.below(free.len() as u64 - 1) as usize;
    let pair = bits(store, 21, 1) == 1;
    let second = if pair { free[first + 1] } else { 31 };
    let load = store & !(31 << 16 | 31 << 10 | 31) | 1 << 22 | 31 << 16 | second << 10 | free[first];
    case.words.insert(0, load);
}

// ---- registers ------------------------------------------------------------------------------------

fn state(vl: usize, rng: &mut Rng) -> State {
    let mut s: State = bytemuck::Zeroable::zeroed();
    let all_small = rng.chance(1, 5);
    for x in &mut s.x {
        *x = if all_small { rng.below(200).wrapping_sub(20) } else { integer(64, rng) };
    }
    s.sp = integer(64, rng);
    // Not in the runner: if SP is in the runner's signal stack, a signal continues from there.
    if near_mapped(s.sp) || rng.chance(1, 2) {
        s.sp = WINDOW + 16 * rng.below(WINDOW_BYTES as u64 / 16);
    }
    s.nzcv = rng.below(16);
    if rng.chance(1, 2) {
        // AHP, DN, FZ, RMode, FZ16.
        s.fpcr = (rng.next() & rng.next() | rng.below(4) << 22) as u32 & FPCR;
    }
    if rng.chance(1, 4) {
        // QC, IDC, IXC, UFC, OFC, DZC, IOC.
        s.fpsr = rng.next() as u32 & FPSR;
    }
    let lane = rng.pick(&[1, 2, 2, 4, 4, 8, 8]);
    for z in &mut s.z {
        *z = vector(vl, lane, rng);
    }
    let p_mask = u64::MAX >> (64 - vl);
    for p in &mut s.p {
        *p = predicate(vl, rng) & p_mask;
    }
    s.ffr = if rng.chance(1, 2) { p_mask } else { ((1u128 << rng.below(vl as u64 + 1)) - 1) as u64 };
    s
}

/// Returns an interesting value of `size` bits.
fn integer(size: u32, rng: &mut Rng) -> u64 {
    let edge = 1u64 << (size - 1);
    let value = match rng.below(10) {
        0 => rng.pick(&[0, 1, u64::MAX, edge, edge - 1, edge + 1]),
        1 => rng.below(33).wrapping_sub(16),
        2 => 1u64 << rng.below(64),
        3 => (1u64 << rng.below(64)).wrapping_sub(rng.below(3)),
        4 => (1u64 << 31).wrapping_add(rng.below(65)).wrapping_sub(32),
        5 => edge.wrapping_add(rng.below(1 << (size / 2))).wrapping_sub(rng.below(1 << (size / 2))),
        6 => rng.next() & rng.next() & rng.next(),
        7 => rng.next() | rng.next() | rng.next(),
        _ => rng.next() >> rng.below(u64::from(size)),
    };
    value & u64::MAX >> (64 - size)
}

/// Returns a floating-point number of `size` bits (16, 32 or 64).
fn float(size: u32, rng: &mut Rng) -> u64 {
    let fraction_bits: u64 = match size {
        16 => 10,
        32 => 23,
        _ => 52,
    };
    let exponent_max = (1u64 << (u64::from(size) - 1 - fraction_bits)) - 1;
    let bias = exponent_max / 2;
    let fraction = match rng.below(4) {
        0 => 0,
        1 => rng.pick(&[1, 2, 3, (1 << fraction_bits) - 1, 1 << (fraction_bits - 1)]),
        2 => rng.next() << rng.below(fraction_bits),
        _ => rng.next(),
    } & ((1 << fraction_bits) - 1);
    let exponent = match rng.below(12) {
        0 => 0,
        1 => 1,
        2 => exponent_max,
        3 => exponent_max - 1 - rng.below(3),
        // Around the limits of integers and of the precision.
        4 => bias + rng.pick(&[7, 8, 15, 16, 31, 32, 63, 64, fraction_bits, fraction_bits + 1]),
        5 => rng.next(),
        6 => bias.wrapping_sub(fraction_bits + 2 + rng.below(4)),
        _ => (bias + rng.below(9)).wrapping_sub(5),
    }
    .min(exponent_max);
    let sign = rng.below(2);
    sign << (size - 1) | exponent << fraction_bits | fraction
}

/// Returns a vector whose elements are mostly interesting as elements of `lane` bytes.
fn vector(vl: usize, lane: usize, rng: &mut Rng) -> [u64; 8] {
    let lane = if rng.chance(1, 5) { rng.pick(&[1, 2, 4, 8]) } else { lane };
    let size = 8 * lane as u32;
    let kind = rng.below(8);
    let same = rng.chance(1, 8).then(|| integer(size, rng));
    let mut bytes = [0u8; 64];
    for element in bytes[..vl].chunks_mut(lane) {
        let value = match kind {
            _ if same.is_some() => same.unwrap_or_default(),
            0 => rng.next(),
            1 | 2 => integer(size, rng),
            3 => rng.below(2 * vl as u64), // table indices, shift amounts
            4 => rng.pick(&[0, 1, u64::MAX]),
            _ if lane > 1 => float(size, rng),
            _ => integer(size, rng),
        };
        element.copy_from_slice(&value.to_le_bytes()[..lane]);
    }
    bytemuck::cast(bytes)
}

/// Returns a predicate, valid for some element size or for none.
fn predicate(vl: usize, rng: &mut Rng) -> u64 {
    let lowest = rng.pick(&[u64::MAX, 0x5555_5555_5555_5555, 0x1111_1111_1111_1111, 0x0101_0101_0101_0101]);
    match rng.below(10) {
        0..3 => lowest,
        3 => 0,
        4 => rng.next(),
        5 => ((1u128 << rng.below(vl as u64 + 1)) - 1) as u64 & lowest,
        6 => 1u64 << rng.below(vl as u64) & lowest,
        7 => rng.next() & rng.next() & rng.next() & lowest,
        _ => rng.next() & lowest,
    }
}

fn window(rng: &mut Rng) -> Window {
    let mut bytes = Box::new([0; WINDOW_BYTES]);
    let lane = rng.pick(&[1, 2, 4, 8]);
    for part in bytes.chunks_mut(64) {
        part.copy_from_slice(bytemuck::bytes_of(&vector(64, lane, rng)));
    }
    bytes
}

// ---- branches -------------------------------------------------------------------------------------

/// Returns the register that holds the target of an indirect branch.
fn indirect_target(info: &StaticInst) -> Option<Reg> {
    match info.branch {
        Branch::Indirect | Branch::IndirectCall | Branch::Return => info.srcs.get(0),
        _ => None,
    }
}

fn aim_branch(state: &mut State, target: Reg, rng: &mut Rng) {
    if rng.chance(7, 8) {
        set_gpr(state, target, CODE + 4 * rng.below(PAGE / 4));
    }
}

// ---- memory ---------------------------------------------------------------------------------------

fn gpr(state: &State, r: Reg) -> u64 {
    if r == Reg::SP { state.sp } else { state.x[usize::from(r.0)] }
}

fn set_gpr(state: &mut State, r: Reg, value: u64) {
    if r == Reg::SP {
        state.sp = value;
    } else {
        state.x[usize::from(r.0)] = value;
    }
}

/// Chooses the address registers so that the access lies in the window or, less often, faults.
///
/// The dynamic stream of our own execution shows where the access is. This does not assume that it is correct: if QEMU accesses
/// another address, the case differs.
fn place_access(case: &mut Case, info: &StaticInst, name: &str, rng: &mut Rng, machine: &mut Machine) -> bool {
    let mem = info.mem.expect("the caller has looked");
    let first_fault = name.starts_with("LDFF") || name.starts_with("LDNF");
    let may_fault = if first_fault { rng.chance(1, 2) } else { rng.chance(1, 16) };
    let of = |class: RegClass| info.addr_srcs.iter().filter(move |r| r.class() == class);
    let general: Vec<Reg> = of(RegClass::Gpr).collect();
    let placed = if let Some(vector) = of(RegClass::Vector).next() {
        place_vector(case, info, vector, general.first().copied(), may_fault, rng, machine)
    } else if let Some(&base) = general.first() {
        place_base(case, base, &mem, may_fault, rng, machine) && !qemu_mistakes(case, info, machine)
    } else {
        bits(case.words[0], 24, 6) & 0b111011 == 0b011000 && place_literal(case, rng)
    };
    if placed && mem.access == Access::Atomic && mem.shape == Shape::Single {
        plant_compare_value(case, info, rng, machine);
    }
    placed
}

/// Returns the words at the end of a case's stream: those of its last instruction.
fn last_words(case: &Case, words: usize, machine: &mut Machine) -> (End, Vec<u64>) {
    let (outcome, stream, _) = machine.run(case);
    (outcome.end, stream[stream.len().saturating_sub(words)..].to_vec())
}

fn place_base(case: &mut Case, base: Reg, mem: &MemOp, may_fault: bool, rng: &mut Rng, machine: &mut Machine) -> bool {
    let bytes = u64::from(mem.bytes.max(1));
    let room = WINDOW_BYTES as u64 - bytes;
    let mut target = match rng.below(3) {
        _ if may_fault => WINDOW_END - rng.below(bytes + 1),
        0 => WINDOW_END - bytes - rng.below(16),
        _ => WINDOW + rng.below(room + 1),
    };
    if rng.chance(3, 4) {
        target &= !(bytes.next_power_of_two().min(256) - 1);
    }
    set_gpr(&mut case.state, base, WINDOW);
    let (_, words) = last_words(case, usize::MAX, machine);
    let Some(&probed) = words.first() else {
        // Nothing in the stream: the comparison of the streams reports that.
        return true;
    };
    let mut value = target.wrapping_sub(probed.wrapping_sub(WINDOW));
    if base == Reg::SP {
        value &= !15;
    }
    set_gpr(&mut case.state, base, value);
    let (end, words) = last_words(case, usize::MAX, machine);
    let Some(&address) = words.first() else { return true };
    let address = address & ((1 << 56) - 1);
    let inside = address >= WINDOW && address.saturating_add(bytes) <= WINDOW_END;
    inside || (may_fault && ((WINDOW..WINDOW_END).contains(&address) || (end == End::Memory && !near_mapped(address))))
}

/// Returns whether QEMU 7.2 has a known error for a contiguous SVE access.
pub fn qemu_mistakes(case: &Case, info: &StaticInst, machine: &mut Machine) -> bool {
    let mem = info.mem.expect("the caller has looked");
    let (_, words) = last_words(case, usize::MAX, machine);
    let (Shape::Masked, &[.., address, mask]) = (mem.shape, &words[..]) else { return false };
    // It aborts (an assertion in sve_helper.c) when an element crosses the end of the mapped pages.
    let element = u64::from(if mem.structure { mem.mem_esize * mem.regs } else { mem.mem_esize });
    let crosses = (address..address.saturating_add(mem.bytes.into())).contains(&WINDOW_END);
    let splits = crosses && !(WINDOW_END - address).is_multiple_of(element);
    // sve_ldnfff1_r computes the byte address of the predicate from the offset of the first active element and then shifts by
    // that offset again, which is correct only for an offset below 8.
    let first_fault = info.dsts.iter().any(|r| r == Reg::FFR);
    splits || (first_fault && mask != 0 && mask & 0xff == 0)
}

/// Returns whether an address is in, or just before, a mapped page of either side (including the runner's own).
fn near_mapped(address: u64) -> bool {
    address < 0x100_0000 || (SCRATCH - 0x1000..CODE + 2 * PAGE).contains(&address) || address >= 1 << 38
}

fn place_vector(
    case: &mut Case,
    info: &StaticInst,
    vector: Reg,
    base: Option<Reg>,
    may_fault: bool,
    rng: &mut Rng,
    machine: &mut Machine,
) -> bool {
    let mem = info.mem.expect("the caller has looked");
    let esize = usize::from(mem.reg_esize.max(1));
    let elements = case.vl / esize;
    let align = if rng.chance(1, 2) { u64::from(mem.mem_esize.max(1)) - 1 } else { 0 };
    let mut bytes = [0u8; 64];
    for element in bytes[..case.vl].chunks_mut(esize) {
        let value = match base {
            // Offsets, scaled by up to 8; some negative, some with insignificant bits set.
            Some(_) => match rng.below(12) {
                0 => rng.below(64).wrapping_neg(),
                1 => rng.below(128) | rng.next() << 32,
                2 if may_fault => rng.next() & 0xff_ffff,
                _ => rng.below(200),
            },
            None if may_fault && rng.chance(1, 6) => WINDOW_END + rng.below(0x8000) - 16,
            None => WINDOW + rng.below(WINDOW_BYTES as u64 - 512),
        };
        element.copy_from_slice(&(value & !align).to_le_bytes()[..esize]);
    }
    case.state.z[usize::from(vector.0 - 32)] = bytemuck::cast(bytes);
    if let Some(base) = base {
        set_gpr(&mut case.state, base, WINDOW + 0x800 + rng.below(0x100));
    }
    let (_, words) = last_words(case, 1 + elements, machine);
    let Some((&mask, addresses)) = words.split_first() else { return true };
    addresses.iter().enumerate().filter(|(i, _)| mask >> (i * esize) & 1 == 1).all(|(_, &address)| {
        let address = address & ((1 << 56) - 1);
        (WINDOW..=WINDOW_END - esize as u64).contains(&address)
            || may_fault && (!near_mapped(address) || (WINDOW..WINDOW_END + 0x4000).contains(&address))
    })
}

/// Loads relative to the program counter: chooses the offset (bits 23–5) instead of a register.
fn place_literal(case: &mut Case, rng: &mut Rng) -> bool {
    let target = WINDOW + 4 * rng.below(WINDOW_BYTES as u64 / 4 - 4);
    let offset = (target.wrapping_sub(case.state.pc) >> 2) as u32 & 0x7_ffff;
    let word = case.words.last_mut().expect("a case has instructions");
    *word = *word & !(0x7_ffff << 5) | offset << 5;
    true
}

/// Stores the value of a source register in memory, so that compare-and-swap can succeed.
fn plant_compare_value(case: &mut Case, info: &StaticInst, rng: &mut Rng, machine: &mut Machine) {
    let (_, words) = last_words(case, usize::MAX, machine);
    let (Some(&address), Some(first)) = (words.last(), info.srcs.get(0)) else { return };
    let Some(window) = case.window.as_mut() else { return };
    if !(WINDOW..=WINDOW_END - 16).contains(&address) || rng.chance(1, 2) {
        return;
    }
    let at = (address - WINDOW) as usize;
    let bytes = usize::from(info.mem.map_or(0, |m| m.bytes)).min(16);
    let second = info.srcs.get(1).unwrap_or(first);
    let half = if bytes > 8 { 8 } else { bytes / 2 };
    let pair = info.mem.is_some_and(|m| m.regs == 2) || bytes == 16;
    let (low, high) = (gpr(&case.state, first).to_le_bytes(), gpr(&case.state, second).to_le_bytes());
    if pair {
        window[at..at + half].copy_from_slice(&low[..half]);
        window[at + half..at + 2 * half].copy_from_slice(&high[..half]);
    } else {
        window[at..at + bytes.min(8)].copy_from_slice(&low[..bytes.min(8)]);
    }
}
