//! `fxscope pages experiment`: output and errors.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn experiment(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fxscope"));
    command.current_dir(root).args(["pages", "experiment"]).args(arguments);
    command.output().expect("fxscope starts")
}

fn message(arguments: &[&str]) -> String {
    let output = experiment(arguments);
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).expect("text")
}

fn found(arguments: &[&str]) -> Value {
    let output = experiment(&[arguments, &["--json", "-"]].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Returns the row of a table with this label.
fn row<'a>(found: &'a Value, table: usize, heading: &str, label: &str) -> &'a Value {
    let rows = found["tables"][table]["rows"].as_array().expect("rows");
    rows.iter().find(|row| row[heading] == label).expect("a row of this label")
}

#[test]
fn without_a_name_all_are_listed_as_for_an_unknown_one() {
    let list = String::from_utf8(experiment(&[]).stdout).expect("text");
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(
        ["stride", "draws", "steps", "cost", "masked", "blocks", "largepage"].iter().all(|name| names.contains(name)),
        "{list}"
    );
    assert!(list.lines().all(|line| line.len() <= 100));
    let message = message(&["strides"]);
    assert!(message.contains("unknown experiment 'strides'; choose from stride, draws"), "{message}");
}

#[test]
fn eleven_segments_take_eleven_pages_of_the_largest_size() {
    let found = found(&["cost"]);
    let taken = |size: &str| row(&found, 1, "pages", size)["taken"].as_f64().expect("a number");
    assert_eq!(["4MiB", "32MiB", "256MiB"].map(taken), [44.0, 352.0, 2816.0]);
    assert_eq!(row(&found, 0, "segment", "threads")["pages"], 8.0);
    assert!(found["machine_note"].as_str().expect("text").contains("instruction behaviour is that of A64FX"));
}

#[test]
fn settings_override_those_of_the_experiment() {
    // With a separate TLB for pages of 4 MiB, 64 arrays in larger pages have 16 entries for themselves.
    let found = found(&["draws", "--draws", "2", "--sizes", "4MiB,256MiB", "--set", "tlb.l2_only_sizes=4MiB"]);
    let slow = row(&found, 0, "pages", "256MiB");
    assert!(slow["most misses, %"].as_f64().expect("a number") > 1.0, "{slow}");
    assert_eq!(found["settings"]["tlb.l2_only_sizes"], "4MiB");
}

#[test]
fn sizes_and_memory_that_the_machine_lacks_are_named_with_what_it_has() {
    let sizes = message(&["stride", "--sizes", "2MiB,256MiB"]);
    assert!(sizes.contains("--sizes: k-computer has no pages of size '2MiB'; choose from 8KiB, 4MiB"), "{sizes}");
    let one = message(&["steps", "--sizes", "4MiB"]);
    assert!(one.contains("give at least two"), "{one}");
    let node = message(&["cost", "--set", "topology.node_bytes=2GiB"]);
    assert!(node.contains("11 segments takes 2816MiB of memory and k-computer has 2GiB; reduce it"), "{node}");
    for name in ["stride", "draws", "steps"] {
        let span = message(&[name, "--span", "17GiB"]);
        assert!(span.contains("takes 17GiB of memory and k-computer has 16GiB; reduce it with --span"), "{span}");
    }
    let served = message(&["draws", "--set", "tlb.l2_only_sizes=2MiB"]);
    assert!(served.contains("tlb.l2_only_sizes is [2097152]; it must be page sizes of the machine"), "{served}");
    let folder = message(&["cost", "--programs", "no/such"]);
    assert!(folder.contains("--programs no/such: not a folder"), "{folder}");
}

#[test]
fn a_page_has_a_plot_for_the_tables() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let page = folder.path().join("cost.html");
    assert!(experiment(&["cost", "--html", page.to_str().expect("text")]).status.success());
    let text = std::fs::read_to_string(page).expect("written");
    assert!(text.contains("data-chart=") && text.contains("k_tlb-0019") && text.contains("Memory taken"));
}

#[test]
fn on_a_machine_that_translates_no_inactive_elements_it_makes_no_difference_and_the_text_says_so() {
    let found = found(&["masked", "-m", "a64fx", "--sizes", "64KiB,2MiB"]);
    let cycles = |way: &str| row(&found, 0, "loop", way)["64KiB"].as_f64().expect("a number");
    assert!((cycles("mask, never allocated") / cycles("mask, allocated") - 1.0).abs() < 0.001, "{found:#}");
    assert!(found["seen"][0].as_str().expect("text").contains("tlb.inactive_lookup"));
}

#[test]
fn experiments_that_compare_two_sizes_require_two() {
    for name in ["blocks", "largepage"] {
        let message = message(&[name, "--sizes", "2MiB"]);
        assert!(message.contains("--sizes: give at least two"), "{message}");
    }
}

#[test]
fn tables_on_a_terminal_have_titles_and_units() {
    let text = String::from_utf8(experiment(&["cost"]).stdout).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].ends_with("Page map with the largest pages, MiB"), "{text}");
    assert!(lines.iter().any(|line| line.ends_with("All segments, MiB")), "{text}");
    assert!(lines.iter().all(|line| line.chars().count() <= 100), "{text}");
}

/// They take longest.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn addresses_of_arrays_matter_with_small_pages_but_not_with_fewer_pages_than_sets() {
        let arguments = ["draws", "--draws", "12", "--sizes", "4MiB,256MiB"];
        let first = found(&arguments);
        let spread = |size: &str| row(&first, 0, "pages", size)["spread"].as_f64().expect("a number");
        assert!(spread("4MiB") > 1.2, "{first}");
        assert!(spread("256MiB") < 1.001 && row(&first, 0, "pages", "256MiB")["most misses, %"] == 0.0, "{first}");
        assert_eq!(first, found(&[&arguments[..], &["--jobs", "1"]].concat()), "and the same each time");
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_masked_store_to_memory_that_was_never_allocated_misses_each_time_with_any_page_size() {
        let found = found(&["masked"]);
        let cycles = |way: &str, size: &str| row(&found, 0, "loop", way)[size].as_f64().expect("a number");
        let absent = cycles("mask, never allocated", "4MiB");
        // Page sizes only change a few first misses of the rest.
        let alike = |size| (cycles("mask, never allocated", size) / absent - 1.0).abs() < 0.001;
        assert!(["32MiB", "256MiB"].into_iter().all(alike), "{found:#}");
        // Allocated memory, or the condition before the loop, costs as much as the loop alone.
        let (mask, branch) = (cycles("mask, allocated", "4MiB"), cycles("condition before the loop", "4MiB"));
        assert!((mask / branch - 1.0).abs() < 0.02 && absent > 50.0 * mask, "{found:#}");
        // One of 73 accesses, which is NICAM's rate.
        let rate = row(&found, 1, "loop", "mask, never allocated")["4MiB"].as_f64().expect("a number");
        assert!((rate - 100.0 / 73.0).abs() < 0.01, "{rate}");
    }
}
