//! Measures how many accesses per second one pass processes, for several kinds of streams: `cargo run --profile fast -p
//! fxscope-tlbsweep --example speed [CLASSES [WORD]]`, on an idle host. WORD selects streams whose description contains
//! it. Where most accesses miss, all host processors take part; `RAYON_NUM_THREADS=1` uses one.

use std::time::Instant;

use fxscope_tlbsweep::{Access, Analysis, Arrangement, Replacement, SweepOptions, TlbConfig};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Accesses of each stream.
const LENGTH: u64 = 20_000_000;

/// Start addresses of text, data, bss, heap, stack and mmap.
const BASES: [u64; 6] = [0x40_0000, 0x60_0000, 0x80_0000, 0x1000_0000, 0xffff_ffe0_0000, 0xffff_0000_0000];

/// Pseudo-random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// A stream's access at a step: a segment and an offset.
type Step = fn(u64, &mut Random) -> (usize, u64);

const STREAMS: &[(&str, Step)] = &[
    ("sweeps of three arrays of 256 MiB, a frame and a table", |i, random| match i % 8 {
        0 => (4, 64 * (i / 8 % 40)),
        1 => (1, random.below(24 * KIB)),
        k @ 2..=3 => (3, (k - 2) * 256 * MIB + i / 8 * 16 % (256 * MIB)),
        4..=5 => (5, i / 8 * 16 % (256 * MIB)),
        6 => (2, i / 64 * 8 % (512 * KIB)),
        _ => (0, random.below(8) * 256 + i / 4096 * 64 % (100 * KIB)),
    }),
    ("blocks of 256 KiB of a heap of 1 GiB, in random order", |i, random| match i % 8 {
        0 => (4, 64 * (i / 8 % 40)),
        1 => (1, random.below(8 * KIB)),
        2 => (2, random.below(32 * KIB)),
        _ => (3, (i / 32_768).wrapping_mul(0x9e37_79b9) % 4_096 * 256 * KIB + i % 32_768 * 8),
    }),
    ("one access in 100 anywhere in 256 MiB, others in sweeps", |i, random| match i % 100 {
        0 => (5, random.below(256 * MIB)),
        k if k % 8 == 1 => (4, 64 * (i / 8 % 40)),
        _ => (3, i * 8 % (64 * MIB)),
    }),
    ("a gather: an index, a place anywhere in a table of 1 GiB, a result", |i, random| match i % 3 {
        0 => (5, i / 3 * 8 % (256 * MIB)),
        1 => (3, random.below(1024 * MIB)),
        _ => (2, i / 3 * 8 % (64 * MIB)),
    }),
    ("a loop that touches 40 pages of 64 KiB in turn", |i, _| (3, i % 40 * 64 * KIB + i / 40 % 8_192 * 8)),
    ("every access anywhere in 1 GiB of heap and mmap", |i, random| {
        (3 + 2 * (i % 2) as usize, random.below(512 * MIB))
    }),
];

fn main() {
    let max_classes = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(512);
    let a64fx = fxscope_machine::load("a64fx", &[]).map(|machine| TlbConfig::of(&machine.tables.tlb));
    let Ok(a64fx) = a64fx else { return };
    let k = TlbConfig {
        entries: 16,
        replacement: Replacement::Lru,
        set_entries: 256,
        ways: 2,
        arrangement: Arrangement::SplitBySize(vec![4 * MIB]),
    };
    let sizes = [4 * KIB, 64 * KIB, 2 * MIB, 32 * MIB, 1024 * MIB];
    let k_sizes = [8 * KIB, 4 * MIB, 32 * MIB, 256 * MIB];
    measure("A64FX, 5 sizes of 6 segments", &a64fx, &sizes, max_classes);
    measure("A64FX, 64 KiB to 16 GiB", &a64fx, &[64 * KIB, 2 * MIB, 32 * MIB, 1024 * MIB, 16_384 * MIB], max_classes);
    measure("K, 4 sizes of 6 segments", &k, &k_sizes, max_classes);
}

fn measure(name: &str, config: &TlbConfig, sizes: &[u64], max_classes: usize) {
    println!("{name}, at most {max_classes} classes");
    let word = std::env::args().nth(2).unwrap_or_default();
    for (what, step) in STREAMS.iter().filter(|(what, _)| what.contains(&word)) {
        let mut random = Random(88_172_645_463_325_252);
        let stream: Vec<Access> = (0..LENGTH)
            .map(|i| {
                let (segment, offset) = step(i, &mut random);
                Access { addr: BASES[segment] + offset, segment: segment as u8 }
            })
            .collect();
        let keep = (0..sizes.len()).map(|size| vec![size; 6]).collect();
        let options = SweepOptions {
            sizes: sizes.to_vec(),
            segments: 6,
            allowed: Vec::new(),
            max_classes,
            keep,
            costs: [10, 55],
        };
        let Ok(mut analysis) = Analysis::new(config, &options) else { return };
        // Slow streams are cut short.
        let start = Instant::now();
        let mut done = 0;
        for part in stream.chunks(100_000) {
            analysis.accesses(part);
            done += part.len();
            if start.elapsed().as_secs() >= 5 {
                break;
            }
        }
        let rate = done as f64 / start.elapsed().as_secs_f64() / 1e6;
        let results = analysis.finish();
        let exact = results.assignments().filter(|a| results.counts(a).is_ok_and(|counts| counts.exact)).count();
        println!("  {rate:7.1} M/s  {:5} classes  {exact:6} assignments exact  {what}", results.classes());
    }
}
