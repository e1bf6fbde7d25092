//! Kinds of files that people have: every one is read with its right counts, or refused with a message that says why.

use std::path::Path;
use std::sync::LazyLock;

use fxscope_import::{FileError, Machine, Options, Source, fapp, likwid, papi, perf};
use fxscope_record::{Region, Run};
use proptest::prelude::*;

type Reader = fn(&[Source<'_>], &Machine, &Options) -> Result<Vec<Run>, FileError>;

static MACHINES: LazyLock<[Machine; 2]> = LazyLock::new(|| {
    ["a64fx", "knl"].map(|name| {
        let spec = fxscope_machine::load(name, &[]).expect("built in");
        Machine {
            name: name.to_owned(),
            path: None,
            pmu: spec.pmu.clone(),
            constants: fxscope_pmu::constants(&spec),
            power_mode: None,
        }
    })
});

fn machine(name: &str) -> &'static Machine {
    MACHINES.iter().find(|machine| machine.name == name).expect("one of these")
}

fn golden(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/import").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn import(reader: Reader, machine_name: &str, name: &str, bytes: &[u8], options: &Options) -> Result<Run, String> {
    let mut runs = reader(&[Source { name, bytes }], machine(machine_name), options).map_err(|e| e.to_string())?;
    assert_eq!(runs.len(), 1, "{name}");
    Ok(runs.remove(0))
}

fn run(reader: Reader, name: &str) -> Run {
    import(reader, "a64fx", name, &golden(name), &Options::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// Counts of a name by thread.
fn counts(region: &Region, name: &str) -> Vec<Option<u64>> {
    (0..region.threads.len()).map(|thread| region.count(thread, name)).collect()
}

fn has_note(run: &Run, begin: &str) -> bool {
    run.notes.iter().any(|note| note.starts_with(begin))
}

/// Line ends and marks that editors leave.
fn edited(bytes: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
    let utf_16 = std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    vec![text.replace('\n', "\r\n").into_bytes(), marked, utf_16]
}

const STREAM: [(&str, u64); 3] =
    [("CPU_CYCLES", 7_654_321), ("INST_RETIRED", 9_876_543), ("FP_SCALE_OPS_SPEC", 400_000)];

#[test]
fn perfs_text_is_read_in_every_locale() {
    for name in ["locale-fr.txt", "locale-fr-old.txt", "locale-ch.txt", "locale-de.txt", "locale-latin1.txt"] {
        let run = run(perf::read, &format!("perf/{name}"));
        for (event, count) in STREAM {
            assert_eq!(run.regions[0].count(0, event), Some(count), "{name}");
        }
        // 3.83 ms of 100 million ticks a second.
        assert_eq!(run.regions[0].count(0, "CNTVCT"), Some(383_000), "{name}");
        assert_eq!(run.command, ["./stream", "4"], "{name}");
    }
}

#[test]
fn perfs_separated_values_are_read_with_any_separator() {
    for separator in ["slash", "colon", "blank", "at", "pair", "bars"] {
        let run = run(perf::read, &format!("perf/separator-{separator}.csv"));
        for (event, count) in STREAM {
            assert_eq!(run.regions[0].count(0, event), Some(count), "{separator}");
        }
    }
}

#[test]
fn files_that_an_editor_has_saved_read_as_before() {
    let files: [(Reader, &str); 8] = [
        (perf::read, "perf/a64fx.txt"),
        (perf::read, "perf/a64fx.csv"),
        (perf::read, "perf/a64fx.json"),
        (perf::read, "perf/separator-blank.csv"),
        (likwid::read, "likwid/groups.csv"),
        (likwid::read, "likwid/tables.txt"),
        (likwid::read, "likwid/timeline.txt"),
        (papi::read, "papi/version6.json"),
    ];
    for (reader, name) in files {
        let before = run(reader, name);
        for bytes in edited(&golden(name)) {
            let after = import(reader, "a64fx", name, &bytes, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(after.regions, before.regions, "{name}");
        }
    }
}

#[test]
fn french_values_between_commas_keep_their_decimals() {
    let text = "0,31,msec,task-clock,306721,100,00,0,25,CPUs utilized\n2000000,,cycles,0,91%,1000000,100,00,2,GHz\n";
    let run = import(perf::read, "a64fx", "f", text.as_bytes(), &Options::default()).expect("perf stat -x,");
    assert_eq!(run.regions[0].count(0, "CPU_CYCLES"), Some(2_000_000));
    assert!(has_note(&run, "no counts of events, and left out: task-clock (msec)"), "{:?}", run.notes);
    let partly = text.replace("1000000,100,00", "1000000,50,00");
    let message = import(perf::read, "a64fx", "f", partly.as_bytes(), &Options::default()).expect_err("multiplexed");
    assert!(message.starts_with("f: line 2: cycles had a counter for 50 % of the time only"), "{message}");
}

#[test]
fn sums_over_intervals_count_once() {
    for name in ["perf/summary.csv", "perf/summary.txt"] {
        let run = run(perf::read, name);
        assert_eq!(counts(&run.regions[0], "CPU_CYCLES"), [Some(4_000)], "{name}");
        assert_eq!(counts(&run.regions[0], "INST_RETIRED"), [Some(4_000)], "{name}");
        let rows: Vec<_> = run.intervals[0].rows.iter().map(|row| row.counts.clone()).collect();
        assert_eq!(rows, [[1_000, 1_500], [3_000, 2_500]], "{name}");
    }
}

#[test]
fn control_groups_are_regions() {
    let run = run(perf::read, "perf/cgroups.csv");
    let found: Vec<_> = run.regions.iter().map(|r| (r.name.as_str(), r.count(0, "CPU_CYCLES"))).collect();
    assert_eq!(found, [("batch/one", Some(3_000_000)), ("batch/two", Some(6_000_000))]);
    let json = "{\"counter-value\" : \"5.000000\", \"unit\" : \"\", \"event\" : \"cycles\", \"cgroup\" : \"a/job\", \"pcnt-running\" : 100.00}\n";
    let text = " Performance counter stats for 'system wide':\n\n     5      cycles      a/job   #  1.0 GHz\n\n";
    for form in [json, text, "5//cycles/a/job/1/100.00//\n"] {
        let run = import(perf::read, "a64fx", "f", form.as_bytes(), &Options::default()).expect(form);
        let found: Vec<_> = run.regions.iter().map(|r| (r.name.as_str(), r.count(0, "CPU_CYCLES"))).collect();
        assert_eq!(found, [("a/job", Some(5))], "{form}");
    }
}

#[test]
fn sums_of_perfs_json_count_once() {
    let line = |begin: &str, count: u32| {
        format!(
            "{{{begin}\"counter-value\" : \"{count}.000000\", \"unit\" : \"\", \"event\" : \"cycles\", \"pcnt-running\" : 100.00}}\n"
        )
    };
    let text = [line("\"interval\" : 0.05, ", 5), line("\"interval\" : 0.1, ", 7), line("", 12)].concat();
    let run =
        import(perf::read, "a64fx", "f", text.as_bytes(), &Options::default()).expect("perf stat -j -I 50 --summary");
    assert_eq!(counts(&run.regions[0], "CPU_CYCLES"), [Some(12)]);
    assert_eq!(run.intervals[0].rows.len(), 2);
}

#[test]
fn means_with_a_fraction_are_rounded_and_named() {
    let name = "perf/means.json";
    let found = run(perf::read, name);
    assert_eq!(found.regions[0].count(0, "CPU_CYCLES"), Some(7_654_321));
    assert!(has_note(&found, "cycles had a fraction"), "{:?}", found.notes);
    let strict = Options { strict: true, ..Options::default() };
    let message = import(perf::read, "a64fx", name, &golden(name), &strict).expect_err("a fraction");
    assert_eq!(message, "perf/means.json: line 1: cycles had a fraction, as means have, and was rounded");
}

#[test]
fn an_ambiguous_number_is_refused() {
    let text = " Performance counter stats for './a.out':\n\n     1.234      cycles\n";
    let message = import(perf::read, "a64fx", "f", text.as_bytes(), &Options::default()).expect_err("1234 or 1.234");
    assert!(message.starts_with("f: line 3: '1.234' of cycles may have decimals or groups of digits"), "{message}");
    // The time shows that the point separates decimals, so that the count is a mean.
    let text = format!("{text}\n     0.25 seconds time elapsed\n");
    let run = import(perf::read, "a64fx", "f", text.as_bytes(), &Options::default()).expect("a mean");
    assert_eq!(run.regions[0].count(0, "CPU_CYCLES"), Some(1));
}

#[test]
fn attributes_between_commas_belong_to_the_event() {
    let run =
        import(perf::read, "knl", "f", &golden("perf/attributes.csv"), &Options::default()).expect("perf stat -x,");
    let region = &run.regions[0];
    // Two controllers together; 2.5 MiB of lines of 64 bytes.
    assert_eq!(region.count(0, "UNC_M_CAS_COUNT.ALL"), Some(250));
    assert_eq!(region.count(0, "UNC_M_CAS_COUNT.RD"), Some(40_960));
    assert!(has_note(&run, "uncore_imc_0/cas_count_read/ was written in MiB"), "{:?}", run.notes);
}

#[test]
fn threads_may_have_blanks_in_their_names() {
    let run = run(perf::read, "perf/named-threads.csv");
    assert_eq!(counts(&run.regions[0], "CPU_CYCLES"), [Some(5_000), Some(6_000)]);
    let text = " Performance counter stats for process id '1':\n\n     my solver-4711      5,000      cycles\n\n  0.25 seconds time elapsed\n";
    let run = import(perf::read, "a64fx", "f", text.as_bytes(), &Options::default()).expect("perf stat --per-thread");
    assert_eq!(counts(&run.regions[0], "CPU_CYCLES"), [Some(5_000)]);
}

#[test]
fn what_a_program_prints_is_no_count() {
    let text = "iteration 1: residual 1,000 of cycles\n5 steps\n\n Performance counter stats for './a.out':\n\n   2,000,000      cycles\n";
    let run = import(perf::read, "a64fx", "f", text.as_bytes(), &Options::default()).expect("perf's text");
    let names: Vec<_> = run.regions[0].passes[0].names().iter().collect();
    assert_eq!(names, ["CPU_CYCLES"]);
    assert_eq!(run.regions[0].count(0, "CPU_CYCLES"), Some(2_000_000));
}

#[test]
fn events_that_the_machine_does_not_know_are_named() {
    let text =
        "5,,r11,1,100.00,,\n6,,branches,1,100.00,,\n7,,page-faults,1,100.00,,\n0.25,msec,task-clock,1,100.00,,\n";
    let run = import(perf::read, "a64fx", "f", text.as_bytes(), &Options::default()).expect("perf stat -x,");
    let note = "Events unknown to a64fx, kept with their names and used by no metric: branches (PC_WRITE_RETIRED), page-faults.";
    assert!(run.notes.iter().any(|known| known == note), "{:?}", run.notes);
    assert_eq!(run.regions[0].count(0, "branches"), Some(6));
    assert!(has_note(&run, "no counts of events, and left out: task-clock (msec)"), "{:?}", run.notes);
    assert!(run.notes.iter().any(|note| note.contains("`fxscope collect -o FILE.fxr -- PROGRAM`")), "{:?}", run.notes);
}

#[test]
fn outputs_that_have_no_counts_are_refused_with_a_reason() {
    let cases = [
        ("1.50,2.000,\n", "f: line 1: is not what perf stat writes"),
        (
            "Performance counter statistics,\n2000000,cpu-cycles,2.000000,GHz,(100%),\nTotal test time,1.000,seconds,\n",
            "f: line 1: is not what perf stat writes",
        ),
        (
            "{\"counter-value\" : \"2000000,000000\", \"unit\" : \"\", \"event\" : \"cycles\", \"pcnt-running\" : 100,00}\n",
            "f: line 1: is not an object of perf",
        ),
        (
            "S0-D0-C12,1,2000000,,cycles,1000000,100.00,,\n",
            "f: line 1: counts by core, die, socket or node cannot be read",
        ),
    ];
    for (text, message) in cases {
        let found = import(perf::read, "a64fx", "f", text.as_bytes(), &Options::default()).expect_err(text);
        assert!(found.starts_with(message), "{found}");
    }
}

#[test]
fn a_region_entered_in_one_of_two_groups_has_the_counts_of_that_group() {
    let run = run(likwid::read, "likwid/two-groups.csv");
    let [solve, init] = &run.regions[..] else { panic!("two regions") };
    assert_eq!((solve.name.as_str(), init.name.as_str()), ("solve", "init"));
    let cycles = |region: &Region, pass: usize| [0, 1].map(|thread| region.passes[pass].get(thread, "CPU_CYCLES"));
    assert_eq!([cycles(solve, 0), cycles(solve, 1)], [[Some(2_000), Some(2_200)], [Some(2_010), Some(2_210)]]);
    assert_eq!([cycles(init, 0), cycles(init, 1)], [[Some(100), Some(0)], [None, None]]);
    assert!(has_note(&run, "The region init was entered in 1 of 2 passes"), "{:?}", run.notes);
}

#[test]
fn metrics_that_are_no_numbers_do_not_matter_and_counts_that_are_none_are_named() {
    let name = "likwid/metrics-nil.csv";
    let found = run(likwid::read, name);
    assert_eq!(counts(&found.regions[0], "CPU_CYCLES"), [Some(21_217)]);
    assert_eq!(counts(&found.regions[0], "BUS_READ_TOTAL_MEM"), [None]);
    assert!(has_note(&found, "BUS_READ_TOTAL_MEM has no count where LIKWID wrote 'nan'"), "{:?}", found.notes);
    let strict = Options { strict: true, ..Options::default() };
    let message = import(likwid::read, "a64fx", name, &golden(name), &strict).expect_err("a count is missing");
    assert_eq!(message, "likwid/metrics-nil.csv: line 12: BUS_READ_TOTAL_MEM has no count where LIKWID wrote 'nan'");
}

#[test]
fn ranks_of_likwid_mpirun_are_processes_on_their_nodes() {
    let run = run(likwid::read, "likwid/mpirun.csv");
    let solve = run.region("solve").expect("there");
    let places: Vec<_> = solve.threads.iter().map(|t| (t.process, t.node, t.cpu)).collect();
    assert_eq!(places, [(0, 0, 12), (1, 0, 24), (2, 1, 12)]);
    assert_eq!((solve.calls, counts(solve, "CPU_CYCLES")), (4, vec![Some(2_000), Some(1_800), Some(1_600)]));
    assert_eq!(counts(solve, "CNTVCT"), [Some(50_000_000), Some(60_000_000), Some(70_000_000)]);
    assert!(has_note(&run, "The nodes are alpha, beta"), "{:?}", run.notes);
}

#[test]
fn counts_by_time_of_likwid_are_sums_and_a_series() {
    for name in ["likwid/timeline.csv", "likwid/timeline.txt"] {
        let run = run(likwid::read, name);
        let all = &run.regions[0];
        assert_eq!(all.threads.iter().map(|t| t.cpu).collect::<Vec<_>>(), [12, 13], "{name}");
        assert_eq!(counts(all, "INST_RETIRED"), [Some(400), Some(420)], "{name}");
        assert_eq!(counts(all, "CPU_CYCLES"), [Some(600), Some(640)], "{name}");
        let rows: Vec<_> = run.intervals[0].rows.iter().map(|row| (row.end_ns, row.counts.clone())).collect();
        assert_eq!(rows, [(100_000_000, vec![420, 210]), (200_000_000, vec![820, 610])], "{name}");
    }
}

#[test]
fn tables_drawn_by_likwid_read_as_its_csv() {
    let run = run(likwid::read, "likwid/tables.txt");
    let solve = run.region("solve").expect("there");
    assert_eq!((solve.calls, counts(solve, "CPU_CYCLES")), (3, vec![Some(2_000_000), Some(1_800_000)]));
    assert_eq!(counts(solve, "CNTVCT"), [Some(200_000), Some(190_000)]);
}

#[test]
fn papi_6_has_lists_and_papi_7_objects_where_events_were_read_inside() {
    let found = run(papi::read, "papi/version6.json");
    let seen: Vec<_> = found.regions.iter().map(|r| (r.name.as_str(), r.calls, r.count(0, "CPU_CYCLES"))).collect();
    assert_eq!(seen, [("solver", 3, Some(6_000_000)), ("output", 1, Some(190_000))]);
    let inside = run(papi::read, "papi/read-inside.json");
    assert_eq!(inside.regions[0].count(0, "CPU_CYCLES"), Some(6_000_000));
    assert_eq!(inside.regions[0].count(0, "INST_RETIRED"), Some(9_000_000));
    let text = String::from_utf8(golden("papi/version6.json")).expect("text").replace("6000000", "n/a");
    let message = import(papi::read, "a64fx", "f", text.as_bytes(), &Options::default()).expect_err("no count");
    assert_eq!(message, "f: region 0 of thread 0: 'n/a' is not a count of PAPI_TOT_CYC");
}

#[test]
fn fapps_files_are_read_as_spreadsheets_save_them() {
    for (name, region, loads) in [
        ("saved/semicolons.csv", "計算, 1", 40_100_000_000),
        ("saved/shift-jis.csv", "計算ソ, 1", 40_100_000_000),
        ("saved/utf-16.csv", "計算, 1", 40_100_000_000),
        ("saved/comma.csv", "a,b, 1", 40_100_000_000),
    ] {
        let run = run(fapp::read, name);
        assert_eq!(run.regions[0].name, region, "{name}");
        assert_eq!(counts(&run.regions[0], "LD_SPEC"), [Some(loads), Some(50)], "{name}");
    }
    let name = "saved/semicolons.csv";
    assert!(has_note(&run(fapp::read, name), "LD_SPEC was rounded before it was written"));
    let strict = Options { strict: true, ..Options::default() };
    let message = import(fapp::read, "a64fx", name, &golden(name), &strict).expect_err("rounded");
    assert!(message.starts_with("saved/semicolons.csv: line 7: LD_SPEC was rounded"), "{message}");
}

/// Groups digits as locales do.
fn grouped(value: u64, separator: &str) -> String {
    let digits = value.to_string();
    let first = (digits.len() - 1) % 3 + 1;
    let rest = digits.as_bytes()[first..].chunks(3).map(|group| String::from_utf8_lossy(group).into_owned());
    std::iter::once(digits[..first].to_owned()).chain(rest).collect::<Vec<_>>().join(separator)
}

proptest! {
    #[test]
    fn a_count_in_perfs_text_is_itself_in_every_locale(
        value in 0u64..1 << 56,
        bits in 0u32..56,
        style in proptest::sample::select(vec![
            (",", '.'), (".", ','), ("'", '.'), ("\u{2019}", '.'), (" ", ','), ("\u{a0}", ','), ("\u{202f}", ','), ("", '.'),
        ]),
    ) {
        let (value, (separator, decimal)) = (value >> bits, style);
        let text = format!(
            "\n Performance counter stats for './a':\n\n   {}      cycles    (100{decimal}00%)\n\n   0{decimal}25 seconds time elapsed\n",
            grouped(value, separator)
        );
        let run = import(perf::read, "a64fx", "f", text.as_bytes(), &Options::default()).expect("perf's text");
        prop_assert_eq!(run.regions[0].count(0, "CPU_CYCLES"), Some(value), "{}", text);
    }

    #[test]
    fn any_separator_reads_alike(separator in "[-;:|/@^~#<>!=+*_ \t]{1,3}", event in "cycles|cpu_cycles:u|r11|armv8_pmuv3_0/cpu_cycles/") {
        let fields = ["2000000", "", &event, "1000000", "100.00", "", ""];
        let text = format!("{}\n", fields.join(&separator));
        // Text in which the fields cannot be found again has lost them.
        prop_assume!(text.trim_end_matches('\n').split(&separator).eq(fields));
        let run = import(perf::read, "a64fx", "f", text.as_bytes(), &Options::default());
        prop_assert_eq!(run.map(|run| run.regions[0].count(0, "CPU_CYCLES")), Ok(Some(2_000_000)), "{}", text);
    }

    #[test]
    fn unknown_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for reader in [perf::read as Reader, fapp::read, likwid::read, papi::read] {
            let _ = reader(&[Source { name: "f", bytes: &bytes }], machine("a64fx"), &Options::default());
        }
    }
}
