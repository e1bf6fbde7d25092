//! `--host-threads`: programs behave as on one host thread.

use crate::common;

use std::path::Path;

use common::timed::{OPENMP, THREADS, run};
use common::{compile, failure, kernel};

/// Compares a program's output on one host thread and on several; both must be the same.
fn same_text(folder: &Path, program: &str, options: &str) -> String {
    let texts = [1, 2, 4].map(|n| run(folder, &format!("--host-threads {n} {options}"), program, "").text);
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
    texts[0].clone()
}

#[test]
fn zero_and_more_host_threads_than_cmgs_are_refused_with_the_possible_numbers() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("plain.elf");
    let run = |options: &[&str]| failure(folder.path(), &[&["run"], options, &["--", &program]].concat());
    let (status, error) = run(&["--host-threads", "5"]);
    assert_eq!(status, 125, "{error}");
    assert!(error.contains("--host-threads 5") && error.contains("give 1 to 4"), "{error}");
    let (_, error) = run(&["--host-threads", "2", "--machine", "k-computer"]);
    assert!(error.contains("leave it out"), "{error}");
    for none in ["0", "-1", "many"] {
        let (_, error) = run(&[&format!("--host-threads={none}")]);
        assert!(error.contains("--host-threads"), "{none}: {error}");
    }
}

#[test]
fn instruction_limits_and_intervals_apply_in_parallel_runs() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-threads.elf");
    let arguments = "threads=26 n=49152 passes=6 form=wide";
    let limited = run(folder.path(), "--host-threads 2 --max-instructions 400000", &program, arguments);
    let done = limited.json["simulated"]["instructions"].as_u64().expect("instructions");
    assert!((400_000..410_000).contains(&done), "{done}");
    let cut = run(folder.path(), "--host-threads 2 --interval 1us", &program, arguments);
    let notes = cut.json["notes"].to_string();
    assert!(notes.contains("2 host threads: ") && notes.contains("in parallel"), "{notes}");
    let series = cut.json["intervals"][0]["events"]["INST_RETIRED"].as_array().expect("a list of counts");
    assert!(series.len() > 3, "{} intervals", series.len());
    let sum: u64 = series.iter().map(|count| count.as_u64().expect("a count")).sum();
    assert_eq!(sum, cut.events("all", "INST_RETIRED").into_iter().sum::<u64>());
}

/// Takes a minute of processor time.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_program_that_dies_beside_others_leaves_the_counts_of_all_threads() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let source = r"
#include <pthread.h>
#include <stdlib.h>
static volatile double work[26][512];
static void *run(void *number)
{
    long n = (long)number;
    for (int pass = 0; n != 25 || pass < 8; pass++)
        for (int i = 0; i < 512; i++) work[n][i] = work[n][i] * 0.5 + n;
    *(volatile int *)8 = 1;
    return 0;
}
int main(void)
{
    pthread_t t[26];
    for (long i = 0; i < 26; i++) if (pthread_create(&t[i], 0, run, (void *)i)) abort();
    for (int i = 0; i < 26; i++) pthread_join(t[i], 0);
}
";
        let program = compile(folder.path(), "program", &THREADS, source);
        let result = folder.path().join("result.json");
        let result = result.to_str().expect("UTF-8 path");
        let (status, error) = failure(folder.path(), &["run", "--host-threads", "2", "--json", result, "--", &program]);
        assert_eq!(status, 128 + 11, "{error}");
        let json = common::json(&std::fs::read(result).expect("written"));
        assert_eq!(json["regions"][0]["threads"].as_array().map(Vec::len), Some(27));
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn sums_behind_locks_atomics_barriers_and_reductions_are_those_of_one_host_thread() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let source = r#"
#include <omp.h>
#include <stdio.h>
#define N 4800
static double a[N], b[N];
int main(void)
{
    long plain = 0, atomic = 0;
    double sum = 0;
    #pragma omp parallel reduction(+:sum)
    {
        for (int pass = 0; pass < 3; pass++) {
            #pragma omp for
            for (int i = 0; i < N; i++) a[i] = b[N - 1 - i] + i;
            #pragma omp for schedule(dynamic, 100)
            for (int i = 0; i < N; i++) b[i] = a[N - 1 - i] / 2;
            #pragma omp critical
            plain += omp_get_thread_num();
            #pragma omp atomic
            atomic++;
        }
        #pragma omp for
        for (int i = 0; i < N; i++) sum += b[i];
    }
    printf("%ld %ld %.3f\n", plain, atomic, sum);
}
"#;
        let program = compile(folder.path(), "program", &OPENMP, source);
        let text = same_text(folder.path(), &program, "--cpus 12-59 -e OMP_NUM_THREADS=48");
        assert!(text.starts_with("3384 144 "), "{text}");
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn threads_can_fault_unmap_start_processes_and_end_all_others() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let source = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile double work[48][512];
static volatile sig_atomic_t caught;
static char *page;
static void fault(int s) { caught++; mprotect(page, 65536, PROT_READ | PROT_WRITE); }
static void *run(void *number)
{
    long n = (long)number;
    for (int pass = 0; pass < 40; pass++)
        for (int i = 0; i < 512; i++) work[n][i] = work[n][i] * 0.5 + n;
    if (n == 7) page[8] = 1;
    if (n == 21) {
        int status;
        pid_t child = fork();
        if (child == 0) _exit(3);
        waitpid(child, &status, 0);
        if (WEXITSTATUS(status) != 3) abort();
    }
    if (n == 30) for (int i = 0; i < 4; i++) munmap(mmap(0, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1 << 20);
    return number;
}
int main(void)
{
    pthread_t t[48];
    page = mmap(0, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    signal(SIGSEGV, fault);
    for (long i = 0; i < 48; i++) if (pthread_create(&t[i], 0, run, (void *)i)) abort();
    for (int i = 0; i < 40; i++) pthread_join(t[i], 0);
    double sum = 0;
    for (int i = 0; i < 40; i++) for (int k = 0; k < 512; k++) sum += work[i][k];
    printf("%d %d %.2f\n", caught, page[8], sum);
    fflush(stdout);
    _exit(0);
}
"#;
        let program = compile(folder.path(), "program", &THREADS, source);
        let text = same_text(folder.path(), &program, "");
        assert_eq!(text, "1 1 798720.00\n");
    }
}
