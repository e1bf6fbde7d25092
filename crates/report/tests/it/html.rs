//! The contents of the page, without a browser; for browsers see `browser.rs`.

use crate::common;

use std::io::Read as _;

use base64::Engine as _;
use fxscope_record::{ALL, Run};
use fxscope_report::render::html::render;
use fxscope_report::{By, Options, report};

fn page(run: &Run, by: By) -> String {
    render(&[report(run, &Options { by, ..Options::default() }).expect("all regions")])
}

/// The packed regions of a page.
fn unpacked(page: &str) -> String {
    let start = page.find("id=\"packed\">").expect("packed regions") + "id=\"packed\">".len();
    let end = start + page[start..].find("</script>").expect("its end");
    let bytes = base64::engine::general_purpose::STANDARD.decode(&page[start..end]).expect("base64");
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).expect("gzip");
    text
}

#[test]
fn a_page_makes_no_external_requests() {
    let page = page(&common::threads(), By::Thread);
    // Addresses in the text of licenses are no links.
    for address in ["src=\"", "href=\"http", "@import", "url("] {
        assert!(!page.contains(address), "{address}");
    }
    // The only link is an empty icon, so that browsers request none.
    assert_eq!(page.matches("<link").count(), 1);
    assert!(page.contains("<link rel=\"icon\" href=\"data:,\">"));
}

/// The data of the first chart of a kind.
fn chart(page: &str, kind: &str) -> serde_json::Value {
    let charts = page
        .split("data-chart=\"")
        .skip(1)
        .map(|rest| rest[..rest.find('"').expect("its end")].replace("&quot;", "\""));
    let charts = charts.map(|text| serde_json::from_str::<serde_json::Value>(&text).expect("JSON"));
    charts.into_iter().find(|chart| chart["kind"] == kind).expect("a chart of this kind")
}

#[test]
fn every_thread_and_the_whole_have_a_bar_of_the_cycle_accounting() {
    let chart = chart(&page(&common::threads(), By::Thread), "stack");
    // Four threads, two CMGs, total.
    assert_eq!(chart["bars"].as_array().map(Vec::len), Some(7), "{chart}");
    for part in chart["parts"].as_array().expect("parts") {
        assert_eq!(part["values"].as_array().map(Vec::len), Some(7), "{part}");
    }
}

#[test]
fn the_first_screen_has_the_verdict_then_the_time_by_cause_and_tables_are_folded() {
    let run = common::run("a.out", vec![common::region(ALL, 1, 10), common::region("solve", 2, 5)]);
    let page = page(&run, By::Thread);
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
    let order = [
        "aria-label=\"Verdict: 1.000 ms: 3.200 GFLOPS",
        "Time by cause",
        "What limits it",
        ">Regions</span>",
        "<h2>Charts",
        "<h2>Tables",
        ">A Statistics</span>",
    ];
    assert!(order.map(at).is_sorted(), "{:?}", order.map(at));
    let tables = &page[at("<h2>Tables")..at("</main>")];
    assert!(!tables.contains("<details class=\"fold\" open"), "{tables}");
    assert!(tables.contains(">A Statistics</span> <span class=\"soft\">Execution time 1.000 ms"), "{tables}");
}

#[test]
fn a_sheet_has_the_tables_in_the_order_of_the_report_and_no_threads_if_there_are_more_than_twelve() {
    let sheet = |threads| {
        let run = common::large(threads, 1);
        fxscope_report::render::html::sheet(&[report(&run, &Options::default()).expect("all regions")])
    };
    let few = sheet(12);
    let order = [
        "A Statistics",
        "Execution time by cause",
        "B Cycle accounting",
        "C Busy",
        "D Cache and TLB misses",
        "E Instruction mix",
    ];
    assert!(order.map(|title| few.find(title).expect(title)).is_sorted());
    assert!(few.contains("<th scope=\"row\">thread 11</th>"));
    let many = sheet(13);
    assert!(!many.contains("<th scope=\"row\">thread") && many.contains("<th scope=\"row\">CMG 1</th>"));
}

#[test]
fn names_chosen_by_programs_are_escaped() {
    let evil = "<script>alert(1)</script>\"'&";
    let run = common::run(evil, vec![common::region(ALL, 1, 10), common::region(evil, 1, 5)]);
    let page = page(&run, By::Thread);
    assert!(!page.contains("alert(1)</script>"), "{page}");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!unpacked(&page).contains("<script"));
}

#[test]
fn further_regions_are_packed_and_share_table_headings() {
    let run = common::run("a.out", vec![common::region(ALL, 1, 10), common::region("solve", 2, 5)]);
    let page = page(&run, By::Thread);
    let packed = unpacked(&page);
    assert!(packed.contains("Region solve"));
    assert!(!packed.contains("</small>Execution time"), "headings are in the page");
    assert!(page.contains("<template id=\"head-0\">"));
    assert!(page.contains("<option value=\"1\">solve</option>"));
}

#[test]
fn a_page_with_one_region_has_no_choice_and_no_packed_regions() {
    let page = page(&common::plain(), By::Thread);
    assert!(!page.contains("<select") && !page.contains("<template") && !page.contains("id=\"packed\""));
}

#[test]
fn columns_sort_by_buttons_and_charts_have_names() {
    let page = page(&common::threads(), By::Thread);
    assert!(page.matches("<th scope=\"col\" aria-sort=\"none\"><button type=\"button\">").count() > 20);
    for plot in page.split("<div class=\"plot\"").skip(1) {
        assert!(plot.starts_with(" role=\"img\" tabindex=\"0\" aria-label=\""), "{}", &plot[..200]);
    }
}

#[test]
fn a_page_of_48_threads_and_100_regions_is_below_two_megabytes() {
    let page = page(&common::large(48, 100), By::Thread);
    assert!(page.len() < 2_000_000, "{}", page.len());
    assert_eq!(unpacked(&page).matches("Region ").count(), 99);
}

/// Takes seconds of processor time.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn of_very_many_regions_the_longest_are_packed_and_the_others_have_a_row() {
        let page = page(&common::large(12, 1_000), By::Thread);
        assert!(page.len() < 2_000_000, "{}", page.len());
        let choices = page.matches("<option").count();
        let left_out = &page[page.find(">Further regions</span>").expect("a table")..];
        let rows = left_out.matches("<th scope=\"row\">region ").count();
        assert!(choices > 100 && rows > 0, "{choices} {rows}");
        assert_eq!(choices + rows, 1_000);
        let packed = unpacked(&page);
        assert_eq!(packed.matches("Region region ").count(), choices - 1);
        assert!(page.contains(&format!("{rows} further regions")));
        // The first packed region has rows for threads, the last does not.
        let part = |i: usize| packed.split('\u{1e}').nth(i).expect("packed");
        assert!(part(0).contains(">thread 11</th>") && !part(choices - 2).contains(">thread 11</th>"));
    }
}
