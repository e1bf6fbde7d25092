//! A resolved machine for readers and for comparison: as a file, as a hash, as a count of what is known how well.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::recipe::{Flow, LoadToUse, Recipe};
use crate::schema::{EVIDENCE, Key, Rule, SOURCE, Table, Value, first_sentence};
use crate::spec::{Evidence, SCHEMA, Spec};

/// Column at which meanings start, beside the values.
const MEANING: usize = 40;

/// The machine as a `machine.toml` with every key, its meaning and the values allowed. Loaded again it gives the
/// same machine: it extends the one that its CSV tables come from.
#[must_use]
pub fn show(spec: &Spec) -> String {
    let mut out = format!("# Machine {}, resolved: {}\n", spec.name.escape_debug(), hash(spec));
    let _ = writeln!(out, "extends = {}", Value::Text(spec.csv_from.clone()));
    for (table, values) in SCHEMA.iter().zip(spec.tables.values()) {
        let _ = write!(out, "\n# {}\n[{}]\n", table.doc.trim(), table.name);
        for (key, value) in table.keys.iter().zip(values) {
            let line = match (key.rule, &value) {
                (Rule::Register, Value::Integer(n)) => format!("{} = {n:#x}", key.name),
                _ => format!("{} = {value}", key.name),
            };
            match key.name {
                SOURCE | EVIDENCE => out.push_str(&line),
                _ => {
                    let _ = write!(out, "{line:MEANING$} # {}", meaning(table, key));
                }
            }
            out.push('\n');
        }
    }
    out
}

fn meaning(table: &Table, key: &Key) -> String {
    let doc = first_sentence(key.doc);
    let parts = [Some(doc.to_owned()), key.rule.words(), table.inert(key).map(|reason| format!("no effect: {reason}"))];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// A hash of everything that the model computes with: the same for machines on which every program takes the same
/// time, whatever they are called and whoever vouches for their numbers. SHA-256, in hexadecimal.
#[must_use]
pub fn hash(spec: &Spec) -> String {
    let mut text = String::new();
    for (table, values) in SCHEMA.iter().zip(spec.tables.values()) {
        for (key, value) in table.keys.iter().zip(values).filter(|(k, _)| ![SOURCE, EVIDENCE].contains(&k.name)) {
            let _ = writeln!(text, "{}.{} = {value}", table.name, key.name);
        }
    }
    for (class, recipe) in spec.recipes.sorted() {
        let _ = write!(text, "{class}");
        write_recipe(&mut text, recipe);
        text.push('\n');
    }
    let mut hex = String::new();
    for byte in Sha256::digest(text) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// All of a recipe but the line it stands on. Every field is named, so that a new one cannot be forgotten.
fn write_recipe(text: &mut String, recipe: &Recipe) {
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
        line: _,
    } = recipe;
    let notes = [sequential, pre_sync, post_sync, temporary_operand, movprfx_packable, movprfx_extra_uop];
    let notes = notes.map(|&note| u8::from(note));
    let _ = write!(text, " {notes:?} {fetch_ports} {store_ports}");
    for uop in uops {
        let _ = write!(text, " / {:?} {:?}", uop.blocking, uop.depends);
        for flow in &uop.flows {
            let &Flow { pipes, all_pipes, latency, latency_max, load, repeat, wait, independent } = flow;
            let load = load.map_or("", LoadToUse::name);
            let _ =
                write!(text, " {} {all_pipes} {latency} {latency_max} {load} {repeat} {wait} {independent};", pipes.0);
        }
    }
}

/// How many keys are known how well, best first.
#[must_use]
pub fn evidence_summary(spec: &Spec) -> [(Evidence, usize); 4] {
    let mut count = Evidence::ALL.map(|evidence| (evidence, 0));
    for (table, values) in SCHEMA.iter().zip(spec.tables.values()) {
        // `source` and `evidence` stand last and tell of the others.
        let known = table.keys.len() - 2;
        for (evidence, n) in &mut count {
            if values.last() == Some(&Value::Text(evidence.name().to_owned())) {
                *n += known;
            }
        }
    }
    count
}
