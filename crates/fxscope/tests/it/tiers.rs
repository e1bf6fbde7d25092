//! Memory tiers: latency and bandwidth as programs measure them, and what is placed there.

use crate::common;

use common::timed::{Run, run};
use common::{compile, failure, fxscope, json, kernel};
use serde_json::Value;

const GB: f64 = 1e9;

/// Runs a kernel with a tier, large pages and further options.
fn with_tier(tier: &str, options: &str, name: &str, arguments: &str) -> Run {
    let folder = tempfile::tempdir().expect("temporary folder");
    let options = format!("--set pages.bss=2MiB --memory-tier {tier} {options}");
    run(folder.path(), &options, &kernel(name), arguments)
}

/// Returns the counts of a region, all threads together.
fn count(run: &Run, region: &str, event: &str) -> f64 {
    let all = run.json["regions"].as_array().expect("regions");
    let region = all.iter().find(|r| r["name"] == region).expect("marked");
    region["events"][event].as_f64().expect("counted")
}

#[test]
fn a_chase_through_the_tier_measures_its_latency() {
    for (ns, cycles) in [(250, 500.0), (1000, 2000.0)] {
        let run = with_tier(
            &format!("cxl:{ns}ns,32GB/s"),
            "--membind cxl",
            "chase.elf",
            "footprint=16777216 hops=500 state=warm",
        );
        let each = count(&run, "chase", "CPU_CYCLES") / 500.0;
        assert!((each / cycles - 1.0).abs() < 0.01, "{each} cycles for {ns} ns");
    }
}

/// Returns the bytes per second that twelve threads read and write in a loop.
fn rates(tier: &str, options: &str, operation: &str) -> (f64, f64) {
    let arguments = format!("op={operation} threads=12 n=1320000 passes=1");
    let run = with_tier(tier, options, "plain-threads.elf", &arguments);
    let cycles = run.events("plain", "CPU_CYCLES").into_iter().max().expect("threads") as f64;
    let rate = |events: [&str; 2]| {
        events.iter().map(|event| count(&run, "plain", event)).sum::<f64>() * 256.0 / (cycles / 2e9)
    };
    (rate(["TIER_READ", "MAIN_MEMORY_READ"]), rate(["TIER_WRITE", "MAIN_MEMORY_WRITE"]))
}

fn near(rate: f64, gb: f64, tolerance: f64) {
    assert!((rate / (gb * GB) - 1.0).abs() < tolerance, "{} GB/s, not {gb}", rate / GB);
}

