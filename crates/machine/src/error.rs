//! What can be wrong with a machine's description, said so that its author can mend it.

use std::fmt;
use std::sync::Arc;

use crate::check::Violation;

/// The place of a value or a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, or the setting of the command line.
    pub source: Arc<str>,
    /// Line and column in the file, from 1; column 0 means the whole line.
    pub at: Option<(usize, usize)>,
}

impl Place {
    /// The file or setting as a whole.
    #[must_use]
    pub fn of(source: &Arc<str>) -> Place {
        Place { source: Arc::clone(source), at: None }
    }

    /// A line of a file.
    #[must_use]
    pub fn line(source: &Arc<str>, line: usize) -> Place {
        Place { source: Arc::clone(source), at: Some((line, 0)) }
    }

    /// The place of byte `offset` of a file's `text`.
    #[must_use]
    pub fn offset(source: &Arc<str>, text: &[u8], offset: usize) -> Place {
        let before = &text[..offset.min(text.len())];
        let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
        let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
        // Columns count characters: continuation bytes of UTF-8 are none.
        let column = 1 + before[start..].iter().filter(|&&b| b & 0xc0 != 0x80).count();
        Place { source: Arc::clone(source), at: Some((line, column)) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        match self.at {
            None => Ok(()),
            Some((line, 0)) => write!(f, ":{line}"),
            Some((line, column)) => write!(f, ":{line}:{column}"),
        }
    }
}

/// Why a machine cannot be loaded. Each message says what is wrong, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Neither a built-in machine nor a path.
    #[error("no machine is called '{name}'; {advice}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The known machines.
        advice: String,
    },
    /// A file cannot be read.
    #[error("cannot read {path}: {why}; {advice}")]
    Read {
        /// The file.
        path: String,
        /// What the system says.
        why: String,
        /// What to do.
        advice: String,
    },
    /// A mistake in a file or a setting.
    #[error("{place}: {what}; {advice}")]
    Bad {
        /// Where.
        place: Place,
        /// What is wrong.
        what: String,
        /// What to do.
        advice: String,
    },
    /// Values are not allowed, or contradict each other.
    #[error("{}", list(.0))]
    Values(Vec<Violation>),
}

impl LoadError {
    /// A mistake in a file or a setting.
    pub(crate) fn bad(place: Place, what: impl Into<String>, advice: impl Into<String>) -> LoadError {
        LoadError::Bad { place, what: what.into(), advice: advice.into() }
    }
}

fn list(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The known name that `name` probably stands for.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.into_iter().map(|k| (strsim::jaro_winkler(name, k), k)).filter(|&(score, _)| score >= 0.8);
    near.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, k)| k)
}

/// `did you mean 'x'?` when there is a near name, else `other`.
pub(crate) fn suggest(near: Option<&str>, other: impl FnOnce() -> String) -> String {
    near.map_or_else(other, |name| format!("did you mean '{name}'?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let text = "a\nbé!c".as_bytes();
        let file: Arc<str> = "f".into();
        assert_eq!(Place::offset(&file, text, 0).to_string(), "f:1:1");
        assert_eq!(Place::offset(&file, text, 5).to_string(), "f:2:3", "é has two bytes");
        assert_eq!(Place::offset(&file, text, 99).to_string(), "f:2:5");
    }

    #[test]
    fn a_misspelt_name_finds_its_neighbour_and_nonsense_finds_none() {
        assert_eq!(nearest("latency_neerest", ["latency_farthest", "latency_nearest"]), Some("latency_nearest"));
        assert_eq!(nearest("qqq", ["bytes", "ways"]), None);
    }
}
