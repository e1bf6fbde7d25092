//! `fxscope pages advise`: predictions compared with counts of runs, and messages.

use crate::common;

use std::path::Path;

use common::{compile, elf, failure, json, kernel, output, place};
use serde_json::Value;

/// Returns its results with these arguments.
fn advise(folder: &Path, args: &[&str]) -> Value {
    let output = output(folder, &[&["pages", "advise", "--quiet", "--json", "advice.json"], args].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let text = String::from_utf8_lossy(&output.stdout);
    // The output before is the program's.
    for line in text.lines().skip_while(|line| !line.starts_with("Pages of ")) {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let findings = json(&std::fs::read(folder.join("advice.json")).expect("written"));
    assert_eq!(findings["exit_code"], 0, "{findings}");
    findings
}

fn count(counts: &Value, key: &str) -> u64 {
    counts[key].as_u64().unwrap_or_else(|| panic!("no {key} in {counts}"))
}

fn advice(findings: &Value) -> String {
    findings["advice"].as_array().expect("a list").iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

#[test]
fn large_pages_are_advised_where_streams_cross_many_small_ones() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-mem.elf");
    let findings = advise(folder.path(), &["--pages", "bss=64KiB", "--", &program, "n=400000", "passes=1"]);
    assert_eq!((&findings["best"], &findings["leave_it"]), (&1.into(), &false.into()));
    let best = &findings["choices"][0];
    assert_eq!((&best["pages"]["bss"], &best["default"]), (&"2MiB".into(), &true.into()));
    // Three arrays of 3.2 MB have 49 pages of 64 KiB each, and 5 of 2 MiB all together.
    assert!(count(&findings["now"]["predicted"], "walks") >= 3 * 49, "{findings}");
    assert!(count(&best["simulated"], "walks") <= 5 + 3, "{best}");
    for key in ["l1_dtlb_misses", "walks"] {
        assert_eq!(count(&best["predicted"], key), count(&best["simulated"], key), "{best}");
    }
    let text = advice(&findings);
    assert!(text.contains("XOS_MMM_L_HPAGE_TYPE=hugetlbfs XOS_MMM_L_LPG_MODE=base+stack"), "{text}");
    assert!(text.contains("These pages are the machine's default, without any variable or option."), "{text}");
}

/// Two cores of two CMGs, whose arrays are all on the first one's node.
#[test]
fn programs_on_several_nodes_are_simulated_with_their_pages_elsewhere() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-threads.elf");
    let threads = ["--", &program, "n=174720", "passes=1", "threads=2", "cpus=12,24"];
    let findings = advise(folder.path(), &threads);
    assert_eq!(findings["nodes_of_cpus"], serde_json::json!([4, 5]));
    let choices = findings["choices"].as_array().expect("a list");
    let placed: Vec<(&Value, &Value)> = choices.iter().map(|c| (&c["placement"], &c["simulated"]["nodes"])).collect();
    // Memory mapped before the first instruction is on the node of the first thread; each thread touches its part
    // first.
    let expected = [(&"demand".into(), &"4-5".into()), (&"interleave".into(), &"4-7".into())];
    assert_eq!(placed, expected, "{findings}");
    assert_eq!(findings["now"]["simulated"]["nodes"], "4");
    assert!(findings["notes"].to_string().contains("on demand they do"), "{findings}");
    let bound = advise(folder.path(), &[&["--membind", "4"], &threads[..]].concat());
    assert_eq!(bound["choices"], Value::Array(Vec::new()));
}

/// Two threads stream from one node that delivers 10 GB/s: from four nodes they get more.
#[test]
fn pages_on_all_nodes_are_advised_with_the_line_that_numactl_takes() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-threads.elf");
    let slow = ["--set", "memory.peak_bytes_per_second=10000000000"];
    let threads = ["--", &program, "n=174720", "passes=1", "threads=2", "cpus=12,24"];
    let findings = advise(folder.path(), &[&slow[..], &threads[..]].concat());
    // The syntax of numactl(8) for all nodes; it leaves everything after `--` to the command.
    let line = format!("numactl --interleave=all -- {}", threads[1..].join(" "));
    assert!(advice(&findings).lines().any(|said| said == line), "{findings}");
    let bound = advise(folder.path(), &[&slow[..], &["--cpus", "12,24"], &threads[..]].concat());
    let line = format!("numactl --physcpubind=12,24 --interleave=all -- {}", threads[1..].join(" "));
    assert!(advice(&bound).lines().any(|said| said == line), "{bound}");
}

