//! Spin-waiting threads: iterations counted together give the same as iterations simulated one by one.

use crate::common;

use common::{compile, json, kernel, output};
use serde_json::Value;
use std::path::Path;

/// A run with iterations counted together (`fast`) or one by one (`exact`): output and JSON.
fn run(folder: &Path, spin: &str, options: &str, program: &str, arguments: &str) -> (String, Value) {
    let result = folder.join("result.json");
    let result = result.to_str().expect("UTF-8 path");
    let mut args = vec!["run", "--quiet", "--json", result, "--spin", spin];
    args.extend(options.split_whitespace().chain(["--", program]).chain(arguments.split_whitespace()));
    let output = output(folder, &args);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    (text, json(&std::fs::read(result).expect("written")))
}

/// Each event of the whole run, all threads together. Equivalent pipes count together: which of two an operation takes
/// depends on every earlier one.
fn events(json: &Value) -> Vec<(String, f64)> {
    const ALIKE: [[&str; 2]; 5] = [
        ["EXA_VAL", "EXB_VAL"],
        ["EAGA_VAL", "EAGB_VAL"],
        ["L1_PIPE0_VAL", "L1_PIPE1_VAL"],
        ["L1_PIPE0_COMP", "L1_PIPE1_COMP"],
        ["L1_PIPE0_COMP_PRD_CNT", "L1_PIPE1_COMP_PRD_CNT"],
    ];
    let all = &json["regions"][0]["threads"];
    let rows = all.as_array().expect("rows of threads");
    let names = rows[0]["events"].as_object().expect("events").keys();
    let sum = |name: &str| rows.iter().map(|row| row["events"][name].as_f64().unwrap_or(0.0)).sum();
    let single =
        names.filter(|name| !ALIKE.as_flattened().contains(&name.as_str())).map(|name| (name.clone(), sum(name)));
    single.chain(ALIKE.map(|[a, b]| (format!("{a} and {b}"), sum(a) + sum(b)))).collect()
}

/// Runs both ways: the output is the same; time, and counts that are large enough to compare, differ by less than 1 %.
fn agree(options: &str, program: &str, arguments: &str) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let (exact_text, exact) = run(folder.path(), "exact", options, program, arguments);
    let (fast_text, fast) = run(folder.path(), "fast", options, program, arguments);
    assert_eq!(exact_text, fast_text);
    let cycles = |json: &Value| json["simulated"]["cycles"].as_f64().expect("cycles");
    let (a, b) = (cycles(&exact), cycles(&fast));
    assert!((b / a - 1.0).abs() < 0.01, "{program} {arguments}: {b} cycles, {a} round by round");
    for ((name, one), (_, other)) in events(&exact).into_iter().zip(events(&fast)) {
        let often = one.max(a);
        assert!((other - one).abs() < 0.01 * often, "{program} {arguments}: {name} {other}, {one} round by round");
    }
}

/// Compiles a C program whose threads work or wait.
fn threads(folder: &Path, source: &str) -> String {
    const START: &str = r"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>
static volatile int go, here;
static volatile double sum;
static void work(int n) { for (int i = 0; i < n; i++) sum += i; }
static void *other(void *);
";
    const MAIN: &str = r"
int main(void)
{
    pthread_t t;
    if (pthread_create(&t, 0, other, 0)) abort();
    first();
    pthread_join(t, 0);
}
";
    let flags = ["-O2", "-mcpu=a64fx", "-static", "-pthread"];
    compile(folder, "program", &flags, &format!("{START}{source}{MAIN}"))
}

/// `source` defines the threads' functions; returns the output of a run with iterations counted together.
fn prints(source: &str) -> String {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = threads(folder.path(), source);
    run(folder.path(), "fast", "--cpus 12-13", &program, "").0
}

const OPENMP: &str = r#"
#include <omp.h>
#include <stdio.h>
static double a[512];
int main(void)
{
    #pragma omp parallel
    for (int pass = 0; pass < 3; pass++) {
        #pragma omp master
        for (int k = 0; k < 12; k++) for (int i = 1; i < 512; i++) a[i] = a[i - 1] * 0.5 + a[i] + k;
        #pragma omp barrier
        #pragma omp for
        for (int i = 0; i < 512; i++) a[i] += i;
    }
    printf("%g\n", a[511]);
}
"#;

/// A serial part, for which seven threads wait.
const SERIAL: &str = r"
static void *other(void *arg)
{
    while (!go);
    return arg;
}
static void first(void)
{
    pthread_t more[6];
    for (int i = 0; i < 6; i++) pthread_create(&more[i], 0, other, 0);
    work(200000);
    go = 1;
    for (int i = 0; i < 6; i++) pthread_join(more[i], 0);
}
";

