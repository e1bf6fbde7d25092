//! Today's errors as those that are expected.

use crate::{Outcome, Suite};

/// Writes the errors of `outcomes` into the files of `suite`, all rows of a folder, each file as a whole; rows without an
/// outcome keep their error. Returns how many rows changed.
///
/// # Errors
/// When a file cannot be written.
pub fn accept(suite: &Suite, outcomes: &[Outcome]) -> Result<usize, String> {
    let mut changed = 0;
    for family in &suite.families {
        let failed = |e: String| format!("{}: {e}", family.file.display());
        let mut out = csv::Writer::from_writer(Vec::new());
        for (row, _) in &family.rows {
            let outcome = outcomes.iter().find(|o| o.row.row == row.row);
            let error = outcome.and_then(|o| o.judgement.as_ref().ok()).map_or(row.error, |j| tenths(j.error));
            changed += usize::from(error != row.error);
            out.serialize(crate::Row { error, ..row.clone() }).map_err(|e| failed(e.to_string()))?;
        }
        let text = out.into_inner().map_err(|e| failed(e.to_string()))?;
        let folder = family.file.parent().unwrap_or(std::path::Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut draft = builder.tempfile_in(folder).map_err(|e| failed(e.to_string()))?;
        std::io::Write::write_all(&mut draft, &text).map_err(|e| failed(e.to_string()))?;
        draft.persist(&family.file).map_err(|e| failed(e.to_string()))?;
    }
    Ok(changed)
}

/// To tenths, as tables show it.
pub(crate) fn tenths(error: f64) -> f64 {
    (error * 10.0).round() / 10.0
}
