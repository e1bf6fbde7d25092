//! Imports all forms of `perf stat` output.

use std::path::Path;
use std::sync::LazyLock;

use fxscope_import::perf::read;
use fxscope_import::{Machine, Options, Source};
use fxscope_record::{Origin, Run};
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
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/import/perf").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn read_all(files: &[(&str, &[u8])], options: &Options) -> Result<Vec<Run>, String> {
    let sources: Vec<Source<'_>> = files.iter().map(|&(name, bytes)| Source { name, bytes }).collect();
    read(&sources, &MACHINE, options).map_err(|e| e.to_string())
}

fn read_one(text: &str) -> Result<Vec<Run>, String> {
    read_all(&[("file", text.as_bytes())], &Options::default())
}

fn error(text: &str) -> String {
    read_one(text).expect_err(text)
}

#[test]
fn localised_decimal_commas_are_read() {
    let runs = read_one("2000000;;r11:u;1000;100,00;;\n1000;;r80c0:u;1000;100,00;;\n").expect("perf stat -x ';'");
    assert_eq!(runs[0].regions[0].count(0, "FP_SCALE_OPS_SPEC"), Some(1_000));
    let estimate = error("2000000;;r11:u;1000;50,00;;\n");
    assert!(estimate.starts_with("file: line 1: r11:u had a counter for 50 % of the time only"), "{estimate}");
}

#[test]
fn text_separated_values_and_json_give_the_same_counts() {
    for name in ["a64fx.csv", "a64fx.json", "a64fx.txt"] {
        let runs = read_all(&[(name, &golden(name))], &Options::default()).unwrap_or_else(|e| panic!("{e}"));
        let [run] = &runs[..] else { panic!("{name}: one run") };
        let counts: Vec<_> = run.regions[0].counts(0).into_iter().collect();
        // A millisecond is 100,000 ticks of the 100 MHz timer.
        let expected = [
            ("CNTVCT", 100_000),
            ("CPU_CYCLES", 2_000_000),
            ("FP_FIXED_OPS_SPEC", 16),
            ("FP_SCALE_OPS_SPEC", 8_000_000),
        ];
        assert_eq!(counts, expected, "{name}");
        assert_eq!(run.passes, ["a64fx"], "a pass that is not one of the report's has its file's name");
        assert_eq!(run.origin, Origin::Imported { format: "perf".to_owned(), files: vec![name.to_owned()] });
    }
}

#[test]
fn the_text_contains_the_program() {
    let runs = read_all(&[("a64fx.txt", &golden("a64fx.txt"))], &Options::default()).expect("perf's text");
    assert_eq!(runs[0].command, ["./triad", "2048"]);
}

