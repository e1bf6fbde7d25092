//! Settings: single keys changed from the command line, `--set KEY=VALUE`.

use std::sync::Arc;

use crate::error::{LoadError, Place, nearest, suggest};
use crate::evidence::{Provenance, WORDS};
use crate::layer::{Cell, Layer};
use crate::schema::{Kind, Value, renamed};
use crate::spec::SCHEMA;

/// The values that settings give. The later of two for one key counts.
///
/// # Errors
/// An unknown key or a value of the wrong kind.
pub fn read(settings: &[(String, String)]) -> Result<Layer, LoadError> {
    let mut layer = Layer::empty();
    for (name, text) in settings {
        let source: Arc<str> = format!("--set {}={}", name.escape_debug(), text.escape_debug()).into();
        let place = Place::of(&source);
        let Some((t, k)) = find(name) else { return Err(unknown(name, place)) };
        let kind = SCHEMA[t].keys[k].kind;
        let value = value(kind, text.trim()).and_then(|v| kind.accept(v)).ok_or_else(|| {
            let sizes = if matches!(kind, Kind::Integer(_)) { ", a size like 16MiB, or hexadecimal" } else { "" };
            let what = format!("'{}' is no value for {name}", text.escape_debug());
            LoadError::bad(place.clone(), what, format!("give {}{sizes}", kind.expects()))
        })?;
        let provenance = Provenance::set_by(&source);
        layer.cells[t][k] = Some(Cell { value, place, provenance });
    }
    Ok(layer)
}

/// The indices of the table and the key that `TABLE.KEY` names.
fn find(name: &str) -> Option<(usize, usize)> {
    let (table, key) = name.split_once('.')?;
    let t = SCHEMA.iter().position(|t| t.name == table)?;
    Some((t, SCHEMA[t].find(key)?))
}

fn unknown(name: &str, place: Place) -> LoadError {
    let all: Vec<String> =
        SCHEMA.iter().flat_map(|t| t.keys.iter().map(move |k| format!("{}.{}", t.name, k.name))).collect();
    let same_key = all.iter().filter(|full| full.rsplit('.').next() == Some(name)).map(String::as_str);
    let homes: Vec<&str> = same_key.collect();
    let renamed = name.split_once('.').and_then(|(table, key)| Some((table, renamed(table, key)?)));
    let is_word = name.rsplit('.').next().is_some_and(|last| WORDS.contains(&last));
    let advice = if let Some((table, key)) = renamed {
        format!("its name is {table}.{key} now")
    } else if is_word {
        "a value given by --set counts as set by the user; write evidence into a machine file".to_owned()
    } else if homes.is_empty() {
        suggest(nearest(name, all.iter().map(String::as_str)), || {
            "`fxscope machine show` prints all tables and their keys".to_owned()
        })
    } else {
        format!("name its table too: {}", homes.join(" or "))
    };
    LoadError::bad(place, format!("there is no key '{}'", name.escape_debug()), advice)
}

/// Reads the text of a value of some kind.
fn value(kind: Kind, text: &str) -> Option<Value> {
    Some(match kind {
        Kind::Integer(_) => Value::Integer(integer(text)?),
        Kind::Real => Value::Real(text.parse().ok()?),
        Kind::Switch => Value::Switch(text.parse().ok()?),
        Kind::Text | Kind::Choice(_) => Value::Text(text.trim_matches('"').to_owned()),
        Kind::List(_) | Kind::UpTo(_) => {
            let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
            let numbers = inner.split(',').map(str::trim).filter(|_| !inner.trim().is_empty());
            Value::List(numbers.map(integer).collect::<Option<_>>()?)
        }
    })
}

/// A whole number: decimal or hexadecimal, `_` between digits, and a binary unit (KiB, MiB, GiB) if wanted.
#[must_use]
pub fn integer(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 3] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
    let unit = UNITS.iter().find_map(|&(name, n)| Some((text.strip_suffix(name)?, n)));
    let (digits, unit) = unit.unwrap_or((text, 1));
    let digits = digits.trim_end().replace('_', "");
    // The standard parser takes a sign, which a key does not.
    if digits.starts_with('+') {
        return None;
    }
    let number = match digits.strip_prefix("0x") {
        Some(hex) if !hex.starts_with('+') => u64::from_str_radix(hex, 16).ok()?,
        Some(_) => return None,
        None => digits.parse().ok()?,
    };
    number.checked_mul(unit)
}

/// A number of bytes that an option gives, as [`integer`] reads it.
///
/// # Errors
/// If the text is none; the message says how to write it.
pub fn bytes(text: &str) -> Result<u64, String> {
    integer(text).ok_or_else(|| "write it as a number of bytes, or as 512MiB or 8GiB".to_owned())
}

/// A setting that an option gives: `KEY=VALUE`.
///
/// # Errors
/// If the text is none; the message says how to write it.
pub fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("write it as KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// A number of bytes in the largest binary unit that divides it, as [`integer`] reads it.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let unit = UNITS.iter().find(|(_, n)| bytes > 0 && bytes.is_multiple_of(*n));
    unit.map_or_else(|| bytes.to_string(), |(name, n)| format!("{}{name}", bytes / n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_so_that_they_read_as_they_were() {
        for (bytes, text) in [(65_536, "64KiB"), (2 << 20, "2MiB"), (16 << 30, "16GiB"), (1000, "1000"), (0, "0")] {
            assert_eq!(size(bytes), text);
            assert_eq!(integer(text), Some(bytes));
        }
    }

    #[test]
    fn numbers_may_have_separators_units_and_hexadecimal_digits() {
        assert_eq!(integer("16MiB"), Some(16 << 20));
        assert_eq!(integer("64 KiB"), Some(64 << 10));
        assert_eq!(integer("65_536"), Some(65_536));
        assert_eq!(integer("0x1f"), Some(31));
        for bad in
            ["", "KiB", "-1", "+1", "0x", "0x+1", "1.5", "1e3", "99999999999999999999", "9999999999999GiB", "8 k"]
        {
            assert_eq!(integer(bad), None, "{bad}");
        }
    }

    fn message(key: &str, value: &str) -> String {
        read(&[(key.to_owned(), value.to_owned())]).unwrap_err().to_string()
    }

    #[test]
    fn a_misspelt_key_is_answered_with_the_right_one() {
        assert_eq!(
            message("memory.latency_neerest", "300"),
            "--set memory.latency_neerest=300: there is no key 'memory.latency_neerest'; \
             did you mean 'memory.latency_nearest'?"
        );
        assert!(message("line_bytes", "64").ends_with("l1i.line_bytes or l1d.line_bytes or l2.line_bytes"));
        assert!(message("extends", "a64fx").contains("fxscope machine show"));
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_answered_with_what_is_expected() {
        let m = message("l2.bytes", "many");
        assert_eq!(
            m,
            "--set l2.bytes=many: 'many' is no value for l2.bytes; \
             give a whole number, 0 or more, a size like 16MiB, or hexadecimal"
        );
        assert!(message("prefetch.l1", "yes").ends_with("give true or false"));
        assert!(message("bypass.flags", "[1,2]").ends_with("give 5 whole numbers in square brackets"));
        assert!(message("memory.evidence", "measured").contains("write evidence into a machine file"));
    }
}
