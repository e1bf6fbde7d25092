//! Transparent huge pages in timed runs: what their sizes gain, what khugepaged costs, and that runs are repeatable whatever the way in
//! which they are made.

use crate::common;

use common::timed::{Run, THREADS, run};
use common::{compile, failure, fxscope, kernel};

/// Normal pages everywhere, allocated on demand.
const NORMAL: &str = "--pages all=64KiB -e XOS_MMM_L_HPAGE_TYPE=none";
/// The same with pages of 4 KiB, of which 512 are a huge page of 2 MiB.
const SMALL: &str = "--set pages.normal=4KiB --pages all=4KiB -e XOS_MMM_L_HPAGE_TYPE=none";
/// khugepaged a thousand times as often as under Linux, in memory with advice.
const OFTEN: &str = "--thp madvise,scan_sleep=200us";

/// Runs the program with options and arguments.
fn ran(options: &str, arguments: &str) -> Run {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = compile(folder.path(), "huge", &THREADS, PROGRAM);
    run(folder.path(), options, &program, arguments)
}

fn event(run: &Run, name: &str) -> u64 {
    run.events("all", name).into_iter().sum()
}

/// Returns the ranges that khugepaged has collapsed.
fn collapsed(run: &Run) -> u64 {
    let notes = run.json["notes"].as_array().expect("notes").iter().filter_map(|note| note.as_str());
    let mut counts = notes.filter_map(|note| note.strip_prefix("khugepaged: ")?.split(' ').next()?.parse().ok());
    counts.next().unwrap_or(0)
}

#[test]
fn the_largest_size_is_one_entry_and_needs_advice_by_default() {
    let walks = |options: &str| event(&ran(&format!("{SMALL} {options}"), "touch"), "L2D_TLB_REFILL");
    let [usual, always, never] = [walks(""), walks("--thp always"), walks("--thp never")];
    // 64 MiB are 16,384 pages of 4 KiB, of which the program touches each sixteenth, or 32 of 2 MiB.
    assert!(usual >= 1024 && usual == never, "{usual} {never}");
    assert!((usual - always).abs_diff(1024 - 32) < 20, "{usual} {always}");
}

#[test]
fn a_collapse_takes_the_time_of_a_copy() {
    let ran = |how: &str| ran(&format!("{SMALL} --thp never"), how);
    let [with, without] = [ran("now"), ran("not")];
    // 8 MiB at 8.565 GB/s, four times a microsecond for TLBs; the tests of the model have the exact sum.
    let expected = (8u64 << 20) as f64 / 8.565e9 * 2e9 + 8_000.0;
    let took = with.cycles() - without.cycles();
    assert!((0.9..1.2).contains(&(took / expected)), "{took} of {expected}");
}

#[test]
fn settings_that_are_not_understood_are_refused_with_how_to_write_them() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let chase = kernel("chase.elf");
    for (option, why) in [
        ("sometimes", "'sometimes' is none of always, madvise, never"),
        ("128KiB=always", "sizes of transparent huge pages, from 262_144 to 536_870_912"),
        ("scan_sleep=5", "'5' is not a time"),
    ] {
        let (_, error) = failure(folder.path(), &["run", "--thp", option, "--", &chase]);
        assert!(error.contains(why), "{option}: {error}");
    }
}

/// `touch` touches 64 MiB, one byte in 64 KiB. `later` fills 8 MiB but for a page, asks for huge pages, and looks up places in it at
/// random; with `threads` or `processes`, two do. `now` and `not` fill 8 MiB and collapse them, or not.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#define MIB (1ul << 20)
enum { LOOKUPS = 60000 };
/* `len` bytes from a multiple of 8 MiB on, with nothing mapped next to them. */
static char *map(size_t len) {
    size_t all = len + 16 * MIB;
    char *start = mmap(0, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *at = (char *)(((uintptr_t)start + 8 * MIB) / (8 * MIB) * (8 * MIB));
    munmap(start, at - start);
    munmap(at + len, start + all - (at + len));
    return at;
}
static char *area;
static void *look_up(void *seed) {
    unsigned long state = (unsigned long)seed + 1, sum = 0;
    for (int i = 0; i < LOOKUPS; i++) {
        state = state * 6364136223846793005ul + 1442695040888963407ul;
        sum += ((volatile char *)area)[((state >> 33) + (sum & 1)) % (8 * MIB - 65536)];
    }
    return (void *)sum;
}
static void fill(size_t len) {
    area = map(8 * MIB);
    for (size_t at = 0; at < len; at += 4096) area[at] = (char)(at >> 12);
}
int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "", *who = argc > 2 ? argv[2] : "";
    unsigned long sum = 0;
    if (!strcmp(how, "touch")) {
        char *at = map(64 * MIB);
        for (size_t i = 0; i < 64 * MIB; i += 65536) at[i] = 1;
    } else if (!strcmp(how, "later")) {
        int child = strcmp(who, "processes") ? 1 : fork();
        fill(8 * MIB - 65536);
        madvise(area, 8 * MIB, MADV_HUGEPAGE);
        pthread_t other;
        int has_other = !strcmp(who, "threads");
        if (has_other) pthread_create(&other, 0, look_up, (void *)7);
        sum = (unsigned long)look_up((void *)3);
        if (has_other) pthread_join(other, 0);
        if (child && !strcmp(who, "processes")) wait(0);
    } else {
        fill(8 * MIB);
        if (!strcmp(how, "now")) sum = madvise(area, 8 * MIB, 25);
    }
    printf("%s %lu\n", how, sum);
    return 0;
}
"#;

