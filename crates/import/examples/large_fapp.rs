//! Writes a measurement of the maximum size, in fapp's format: `large_fapp FOLDER [THREADS [REGIONS]]`, by default 48
//! threads and 10,000 regions. Its 17 files are derived from `testdata/import/fapp/triadt.0`, with counts varied by
//! region and thread. Used to measure the cost of an import (`docs/report.md`).

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// The measurement that the files are derived from.
const PATTERN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/import/fapp/triadt.0");
const PASSES: u32 = 17;
/// Fields of a line before its counts: the tag, and what they belong to.
const BEFORE_COUNTS: usize = 7;
const FIRST_CORE: u32 = 12;
const CMG_CORES: u32 = 12;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = arguments.first().ok_or("usage: large_fapp FOLDER [THREADS [REGIONS]]")?;
    let number = |i: usize, default: u32| arguments.get(i).map_or(Ok(default), |text| text.parse());
    let (threads, regions) = (number(1, 48)?, number(2, 10_000)?);
    std::fs::create_dir_all(folder)?;
    for pass in 1..=PASSES {
        let name = format!("pa{pass}.csv");
        let pattern = std::fs::read_to_string(Path::new(PATTERN).join(&name))?;
        let mut out = BufWriter::new(File::create(Path::new(folder).join(&name))?);
        head(&mut out, &pattern, threads)?;
        let rows: Vec<Vec<&str>> = pattern.lines().filter_map(counts).collect();
        let mut state = u64::from(pass);
        for region in 0..regions {
            for (thread, row) in (0..threads).zip(rows.iter().cycle()) {
                line(&mut out, region, thread, row, &mut state)?;
            }
        }
        out.flush()?;
    }
    Ok(())
}

/// Writes the lines before the counts: the machine, each thread's core, and the headings.
fn head(out: &mut impl Write, pattern: &str, threads: u32) -> std::io::Result<()> {
    for info in pattern.lines().filter(|line| line.starts_with("FAPP-info")) {
        writeln!(out, "{info}")?;
    }
    for thread in 0..threads {
        writeln!(out, "FAPP-core,0,0,{thread},0,{},{}", thread / CMG_CORES, FIRST_CORE + thread)?;
    }
    pattern.lines().filter(|line| line.starts_with("LABEL-")).try_for_each(|headings| writeln!(out, "{headings}"))
}

/// The counts in a line of a thread.
fn counts(line: &str) -> Option<Vec<&str>> {
    line.starts_with("FAPP-cpupa,Thread").then(|| line.split(',').skip(BEFORE_COUNTS).collect())
}

/// Writes a thread's line in a region: the pattern's counts, increased by up to a fiftieth.
fn line(out: &mut impl Write, region: u32, thread: u32, row: &[&str], state: &mut u64) -> std::io::Result<()> {
    // A linear congruential generator: pseudo-random, but reproducible.
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let more = *state >> 33;
    write!(out, "FAPP-cpupa,Thread,0,0,{thread},region{region},1")?;
    for text in row {
        match text.parse::<u64>() {
            Ok(count) => write!(out, ",{}", count + (count * (more % 1000) / 50_000))?,
            Err(_) => write!(out, ",{text}")?,
        }
    }
    writeln!(out)
}
