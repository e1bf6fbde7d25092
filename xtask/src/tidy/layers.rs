//! The direction of dependencies. `ARCHITECTURE.md` defines it: the last column of its table of crates says what each may use.

use std::collections::{BTreeMap, BTreeSet};

use super::read;
use crate::root;

const DEFINITION: &str = "ARCHITECTURE.md";
/// What the table says of a crate that may use every other, and of one that may use none.
const ALL: &str = "all";
const NONE: &str = "–";

/// Returns crates that use others than they may in their libraries, and rows of the table that name no crate.
///
/// # Errors
/// If the table cannot be read, or cargo cannot describe the workspace.
pub fn dependencies() -> Result<Vec<String>, String> {
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .map_err(|e| format!("cargo metadata: {e}"))?;
    let ours: BTreeSet<&str> = metadata.packages.iter().map(|package| short(&package.name)).collect();
    let allowed = allowed(&read(DEFINITION)?);
    let named = allowed.iter().flat_map(|(of, used)| used.iter().chain([of])).filter(|name| *name != ALL);
    let unknown: BTreeSet<&String> = named.filter(|name| !ours.contains(name.as_str())).collect();
    let mut found: Vec<String> = unknown.iter().map(|name| format!("{DEFINITION}: there is no crate {name}")).collect();
    for package in &metadata.packages {
        let Some(allowed) = allowed.get(short(&package.name)) else {
            found.push(format!("{DEFINITION}: the table of crates does not say what {} may use", package.name));
            continue;
        };
        let in_library = |kind| kind != cargo_metadata::DependencyKind::Development;
        let used = package.dependencies.iter().filter(|dependency| in_library(dependency.kind));
        let used = used.map(|dependency| short(&dependency.name)).filter(|name| ours.contains(name));
        let refused = used.filter(|name| !allowed.contains(ALL) && !allowed.contains(*name));
        found.extend(refused.map(|name| format!("{} may not use {name} ({DEFINITION})", package.name)));
    }
    Ok(found)
}

/// Strips the common prefix from a package's name.
fn short(name: &str) -> &str {
    name.strip_prefix("fxscope-").unwrap_or(name)
}

/// Returns what each crate may use, from the rows of the table.
fn allowed(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let row = regex::Regex::new(r"(?m)^\| `(?:crates/(\w+)|(xtask))` \|.*\| ([^|]+) \|$").expect("constant");
    let rows = row.captures_iter(text).filter_map(|row| {
        let name = row.get(1).or(row.get(2))?.as_str().to_owned();
        let used = row[3].split(", ").filter(|name| *name != NONE).map(str::to_owned).collect();
        Some((name, used))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_a_crate_may_use() {
        let table = "| `crates/a` | what it is | – |\n| `crates/b` | more: `x` | a, c |\n| `xtask` | checks | all |\n| `python` | x | a |\n";
        let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
        let expected = [("a", list(&[])), ("b", list(&["a", "c"])), ("xtask", list(&[ALL]))];
        assert_eq!(allowed(table), expected.map(|(name, used)| (name.to_owned(), used)).into());
    }
}
