//! The page in a real browser: headless Chromium, given by the variable `FXSCOPE_BROWSER`; without it the tests pass
//! and report that they were skipped. `make browser-test` installs one and runs them.

use crate::common;

use std::fs;
use std::path::Path;
use std::process::Command;

use fxscope_record::Run;
use fxscope_report::{Options, render::html, report};
use fxscope_testkit::skip;

/// The result of opening a page.
struct Visit {
    /// The final document.
    dom: String,
    /// The log, including the page's console.
    log: String,
    /// All network requests.
    network: String,
    /// The screenshot's bytes.
    picture: Vec<u8>,
}

/// Opens a run's page in the browser; `None` if there is none.
fn visit(run: &Run, fragment: &str, options: &[&str]) -> Option<Visit> {
    let Some(browser) = std::env::var_os("FXSCOPE_BROWSER") else {
        skip("FXSCOPE_BROWSER names no browser; make browser-test installs one");
        return None;
    };
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = |name: &str| folder.path().join(name);
    let page = html::render(&[report(run, &Options::default()).expect("all regions")]);
    fs::write(path("page.html"), page).expect("writable");
    let address = format!("file://{}#{fragment}", path("page.html").display());
    let open = |more: &[String]| {
        let mut command = Command::new(&browser);
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=1300,2000",
            "--virtual-time-budget=4000",
        ]);
        // All other host names fail to resolve, and requests are logged.
        command.args(["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr"]).args(options).args(more);
        command.env("HOME", folder.path()).arg(&address).output().expect("the browser starts")
    };
    let log = format!("--log-net-log={}", path("network.json").display());
    let dumped = open(&["--dump-dom".to_owned(), log]);
    open(&[format!("--screenshot={}", path("page.png").display())]);
    keep(&path("page.png"), options);
    Some(Visit {
        dom: String::from_utf8(dumped.stdout).expect("text"),
        log: String::from_utf8_lossy(&dumped.stderr).into_owned(),
        network: fs::read_to_string(path("network.json")).expect("written"),
        picture: fs::read(path("page.png")).expect("written"),
    })
}

/// Copies a screenshot to `FXSCOPE_PICTURES`, if set.
fn keep(picture: &Path, options: &[&str]) {
    if let Some(folder) = std::env::var_os("FXSCOPE_PICTURES") {
        let scheme = if options.is_empty() { "light" } else { "dark" };
        fs::copy(picture, Path::new(&folder).join(format!("page-{scheme}.png"))).expect("writable");
    }
}

#[test]
fn the_page_runs_without_errors_and_without_the_network() {
    let Some(visit) = visit(&common::large(12, 3), "", &[]) else { return };
    assert!(!visit.log.contains("CONSOLE"), "{}", visit.log);
    assert!(!visit.network.contains("\"url\":\"http"), "{}", visit.network);
    assert!(visit.dom.matches("<svg").count() > 2, "charts");
    assert!(visit.dom.contains("f-commit-3"), "cycle accounting");
    assert!(visit.picture.starts_with(b"\x89PNG") && visit.picture.len() > 50_000);
}

#[test]
fn a_region_named_in_the_address_is_unpacked_with_its_headings() {
    let Some(visit) = visit(&common::large(12, 3), "2", &[]) else { return };
    assert!(!visit.log.contains("CONSOLE"), "{}", visit.log);
    let main = &visit.dom[visit.dom.find("<main").expect("there")..visit.dom.find("</main>").expect("there")];
    assert!(main.contains("Region region 2"));
    assert!(main.contains("Execution time"));
}

#[test]
fn the_dark_page_is_dark() {
    let run = common::threads();
    let (Some(light), Some(dark)) =
        (visit(&run, "", &[]), visit(&run, "", &["--force-dark-mode", "--blink-settings=preferredColorScheme=0"]))
    else {
        return;
    };
    assert_ne!(light.picture, dark.picture);
}
