//! Page sizes and placement of a program's memory, from the command line to the counts.

use crate::common;

use std::path::Path;

use common::{failure, json, kernel, output};
use serde_json::Value;

/// Returns the results of one pass of Triad over three arrays of 64 KiB, with these options before the program.
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
fn each_page_needs_one_walk_whatever_its_size() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let large = triad(folder.path(), &["--pages", "all=2MiB"]);
    let normal = triad(folder.path(), &["--pages", "all=64KiB"]);
    // The program starts at a multiple of 2 MiB. Its constants, variables and three arrays of 64 KiB, which do not
    // start at a page, take five pages of 64 KiB, or one of 2 MiB for each of three segments; the stack takes one of either.
    assert_eq!((walks(&normal), walks(&large)), (5 + 1, 3 + 1));
    assert_eq!(
        (&normal["settings"]["pages.bss"], &large["settings"]["pages.thread_stack"]),
        (&"64KiB".into(), &"2MiB".into())
    );
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
fn variables_without_effect_are_reported_in_the_notes() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let run = triad(folder.path(), &["-e", "XOS_MMM_L_PAGING_POLICY=at-once", "--membind", "5"]);
    let notes = run["notes"].as_array().expect("a list");
    let has = |text: &str| notes.iter().any(|note| note.as_str().is_some_and(|note| note.contains(text)));
    assert!(has("prepage:demand:prepage is used") && has("node 5 only"), "{notes:?}");
}

#[test]
fn the_pages_of_a_run_are_recorded_with_their_nodes_and_shown() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let run = triad(folder.path(), &["-o", "o.fxr", "--membind", "6"]);
    let pages = run["pages"].as_array().expect("a list");
    let bss = pages.iter().find(|row| row["segment"] == "bss").expect("a row");
    // The kernel has one pool of 8 MiB: four large pages, or five if it does not start at one.
    assert_eq!((bss["page_bytes"].as_u64(), bss["node"].as_u64()), (Some(2 << 20), Some(6)));
    assert!((4..=5).contains(&bss["pages"].as_u64().expect("counted")), "{bss}");
    let output = output(folder.path(), &["report", "--section", "pages", "o.fxr"]);
    let text = String::from_utf8(output.stdout).expect("text");
    let line = text.lines().find(|line| line.trim_start().starts_with("bss")).expect("a line");
    assert_eq!(line.split_whitespace().take(4).collect::<Vec<_>>(), ["bss", "2.000", "MiB", "6"], "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn memory_of_another_node_is_farther_away() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let cycles = |node: &str| {
        let program = kernel("chase.elf");
        let options = ["run", "--quiet", "--json", "out.json", "--membind", node, "--", &program];
        assert!(output(folder.path(), &[&options[..], &["footprint=65536", "hops=200"]].concat()).status.success());
        let run = json(&std::fs::read(folder.path().join("out.json")).expect("written"));
        run["regions"][1]["events"]["CPU_CYCLES"].as_u64().expect("counted")
    };
    let (near, far) = (cycles("4"), cycles("7"));
    // The thread runs on node 4. The ring takes longer than a hit in L2, on each of 200 hops.
    assert!(far > near + 200 * 46, "{near} {far}");
}

#[test]
fn settings_of_the_large_page_librarys_malloc_are_in_the_notes() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let run = triad(folder.path(), &["-e", "XOS_MMM_L_ARENA_FREE=2", "-e", "MALLOC_ARENA_MAX=4"]);
    let notes = run["notes"].as_array().expect("a list");
    let has = |text: &str| notes.iter().any(|note| note.as_str().is_some_and(|note| note.contains(text)));
    assert!(
        has("MALLOC_TRIM_THRESHOLD_=18446744073709551615") && has("MALLOC_ARENA_MAX=4 is used, not 1."),
        "{notes:?}"
    );
}

/// Returns the cycles of the regions of `maps.elf` with 8 blocks of 8 MiB, by name.
fn taking(folder: &Path, arena_free: &str) -> impl Fn(&str) -> u64 {
    let (variable, program) = (format!("XOS_MMM_L_ARENA_FREE={arena_free}"), kernel("maps.elf"));
    let args = ["run", "--quiet", "--json", "maps.json", "-e", &variable, "--", &program, "count=8"];
    assert!(output(folder, &args).status.success());
    let run = json(&std::fs::read(folder.join("maps.json")).expect("written"));
    move |name| {
        let regions = run["regions"].as_array().expect("a list");
        let region = regions.iter().find(|region| region["name"] == name).expect("marked");
        region["events"]["CPU_CYCLES"].as_u64().expect("counted")
    }
}

#[test]
fn allocating_memory_takes_the_time_to_clear_it_unless_the_program_kept_it() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let costs = fxscope::machine::load("a64fx", &[]).expect("built in");
    let cycles = |rate: u64| (64 << 20) * costs.clock.core_hz / rate;
    let clearing = cycles(costs.page_costs.clear_bytes_per_second);
    let freeing = cycles(costs.page_costs.free_bytes_per_second);
    // Eight system calls, and the loop around them with its first misses.
    let calls = 8 * costs.assumptions.system_call..8 * costs.assumptions.system_call + 20_000;
    let given_back = taking(folder.path(), "1");
    for (region, work) in [("take", clearing), ("give back", freeing), ("take again", clearing)] {
        assert!(calls.contains(&(given_back(region) - work)), "{region}: {}", given_back(region));
    }
    let kept = taking(folder.path(), "2");
    for (region, work) in [("take", clearing), ("give back", 0), ("take again", 0), ("give back again", 0)] {
        assert!(calls.contains(&(kept(region) - work)), "{region}: {}", kept(region));
    }
}

#[test]
fn a_bss_that_libraries_see_is_allocated_at_once_even_if_its_policy_is_demand() {
    const SOURCE: &str = "double data[4 << 20]; int main(void) { return data[1] != 0; }";
    let folder = tempfile::tempdir().expect("temporary folder");
    let demand = ["--mode", "functional", "-e", "XOS_MMM_L_PAGING_POLICY=demand:demand:demand"];
    let pages = |flags: &[&str]| {
        let program = common::compile(folder.path(), "program", flags, SOURCE);
        let args = [&["run", "--quiet", "--json", "out.json"], &demand[..], &["--", &program]].concat();
        let ran = output(folder.path(), &args);
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let run = json(&std::fs::read(folder.path().join("out.json")).expect("written"));
        let pages = run["pages"].as_array().expect("a list").iter().filter(|pages| pages["segment"] == "bss");
        let count: u64 = pages.map(|pages| pages["pages"].as_u64().expect("a number")).sum();
        (count, run["notes"].to_string().contains("demand has no effect on .bss"))
    };
    // 32 MiB in pages of 2 MiB, of which the program touches one and the loader perhaps its neighbour.
    let (exported, is_told) = pages(&["-O1", "-rdynamic"]);
    assert!(exported >= 16 && is_told, "{exported} pages");
    for flags in [&["-O1"][..], &["-O1", "-static"]] {
        let (touched, is_told) = pages(flags);
        assert!(touched <= 3 && !is_told, "{flags:?}: {touched} pages");
    }
}
