//! The forms of what commands write for programs: JSON Schema (draft 2020-12) for answers in JSON, SQL for record files. The schemas are
//! `data/schema`; what several of them use is in `data/schema/common.json`.

mod reference;

use std::fmt::Write as _;

use serde_json::{Map, Value};

pub use reference::reference;

use crate::Error;

/// A form, and which commands write it.
pub struct Schema {
    /// Its name.
    pub name: &'static str,
    /// What has this form.
    pub written_by: &'static str,
    text: &'static str,
}

/// The definitions that schemas refer to.
const COMMON: &str = include_str!("../../../data/schema/common.json");

macro_rules! schemas {
    ($($name:literal: $written_by:literal,)*) => {
        /// The forms of answers in JSON.
        pub const ALL: &[Schema] = &[$(Schema {
            name: $name,
            written_by: $written_by,
            text: include_str!(concat!("../../../data/schema/", $name, ".json")),
        }),*];
    };
}

schemas! {
    "run": "run --json, resume --json",
    "report": "report --format json: a list of runs",
    "annotate": "annotate --format json",
    "compare": "compare --format json",
    "advise": "advise --format json",
    "guide": "guide NAME --format json",
    "latency": "latency predict --format json",
    "latency-check": "latency check --format json",
    "pages-advise": "pages advise --format json",
    "pages-check": "pages check --format json",
    "pages-experiment": "pages experiment NAME --format json",
    "pages-host": "pages host --format json",
    "pages-risks": "pages risks --format json",
    "sweep": "sweep --dry-run --format json",
    "validate": "validate --format json",
    "tasks": "validate and latency check with --dry-run --format json",
    "sheet": "jitter, latency advise and calibrate fit with --format json: tables and plots",
}

/// The form of record files, and what has it.
pub const RECORD: (&str, &str) = ("record", "files of run -o and import -o: tables of SQLite, as SQL");

/// Returns the text of a form: a JSON Schema, or the tables of record files as SQL; without a name, a line for each form.
///
/// # Errors
/// If there is no form of this name.
pub fn text(name: Option<&str>) -> Result<String, Error> {
    match name {
        None => Ok(list()),
        Some(name) if name == RECORD.0 => {
            Ok(format!("-- PRAGMA user_version: {}\n{}", fxscope_record::VERSION, fxscope_record::tables()))
        }
        Some(name) => match ALL.iter().find(|schema| schema.name == name) {
            Some(schema) => Ok(format!("{:#}\n", schema.json())),
            None => Err(format!("unknown form '{name}'; the forms are\n{}", list().trim_end()).into()),
        },
    }
}

/// Returns a line for each form.
fn list() -> String {
    let json = ALL.iter().map(|schema| (schema.name, schema.written_by));
    json.chain([RECORD]).fold(String::new(), |mut text, (name, written_by)| {
        let _ = writeln!(text, "{name:<9} {written_by}");
        text
    })
}

impl Schema {
    /// Returns the schema with the definitions that it refers to, directly or through others.
    ///
    /// # Panics
    /// If a file of `data/schema` is not JSON, which a test excludes.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut schema: Map<String, Value> = serde_json::from_str(self.text).expect("data/schema is JSON");
        let common = common();
        let mut used = Map::new();
        add_used(&Value::Object(schema.clone()), &common, &mut used);
        let dialect = [("$schema".to_owned(), Value::from("https://json-schema.org/draft/2020-12/schema"))];
        if !used.is_empty() {
            schema.insert("$defs".to_owned(), Value::Object(used));
        }
        dialect.into_iter().chain(schema).collect()
    }
}

/// Returns the definitions that schemas refer to.
fn common() -> Map<String, Value> {
    serde_json::from_str(COMMON).expect("data/schema is JSON")
}

/// Adds the definitions that `of` refers to, and those that these refer to.
fn add_used(of: &Value, common: &Map<String, Value>, used: &mut Map<String, Value>) {
    match of {
        Value::Object(members) => {
            let name = members.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/"));
            if let Some((name, definition)) = name.and_then(|name| common.get_key_value(name))
                && !used.contains_key(name)
            {
                used.insert(name.clone(), definition.clone());
                add_used(definition, common, used);
            }
            members.values().for_each(|value| add_used(value, common, used));
        }
        Value::Array(list) => list.iter().for_each(|value| add_used(value, common, used)),
        _ => {}
    }
}
