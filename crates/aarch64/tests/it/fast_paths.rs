//! Fast paths do what the instructions' executing functions do: registers, flags, status and memory are the same after random
//! instructions on random operands.

use fxscope_aarch64::fp::FpEnv;
use fxscope_aarch64::table::{self, Ctx, Encoding, Inst};
use fxscope_aarch64::{Cpu, fast};
use fxscope_guestmem::{Memory, PAGE, Prot, Segment};

const DATA: u64 = 0x20_0000;

/// A generator of numbers that look random (SplitMix64).
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// A part of a vector: numbers of both formats, the special ones among them, small integers, offsets.
fn part(rng: &mut Rng) -> u64 {
    let small = (rng.below(2000) as f64 - 1000.0) / 7.0;
    let single = |x: f64| u64::from((x as f32).to_bits());
    match rng.below(12) {
        0 => rng.next(),
        1 => [0, 1 << 63, 1 << 63 | 1 << 31, f64::INFINITY.to_bits(), f64::NAN.to_bits(), 1][rng.below(6) as usize],
        2 => f64::MIN_POSITIVE.to_bits().wrapping_add(rng.below(5)).wrapping_sub(2),
        3 => u64::from(f32::MIN_POSITIVE.to_bits()) << 32 | single(f64::from(f32::MIN_POSITIVE) / 2.0),
        4..7 => single(small) << 32 | single(small * 3.0),
        7 => rng.below(0x1000) & !7,
        8 => (small * 2f64.powi(rng.below(1000) as i32 - 500)).to_bits(),
        _ => small.to_bits(),
    }
}

fn state(vl: usize, rng: &mut Rng) -> Cpu {
    let mut cpu = Cpu::new(vl);
    for x in &mut cpu.x[..32] {
        *x = match rng.below(4) {
            0 => rng.next(),
            1 => rng.below(16),
            2 => DATA + 2 * PAGE - rng.below(100),
            _ => DATA + 0x1000 + rng.below(PAGE),
        };
    }
    let plain = rng.below(2) == 0;
    for z in &mut cpu.z {
        let number = ((rng.below(2000) as f64 - 1000.0) / 7.0).to_bits();
        z.0[..vl / 8].iter_mut().for_each(|word| *word = if plain { number } else { part(rng) });
    }
    let mask = cpu.p_mask();
    for p in &mut cpu.p {
        *p = [u64::MAX, 0, rng.next(), rng.next() & rng.next()][rng.below(4) as usize] & mask;
    }
    cpu.nzcv = rng.below(16) as u8;
    // What `find_float` requires.
    cpu.fp.fpsr = FpEnv::IXC;
    cpu.fp.fpcr = if rng.below(4) == 0 { FpEnv::DN } else { 0 };
    cpu
}

fn memory() -> Memory {
    let mut mem = Memory::new(16 * PAGE).expect("memory");
    mem.map(DATA, 2 * PAGE, Prot::RW, Segment::Mmap).expect("data");
    let mut rng = Rng(1);
    let data: Vec<u8> = (0..2 * PAGE / 8).flat_map(|_| part(&mut rng).to_le_bytes()).collect();
    mem.write(DATA, &data).expect("data");
    mem
}

fn data(mem: &mut Memory) -> Vec<u8> {
    let mut bytes = vec![0; 2 * PAGE as usize];
    mem.read(DATA, &mut bytes).expect("data");
    bytes
}

/// All that a program can see of a state.
fn seen(cpu: &Cpu, stops: bool) -> String {
    let trap = stops.then_some(cpu.trap);
    format!("{trap:?} {:x?}\n{:x?}\n{:x?}\n{:x?}", (cpu.fp.fpsr, cpu.nzcv, cpu.ffr), cpu.x, cpu.p, cpu.z)
}

/// Executes an instruction both ways from one state.
fn compare(name: &str, path: fast::FastPath, inst: &Inst, start: &Cpu, memories: &mut [Memory; 2]) {
    let [mut one, mut other] = [start.clone(), start.clone()];
    let stops = (inst.exec)(&mut one, &mut memories[0], inst).is_err();
    // SAFETY: `find` and `find_float` have returned it, on this host.
    #[allow(unsafe_code)]
    let stops_too = unsafe { path(&mut other, &mut memories[1], inst) };
    let (one, other) = (seen(&one, stops), seen(&other, stops_too));
    for (one, other) in one.lines().zip(other.lines()) {
        assert_eq!(one, other, "{name} with vectors of {} bytes", start.vl);
    }
}

/// The rows that have fast paths with vectors of `vl` bytes for some word.
fn with_fast_paths(cases: u64, vl: usize) -> usize {
    let (mut rng, mut memories, mut rows) = (Rng(vl as u64), [memory(), memory()], 0);
    let path = |row: &Encoding, word| fast::find(row.name, word, vl).or_else(|| fast::find_float(row.name, word));
    for row in table::encodings() {
        let mut done = 0;
        for _ in 0..4 * cases {
            let word = row.pattern.value | rng.next() as u32 & !row.pattern.mask;
            let decoded = if row.matches(word) { table::decode(word, &Ctx { pc: 0, vl }) } else { None };
            let (Some(decoded), Some(path)) = (decoded, path(row, word)) else { continue };
            let start = state(vl, &mut rng);
            compare(row.name, path, &decoded.inst, &start, &mut memories);
            done += 1;
            if done == cases {
                break;
            }
        }
        rows += usize::from(done > 0);
    }
    let [one, other] = memories.each_mut().map(data);
    assert!(one == other, "memory differs");
    rows
}

fn cases() -> u64 {
    std::env::var("FXSCOPE_FAST_CASES").map_or(5, |text| text.parse().expect("a number"))
}

#[test]
fn fast_paths_do_what_instructions_do_with_vectors_of_any_length() {
    for vl in [16, 32, 64] {
        let rows = with_fast_paths(cases(), vl);
        assert!(rows >= 15, "{rows} instructions have fast paths");
    }
}