#[test]
fn sizes_that_the_library_cannot_set_are_shown_with_the_option_that_can() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-mem.elf");
    let args = ["--pages", "all=64KiB", "--sizes", "32MiB", "--", &program, "n=400000", "passes=1"];
    let text = advice(&advise(folder.path(), &args));
    assert!(text.contains("fxscope run --pages bss=32MiB"), "{text}");
    assert!(text.contains("has no variable for all of these pages"), "{text}");
}

#[test]
fn a_program_without_misses_is_best_left_unchanged() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let findings = advise(folder.path(), &["--", &kernel("triad-l1.elf"), "n=2048", "passes=5"]);
    assert_eq!((&findings["best"], &findings["choices"]), (&Value::Null, &Value::Array(Vec::new())));
    assert!(advice(&findings).starts_with("Change nothing"), "{findings}");
}

#[test]
fn the_least_gain_decides_whether_a_change_is_advised() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-mem.elf");
    let args = ["--pages", "bss=64KiB", "--least", "20", "--", &program, "n=400000", "passes=1"];
    let findings = advise(folder.path(), &args);
    assert_eq!((&findings["leave_it"], findings["choices"].as_array().map(Vec::len)), (&true.into(), Some(1)));
    assert!(advice(&findings).contains("20 %"), "{findings}");
}

#[test]
fn large_mappings_are_named_by_the_program_s_own_calls() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let source = "#include <stdlib.h>\n\
                  __attribute__((noinline)) static double *field(size_t n) { return malloc(n * sizeof(double)); }\n\
                  int main(void) {\n\
                  double *a = field(1 << 20);\n\
                  double *b = calloc(1 << 20, sizeof *b);\n\
                  for (int i = 0; i < 1 << 20; i += 4096) a[i] = b[i] + i;\n\
                  return a[4096] != 4096;\n\
                  }\n";
    for flags in [&["-g", "-O1"][..], &["-g", "-O1", "-static"]] {
        let program = compile(folder.path(), "maps", flags, source);
        let findings = advise(folder.path(), &["--pages", "all=64KiB", "--simulate", "1", "--", &program]);
        let names: Vec<&str> =
            findings["segments"].as_array().expect("a list").iter().filter_map(|s| s["segment"].as_str()).collect();
        for name in ["mmap by field (maps.c:2)", "mmap by main (maps.c:5)"] {
            assert!(names.contains(&name), "{names:?}");
        }
    }
}

/// A pointer chase through one array, and one pass over another: only the first has many misses.
const UNEVEN: &str = "#include <stdlib.h>\n\
    __attribute__((noinline)) static long *walked(size_t n) { return malloc(n * sizeof(long)); }\n\
    __attribute__((noinline)) static long *swept(size_t n) { return malloc(n * sizeof(long)); }\n\
    int main(void) {\n\
    size_t n = 1 << 22;\n\
    long *a = walked(n), *b = swept(n), at = 0;\n\
    for (size_t i = 0; i < n; i += 8192) a[i] = (b[i] = i + 8192) % n;\n\
    for (int k = 0; k < 3000 * 512; k++) at = a[at];\n\
    return at == 1;\n\
    }\n";

#[test]
fn of_many_calls_those_that_map_most_are_separate_parts() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let small: String = (0..9).map(|i| format!("a[{i}] = malloc(2 << 20);\n")).collect();
    let source = format!(
        "#include <stdlib.h>\nchar *a[10];\nint main(void) {{\n{small}a[9] = malloc(64 << 20);\n\
         for (int i = 0; i < 10; i++) a[i][0] = 1;\nreturn 0;\n}}\n"
    );
    let program = compile(folder.path(), "many", &["-g", "-O1", "-static"], &source);
    let findings = advise(folder.path(), &["--pages", "all=64KiB", "--simulate", "1", "--", &program]);
    let parts: Vec<&str> =
        findings["parts"].as_array().expect("a list").iter().filter_map(|part| part["name"].as_str()).collect();
    let calls: Vec<&&str> = parts.iter().filter(|name| name.contains("many.c:")).collect();
    assert_eq!(calls.len(), 8, "{parts:?}");
    assert!(calls.contains(&&"main (many.c:13)") && parts.contains(&"mmap"), "{parts:?}");
    assert!(
        findings["notes"].to_string().contains("Other mmap: also what main (many.c:11), main (many.c:12) maps"),
        "{findings}"
    );
}

