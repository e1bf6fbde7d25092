//! The schemas of `data/schema` refer only to definitions of `common.json`, all of which are used. That they are schemas is tested
//! with what `fxscope schema` prints.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{files, read};

const FOLDER: &str = "data/schema/";
const COMMON: &str = "data/schema/common.json";

/// Returns references to definitions that do not exist, and definitions that nothing refers to.
///
/// # Errors
/// If a file cannot be read or is not JSON.
pub fn sound() -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut used = BTreeSet::new();
    for file in files(&[".json"]).into_iter().filter(|file| file.starts_with(FOLDER)) {
        let value = parsed(&file)?;
        collect_references(&value, &mut used);
    }
    let common = parsed(COMMON)?;
    let defined: BTreeSet<String> = common.as_object().into_iter().flat_map(|all| all.keys().cloned()).collect();
    found.extend(used.difference(&defined).map(|name| format!("{COMMON} does not define {name}, which a schema uses")));
    found.extend(defined.difference(&used).map(|name| format!("{COMMON} defines {name}, which no schema uses")));
    Ok(found)
}

fn parsed(file: &str) -> Result<Value, String> {
    serde_json::from_str(&read(file)?).map_err(|e| format!("{file}: {e}"))
}

/// Adds the names of the definitions that a schema refers to.
fn collect_references(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            let reference = members.get("$ref").and_then(Value::as_str);
            names.extend(reference.map(|path| path.trim_start_matches("#/$defs/").to_owned()));
            members.values().for_each(|member| collect_references(member, names));
        }
        Value::Array(list) => list.iter().for_each(|member| collect_references(member, names)),
        _ => {}
    }
}
