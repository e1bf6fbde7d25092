//! The tables of `data`: each is in some crate, and every key and column is a word of the sources of a crate that reads its folder.
//! Most readers refuse keys that they do not know; this finds columns that are read by their places, and keys that a field keeps for nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::{files, read};

const FOLDER: &str = "data/";

/// Returns files of `data` that no crate reads, and keys and columns that the crates which read them do not name.
///
/// # Errors
/// If a file cannot be read or parsed.
pub fn unread() -> Result<Vec<String>, String> {
    let crates = sources()?;
    let named: BTreeMap<&str, BTreeSet<&str>> =
        crates.iter().map(|(of, text)| (of.as_str(), words(text).collect())).collect();
    let mut found = Vec::new();
    for file in files(&[".toml", ".csv"]).into_iter().filter(|file| file.starts_with(FOLDER)) {
        let place = file.rsplit_once('/').map_or(file.as_str(), |(folder, _)| folder);
        let place = if place.len() < FOLDER.len() { file.as_str() } else { place };
        let readers: Vec<&str> =
            crates.iter().filter(|(_, text)| text.contains(place)).map(|(of, _)| of.as_str()).collect();
        if readers.is_empty() {
            found.push(format!("{file}: no crate reads it"));
            continue;
        }
        let known = |word: &str| readers.iter().any(|of| named[of].contains(word));
        let unknown = keys(&file)?.into_iter().filter(|key| words(key).any(|word| !known(word)));
        found.extend(unknown.map(|key| format!("{file}: no code reads '{key}'")));
    }
    Ok(found)
}

/// Returns the sources of each crate, as one text.
fn sources() -> Result<BTreeMap<String, String>, String> {
    let mut crates: BTreeMap<String, String> = BTreeMap::new();
    for file in files(&[".rs"]) {
        if let Some((of, _)) = file.split_once("/src/") {
            *crates.entry(of.to_owned()).or_default() += &read(&file)?;
        }
    }
    Ok(crates)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Returns the names of keys and tables of a TOML file, or of the columns of a CSV file.
fn keys(file: &str) -> Result<BTreeSet<String>, String> {
    let text = read(file)?;
    if file.ends_with(".csv") {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers().map_err(|e| format!("{file}: {e}"))?;
        return Ok(header.iter().map(str::to_owned).collect());
    }
    let table: toml::Table = text.parse().map_err(|e| format!("{file}: {e}"))?;
    let mut keys = BTreeSet::new();
    collect(&table.into(), &mut keys);
    Ok(keys)
}

/// Adds the keys of a value's tables.
fn collect(value: &toml::Value, keys: &mut BTreeSet<String>) {
    match value {
        toml::Value::Table(table) => {
            keys.extend(table.keys().cloned());
            table.values().for_each(|value| collect(value, keys));
        }
        toml::Value::Array(list) => list.iter().for_each(|value| collect(value, keys)),
        _ => {}
    }
}