#[test]
fn transparent_huge_pages_are_tried_where_a_mapping_holds_one() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let source = "#include <stdlib.h>\n\
                  int main(void) {\n\
                  size_t n = 1100ul << 20;\n\
                  volatile char *a = malloc(n);\n\
                  for (int k = 0; k < 4; k++) for (size_t i = 0; i < n; i += 1 << 22) a[i] += 1;\n\
                  return 0;\n\
                  }\n";
    let program = compile(folder.path(), "huge", &["-g", "-O1", "-static"], source);
    let args = ["-e", "XOS_MMM_L_HPAGE_TYPE=none", "--sizes", "64KiB", "--least", "0", "--", &program];
    let findings = advise(folder.path(), &args);
    let first = &findings["choices"][0];
    assert_eq!(first["pages"]["main (huge.c:4)"], "thp", "{findings}");
    assert_eq!(first["variables"], serde_json::json!(["XOS_MMM_L_HPAGE_TYPE=thp"]));
    // Of 275 pages that are touched, at least 127 are in one huge page.
    let [now, then] = [&findings["now"], first].map(|choice| count(&choice["simulated"], "walks"));
    assert!(now >= 275 && now - then >= 127, "{now} {then}");
    for key in ["l1_dtlb_misses", "walks"] {
        assert!(count(&first["predicted"], key).abs_diff(count(&first["simulated"], key)) <= 4, "{key}: {first}");
    }
    let small = advise(folder.path(), &["--", &kernel("triad-l1.elf"), "n=2048", "passes=5"]);
    assert!(small["notes"].to_string().contains("no mapping of the program holds one"), "{small}");
}

#[test]
fn transparent_huge_pages_that_are_off_are_not_tried() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let source = "#include <stdlib.h>\n\
                  int main(void) {\n\
                  size_t n = 1100ul << 20;\n\
                  volatile char *a = malloc(n);\n\
                  for (size_t i = 0; i < n; i += 1 << 22) a[i] += 1;\n\
                  return 0;\n\
                  }\n";
    let program = compile(folder.path(), "huge", &["-g", "-O1", "-static"], source);
    let args = ["-e", "XOS_MMM_L_HPAGE_TYPE=none", "--sizes", "64KiB", "--least", "0"];
    let findings = advise(folder.path(), &[&args[..], &["--thp", "never", "--", &program]].concat());
    let choices = findings["choices"].as_array().expect("a list").iter();
    assert!(choices.map(|choice| choice["pages"].to_string()).all(|pages| !pages.contains("thp")), "{findings}");
    assert!(findings["notes"].to_string().contains("huge pages of 512MiB are off"), "{findings}");
    let mixed = ["pages", "advise", "--thp", "never,2MiB=always", "--pages", "all=64KiB", "--", &program];
    let (_, error) = failure(folder.path(), &mixed);
    assert!(error.contains("begin with one size for each segment"), "{error}");
}

#[test]
fn calls_that_the_program_does_not_have_are_refused_with_how_to_name_them() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-l1.elf");
    let refused =
        |pages: &str| failure(folder.path(), &["run", "--pages", pages, "--", &program, "n=2048", "passes=1"]);
    for (pages, expected) in [
        ("mmap@nowhere=2MiB", "--pages: the program has no function nowhere"),
        ("mmap@_start+1MiB=2MiB", "is not within _start"),
        ("mmap@nowhere.c:7=2MiB", "line 7 of nowhere.c"),
        ("mmap@_start=3MiB", "a64fx has no pages of size '3MiB'"),
    ] {
        let (status, message) = refused(pages);
        assert!(status == 125 && message.contains(expected), "{message}");
    }
    for (pages, expected) in [("mmap@=2MiB", "write mmap@FUNCTION"), ("heap=thp", "XOS_MMM_L_HPAGE_TYPE=thp")] {
        let (status, message) = refused(pages);
        assert!(status == 2 && message.contains(expected), "{message}");
    }
}

