//! How well each value of a machine is known: its evidence, its source, and what would settle an open question.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::schema::{Key, Table, Value, first_sentence};
use crate::spec::{SCHEMA, Spec};

/// Columns of the narrowest terminal.
const COLUMNS: usize = 80;

/// How well a value is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// Stated in a document of the maker.
    Documented,
    /// Read directly from a measurement.
    Measured,
    /// Chosen so that the model reproduces a measurement.
    Fitted,
    /// Plausible, but not confirmed.
    Assumed,
    /// Set by the user, for a what-if question.
    Set,
}

impl Evidence {
    /// All, best first.
    pub const ALL: [Evidence; 5] =
        [Evidence::Documented, Evidence::Measured, Evidence::Fitted, Evidence::Assumed, Evidence::Set];

    /// The word for it in `machine.toml`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Evidence::Documented => "documented",
            Evidence::Measured => "measured",
            Evidence::Fitted => "fitted",
            Evidence::Assumed => "assumed",
            Evidence::Set => "set",
        }
    }

    /// The evidence that a word of `machine.toml` names.
    #[must_use]
    pub fn named(word: &str) -> Option<Evidence> {
        Evidence::ALL.into_iter().find(|e| e.name() == word)
    }

    /// Whether a better value may still be found: the entry must say what would settle it.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Evidence::Fitted | Evidence::Assumed)
    }
}

/// Where a value comes from and how well it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// How well it is known; none where the file does not say.
    pub evidence: Option<Evidence>,
    /// The document, the measurement or the reasoning that it comes from.
    pub source: String,
    /// Why this value and no other.
    pub why: String,
    /// The measurement or document that would confirm or replace it.
    pub would_close: String,
}

/// The words of `machine.toml` for the parts of a [`Provenance`].
pub const WORDS: [&str; 4] = ["evidence", "source", "why", "would_close"];

impl Provenance {
    /// That of a value set by the user on the command line, as `setting` shows it.
    #[must_use]
    pub fn set_by(setting: &str) -> Provenance {
        Provenance { evidence: Some(Evidence::Set), source: setting.to_owned(), ..Provenance::default() }
    }

    /// The texts by their words, without `evidence`.
    #[must_use]
    pub fn texts(&self) -> [(&'static str, &str); 3] {
        [("source", &self.source), ("why", &self.why), ("would_close", &self.would_close)]
    }

    /// Fills what is not said here from the defaults of its table. A key that states its own evidence keeps its own
    /// reasons: those of the table explain other evidence.
    #[must_use]
    pub fn or(mut self, table: &Provenance) -> Provenance {
        if self.evidence.is_none() {
            self.evidence = table.evidence;
            for (own, default) in [(&mut self.why, &table.why), (&mut self.would_close, &table.would_close)] {
                if own.is_empty() {
                    own.clone_from(default);
                }
            }
        }
        if self.source.is_empty() {
            self.source.clone_from(&table.source);
        }
        self
    }

    /// The first part that is missing.
    fn missing(&self) -> Option<&'static str> {
        match self.evidence {
            None => Some("evidence"),
            Some(_) if self.source.is_empty() => Some("source"),
            Some(evidence) if evidence.is_open() && self.would_close.is_empty() => Some("would_close"),
            Some(_) => None,
        }
    }
}

/// A key of a machine with its value and provenance.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// Its table.
    pub table: &'static Table,
    /// The key.
    pub key: &'static Key,
    /// Its value.
    pub value: Value,
    /// Where the value comes from.
    pub provenance: &'a Provenance,
}

impl Entry<'_> {
    /// `TABLE.KEY`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}.{}", self.table.name, self.key.name)
    }
}

impl Spec {
    /// All keys, in the order of [`SCHEMA`].
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let tables = SCHEMA.iter().zip(self.tables.values()).zip(&self.provenance);
        tables.flat_map(|((table, values), provenance)| {
            let keys = table.keys.iter().zip(values).zip(provenance);
            keys.map(move |((key, value), provenance)| Entry { table, key, value, provenance })
        })
    }

    /// Where the value of `TABLE.KEY` comes from; none if there is no such key.
    #[must_use]
    pub fn provenance_of(&self, name: &str) -> Option<&Provenance> {
        let (table, key) = name.split_once('.')?;
        let t = SCHEMA.iter().position(|t| t.name == table)?;
        self.provenance.get(t)?.get(SCHEMA[t].find(key)?)
    }
}

/// The number of keys with each evidence, best first.
#[must_use]
pub fn evidence_summary(spec: &Spec) -> [(Evidence, usize); 5] {
    let count = |evidence| spec.entries().filter(|entry| entry.provenance.evidence == Some(evidence)).count();
    Evidence::ALL.map(|evidence| (evidence, count(evidence)))
}

