//! Random code with branches, on random states, executed by both engines: registers, memory, the number of instructions and the
//! way in which execution ends must be the same.

use fxscope_aarch64::fp::FpEnv;
use fxscope_aarch64::table::{self, Ctx, Encoding, bits};
use fxscope_aarch64::{Cpu, Engine, Exit, Interpreter, Trap};
use fxscope_guestmem::{Memory, PAGE, Prot, Segment};
use fxscope_isa::Branch;
use fxscope_translate::Translator;

/// Where code begins, and the data: two pages, with nothing behind them.
pub(crate) const CODE: u64 = 0x10_0000;
const DATA: u64 = 0x20_0000;
const DATA_END: u64 = DATA + 2 * PAGE;
/// Words of code.
pub(crate) const WORDS: usize = 24;

/// A generator of numbers that look random (SplitMix64).
pub(crate) struct Rng(pub u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// A number of one of the kinds that matter to floating-point code.
fn number(rng: &mut Rng) -> u64 {
    let small = (rng.below(2000) as f64 - 1000.0) / if rng.one_in(2) { 8.0 } else { 7.0 };
    let scale = 2f64.powi(rng.below(300) as i32 - 150);
    match rng.below(12) {
        0 => rng.next(),
        1 => [0, 1 << 63, f64::INFINITY.to_bits(), f64::NAN.to_bits(), 1, f64::MAX.to_bits()][rng.below(6) as usize],
        2 => f64::MIN_POSITIVE.to_bits().wrapping_add(rng.below(5)).wrapping_sub(2),
        3 | 4 => u64::from((small as f32).to_bits()) << 32 | u64::from((small as f32 * 3.0).to_bits()),
        5 => (small * scale).to_bits(),
        _ => small.to_bits(),
    }
}

/// An address in the data, often near the end of a page.
fn address(rng: &mut Rng) -> u64 {
    match rng.below(8) {
        0 => DATA + PAGE - rng.below(80),
        1 => DATA_END - rng.below(80),
        2 => (DATA + rng.below(2 * PAGE)) | rng.next() << 56,
        _ => DATA + 0x1000 + (rng.below(0x1000) & !7),
    }
}

/// A state at the beginning of the code.
pub(crate) fn state(vl: usize, rng: &mut Rng) -> Cpu {
    let mut cpu = Cpu::new(vl);
    for x in &mut cpu.x[..32] {
        *x = match rng.below(6) {
            0 => rng.next(),
            1 => rng.below(9).wrapping_sub(4),
            2 => number(rng),
            _ => address(rng),
        };
    }
    for z in &mut cpu.z {
        z.0[..vl / 8].iter_mut().for_each(|word| *word = number(rng));
    }
    let mask = cpu.p_mask();
    for p in &mut cpu.p {
        *p = if rng.one_in(2) { u64::MAX } else { rng.next() & rng.next() } & mask;
    }
    cpu.nzcv = rng.below(16) as u8;
    if rng.one_in(2) {
        cpu.fp.fpsr = FpEnv::IXC;
    }
    if rng.one_in(6) {
        cpu.fp.fpcr = [FpEnv::FZ, FpEnv::DN, 1 << 22, 3 << 22, FpEnv::FZ16][rng.below(5) as usize];
    }
    cpu.pc = CODE;
    cpu
}

/// A word of a row, aimed at code if it is a branch.
fn word(row: &Encoding, at: usize, rng: &mut Rng) -> Option<u32> {
    let random = row.pattern.value | rng.next() as u32 & !row.pattern.mask;
    let context = Ctx { pc: CODE + 4 * at as u64, vl: 64 };
    let decoded = row.matches(random).then(|| table::decode(random, &context)).flatten()?;
    let offset = rng.below(WORDS as u64) as i32 - at as i32;
    let word = match decoded.info.branch {
        Branch::None | Branch::Indirect | Branch::IndirectCall | Branch::Return => random,
        Branch::Direct | Branch::Call => random & !0x3ff_ffff | offset as u32 & 0x3ff_ffff,
        // Test and branch, then the others.
        _ if bits(random, 24, 6) & 0b11_1110 == 0b11_0110 => random & !0x7_ffe0 | (offset as u32 & 0x3fff) << 5,
        _ => random & !0xff_ffe0 | (offset as u32 & 0x7_ffff) << 5,
    };
    Some(word)
}

/// Rows that compiled programs use most: they are chosen more often.
fn is_common(row: &Encoding) -> bool {
    let name = row.name;
    [
        "ADD", "SUB", "AND", "ORR", "EOR", "BIC", "UBFM", "SBFM", "CS", "CC", "MOV", "MADD", "LDR", "STR", "LDP",
        "STP", "LDU", "STU", "WHILE", "PTRUE", "PTEST", "LD1", "ST1", "DUP", "SEL", "INC", "CNT", "CMP", "MUL",
    ]
    .iter()
    .any(|start| name.starts_with(start))
        || [
            "FADD", "FSUB", "FMUL", "FMADD", "FMSUB", "FNM", "FDIV", "FCMP", "FCSEL", "FMLA", "FMLS", "SCVTF", "FCVT",
            "FMOV", "FNEG", "FABS", "FSQRT", "FMAD", "FMSB", "FCM", "FMAX", "FMIN", "FDUP",
        ]
        .iter()
        .any(|start| name.starts_with(start))
}

pub(crate) fn code(rows: &[&'static Encoding], common: &[&'static Encoding], rng: &mut Rng) -> Vec<u32> {
    let mut words = Vec::new();
    while words.len() < WORDS {
        let branches = ["B", "B.cond", "CBZ", "CBNZ", "TBZ", "TBNZ", "BL", "RET"];
        let row = match rng.below(8) {
            0 => {
                let name = branches[rng.below(8) as usize];
                rows.iter().copied().find(|row| row.name == name).expect("a row of that name")
            }
            1 | 2 => rows[rng.below(rows.len() as u64) as usize],
            _ => common[rng.below(common.len() as u64) as usize],
        };
        words.extend(word(row, words.len(), rng));
    }
    words
}

pub(crate) fn memory(words: &[u32], seed: u64) -> Memory {
    let mut memory = Memory::new(64 * PAGE).expect("memory");
    memory.map(CODE, PAGE, Prot::RX, Segment::Text).expect("code");
    memory.map(DATA, 2 * PAGE, Prot::RW, Segment::Mmap).expect("data");
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    memory.write_privileged(CODE, &bytes).expect("code");
    let mut rng = Rng(seed);
    for place in [DATA, DATA + 0x1000, DATA + PAGE - 128, DATA_END - 128] {
        let data: Vec<u8> = (0..16).flat_map(|_| number(&mut rng).to_le_bytes()).collect();
        memory.write(place, &data).expect("data");
    }
    memory
}

/// Most instructions that stop a case: it ends then.
const MOST_STOPS: usize = 40;

/// Executes about `budget` instructions, in several pieces. An instruction that stops is skipped. Returns what was done: numbers of
/// instructions, and why they ended.
fn execute<E: Engine>(engine: &mut E, cpu: &mut Cpu, memory: &mut Memory, budget: u64) -> Vec<(u64, Exit)> {
    let mut pieces = Vec::new();
    let (mut left, mut unknown) = (budget, 0);
    while left > 0 && pieces.len() < MOST_STOPS {
        let (done, exit) = engine.run_until(cpu, memory, (budget / 3 + 7).min(left));
        left = left.saturating_sub(done);
        unknown += done;
        match exit {
            Exit::Unknown => match engine.find(cpu.pc, memory) {
                Ok(_) => continue,
                Err(trap) => pieces.push((unknown, Exit::Trap(trap))),
            },
            exit => pieces.push((unknown, exit)),
        }
        unknown = 0;
        if let Some((_, Exit::Trap(Trap::Memory(_) | Trap::Misaligned(_) | Trap::Undefined | Trap::Breakpoint(_)))) =
            pieces.last()
        {
            let next = cpu.pc.wrapping_add(4);
            cpu.pc = if (CODE..CODE + 4 * WORDS as u64).contains(&next) { next & !3 } else { CODE };
        }
    }
    pieces
}

/// All that a program can see of a state, in words.
pub(crate) fn seen(cpu: &Cpu) -> String {
    let control = (cpu.fp.fpcr, cpu.fp.fpsr, cpu.nzcv, cpu.ffr, cpu.pc, cpu.tpidr, cpu.monitor, cpu.event);
    format!("{control:x?}\nx {:x?}\np {:x?}\nz {:x?}", &cpu.x[..32], cpu.p, cpu.z.map(|z| z.0))
}

pub(crate) fn contents(memory: &mut Memory) -> Vec<u8> {
    let mut bytes = vec![0; 2 * PAGE as usize];
    memory.read(DATA, &mut bytes).expect("data");
    bytes
}

/// Does what [`execute`] does with a translator; returns its number of units, too.
fn translated<const HOT: u32>(cpu: &mut Cpu, memory: &mut Memory, budget: u64) -> (Vec<(u64, Exit)>, usize) {
    let mut engine: Translator<HOT> = Translator::new(cpu.vl);
    (execute(&mut engine, cpu, memory, budget), engine.units())
}

/// The rows of the instruction table, and those that compiled programs use most.
pub(crate) fn rows() -> [Vec<&'static Encoding>; 2] {
    let rows: Vec<&'static Encoding> = table::encodings().collect();
    let common = rows.iter().copied().filter(|row| is_common(row)).collect();
    [rows, common]
}

/// Instruction words with their names.
pub(crate) fn listing(words: &[u32]) -> String {
    let line = |&word: &u32| format!("{word:08x} {}\n", table::lookup(word).map_or("-", |row| row.name));
    words.iter().map(line).collect()
}

fn compare(cases: u64, vl: usize, seed: u64) {
    let [rows, common] = rows();
    let mut units = 0;
    for case in 0..cases {
        let rng = &mut Rng(seed.wrapping_add(case));
        let words = code(&rows, &common, rng);
        let start = state(vl, rng);
        let budget = 20 + rng.below(400);
        let mut interpreter = Interpreter::new(vl);
        let (mut one, mut other) = (start.clone(), start.clone());
        let (mut one_memory, mut other_memory) = (memory(&words, seed), memory(&words, seed));
        let first = execute(&mut interpreter, &mut one, &mut one_memory, budget);
        let (second, made) = if case % 3 == 0 {
            translated::<1>(&mut other, &mut other_memory, budget)
        } else {
            translated::<3>(&mut other, &mut other_memory, budget)
        };
        units += made;
        let listing = listing(&words);
        assert_eq!(first, second, "case {case}:\n{listing}");
        let (one, other) = (seen(&one), seen(&other));
        for (one, other) in one.lines().zip(other.lines()) {
            assert_eq!(one, other, "case {case}:\n{listing}");
        }
        let (one, other) = (contents(&mut one_memory), contents(&mut other_memory));
        let differs = one.iter().zip(&other).position(|(one, other)| one != other);
        assert_eq!(differs, None, "case {case}: first place in memory that differs\n{listing}{first:x?}");
    }
    assert!(units as u64 > cases, "only {units} units");
}

pub(crate) fn cases() -> u64 {
    std::env::var("FXSCOPE_TRANSLATE_CASES").map_or(40, |text| text.parse().expect("a number of cases"))
}

#[test]
fn random_code_does_the_same_with_vectors_of_128_bits() {
    compare(cases(), 16, 1 << 40);
}

#[test]
fn random_code_does_the_same_with_vectors_of_256_bits() {
    compare(cases(), 32, 2 << 40);
}

#[test]
fn random_code_does_the_same_with_vectors_of_512_bits() {
    compare(cases(), 64, 3 << 40);
}
