//! Exports in the programs that read them: speedscope in a real browser, which also reads folded stacks, profiles of pprof and trace
//! events, and `go tool pprof`. Without these programs the tests pass and report that they were skipped; `make export-test` has them.

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use common::{compile, output};
use fxscope_testkit::{browser, skip};

/// The variable that names the folder of speedscope, as in its package of npm.
const SPEEDSCOPE: &str = "FXSCOPE_SPEEDSCOPE";
/// The variable that names the command of Go.
const GO: &str = "FXSCOPE_GO";

/// A program with calls and a loop, whose run has stacks and intervals.
const PROGRAM: &str = "static volatile double x[512];\n\
                       static __attribute__((noinline)) void leaf(int n) { for (int i = 0; i < n; i++) x[i % 512] += 1.5; }\n\
                       static __attribute__((noinline)) void work(int n) { for (int i = 0; i < 20; i++) leaf(n); x[0] += 1; }\n\
                       int main(void) { work(200); work(100); return 0; }\n";

/// Runs the program; returns the path of each of its exports, from a record with sampled stacks and from one with cycles by function.
fn exports(folder: &Path) -> Vec<(&'static str, PathBuf)> {
    compile(folder, "calls", &["-O2", "-static", "-g", "-fno-omit-frame-pointer"], PROGRAM);
    done(folder, &["run", "-q", "-o", "cycles.fxr", "--", "./calls"]);
    done(folder, &["run", "-q", "--stacks", "1us", "--interval", "5us", "-o", "stacks.fxr", "--", "./calls"]);
    let formats = ["speedscope", "pprof", "folded", "perfetto"];
    let records = ["stacks", "cycles"];
    let all = records.into_iter().flat_map(|record| formats.map(|format| (record, format)));
    // Cycles by function have no times.
    all.filter(|export| *export != ("cycles", "perfetto"))
        .map(|(record, format)| {
            let file = format!("{record}.{format}");
            done(folder, &["export", "--format", format, "-o", &file, &format!("{record}.fxr")]);
            (format, folder.join(file))
        })
        .collect()
}

fn done(folder: &Path, args: &[&str]) {
    let output = output(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What speedscope says on its console when it has recognised a format.
fn recognised(format: &str) -> &'static str {
    match format {
        "speedscope" => "Importing as speedscope json file",
        "pprof" => "Importing as protobuf encoded pprof file",
        "folded" => "Importing as collapsed stack format",
        _ => "Importing as Trace Event Format profile",
    }
}

#[test]
fn speedscope_opens_its_own_format_pprof_folded_stacks_and_trace_events() {
    let Some(viewer) = std::env::var_os(SPEEDSCOPE) else {
        return skip(format_args!("{SPEEDSCOPE} names no folder of speedscope; make export-test fetches it"));
    };
    if browser::browser().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    for (format, path) in exports(folder.path()) {
        // As the command of speedscope does: a script passes the file to the page.
        let bytes = base64::engine::general_purpose::STANDARD.encode(fs::read(&path).expect("written"));
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let script = folder.path().join("load.js");
        fs::write(&script, format!("speedscope.loadFileFromBase64({name:?}, {bytes:?})")).expect("written");
        let page = Path::new(&viewer).join("dist/release/index.html");
        let address = format!("file://{}#localProfilePath={}", page.display(), script.display());
        let options = ["--enable-unsafe-swiftshader", "--allow-file-access-from-files", "--dump-dom"];
        let output = browser::open(&address, (1200, 800), &options);
        let (document, console) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(console.contains(recognised(format)), "{name}: {console}");
        // Its title names a profile only when it shows one.
        assert!(document.contains(" - speedscope</title>"), "{name}: {console}");
        let errors = ["Failed to load", "Something went wrong", "Uncaught"];
        assert!(!errors.iter().any(|error| console.contains(error) || document.contains(error)), "{name}: {console}");
    }
}

#[test]
fn pprof_reads_its_profiles_with_functions_callers_and_threads() {
    let Some(go) = std::env::var_os(GO) else {
        return skip(format_args!("{GO} names no command of Go; make export-test installs it"));
    };
    let folder = tempfile::tempdir().expect("temporary folder");
    for (_, path) in exports(folder.path()).into_iter().filter(|(format, _)| *format == "pprof") {
        let pprof = |options: &[&str]| {
            let mut command = Command::new(&go);
            command.args(["tool", "pprof"]).args(options).arg(&path).current_dir(folder.path());
            let output = command.output().expect("Go starts");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).expect("text")
        };
        let callers = pprof(&["-peek", "^(work|leaf)$", "-nodefraction=0"]);
        assert!(callers.contains("main") && callers.contains("leaf"), "{callers}");
        assert!(pprof(&["-tags"]).contains("thread 0"), "{}", path.display());
    }
}
