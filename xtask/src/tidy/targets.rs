//! Which tests each package declares: cargo compiles a library once more for its unit tests, and runs rustdoc for its examples, even if
//! there are none.

use cargo_metadata::{Package, Target};

use super::{files, read};
use crate::root;

/// Returns libraries and programs whose `test` and `doctest` keys do not fit their sources. `test = false` with unit tests, or
/// `doctest = false` with an example, would mean that these never run.
///
/// # Errors
/// If cargo cannot describe the workspace, or a source cannot be read.
pub fn keys() -> Result<Vec<String>, String> {
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .map_err(|e| format!("cargo metadata: {e}"))?;
    let mut found = Vec::new();
    for package in &metadata.packages {
        let (tests, examples) = declared(package)?;
        for target in package.targets.iter().filter(|target| target.is_lib() || target.is_bin()) {
            let mut check = |key: &str, is: bool, should: bool| {
                if is != should {
                    found.push(format!("{}, target {}: `{key}` should be {should}", package.name, target.name));
                }
            };
            // A program's own sources are its main file.
            check("test", target.test, tests && target.is_lib() || has_tests(&source(target)?));
            if target.is_lib() {
                check("doctest", target.doctest, examples);
            }
        }
    }
    Ok(found)
}

fn source(target: &Target) -> Result<String, String> {
    let path = target.src_path.strip_prefix(root()).map_err(|_| format!("{} is outside the tree", target.src_path))?;
    read(path.as_str())
}

/// Returns whether the sources of a package have unit tests, and whether their documentation has examples in Rust.
fn declared(package: &Package) -> Result<(bool, bool), String> {
    let folder = package.manifest_path.parent().map(|folder| folder.join("src"));
    let folder =
        folder.as_deref().and_then(|folder| folder.strip_prefix(root()).ok()).ok_or("a package outside the tree")?;
    let (mut tests, mut examples) = (false, false);
    for file in files(&[".rs"]).iter().filter(|file| file.starts_with(&format!("{folder}/"))) {
        let text = read(file)?;
        tests |= has_tests(&text);
        examples |= has_examples(&text);
    }
    Ok((tests, examples))
}

fn has_tests(text: &str) -> bool {
    text.lines().map(str::trim_start).any(|line| line.starts_with("#[test]"))
}

/// Every other fence opens a block; rustdoc runs it unless it names another language.
fn has_examples(text: &str) -> bool {
    let documentation =
        text.lines().map(str::trim_start).filter_map(|line| line.strip_prefix("///").or(line.strip_prefix("//!")));
    let fences = documentation.filter_map(|line| line.trim_start().strip_prefix("```"));
    fences.step_by(2).any(|language| !matches!(language, "text" | "console" | "toml" | "ignore"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fences_that_open_a_block_of_rust_are_examples() {
        assert!(has_examples("/// ```\n/// let x = 1;\n/// ```\n"));
        assert!(has_examples("//! ```text\n//! a\n//! ```\n//! ```no_run\n//! b();\n//! ```\n"));
        assert!(!has_examples("//! ```text\n//! a\n//! ```\nlet fence = \"```\";\n"));
    }
}
