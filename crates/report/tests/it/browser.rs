//! Pages in a real browser: headless Chromium, given by the variable `FXSCOPE_BROWSER`; without it the tests pass
//! and report that they were skipped. `make browser-test` installs one and runs them. `FXSCOPE_AXE` names the script of axe-core,
//! which then judges accessibility; `FXSCOPE_PICTURES` a folder for screenshots.

use crate::{annotate, common, compare};

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use fxscope_record::Run;
use fxscope_report::{Options, render::html, report};
use fxscope_testkit::skip;
use serde_json::Value as Json;

/// What a page says about its layout, and axe-core about its accessibility, at the end of a visit.
const PROBE: &str = include_str!("probe.js");
/// Widths of a telephone, a tablet and a desk, and the height of a screen.
const WIDTHS: [u32; 3] = [390, 800, 1400];
const HEIGHT: u32 = 900;

/// The browser; `None` if there is none.
fn browser() -> Option<std::ffi::OsString> {
    let browser = std::env::var_os("FXSCOPE_BROWSER");
    if browser.is_none() {
        skip("FXSCOPE_BROWSER names no browser; make browser-test installs one");
    }
    browser
}

/// A page in a folder of its own.
struct Page {
    folder: tempfile::TempDir,
}

impl Page {
    /// A page with the probe behind its scripts.
    fn new(text: &str) -> Page {
        let folder = tempfile::tempdir().expect("temporary folder");
        let axe = std::env::var_os("FXSCOPE_AXE").map(|path| fs::read_to_string(path).expect("the script of axe-core"));
        let scripts = axe.iter().map(String::as_str).chain([PROBE]).map(|script| format!("<script>{script}</script>"));
        let text = text.replace("</body>", &format!("{}</body>", scripts.collect::<String>()));
        fs::write(folder.path().join("page.html"), text).expect("writable");
        Page { folder }
    }

    /// Opens the page with options of the browser.
    fn open(&self, fragment: &str, width: u32, options: &[&str]) -> Output {
        let browser = browser().expect("checked by the caller");
        let mut command = Command::new(browser);
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--virtual-time-budget=8000",
        ]);
        command.arg(format!("--window-size={width},{HEIGHT}"));
        // All host names fail to resolve, and requests are logged.
        command.args(["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr"]).args(options);
        let address = format!("file://{}#{fragment}", self.path("page.html"));
        command.env("HOME", self.folder.path()).arg(address).output().expect("the browser starts")
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Visits the page; returns its document, and fails on errors and requests.
    fn visit(&self, fragment: &str, width: u32, options: &[&str]) -> String {
        let log = format!("--log-net-log={}", self.path("network.json"));
        let output = self.open(fragment, width, &[options, &["--dump-dom", &log]].concat());
        let console = String::from_utf8_lossy(&output.stderr);
        assert!(!console.contains("CONSOLE"), "{console}");
        let network = fs::read_to_string(self.path("network.json")).expect("written");
        assert!(!network.contains("\"url\":\"http"), "{network}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Visits the page; returns what the probe has found.
    fn probe(&self, width: u32, options: &[&str]) -> Json {
        let document = self.visit("", width, options);
        let start = document.find("id=\"probe\">").expect("the probe has run") + "id=\"probe\">".len();
        let text = &document[start..start + document[start..].find("</script>").expect("its end")];
        serde_json::from_str(text).expect("JSON")
    }
}

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

/// Copies a screenshot to `FXSCOPE_PICTURES`, if set.
fn keep(page: &Page, name: &str, width: u32, options: &[&str]) {
    if let Some(folder) = std::env::var_os("FXSCOPE_PICTURES") {
        let scheme = if options.is_empty() { "light" } else { "dark" };
        let picture = Path::new(&folder).join(format!("{name}-{width}-{scheme}.png"));
        page.open("", width, &[options, &[&format!("--screenshot={}", picture.display())]].concat());
    }
}

const DARK: &[&str] = &["--blink-settings=preferredColorScheme=0"];

#[test]
fn no_page_scrolls_sideways_and_none_has_an_accessibility_violation() {
    if browser().is_none() {
        return;
    }
    for (name, text) in pages() {
        let page = Page::new(&text);
        for width in WIDTHS {
            for options in [&[][..], DARK] {
                let found = page.probe(width, options);
                keep(&page, name, width, options);
                assert_eq!(found["wide"], Json::Array(Vec::new()), "{name}, {width}, {options:?}");
                assert_eq!(found["violations"], Json::Array(Vec::new()), "{name}, {width}, {options:?}");
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
        let found = page.probe(width, &[]);
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
    let document = Page::new(&page_of(&common::large(12, 3))).visit("2", 1400, &[]);
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
        let options = ["--no-pdf-header-footer", &format!("--print-to-pdf={}", page.path("page.pdf"))];
        page.open("", 1400, &options);
        let printed = fs::read(page.path("page.pdf")).expect("printed");
        let printed = String::from_utf8_lossy(&printed);
        assert_eq!(printed.matches("/Type /Page\n").count(), 1, "{threads} threads");
        // A3, landscape, in points.
        assert!(printed.contains("/MediaBox [0 0 1191"), "{threads} threads");
    }
}
