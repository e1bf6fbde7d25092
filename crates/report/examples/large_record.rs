//! Writes a record of the maximum size: `large_record FILE.fxr [THREADS [REGIONS [LOOPS]]]`, by default 48 threads, 100
//! regions and 1,000 loops. Used to measure the cost of reports (`docs/report.md`).

#[path = "../tests/it/common/mod.rs"]
mod common;

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let file = arguments.first().ok_or("usage: large_record FILE.fxr [THREADS [REGIONS [LOOPS]]]")?;
    let number = |i: usize, default: u32| arguments.get(i).map_or(Ok(default), |text| text.parse());
    let run = common::large_with_loops(number(1, 48)?, number(2, 100)?, number(3, 1_000)?);
    fxscope_record::append(Path::new(file), &run)?;
    Ok(())
}
