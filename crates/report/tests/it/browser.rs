//! Pages in a real browser: without one, the tests pass and report that they were skipped. `make browser-test` installs one and runs them.

use crate::{annotate, common, compare};

use std::fs;

use fxscope_record::Run;
use fxscope_report::{Options, render::html, report};
use fxscope_testkit::browser::{HEIGHT, Page, Scheme, WIDTHS, browser};
use serde_json::Value as Json;

/// The page of a run.
fn page_of(run: &Run) -> String {
    html::render(&[report(run, &Options::default()).expect("all regions")])
}

/// All kinds of pages.
fn pages() -> [(&'static str, String); 4] {
    // Few threads: axe-core takes seconds for a thousand cells.
    let run = common::large(2, 2);
    let sheet = html::sheet(&[report(&common::large(2, 1), &Options::default()).expect("all regions")]);
    let comparison = html::render(&[fxscope_report::compare::report(&compare::half())]);
    let annotation = html::annotation(&common::plain(), &annotate::annotation());
    [("report", page_of(&run)), ("sheet", sheet), ("comparison", comparison), ("annotation", annotation)]
}

#[test]
fn no_page_scrolls_sideways_and_none_has_an_accessibility_violation() {
    if browser().is_none() {
        return;
    }
    for (name, text) in pages() {
        let page = Page::new(&text);
        for width in WIDTHS {
            for scheme in Scheme::ALL {
                let found = page.probe(width, scheme);
                assert_eq!(found["wide"], Json::Array(Vec::new()), "{name}, {width}, {scheme:?}");
                assert_eq!(found["violations"], Json::Array(Vec::new()), "{name}, {width}, {scheme:?}");
                assert_eq!(found["charts"], found["drawn"], "{name}, {width}: {found}");
            }
        }
    }
}

#[test]
fn the_first_screen_has_the_verdict_and_the_time_by_cause() {
    if browser().is_none() {
        return;
    }
    let page = Page::new(&page_of(&common::large(12, 3)));
    for width in WIDTHS {
        let found = page.probe(width, Scheme::Light);
        for part in ["result", "causes"] {
            let bottom = found[part].as_f64().expect("on the page");
            assert!(bottom < f64::from(HEIGHT), "{part}, {width}: {bottom}");
        }
    }
}

#[test]
fn a_region_named_in_the_address_is_unpacked_with_its_headings_and_charts() {
    if browser().is_none() {
        return;
    }
    let document = Page::new(&page_of(&common::large(12, 3))).visit("2", 1400, Scheme::Light);
    let main = &document[document.find("<main").expect("there")..document.find("</main>").expect("there")];
    assert!(main.contains("Region region 2"));
    assert!(main.contains("</small>Execution time"));
    assert!(main.contains("<svg"), "charts");
}

#[test]
fn the_sheet_prints_on_one_page() {
    if browser().is_none() {
        return;
    }
    // Twelve threads, with all rows, and four CMGs.
    for threads in [1, 12, 48] {
        let report = report(&common::large(threads, 1), &Options::default()).expect("all regions");
        let page = Page::new(&html::sheet(&[report]));
        let options = ["--no-pdf-header-footer", &format!("--print-to-pdf={}", page.path("page.pdf").display())];
        let output = page.open("", (1400, HEIGHT), &options);
        let printed = fs::read(page.path("page.pdf")).unwrap_or_else(|e| panic!("{e}: {output:?}"));
        let printed = String::from_utf8_lossy(&printed);
        assert_eq!(printed.matches("/Type /Page\n").count(), 1, "{threads} threads");
        // A3, landscape, in points.
        assert!(printed.contains("/MediaBox [0 0 1191"), "{threads} threads");
    }
}