#[test]
fn functional_runs_leave_most_instructions_to_threads_that_work() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = threads(folder.path(), SERIAL);
    let (_, json) = run(folder.path(), "fast", "--mode functional", &program, "");
    let instructions = json["simulated"]["instructions"].as_u64().expect("counted");
    // Six instructions or so for each step of the work; seven threads that wait in turn with it would have seven times as many.
    assert!((800_000..2_500_000).contains(&instructions), "{instructions}");
}

#[test]
fn the_simulators_speed_has_executed_and_skipped_instructions_apart() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let flags = ["-O2", "-mcpu=a64fx", "-static", "-fopenmp"];
    let program = compile(folder.path(), "program", &flags, OPENMP);
    for (spin, skips) in [("exact", false), ("fast", true)] {
        let options = "--cpus 12-15 -e OMP_NUM_THREADS=4 -e OMP_WAIT_POLICY=active";
        let (_, json) = run(folder.path(), spin, options, &program, "");
        let host = |name: &str| json["host"][name].as_f64().expect("a number");
        assert_eq!(host("skipped_mips") > 0.0, skips, "{json}");
        let instructions = (host("mips") + host("skipped_mips")) * 1e6 * host("wall_seconds");
        let counted = json["simulated"]["instructions"].as_f64().expect("counted");
        assert!((instructions / counted - 1.0).abs() < 1e-6, "{instructions} of {counted}");
    }
}

#[test]
fn the_same_run_twice_gives_the_same_json_except_for_the_host() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("barrier.elf");
    let once = || {
        let (_, mut json) = run(folder.path(), "fast", "--cpus 12-23", &program, "kind=spin rounds=60");
        json.as_object_mut().expect("an object").remove("host");
        json
    };
    assert_eq!(once(), once());
}

#[test]
fn cycles_of_waiting_threads_add_up() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let source =
        "static void first(void) { while (!go); } static void *other(void *p) { work(5000); go = 1; return p; }";
    let program = threads(folder.path(), source);
    let (_, json) = run(folder.path(), "fast", "--cpus 12-13", &program, "");
    for row in json["regions"][0]["threads"].as_array().expect("rows of threads") {
        let event = |name: &str| row["events"][name].as_u64().unwrap_or_else(|| panic!("no {name}"));
        let commits = ["0INST_COMMIT", "1INST_COMMIT", "2INST_COMMIT", "3INST_COMMIT", "4INST_COMMIT"].map(event);
        assert_eq!(commits.iter().sum::<u64>(), event("CPU_CYCLES"));
        let causes = ["LD_COMP_WAIT", "EU_COMP_WAIT", "BR_COMP_WAIT", "ROB_EMPTY", "UOP_ONLY_COMMIT"].map(event);
        assert_eq!(causes.iter().sum::<u64>() + event("SINGLE_MOVPRFX_COMMIT"), event("0INST_COMMIT"));
    }
}

#[test]
fn a_spin_loop_with_a_limit_ends_after_exactly_that_many_iterations() {
    let source = r#"
static void first(void)
{
    unsigned down = 30000;
    long up;
    while (--down && !go);
    for (up = 0; up < 30011; up++) if (go) break;
    printf("%u %ld\n", down, up);
    go = 1;
}
static void *other(void *p) { while (!go) work(100); return p; }
"#;
    assert_eq!(prints(source), "0 30011\n");
}

#[test]
fn a_spin_loop_that_divides_its_counter_ends_with_the_value_of_its_last_iteration() {
    let source = r#"
static void first(void)
{
    unsigned polls = 0, rest = 0, yields = 0;
    for (; !go; rest = polls % 1000) {
        polls++;
        if (polls % 1000 == 0) yields++, sched_yield();
    }
    printf("%d %d\n", rest == polls % 1000, yields == polls / 1000 && yields > 2);
}
static void *other(void *p) { work(100000); go = 1; return p; }
"#;
    assert_eq!(prints(source), "1 1\n");
}

