//! `fxscope pages host --perf`, `--perf-file` and `--check`: what large pages save a program of this host.

use crate::common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::{failure, output};
use serde_json::Value;
use tempfile::tempdir;

/// `perf stat -x ,` on an Intel server, a hundred times less than a real one.
const INTEL: [(&str, u64); 8] = [
    ("cycles", 10_000_000),
    ("dtlb_load_misses.walk_active", 3_000_000),
    ("dtlb_store_misses.walk_active", 500_000),
    ("itlb_misses.walk_active", 10_000),
    ("dtlb_load_misses.walk_completed_4k", 80_000),
    ("dtlb_store_misses.walk_completed_4k", 10_000),
    ("dtlb_load_misses.walk_completed_2m_4m", 10_000),
    ("cycle_activity.stalls_total", 8_000_000),
];

fn separated(counts: &[(&str, u64)]) -> String {
    counts.iter().map(|(name, count)| format!("{count},,{name},100000000,100.00,,\n")).collect()
}

fn json_lines(counts: &[(&str, u64)]) -> String {
    let line = |(name, count): &(&str, u64)| {
        format!(
            "{{\"counter-value\" : \"{count}.000000\", \"unit\" : \"\", \"event\" : \"{name}\", \"event-runtime\" : 100000000, \
             \"pcnt-running\" : 100.00}}\n"
        )
    };
    counts.iter().map(line).collect()
}

fn as_text(counts: &[(&str, u64)]) -> String {
    let lines: String = counts.iter().map(|(name, count)| format!("{count:>18}      {name}\n")).collect();
    format!("\n Performance counter stats for './a':\n\n{lines}\n       0.100000000 seconds time elapsed\n\n")
}

/// Runs the command and returns its JSON's part about large pages.
fn large_pages(folder: &Path, args: &[&str]) -> Value {
    let all = [&["pages", "host", "--format", "json"], args].concat();
    let output = output(folder, &all);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let all: Value = serde_json::from_slice(&output.stdout).expect("JSON alone on standard output");
    all["large_pages"].clone()
}

fn saving(estimate: &Value) -> [f64; 2] {
    [0, 1].map(|which| estimate["estimate"]["saving"][which].as_f64().expect("a number"))
}

fn close(found: [f64; 2], expected: [f64; 2]) {
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?} instead of {expected:?}");
}

#[test]
fn all_forms_of_perf_stat_give_the_same_range() {
    let folder = tempdir().expect("temporary folder");
    for (name, text) in [("a.csv", separated(&INTEL)), ("a.json", json_lines(&INTEL)), ("a.txt", as_text(&INTEL))] {
        fs::write(folder.path().join(name), text).expect("written");
        let found = large_pages(folder.path(), &["--perf-file", name]);
        // At most (3 + 0.5) * 9 / 10 of 10; at least 3 * 9 / 10 + 8 - 10.
        close(saving(&found), [0.07, 0.315]);
        assert_eq!(found["estimate"]["processor"], "intel");
    }
    let text = output(folder.path(), &["pages", "host", "--perf-file", "a.csv"]).stdout;
    let text = String::from_utf8(text).expect("text");
    let advice = text.find("would save 7.0 to 31.5 %").expect("the advice is first");
    assert!(advice < 200 && text.contains("glibc.malloc.hugetlb=1") && text.contains("At most 31.5 %"), "{text}");
}

#[test]
fn counts_of_walks_take_the_cycles_of_a_walk_from_the_option() {
    let folder = tempdir().expect("temporary folder");
    let zen = [
        ("cycles:u", 10_000_000),
        ("ls_l1_d_tlb_miss.tlb_reload_4k_l2_miss:u", 20_000),
        ("ls_l1_d_tlb_miss.tlb_reload_2m_l2_miss:u", 20_000),
    ];
    fs::write(folder.path().join("zen.csv"), separated(&zen)).expect("written");
    // 40 000 walks of 50 cycles, half of them at base pages, of 10 M cycles.
    let found = large_pages(folder.path(), &["--perf-file", "zen.csv", "--walk-cycles", "20,50"]);
    close(saving(&found), [0.0, 0.1]);
    let arm = [("cpu_cycles", 10_000_000), ("dtlb_walk", 40_000), ("stall_backend", 5_000_000)];
    fs::write(folder.path().join("arm.csv"), separated(&arm)).expect("written");
    let found = large_pages(folder.path(), &["--perf-file", "arm.csv", "--walk-cycles", "20,50"]);
    close(saving(&found), [0.0, 0.2]);
    assert_eq!(found["estimate"]["small"], Value::Null);
}

