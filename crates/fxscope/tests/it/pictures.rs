//! Every kind of page in a real browser, beside its reference picture in `testdata/pictures`. Without a browser the tests pass and report
//! that they were skipped; `make browser-test` installs one and runs them, `make browser-accept` keeps the pictures of today.

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{kernel, output};
use fxscope_testkit::browser::{Page, Picture, Scheme, TOLERANCE, WIDTHS, browser};
use serde_json::Value;

/// The variable that has the pictures of today kept as references.
const ACCEPT: &str = "FXSCOPE_ACCEPT";
/// The variable that names a folder for whole screenshots.
const SCREENSHOTS: &str = "FXSCOPE_SCREENSHOTS";

/// Runs a command; it may end with another status than 0, as `validate` does when rows are off.
fn done(folder: &Path, args: &[&str]) {
    let output = output(folder, args);
    assert!(output.status.code().is_some_and(|code| code < 2), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Two runs of a program with several threads and regions.
fn runs(folder: &Path) {
    for program in ["triad-threads.elf", "chase.elf", "ill.elf", "triad-l1.elf"] {
        fs::copy(kernel(program), folder.join(program)).expect("copied");
    }
    let usual = ["run", "-q", "--cpus", "12,13,24,25", "-o"];
    let arguments = ["--", "./triad-threads.elf", "threads=4", "n=65536", "passes=2"];
    done(folder, &[&usual[..], &["default.fxr"], &arguments].concat());
    let demand = ["demand.fxr", "-e", "XOS_MMM_L_PAGING_POLICY=demand:demand:demand"];
    done(folder, &[&usual[..], &demand, &arguments].concat());
    done(folder, &["run", "-q", "-o", "chase.fxr", "--", "./chase.elf", "10485760", "500", "warm"]);
}

/// Writes a plan of two factors.
fn plan(folder: &Path) {
    let plan = "[run]\nprogram = \"./triad-l1.elf\"\narguments = [\"passes={passes}\"]\nset = { \"tlb.l1_entries\" = \"{entries}\" }\n\
                [[factor]]\nname = \"passes\"\nvalues = [20, 40, 80]\n[[factor]]\nname = \"entries\"\nvalues = [16, 32]\n";
    fs::write(folder.join("plan.toml"), plan).expect("written");
}

/// Rows of measurements with one error that is large and one that is small.
fn rows(folder: &Path) {
    let files = [
        (
            "runs.csv",
            "run,program,arguments,options,suite\nsmall,triad-l1,n=64 passes=1,,quick\nlarge,triad-l1,n=64 passes=4,,quick\n",
        ),
        (
            "programs.csv",
            "program,kernel,shape,part,mechanism\ntriad,triad-l1,,fit,L1\ntriad-long,triad-l1,passes=4,check,L1\n",
        ),
        ("gaps.csv", "gap,status,what,would_close,note\nl1-loop,open,a loop is too slow,a count,\n"),
        (
            "loops.csv",
            "row,what,run,before,simulated,measured,unit,tolerance,error,gap,fitted,source\n\
             a-1,instructions,small,,INST_RETIRED,60,instructions,5,40,l1-loop,,here\n\
             a-2,more of them,large,small,INST_RETIRED/before_INST_RETIRED,3.5,ratio,40,20,,,here\n",
        ),
    ];
    fs::create_dir_all(folder.join("kernels/prebuilt")).expect("a folder");
    fs::copy(kernel("triad-l1.elf"), folder.join("kernels/prebuilt/triad-l1.elf")).expect("copied");
    fs::create_dir(folder.join("validation")).expect("a folder");
    for (name, text) in files {
        fs::write(folder.join("validation").join(name), text).expect("written");
    }
}

/// Makes every kind of page; returns the name and the file of each.
fn pages(folder: &Path) -> Vec<(&'static str, PathBuf)> {
    runs(folder);
    plan(folder);
    rows(folder);
    let commands: [(&str, &[&str]); 12] = [
        ("report", &["report", "default.fxr", "--by", "thread", "--format", "html", "-o", "report.html"]),
        ("sheet", &["report", "default.fxr", "--by", "thread", "--format", "sheet", "-o", "sheet.html"]),
        ("compare", &["compare", "default.fxr", "demand.fxr", "--format", "html", "-o", "compare.html"]),
        ("annotate", &["annotate", "default.fxr", "--format", "html", "-o", "annotate.html"]),
        (
            "advise",
            &[
                "advise",
                "-q",
                "--cpus",
                "12,24",
                "--format",
                "html",
                "-o",
                "advise.html",
                "--",
                "./ill.elf",
                "illness=remote",
            ],
        ),
        ("guide", &["guide", "sfi.mask", "--no-cache", "--format", "html", "-o", "guide.html"]),
        ("guide-index", &["guide", "sfi", "prefetch.addresses", "--no-cache", "--format", "html", "-o", "site"]),
        ("sweep", &["sweep", "-q", "plan.toml"]),
        (
            "validate",
            &["validate", "--folder", "validation", "--cache", "cache", "--format", "html", "-o", "validate.html"],
        ),
        ("latency", &["latency", "predict", "chase.fxr", "--format", "html", "-o", "latency.html"]),
        ("jitter", &["jitter", "linpack", "--nodes", "3008", "--format", "html", "-o", "jitter.html"]),
        ("pages", &["pages", "experiment", "cost", "--format", "html", "-o", "pages.html"]),
    ];
    let page = |(name, command): (&'static str, &[&str])| {
        done(folder, command);
        let file = match name {
            "guide-index" => folder.join("site/index.html"),
            "sweep" => folder.join("plan/index.html"),
            _ => folder.join(format!("{name}.html")),
        };
        assert!(file.exists(), "{command:?} writes no page");
        (name, file)
    };
    commands.map(page).into()
}

fn references() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/pictures")
}

/// What is wrong with a page at a width: content that is cut off, violations of accessibility, charts that are not drawn.
fn faults(found: &Value) -> Vec<String> {
    let mut faults: Vec<String> = ["wide", "violations"]
        .map(|what| &found[what])
        .iter()
        .flat_map(|list| list.as_array().into_iter().flatten().map(Value::to_string))
        .collect();
    faults.extend(
        (found["charts"] != found["drawn"]).then(|| format!("charts: {} of {} drawn", found["drawn"], found["charts"])),
    );
    faults
}

#[test]
fn every_page_looks_as_its_picture_and_is_accessible_at_every_width_in_both_schemes() {
    if browser().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    let mut wrong = Vec::new();
    for (name, file) in pages(folder.path()) {
        let text = fs::read_to_string(file).expect("a page");
        let (judged, plain) = (Page::new(&text), Page::with_scripts(&text, &[]));
        for (width, scheme) in WIDTHS.into_iter().flat_map(|width| Scheme::ALL.map(|scheme| (width, scheme))) {
            let shown = format!("{name}-{width}-{}", scheme.name());
            wrong.extend(faults(&judged.probe(width, scheme)).into_iter().map(|fault| format!("{shown}: {fault}")));
            wrong.extend(compared(&plain, &shown, width, scheme));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Compares a page with its reference, or keeps its picture as such; returns how they differ.
fn compared(page: &Page, shown: &str, width: u32, scheme: Scheme) -> Option<String> {
    let screenshot = page.screenshot(width, scheme);
    if let Some(folder) = std::env::var_os(SCREENSHOTS) {
        fs::copy(&screenshot, Path::new(&folder).join(format!("{shown}.png"))).expect("copied");
    }
    let picture = Picture::of_screenshot(&screenshot);
    let reference = references().join(format!("{shown}.png"));
    if std::env::var_os(ACCEPT).is_some() {
        picture.write(&reference);
        return None;
    }
    let difference = Picture::read(&reference).difference(&picture);
    let text = || {
        format!(
            "{shown}: {difference:.2} of what it shows differs from {}; if it looks right, make browser-accept",
            reference.display()
        )
    };
    (difference > TOLERANCE).then(text)
}

/// What changes a page so that it must differ from its picture, and what must not.
const WITHOUT_FIRST: &str =
    "(document.querySelector('main section') ?? document.querySelector('main').firstElementChild).remove();";
const OTHER_FONT: &str = "document.head.append(Object.assign(document.createElement('style'), { textContent: \
                          '* { font-family: DejaVu Serif, serif !important; }' }));";

#[test]
fn pictures_notice_a_missing_section_and_the_wrong_scheme_but_no_other_font() {
    if browser().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    runs(folder.path());
    done(folder.path(), &["report", "default.fxr", "--by", "thread", "--format", "html", "-o", "report.html"]);
    let text = fs::read_to_string(folder.path().join("report.html")).expect("a page");
    let [plain, without, other_font] =
        [&[][..], &[WITHOUT_FIRST], &[OTHER_FONT]].map(|scripts| Page::with_scripts(&text, scripts));
    for width in WIDTHS {
        let reference = plain.picture(width, Scheme::Light);
        let difference = |page: &Page, scheme| reference.difference(&page.picture(width, scheme));
        assert!(difference(&without, Scheme::Light) > TOLERANCE, "{width}: without its first section");
        assert!(difference(&plain, Scheme::Dark) > TOLERANCE, "{width}: in the other scheme");
        assert!(difference(&other_font, Scheme::Light) < TOLERANCE, "{width}: in another font");
    }
}
