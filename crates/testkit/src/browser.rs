//! Pages in a real browser: headless Chromium, given by the variable [`BROWSER`]. `make browser-test` installs one.
//!
//! The variable `FXSCOPE_AXE` names the script of axe-core, which then judges accessibility.

mod picture;

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value as Json;

pub use picture::{Picture, TOLERANCE};

/// The variable that names the browser.
pub const BROWSER: &str = "FXSCOPE_BROWSER";
/// Widths of a telephone, a tablet and a desk, and the height of a screen, in pixels.
pub const WIDTHS: [u32; 3] = [390, 800, 1400];
/// See [`WIDTHS`].
pub const HEIGHT: u32 = 900;
/// The height of pictures: that of two screens.
const PICTURE_HEIGHT: u32 = 2 * HEIGHT;

/// What a page says about its layout, and axe-core about its accessibility, at the end of a visit.
const PROBE: &str = include_str!("browser/probe.js");

/// Returns the browser; reports that the test is skipped if there is none.
#[must_use]
pub fn browser() -> Option<OsString> {
    let browser = std::env::var_os(BROWSER);
    if browser.is_none() {
        crate::skip(format_args!("{BROWSER} names no browser; make browser-test installs one"));
    }
    browser
}

/// Which colours a reader prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Dark text on a light ground.
    Light,
    /// Light text on a dark ground.
    Dark,
}

impl Scheme {
    /// Both.
    pub const ALL: [Scheme; 2] = [Scheme::Light, Scheme::Dark];

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Light => "light",
            Scheme::Dark => "dark",
        }
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Scheme::Light => &[],
            Scheme::Dark => &["--blink-settings=preferredColorScheme=0"],
        }
    }
}

/// A page in a folder of its own.
#[derive(Debug)]
pub struct Page {
    folder: tempfile::TempDir,
}

impl Page {
    /// Returns a page with the probe behind its scripts.
    ///
    /// # Panics
    /// When files cannot be read or written.
    #[must_use]
    pub fn new(text: &str) -> Page {
        let axe = std::env::var_os("FXSCOPE_AXE").map(|path| fs::read_to_string(path).expect("the script of axe-core"));
        let scripts: Vec<&str> = axe.iter().map(String::as_str).chain([PROBE]).collect();
        Page::with_scripts(text, &scripts)
    }

    /// Returns a page with scripts behind its own.
    ///
    /// # Panics
    /// When it cannot be written.
    #[must_use]
    pub fn with_scripts(text: &str, scripts: &[&str]) -> Page {
        let folder = tempfile::tempdir().expect("temporary folder");
        let added: String = scripts.iter().map(|script| format!("<script>{script}</script>")).collect();
        fs::write(folder.path().join("page.html"), text.replace("</body>", &format!("{added}</body>")))
            .expect("writable");
        Page { folder }
    }

    /// Opens the page with options of the browser.
    ///
    /// # Panics
    /// When the browser does not start.
    #[must_use]
    pub fn open(&self, fragment: &str, (width, height): (u32, u32), options: &[&str]) -> Output {
        open(&format!("file://{}#{fragment}", self.path("page.html").display()), (width, height), options)
    }

    /// Returns the path of a file beside the page.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Visits the page; returns its document, and fails on errors and requests.
    ///
    /// # Panics
    /// When the page reports an error or requests something from the network.
    #[must_use]
    pub fn visit(&self, fragment: &str, width: u32, scheme: Scheme) -> String {
        let log = format!("--log-net-log={}", self.path("network.json").display());
        let output = self.open(fragment, (width, HEIGHT), &[scheme.options(), &["--dump-dom", &log]].concat());
        let console = String::from_utf8_lossy(&output.stderr);
        assert!(!console.contains("CONSOLE"), "{console}");
        let network = fs::read_to_string(self.path("network.json")).expect("written");
        assert!(!network.contains("\"url\":\"http"), "{network}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Visits the page; returns what the probe has found.
    ///
    /// # Panics
    /// As [`Page::visit`], and when the probe has not run.
    #[must_use]
    pub fn probe(&self, width: u32, scheme: Scheme) -> Json {
        let document = self.visit("", width, scheme);
        let start = document.find("id=\"probe\">").expect("the probe has run") + "id=\"probe\">".len();
        let text = &document[start..start + document[start..].find("</script>").expect("its end")];
        serde_json::from_str(text).expect("JSON")
    }

    /// Returns a picture of the page's beginning.
    ///
    /// # Panics
    /// When the browser makes none.
    #[must_use]
    pub fn picture(&self, width: u32, scheme: Scheme) -> Picture {
        Picture::of_screenshot(&self.screenshot(width, scheme))
    }

    /// Takes a screenshot of the page's beginning; returns the file.
    ///
    /// # Panics
    /// When the browser makes none.
    #[must_use]
    pub fn screenshot(&self, width: u32, scheme: Scheme) -> PathBuf {
        let path = self.path(&format!("{width}-{}.png", scheme.name()));
        let option = format!("--screenshot={}", path.display());
        let output = self.open("", (width, PICTURE_HEIGHT), &[scheme.options(), &[&option]].concat());
        assert!(path.exists(), "{}", String::from_utf8_lossy(&output.stderr));
        path
    }
}

/// Opens an address in the browser. All host names fail to resolve, and messages of the console are on standard error.
///
/// # Panics
/// When there is no browser, or it does not start.
#[must_use]
pub fn open(address: &str, (width, height): (u32, u32), options: &[&str]) -> Output {
    let home = tempfile::tempdir().expect("temporary folder");
    let mut command = Command::new(browser().expect("checked by the caller"));
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=8000"]);
    command.arg(format!("--window-size={width},{height}"));
    command.args(["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr"]).args(options);
    command.env("HOME", home.path()).arg(address).output().expect("the browser starts")
}
