//! Timed threads: where they run, in which order, and what their rows count.

use crate::common;

use common::timed::{OPENMP, Run, THREADS, run};
use common::{compile, failure, json, kernel};
use std::path::Path;

/// Compiles and runs.
fn run_c(flags: &[&str], options: &str, source: &str) -> Run {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = compile(folder.path(), "program", flags, source);
    run(folder.path(), options, &program, "")
}

/// Start of the C programs here: `N` threads run `work` with their number.
const START: &str = r"
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *work(void *number);
static void start(int n)
{
    pthread_t t[64];
    for (long i = 0; i < n; i++) if (pthread_create(&t[i], 0, work, (void *)i)) abort();
    for (int i = 0; i < n; i++) pthread_join(t[i], 0);
}
";

fn run_threads(options: &str, source: &str) -> Run {
    run_c(&THREADS, options, &format!("{START}{source}"))
}

// ---- placement --------------------------------------------------------------------------------

#[test]
fn cpus_outside_the_machine_empty_ranges_and_garbage_are_refused_with_the_valid_range() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("sharing.elf");
    for list in ["60", "0-3", "12-60", "14-12", "", "12-", "x", "12,,13", "-1", "99999999999999999999"] {
        let (status, error) = failure(folder.path(), &["run", &format!("--cpus={list}"), "--", &program]);
        assert_eq!(status, 125, "{list}: {error}");
        let says = error.contains("12-59");
        assert!(error.contains("--cpus") && says, "{list}: {error}");
    }
}

#[test]
fn a_program_sees_its_cpus_as_its_affinity_and_cannot_leave_them() {
    let seen = run_threads(
        "--cpus 13,24-25",
        r#"
static void *work(void *n) { return n; }
int main(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set)) return 1;
    for (int i = 0; i < CPU_SETSIZE; i++) if (CPU_ISSET(i, &set)) printf("%d ", i);
    CPU_ZERO(&set);
    CPU_SET(12, &set);
    int r = sched_setaffinity(0, sizeof set, &set);
    printf("%d %d\n", r, errno == EINVAL);
    start(0);
}
"#,
    );
    assert_eq!(seen.text, "13 24 25 -1 1\n");
    assert_eq!(seen.cpus(), [13]);
}

#[test]
fn unplaced_threads_go_to_the_cpus_of_the_first_cmg_in_ascending_order_and_then_to_the_next() {
    let seen = run_threads(
        "",
        r"
static pthread_barrier_t all;
static void *work(void *n) { pthread_barrier_wait(&all); return n; }
int main(void) { pthread_barrier_init(&all, 0, 13); start(13); }
",
    );
    assert_eq!(seen.cpus(), (12..26).collect::<Vec<u64>>());
}

#[test]
fn a_thread_moves_to_the_cpu_that_it_asks_for_and_its_row_says_so() {
    let seen = run_threads(
        "",
        r#"
static void *work(void *n)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(40 - 10 * (int)(long)n, &set);
    if (sched_setaffinity(0, sizeof set, &set)) abort();
    if (sched_getcpu() != 40 - 10 * (int)(long)n) abort();
    return n;
}
int main(void) { start(2); }
"#,
    );
    assert_eq!(seen.cpus(), [12, 40, 30]);
}

#[test]
fn openmp_variables_place_threads() {
    let source = r#"
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>
int main(void)
{
    int cpu[3] = {0};
    #pragma omp parallel
    cpu[omp_get_thread_num()] = sched_getcpu();
    printf("%d %d %d\n", cpu[0], cpu[1], cpu[2]);
}
"#;
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = compile(folder.path(), "program", &OPENMP, source);
    for (variable, cpus) in [
        ("OMP_PLACES={24},{36},{12}", "24 36 12\n"),
        ("OMP_PROC_BIND=close", "12 13 14\n"),
        ("OMP_PROC_BIND=spread", "12 28 44\n"),
        ("GOMP_CPU_AFFINITY=16-20:2", "16 18 20\n"),
    ] {
        let seen = run(folder.path(), &format!("-e OMP_NUM_THREADS=3 -e {variable}"), &program, "");
        assert_eq!(seen.text, cpus, "{variable}");
        let rows: Vec<String> = seen.cpus().iter().map(u64::to_string).collect();
        assert_eq!(rows.join(" ") + "\n", cpus, "{variable}");
    }
}