/// A program named perf that writes these lines to the file after `-o`, having run the program after `--`.
fn fake_perf(folder: &Path, lines: &str) -> String {
    let perf = folder.join("perf");
    let script = format!(
        "#!/bin/sh\nwhile [ $# -gt 0 ]; do case $1 in -o) out=$2; shift;; -e) echo \"$2\" >> events;; --) shift; break;; esac; shift; \
         done\n\"$@\" || exit\ncat > \"$out\" <<'END'\n{lines}END\n"
    );
    fs::write(&perf, script).expect("written");
    fs::set_permissions(&perf, fs::Permissions::from_mode(0o755)).expect("made executable");
    format!("--perf={}", perf.display())
}

#[test]
fn a_program_is_counted_by_perf_and_its_output_does_not_mix_with_the_answer() {
    let folder = tempdir().expect("temporary folder");
    let perf = fake_perf(folder.path(), &separated(&INTEL).replace(',', ";"));
    let found = large_pages(folder.path(), &[&perf, "--processor", "intel", "--", "echo", "words"]);
    close(saving(&found), [0.07, 0.315]);
    let asked = fs::read_to_string(folder.path().join("events")).expect("events were asked for");
    for event in INTEL.map(|(name, _)| name) {
        assert!(asked.lines().any(|line| line == event), "{event}: {asked}");
    }
    assert!(!asked.contains("walk_pending"), "{asked}");
}

#[test]
fn what_cannot_be_counted_is_refused_with_what_to_do() {
    let folder = tempdir().expect("temporary folder");
    let refused = |args: &[&str], parts: &[&str]| {
        let (status, error) = failure(folder.path(), &[&["pages", "host"], args].concat());
        assert!(status != 0, "{args:?}");
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    };
    refused(&["--perf=/no/such/perf", "--processor", "intel", "--", "true"], &["/no/such/perf", "--check"]);
    let none = fake_perf(folder.path(), "<not supported>;;cycles;0;100.00;;\n");
    refused(&[&none, "--processor", "intel", "--", "true"], &["could count none", "virtual machine", "--check"]);
    refused(&[&none, "--processor", "intel", "--", "false"], &["status 1", "--check"]);
    refused(&[&none, "--processor", "pentium", "--", "true"], &["'pentium'", "amd-zen"]);
    refused(&[&none, "--processor", "intel"], &["after --"]);
    refused(&["--perf-file", "absent.csv"], &["absent.csv"]);
    fs::write(folder.path().join("plain.csv"), separated(&[("cycles", 5), ("instructions", 7)])).expect("written");
    refused(&["--perf-file", "plain.csv"], &["plain.csv", "no event of page walks", "dtlb_walk"]);
    refused(&["--perf-file", "plain.csv", "--walk-cycles", "9"], &["LEAST,MOST"]);
    refused(&["--check", "--pairs", "2", "--", "true"], &["at least 6"]);
    refused(&["--", "true"], &["--perf or --check"]);
}

#[test]
fn pairs_of_runs_measure_a_real_program() {
    let enabled = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if enabled.is_empty() || enabled.contains("[never]") {
        eprintln!("skipped: this host has no transparent huge pages, or they are off");
        return;
    }
    let folder = tempdir().expect("temporary folder");
    let (status, error) = failure(folder.path(), &["pages", "host", "--check", "--pairs", "6", "--", "false"]);
    if error.contains("PR_SET_THP_DISABLE") {
        eprintln!("skipped: {error}");
        return;
    }
    assert!(status != 0 && error.contains("false failed"), "{error}");
    // dd touches its buffer of malloc, which is larger than a large page.
    let dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64M", "count=8", "status=none"];
    let found = large_pages(folder.path(), &[&["--check", "--pairs", "6", "--"][..], &dd].concat());
    let measured = &found["measured"];
    let times =
        |side: &str| measured[side].as_array().expect("list").iter().filter_map(Value::as_f64).collect::<Vec<_>>();
    let (small, large) = (times("small"), times("large"));
    assert_eq!((small.len(), large.len()), (6, 6));
    assert!(small.iter().chain(&large).all(|&seconds| seconds > 0.0));
    let mut savings: Vec<f64> = small.iter().zip(&large).map(|(small, large)| 1.0 - large / small).collect();
    savings.sort_by(f64::total_cmp);
    // Of six pairs, the interval of the sign test is that from the least to the greatest: 2 / 2^6 = 3 % are outside.
    let bounds = [0, 1].map(|which| measured["interval"][which].as_f64().expect("a number"));
    close(bounds, [savings[0], savings[5]]);
    assert_eq!(found["estimate"], Value::Null);
    let perf = fake_perf(folder.path(), &separated(&INTEL).replace(',', ";"));
    let found = large_pages(folder.path(), &[&perf, "--processor", "intel", "--check", "--pairs", "6", "--", "true"]);
    let [error, median] = [&found["error"], &found["measured"]["saving"]].map(|one| one.as_f64().expect("a number"));
    // The distance of the median from the range.
    assert!((error - (median - 0.315).max(0.0) - (median - 0.07).min(0.0)).abs() < 1e-6, "{error} {median}");
}
