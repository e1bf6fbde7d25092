//! Streams of accesses: random ones, and loops as programs have them.

use fxscope_tlbsweep::Access;
use proptest::prelude::*;

const KIB: u64 = 1 << 10;

/// Base address of a segment: far from others, so that they share no page of up to 64 GiB; some bases are aligned, some
/// are not.
pub fn base(segment: u8) -> u64 {
    (u64::from(segment) + 1) << 40 | [0, 0x41_3000, 0x1_2345_6000][usize::from(segment) % 3]
}

/// A part of a stream.
#[derive(Clone, Debug)]
pub enum Part {
    /// Accesses anywhere in a span of a segment.
    Random { segment: u8, span: u64, offsets: Vec<u64> },
    /// Strided sweeps over an array, from the start of its segment, several times.
    Sweep { segment: u8, stride: u64, steps: u64, times: u64 },
    /// Strided sweeps over several segments at once, as in loops over several arrays.
    Together { segments: Vec<u8>, stride: u64, steps: u64 },
    /// A few pages repeatedly, and a new one each round: distinguishes LRU from FIFO.
    Favourites { segment: u8, pages: u64, size: u64, rounds: u64 },
}

impl Part {
    fn accesses(&self, out: &mut Vec<Access>) {
        let mut push = |segment: u8, offset: u64| out.push(Access { addr: base(segment) + offset, segment });
        match self {
            Part::Random { segment, span, offsets } => offsets.iter().for_each(|offset| push(*segment, offset % span)),
            Part::Sweep { segment, stride, steps, times } => {
                (0..times * steps).for_each(|step| push(*segment, step % steps * stride));
            }
            Part::Together { segments, stride, steps } => {
                (0..*steps).for_each(|step| segments.iter().for_each(|&segment| push(segment, step * stride)));
            }
            Part::Favourites { segment, pages, size, rounds } => {
                for round in 0..*rounds {
                    (0..*pages).for_each(|page| push(*segment, page * size));
                    push(*segment, (pages + round) * size);
                }
            }
        }
    }
}

/// Log-uniform lengths, bytes.
fn bytes(from: u32, to: u32) -> impl Strategy<Value = u64> {
    (from..to, 1_000u64..2_000).prop_map(|(log, share)| (1u64 << log) * share / 1_000)
}

fn part(segments: u8) -> impl Strategy<Value = Part> {
    let one = 0..segments;
    prop_oneof![
        (one.clone(), bytes(8, 36), prop::collection::vec(any::<u64>(), 1..200))
            .prop_map(|(segment, span, offsets)| Part::Random { segment, span, offsets }),
        (one.clone(), bytes(6, 27), 1u64..80, 1u64..5).prop_map(|(segment, stride, steps, times)| Part::Sweep {
            segment,
            stride,
            steps,
            times
        }),
        (prop::collection::vec(one.clone(), 1..5), bytes(6, 24), 1u64..80)
            .prop_map(|(segments, stride, steps)| Part::Together { segments, stride, steps }),
        (one, 1u64..20, prop_oneof![Just(4 * KIB), Just(64 * KIB), Just(2 << 20), Just(1 << 30)], 1u64..10)
            .prop_map(|(segment, pages, size, rounds)| Part::Favourites { segment, pages, size, rounds }),
    ]
}

/// Several parts, one after the other or interleaved.
pub fn stream(segments: u8) -> impl Strategy<Value = Vec<Access>> {
    (prop::collection::vec(part(segments), 1..8), any::<bool>()).prop_map(|(parts, in_turn)| {
        let lists = parts.iter().map(|part| {
            let mut list = Vec::new();
            part.accesses(&mut list);
            list
        });
        let lists: Vec<Vec<Access>> = lists.collect();
        if !in_turn {
            return lists.concat();
        }
        let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
        (0..longest).flat_map(|i| lists.iter().filter_map(move |list| list.get(i).copied())).collect()
    })
}

/// Alternates long phases in which most accesses miss (alone or each with `beside` accesses along rows) with long
/// phases of hits: the first are processed in bulk mode (`bulk.rs`), the second are not.
pub fn phases(segments: u8) -> impl Strategy<Value = Vec<Access>> {
    let phase = (any::<u64>(), bytes(20, 36), 1usize..4_000, 0u64..4, 0usize..3_000);
    prop::collection::vec(phase, 1..4).prop_map(move |phases| {
        let mut out = Vec::new();
        for (seed, span, misses, beside, hits) in phases {
            let anywhere = (0..misses as u64).map(|i| (seed | 1).wrapping_mul(i * i + 0x9e37_79b9) >> 7);
            for (i, random) in (0..).zip(anywhere.step_by(beside as usize + 1)) {
                let segment = (random % u64::from(segments)) as u8;
                out.push(Access { addr: base(segment) + random / 8 % span, segment });
                out.extend((0..beside).map(|row| {
                    let segment = ((seed + row) % u64::from(segments)) as u8;
                    Access { addr: base(segment) + row * (16 << 20) + i * 512, segment }
                }));
            }
            out.extend((0..hits as u64).map(|i| {
                let segment = (i % u64::from(segments)) as u8;
                Access { addr: base(segment) + i / 64 * 4 * KIB, segment }
            }));
        }
        out
    })
}

/// An index, an element anywhere in a large table, and a result, in three segments.
pub fn gather(length: u64) -> Vec<Access> {
    let step = |i: u64| {
        let (segment, offset) = match i % 3 {
            0 => (2, i / 3 * 8),
            1 => (1, scattered(i) % (1 << 30)),
            _ => (0, i / 3 * 8),
        };
        Access { addr: base(segment) + offset, segment }
    };
    (0..length).map(step).collect()
}

/// Phases as in gathers: one segment is accessed randomly, others along rows. Classes with one size for that segment
/// differ little.
pub fn gathers(segments: u8) -> impl Strategy<Value = Vec<Access>> {
    let strides = prop::collection::vec(prop_oneof![Just(8), Just(512), Just(4 * KIB), Just(96 * KIB)], 1..4);
    let phase = (0..segments, any::<u64>(), bytes(22, 34), strides, 1_000u64..30_000);
    prop::collection::vec(phase, 1..4).prop_map(move |phases| {
        let mut out = Vec::new();
        for (main, seed, span, strides, steps) in phases {
            for i in 0..steps {
                out.push(Access { addr: base(main) + scattered(seed ^ i) % span, segment: main });
                out.extend((1..).zip(&strides).map(|(beside, stride)| {
                    let segment = (main + beside) % segments;
                    Access { addr: base(segment) + seed % (1 << 24) / 8 * 8 + i * stride, segment }
                }));
            }
        }
        out
    })
}

/// Accesses anywhere in two segments.
pub fn anywhere(length: u64) -> Vec<Access> {
    (0..length)
        .map(|i| Access { addr: base((i % 2) as u8) + scattered(i) % (512 << 20), segment: (i % 2) as u8 })
        .collect()
}

/// A hash that looks random.
fn scattered(i: u64) -> u64 {
    let mixed = (i ^ 0x5555).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 17
}
