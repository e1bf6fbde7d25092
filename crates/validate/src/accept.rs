//! Today's errors as those that are expected.

use std::path::Path;

use crate::{Outcome, Suite};

/// Writes the errors of `outcomes` into the files of `suite`, each file as a whole; everything else stays as it is written.
/// Returns how many rows changed.
///
/// # Errors
/// When a file cannot be read or written.
pub fn accept(suite: &Suite, outcomes: &[Outcome]) -> Result<usize, String> {
    let mut changed = 0;
    for family in &suite.families {
        changed += accept_in(&family.file, outcomes).map_err(|e| format!("{}: {e}", family.file.display()))?;
    }
    Ok(changed)
}

fn accept_in(file: &Path, outcomes: &[Outcome]) -> Result<usize, Box<dyn std::error::Error>> {
    let mut reader = csv::Reader::from_path(file)?;
    let headings = reader.headers()?.clone();
    let column = |name: &str| headings.iter().position(|h| h == name).ok_or_else(|| format!("has no column '{name}'"));
    let (row, error) = (column("row")?, column("error")?);
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(&headings)?;
    let mut changed = 0;
    for record in reader.records() {
        let record = record?;
        let judged = outcomes.iter().find(|o| o.row.row == record[row]).and_then(|o| o.judgement.as_ref().ok());
        let accepted = judged.map_or(record[error].to_owned(), |j| format!("{:.1}", tenths(j.error)));
        changed += usize::from(accepted != record[error]);
        let cell = |(i, text): (usize, &str)| if i == error { accepted.clone() } else { text.to_owned() };
        out.write_record(record.iter().enumerate().map(cell))?;
    }
    let mut builder = tempfile::Builder::new();
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut draft = builder.tempfile_in(file.parent().unwrap_or(Path::new(".")))?;
    std::io::Write::write_all(&mut draft, &out.into_inner()?)?;
    draft.persist(file)?;
    Ok(changed)
}

/// To tenths, as tables show it.
pub(crate) fn tenths(error: f64) -> f64 {
    (error * 10.0).round() / 10.0
}
