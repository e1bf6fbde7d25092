//! Random blocks of several instructions, each using the results of earlier ones. They reveal errors that a comparison of single
//! instructions misses: wrong register bits beyond the result, and state between two instructions.

use fxscope_aarch64::Encoding;
use fxscope_aarch64::cpu::stream_words;
use fxscope_aarch64::table::{self, Ctx, Decoded, bits};
use fxscope_isa::{Access, MemOp, RegClass};

use crate::differential::consistency::each_access;
use crate::differential::exclude::{READS_STATUS, is_system, unpredictable};
use crate::differential::generate::{bare, is_load_exclusive, is_store_exclusive, qemu_mistakes, word};
use crate::differential::machine::{Case, End, Machine, State, WINDOW, WINDOW_END, WORDS};
use crate::differential::rng::Rng;

/// Words tried for each position in the block.
const TRIES: usize = 30;
/// Accesses stay this far from the ends of the window, so that none reaches beyond it.
const MARGIN: u64 = 0x200;

/// Which vector instructions a block has. QEMU does not always clear a vector register beyond an AdvSIMD result
/// (`exclude::clear_upper_bits`), so they are not mixed if vectors are longer than 128 bits.
#[derive(Clone, Copy, PartialEq)]
enum Vectors {
    Any,
    AdvSimd,
    Sve,
}

/// A block under construction.
struct Growing {
    case: Case,
    /// The state after its last instruction.
    state: State,
    vectors: Vectors,
    /// Its final number of instructions.
    length: usize,
}

/// Returns a random block that runs to its end.
pub fn block(rows: &[&'static Encoding], vl: usize, rng: &mut Rng, machine: &mut Machine) -> Case {
    loop {
        let mut block = begin(vl, rng);
        while block.case.words.len() < block.length && append(&mut block, rows, rng, machine) {}
        if block.case.words.len() == block.length {
            return block.case;
        }
    }
}

fn begin(vl: usize, rng: &mut Rng) -> Growing {
    let mut case = bare(vl, Vec::new(), rng);
    let vectors = if vl == 16 { Vectors::Any } else { rng.pick(&[Vectors::AdvSimd, Vectors::Sve]) };
    if vectors == Vectors::AdvSimd {
        case.state.z.iter_mut().for_each(|z| z[2..].fill(0));
    }
    for x in &mut case.state.x {
        if rng.chance(1, 2) {
            *x = WINDOW + MARGIN + (rng.below(WINDOW_END - WINDOW - 2 * MARGIN) & !15);
        }
    }
    Growing { state: case.state, case, vectors, length: 2 + rng.below(WORDS as u64 - 1) as usize }
}

/// Appends an instruction that completes. Fails if none was found.
fn append(block: &mut Growing, rows: &[&'static Encoding], rng: &mut Rng, machine: &mut Machine) -> bool {
    for _ in 0..TRIES {
        let Some((word, d)) = candidate(block, rng.pick(rows), rng) else { continue };
        let case = &mut block.case;
        case.words.push(word);
        let (outcome, stream, _) = machine.run(case);
        let completed = outcome.end == End::Completed && outcome.state.pc == case.end();
        let placed = |op| inside(&op, &stream, case.vl) && !qemu_mistakes(case, &d.info, machine);
        if completed && d.info.mem.is_none_or(placed) {
            block.state = outcome.state;
            return true;
        }
        case.words.pop();
    }
    false
}

/// Returns a word of `row` that may be appended to the block.
fn candidate(block: &Growing, row: &'static Encoding, rng: &mut Rng) -> Option<(u32, Decoded)> {
    let case = &block.case;
    let decoded = |word| table::decode(word, &Ctx { pc: case.end(), vl: case.vl });
    let mut word = word(row, case.vl, rng)?;
    let mut d = decoded(word)?;
    if d.info.mem.is_some() {
        word = aimed(word, &d, &block.state, rng);
        d = decoded(word)?;
    }
    // The new base register may make it another instruction, or one with unpredictable behaviour.
    let same = table::lookup(word).is_some_and(|r| r.name == row.name) && !unpredictable(word);
    (same && suits(block, word, &d)).then_some((word, d))
}

/// Returns the word with a base register that points into the window, if there is one.
fn aimed(word: u32, d: &Decoded, state: &State, rng: &mut Rng) -> u32 {
    let pointers: Vec<u32> = (0..31).filter(|&r| (WINDOW..WINDOW_END).contains(&state.x[r as usize])).collect();
    if pointers.is_empty() {
        return word;
    }
    // Bits 9:5 in all instructions except DC ZVA.
    let low = if d.info.mem.is_some_and(|op| op.access == Access::ZeroLine) { 0 } else { 5 };
    word & !(31 << low) | rng.pick(&pointers) << low
}

/// Returns whether an instruction may be appended to the block.
fn suits(block: &Growing, word: u32, d: &Decoded) -> bool {
    let words = &block.case.words;
    // Nothing follows a branch; QEMU shows reserved bits of status registers.
    if (d.ends_block && words.len() + 1 < block.length)
        || (is_system(word) && READS_STATUS.contains(&bits(word, 5, 17)))
    {
        return false;
    }
    // An exclusive store whose load had another size or address may succeed or fail, at the processor's choice.
    if is_store_exclusive(word) && words.iter().any(|&w| is_load_exclusive(w)) {
        return false;
    }
    let writes_vector = d.info.dsts.iter().any(|r| r.class() == RegClass::Vector);
    let advsimd = writes_vector && (word & 0x8e00_0000 == 0x0e00_0000 || word & 0xbe00_0000 == 0x0c00_0000);
    let sve = word & 0x1e00_0000 == 0x0400_0000;
    // FCVTZS (vector, fixed-point, scalar) of half precision, where QEMU writes 32 bits.
    let half_to_fixed = word & 0xfff0_fc00 == 0x5f10_fc00;
    !half_to_fixed
        && match block.vectors {
            Vectors::Any => true,
            Vectors::AdvSimd => !sve,
            Vectors::Sve => !advsimd,
        }
}

/// Returns whether the last access of the stream lies entirely in the window.
fn inside(op: &MemOp, stream: &[u64], vl: usize) -> bool {
    let words = stream_words(op, vl);
    let mut inside = true;
    each_access(op, &stream[stream.len() - words..], vl, |address, bytes| {
        let address = address & ((1 << 56) - 1);
        inside &= address >= WINDOW + MARGIN / 2 && address.saturating_add(bytes as u64) <= WINDOW_END - MARGIN / 2;
    });
    inside
}
