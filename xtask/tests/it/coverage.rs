//! The instruction tables are current and complete.

use xtask::coverage;

fn none(found: Result<Vec<String>, String>) {
    let found = found.expect("the machine can be read");
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn every_encoding_has_a_timing_row_for_all_its_operands() {
    none(coverage::gaps());
}

#[test]
fn the_tables_of_instructions_are_up_to_date() {
    none(coverage::stale());
}

#[test]
fn every_timing_row_is_used_by_some_encoding() {
    // The manual lists bitfield moves that are not aliases; every one of them is an alias.
    let not_encodable = ["base:SBFM", "base:UBFM [otherwise]"];
    let unused = coverage::unused_rows().expect("the machine can be read");
    assert_eq!(unused, not_encodable);
}