#[test]
fn a_record_is_advised_on_by_running_its_program_with_its_settings() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-mem.elf");
    let run = ["run", "-q", "-o", "r.fxr", "--pages", "bss=64KiB", "--", &program, "n=87360", "passes=1"];
    assert!(output(folder.path(), &run).status.success());
    let findings = advise(folder.path(), &["--simulate", "1", "r.fxr"]);
    assert_eq!(findings["now"]["pages"]["bss"], "64KiB");
    assert_eq!(findings["command"], serde_json::json!([program, "n=87360", "passes=1"]));
}

#[test]
fn a_record_whose_program_is_missing_is_reported() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let copy = folder.path().join("gone.elf");
    std::fs::copy(kernel("triad-l1.elf"), &copy).expect("copied");
    let path = copy.to_str().expect("UTF-8");
    assert!(output(folder.path(), &["run", "-q", "-o", "r.fxr", "--", path, "n=2048", "passes=1"]).status.success());
    std::fs::remove_file(&copy).expect("removed");
    let (status, message) = failure(folder.path(), &["pages", "advise", "r.fxr"]);
    assert_eq!(status, 125);
    assert!(message.contains("gone.elf, does not exist") && message.contains("-- PROGRAM [ARGS]"), "{message}");
    let (status, message) = failure(folder.path(), &["pages", "advise", "--run", "3", "r.fxr"]);
    assert!(status == 125 && message.contains("there is no run 3, the file holds 1"), "{message}");
}

#[test]
fn impossible_options_are_refused_with_the_possible_ones() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-l1.elf");
    let refused = |options: &[&str]| {
        let args = [&["pages", "advise"], options, &["--", &program, "n=2048", "passes=1"]].concat();
        failure(folder.path(), &args)
    };
    let (status, message) = refused(&["--sizes", "8KiB"]);
    assert!(status == 125 && message.contains("--sizes: a64fx has no pages of size '8KiB'"), "{message}");
    assert!(message.contains("choose from 4KiB, 64KiB, 2MiB"), "{message}");
    let (status, message) = refused(&["--sizes", "16GiB"]);
    assert!(status == 125 && message.contains("memory node of a64fx, which has 8GiB"), "{message}");
    let (status, message) = refused(&["--memory", "64GiB"]);
    assert!(status == 125 && message.contains("reduce --memory"), "{message}");
    let (status, message) = refused(&["--pages", "stack=64KiB"]);
    assert!(status == 125 && message.contains("--pages stack=SIZE,thread_stack=SIZE"), "{message}");
    let (status, message) = refused(&["--least", "200"]);
    assert!(status == 2 && message.contains("from 0 to 100"), "{message}");
    assert_eq!(failure(folder.path(), &["pages", "advise", "--", "nowhere"]).0, 127);
    assert_eq!(failure(folder.path(), &["pages", "advise"]).0, 2);
}

#[test]
fn a_program_that_a_signal_ends_gets_no_advice() {
    let folder = tempfile::tempdir().expect("temporary folder");
    place(folder.path(), "faults.elf", &elf(&[common::mov(0, 0), common::LOAD]));
    let (status, message) = failure(folder.path(), &["pages", "advise", "--", "faults.elf"]);
    assert_eq!(status, 128 + 11, "{message}");
    assert!(message.contains("faults.elf was ended by SIGSEGV") && message.contains("there is no advice"), "{message}");
}

