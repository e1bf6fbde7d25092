//! Programs mark regions by `include/fxscope.h` or by calls of other tools.

use crate::common;

use std::path::Path;

use common::{compile, output};

/// A function that executes three instructions per iteration and a few around them.
const WORK: &str = "
__attribute__((noinline)) static void work(long n)
{
    __asm__ volatile(\"1: subs %0, %0, #1\\n nop\\n b.ne 1b\" : \"+r\"(n) : : \"cc\");
}
";
const INCLUDE: &str = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../include");
/// Most instructions of a call of it in addition to its iterations, and of the marks beside it.
const AROUND: u64 = 60;

/// Runs a program; returns name, calls and instructions of each region it marks.
fn regions(folder: &Path, program: &str, options: &[&str]) -> Vec<(String, u64, u64)> {
    let args = [&["run", "--quiet", "--json", "run.json"], options, &["--", program]].concat();
    let ran = output(folder, &args);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let text = std::fs::read(folder.join("run.json")).expect("written");
    let run: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    let region = |r: &serde_json::Value| {
        let number = |v: &serde_json::Value| v.as_u64().expect("a number");
        (r["name"].as_str().expect("text").to_owned(), number(&r["calls"]), number(&r["events"]["INST_RETIRED"]))
    };
    run["regions"].as_array().expect("a list").iter().map(region).filter(|r| r.0 != "all").collect()
}

/// Name, calls, and iterations of [`WORK`] of each expected region.
fn check(found: &[(String, u64, u64)], expected: &[(&str, u64, u64)]) {
    let names = |found: &[(String, u64, u64)]| found.iter().map(|r| (r.0.clone(), r.1)).collect::<Vec<_>>();
    let expected_names: Vec<_> = expected.iter().map(|r| (r.0.to_owned(), r.1)).collect();
    assert_eq!(names(found), expected_names);
    for ((name, calls, instructions), (_, _, rounds)) in found.iter().zip(expected) {
        let work = 3 * rounds;
        assert!((work..=work + calls * AROUND).contains(instructions), "{name}: {instructions} for {work}");
    }
}

/// A program of nothing but marks of the header.
fn bare(folder: &Path, name: &str, marks: &str) -> String {
    let source = format!(
        "#include <fxscope.h>
        void _start(void)
        {{
            {marks}
            __asm__ volatile(\"mov x0, #0\\n mov x8, #94\\n svc #0\");
        }}"
    );
    compile(folder, name, &["-O1", "-static", "-nostdlib", INCLUDE], &source)
}

#[test]
fn a_mark_of_the_header_is_one_instruction_and_survives_strip() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let source = format!(
        "#include <fxscope.h>\n{WORK}
        int main(void)
        {{
            for (int i = 0; i < 3; i++) {{
                FXSCOPE_BEGIN(\"outer part\");
                work(1000);
                FXSCOPE_BEGIN(\"inner\");
                work(500);
                FXSCOPE_END(\"outer part\");
                work(200);
                FXSCOPE_END(\"inner\");
            }}
            __asm__ volatile(\"mov x0, #0\\n mov x8, #94\\n svc #0\");
        }}"
    );
    let source = format!("{source}\nvoid _start(void) {{ main(); }}");
    let program = compile(folder.path(), "marks", &["-O1", "-s", "-static", "-nostdlib", INCLUDE], &source);
    check(&regions(folder.path(), &program, &[]), &[("outer part", 3, 4500), ("inner", 3, 2100)]);
    // In the shortest possible region, the start mark is outside and the end mark inside.
    let program = bare(folder.path(), "empty", r#"FXSCOPE_BEGIN("empty"); FXSCOPE_END("empty");"#);
    assert_eq!(regions(folder.path(), &program, &[]), [("empty".to_owned(), 1, 1)]);
}

#[test]
fn unpaired_marks_are_noted_by_name() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let program = bare(folder.path(), "misspelled", r#"FXSCOPE_BEGIN("solver"); FXSCOPE_END("slover");"#);
    let found = regions(folder.path(), &program, &[]);
    assert_eq!(found.iter().map(|r| r.0.as_str()).collect::<Vec<_>>(), ["solver"]);
    let text = std::fs::read_to_string(folder.path().join("run.json")).expect("written");
    assert!(text.contains("Region 'solver' was never left: it counts up to the end of the run."), "{text}");
    assert!(text.contains("Region 'slover' was left without having been entered by the same thread, 1×"), "{text}");
}

#[test]
fn calls_of_measuring_tools_mark_regions_and_their_missing_libraries_are_replaced() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let source = format!(
        "void fapp_start(const char *, int, int), fapp_stop(const char *, int, int);
        int PAPI_library_init(int), PAPI_hl_region_begin(const char *), PAPI_hl_region_end(const char *);
        void likwid_markerInit(void), likwid_markerClose(void);
        int likwid_markerStartRegion(const char *), likwid_markerStopRegion(const char *);
        void start_collection(const char *), stop_collection(const char *);
        {WORK}
        int main(void)
        {{
            if (PAPI_library_init(0x7000000) != 0x7000000) return 1;
            likwid_markerInit();
            fapp_start(\"kernel\", 3, 0);
            work(100000);
            PAPI_hl_region_begin(\"papi\");
            work(20000);
            fapp_stop(\"kernel\", 3, 0);
            PAPI_hl_region_end(\"papi\");
            likwid_markerStartRegion(\"likwid\");
            work(30000);
            likwid_markerStopRegion(\"likwid\");
            start_collection(\"old\");
            work(40000);
            stop_collection(\"old\");
            likwid_markerClose();
            return 0;
        }}"
    );
    // Linked with libraries of these names, which are missing at run time.
    let functions = include_str!("../../../../kernels/marks.c");
    let mut flags = vec!["-O1".to_owned(), "-Wl,--no-as-needed".to_owned()];
    for name in ["libpapi.so.7", "liblikwid.so.5.2", "libfjprofcore.so"] {
        flags.push(compile(folder.path(), name, &["-shared", "-fPIC", &format!("-Wl,-soname,{name}")], functions));
    }
    let libraries = flags[2..].to_vec();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let program = compile(folder.path(), "tools", &flags, &source);
    libraries.iter().for_each(|library| std::fs::remove_file(library).expect("removed"));
    let found = regions(folder.path(), &program, &["--sysroot", "/usr/aarch64-linux-gnu"]);
    // The dynamic linker resolves each function at its first call.
    let expected = [("kernel, 3", 120_000u64), ("papi", 20_000), ("likwid", 30_000), ("old", 40_000)];
    let names: Vec<_> = found.iter().map(|r| (r.0.as_str(), r.1)).collect();
    assert_eq!(names, expected.map(|(name, _)| (name, 1)));
    for ((name, _, instructions), (_, rounds)) in found.iter().zip(expected) {
        assert!((3 * rounds..3 * rounds + 12_000).contains(instructions), "{name}: {instructions}");
    }
}

/// Four threads work after a barrier, in a region that contains their start ("inside") or begins after it ("before").
const STARTS: &str = r#"
#include <pthread.h>
static pthread_barrier_t meeting;
static void *part(void *none) { pthread_barrier_wait(&meeting); work(20000); return none; }
int main(int argc, char **argv)
{
    pthread_t threads[3];
    int inside = argc > 1 && argv[1][0] == 'i';
    pthread_barrier_init(&meeting, 0, 4);
    if (inside) FXSCOPE_BEGIN("work");
    for (int i = 0; i < 3; i++) if (pthread_create(&threads[i], 0, part, 0)) return 1;
    if (!inside) FXSCOPE_BEGIN("work");
    part(0);
    FXSCOPE_END("work");
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
}
"#;

/// Runs [`STARTS`]; returns the notes on the start of threads, the µs of the region, and the summary.
fn started(folder: &Path, program: &str, options: &str, place: &str) -> (Option<String>, f64, String) {
    let options: Vec<&str> = options.split_whitespace().collect();
    let args = [&["run", "--json", "run.json"], &options[..], &["--", program, place]].concat();
    let ran = output(folder, &args);
    let said = String::from_utf8(ran.stderr).expect("text");
    assert!(ran.status.success(), "{said}");
    let run: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("run.json")).expect("written")).expect("JSON");
    let notes = run["notes"].as_array().expect("a list").iter().filter_map(|note| note.as_str());
    let note = notes.map(str::to_owned).find(|note| note.contains("contains the start of"));
    let region = run["regions"].as_array().expect("a list").iter().find(|r| r["name"] == "work").expect("a region");
    let seconds = region["metrics"]["seconds"].as_f64().expect("a number");
    (note, seconds * 1e6, said.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Returns the numbers before "µs" and "%".
fn figures(note: &str) -> Vec<f64> {
    let words: Vec<&str> = note.split_whitespace().collect();
    let unit = |unit: &str| unit.starts_with("µs") || unit.starts_with('%');
    words.windows(2).filter(|w| unit(w[1])).map(|w| w[0].trim_start_matches('(').parse().expect("a number")).collect()
}

#[test]
fn a_region_that_contains_the_start_of_threads_says_so_and_how_long_it_takes() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let source = format!("#include <fxscope.h>\n{WORK}{STARTS}");
    let program = compile(folder.path(), "starts", &["-O1", "-static", "-pthread", INCLUDE], &source);
    for options in ["", "--cpus 12-13,24-25 --host-threads 2"] {
        let (none, alone, _) = started(folder.path(), &program, options, "before");
        assert_eq!(none, None, "{options}");
        let (note, with_start, summary) = started(folder.path(), &program, options, "inside");
        let note = note.unwrap_or_else(|| panic!("no note with '{options}'"));
        assert!(note.starts_with("Region 'work' contains the start of 3 threads: "), "{note}");
        assert!(summary.contains("contains the start of 3 threads") && summary.contains("warm-up"), "{summary}");
        let [until, whole, percent, creating] = figures(&note)[..] else { panic!("{note}") };
        assert!((whole - with_start).abs() < 0.2, "{note}: the region takes {with_start} µs");
        assert!((percent - 100.0 * until / whole).abs() < 0.2, "{note}");
        assert!(creating <= until && creating > 0.0, "{note}");
        // The rest is the work, which the other program measures alone, with the barrier and the wake-up of threads.
        assert!(((whole - until) - alone).abs() < 5.0, "{note}: alone, the work takes {alone} µs");
    }
}
