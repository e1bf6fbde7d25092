//! A resolved machine for readers and for comparison: as a file and as a hash.

use std::collections::HashMap;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::events::{Events, Scope};
use crate::evidence::{Entry, Evidence, Provenance};
use crate::load::list;
use crate::recipe::{Flow, LoadToUse, Recipe, Uop};
use crate::schema::{Key, Kind, Rule, Table, Value, first_sentence};
use crate::spec::{SCHEMA, Spec};

/// The machine as a `machine.toml` with every key: its meaning, unit and limits, its value, and where that comes from.
/// Loaded again it gives the same machine: it extends the one that its CSV tables come from.
#[must_use]
pub fn show(spec: &Spec) -> String {
    let mut out = format!("# Machine {}, resolved: {}\n", spec.name.escape_debug(), hash(spec));
    let _ = writeln!(out, "extends = {}", Value::Text(spec.csv_from.clone()));
    if let Some(evidence) = rows_evidence(spec) {
        let _ = write!(out, "\n# Rows of instructions.csv\n[inherited]\nevidence = \"{}\"\n", evidence.name());
    }
    let mut table = "";
    for entry in spec.entries() {
        if table != entry.table.name {
            table = entry.table.name;
            let _ = write!(out, "\n# {}\n[{table}]\n", entry.table.doc.trim());
        }
        let _ = writeln!(out, "# {}\n{} = {}", meaning(entry.table, entry.key), entry.key.name, long_form(&entry));
    }
    out
}

/// The built-in machines, a line for each.
#[must_use]
pub fn show_list() -> String {
    list().iter().fold(String::new(), |mut text, (name, title)| {
        let _ = writeln!(text, "{name:<12} {title}");
        text
    })
}

/// Events, a line for each: number, scope, name, and what they count in the model.
#[must_use]
pub fn show_events(events: &Events) -> String {
    let width = events.iter().map(|event| event.name.len()).max().unwrap_or(0);
    let mut text = format!("number  of    {:<width$}  counts\n", "name");
    for event in events.iter() {
        let number = event.number.map_or_else(|| "-".to_owned(), |n| format!("{n:#06x}"));
        let scope = match event.scope {
            Scope::Pe => "core",
            Scope::Cmg => "CMG",
        };
        let terms: Vec<String> = event.terms.iter().map(ToString::to_string).collect();
        let counts = match terms.as_slice() {
            [] if event.energy => "modelled: energy".to_owned(),
            [] => format!("not modelled: {}", event.reason),
            [same] if *same == event.name => "modelled".to_owned(),
            terms => format!("modelled: {}", terms.join(" + ").replace("+ -1 * ", "- ")),
        };
        let _ = writeln!(text, "{number:<6}  {scope:<4}  {:<width$}  {counts}", event.name);
    }
    text
}

/// The evidence of the instruction rows, if all have the same.
fn rows_evidence(spec: &Spec) -> Option<Evidence> {
    let mut rows = spec.recipes.sorted();
    let first = rows.next()?.1.evidence?;
    rows.all(|(_, recipe)| recipe.evidence == Some(first)).then_some(first)
}

/// A value with its provenance, as a key of `machine.toml` has it.
fn long_form(entry: &Entry) -> String {
    let value = match (entry.key.rule, &entry.value) {
        (Rule::Register, Value::Integer(n)) => format!("{n:#x}"),
        (_, value) => value.to_string(),
    };
    if *entry.provenance == Provenance::default() {
        return value;
    }
    let evidence = entry.provenance.evidence.map(|e| ("evidence", Evidence::name(e)));
    let texts = entry.provenance.texts().into_iter().filter(|(_, text)| !text.is_empty());
    let words = evidence.into_iter().chain(texts);
    let words = words.map(|(word, text)| format!(", {word} = {}", Value::Text(text.to_owned())));
    format!("{{ value = {value}{} }}", words.collect::<String>())
}

fn meaning(table: &Table, key: &Key) -> String {
    let doc = first_sentence(key.doc);
    // Some meanings include the unit, since messages quote the meaning alone.
    let unit = key.unit.filter(|unit| !doc.ends_with(&format!(", {unit}"))).map(|unit| format!("in {unit}"));
    let allowed = match key.kind {
        Kind::Choice(_) => Some(key.kind.expects()),
        _ => key.rule.words(),
    };
    let option = key.option_of.map(|option| format!("option of {option}"));
    let inert = table.inert(key).map(|reason| format!("no effect: {reason}"));
    let parts = [Some(doc.to_owned()), unit, allowed, option, inert];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// A hash of all values that the model computes with, independent of the machine's name and of evidence: machines with
/// equal hashes take equal times for every program. SHA-256, in hexadecimal.
#[must_use]
pub fn hash(spec: &Spec) -> String {
    let mut text = String::new();
    for (table, values) in SCHEMA.iter().zip(spec.tables.values()) {
        for (key, value) in table.keys.iter().zip(values) {
            let _ = writeln!(text, "{}.{} = {value}", table.name, key.name);
        }
    }
    let mut known = HashMap::new();
    for (class, recipe) in spec.recipes.sorted() {
        text.push_str(class);
        write_recipe(&mut text, recipe, &mut known);
        text.push('\n');
    }
    let mut hex = String::new();
    for byte in Sha256::digest(text) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// All of a recipe but its evidence and the line it stands on. Every field is named, so that a new one cannot be forgotten.
/// `known` has the text of micro-operations that were written before, as most recipes share theirs.
fn write_recipe(text: &mut String, recipe: &Recipe, known: &mut HashMap<*const Uop, String>) {
    let Recipe {
        uops,
        sequential,
        pre_sync,
        post_sync,
        temporary_operand,
        movprfx_packable,
        movprfx_extra_uop,
        fetch_ports,
        store_ports,
        evidence: _,
        line: _,
    } = recipe;
    let notes = [sequential, pre_sync, post_sync, temporary_operand, movprfx_packable, movprfx_extra_uop];
    let notes = notes.map(|&note| u8::from(note));
    let _ = write!(text, " {notes:?} {fetch_ports} {store_ports}");
    text.push_str(known.entry(uops.as_ptr()).or_insert_with(|| uops.iter().map(of_uop).collect()));
}

fn of_uop(uop: &Uop) -> String {
    let mut text = format!(" / {:?} {:?}", uop.blocking, uop.depends);
    for flow in &uop.flows {
        let &Flow { pipes, all_pipes, latency, latency_max, load, repeat, wait, independent } = flow;
        let load = load.map_or("", LoadToUse::name);
        let _ = write!(text, " {} {all_pipes} {latency} {latency_max} {load} {repeat} {wait} {independent};", pipes.0);
    }
    text
}
