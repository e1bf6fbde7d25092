//! Page sizes and placement of a program's memory, from the command line to the counts.

mod common;

use std::path::Path;

use common::{failure, json, kernel, output};
use serde_json::Value;

/// What a run of one pass of Triad over three arrays of 64 KiB gives, with these options before the program.
fn triad(folder: &Path, options: &[&str]) -> Value {
    let program = kernel("triad-l2.elf");
    let args = [&["run", "--quiet", "--json", "out.json"], options, &["--", &program, "n=8192", "passes=1"]].concat();
    let output = output(folder, &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    json(&std::fs::read(folder.join("out.json")).expect("written"))
}

fn walks(run: &Value) -> u64 {
    run["regions"][0]["events"]["L2D_TLB_REFILL"].as_u64().expect("counted")
}

#[test]
fn each_page_of_the_segments_named_by_pages_is_walked_for_once() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let large = triad(folder.path(), &["--pages", "all=2MiB"]);
    let normal = triad(folder.path(), &["--pages", "all=2MiB,bss=64KiB"]);
    // Three arrays side by side, each of as many bytes as a page of 64 KiB: four pages when they do not start with one.
    let more = walks(&normal) - walks(&large);
    assert!((2..=3).contains(&more), "{more}");
    assert_eq!(normal["settings"]["pages.bss"], "64KiB");
    assert_eq!(normal["settings"]["pages.thread_stack"], "2MiB");
}

#[test]
fn a_wrong_page_size_or_segment_is_answered_with_the_list() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-l1.elf");
    let message = |pages: &str| failure(folder.path(), &["run", "--pages", pages, "--", &program]).1;
    let sizes = message("bss=8KiB");
    assert!(sizes.contains("'8KiB'; choose from 4KiB, 64KiB, 2MiB, 32MiB, 512MiB, 1GiB, 16GiB"), "{sizes}");
    let segments = message("bbs=2MiB");
    assert!(
        segments.contains("choose from text, data, bss, heap, stack, thread_stack, mmap, shared, all"),
        "{segments}"
    );
    assert!(message("2MiB").contains("SEGMENT=SIZE"));
}

#[test]
fn nodes_that_do_not_exist_are_answered_with_those_that_do() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-l1.elf");
    for option in ["--membind", "--interleave"] {
        let (status, message) = failure(folder.path(), &["run", option, "3", "--", &program]);
        assert_eq!(status, 125, "{message}");
        assert_eq!(message, format!("fxscope: {option} 3: there is no node 3; the machine has nodes 4-7\n"));
    }
    let (status, message) = failure(folder.path(), &["run", "--membind", "4", "--interleave", "5", "--", &program]);
    assert!(status == 2 && message.contains("cannot be used with"), "{message}");
}

#[test]
fn variables_that_have_no_effect_are_told_in_the_notes() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let run = triad(folder.path(), &["-e", "XOS_MMM_L_PAGING_POLICY=at-once", "--membind", "5"]);
    let notes = run["notes"].as_array().expect("a list");
    let has = |text: &str| notes.iter().any(|note| note.as_str().is_some_and(|note| note.contains(text)));
    assert!(has("prepage:demand:prepage holds") && has("node 5 only"), "{notes:?}");
}
