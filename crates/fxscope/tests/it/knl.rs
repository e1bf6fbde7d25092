//! Knights Landing's memory: latencies and rates of its memory-side cache and of main memory.

use crate::common;

use common::kernel;
use common::timed::{Run, run};

/// Returns the counts of a region, all threads together.
fn count(run: &Run, region: &str, event: &str) -> f64 {
    let all = run.json["regions"].as_array().expect("regions");
    let region = all.iter().find(|r| r["name"] == region).expect("marked");
    region["events"][event].as_f64().expect("counted")
}

/// Runs a kernel on the machine with large pages, so that TLB misses do not matter.
fn on_knl(settings: &str, kernel_name: &str, arguments: &str) -> Run {
    let folder = tempfile::tempdir().expect("temporary folder");
    run(folder.path(), &format!("-m knl --set pages.bss=2MiB {settings}"), &kernel(kernel_name), arguments)
}

/// Returns the cycles of a dependent load from 16 MiB of data, twice the size of L2, and where its loads went.
fn chase(settings: &str) -> (f64, f64, f64) {
    const HOPS: f64 = 2_000.0;
    let run = on_knl(settings, "chase.elf", "footprint=16777216 hops=2000 state=warm");
    let per_hop = |event| count(&run, "chase", event) / HOPS;
    (per_hop("CPU_CYCLES"), per_hop("UNC_E_EDC_ACCESS.HIT"), per_hop("UNC_M_CAS_COUNT.RD"))
}

/// Returns the lines per second that Triad on the cores of a quarter exchanges with main memory, or the cache in front
/// of it.
fn triad(settings: &str, reads: &str, writes: &str) -> (f64, f64) {
    let run = on_knl(settings, "plain-threads.elf", "op=triad threads=16 n=700000 passes=2");
    let cycles = run.events("plain", "CPU_CYCLES").into_iter().max().expect("threads") as f64;
    let per_second = |event| count(&run, "plain", event) / (cycles / 1.3e9);
    (per_second(reads), per_second(writes))
}

#[test]
fn one_read_and_one_write_reach_what_the_memory_latency_checker_measured() {
    // knl-0013: 70.7 GB/s of the whole chip.
    let memory = &fxscope::machine::load("knl", &[]).expect("built in").tables.memory;
    let reads = memory.peak_bytes_per_second as f64 * memory.read_efficiency / 100.0;
    let both = 4.0 * 2.0 * reads / (1.0 + memory.write_cost);
    assert!((both / 70.7e9 - 1.0).abs() < 0.005, "{both}");
}

#[test]
fn scaled_down_every_level_of_the_hierarchy_is_smaller_and_as_fast() {
    let [large, small] = ["knl", "knl-small"].map(|name| fxscope::machine::load(name, &[]).expect("built in"));
    assert_eq!(small.l2.bytes, large.l2.bytes / 64);
    assert_eq!(small.memory_side_cache.bytes, large.memory_side_cache.bytes / 256);
    assert!(small.l1d.bytes < small.l2.bytes && small.l2.bytes < small.memory_side_cache.bytes);
    assert_eq!(small.memory, large.memory);
    let (a, b) = (&small.memory_side_cache, &large.memory_side_cache);
    assert_eq!((a.hit_nearest, a.miss_detect, a.read_efficiency), (b.hit_nearest, b.miss_detect, b.read_efficiency));
}

/// They take many seconds each.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_chase_has_the_latency_of_the_memory_that_holds_its_data() {
        let spec = fxscope::machine::load("knl", &[]).expect("built in");
        let near = |cycles: f64, expected: u64| assert!((cycles / expected as f64 - 1.0).abs() < 0.02, "{cycles}");
        let (cycles, hits, reads) = chase("");
        near(cycles, spec.memory_side_cache.hit_nearest);
        assert!(hits > 0.99 && reads < 0.01, "{hits} hits, {reads} reads of main memory a load");
        // No line stays in a cache until its next use.
        let (cycles, hits, reads) = chase("--set memory_side_cache.bytes=4KiB");
        near(cycles, spec.memory.latency_nearest);
        assert!(hits < 0.01 && reads > 0.99, "{hits} hits, {reads} reads of main memory a load");
        let (cycles, ..) = chase("--set memory_side_cache.bytes=4KiB --set memory.added_ns=325");
        // 325 ns at 1.3 GHz.
        near(cycles, spec.memory.latency_nearest + 423);
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn streams_of_a_quarters_cores_reach_the_rate_of_the_memory_that_holds_their_data() {
        let spec = fxscope::machine::load("knl", &[]).expect("built in");
        let rate = |peak: u64, efficiency: f64| peak as f64 * efficiency / 100.0 / 64.0;
        let near =
            |rate: f64, expected: f64| assert!((rate / expected - 1.0).abs() < 0.05, "{rate}, {expected} expected");
        let (reads, writes) = triad("", "UNC_E_EDC_ACCESS.HIT", "L2D_CACHE_WB");
        let cache = &spec.memory_side_cache;
        near(reads + writes * cache.write_cost, rate(cache.peak_bytes_per_second, cache.read_efficiency));
        let none = "--set memory_side_cache.bytes=4KiB";
        let (reads, writes) = triad(none, "UNC_M_CAS_COUNT.RD", "UNC_M_CAS_COUNT.WR");
        let memory = &spec.memory;
        near(reads + writes * memory.write_cost, rate(memory.peak_bytes_per_second, memory.read_efficiency));
    }
}
