//! Measured counters become records, whose reports match the vendor's workbook.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The workbooks whose measurements are in testdata/import/fapp.
const WORKBOOKS: [&str; 10] = [
    "axhelm.pa-0",
    "axhelm.pa-2",
    "dtrn3.1",
    "dtrn3.2",
    "nbody.0",
    "nbody.2",
    "triadt.0",
    "triadt.1",
    "twst.0",
    "twst.1",
];

fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/import").join(path)
}

fn fxscope(arguments: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fxscope")).args(arguments).output().expect("the program is built")
}

/// Imports files and returns the report of the only run.
fn import(format: &str, files: &[PathBuf]) -> Value {
    let folder = tempfile::tempdir().expect("temporary folder");
    let record = folder.path().join("run.fxr");
    let mut arguments = vec![Path::new("import"), Path::new(format)];
    arguments.extend(files.iter().map(PathBuf::as_path));
    arguments.extend([Path::new("-o"), &record]);
    let output = fxscope(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = ["report", "--format", "json"].map(Path::new);
    let output = fxscope(&[&report[..], &[&record]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut runs: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}

/// Compares every cell of a workbook with the report; returns their number.
fn compare(name: &str) -> usize {
    let run = import("fapp", &[data(&format!("fapp/{name}"))]);
    let tables = &run["regions"][0]["tables"];
    let text = std::fs::read_to_string(data(&format!("fapp/{name}.report.csv"))).expect("there");
    let mut cells = 0;
    for line in text.lines().skip(1) {
        let mut fields = line.split(',');
        let id = fields.next().expect("a column");
        // The row below the total repeats columns that it does not sum; for all classes it has the sum.
        let column = match id {
            "E29 group" => "E01-E28",
            _ => id.strip_suffix(" group").unwrap_or(id),
        };
        let json = &tables[column];
        let places = std::iter::once(json["cmgs"][0].clone()).chain((0..12).map(|i| json["threads"][i].clone()));
        for (place, (expected, value)) in
            fields.zip(places).enumerate().filter(|(_, (expected, _))| !expected.is_empty())
        {
            let expected: f64 = expected.parse().expect("a number");
            let value = value.as_f64().unwrap_or_else(|| panic!("{name}: {id} has no value at place {place}"));
            let near = (value - expected).abs() <= 1e-3 * expected.abs() || (value - expected).abs() < 1e-9;
            assert!(near, "{name}: {id} at place {place}: {value}, the workbook has {expected}");
            cells += 1;
        }
    }
    cells
}

#[test]
fn every_cell_of_the_vendors_report_follows_from_the_raw_counts() {
    for name in WORKBOOKS {
        assert_eq!(compare(name), 1916, "{name}");
    }
}

#[test]
fn a_damaged_record_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let record = folder.path().join("run.fxr");
    let workbook = data("fapp/twst.0");
    let import = ["import", "fapp"].map(Path::new);
    let arguments = [&import[..], &[&workbook, Path::new("-o"), &record]].concat();
    assert!(fxscope(&arguments).status.success());
    let mut bytes = std::fs::read(&record).expect("readable");
    // The file's header is followed by that of its first page.
    bytes[100..116].fill(0x5a);
    std::fs::write(&record, &bytes).expect("writable");
    let output = fxscope(&arguments);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && message.contains("damaged"), "{message}");
    assert_eq!(std::fs::read(&record).expect("readable"), bytes);
}

/// Imports a file of perf with further options; returns whether it succeeded, and what it printed and reported.
fn perf(folder: &Path, name: &str, text: &[u8], options: &[&str]) -> (bool, String, String) {
    let file = folder.join(name);
    std::fs::write(&file, text).expect("writable");
    let record = folder.join(format!("{name}.fxr"));
    let arguments = [&["import", "perf"].map(Path::new)[..], &[&file, Path::new("-o"), &record]].concat();
    let options: Vec<&Path> = options.iter().map(Path::new).collect();
    let output = fxscope(&[&arguments[..], &options].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

const PARTLY: &str = "2000000,,cycles,1,100.00,,\n3000000,,instructions,1,100.00,,\n<not counted>,,r190,0,0.00,,\n7,,page-faults,1,100.00,,\n";

#[test]
fn an_import_says_that_it_was_measured_and_what_it_lacks_or_refuses_it() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let (success, shown, _) = perf(folder.path(), "partly.csv", PARTLY.as_bytes(), &[]);
    assert!(success && shown.lines().any(|line| line.contains("partly.csv on a64fx, measured (perf)")), "{shown}");
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("r190 was not counted"), "{shown}");
    assert!(
        words.contains("Events unknown to a64fx, kept with their names and used by no metric: page-faults."),
        "{shown}"
    );
    assert!(words.contains("`fxscope collect -o FILE.fxr -- PROGRAM`"), "{shown}");
    let (success, _, message) = perf(folder.path(), "strict.csv", PARTLY.as_bytes(), &["--strict"]);
    assert!(!success && message.contains("strict.csv: line 3: r190 was not counted"), "{message}");
    assert!(!folder.path().join("strict.csv.fxr").exists());
}

#[test]
fn power_from_counts_names_its_mode() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let text = "2000000,,cycles,1,100.00,,\n3000000,,r1e0,1,100.00,,\n";
    for (options, mode) in [(&[][..], "normal"), (&["--power-mode", "eco"], "eco")] {
        let (success, shown, message) = perf(folder.path(), mode, text.as_bytes(), options);
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(success, "{message}");
        assert!(
            words.contains(&format!("Power and energy assume the power mode {mode} of a64fx (--power-mode).")),
            "{shown}"
        );
    }
}

