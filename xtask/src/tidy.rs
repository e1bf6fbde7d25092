//! Checks that no compiler makes: dependency directions, which tests are built, references in documents, file lengths, tables and schemas
//! of `data`, phrases to avoid.

pub mod data;
pub mod layers;
pub mod prose;
pub mod references;
pub mod schemas;
pub mod targets;

use std::collections::BTreeSet;
use std::path::Path;

use crate::root;

/// Longest source file, lines.
const MAX_LINES: usize = 600;
/// Folders of tables, whose files may be longer, with their limit.
const TABLES: &[(&str, usize)] = &[("crates/aarch64/src/insn/", 900), ("crates/aarch64/src/fp/", 900)];

/// Runs all checks.
///
/// # Errors
/// All findings, one per line.
pub fn check() -> Result<(), String> {
    let mut found = layers::dependencies()?;
    found.extend(document_paths()?);
    found.extend(file_lengths()?);
    found.extend(targets::keys()?);
    found.extend(references::limits()?);
    found.extend(references::gaps()?);
    found.extend(references::notes()?);
    found.extend(data::unread()?);
    found.extend(schemas::sound()?);
    found.extend(prose::phrases()?);
    if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
}

/// Returns the files that git would track, relative to the root.
fn files(extensions: &[&str]) -> Vec<String> {
    let root = root();
    let mut out: Vec<String> = ignore::WalkBuilder::new(&root)
        .build()
        .filter_map(Result::ok)
        .filter(|e| e.file_type().is_some_and(|t| t.is_file()))
        .filter_map(|e| e.path().strip_prefix(&root).ok().map(|p| p.to_string_lossy().into_owned()))
        .filter(|p| extensions.iter().any(|x| p.ends_with(x)))
        .collect();
    out.sort();
    out
}

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(root().join(path)).map_err(|e| format!("{path}: {e}"))
}

/// Returns paths that a document names in backticks or links but that do not exist.
///
/// # Errors
/// If a document cannot be read.
pub fn document_paths() -> Result<Vec<String>, String> {
    let named = regex::Regex::new(r"`([A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+/?)`|\]\(([^)#:]+)\)").expect("constant");
    let tops: BTreeSet<String> = std::fs::read_dir(root())
        .map_err(|e| e.to_string())?
        .filter_map(Result::ok)
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    let mut found = Vec::new();
    for document in files(&[".md"]) {
        let folder = Path::new(&document).parent().unwrap_or(Path::new("")).to_path_buf();
        for captures in named.captures_iter(&read(&document)?) {
            let quoted = captures.get(1).map(|m| m.as_str());
            let link = captures.get(2).map(|m| m.as_str());
            let Some(path) = quoted.or(link) else { continue };
            // Quoted text counts as a path of the project if it starts with one of its folders.
            let first = path.split('/').next().unwrap_or_default();
            if quoted.is_some() && (!tops.contains(first) || first == "target") {
                continue;
            }
            // `docs/site/build.sh` makes these.
            let made = ["reference/", "gallery/"].iter().any(|folder| path.starts_with(folder));
            if made && document.starts_with("docs/site/") {
                continue;
            }
            let exists = root().join(path).exists() || root().join(&folder).join(path).exists();
            if !exists {
                found.push(format!("{document} names {path}, which does not exist"));
            }
        }
    }
    Ok(found)
}

/// Returns source files that are too long.
///
/// # Errors
/// If a file cannot be read.
pub fn file_lengths() -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for file in files(&[".rs", ".py", ".c", ".S"]) {
        let limit = TABLES.iter().find(|(folder, _)| file.starts_with(folder)).map_or(MAX_LINES, |&(_, n)| n);
        let lines = read(&file)?.lines().count();
        if lines > limit {
            found.push(format!("{file} has {lines} lines; split it ({limit} at most)"));
        }
    }
    Ok(found)
}
