//! Data of a program, as options name them: to assign them to a cache sector, or to place them on a memory node.

use std::ops::Range;

use fxscope_linux::Symbols;
use fxscope_machine::settings::integer;
use serde::{Deserialize, Serialize};

/// Data of a program.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct NamedData {
    /// The user's name for them.
    pub text: String,
    place: Place,
}

/// Data and their cache sector, for programs that do not tag their pointers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SectorData {
    data: NamedData,
    /// Their sector, 0 to 3.
    pub sector: u8,
}

impl SectorData {
    /// Parses which data are meant: a variable of the program, part of one (`NAME+OFFSET:BYTES`, offset and length
    /// optional), or addresses (`0xADDRESS:BYTES`).
    ///
    /// # Errors
    /// If the text is malformed; the message says how to write it.
    pub fn parse(text: &str, sector: u8) -> Result<SectorData, String> {
        Ok(SectorData { data: NamedData::parse(text)?, sector })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
enum Place {
    Addresses(Range<u64>),
    Variable { name: String, offset: u64, bytes: Option<u64> },
}

impl NamedData {
    /// Parses which data are meant, as [`SectorData::parse`] does.
    pub(crate) fn parse(text: &str) -> Result<NamedData, String> {
        const HOW: &str = "write NAME, NAME+OFFSET:BYTES or 0xADDRESS:BYTES";
        let number = |text: &str| integer(text).ok_or_else(|| format!("'{text}' is not a number; {HOW}"));
        let (start, bytes) = match text.split_once(':') {
            Some((start, bytes)) => (start, Some(number(bytes)?)),
            None => (text, None),
        };
        let place = if start.starts_with(|c: char| c.is_ascii_digit()) {
            let (first, bytes) = (number(start)?, bytes.ok_or_else(|| format!("{text} has no length; {HOW}"))?);
            Place::Addresses(first..first.saturating_add(bytes))
        } else {
            let (name, offset) = match start.split_once('+') {
                Some((name, offset)) => (name, number(offset)?),
                None => (start, 0),
            };
            Place::Variable { name: name.to_owned(), offset, bytes }
        };
        let empty = match &place {
            Place::Addresses(range) => range.is_empty(),
            Place::Variable { name, bytes, .. } => name.is_empty() || *bytes == Some(0),
        };
        if empty {
            Err(format!("'{text}' names no data; {HOW}"))
        } else {
            Ok(NamedData { text: text.to_owned(), place })
        }
    }

    /// Returns the addresses of the data.
    pub(crate) fn find(&self, symbols: &Symbols) -> Result<Range<u64>, String> {
        let (name, offset, bytes) = match &self.place {
            Place::Addresses(range) => return Ok(range.clone()),
            Place::Variable { name, offset, bytes } => (name, *offset, *bytes),
        };
        let all: Vec<_> = symbols.variables(name).collect();
        let [whole] = all.as_slice() else { return Err(no_variable(name, &all, symbols)) };
        let size = whole.end - whole.start;
        let rest = size.saturating_sub(offset);
        match bytes.unwrap_or(rest) {
            part if offset < size && part <= rest => Ok(whole.start + offset..whole.start + offset + part),
            _ => Err(format!("{} is not within {name}, which has {size} bytes", self.text)),
        }
    }
}

/// Explains why a name does not identify a variable.
fn no_variable(name: &str, all: &[Range<u64>], symbols: &Symbols) -> String {
    if !all.is_empty() {
        let places: Vec<_> = all.iter().map(|r| format!("{:#x}:{}", r.start, r.end - r.start)).collect();
        return format!(
            "the program has several variables called {name}; choose one by its addresses: {}",
            places.join(", ")
        );
    }
    let largest = symbols.largest_variables(5);
    if largest.is_empty() {
        return format!(
            "no variable {name}: the program has no symbols for variables; give addresses as 0xADDRESS:BYTES"
        );
    }
    format!(
        "the program has no variable {name}; its largest are {} (blocks of the heap are named by the calls that allocate \
         them, malloc@CALL, arrays on the stack by addresses, 0xADDRESS:BYTES)",
        largest.join(", ")
    )
}

/// Returns the addresses of all `data` and their sectors, lowest address first.
///
/// # Errors
/// Names data that do not exist or overlap.
pub(crate) fn find_all(data: &[SectorData], symbols: &Symbols) -> Result<Vec<(Range<u64>, u8)>, String> {
    let mut found = data.iter().map(|d| Ok((d.data.find(symbols)?, d))).collect::<Result<Vec<_>, String>>()?;
    found.sort_by_key(|(range, _)| range.start);
    if let Some([(_, a), (_, b)]) = found.array_windows().find(|[a, b]| a.0.end > b.0.start) {
        return Err(format!("{} and {} overlap; data can be in one sector only", a.data.text, b.data.text));
    }
    Ok(found.into_iter().map(|(range, d)| (range, d.sector)).collect())
}