/// Writes a program that takes perf's place.
fn helper(folder: &Path, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let helper = folder.join("perf");
    std::fs::write(&helper, text).expect("writable");
    std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).expect("executable");
    format!("--perf={}", helper.display())
}

#[test]
fn recordings_of_perf_are_read_through_perf() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let text = "#!/bin/sh\ncase \"$*\" in 'stat report -i '*) echo \" Performance counter stats for './a.out':\n\n  1,234,567 cycles\n\" >&2;; *) exit 3;; esac\n";
    let option = helper(folder.path(), text);
    let (success, shown, message) = perf(folder.path(), "perf.data", b"PERFILE2....", &[&option]);
    assert!(success && shown.contains("a.out on a64fx, measured (perf)"), "{shown}{message}");
    let (success, _, message) = perf(folder.path(), "other.data", b"PERFILE2....", &["--perf=/nonexistent/perf"]);
    assert!(!success && message.contains("is a recording of perf, which only perf can read"), "{message}");
}

#[test]
fn traces_of_perf_and_latencies_of_cyclictest_are_imported_as_noise() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let jitter = |format: &str, bytes: &[u8], option: &str| {
        let (file, trace) = (folder.path().join(format), folder.path().join("t.fxn"));
        std::fs::write(&file, bytes).expect("writable");
        let arguments =
            [&["jitter", "import", format].map(Path::new)[..], &[&file, Path::new(option), Path::new("-o"), &trace]];
        let output = fxscope(&arguments.concat());
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let text = "#!/bin/sh\necho 'osnoise/3  7267 [003]   100.000520: osnoise:sample_threshold: start 100.000295000 duration 160000 ns interference 1'\n";
    let option = helper(folder.path(), text);
    let shown = jitter("tracer", b"PERFILE2....", &option);
    assert!(shown.contains("t.fxn: noise takes 100") && shown.contains("160 us"), "{shown}");
    let lines = b"T: 0 ( 1234) P:95 I:1000 C:  10000 Min:      2 Act:    3 Avg:    4 Max:      57\n";
    let shown = jitter("cyclictest", lines, &option);
    // 4 us of each ms.
    assert!(shown.contains("noise takes 0.400 %") || shown.contains("noise takes 0.40 %"), "{shown}");
    assert!(shown.contains("57 us") && shown.contains("Each latency of a timer's thread"), "{shown}");
}

#[test]
fn cycles_and_instructions_alone_give_instructions_per_cycle() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = folder.path().join("two.csv");
    std::fs::write(&file, "2000000,,cycles,1,100.00,,\n3000000,,instructions,1,100.00,,\n").expect("written");
    let run = import("perf", &[file]);
    assert_eq!(run["regions"][0]["metrics"]["ipc"], 1.5);
}

#[test]
fn measurements_of_different_sizes_compare_per_instruction() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let small = "2000000,,cycles,1,100.00,,\n3000000,,instructions,1,100.00,,\n";
    let large = "8000000,,cycles,1,100.00,,\n12000000,,instructions,1,100.00,,\n";
    for (name, text) in [("small", small), ("large", large), ("cycles", "5,,cycles,1,100.00,,\n")] {
        assert!(perf(folder.path(), name, text.as_bytes(), &[]).0);
    }
    let file = |name: &str| folder.path().join(format!("{name}.fxr"));
    let compare = |options: &[&str], names: [&str; 2]| {
        let files = names.map(file);
        let arguments = std::iter::once("compare").chain(options.iter().copied()).map(Path::new);
        let output = fxscope(&arguments.chain(files.iter().map(PathBuf::as_path)).collect::<Vec<_>>());
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat())
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let text = compare(&[], ["small", "large"]);
    assert!(
        text.contains("It executes 4.000 times the instructions")
            && text.contains("--per instruction compares equal amounts of work."),
        "{text}"
    );
    let json = compare(&["--per", "instruction", "--format", "csv"], ["small", "large"]);
    assert!(json.contains("CPU_CYCLES"), "{json}");
    let text = compare(&["--per", "instruction"], ["small", "cycles"]);
    assert!(text.contains("cycles: the number of instructions is unknown or zero"), "{text}");
}