/// The number of instruction rows with each evidence, best first.
#[must_use]
pub fn row_summary(spec: &Spec) -> [(Evidence, usize); 5] {
    let count = |evidence| spec.recipes.sorted().filter(|(_, recipe)| recipe.evidence == Some(evidence)).count();
    Evidence::ALL.map(|evidence| (evidence, count(evidence)))
}

/// Formats a summary, such as `12 documented, 3 assumed`, without zeros.
fn counted(summary: [(Evidence, usize); 5]) -> String {
    let some = summary.into_iter().filter(|(_, n)| *n > 0);
    some.map(|(evidence, n)| format!("{n} {}", evidence.name())).collect::<Vec<_>>().join(", ")
}

/// What a machine has that is sound, in a line: its values and instruction rows by evidence, its events and their groups.
#[must_use]
pub fn show_sound(spec: &Spec, name: &str) -> String {
    let (values, rows) = (counted(evidence_summary(spec)), counted(row_summary(spec)));
    let (events, groups) = (spec.pmu.events.iter().count(), spec.pmu.groups.iter().count());
    format!("{name}: sound; values: {values}; instruction rows: {rows}; events: {events}, in {groups} groups\n")
}

/// Checks that every key and every instruction row says how well it is known and where it comes from, and that every
/// fitted or assumed key says what would settle it.
///
/// # Errors
/// A message for each part that is missing, with the keys that lack it and what to write.
pub fn check_evidence(spec: &Spec) -> Result<(), String> {
    let mut lacking: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for entry in spec.entries() {
        if let Some(part) = entry.provenance.missing() {
            lacking.entry(part).or_default().push(entry.name());
        }
    }
    let mut messages: Vec<String> = lacking.iter().map(|(part, keys)| lacks(part, keys)).collect();
    if let Some((class, recipe)) = spec.recipes.sorted().find(|(_, recipe)| recipe.evidence.is_none()) {
        let line = recipe.line;
        messages.push(format!(
            "instructions.csv:{line}: {class} has no evidence; give it a column 'evidence', or write a table \
             [instructions] with evidence and source for all rows into machine.toml"
        ));
    }
    if messages.is_empty() { Ok(()) } else { Err(messages.join("\n")) }
}

/// The message for keys that lack a part of their provenance.
fn lacks(part: &str, keys: &[String]) -> String {
    const SHOWN: usize = 4;
    let named = keys.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = match keys.len() {
        ..=SHOWN => String::new(),
        n => format!(" and {} more keys", n - SHOWN),
    };
    let has = if keys.len() == 1 { "has" } else { "have" };
    let (table, key) = keys[0].split_once('.').unwrap_or_default();
    let example = match part {
        "evidence" => "evidence = \"assumed\", source = \"...\", would_close = \"...\"",
        "source" => "source = \"...\"",
        _ => "would_close = \"...\"",
    };
    format!(
        "{named}{more} {has} no {part}; write it beside the value, {key} = {{ value = ..., {example} }}, or into [{table}] \
         for all keys of that table"
    )
}

/// The keys whose values rest on an assumption or on a fit, each with its reason and with what would settle it.
#[must_use]
pub fn show_assumed(spec: &Spec) -> String {
    let open: Vec<_> = spec.entries().filter(|entry| entry.provenance.evidence.is_none_or(Evidence::is_open)).collect();
    let count = |evidence| open.iter().filter(|entry| entry.provenance.evidence == evidence).count();
    let mut out = format!(
        "{}: {} of {} values are assumed, {} are fitted to measurements",
        spec.name.escape_debug(),
        count(Some(Evidence::Assumed)),
        spec.entries().count(),
        count(Some(Evidence::Fitted)),
    );
    match count(None) {
        0 => out.push_str(".\n"),
        unstated => {
            let _ = writeln!(out, ", {unstated} have no evidence.");
        }
    }
    for entry in open {
        let evidence = entry.provenance.evidence.map_or("no evidence", Evidence::name);
        let unit = entry.key.unit.map_or(String::new(), |unit| format!(" {unit}"));
        let _ = writeln!(out, "\n{} = {}{unit} ({evidence})", entry.name(), entry.value);
        let _ = writeln!(out, "{}", wrapped("  ", "  ", first_sentence(entry.key.doc)));
        for (word, text) in entry.provenance.texts().into_iter().filter(|(_, text)| !text.is_empty()) {
            let label = format!("  {:<12} ", format!("{}:", word.replace('_', " ")));
            let _ = writeln!(out, "{}", wrapped(&label, &" ".repeat(label.len()), text));
        }
    }
    out
}

/// `text` in lines that fit a terminal, the first one after `first`, the others after `others`.
fn wrapped(first: &str, others: &str, text: &str) -> String {
    textwrap::fill(text, textwrap::Options::new(COLUMNS).initial_indent(first).subsequent_indent(others))
}