#[test]
fn every_run_reads_the_file_on_standard_input_and_only_the_first_one_writes() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let source = "#include <stdio.h>\n#include <stdlib.h>\n\
                  int main(void) {\n\
                  char line[16] = \"\"; fgets(line, sizeof line, stdin); fputs(line, stdout);\n\
                  static char b[64 << 20]; int n = atoi(line);\n\
                  for (int i = 0; i < n; i++) b[(size_t)i << 16] += i;\n\
                  return n != 1000;\n\
                  }\n";
    let program = compile(folder.path(), "reads", &["-O1", "-static"], source);
    let input = place(folder.path(), "input", b"1000\n");
    let args = ["pages", "advise", "--pages", "all=64KiB", "--json", "out.json", "--", &program];
    let mut command = common::fxscope(folder.path(), &args);
    command.stdin(std::fs::File::open(input).expect("there"));
    let output = command.output().expect("starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.matches("1000\n").count() == 1, "{text}");
    let findings = json(&std::fs::read(folder.path().join("out.json")).expect("written"));
    let walks = count(&findings["choices"][0]["simulated"], "walks");
    // A thousand pages of 64 KiB are 63 of 2 MiB: it has read the number again.
    assert!((32..=80).contains(&walks), "{findings}");
}

mod slow {
    use super::*;

