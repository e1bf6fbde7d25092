//! Programs of plan files: names, commands and options with placeholders.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use fxscope_session::Scenario;

use crate::latency::plan::Syntax;

/// What a plan says of a program, or of several that differ in placeholders.
pub(crate) struct Template<'a> {
    pub(crate) name: &'a str,
    /// The program and its arguments.
    pub(crate) run: &'a str,
    /// Options of the plan and of the program, as for `fxscope run`.
    pub(crate) options: [&'a str; 2],
    /// The command that runs them, which needs them timed as a whole.
    pub(crate) command: &'a str,
    /// Placeholders in braces, and their values: one program for each combination.
    pub(crate) each: &'a BTreeMap<String, Vec<String>>,
}

/// A program with its scenario.
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) scenario: Scenario,
}

impl Template<'_> {
    /// Returns the programs, which are in `folder`.
    ///
    /// # Errors
    /// A message with the name of a program whose command or options are invalid.
    pub(crate) fn programs(&self, folder: &Path, syntax: &dyn Syntax) -> Result<Vec<Program>, String> {
        combinations(self.each).iter().map(|words| self.filled(words, folder, syntax)).collect()
    }

    fn filled(&self, words: &[(&str, &str)], folder: &Path, syntax: &dyn Syntax) -> Result<Program, String> {
        let fill = |text: &str| {
            words.iter().fold(text.to_owned(), |text, (key, value)| text.replace(&format!("{{{key}}}"), value))
        };
        let (name, options) = (fill(self.name), fill(&self.options.join(" ")));
        let options: Vec<&str> = options.split_whitespace().collect();
        let mut command: Vec<OsString> = fill(self.run).split_whitespace().map(OsString::from).collect();
        let program = command.first_mut().ok_or_else(|| format!("{name}: run names no program"))?;
        *program = folder.join(&*program).into_os_string();
        let scenario = syntax.scenario(&options, &command).map_err(|e| format!("{name}: {e}"))?;
        scenario.refuse_sampling(self.command).map_err(|e| format!("{name}: {e}"))?;
        Ok(Program { name, scenario })
    }
}

/// Returns all combinations of one value per key.
fn combinations(each: &BTreeMap<String, Vec<String>>) -> Vec<Vec<(&str, &str)>> {
    let mut all: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
    for (key, values) in each {
        let with = |words: &Vec<_>, value| [&words[..], &[(key.as_str(), value)]].concat();
        all = all.iter().flat_map(|words| values.iter().map(move |value| with(words, value.as_str()))).collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_braces_are_combined_with_each_other() {
        let of = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
        let each = BTreeMap::from([("a".to_owned(), of(&["1", "2"])), ("b".to_owned(), of(&["x", "y", "z"]))]);
        let all = combinations(&each);
        assert_eq!(all.len(), 6);
        assert_eq!(all[1], [("a", "1"), ("b", "y")]);
        assert_eq!(combinations(&BTreeMap::new()), [Vec::new()]);
    }
}
