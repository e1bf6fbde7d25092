//! Promotion and demotion of pages by heat: where arrays are at the end of a run, what that gains, and what it costs.

use crate::common;

use common::timed::{Run, THREADS, run};
use common::{compile, failure, fxscope, kernel};

/// A tier of a microsecond, fast memory for 40 pages, and small caches.
const TIER: &str = "--memory-tier cxl:1000ns,32GB/s --fast-memory 2560KiB --pages all=64KiB --set l2.bytes=256KiB \
                    -e XOS_MMM_L_PAGING_POLICY=demand:demand:demand";
/// Linux's times, two thousand times shorter.
const TIERING: &str = "--tiering=delay=1ms,period=500us,threshold=500us,window=500us,adjust=30ms";
/// Pages of each array of [`PROGRAM`].
const PAGES: u64 = 16;

/// Runs the program with a tier, further options and arguments.
fn ran(options: &str, arguments: &str) -> Run {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = compile(folder.path(), "heat", &THREADS, PROGRAM);
    run(folder.path(), &format!("{TIER} {options}"), &program, arguments)
}

/// Returns the pages of an array in fast memory at the end, by process.
fn fast(run: &Run, array: &str) -> Vec<u64> {
    let of_line = |line: &str| Some(line.strip_prefix(array)?.strip_prefix(' ')?.parse().expect("a number"));
    run.text.lines().filter_map(of_line).collect()
}

fn event(run: &Run, name: &str) -> u64 {
    run.events("all", name).into_iter().sum()
}

#[test]
fn a_hot_array_ends_up_in_fast_memory_and_cold_ones_do_not() {
    let (still, tiered) = (ran("", ""), ran(TIERING, ""));
    assert_eq!((fast(&still, "hot"), event(&still, "TIER_HINT_FAULT")), (vec![0], 0), "{}", still.text);
    assert_eq!(fast(&tiered, "hot"), [PAGES], "{}", tiered.text);
    assert!(fast(&tiered, "rare")[0] <= 2, "{}", tiered.text);
    assert!(tiered.cycles() < 0.7 * still.cycles(), "{} and {} cycles", tiered.cycles(), still.cycles());

    let [promoted, demoted, faults] =
        ["TIER_PROMOTE", "TIER_DEMOTE", "TIER_HINT_FAULT"].map(|name| event(&tiered, name));
    assert!((PAGES..2 * PAGES).contains(&promoted) && demoted > 0 && faults > promoted, "{}", tiered.text);
    assert_eq!(
        [event(&tiered, "TIER_PROMOTE_BYTES"), event(&tiered, "TIER_DEMOTE_BYTES")],
        [promoted, demoted].map(|pages| pages << 16)
    );
    // Each fault takes a microsecond, each promotion 64 KiB at 8.565 GB/s as well.
    let least = faults * 2_000 + promoted * (65536 * 2_000_000_000 / 8_565_000_000);
    let waited = event(&tiered, "TIERING_CYCLES");
    assert!((least..least + least / 2).contains(&waited), "{waited} cycles, at least {least}");
    // The verdict names that wait, apart from other work of the kernel.
    let limits = tiered.json["regions"][0]["verdict"]["limits"].as_array().expect("limits");
    let moves = limits.iter().find(|limit| limit["rule"] == "tiering").unwrap_or_else(|| panic!("{limits:?}"));
    let share = moves["share"].as_f64().expect("a share");
    assert!((share - waited as f64 / tiered.cycles()).abs() < 1e-3, "{share}");
    let all: u64 = ["hot", "rare", "first"].map(|array| fast(&tiered, array)[0]).iter().sum();
    assert!(all <= 40, "the fast memory has room for 40 pages: {}", tiered.text);
}

#[test]
fn the_limit_of_promotion_keeps_hot_pages_in_the_tier() {
    // A page in each window, of which the run has some 20.
    let limited = ran("--tiering=delay=1ms,period=500us,threshold=500us,window=1ms,rate=65MB/s", "");
    assert!((1..PAGES).contains(&fast(&limited, "hot")[0]), "{}", limited.text);
}

