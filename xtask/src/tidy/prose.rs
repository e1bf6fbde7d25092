//! Checks for phrases that texts of this project avoid (`docs/style/avoid.txt`).
//!
//! Documents must have none of them. `docs/style/baseline.txt` states how many the source files of each top folder may still
//! have: a number that [`lower`] only ever reduces.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use regex::Regex;

use super::{files, read};
use crate::root;

/// The phrases, each with a replacement.
const PHRASES: &str = "docs/style/avoid.txt";
/// Number of phrases that each top folder may still have.
const BASELINE: &str = "docs/style/baseline.txt";
/// The first line of the baseline.
const HEADING: &str =
    "# Phrases of avoid.txt that source files may still have. `cargo run -p xtask -- tidy --lower` lowers it.\n";
/// Separates a phrase from its replacement.
const ARROW: &str = " -> ";
/// Folders that are not checked: the lists themselves, files of others, results.
const SKIPPED: [&str; 3] = ["docs/style/", "testdata/", "bench/"];

/// A phrase in a file.
struct Hit {
    file: String,
    line: usize,
    phrase: String,
}

/// The phrases as one pattern, and the replacement for each.
struct Phrases {
    pattern: Regex,
    better: BTreeMap<String, String>,
}

impl Phrases {
    fn read() -> Result<Phrases, String> {
        let text = read(PHRASES)?;
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let pair = |line: &str| {
            let pair = line.split_once(ARROW).map(|(phrase, better)| (phrase.to_owned(), better.to_owned()));
            pair.ok_or_else(|| format!("{PHRASES}: '{line}' has no '{ARROW}'"))
        };
        let better = lines.map(pair).collect::<Result<BTreeMap<_, _>, _>>()?;
        let all = better.keys().map(|phrase| regex::escape(phrase)).collect::<Vec<_>>().join("|");
        let pattern = Regex::new(&format!(r"(?i)\b(?:{all})\b")).map_err(|e| format!("{PHRASES}: {e}"))?;
        Ok(Phrases { pattern, better })
    }

    fn hits(&self, file: &str) -> Result<Vec<Hit>, String> {
        let text = read(file)?;
        let mut hits = Vec::new();
        let mut quoted = false;
        for (i, line) in text.lines().enumerate() {
            let fence = file.ends_with(".md") && line.trim_start().starts_with("```");
            quoted ^= fence;
            if quoted || fence {
                continue;
            }
            let found = self.pattern.find_iter(line);
            hits.extend(found.map(|m| Hit { file: file.to_owned(), line: i + 1, phrase: m.as_str().to_lowercase() }));
        }
        Ok(hits)
    }

    /// Returns the phrases in files with these extensions.
    fn hits_of(&self, endings: &[&str]) -> Result<Vec<Hit>, String> {
        let files = files(endings).into_iter().filter(|file| !SKIPPED.iter().any(|folder| file.starts_with(folder)));
        let mut all = Vec::new();
        for file in files {
            all.extend(self.hits(&file)?);
        }
        Ok(all)
    }

    fn message(&self, hit: &Hit) -> String {
        let better = self.better.get(&hit.phrase).map_or("", String::as_str);
        format!("{}:{}: '{}': write {better}", hit.file, hit.line, hit.phrase)
    }
}

/// Returns phrases in documents, and those in source files if a folder has more of them than the baseline allows.
///
/// # Errors
/// If a file cannot be read.
pub fn phrases() -> Result<Vec<String>, String> {
    let phrases = Phrases::read()?;
    let mut found: Vec<String> = phrases.hits_of(&[".md"])?.iter().map(|hit| phrases.message(hit)).collect();
    let allowed = baseline()?;
    for (area, hits) in by_area(phrases.hits_of(&SOURCES)?) {
        let most = allowed.get(&area).copied().unwrap_or(0);
        if hits.len() > most {
            found.extend(hits.iter().map(|hit| phrases.message(hit)));
            found.push(format!("{area} has {} phrases of {PHRASES}, {most} at most", hits.len()));
        }
    }
    Ok(found)
}

/// Extensions of source files.
const SOURCES: [&str; 8] = [".rs", ".c", ".h", ".S", ".inc", ".toml", ".sh", "Makefile"];

/// Groups the hits by top folder.
fn by_area(hits: Vec<Hit>) -> BTreeMap<String, Vec<Hit>> {
    let mut areas: BTreeMap<String, Vec<Hit>> = BTreeMap::new();
    for hit in hits {
        let area = hit.file.split('/').next().unwrap_or_default();
        areas.entry(area.to_owned()).or_default().push(hit);
    }
    areas
}

/// Reads the number of phrases that each top folder may have.
fn baseline() -> Result<BTreeMap<String, usize>, String> {
    let entry = |line: &str| {
        let (count, area) = line.split_once(' ')?;
        Some((area.to_owned(), count.parse().ok()?))
    };
    let lines = read(BASELINE)?;
    let lines = lines.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| entry(line).ok_or_else(|| format!("{BASELINE}: '{line}' is not a count with a folder"))).collect()
}

/// Rewrites the baseline, with no count higher than before.
///
/// # Errors
/// If a file cannot be read or written.
pub fn lower() -> Result<(), String> {
    let allowed = baseline()?;
    let mut text = String::from(HEADING);
    for (area, hits) in by_area(Phrases::read()?.hits_of(&SOURCES)?) {
        let most = allowed.get(&area).copied().unwrap_or(0);
        let _ = writeln!(text, "{} {area}", hits.len().min(most));
    }
    std::fs::write(root().join(BASELINE), text).map_err(|e| format!("{BASELINE}: {e}"))
}
