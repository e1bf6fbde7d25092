//! Tables as lines of one value each.

use crate::document::{Body, Grid, Place, Report};

/// The columns of the file, in order.
pub const COLUMNS: [&str; 12] =
    ["run", "region", "scope", "process", "cmg", "thread", "cpu", "table", "id", "name", "unit", "value"];

/// All values of all tables: a line for each that is known, below a line of [`COLUMNS`].
///
/// # Panics
/// Never: what is written to memory is text.
#[must_use]
pub fn render(reports: &[Report]) -> Vec<u8> {
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(COLUMNS).expect("written to memory");
    for (run, report) in (1..).zip(reports) {
        for region in &report.regions {
            for section in &region.sections {
                if let Body::Grid(grid) = &section.body {
                    table(&mut out, [&format!("{run}"), &region.name], grid);
                }
            }
        }
    }
    out.into_inner().expect("written to memory")
}

fn table(out: &mut csv::Writer<Vec<u8>>, [run, region]: [&str; 2], grid: &Grid) {
    for record in &grid.records {
        let [scope, process, cmg, thread, cpu] = place(record.place);
        for (heading, value) in grid.headings.iter().zip(&record.values) {
            let Some(value) = value else { continue };
            let value = value.to_string();
            let line = [
                run,
                region,
                &scope,
                &process,
                &cmg,
                &thread,
                &cpu,
                &grid.id,
                &heading.id,
                &heading.title,
                &heading.unit,
                &value,
            ];
            out.write_record(line).expect("written to memory");
        }
    }
}

/// Scope, process, CMG, thread and CPU; empty where one does not apply.
fn place(place: Place) -> [String; 5] {
    let none = String::new;
    match place {
        Place::Thread { process, thread, cpu } => {
            ["thread".to_owned(), process.to_string(), none(), thread.to_string(), cpu.to_string()]
        }
        Place::Cmg { process, cmg } => ["cmg".to_owned(), process.to_string(), cmg.to_string(), none(), none()],
        Place::Process(process) => ["process".to_owned(), process.to_string(), none(), none(), none()],
        Place::Total => ["total".to_owned(), none(), none(), none(), none()],
    }
}
