//! Accepts current errors as expected ones.

use std::path::Path;

use crate::{Outcome, Row, Suite};

/// Most decimals of an error.
const MOST_DIGITS: f64 = 8.0;

/// Writes the errors of `outcomes` into the files of `suite`, each atomically; everything else in them is unchanged. Returns
/// the number of changed rows.
///
/// # Errors
/// If a file cannot be read or written.
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
        let outcome = outcomes.iter().find(|o| o.row.row == record[row]);
        let accepted = outcome.and_then(written).unwrap_or_else(|| record[error].to_owned());
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

/// Returns an outcome's error as written in its row: rounded to tenths, or, for percentages, to a thousandth of the measured
/// value if that is finer, so that the relative error follows from it.
fn written(outcome: &Outcome) -> Option<String> {
    let error = outcome.judgement.as_ref().ok()?.error;
    let Row { measured, .. } = outcome.row;
    let digits = match outcome.row.is_points() && *measured != 0.0 {
        true => (3.0 - measured.abs().log10()).ceil().clamp(1.0, MOST_DIGITS) as usize,
        false => 1,
    };
    // Avoids -0.
    let unit = 10f64.powi(digits as i32);
    Some(format!("{:.digits$}", (error * unit).round() / unit + 0.0))
}

/// Rounds to tenths, as tables show it.
pub(crate) fn tenths(error: f64) -> f64 {
    (error * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Part, Row};

    #[test]
    fn an_error_is_written_as_finely_as_its_measured_value_asks_for() {
        let text = |unit: &str, measured: f64, simulated: f64| {
            let row = Row {
                row: "r".to_owned(),
                what: String::new(),
                run: "a".to_owned(),
                before: String::new(),
                simulated: String::new(),
                measured,
                unit: unit.to_owned(),
                tolerance: 5.0,
                error: 0.0,
                gap: String::new(),
                fitted: String::new(),
                source: String::new(),
            };
            let judgement = Ok(row.judge(simulated));
            let (kind, fitted, repeats) = (Kind::Share, false, None);
            let (program, part) = ("p", Part::Fit);
            written(&Outcome { family: "f", row: &row, program, part, kind, fitted, repeats, judgement })
        };
        assert_eq!(text("GB/s", 100.0, 103.14).as_deref(), Some("3.1"));
        assert_eq!(text("points", 58.61, 59.5).as_deref(), Some("0.89"));
        assert_eq!(text("points", 0.00033, 0.00066).as_deref(), Some("0.0003300"));
        assert_eq!(text("points", 0.0, 0.04).as_deref(), Some("0.0"));
        assert_eq!(text("points", 0.0, -0.04).as_deref(), Some("0.0"), "no sign of a zero");
    }
}