#[test]
fn real_output_of_perf_can_be_read() {
    // Its numbers of page faults.
    let cases: [(&str, &[u64]); 7] = [
        ("software-cpus.csv", &[48, 6]),
        ("software-cpus.txt", &[49, 198]),
        ("software-cpus.json", &[0, 53]),
        ("software-repeated.csv", &[49]),
        ("software.csv", &[50]),
        ("software.json", &[47]),
        ("software.txt", &[47]),
    ];
    for (name, expected) in cases {
        let text = String::from_utf8(golden(name)).expect("text");
        // The computer had no counters.
        let text: String = text.lines().filter(|line| !line.contains("r11")).map(|line| format!("{line}\n")).collect();
        let runs = read_one(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        let region = &runs[0].regions[0];
        let faults: Vec<_> = (0..region.threads.len()).map(|i| region.count(i, "page-faults")).collect();
        assert_eq!(faults, expected.iter().map(|&n| Some(n)).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn intervals_add_up() {
    let text = "0.1001,5,,r11,1000,100.00,,\n0.2002,7,,r11,1000,100.00,,\n";
    assert_eq!(read_one(text).expect("intervals")[0].regions[0].count(0, "CPU_CYCLES"), Some(12));
}

#[test]
fn cpus_and_threads_have_rows_of_their_own() {
    let runs = read_all(&[("f", &golden("a64fx-cpus.csv"))], &Options::default()).expect("CPUs");
    let region = &runs[0].regions[0];
    assert_eq!(region.threads.iter().map(|t| t.cpu).collect::<Vec<_>>(), [12, 13]);
    assert_eq!([0, 1].map(|i| region.count(i, "0INST_COMMIT")), [Some(500), Some(700)]);
    let runs = read_one("app-4711,5,,r11,1000,100.00,,\napp-4712,6,,r11,1000,100.00,,\n").expect("threads");
    assert_eq!([0, 1].map(|i| runs[0].regions[0].count(i, "CPU_CYCLES")), [Some(5), Some(6)]);
}

#[test]
fn files_with_other_events_are_passes_and_files_with_the_same_are_repeats() {
    let (a, b) = ("5,,r11,1,100.00,,\n1,,r0190,1,100.00,,\n", "6,,r11,1,100.00,,\n2,,r0191,1,100.00,,\n");
    let files: Vec<(&str, &[u8])> =
        vec![("a1", a.as_bytes()), ("b1", b.as_bytes()), ("a2", a.as_bytes()), ("b2", b.as_bytes())];
    let runs = read_all(&files, &Options::default()).expect("two runs of two passes");
    assert_eq!(runs.iter().map(|run| run.passes.clone()).collect::<Vec<_>>(), [["a1", "b1"], ["a2", "b2"]]);
    assert_eq!(
        runs[0].regions[0].passes.iter().map(|pass| pass.get(0, "CPU_CYCLES")).collect::<Vec<_>>(),
        [Some(5), Some(6)]
    );
}

#[test]
fn errors_name_file_and_line() {
    let cases = [
        ("", "file: is empty: nothing was written to it"),
        (
            "hello\n",
            "file: line 1: is not what perf stat writes: its text, -x separated values or -j JSON are expected",
        ),
        (
            "<not counted>,,r11,0,0.00,,\n",
            "file: has no counts of perf stat: r11 was not counted: it never got a counter, or the program did not run there",
        ),
        (
            "5,,r11,1,100.00,,\n5,,r190\n",
            "file: line 2: a line of perf stat -x has value, unit, event, time and percent; this one does not",
        ),
        ("-5,,r11,1,100.00,,\n", "file: line 1: '-5' is not a count of r11"),
        ("99999999999999999999,,r11,1,100.00,,\n", "file: line 1: '99999999999999999999' is not a count of r11"),
        (
            "5,,r11,1,75.00,,\n",
            "file: line 1: r11 had a counter for 75 % of the time only, so that its count is an estimate: count fewer events at a time, or take the estimate with --scaled",
        ),
        (
            " Performance counter stats for './a.out':\n\n   20,01,2,34      cycles\n   1,000      instructions\n",
            "file: line 3: '20,01,2,34' is not a count of cycles",
        ),
        (
            " Performance counter stats for process id '1':\n\n  app-12   1,000 000      cycles\n",
            "file: line 3: '1,000 000' is not a count of cycles",
        ),
        (
            "#           time             counts unit events\n     1.000112233      2,00,00      cycles\n",
            "file: line 2: '2,00,00' is not a count of cycles",
        ),
        (
            "{\"counter-value\" : 5}\n",
            "file: line 1: is not an object of perf: invalid type: integer `5`, expected a borrowed string at line 1 column 20",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(error(text), message, "{text}");
    }
}

#[test]
fn values_that_cannot_be_taken_are_named_or_refuse_the_file() {
    let cases = [
        (
            "5,,r11,1,100.00,,\n<not supported>,,r190,0,100.00,,\n",
            "r190 is not supported by this system's counters: omit it",
        ),
        (
            "5,,r11,1,100.00,,\n<not counted>,,r190,0,0.00,,\n",
            "r190 was not counted: it never got a counter, or the program did not run there",
        ),
        ("5,,r11,1,100.00,,\n6,,cycles,1,100.00,,\n", "cycles is CPU_CYCLES as well as r11, and keeps its own name"),
        ("5,,r11,1,100.00,,\n6.5,,r190,1,100.00,,\n", "r190 had a fraction, as means have, and was rounded"),
    ];
    for (text, note) in cases {
        let run = &read_one(text).expect(text)[0];
        assert_eq!(run.regions[0].count(0, "CPU_CYCLES"), Some(5), "{text}");
        assert!(run.notes.contains(&note.to_owned()), "{:?}", run.notes);
        let strict = Options { strict: true, ..Options::default() };
        let message = read_all(&[("file", text.as_bytes())], &strict).expect_err(text);
        assert_eq!(message, format!("file: line 2: {note}"));
    }
}

#[test]
fn estimates_are_accepted_on_request_and_noted_in_the_record() {
    let options = Options { scaled: true, ..Options::default() };
    let runs = read_all(&[("f", b"5,,r11,1,75.00,,\n")], &options).expect("scaled");
    assert_eq!(runs[0].regions[0].count(0, "CPU_CYCLES"), Some(5));
    assert!(runs[0].notes.iter().any(|note| note.contains("estimates")));
}

#[test]
fn runs_of_two_programs_are_not_mixed() {
    let other =
        String::from_utf8(golden("a64fx.txt")).expect("text").replace("./triad", "./copy").replace("r80c0", "r190");
    let message = read_all(&[("a", &golden("a64fx.txt")), ("b", other.as_bytes())], &Options::default())
        .expect_err("two programs");
    assert_eq!(message, "b: is of './copy 2048', but a is of './triad 2048': import runs of one program together");
}

#[test]
fn counts_by_core_die_socket_or_node_are_refused_in_every_form() {
    let forms = [
        "S0-D0-C1,1,5,,r11,1,100.00,,\n",
        "0.1001,S0,12,5,,r11,1,100.00,,\n",
        "N1,12,5,,r11,1,100.00,,\n",
        " Performance counter stats for 'system wide':\n\nS0-D0-C0     1     162      r11\n",
        "{\"core\" : \"S0-D0-C0\", \"counter-value\" : \"5\", \"unit\" : \"\", \"event\" : \"r11\"}\n",
        "{\"node\" : \"N0\", \"counter-value\" : \"5\", \"unit\" : \"\", \"event\" : \"r11\"}\n",
    ];
    for text in forms {
        let message = error(text);
        assert!(message.ends_with("since their CPUs are unknown: measure by CPU with -A"), "{text}: {message}");
        assert!(message.starts_with("file: line "), "{message}");
    }
}

#[test]
fn intervals_in_which_the_program_did_not_run_count_nothing_in_every_form() {
    let forms = [
        "     0.1001,5,,r11,1000,100.00,,\n     0.2002,<not counted>,,r11,0,100.00,,\n     0.3003,7,,r11,9,100.00,,\n",
        "#           time             counts unit events\n     0.1001      5      r11\n     0.2002      <not counted>      \
         r11\n     0.3003      7      r11   # 1.0 K/sec\n",
        "{\"interval\" : 0.1001, \"counter-value\" : \"5.000000\", \"unit\" : \"\", \"event\" : \"r11\", \"pcnt-running\" : 100.00}\n\
         {\"interval\" : 0.2002, \"counter-value\" : \"<not counted>\", \"unit\" : \"\", \"event\" : \"r11\", \"pcnt-running\" : 100.00}\n\
         {\"interval\" : 0.3003, \"counter-value\" : \"7.000000\", \"unit\" : \"\", \"event\" : \"r11\", \"pcnt-running\" : 100.00}\n",
    ];
    for text in forms {
        let runs = read_one(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(runs[0].regions[0].count(0, "CPU_CYCLES"), Some(12), "{text}");
        // 0.3003 s at 100 million ticks per second.
        assert_eq!(runs[0].regions[0].count(0, "CNTVCT"), Some(30_030_000), "{text}");
    }
    // No counter was available all the time of an interval.
    let text = "0.1001,5,,r11,1000,100.00,,\n0.1001,8,,r190,1000,100.00,,\n0.2002,<not counted>,,r11,0,0.00,,\n\
                0.2002,9,,r190,1000,100.00,,\n";
    let run = &read_one(text).expect("one event is whole")[0];
    assert_eq!(run.regions[0].count(0, "CPU_CYCLES"), None, "a sum of some intervals would be too small");
    assert_eq!(run.regions[0].count(0, "0INST_COMMIT"), Some(17));
    assert!(
        run.notes.iter().any(|note| note.starts_with("r11 was not counted: it never got a counter")),
        "{:?}",
        run.notes
    );
}

#[test]
fn threads_that_never_ran_have_no_row() {
    let text = "app-4711,<not counted>,,r11,0,100.00,,\napp-4712,6,,r11,1000,100.00,,\n";
    let runs = read_one(text).expect("one thread");
    assert_eq!(runs[0].regions[0].threads.len(), 1);
    assert_eq!(runs[0].regions[0].count(0, "CPU_CYCLES"), Some(6));
}

#[test]
fn events_in_several_groups_count_once() {
    let text = "5,,r11,1,100.00,,\n1,,r190,1,100.00,,\n6,,r11,1,100.00,,\n2,,r191,1,100.00,,\n";
    let runs = read_one(text).expect("two groups");
    assert_eq!(runs[0].regions[0].count(0, "CPU_CYCLES"), Some(5));
    let note = "CPU_CYCLES was counted several times at once; the first count is taken".to_owned();
    assert!(runs[0].notes.contains(&note), "{:?}", runs[0].notes);
}

#[test]
fn counts_of_an_attached_process_have_no_program() {
    let text = " Performance counter stats for process id '4711':\n\n     5      r11\n\n    0.1 seconds time elapsed\n";
    assert_eq!(read_one(text).expect("perf stat -p")[0].command, Vec::<String>::new());
}

proptest! {
    #[test]
    fn no_text_causes_a_panic(text in "([-0-9.,;<>a-z:%{}\" \n]|CPU|not counted|r11|Performance counter stats for ){0,60}") {
        let _ = read_one(&text);
    }

    #[test]
    fn a_damaged_file_gives_a_run_or_a_message(
        name in proptest::sample::select(vec![
            "a64fx.csv", "a64fx.json", "a64fx.txt", "a64fx-cpus.csv", "software-intervals.csv", "software-intervals.json",
            "software-intervals.txt",
        ]),
        at in 0usize..400,
        byte in any::<u8>(),
    ) {
        let mut bytes = golden(name);
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = read_all(&[(name, &bytes)], &Options::default());
    }
}

/// The only interval series in one of perf's own files: ends in ns, and rows of counts.
fn series(name: &str) -> (Vec<String>, Vec<(u64, Vec<u64>)>) {
    let runs = read_all(&[(name, &golden(name))], &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let [intervals] = &runs[0].intervals[..] else { panic!("{name}: one series") };
    assert_eq!(intervals.pass, 0);
    let rows = intervals.rows.iter().map(|row| (row.end_ns, row.counts.clone())).collect();
    (intervals.names.iter().map(str::to_owned).collect(), rows)
}

#[test]
fn intervals_of_perf_are_a_series_in_every_form() {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let both = names(&["context-switches", "page-faults"]);
    let text = vec![
        (51_902_734, vec![634, 214]),
        (102_070_714, vec![242, 97]),
        (152_194_106, vec![0, 0]),
        (196_861_666, vec![2, 102]),
    ];
    assert_eq!(series("software-intervals.txt"), (both.clone(), text));
    let json = vec![(50_080_027, vec![6, 305]), (100_269_589, vec![0, 0]), (136_716_706, vec![2, 101])];
    assert_eq!(series("software-intervals.json"), (both.clone(), json));
    let separated = vec![(100_169_254, vec![75]), (200_486_659, vec![0]), (251_484_715, vec![0])];
    assert_eq!(series("software-intervals.csv"), (names(&["page-faults"]), separated));
    // Two CPUs together.
    let cpus = vec![
        (50_075_711, vec![56 + 17, 5_693 + 1_949]),
        (100_368_337, vec![80 + 68, 6_489 + 10_676]),
        (137_093_031, vec![56 + 12, 5_562 + 3_724]),
    ];
    assert_eq!(series("software-intervals-cpus.csv"), (both, cpus));
}

#[test]
fn measurements_without_intervals_have_no_series_and_each_pass_with_them_has_its_own() {
    assert!(read_one("5,,r11,1,100.00,,\n").expect("no intervals")[0].intervals.is_empty());
    let (a, b) = ("0.1001,5,,r11,1,100.00,,\n0.2002,6,,r11,1,100.00,,\n", "0.1002,7,,r190,1,100.00,,\n");
    let runs = read_all(&[("a", a.as_bytes()), ("b", b.as_bytes())], &Options::default()).expect("two passes");
    let found: Vec<_> = runs[0].intervals.iter().map(|s| (s.pass, s.names.iter().next(), s.rows.len())).collect();
    assert_eq!(found, [(0, Some("CPU_CYCLES"), 2), (1, Some("0INST_COMMIT"), 1)]);
}

#[test]
fn an_event_of_a_whole_cmg_counts_once_for_each_in_intervals_too() {
    let events = &MACHINE.pmu.events;
    let event = events.iter().find(|e| e.scope == fxscope_pmu::Scope::Cmg && e.number.is_some()).expect("there");
    let line = |cpu, count| format!("0.1001,CPU{cpu},{count},,{},1,100.00,,\n", event.name);
    let text = [line(12, 5), line(13, 5), line(24, 7)].concat();
    let runs = read_one(&text).expect("three CPUs of two CMGs");
    assert_eq!(runs[0].intervals[0].rows[0].counts, [5 + 7], "{}", event.name);
}

#[test]
fn unordered_or_incomplete_intervals_are_reported_with_their_line() {
    let cases = [
        (
            "0.2002,5,,r11,1,100.00,,\n0.1001,6,,r11,1,100.00,,\n",
            "file: line 2: the interval to 0.1001 s comes after a later one: give one file for each measurement, as written by the tool",
        ),
        (
            "0.1001,5,,r11,1,100.00,,\n0.1001,1,,r190,1,100.00,,\n0.2002,6,,r11,1,100.00,,\n",
            "file: line 3: the interval to 0.2002 s lacks 0INST_COMMIT, which others have: lines are missing there",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(error(text), message, "{text}");
    }
}
