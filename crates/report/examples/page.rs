//! Writes the page of a record: `page FILE.fxr PAGE.html`. Used to look at pages without the rest of fxscope.

use std::error::Error;
use std::path::Path;

use fxscope_report::{Options, render::html, report};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [record, page] = &arguments[..] else { return Err("usage: page FILE.fxr PAGE.html".into()) };
    let runs = fxscope_record::load(Path::new(record))?;
    let reports = runs.iter().map(|run| report(run, &Options::default())).collect::<Result<Vec<_>, _>>()?;
    std::fs::write(page, html::render(&reports))?;
    Ok(())
}