#[test]
fn a_thread_continues_to_spin_while_another_one_generates_code() {
    let source = r#"
static void first(void) { while (!go); puts("over"); }
static void *other(void *p)
{
    work(5000);
    unsigned *code = mmap(0, 65536, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    code[0] = 0x52800540; /* MOV W0, #42 */
    code[1] = 0xd65f03c0; /* RET */
    __builtin___clear_cache((char *)code, (char *)(code + 2));
    printf("%d\n", ((int (*)(void))code)());
    work(5000);
    go = 1;
    return p;
}
"#;
    assert_eq!(prints(source), "42\nover\n");
}

#[test]
fn a_signal_ends_a_spin_loop() {
    // By a timer, and by the other thread.
    let source = r#"
static void handler(int n) { here = n; }
static void first(void)
{
    struct itimerval in = { .it_value = { .tv_usec = 200 } };
    signal(SIGALRM, handler);
    signal(SIGUSR1, handler);
    setitimer(ITIMER_REAL, &in, 0);
    while (here != SIGALRM);
    go = 1;
    while (here != SIGUSR1);
    puts("both");
}
static void *other(void *p) { while (!go); work(5000); kill(getpid(), SIGUSR1); return p; }
"#;
    assert_eq!(prints(source), "both\n");
}

#[test]
fn a_write_of_the_kernel_ends_a_spin_loop() {
    let source = r#"
static int ends[2];
static volatile char seen;
static void first(void) { while (!seen); puts("seen"); }
static void *other(void *p)
{
    work(5000);
    if (pipe(ends) || write(ends[1], "x", 1) != 1 || read(ends[0], (char *)&seen, 1) != 1) abort();
    return p;
}
"#;
    assert_eq!(prints(source), "seen\n");
}

#[test]
fn a_sleeping_thread_wakes_up_in_time_while_all_others_spin() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let source =
        "static void first(void) { while (!go); } static void *other(void *p) { usleep(300); go = 1; return p; }";
    let program = threads(folder.path(), source);
    agree("--cpus 12-13", &program, "");
}

/// They take many seconds each.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn spinning_threads_on_one_cpu_share_it() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let source =
            "static void first(void) { while (!go); } static void *other(void *p) { work(500); go = 1; return p; }";
        let program = threads(folder.path(), source);
        agree("--cpus 12", &program, "");
    }

    /// Threads that do nothing but meet settle into an order of arrival that repeats; which one, any disturbance decides, and times of the
    /// orders differ by up to 10 %. So only the mean over many placements is compared.
    #[test]
    #[ignore = "make slow-test runs it"]
    fn barriers_of_a_few_cores_anywhere_take_the_same_time_on_average() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let seconds = |spin: &str, cpus: &str, arguments: &str| {
            let (_, json) = run(folder.path(), spin, &format!("--cpus {cpus}"), &kernel("barrier.elf"), arguments);
            json["regions"][1]["metrics"]["seconds"].as_f64().expect("a time")
        };
        let (mut logarithms, mut state) = (Vec::new(), 1_u32);
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % below
        };
        for case in 0..30 {
            let mut cpus: Vec<u32> = (0..3 + case % 4).map(|_| 12 + random(48)).collect();
            cpus.sort_unstable();
            cpus.dedup();
            let (threads, cpus) = (cpus.len(), cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","));
            let kind = ["kind=spin", "kind=memory meeting=count", "kind=memory meeting=pairs"][case as usize % 3];
            let arguments = format!("{kind} threads={threads} rounds=100 waiting=poll");
            logarithms.push((seconds("fast", &cpus, &arguments) / seconds("exact", &cpus, &arguments)).ln());
        }
        let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
        assert!(mean.abs() < 0.025, "{mean} on average of {logarithms:.3?}");
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn an_openmp_program_whose_threads_wait_for_one_takes_the_same_time_and_counts_the_same() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let flags = ["-O2", "-mcpu=a64fx", "-static", "-fopenmp"];
        let program = compile(folder.path(), "program", &flags, OPENMP);
        // Spinning for ever, the default, and for a number of iterations after which libgomp's threads sleep.
        for wait in ["OMP_WAIT_POLICY=active", "OMP_DYNAMIC=false", "GOMP_SPINCOUNT=2000"] {
            agree(&format!("--cpus 12-15 -e OMP_NUM_THREADS=4 -e {wait}"), &program, "");
        }
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn kernels_that_wait_in_loops_take_the_same_time_and_count_the_same() {
        for (cpus, program, arguments) in [
            // Long enough that it does not matter which thread leaves the last barrier first.
            ("12-23", "barrier", "kind=spin rounds=200"),
            ("12-15", "lock", "rounds=100"),
            ("12,24", "pingpong", "rounds=50"),
            ("12-23", "triad-threads", "n=16640 passes=4 threads=12"),
        ] {
            agree(&format!("--cpus {cpus}"), &kernel(&format!("{program}.elf")), arguments);
        }
    }
}
