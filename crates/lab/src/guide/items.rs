//! What the sources state, item by item, and which experiments cover it: `data/guide/items.csv`.

use serde::Deserialize;

use super::Guide;
use crate::Error;

const FILE: &str = include_str!("../../../../data/guide/items.csv");

/// How far an item is covered.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Wholly.
    Yes,
    /// In part; the note says what is missing.
    Partly,
    /// It is a fact about a compiler, which no run of a program shows.
    Compiler,
    /// It is a fact, a definition or a caution; the note says where fxscope has it, or why not.
    Fact,
}

/// An item: an experiment, a table, a rule or a fact of a source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Its number: source, section and item.
    pub item: String,
    /// What it is about.
    pub title: String,
    /// How far it is covered.
    pub status: Status,
    /// What is missing, or where it is shown if not by an experiment.
    pub note: String,
}

impl Status {
    const ALL: [Status; 4] = [Status::Yes, Status::Partly, Status::Compiler, Status::Fact];

    fn sign(self) -> &'static str {
        match self {
            Status::Yes => "✔",
            Status::Partly => "partly",
            Status::Compiler => "compiler",
            Status::Fact => "fact",
        }
    }
}

/// Returns all items, in the order of the sources.
///
/// # Errors
/// If the file is invalid, an experiment names an item that it lacks, or an item has neither an experiment nor a note: which.
pub fn items(guide: &Guide) -> Result<Vec<Item>, Error> {
    let wrong = |what: String| Error::Request(format!("data/guide/items.csv: {what}"));
    let lines = csv::Reader::from_reader(FILE.as_bytes()).into_deserialize::<Item>().collect::<Result<Vec<_>, _>>();
    let items = lines.map_err(|e| wrong(e.to_string()))?;
    for (_, experiment) in guide.experiments() {
        if let Some(unknown) = experiment.items.iter().find(|name| items.iter().all(|item| item.item != **name)) {
            return Err(wrong(format!("no item '{unknown}', which {} names", experiment.id)));
        }
    }
    for item in &items {
        let alone = covering(guide, item).next().is_none();
        if item.note.is_empty() && (alone || item.status != Status::Yes) {
            return Err(wrong(format!("'{}' needs a note, or an experiment that covers it wholly", item.item)));
        }
    }
    Ok(items)
}

/// Returns the names of the experiments that cover an item.
fn covering<'a>(guide: &'a Guide, item: &'a Item) -> impl Iterator<Item = &'a str> {
    let covers = |one: &&super::Experiment| one.items.contains(&item.item);
    guide.experiments().map(|(_, experiment)| experiment).filter(covers).map(|experiment| experiment.id.as_str())
}

/// Returns all items as the Markdown of `docs/guide-coverage.md`.
///
/// # Errors
/// As [`items`].
pub fn items_markdown(guide: &Guide) -> Result<String, Error> {
    let items = items(guide)?;
    let mut text = "# What the guide and the studies state, and what fxscope shows of it\n\n\
        `fxscope guide --items` prints this page from `data/guide`. Sources: 000 is Fujitsu's tuning guide for A64FX (2021), 001 a report on LINPACK and\n\
        noise on FX1, 002 a study of memory latency on Knights Landing, 003 one of large pages on A64FX, 004 one of TLBs on the K\n\
        computer. ✔: shown wholly; partly: the note says what is missing; compiler: a fact about a compiler, which no run shows; fact: a\n\
        fact, a definition or a caution, with the place where fxscope has it.\n\n"
        .to_owned();
    let number = |status: Status| items.iter().filter(|item| item.status == status).count();
    let counts: Vec<String> = Status::ALL.iter().map(|&s| format!("{} {}", number(s), s.sign())).collect();
    text.push_str(&format!("{} items: {}.\n\n", items.len(), counts.join(", ")));
    text.push_str("| item | what | state | experiments | note |\n|---|---|---|---|---|\n");
    for item in &items {
        let experiments: Vec<String> = covering(guide, item).map(|id| format!("`{id}`")).collect();
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            item.item,
            item.title,
            item.status.sign(),
            experiments.join(" "),
            item.note
        ));
    }
    Ok(text)
}

/// Measured rows of the guide that no experiment has, and why: `data/guide/left-out.csv`.
const LEFT_OUT: &str = include_str!("../../../../data/guide/left-out.csv");

/// A line of that file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// A measured row, or the source of several.
    pub what: String,
    /// Why no experiment has them.
    pub reason: String,
}

/// Returns the measured rows that no experiment has, with the reasons.
///
/// # Errors
/// If the file is invalid.
pub fn left_out() -> Result<Vec<LeftOut>, Error> {
    let lines = csv::Reader::from_reader(LEFT_OUT.as_bytes()).into_deserialize::<LeftOut>().collect::<Result<_, _>>();
    lines.map_err(|e| format!("data/guide/left-out.csv: {e}").into())
}