#[test]
fn threads_that_share_an_array_promote_it_once() {
    let shared = ran(TIERING, "threads");
    assert_eq!(fast(&shared, "hot"), [PAGES], "{}", shared.text);
    assert!(event(&shared, "TIER_PROMOTE") < 2 * PAGES, "{}", shared.text);
}

#[test]
fn each_of_two_processes_gets_its_hot_pages_into_fast_memory() {
    let both = ran(TIERING, "processes");
    assert_eq!(fast(&both, "hot"), [PAGES; 2], "{}", both.text);
}

#[test]
fn the_report_has_what_was_moved() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = compile(folder.path(), "heat", &THREADS, PROGRAM);
    run(folder.path(), &format!("{TIER} {TIERING} -o heat.fxr"), &program, "");
    for options in [&["report", "--section", "pages"][..], &["report", "--level", "detailed"]] {
        let output = fxscope(folder.path(), &[options, &["heat.fxr"]].concat()).output().expect("it runs");
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(text.contains("promoted") && text.contains("hint faults"), "{text}");
    }
}

#[test]
fn moves_need_a_tier_and_a_run_that_is_timed_as_a_whole() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let chase = kernel("chase.elf");
    let tier = ["--memory-tier", "cxl:250ns,32GB/s"];
    let cases: [(&[&str], &str); 4] = [
        (&[], "no memory tier for pages to move to"),
        (&[tier[0], tier[1], "--mode", "functional"], "use timing mode"),
        (&[tier[0], tier[1], "--sample"], "leave --sample out"),
        (&[tier[0], tier[1], "--host-threads", "2"], "leave --host-threads out"),
    ];
    for (options, why) in cases {
        let all = [&["run", "--tiering"], options, &["--", &chase]].concat();
        let (_, error) = failure(folder.path(), &all);
        assert!(error.contains(why), "{options:?}: {error}");
    }
    let (_, error) = failure(folder.path(), &["run", "--tiering=speed=1", "--", &chase]);
    assert!(error.contains("there is no 'speed'"), "{error}");
}

/// Touches `first`, which fills the fast memory, then `rare` and `hot`, which get into the tier. Looks up `hot` at random, and a page of
/// `rare` from time to time. Prints how many pages of each are on node 4.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
enum { PAGE = 65536, FIRST = 40, PAGES = 16, LOOKUPS = 12000 };
static char *first, *rare, *hot;
static char *map(int pages) {
    char *at = mmap(0, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < pages; i++) at[(size_t)i * PAGE] = 1;
    return at;
}
static void *look_up(void *seed) {
    unsigned long state = (unsigned long)seed + 1, sum = 0;
    for (int i = 0; i < LOOKUPS; i++) {
        state = state * 6364136223846793005ul + 1442695040888963407ul + sum;
        sum = ((volatile char *)hot)[(state >> 33) % ((unsigned long)PAGES * PAGE)] & 2;
        if (i % 1500 == 1499) sum += ((volatile char *)rare)[(unsigned long)(i / 1500) * PAGE] & 2;
    }
    return (void *)sum;
}
static void show(const char *name, char *at, int pages) {
    void *addresses[FIRST];
    int nodes[FIRST], fast = 0;
    for (int i = 0; i < pages; i++) addresses[i] = at + (size_t)i * PAGE;
    syscall(SYS_move_pages, 0, (long)pages, addresses, 0, nodes, 0);
    for (int i = 0; i < pages; i++) fast += nodes[i] < 8;
    printf("%s %d\n", name, fast);
}
int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    int child = strcmp(how, "processes") ? 1 : fork();
    first = map(FIRST), rare = map(PAGES), hot = map(PAGES);
    if (!strcmp(how, "threads")) {
        pthread_t threads[4];
        for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, look_up, (void *)i);
        for (long i = 0; i < 4; i++) pthread_join(threads[i], 0);
    } else look_up(0);
    if (!strcmp(how, "processes") && child) wait(0);
    show("first", first, FIRST), show("rare", rare, PAGES), show("hot", hot, PAGES);
    return 0;
}
"#;
