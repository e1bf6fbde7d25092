//! The time of a page walk on this host: a chase through one line of each page, with base pages and with large ones.

use std::hint::black_box;
use std::time::Instant;

use memmap2::{Advice, MmapMut};

use crate::Error;

/// Bytes of the small chase: more pages than second-level TLBs of today have entries, and page tables of 128 KiB.
const LEAST: usize = 64 << 20;
/// Bytes of the large one: page tables of 1 MiB, and other walks' entries seldom at hand.
const MOST: usize = 512 << 20;
/// Distance of the lines, bytes.
const PAGE: usize = 4096;
const LINE: usize = 64;
/// Accesses that are timed.
const ACCESSES: usize = 2 << 20;
/// Chases of each kind, of which the fastest counts: other programs only slow them down.
const REPEATS: usize = 3;
/// Seed of the order.
const SEED: u64 = 1;

/// Measures the time of a walk, ns: with page tables in a near cache and in a far one.
///
/// # Errors
/// If the memory cannot be mapped.
pub(super) fn walk_ns() -> Result<[f64; 2], Error> {
    let [least, most] = [walk_of(LEAST)?, walk_of(MOST)?];
    Ok([least.min(most), most.max(least)])
}

/// Returns the difference that large pages make to an access of a chase through this many bytes, ns.
fn walk_of(bytes: usize) -> Result<f64, Error> {
    let [small, large] = [chase(bytes, Advice::NoHugePage)?, chase(bytes, Advice::HugePage)?];
    Ok((small - large).max(0.0))
}

/// Returns the time of an access, ns.
fn chase(bytes: usize, advice: Advice) -> Result<f64, Error> {
    let failed = |e| Error::from(format!("cannot map {} MiB to time page walks: {e}; give --walk-cycles", bytes >> 20));
    let mut memory = MmapMut::map_anon(bytes).map_err(failed)?;
    memory.advise(advice).map_err(failed)?;
    let pages = bytes / PAGE;
    link(&mut memory, pages);
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        let begin = Instant::now();
        let mut at = 0;
        for _ in 0..ACCESSES {
            at = next(&memory, at);
        }
        black_box(at);
        best = best.min(begin.elapsed().as_secs_f64() * 1e9 / ACCESSES as f64);
    }
    Ok(best)
}

/// Links one line of each page to a cycle in random order. Lines lie at different places of their pages, so that they use all sets of caches.
fn link(memory: &mut [u8], pages: usize) {
    let mut order: Vec<usize> = (1..pages).collect();
    fastrand::Rng::with_seed(SEED).shuffle(&mut order);
    let place = |page: usize| if page == 0 { 0 } else { page * PAGE + page % (PAGE / LINE) * LINE };
    let mut from = 0;
    for page in order.into_iter().chain([0]) {
        let to = place(page);
        memory[from..from + size_of::<usize>()].copy_from_slice(&to.to_ne_bytes());
        from = to;
    }
}

fn next(memory: &[u8], at: usize) -> usize {
    usize::from_ne_bytes(memory[at..at + size_of::<usize>()].try_into().expect("as long"))
}
