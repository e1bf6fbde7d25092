//! Rules: what may limit a program, and what to do about it, from `data/rules/*.toml`.
//!
//! A rule is a condition over metrics and events, and the share of the time that it explains. The time is that of all cores that the
//! threads run on, from the first thread's start to the last one's end, so shares of different causes can be compared. A rule whose
//! inputs were not counted is not judged. Rules for special cases (`part_of`) take their share from the general rule that they refine.

use crate::TableError;
use crate::formula::Formula;
use crate::functions::Functions;
use crate::metrics::{Metrics, Total};

/// The files with rules, in the order in which equal shares are listed.
pub(crate) const BUILT_IN: &[(&str, &str)] = &[
    ("bandwidth.toml", include_str!("../../../data/rules/bandwidth.toml")),
    ("latency.toml", include_str!("../../../data/rules/latency.toml")),
    ("tlb.toml", include_str!("../../../data/rules/tlb.toml")),
    ("stores.toml", include_str!("../../../data/rules/stores.toml")),
    ("execution.toml", include_str!("../../../data/rules/execution.toml")),
    ("frontend.toml", include_str!("../../../data/rules/frontend.toml")),
    ("threads.toml", include_str!("../../../data/rules/threads.toml")),
    ("kernel.toml", include_str!("../../../data/rules/kernel.toml")),
];

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Name: lower case and stable, for programs.
    pub name: String,
    /// What it finds, in a few words.
    pub title: String,
    /// The file's subject, such as "bandwidth".
    pub subject: String,
    /// What to do next.
    pub tries: Vec<Try>,
    /// Where the rule comes from.
    pub source: String,
    /// Conditions that must all hold: a value other than 0. Indices of definitions, with their texts.
    pub(crate) conditions: Vec<usize>,
    /// The share of the time that it explains, from 0 to 1.
    pub(crate) share: usize,
    /// The share of the time that a cure gains, if that is not all that the rule explains.
    pub(crate) gain: Option<usize>,
    /// What it says.
    pub(crate) says: Vec<Piece>,
    /// What shows it.
    pub(crate) evidence: Vec<Evidence>,
    /// More general rules, by index, which this one refines: its share is a part of theirs.
    pub(crate) part_of: Vec<usize>,
}

/// Something to try.
#[derive(Clone, Debug, PartialEq)]
pub struct Try {
    /// What to do, as a sentence.
    pub(crate) text: Vec<Piece>,
    /// The command that shows whether it helps. `PROGRAM` stands for the program with its arguments.
    pub command: Option<String>,
    /// The name of the remedy that does the same without a change of the program.
    pub remedy: Option<String>,
}

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    /// A definition's value with its unit.
    Value(usize, String),
}

/// A value that shows what a rule says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Evidence {
    pub title: String,
    pub unit: String,
    pub place: usize,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    subject: String,
    #[serde(default)]
    functions: Vec<Functions>,
    #[serde(default)]
    rule: Vec<Entry>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    title: String,
    when: Vec<String>,
    share: String,
    gain: Option<String>,
    says: String,
    evidence: Vec<EvidenceEntry>,
    r#try: Vec<TryEntry>,
    #[serde(default)]
    part_of: Vec<String>,
    source: String,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct TryEntry {
    r#do: String,
    command: Option<String>,
    remedy: Option<String>,
}

/// A metric by name, or a formula with title and unit.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum EvidenceEntry {
    Metric(String),
    Formula { title: String, unit: String, of: String },
}

/// Parses rules, adding their formulas to `metrics`, and the functions that they name.
///
/// # Errors
/// The error, the file and the rule.
pub(crate) fn parse(files: &[(&str, &str)], metrics: &mut Metrics) -> Result<Vec<Rule>, TableError> {
    let mut parsed: Vec<(&str, File)> = Vec::new();
    for (file, text) in files {
        let error = |e: toml::de::Error| TableError { file: (*file).to_owned(), what: e.to_string() };
        parsed.push((file, toml::from_str(text).map_err(error)?));
    }
    for (file, File { functions, .. }) in &mut parsed {
        for functions in std::mem::take(functions) {
            let name = functions.name.clone();
            let error = |what: String| TableError { file: (*file).to_owned(), what: format!("{name}: {what}") };
            metrics.add_functions(functions).map_err(error)?;
        }
    }
    let names: Vec<String> = parsed.iter().flat_map(|(_, file)| &file.rule).map(|rule| rule.name.clone()).collect();
    let mut rules: Vec<Rule> = Vec::new();
    for (file, File { subject, rule: entries, .. }) in &parsed {
        for entry in entries {
            let error = |what: String| TableError { file: (*file).to_owned(), what: format!("{}: {what}", entry.name) };
            if names[..rules.len()].contains(&entry.name) {
                return Err(error("a second rule has this name".to_owned()));
            }
            rules.push(rule(entry, subject, &names, metrics).map_err(error)?);
        }
    }
    Ok(rules)
}

fn rule(entry: &Entry, subject: &str, names: &[String], metrics: &mut Metrics) -> Result<Rule, String> {
    if entry.source.trim().is_empty() {
        return Err("its source is missing".to_owned());
    }
    let general = |name: &String| {
        let place = names.iter().position(|known| known == name);
        place.filter(|_| *name != entry.name).ok_or_else(|| format!("part_of: no other rule is called '{name}'"))
    };
    Ok(Rule {
        name: entry.name.clone(),
        title: entry.title.clone(),
        subject: subject.to_owned(),
        tries: entry.r#try.iter().map(|entry| to_try(entry, metrics)).collect::<Result<_, _>>()?,
        source: entry.source.clone(),
        conditions: entry.when.iter().map(|text| define(text, metrics)).collect::<Result<_, _>>()?,
        share: define(&entry.share, metrics)?,
        gain: entry.gain.as_ref().map(|text| define(text, metrics)).transpose()?,
        says: pieces(&entry.says, metrics)?,
        evidence: entry.evidence.iter().map(|e| evidence(e, metrics)).collect::<Result<_, _>>()?,
        part_of: entry.part_of.iter().map(general).collect::<Result<_, _>>()?,
    })
}