/// Takes seconds of processor time.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn khugepaged_runs_in_all_kinds_of_runs_and_twice_the_same() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let program = compile(folder.path(), "huge", &THREADS, PROGRAM);
        let ran =
            |options: &str| run(folder.path(), &format!("{SMALL} {OFTEN} {options}"), &program, "later").without_host();
        let kinds = [
            "",
            "--sample begin=2000,window=300,warm=100,period=1500",
            "--jobs 2",
            "--host-threads 2",
            "--mode functional",
        ];
        for options in kinds {
            let [first, second] = [ran(options), ran(options)];
            assert_eq!(collapsed(&first), 4, "{options}: {}", first.json["notes"]);
            assert!(first == second, "{options}");
        }
        assert!(ran("--jobs 1") == ran("--jobs 3"));
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_run_that_continues_from_a_snapshot_collapses_as_one_that_was_not_interrupted() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let program = compile(folder.path(), "huge", &THREADS, PROGRAM);
        let options = format!("{SMALL} {OFTEN}");
        let whole = run(folder.path(), &options, &program, "later").without_host();
        let stopped = format!("{options} --checkpoint kept --every 100k --keep 100");
        let kept = run(folder.path(), &stopped, &program, "later").without_host();
        assert_eq!((whole.cycles(), collapsed(&whole)), (kept.cycles(), collapsed(&kept)));
        let snapshots = std::fs::read_dir(folder.path().join("kept")).expect("a folder");
        let mut names: Vec<_> =
            snapshots.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
        names.retain(|name| name.ends_with(".snapshot"));
        names.sort();
        // Continues from the second snapshot: later ones are taken away.
        assert!(names.len() > 3, "{names:?}");
        names[2..]
            .iter()
            .for_each(|name| std::fs::remove_file(folder.path().join("kept").join(name)).expect("removed"));
        std::fs::remove_file(folder.path().join("kept/ended")).expect("removed");
        let output =
            fxscope(folder.path(), &["resume", "-q", "--json", "again.json", "kept"]).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let again = common::json(&std::fs::read(folder.path().join("again.json")).expect("written"));
        assert_eq!(again["simulated"], whole.json["simulated"]);
        assert_eq!(again["regions"], whole.json["regions"]);
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn folios_take_fewer_faults_and_those_of_a_contiguous_group_or_more_fewer_walks() {
        let with = |size: &str| ran(&format!("{NORMAL} --thp never,{size}=always"), "touch");
        let [normal, small, group, large] = [ran(NORMAL, "touch"), with("1MiB"), with("2MiB"), with("8MiB")]
            .map(|run| (event(&run, "L2D_TLB_REFILL"), run));
        // 64 MiB are 1,024 pages of 64 KiB, or 32 groups of 2 MiB.
        assert!((1024..1100).contains(&normal.0) && normal.0.abs_diff(small.0) < 20, "{} {}", normal.0, small.0);
        for walks in [group.0, large.0] {
            assert!((normal.0 - walks).abs_diff(1024 - 32) < 20, "{} {walks}", normal.0);
        }
        // Each fault takes a microsecond, 2,000 cycles; clearing takes as long whatever the size.
        let saved = normal.1.cycles() - small.1.cycles();
        let expected = f64::from((1024 - 64) * 2_000);
        assert!((saved / expected - 1.0).abs() < 0.05, "{saved} of {expected}");
        let pages = large.1.json["pages"].as_array().expect("a list").iter();
        let huge: Vec<_> =
            pages.filter(|pages| pages["page_bytes"] == 8 << 20).map(|pages| pages["pages"].clone()).collect();
        assert_eq!(huge, [8], "{}", large.1.json["pages"]);
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn khugepaged_collapses_what_a_program_uses_and_removes_its_misses() {
        let [off, on] =
            [ran(&format!("{SMALL} --thp madvise,khugepaged=off"), "later"), ran(&format!("{SMALL} {OFTEN}"), "later")];
        assert_eq!((collapsed(&off), collapsed(&on)), (0, 4), "{}", on.json["notes"]);
        assert_eq!(off.text, on.text, "the program's results");
        let [before, after] = [&off, &on].map(|run| event(run, "L1D_TLB_REFILL"));
        assert!(after < before / 2, "{after} {before}");
        assert!(on.cycles() < off.cycles(), "{} {}", on.cycles(), off.cycles());
        // Ranges that are missing a page stay.
        let full = ran(&format!("{SMALL} {OFTEN},max_ptes_none=0"), "later");
        assert_eq!(collapsed(&full), 3, "{}", full.json["notes"]);
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn each_of_two_processes_has_its_pages_collapsed_and_threads_of_one_have_them_once() {
        let both = ran(&format!("{SMALL} {OFTEN}"), "later processes");
        assert_eq!(collapsed(&both), 8, "{}", both.json["notes"]);
        let threads = ran(&format!("{SMALL} {OFTEN}"), "later threads");
        assert_eq!(collapsed(&threads), 4, "{}", threads.json["notes"]);
    }
}