/// Takes some ten seconds.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn advice_is_a_page_with_a_chart_and_lines_of_values() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let chase = kernel("chase.elf");
        let advise = |format: &str| {
            let options = ["latency", "advise", "-q", "--memory-tier", "cxl:250ns,32GB/s", "--format", format, "--"];
            let mut command = fxscope(folder.path(), &[&options[..], &[&chase, "8388608", "200", "cold"]].concat());
            let output = command.output().expect("it runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).expect("text")
        };
        assert!(advise("html").contains("data-chart="));
        let csv = advise("csv");
        assert!(
            csv.lines().any(|line| line.starts_with("Each object alone in the tier,variable nodes,predicted loss,")),
            "{csv}"
        );
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn pages_in_turns_on_two_tiers_of_equal_speed_have_the_bandwidth_of_both() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let both = "--set pages.bss=64KiB --memory-tier a:250ns,20GB/s --memory-tier b:250ns,20GB/s --interleave a,b";
        let run = run(folder.path(), both, &kernel("plain-threads.elf"), "op=load threads=12 n=5280000 passes=1");
        let cycles = run.events("plain", "CPU_CYCLES").into_iter().max().expect("threads") as f64;
        // A thread reads a page of one of them at a time, so that at times one has less to do.
        near(count(&run, "plain", "TIER_READ") * 256.0 / (cycles / 2e9), 40.0, 0.06);
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_run_on_several_host_threads_has_the_same_bandwidth() {
        near(rates("cxl:250ns,32GB/s", "--membind cxl --host-threads 4", "load").0, 32.0, 0.03);
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn advice_predicts_the_loss_of_a_table_that_is_looked_up_and_of_an_array_that_is_read_in_order() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let program = compile(folder.path(), "data", &["-O2", "-static"], SOURCE);
        let options = [
            "latency",
            "advise",
            "--memory-tier",
            "cxl:400ns,8GB/s,write=2GB/s",
            "--check",
            "--no-cache",
            "--format",
            "json",
        ];
        let output = fxscope(folder.path(), &[&options[..], &["--", &program]].concat()).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = json(&output.stdout);
        let objects = said["tables"][0]["rows"].as_array().expect("rows");
        let heap = objects.iter().find(|object| object["data"].as_str().is_some_and(|name| name.contains("heap")));
        assert!(heap.is_some_and(|heap| heap["simulated"].as_f64() > Some(0.05)), "its lines are written: {said}");
        for object in objects.iter().filter(|object| object["predicted loss"].is_number()) {
            let (predicted, simulated) = (&object["predicted loss"], &object["simulated"]);
            let [predicted, simulated] = [predicted, simulated].map(|loss| loss.as_f64().expect("a loss"));
            let factor = (1.0 + predicted) / (1.0 + simulated);
            assert!((0.8..1.25).contains(&factor), "{object}");
        }
        assert!(objects.iter().filter(|object| object["simulated"].is_number()).count() >= 3, "{said}");
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn loads_and_copies_reach_the_limits_of_both_directions() {
        near(rates("cxl:250ns,32GB/s", "--membind cxl", "load").0, 32.0, 0.02);
        // A copy reads two lines for each that it writes.
        near(rates("cxl:250ns,32GB/s,write=4GB/s", "--membind cxl", "copy").1, 4.0, 0.03);
        let (read, written) = rates("cxl:250ns,32GB/s,total=24GB/s", "--membind cxl", "copy");
        near(read + written, 24.0, 0.03);
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn pages_go_to_the_tier_when_the_fast_memory_is_full() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let program = compile(folder.path(), "data", &["-O2", "-static"], SOURCE);
        for paging in ["prepage:prepage:prepage", "demand:demand:demand"] {
            let options =
                format!("--memory-tier cxl:250ns,32GB/s --fast-memory 16MiB -e XOS_MMM_L_PAGING_POLICY={paging}");
            let ran = run(folder.path(), &options, &program, "");
            let pages = ran.json["pages"].as_array().expect("a list");
            let on = |node: u64| {
                let of = pages.iter().filter(|pages| pages["node"] == node);
                of.map(|of| of["pages"].as_u64().unwrap() * of["page_bytes"].as_u64().unwrap()).sum::<u64>()
            };
            assert!(on(4) <= 16 << 20 && on(8) > 8 << 20, "{paging}: {pages:?}");
            assert!(count(&ran, "all", "TIER_WRITE") > 10_000.0, "{paging}: the program has written there");
        }
        let (_, error) = failure(folder.path(), &["run", "--fast-memory", "16MiB", "--", &program]);
        assert!(error.contains("no memory tier"), "{error}");
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_variable_and_heap_blocks_are_on_the_node_that_they_are_placed_on() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let program = compile(folder.path(), "data", &["-O2", "-static"], SOURCE);
        let options = "--memory-tier cxl:250ns,32GB/s --place table=cxl,malloc@main=cxl";
        let placed = run(folder.path(), options, &program, "");
        let [bss, mmap] = ["bss", "mmap"].map(|segment| on_node(&placed.json, segment, 8));
        // Pages of 2 MiB at both ends belong to others, too.
        for bytes in [bss, mmap] {
            assert!(bytes.abs_diff(8 << 20) <= 2 << 20, "{bytes}");
        }
        let read = count(&placed, "all", "TIER_READ") * 256.0;
        assert!(read > f64::from(16 << 20), "both were read into the caches when they were written: {read}");
        let notes = placed.json["notes"].to_string();
        assert!(notes.contains("--place table: ") && notes.contains("--place malloc@main: "), "{notes}");

        let (_, error) = failure(folder.path(), &["run", "--place", "table=cxl", "--", &program]);
        assert!(error.contains("'cxl' names no nodes; the machine has 4-7"), "{error}");
        let small = ["run", "--memory-tier", "cxl:250ns,32GB/s", "--place", "table:64=cxl", "--", &program];
        let (_, error) = failure(folder.path(), &small);
        assert!(error.contains("fills more than half of no page"), "{error}");
    }
}

/// `table` is looked up at random, `order` read in order, `heap` written once.
const SOURCE: &str = "\
#include <stdlib.h>
#define N (1 << 20)
static double table[N], order[N];
int main(void)
{
    double *heap = malloc(N * sizeof *heap), sum = 0;
    unsigned at = 1;
    for (int i = 0; i < N; i++) {
        heap[i] = i;
        table[i] = order[i] = 1;
    }
    for (int i = 0; i < N / 16; i++) {
        at = at * 1664525u + 1013904223u;
        at += (unsigned)table[at >> 12];
    }
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < N; i++)
            sum += order[i];
    return sum == 2.0 * N && at && heap[3] == 3 ? 0 : 1;
}
";

