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
