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
    for address in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(address), "{address}");
    }
    // The only link is an empty icon, so that browsers request none.
    assert_eq!(page.matches("<link").count(), 1);
    assert!(page.contains("<link rel=\"icon\" href=\"data:,\">"));
}

#[test]
fn every_thread_and_the_whole_have_a_bar_of_the_cycle_accounting() {
    let page = page(&common::threads(), By::Thread);
    let start = page.find("f-memory-1\" d=\"").expect("waits for memory");
    let path = &page[start..start + page[start..].find('>').expect("its end")];
    // Four threads, two CMGs, total.
    assert_eq!(path.matches('z').count(), 7, "{path}");
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
    assert!(!packed.contains("Execution time"), "headings are in the page");
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
    for svg in page.split("<svg").skip(1) {
        let tag = &svg[..svg.find('>').expect("its end")];
        assert!(tag.contains("role=\"img\" aria-label=\"") || tag.contains("aria-hidden=\"true\""), "{tag}");
    }
}

#[test]
fn of_very_many_regions_the_longest_are_packed_and_the_others_have_a_row() {
    let page = page(&common::large(12, 1_000), By::Thread);
    assert!(page.len() < 2_000_000, "{}", page.len());
    let choices = page.matches("<option").count();
    let rows = page.matches("<th scope=\"row\">region ").count();
    assert!(choices > 100 && rows > 0, "{choices} {rows}");
    assert_eq!(choices + rows, 1_000);
    let packed = unpacked(&page);
    assert_eq!(packed.matches("Region region ").count(), choices - 1);
    assert!(page.contains(&format!("{rows} further regions")));
    // The first packed region has rows for threads, the last does not.
    let part = |i: usize| packed.split('\u{1e}').nth(i).expect("packed");
    assert!(part(0).contains(">thread 11</th>") && !part(choices - 2).contains(">thread 11</th>"));
}

#[test]
fn a_page_of_48_threads_and_100_regions_is_below_two_megabytes() {
    let page = page(&common::large(48, 100), By::Thread);
    assert!(page.len() < 2_000_000, "{}", page.len());
    assert_eq!(unpacked(&page).matches("Region ").count(), 99);
}