/// Returns the bytes of pages of a segment on a node.
fn on_node(said: &Value, segment: &str, node: u64) -> u64 {
    let all = said["pages"].as_array().expect("a list").iter();
    let of = all.filter(|pages| pages["segment"] == segment && pages["node"] == node);
    of.map(|pages| pages["bytes"].as_u64().expect("bytes")).sum()
}

#[test]
fn programs_see_a_tier_as_a_node_without_cpus_and_can_take_memory_from_it() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let tier = ["run", "-q", "--memory-tier", "cxl:250ns,32GB/s,size=16GiB", "--json", "run.json", "--", "numactl"];
    let shown = fxscope(folder.path(), &[&tier[..], &["-H"]].concat()).output().expect("it runs");
    let text = String::from_utf8(shown.stdout).expect("text");
    assert!(text.starts_with("available: 5 nodes (4-8)\n") && text.contains("\nnode 8 size: 16384 MB\n"), "{text}");
    // 250 ns for the 128 ns of local memory, whose distance is 10.
    let distances = |node: &str| text.lines().find(|line| line.trim_start().starts_with(node)).unwrap_or_default();
    assert_eq!(distances("4:").split_whitespace().next_back(), Some("19"), "{text}");
    assert!(distances("8:").ends_with("19  10 "), "{text}");

    let chase = kernel("chase.elf");
    let bound = ["--membind=8", &chase, "footprint=65536", "hops=100", "state=warm"];
    let ran = fxscope(folder.path(), &[&tier[..], &bound].concat()).output().expect("it runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let said = json(&std::fs::read(folder.path().join("run.json")).expect("written"));
    // Node 4 has what numactl itself needs.
    assert!(on_node(&said, "bss", 8) > 64 << 20 && on_node(&said, "bss", 4) < 1 << 20, "{}", said["pages"]);
}

#[test]
fn what_describes_no_tier_is_told_before_the_run() {
    let folder = tempfile::tempdir().expect("temporary folder");
    for (tier, why) in [
        ("cxl:250ns", "write NAME:LATENCY,BANDWIDTH"),
        ("cxl:5ns,32GB/s", "the path through L2"),
        ("8:250ns,32GB/s", "a letter first"),
    ] {
        let (_, error) = failure(folder.path(), &["run", "--memory-tier", tier, "--", &kernel("chase.elf")]);
        assert!(error.contains(why), "{error}");
    }
    let advise = ["latency", "advise", "--", &kernel("chase.elf")];
    let (_, error) = failure(folder.path(), &advise);
    assert!(error.contains("no memory tier"), "{error}");
}
