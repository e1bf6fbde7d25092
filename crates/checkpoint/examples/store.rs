//! Measures snapshots of a memory of 1 GiB: `cargo run --release -p fxscope-checkpoint --example store -- FOLDER`, where FOLDER does
//! not exist yet. Prints how long each takes and what it adds.

use std::time::Instant;

use fxscope_checkpoint::{About, CHUNK, Folder, PageKey};

/// Pages of 1 GiB.
const PAGES: u64 = (1 << 30) / CHUNK as u64;

/// What memory has, as a function of a page's number, its version, and the number of a word in it.
type Words = fn(u64, u64, u64) -> u64;

/// Mixes bits, so that nothing compresses.
fn mixed(mut word: u64) -> u64 {
    word = (word ^ word >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word ^ word >> 29
}

const KINDS: [(&str, Words); 3] = [
    ("bits without a pattern", |page, version, word| mixed(page << 40 | version << 20 | word)),
    ("a smooth function in double precision", |page, version, word| {
        ((page * 8192 + word) as f64 * 1e-3 + version as f64).sin().to_bits()
    }),
    ("indices of a sparse matrix", |page, version, word| {
        let row = page * 8192 + word;
        (row + mixed(row / 7 + version) % 5) << 32 | (row + 1)
    }),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let parent = std::env::args_os().nth(1).ok_or("usage: speed FOLDER")?;
    std::fs::create_dir(&parent)?;
    for (number, (name, words)) in KINDS.into_iter().enumerate() {
        let folder = Folder::create(&std::path::Path::new(&parent).join(number.to_string()), b"")?;
        let mut writer = folder.writer(2)?;
        // The second has a tenth of the pages changed.
        for version in 0..2 {
            let memory: Vec<Vec<u8>> = (0..PAGES)
                .map(|page| {
                    let version = if page % 10 == 0 { version } else { 0 };
                    (0..CHUNK as u64 / 8).flat_map(|word| words(page, version, word).to_le_bytes()).collect()
                })
                .collect();
            let begin = Instant::now();
            let mut snapshot = writer.begin()?;
            for (index, page) in (0..).zip(&memory) {
                snapshot.page(PageKey { object: 0, index }, page)?;
            }
            let saved = snapshot.finish(About::default())?;
            let (seconds, mib) = (begin.elapsed().as_secs_f64(), saved.bytes >> 20);
            println!("{name}: snapshot {}: {seconds:.2} s, {mib} MiB", saved.number);
        }
        let begin = Instant::now();
        folder.snapshot(2)?.pages(&mut |_, _| Ok(()))?;
        println!("{name}: read: {:.2} s", begin.elapsed().as_secs_f64());
    }
    Ok(())
}