#[test]
fn more_threads_than_cpus_share_them_and_all_end() {
    let seen = run_threads(
        "--cpus 12-13",
        r#"
static volatile int sum[8];
static void *work(void *n) { for (int i = 0; i < 1000; i++) sum[(long)n]++; return n; }
int main(void) { start(8); for (int i = 0; i < 8; i++) if (sum[i] != 1000) return 1; puts("all"); }
"#,
    );
    assert_eq!(seen.text, "all\n");
    let cpus = seen.cpus();
    assert_eq!(cpus.len(), 9);
    assert!(cpus.iter().all(|cpu| [12, 13].contains(cpu)) && cpus.contains(&13), "{cpus:?}");
}

// ---- time and order ---------------------------------------------------------------------------

/// Parallel loops with barriers.
const LOOPS: &str = r"
#include <omp.h>
static double a[1200], b[1200];
int main(void)
{
    #pragma omp parallel
    {
        for (int i = 0; i < BARRIERS; i++) {
            #pragma omp barrier
        }
        for (int pass = 0; pass < PASSES; pass++) {
            #pragma omp for
            for (int i = 0; i < 1200; i++) a[i] = 2 * b[i] + a[i];
        }
    }
    return a[7] != 0;
}
";

#[test]
fn the_same_run_twice_gives_the_same_json_except_for_the_host() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let flags = [&OPENMP[..], &["-DBARRIERS=10", "-DPASSES=5"]].concat();
    let program = compile(folder.path(), "program", &flags, LOOPS);
    let once = || run(folder.path(), "--cpus 12-15 -e OMP_NUM_THREADS=4", &program, "").without_host();
    assert_eq!(once(), once());
}

/// Cycles with a quantum of one cycle and with the default differ by less than 1 %.
fn quantum_matters_little(folder: &Path, options: &str, program: &str, arguments: &str) {
    let exact = run(folder, &format!("--quantum 1 {options}"), program, arguments).cycles();
    let default = run(folder, options, program, arguments).cycles();
    assert!((default / exact - 1.0).abs() < 0.01, "{default} cycles, {exact} with a quantum of one");
}

#[test]
fn the_quantum_changes_triad_by_less_than_a_percent() {
    let folder = tempfile::tempdir().expect("temporary folder");
    quantum_matters_little(folder.path(), "", &kernel("triad-threads.elf"), "n=8320 passes=4 threads=4");
}

// ---- synchronisation --------------------------------------------------------------------------

#[test]
fn counters_under_a_mutex_and_atomic_counters_are_correct() {
    let seen = run_threads(
        "--cpus 12-15",
        r#"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long plain, atomic;
static void *work(void *n)
{
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&lock);
        plain++;
        pthread_mutex_unlock(&lock);
        __atomic_fetch_add(&atomic, 1, __ATOMIC_RELAXED);
    }
    return n;
}
int main(void) { start(4); printf("%ld %ld\n", plain, atomic); }
"#,
    );
    assert_eq!(seen.text, "800 800\n");
}

#[test]
fn threads_that_alternate_by_a_condition_variable_sleep_in_between() {
    let seen = run_threads(
        "--cpus 12-14",
        r#"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static long turn;
static void *work(void *n)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 20; i++) {
        while (turn % 2 != (long)n) pthread_cond_wait(&turned, &lock);
        turn++;
        pthread_cond_broadcast(&turned);
    }
    pthread_mutex_unlock(&lock);
    return n;
}
int main(void) { start(2); printf("%ld\n", turn); }
"#,
    );
    assert_eq!(seen.text, "40\n");
    for (thread, (_, sleeping)) in seen.rows("all", "WFE_WFI_CYCLE").into_iter().enumerate() {
        assert!(sleeping > 0, "thread {thread} has slept");
    }
}

#[test]
fn a_thread_that_dies_ends_the_program_and_all_threads_have_their_rows() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let source = r"
static void *work(void *n)
{
    if ((long)n == 2) *(volatile int *)8 = 1;
    for (;;) pause();
}
int main(void) { start(3); }
";
    let program = compile(folder.path(), "program", &THREADS, &format!("{START}{source}"));
    let (status, _) = failure(folder.path(), &["run", "--quiet", "--json", "result.json", "--", &program]);
    assert_eq!(status, 128 + 11);
    let json = json(&std::fs::read(folder.path().join("result.json")).expect("written"));
    let died = Run { text: String::new(), json };
    let rows = died.rows("all", "INST_RETIRED");
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row.1 > 0), "{rows:?}");
}

