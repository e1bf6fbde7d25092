//! The workbook in LibreOffice, given by the variable `FXSCOPE_OFFICE`; without it the test passes and reports that it
//! was skipped. `make office-test` installs it and runs the test.

use crate::common;

use std::fs;
use std::process::Command;

use fxscope_report::render::xlsx;
use fxscope_report::{By, Options, report};
use fxscope_testkit::skip;

#[test]
fn libreoffice_reads_back_the_values() {
    let Some(office) = std::env::var_os("FXSCOPE_OFFICE") else {
        skip("FXSCOPE_OFFICE names no LibreOffice; make office-test installs one");
        return;
    };
    let folder = tempfile::tempdir().expect("temporary folder");
    let report = report(&common::threads(), &Options { by: By::Thread, ..Options::default() }).expect("all regions");
    fs::write(folder.path().join("report.xlsx"), xlsx::render(&[report]).expect("a workbook")).expect("writable");
    // Comma-separated fields, quoted text, UTF-8, numbers as stored, one file per sheet.
    let filter = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false,false,false,-1";
    for format in [filter, "pdf"] {
        let mut command = Command::new(&office);
        command.args(["--headless", "--convert-to", format, "report.xlsx"]).current_dir(folder.path());
        let status = command.env("HOME", folder.path()).status().expect("LibreOffice starts");
        assert!(status.success(), "{format}");
    }
    let sheet = csv::Reader::from_path(folder.path().join("report-A Statistics.csv")).expect("a sheet of that name");
    let seconds = |line: csv::StringRecord| line[5].parse::<f64>().ok();
    let values: Vec<_> = sheet.into_records().filter_map(|line| seconds(line.expect("well formed"))).collect();
    // Four threads; the means of two CMGs; the maximum.
    assert_eq!(values, [1e-3, 5e-4, 1e-3, 1e-3, 7.5e-4, 1e-3, 1e-3]);
    assert!(fs::read(folder.path().join("report.pdf")).expect("written").starts_with(b"%PDF"));
}
