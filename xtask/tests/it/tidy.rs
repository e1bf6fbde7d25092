//! The project is tidy.

use xtask::tidy;

fn none(found: Result<Vec<String>, String>) {
    let found = found.expect("the check itself works");
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn crates_use_only_what_the_architecture_allows() {
    none(tidy::dependencies());
}

#[test]
fn every_path_a_document_names_exists() {
    none(tidy::document_paths());
}

#[test]
fn source_files_stay_short() {
    none(tidy::file_lengths());
}
