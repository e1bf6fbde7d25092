//! The project is tidy.

use xtask::tidy::{self, data, layers, prose, references, schemas, targets};

fn none(found: Result<Vec<String>, String>) {
    let found = found.expect("the check itself works");
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn crates_use_only_what_the_architecture_allows() {
    none(layers::dependencies());
}

#[test]
fn every_path_a_document_names_exists() {
    none(tidy::document_paths());
}

#[test]
fn libraries_are_built_for_tests_and_examples_only_if_they_have_some() {
    none(targets::keys());
}

#[test]
fn source_files_stay_short() {
    none(tidy::file_lengths());
}

#[test]
fn every_limit_that_is_referred_to_is_a_row_of_the_table() {
    none(references::limits());
}

#[test]
fn every_gap_has_rows_and_every_page_of_experiments_is_listed() {
    none(references::gaps());
    none(references::notes());
}

#[test]
fn every_key_and_column_of_data_is_read_and_every_schema_is_sound() {
    none(data::unread());
    none(schemas::sound());
}

#[test]
fn texts_avoid_the_phrases_of_the_list() {
    none(prose::phrases());
}