fn to_try(entry: &TryEntry, metrics: &mut Metrics) -> Result<Try, String> {
    let TryEntry { r#do, command, remedy } = entry;
    Ok(Try { text: pieces(r#do, metrics)?, command: command.clone(), remedy: remedy.clone() })
}

fn define(text: &str, metrics: &mut Metrics) -> Result<usize, String> {
    let formula = Formula::parse(text).map_err(|what| format!("'{text}': {what}"))?;
    metrics.define(&formula, Total::Sum, Total::Sum)
}

/// Splits a sentence with `{metric}` and `{formula | unit}` in it.
fn pieces(text: &str, metrics: &mut Metrics) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (inside, behind) = after.split_once('}').ok_or("'{' without '}'")?;
        pieces.push(Piece::Text(before.to_owned()));
        pieces.push(match inside.rsplit_once('|') {
            Some((formula, unit)) => Piece::Value(define(formula, metrics)?, unit.trim().to_owned()),
            None => {
                let unit = metrics.named(inside).map(|metric| metric.unit.clone());
                Piece::Value(define(inside, metrics)?, unit.ok_or_else(|| format!("'{inside}' has no unit"))?)
            }
        });
        rest = behind;
    }
    pieces.push(Piece::Text(rest.to_owned()));
    Ok(pieces)
}

fn evidence(entry: &EvidenceEntry, metrics: &mut Metrics) -> Result<Evidence, String> {
    let (title, unit, formula) = match entry {
        EvidenceEntry::Formula { title, unit, of } => (title.clone(), unit.clone(), of),
        EvidenceEntry::Metric(name) => {
            let metric = metrics.named(name).ok_or_else(|| format!("unknown metric '{name}'"))?;
            (metric.title.clone(), metric.unit.clone(), name)
        }
    };
    Ok(Evidence { title, unit, place: define(formula, metrics)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(rule: &str) -> Result<Vec<Rule>, TableError> {
        let text = format!("subject = 's'\n[[functions]]\nname = 'in_locks'\npatterns = ['lock']\n[[rule]]\n{rule}");
        let metrics = "group = 'g'\ntitle = 'G'\n[[metric]]\nname = 'time'\ntitle = 'Time'\nunit = 'cycles'\nformula = 'CPU_CYCLES'";
        parse(&[("f.toml", &text)], &mut Metrics::parse(&[("m.toml", metrics)]).expect("valid"))
    }

    fn with(key: &str, value: &str) -> String {
        let usual = [
            ("name", "'a'"),
            ("title", "'A'"),
            ("when", "['time > 1']"),
            ("share", "'in_locks'"),
            ("says", "'takes {time} and {time / 2 | s}'"),
            ("evidence", "['time', { title = 'T', unit = 's', of = 'time / core_hz' }]"),
            ("try", "[{ do = 'Wait.' }]"),
            ("source", "'arithmetic'"),
        ];
        let own = usual.iter().all(|(known, _)| *known != key).then_some((key, value));
        let lines = usual.iter().map(|&(known, usual)| (known, if known == key { value } else { usual })).chain(own);
        lines.map(|(key, value)| format!("{key} = {value}\n")).collect()
    }

    #[test]
    fn a_rule_has_conditions_a_share_and_a_sentence_with_numbers() {
        let rules = parsed(&with("name", "'a'")).expect("valid");
        assert_eq!((rules[0].conditions.len(), rules[0].evidence.len()), (1, 2));
        let units: Vec<&str> = rules[0]
            .says
            .iter()
            .filter_map(|p| match p {
                Piece::Value(_, unit) => Some(unit.as_str()),
                Piece::Text(_) => None,
            })
            .collect();
        assert_eq!(units, ["cycles", "s"]);
    }

    #[test]
    fn mistakes_are_reported_with_file_and_rule() {
        let cases = [
            (with("when", "['tome > 1']"), "f.toml: a: no event, constant or metric is called 'tome'"),
            (with("share", "'1 +'"), "f.toml: a: '1 +': something is missing at the end"),
            (with("says", "'{time'"), "f.toml: a: '{' without '}'"),
            (with("says", "'{CPU_CYCLES}'"), "f.toml: a: 'CPU_CYCLES' has no unit"),
            (with("try", "[{ do = 'Wait {CPU_CYCLES}.' }]"), "f.toml: a: 'CPU_CYCLES' has no unit"),
            (with("evidence", "['CPU_CYCLES']"), "f.toml: a: unknown metric 'CPU_CYCLES'"),
            (with("source", "' '"), "f.toml: a: its source is missing"),
            (with("part_of", "['b']"), "f.toml: a: part_of: no other rule is called 'b'"),
            (with("part_of", "['a']"), "f.toml: a: part_of: no other rule is called 'a'"),
        ];
        for (rule, message) in cases {
            assert_eq!(parsed(&rule).expect_err(&rule).to_string(), message);
        }
        let twice = with("name", "'a'") + "[[rule]]\n" + &with("name", "'a'");
        assert_eq!(parsed(&twice).expect_err("twice").to_string(), "f.toml: a: a second rule has this name");
    }
}
