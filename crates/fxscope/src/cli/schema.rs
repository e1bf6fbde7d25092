//! `fxscope schema`: the forms of what commands write for programs.

use fxscope::lab::schema;

use crate::terminal::{Outcome, print};

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
    print(schema::text(args.name.as_deref())?)
}
