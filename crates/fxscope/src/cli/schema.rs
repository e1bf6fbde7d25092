//! `fxscope schema`: the forms of what commands write for programs.

use std::fmt::Write as _;
use std::process::ExitCode;

use fxscope::lab::schema::{ALL, RECORD};
use fxscope::record;

use super::{Outcome, print};

/// Print the form of what commands write for programs: a JSON Schema, or the tables of record files as SQL.
///
/// Without a name, list the forms. Members keep their meaning while the member `version` stays the same; new ones may be added
/// (docs/contracts.md).
#[derive(clap::Args)]
pub struct Args {
    /// The form.
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// Prints a form, or lists all.
pub(super) fn schema(args: &Args) -> Outcome {
    let text = match args.name.as_deref() {
        None => list(),
        Some(name) if name == RECORD.0 => {
            format!("-- PRAGMA user_version: {}\n{}", record::VERSION, record::tables())
        }
        Some(name) => match ALL.iter().find(|schema| schema.name == name) {
            Some(schema) => format!("{:#}\n", schema.json()),
            None => return Err(format!("unknown form '{name}'; the forms are\n{}", list().trim_end()).into()),
        },
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns a line for each form.
fn list() -> String {
    let json = ALL.iter().map(|schema| (schema.name, schema.written_by));
    json.chain([RECORD]).fold(String::new(), |mut text, (name, written_by)| {
        let _ = writeln!(text, "{name:<9} {written_by}");
        text
    })
}