    /// Each variable of the environment costs the program 20,000 passes of a loop.
    #[test]
    #[ignore = "make slow-test runs it"]
    fn simulated_pages_take_the_time_of_a_run_with_the_program_s_own_environment() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let source = "#include <stddef.h>\n\
                      extern char **environ;\n\
                      static char b[16 << 20];\n\
                      int main(void) {\n\
                      long n = 0; while (environ[n]) n++;\n\
                      for (volatile long i = 0; i < 20000 * n; i++);\n\
                      for (int i = 0; i < 3 * 256; i++) b[(size_t)(i % 256) << 16] += i;\n\
                      return 0;\n\
                      }\n";
        let program = compile(folder.path(), "variables", &["-O1", "-static"], source);
        let findings = advise(folder.path(), &["--pages", "all=64KiB", "--simulate", "1", "--", &program]);
        let choices = findings["choices"].as_array().expect("a list");
        let choice = choices.iter().find(|choice| !choice["variables"].is_null()).expect("the machine's default");
        let pages: Vec<String> = ["text", "data", "bss", "heap", "stack", "thread_stack", "mmap"]
            .map(|name| {
                let part = if name.ends_with("stack") { "stacks" } else { name };
                format!("{name}={}", choice["pages"][part].as_str().unwrap_or("64KiB"))
            })
            .into();
        let pages = format!("shared=64KiB,{}", pages.join(","));
        assert!(
            output(folder.path(), &["run", "-q", "--json", "run.json", "--pages", &pages, "--", &program])
                .status
                .success()
        );
        let run = json(&std::fs::read(folder.path().join("run.json")).expect("written"));
        let seconds = |value: &Value| value["seconds"].as_f64().expect("a time");
        assert_eq!(seconds(&choice["simulated"]), seconds(&run["simulated"]), "{choice}");
    }

    /// The library has the same test with smaller programs. No load overtakes a store that it depends on: the analysis sees the look-ups of
    /// the run in their order.
    #[test]
    #[ignore = "make slow-test runs it"]
    fn the_analysis_counts_the_same_as_the_run_for_the_pages_of_the_run() {
        let folder = tempfile::tempdir().expect("temporary folder");
        for (program, arguments) in [
            ("triad-mem.elf", &["n=87360", "passes=2"][..]),
            ("triad-mem-swpf.elf", &["n=87360", "passes=1"]),
            ("triad-mem-zfill.elf", &["n=174720", "passes=1"]),
            ("gather.elf", &[]),
            ("chase.elf", &[]),
            ("sort.elf", &["n=20000", "passes=1"]),
        ] {
            let program = kernel(program);
            let args = [&["--pages", "all=64KiB", "--simulate", "1", "--", &program], arguments].concat();
            let now = &advise(folder.path(), &args)["now"];
            for key in ["l1_dtlb_misses", "walks", "l1_itlb_misses", "instruction_walks"] {
                assert_eq!(count(&now["predicted"], key), count(&now["simulated"], key), "{program}: {key}");
            }
        }
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_call_whose_mappings_miss_gets_its_own_page_size_and_a_run_with_it() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let program = compile(folder.path(), "uneven", &["-g", "-O1", "-static"], UNEVEN);
        let args = ["--pages", "all=64KiB", "--sizes", "32MiB", "--least", "0", "--", &program];
        let findings = advise(folder.path(), &args);
        let first = &findings["choices"][0];
        let pages = |name: &str| first["pages"][name].as_str();
        assert_eq!(
            [pages("walked (uneven.c:2)"), pages("swept (uneven.c:3)")],
            [Some("32MiB"), Some("64KiB")],
            "{first}"
        );
        // 512 pages of 64 KiB cycle through 16 entries 3,000 times; two pages stay.
        assert!(count(&findings["now"]["simulated"], "l1_dtlb_misses") > 3000 * 512);
        for key in ["l1_dtlb_misses", "walks"] {
            let (predicted, simulated) = (count(&first["predicted"], key), count(&first["simulated"], key));
            assert!(predicted < 2 * 512 + 64 && predicted.abs_diff(simulated) <= 4, "{key}: {first}");
        }
        let run = ["run", "-q", "-o", "r.fxr", "--pages", "all=64KiB,mmap@uneven.c:2=32MiB", "--", &program];
        assert!(output(folder.path(), &run).status.success());
        let report = output(folder.path(), &["report", "--section", "pages", "r.fxr"]);
        let text = String::from_utf8_lossy(&report.stdout).into_owned();
        let mmap: Vec<Vec<&str>> =
            text.lines().filter(|l| l.contains("mmap")).map(|l| l.split_whitespace().collect()).collect();
        assert!(mmap.iter().any(|row| row.starts_with(&["mmap", "32.00", "MiB"])), "{text}");
        assert!(mmap.iter().any(|row| row.starts_with(&["mmap", "64.00", "KiB"])), "{text}");
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn how_to_set_pages_of_a_single_call_is_shown_with_its_line() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let program = compile(folder.path(), "uneven", &["-g", "-O1", "-static"], UNEVEN);
        // No clearing of pages, which would cost more than the misses.
        let args = [
            "--pages",
            "all=64KiB",
            "--sizes",
            "32MiB",
            "--least",
            "0",
            "--set",
            "page_costs.clear_bytes_per_second=1099511627776",
        ];
        let findings = advise(folder.path(), &[&args[..], &["--", &program]].concat());
        let text = advice(&findings);
        assert!(text.contains("fxscope run --pages mmap@uneven.c:2=32MiB -- "), "{text}");
        assert!(
            text.contains("mmap(..., MAP_HUGETLB | 25 << MAP_HUGE_SHIFT) for what walked (uneven.c:2) maps"),
            "{text}"
        );
    }

    /// The start looks up a table at random, over and over; what follows uses a few small pages.
    #[test]
    #[ignore = "make slow-test runs it"]
    fn pages_that_only_the_start_uses_are_not_advised_for_the_steady_state() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let source = "static unsigned char table[4 << 20]; static double work[512];
            int main(void) {
                unsigned at = 1;
                for (int i = 0; i < 20000; i++) at = (at * 1664525u + 1013904223u) % (4 << 20) + ((volatile unsigned char *)table)[at];
                for (int round = 0; round < 800; round++) for (int i = 0; i < 512; i++) work[i] = work[i] * 0.5 + at;
                return work[7] == 3;
            }";
        let program = compile(folder.path(), "start", &["-O1", "-static"], source);
        let whole = advise(folder.path(), &["--pages", "all=64KiB", "--", &program]);
        assert_eq!(whole["leave_it"], false, "{whole}");
        let steady = advise(folder.path(), &["--pages", "all=64KiB", "--steady", "--", &program]);
        assert_eq!(steady["leave_it"], true, "{steady}");
        // Pages of the second half were touched in the first.
        assert!(count(&steady["now"]["predicted"], "walks") <= 2, "{steady}");
        assert!(whole["steady_from"].is_null() && count(&steady, "steady_from") > 500_000, "{steady}");
        assert!(steady["notes"].to_string().contains("of the second half of the run"), "{steady}");
        let twice = ["pages", "advise", "--steady", "--from", "instructions=1M", "--", &program];
        assert!(failure(folder.path(), &twice).1.contains("leave it or --from"));
    }
}
