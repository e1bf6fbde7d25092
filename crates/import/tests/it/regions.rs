//! Imports of measurements by region: PAPI's high-level interface, LIKWID.

use std::path::Path;
use std::sync::LazyLock;

use fxscope_import::{Machine, Options, Source, likwid, papi};
use fxscope_record::{Region, Run};
use proptest::prelude::*;

static MACHINE: LazyLock<Machine> = LazyLock::new(|| {
    let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
    Machine {
        name: "a64fx".to_owned(),
        path: None,
        pmu: spec.pmu.clone(),
        constants: fxscope_pmu::constants(&spec),
        power_mode: None,
    }
});

fn golden(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/import").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

type Reader = fn(&[Source<'_>], &Machine, &Options) -> Result<Vec<Run>, fxscope_import::FileError>;

fn read(reader: Reader, files: &[(&str, &[u8])]) -> Result<Vec<Run>, String> {
    let sources: Vec<Source<'_>> = files.iter().map(|&(name, bytes)| Source { name, bytes }).collect();
    reader(&sources, &MACHINE, &Options::default()).map_err(|e| e.to_string())
}

/// Counts of a name by thread.
fn counts(region: &Region, name: &str) -> Vec<u64> {
    (0..region.threads.len()).map(|thread| region.count(thread, name).expect(name)).collect()
}

#[test]
fn papi_s_own_output_gives_regions_whose_calls_add_up() {
    let runs = read(papi::read, &[("software.json", &golden("papi/software.json"))]).expect("PAPI's output");
    let seen: Vec<_> = runs[0].regions.iter().map(|r| (r.name.as_str(), r.calls)).collect();
    assert_eq!(seen, [("computation", 3), ("second part", 1)]);
    let first = &runs[0].regions[0];
    assert_eq!(counts(first, "perf::PAGE-FAULTS"), [1]);
    assert_eq!(first.count(0, "CPU_CYCLES"), None, "PAPI's cycles are not those of the core");
    // Nanoseconds of a 100 MHz timer.
    assert_eq!(counts(first, "CNTVCT"), [(85_698_387u64 + 104_178_819 + 97_774_842 + 5) / 10]);
}

#[test]
fn papi_s_files_of_several_ranks_are_processes_of_one_run() {
    let files: [(&str, &[u8]); 2] =
        [("out/rank_0.json", &golden("papi/rank_0.json")), ("out/rank_1.json", &golden("papi/rank_1.json"))];
    let runs = read(papi::read, &files).expect("two ranks");
    assert_eq!(runs.len(), 1);
    let solver = runs[0].region("solver").expect("there");
    assert_eq!(solver.calls, 2);
    assert_eq!(solver.threads.iter().map(|t| t.process).collect::<Vec<_>>(), [0, 0, 1, 1]);
    assert_eq!(counts(solver, "CPU_CYCLES"), [6_000_000, 6_000_002, 6_000_020, 6_000_022]);
    assert_eq!(counts(solver, "FP_SCALE_OPS_SPEC"), [3_000; 4]);
}

#[test]
fn likwid_s_regions_have_times_calls_and_counts_by_hardware_thread() {
    let runs = read(likwid::read, &[("markers.csv", &golden("likwid/markers.csv"))]).expect("LIKWID's output");
    let [run] = &runs[..] else { panic!("one run") };
    let seen: Vec<_> = run.regions.iter().map(|r| (r.name.as_str(), r.calls)).collect();
    assert_eq!(seen, [("solver", 3), ("a, b", 1)]);
    let solver = &run.regions[0];
    assert_eq!(solver.threads.iter().map(|t| t.cpu).collect::<Vec<_>>(), [12, 13]);
    assert_eq!(counts(solver, "CPU_CYCLES"), [2_000_000, 1_800_000]);
    assert_eq!(counts(solver, "CNTVCT"), [100_000, 90_000]);
    assert_eq!(
        run.regions[1].passes[0].names().iter().collect::<Vec<_>>(),
        solver.passes[0].names().iter().collect::<Vec<_>>()
    );
}

#[test]
fn likwid_s_groups_are_passes_and_its_json_says_the_same() {
    let runs = read(likwid::read, &[("groups.csv", &golden("likwid/groups.csv"))]).expect("LIKWID's output");
    let all = runs[0].region("all").expect("the whole program");
    assert_eq!(
        all.passes.iter().map(|pass| pass.get(0, "CPU_CYCLES")).collect::<Vec<_>>(),
        [Some(2_000_000), Some(2_000_400)]
    );
    assert_eq!(all.passes.iter().map(|pass| pass.get(0, "CNTVCT")).collect::<Vec<_>>(), [Some(100_000), Some(100_020)]);
    let json = read(likwid::read, &[("groups.json", &golden("likwid/groups.json"))]).expect("LIKWID's JSON");
    assert_eq!(json[0].regions[0].passes[0], all.passes[0]);
    let older = String::from_utf8(golden("likwid/groups.csv")).expect("text").replace("HWThread", "Core");
    let older = read(likwid::read, &[("groups.csv", older.as_bytes())]).expect("version 4");
    assert_eq!(older[0].regions, runs[0].regions);
}

#[test]
fn errors_name_their_location() {
    let papi_cases = [
        (
            "{",
            "f: line 1: is not JSON, which PAPI writes to papi_hl_output/rank_*.json: EOF while parsing an object at line 1 column 1",
        ),
        ("{}", "f: is not output of PAPI's high-level interface: it has no 'threads'"),
        (r#"{"threads":{}}"#, "f: has no regions: the program did not mark any, or PAPI could not count"),
        (
            r#"{"threads":{"0":{"regions":{"0":{"name":"a","real_time_nsec":"-1"}}}}}"#,
            "f: region 0 of thread 0: '-1' is not a count of real_time_nsec",
        ),
        (
            r#"{"threads":{"0":{"regions":{"0":{"name":"a","PAPI_TOT_CYC":"1"}}}}}"#,
            "f: region 0 of thread 0 has no real_time_nsec",
        ),
    ];
    for (text, message) in papi_cases {
        assert_eq!(read(papi::read, &[("f", text.as_bytes())]).expect_err(text), message);
    }
    let good = String::from_utf8(golden("likwid/groups.csv")).expect("text");
    let cut: String = good.lines().take(7).map(|line| format!("{line}\n")).collect();
    let likwid_cases = [
        ("hello".to_owned(), "f: is not output of LIKWID: CSV (-o FILE.csv, -O) has lines that begin with TABLE"),
        (cut, "f: line 7: the file ends within a table: it is truncated"),
        (good.replace("PMC1,2000000", "PMC1,-"), "f: line 7: '-' is not a count of CPU_CYCLES"),
        (good.replace("PMC1,2000000", "PMC1,-3"), "f: line 7: -3 is not a count of CPU_CYCLES"),
        (
            good.replace("PMC1,2000000", "PMC1"),
            "f: line 7: CPU_CYCLES: a value for each of 1 hardware threads belongs here",
        ),
        (
            good.replace("HWThread 12", "GPU 0"),
            "f: line 6: 'GPU 0' is not a hardware thread such as 'HWThread 12', or 'host:0:12' of likwid-mpirun",
        ),
        ("{}".to_owned(), "f: is not JSON of likwid-perfctr: it has no 'CPU list'"),
    ];
    for (text, message) in likwid_cases {
        assert_eq!(read(likwid::read, &[("f", text.as_bytes())]).expect_err(&text), message);
    }
}

#[test]
fn passes_with_other_regions_are_not_mixed() {
    let text = String::from_utf8(golden("likwid/markers.csv")).expect("text");
    let other = text.replace("Region solver", "Region copy").replace("INST_RETIRED", "L2D_CACHE_REFILL");
    let message = read(likwid::read, &[("a", text.as_bytes()), ("b", other.as_bytes())]).expect_err("two programs");
    assert_eq!(message, "b: the region 'copy' is in b only, not in a: they are of different programs");
}

proptest! {
    #[test]
    fn a_damaged_file_gives_a_run_or_a_message(
        case in proptest::sample::select(vec!["papi/rank_0.json", "likwid/markers.csv", "likwid/groups.csv", "likwid/groups.json"]),
        at in any::<usize>(),
        with in "[-0-9,.a-zA-Z\"{}\\[\\] \n]{0,8}",
        without in 0usize..20,
    ) {
        let mut bytes = golden(case);
        let at = at % bytes.len();
        let end = (at + without).min(bytes.len());
        bytes.splice(at..end, with.bytes());
        let reader: Reader = if case.starts_with("papi") { papi::read } else { likwid::read };
        let _ = read(reader, &[("f", &bytes)]);
    }
}
