//! Values that cannot be taken: they are named in notes, or refuse the file.

use std::collections::BTreeMap;

use crate::number::{Count, Inexact, Marks, Refusal};

/// What was lost or changed, and the names that it concerns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    strict: bool,
    names: BTreeMap<String, Vec<String>>,
}

impl Losses {
    /// `strict`: refuse instead.
    pub(crate) fn new(strict: bool) -> Losses {
        Losses { strict, names: BTreeMap::new() }
    }

    /// Records that `why` concerns `name`. Fails if that refuses the file.
    pub(crate) fn lose(&mut self, name: &str, why: &str) -> Result<(), String> {
        if self.strict {
            return Err(format!("{name} {why}"));
        }
        let names = self.names.entry(why.to_owned()).or_default();
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
        Ok(())
    }

    /// Reads a count of `name`; `marks` says what its point or comma means.
    pub(crate) fn count(&mut self, marks: Marks, text: &str, name: &str) -> Result<u64, String> {
        let Count { value, inexact } = marks.count(text).map_err(|refusal| refused(refusal, text, name))?;
        match inexact {
            Some(Inexact::Fraction) => self.lose(name, "had a fraction, as means have, and was rounded")?,
            Some(Inexact::Rounded) => {
                self.lose(name, "was rounded before it was written, as spreadsheets do (4.01E+10)")?
            }
            None => {}
        }
        Ok(value)
    }

    /// Returns a note for each reason.
    pub(crate) fn notes(self) -> impl Iterator<Item = String> {
        self.names.into_iter().map(|(why, names)| match &names[..] {
            [name] => format!("{name} {why}"),
            names => format!("each of {} {why}", names.join(", ")),
        })
    }
}

/// Returns why a text is no count.
pub(crate) fn refused(refusal: Refusal, text: &str, name: &str) -> String {
    match refusal {
        Refusal::Ambiguous => format!(
            "'{text}' of {name} may have decimals or groups of digits, and no other number of the file shows which: write it \
             without groups (LC_ALL=C)"
        ),
        Refusal::NoNumber | Refusal::Negative => format!("'{text}' is not a count of {name}"),
    }
}

/// Returns whether a tool's word says that there is no number: a metric divided by zero, an event without a counter.
pub(crate) fn is_absent(text: &str) -> bool {
    const WORDS: [&str; 7] = ["nan", "inf", "infinity", "nil", "n/a", "<not counted>", "<not supported>"];
    let text = text.trim().trim_start_matches(['-', '+']);
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}
