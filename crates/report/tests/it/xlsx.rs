//! The workbook, read back.

use crate::common;

use std::io::Cursor;

use calamine::{Data, DataType as _, Range, Reader as _, Xlsx};
use fxscope_report::render::xlsx::render;
use fxscope_report::{By, Options, report};

fn bytes() -> Vec<u8> {
    let report = report(&common::threads(), &Options { by: By::Thread, ..Options::default() }).expect("all regions");
    render(&[report]).expect("a workbook")
}

fn sheet(name: &str) -> Range<Data> {
    let mut book: Xlsx<_> = calamine::open_workbook_from_rs(Cursor::new(bytes())).expect("a workbook");
    book.worksheet_range(name).expect("a sheet")
}

/// The values of a column by its heading, below the two heading rows.
fn column(sheet: &Range<Data>, heading: &str) -> Vec<Data> {
    let found = (0..sheet.width()).find(|&c| sheet.get((0, c)).is_some_and(|d| d.get_string() == Some(heading)));
    let c = found.unwrap_or_else(|| panic!("no column {heading}"));
    (2..sheet.height()).map(|row| sheet.get((row, c)).expect("in the table").clone()).collect()
}

#[test]
fn threads_cmgs_and_the_total_have_rows_with_exact_values() {
    let sheet = sheet("A Statistics");
    let numbers = |heading: &str| column(&sheet, heading).into_iter().map(|d| d.as_f64()).collect::<Vec<_>>();
    assert_eq!(numbers("Thread")[..4], [0.0, 1.0, 2.0, 3.0].map(Some));
    assert_eq!(numbers("CPU")[..4], [12.0, 13.0, 24.0, 25.0].map(Some));
    assert_eq!(numbers("A01 Execution time")[..4], [1e-3, 5e-4, 1e-3, 1e-3].map(Some));
    assert_eq!(numbers("A11 IPC").last(), Some(&Some(0.6)));
    let parts: Vec<_> = column(&sheet, "Part").iter().map(ToString::to_string).collect();
    assert_eq!(parts, ["thread 0", "thread 1", "thread 2", "thread 3", "CMG 0", "CMG 1", "total"]);
}

#[test]
fn chart_data_are_on_separate_sheets() {
    let sheet = sheet("Chart data, accounting");
    // A heading row, and one row per bar.
    assert_eq!(sheet.height(), 8);
    let sum: f64 = (1..sheet.width()).filter_map(|c| sheet.get((1, c))?.as_f64()).sum();
    assert!((sum - 1.0).abs() < 1e-9, "the parts of thread 0 add up to its time, 1 ms: {sum}");
}

#[test]
fn the_workbook_has_a_chart_for_cycle_accounting_and_one_for_busy_rates() {
    let bytes = bytes();
    let names = String::from_utf8_lossy(&bytes);
    for part in ["xl/charts/chart1.xml", "xl/charts/chart2.xml"] {
        assert!(names.contains(part), "{part}");
    }
}

#[test]
fn tables_are_in_order_though_written_in_parallel() {
    let book: Xlsx<_> = calamine::open_workbook_from_rs(Cursor::new(bytes())).expect("a workbook");
    let names = book.sheet_names();
    let letters: Vec<&str> =
        names.iter().filter_map(|n| n.split_once(' ')).map(|n| n.0).filter(|l| l.len() == 1).collect();
    assert!(letters.is_sorted() && letters.len() > 8, "{names:?}");
}

#[test]
fn names_that_look_like_formulas_are_text() {
    let mut run = common::threads();
    run.regions[0].name = "=1+1".to_owned();
    let report = report(&run, &Options::default()).expect("all regions");
    let bytes = render(&[report]).expect("a workbook");
    let mut book: Xlsx<_> = calamine::open_workbook_from_rs(Cursor::new(bytes)).expect("a workbook");
    let values = book.worksheet_range("A Statistics").expect("a sheet");
    assert!(column(&values, "Region").contains(&Data::String("=1+1".to_owned())));
    let formulas = book.worksheet_formula("A Statistics").expect("a sheet");
    assert!(formulas.cells().all(|(.., formula)| formula.is_empty()));
}
