//! The reference of answers in JSON, as Markdown.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{ALL, common};

/// Returns the forms of answers: the members of each with type and meaning, then the parts that several have.
#[must_use]
pub fn reference() -> String {
    let mut text = String::from(
        "# Forms of answers\n\nThe members of what commands write as JSON. `fxscope schema NAME` prints the same as JSON Schema.\n\n\
         A path leads to a member: `[]` stands for each element of a list, `*` for each name. Members in parentheses may be absent.\n",
    );
    for schema in ALL {
        let form = schema.json();
        let _ = write!(text, "\n## {}\n\nWritten by {}. {}", schema.name, schema.written_by, described(&form));
        table(&form, &mut text);
    }
    for (name, form) in common() {
        let _ = write!(text, "\n## Part {name}\n\n{}", described(&form));
        table(&form, &mut text);
    }
    text
}

/// Returns the type of a form and its meaning.
fn described(form: &Value) -> String {
    let meaning = form["description"].as_str().map(|meaning| format!("; {meaning}")).unwrap_or_default();
    format!("Type: {}{meaning}.\n", type_of(form))
}

/// Writes the members of a form, if it has any.
fn table(form: &Value, text: &mut String) {
    let mut rows = String::new();
    members(form, "", &mut rows);
    if !rows.is_empty() {
        let _ = write!(text, "\n| Member | Type | Meaning |\n|---|---|---|\n{rows}");
    }
}

/// Writes a row for each member below a form, whose own path is `path`.
fn members(form: &Value, path: &str, rows: &mut String) {
    let required = |name: &str| form["required"].as_array().is_some_and(|list| list.iter().any(|other| other == name));
    for (name, member) in form["properties"].as_object().unwrap_or(&Map::new()) {
        let at = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let shown = if required(name) { format!("`{at}`") } else { format!("(`{at}`)") };
        let meaning = member["description"].as_str().unwrap_or_default();
        let _ = writeln!(rows, "| {shown} | {} | {meaning} |", type_of(member));
        members(member, &at, rows);
    }
    for alternative in form["anyOf"].as_array().into_iter().chain(form["oneOf"].as_array()).flatten() {
        members(alternative, path, rows);
    }
    if form["items"].is_object() {
        members(&form["items"], &format!("{path}[]"), rows);
    }
    if form["additionalProperties"].is_object() {
        let at = if path.is_empty() { "*".to_owned() } else { format!("{path}.*") };
        members(&form["additionalProperties"], &at, rows);
    }
}

/// Returns the type of a value in words; that of a part is a link to it.
fn type_of(form: &Value) -> String {
    let alternatives = |list: &Value, word: fn(&Value) -> String| {
        list.as_array().map(|list| list.iter().map(word).collect::<Vec<_>>().join(" or "))
    };
    if let Some(part) = form["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        return format!("[{part}](#part-{part})");
    }
    let literal = |value: &Value| format!("`{value}`");
    let named = alternatives(&form["enum"], literal).or_else(|| alternatives(&form["anyOf"], type_of));
    if let Some(named) = named {
        return named;
    }
    if !form["const"].is_null() {
        return literal(&form["const"]);
    }
    let name = |name: &Value| name.as_str().unwrap_or_default().to_owned();
    let names = alternatives(&form["type"], name).unwrap_or_else(|| name(&form["type"]));
    match (&form["items"], &form["additionalProperties"]) {
        (items @ Value::Object(_), _) => format!("{names} of {}", type_of(items)),
        (_, Value::Object(values)) if !values.is_empty() => format!("{names} of {}", type_of(&values.clone().into())),
        _ if names.is_empty() => "any value".to_owned(),
        _ => names,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Adds the names of the members of all objects in a form.
    fn names(form: &Value, found: &mut BTreeSet<String>) {
        if let Some(properties) = form["properties"].as_object() {
            found.extend(properties.keys().cloned());
        }
        match form {
            Value::Object(members) => members.values().for_each(|member| names(member, found)),
            Value::Array(list) => list.iter().for_each(|member| names(member, found)),
            _ => {}
        }
    }

    #[test]
    fn every_member_of_every_form_has_a_row_and_links_lead_to_parts() {
        let text = reference();
        let mut found = BTreeSet::new();
        ALL.iter().for_each(|schema| names(&schema.json(), &mut found));
        for name in found {
            assert!(text.contains(&format!(".{name}`")) || text.contains(&format!("`{name}`")), "{name}");
        }
        for link in text.split("](#part-").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(text.contains(&format!("\n## Part {link}\n")), "{link}");
        }
    }

    #[test]
    fn types_say_what_lists_and_objects_hold() {
        let list = serde_json::json!({ "type": ["array", "null"], "items": { "$ref": "#/$defs/run" } });
        assert_eq!(type_of(&list), "array or null of [run](#part-run)");
        let object = serde_json::json!({ "type": "object", "additionalProperties": { "enum": ["a", 1] } });
        assert_eq!(type_of(&object), "object of `\"a\"` or `1`");
        assert_eq!(type_of(&serde_json::json!({})), "any value");
    }
}