#[test]
fn false_sharing_slows_down_several_times() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let cycles = |layout: &str| {
        let arguments = format!("threads=2 rounds=1000 layout={layout}");
        let seen = run(folder.path(), "", &kernel("sharing.elf"), &arguments);
        seen.rows("sharing", "CPU_CYCLES").into_iter().map(|row| row.1).max().expect("rows") as f64
    };
    let (one, own) = (cycles("one-line"), cycles("own-lines"));
    assert!(one > 3.0 * own, "{one} cycles in one line, {own} in lines of their own");
}

/// Marks of regions, as in `kernels/fxscope_roi.h`.
fn roi() -> &'static str {
    include_str!("../../../../kernels/fxscope_roi.h")
}

#[test]
fn a_region_of_the_first_thread_counts_all_threads() {
    let source = r#"
static volatile int sum[3];
static void *work(void *n) { for (int i = 0; i < 1000; i++) sum[(long)n]++; return n; }
int main(void) { fxscope_roi_begin("all-of-it"); start(3); fxscope_roi_end(); }
"#;
    let seen = run_threads("--cpus 12-15", &format!("{}{source}", roi()));
    let rows = seen.rows("all-of-it", "INST_RETIRED");
    // An iteration is a load, an addition, a store and its loop counter.
    assert!(rows.len() == 4 && rows[1..].iter().all(|row| row.1 > 5000), "{rows:?}");
}

#[test]
fn a_region_marked_by_each_thread_counts_each_thread_alone() {
    let source = r#"
static volatile int sum[3];
static void *work(void *n)
{
    fxscope_roi_begin("mine");
    for (int i = 0; i < 1000 * (1 + (long)n); i++) sum[(long)n]++;
    fxscope_roi_end();
    return n;
}
int main(void) { start(3); }
"#;
    let seen = run_threads("--cpus 12-15", &format!("{}{source}", roi()));
    let counts: Vec<u64> = seen.rows("mine", "INST_RETIRED").into_iter().map(|row| row.1).collect();
    let [one, two, three] = counts[..] else { panic!("three threads: {counts:?}") };
    // Each 1000 iterations more are as many instructions more, by the same loop.
    assert_eq!(two - one, three - two);
    assert!(two - one >= 5000 && one < two, "{counts:?}");
}

// ---- events -----------------------------------------------------------------------------------

/// Waits with WFE after `before` until another thread does `what`, some µs later; prints whether it waited, and for
/// less time than until the next event of the event stream.
fn wakes_early(before: &str, what: &str) -> String {
    let source = format!(
        r#"
#include <time.h>
static volatile int here, ready, word;
static long now(void)
{{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}}
static void *work(void *n)
{{
    int seen;
    if (n) {{
        here = 1;
        while (!ready);
        for (volatile int i = 0; i < 2000; i++);
        {what}
        return n;
    }}
    while (!here);
    // No event is pending, and the event stream has just had one: its next comes in 100 µs.
    asm volatile("sevl\n wfe\n wfe" ::: "memory");
    long start = now();
    ready = 1;
    {before}
    asm volatile("wfe" ::: "memory");
    long waited = now() - start;
    printf("%d %d\n", waited > 3000, waited < 90000);
    (void)seen;
    return n;
}}
int main(void) {{ start(2); }}
"#
    );
    run_threads("--cpus 12-14", &source).text
}

#[test]
fn sev_of_another_thread_wakes_wfe() {
    assert_eq!(wakes_early("", r#"asm volatile("sev" ::: "memory");"#), "1 1\n");
}

#[test]
fn a_write_to_the_monitored_address_wakes_wfe() {
    let before = r#"asm volatile("ldaxr %w0, [%1]" : "=r"(seen) : "r"(&word) : "memory");"#;
    assert_eq!(wakes_early(before, "word = 1;"), "1 1\n");
}

#[test]
fn the_event_stream_ends_wfe_after_100_us_at_the_latest() {
    let seen = run_threads(
        "",
        r#"
static void *work(void *n) { return n; }
#include <time.h>
static long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}
int main(void)
{
    start(0);
    asm volatile("sevl\n wfe" ::: "memory");
    long start = now();
    asm volatile("wfe\n wfe" ::: "memory");
    long waited = now() - start;
    printf("%d %d\n", waited > 90000, waited < 215000);
}
"#,
    );
    assert_eq!(seen.text, "1 1\n");
}

/// They take longest.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn the_quantum_changes_an_openmp_program_with_barriers_by_less_than_a_percent() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let flags = [&OPENMP[..], &["-DBARRIERS=200", "-DPASSES=20"]].concat();
        let program = compile(folder.path(), "program", &flags, LOOPS);
        quantum_matters_little(folder.path(), "--cpus 12-23 -e OMP_NUM_THREADS=12", &program, "");
    }
}
