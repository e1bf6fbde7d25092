//! Small CSV tables of a machine's folder: `pmu.csv` and `groups.csv`.

use std::sync::Arc;

use crate::error::{LoadError, Place};
use crate::rows::{bad_csv, shortened};

/// What is wrong with a row, and what to do.
pub(crate) type Mistake = (String, String);

/// Gives the cells of each row below the header to `row`, without the blanks around them.
///
/// # Errors
/// When `text` is not CSV with these `columns`, or what `row` says is wrong, with the line.
pub(crate) fn each_row<const N: usize>(
    file: &str,
    text: &str,
    columns: &[&str; N],
    mut row: impl FnMut([&str; N]) -> Result<(), Mistake>,
) -> Result<(), LoadError> {
    let file: Arc<str> = file.into();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(|e| bad_csv(&e, &file))?;
    if !header.iter().map(str::trim).eq(columns.iter().copied()) {
        let found = header.iter().collect::<Vec<_>>().join(",");
        let what = format!("the first line is '{}'", shortened(&found));
        let advice = format!("it must name the columns: {}", columns.join(","));
        return Err(LoadError::bad(Place::line(&file, 1), what, advice));
    }
    for record in reader.records() {
        let record = record.map_err(|e| bad_csv(&e, &file))?;
        let line = record.position().map_or(0, |p| p.line() as usize);
        let cells = std::array::from_fn(|i| record.get(i).unwrap_or("").trim());
        row(cells).map_err(|(what, advice)| LoadError::bad(Place::line(&file, line), what, advice))?;
    }
    Ok(())
}

/// The text of a table with these columns and rows.
pub(crate) fn to_csv<const N: usize>(columns: &[&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(columns).expect("written to memory");
    for row in rows {
        writer.write_record(&row).expect("written to memory");
    }
    String::from_utf8(writer.into_inner().expect("written to memory")).expect("made of text")
}
