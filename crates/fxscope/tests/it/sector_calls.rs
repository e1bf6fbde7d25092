//! Sectors of the caches by the calls of `include/fxscope.h` and `fxscope.f90`, and heap blocks in sectors by the call that allocates
//! them.

use crate::common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{failure, json, output};
use serde_json::Value;

/// The page whose examples are compiled.
const PAGE: &str = include_str!("../../../../docs/sector-cache.md");

/// Lines of the example: of b, of which an L2 of 512 KiB needs nine ways, and of a, which is twice as long.
const REUSED: u64 = 36_864 * 8 / 256;
const STREAM: u64 = 2 * REUSED;
/// An L2 of 512 KiB, of which programs can use 14 ways, 448 KiB.
const SMALL: [&str; 2] = ["--set", "l2.bytes=512KiB"];

fn include(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include").join(file)
}

/// Returns the example of the page in a language.
fn example(language: &str) -> String {
    let (_, rest) = PAGE.split_once(&format!("```{language}\n")).expect("the page has it");
    rest.split_once("```").expect("a whole block").0.to_owned()
}

/// Runs a compiler of the AArch64 cross tools in a folder; it must succeed without warnings.
fn compiler(folder: &Path, tool: &str, arguments: &[&str]) {
    let mut command = Command::new(format!("aarch64-linux-gnu-{tool}"));
    let include = include("");
    let ran = command.args(arguments).arg("-I").arg(include).current_dir(folder).output().expect("the compiler runs");
    assert!(ran.status.success(), "{tool} {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// Builds a program of one source file with the functions of the sectors, optimised for the machine.
fn build(folder: &Path, tool: &str, name: &str, source: &str, options: &[&str]) {
    let calls = include("fxscope_sector.c");
    compiler(folder, "gcc", &["-O2", "-Wall", "-Wextra", "-Werror", "-c", calls.to_str().expect("UTF-8")]);
    std::fs::write(folder.join(name), source).expect("written");
    let marks = include("fxscope.f90");
    let before: &[&str] = if tool == "gfortran" { &[marks.to_str().expect("UTF-8")] } else { &[] };
    let usual = ["-O3", "-mcpu=a64fx", "-static", name, "fxscope_sector.o", "-o", "program"];
    compiler(folder, tool, &[before, options, &usual].concat());
}

/// Runs the program; returns what it prints, and its record.
fn run(folder: &Path, options: &[&str]) -> (String, Value) {
    let ran = output(folder, &[&["run", "--quiet", "--json", "out.json"], options, &["--", "./program"]].concat());
    assert!(ran.status.success(), "{options:?}: {}", String::from_utf8_lossy(&ran.stderr));
    let text = String::from_utf8(ran.stdout).expect("text");
    (text, json(&std::fs::read(folder.join("out.json")).expect("written")))
}

/// Returns the lines that L2 fetched in the region `add`.
#[track_caller]
fn lines(run: &Value) -> u64 {
    let region =
        run["regions"].as_array().expect("regions").iter().find(|region| region["name"] == "add").expect("marked");
    region["events"]["L2D_CACHE_REFILL"].as_u64().expect("counted")
}

#[track_caller]
fn about(found: u64, expected: u64) {
    assert!(found.abs_diff(expected) <= expected / 20, "{found} lines instead of {expected}");
}

/// The example with `b` on the heap; `ALLOCATE` and `SECTOR` are defined by the compiler's options.
const HEAP: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fxscope.h>
enum { M = 36864, N = 2 * M };
static double a[N], copy[M];
static void add(double *restrict a, const double *restrict b)
{
    for (long start = 0; start < N; start += M)
        for (long i = 0; i < M; i++)
            a[start + i] += b[i];
}
__attribute__((noinline)) static double *reused_block(void)
{
    double *block = aligned_alloc(256, sizeof copy);
    for (long i = 0; i < M; i++)
        block[i] = 1;
    return block;
}
int main(int argc, char **argv)
{
    double *b = reused_block();
    if (argc > 1 && fork()) {
        int status = 1;
        wait(&status);
        return status;
    }
    add(a, b);
    FXSCOPE_BEGIN("add");
    add(a, b);
    FXSCOPE_END("add");
    printf("sum %g\n", a[N - 1]);
    free(b);
    /* The next block is not assigned. */
    double *other = malloc(sizeof copy);
    for (long i = 0; i < M; i++)
        other[i] = 2;
    add(a, other);
    FXSCOPE_BEGIN("other");
    add(a, other);
    FXSCOPE_END("other");
    return argv[0] == NULL || other[M - 1] != 2;
}
"#;

fn region(run: &Value, name: &str) -> u64 {
    let region =
        run["regions"].as_array().expect("regions").iter().find(|region| region["name"] == name).expect("marked");
    region["events"]["L2D_CACHE_REFILL"].as_u64().expect("counted")
}

#[test]
fn heap_blocks_are_in_a_sector_by_the_call_that_allocates_them_until_they_are_freed() {
    let folder = tempfile::tempdir().expect("temporary folder");
    build(folder.path(), "gcc", "heap.c", HEAP, &[]);
    let (_, plain) = run(folder.path(), &SMALL);
    about(lines(&plain), STREAM + 2 * REUSED);
    let (text, kept) = run(folder.path(), &[&SMALL[..], &["--sector", "L2=10,assign=malloc@reused_block"]].concat());
    assert_eq!(text, "sum 2\n");
    about(lines(&kept), STREAM);
    about(region(&kept, "other"), STREAM + 2 * REUSED);
    let notes = kept["notes"].to_string();
    let block = M_BYTES;
    assert!(notes.contains(&format!("put into sector 1 of the caches: 1, with {block} bytes")), "{notes}");
}

/// Bytes of b.
const M_BYTES: u64 = 36_864 * 8;

#[test]
fn an_array_has_the_same_misses_in_a_sector_by_call_by_address_and_by_allocation() {
    let folder = tempfile::tempdir().expect("temporary folder");
    build(folder.path(), "gcc", "example.c", &example("c"), &[]);
    let (_, by_call) = run(folder.path(), &SMALL);
    let (_, by_name) = run(folder.path(), &[&SMALL[..], &["--sector", "L2=10,assign=b"]].concat());
    build(folder.path(), "gcc", "heap.c", HEAP, &[]);
    let (_, by_allocation) =
        run(folder.path(), &[&SMALL[..], &["--sector", "L2=10,assign=malloc@reused_block"]].concat());
    for run in [&by_call, &by_name, &by_allocation] {
        about(lines(run), STREAM);
    }
}

#[test]
fn a_copy_of_a_process_has_its_blocks_in_the_same_sector() {
    let folder = tempfile::tempdir().expect("temporary folder");
    build(folder.path(), "gcc", "heap.c", HEAP, &[]);
    let misses = |options: &[&str]| {
        let given = ["run", "--quiet", "--json", "out.json", "--cpus", "12"];
        let ran = output(folder.path(), &[&given, &SMALL[..], options, &["--", "./program", "fork"]].concat());
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        lines(&json(&std::fs::read(folder.path().join("out.json")).expect("written")))
    };
    about(misses(&[]), STREAM + 2 * REUSED);
    about(misses(&["--sector", "L2=10,assign=malloc@reused_block"]), STREAM);
}

#[test]
fn threads_of_a_cmg_share_a_block_in_a_sector_of_its_l2() {
    const THREADS: &str = r#"
        #include <pthread.h>
        #include <stdlib.h>
        #include <fxscope.h>
        enum { M = 36864, N = 4 * M };
        static double a[N], *b;
        static pthread_barrier_t meeting;
        static void add(double *restrict a, const double *restrict b)
        {
            for (long start = 0; start < N / 2; start += M)
                for (long i = 0; i < M; i++)
                    a[start + i] += b[i];
        }
        static void *work(void *half)
        {
            add(half, b);
            pthread_barrier_wait(&meeting);
            if (half == a) FXSCOPE_BEGIN("add");
            add(half, b);
            pthread_barrier_wait(&meeting);
            if (half == a) FXSCOPE_END("add");
            return NULL;
        }
        int main(void)
        {
            pthread_t other;
            b = calloc(M, sizeof *b);
            pthread_barrier_init(&meeting, NULL, 2);
            pthread_create(&other, NULL, work, a + N / 2);
            work(a);
            pthread_join(other, NULL);
            return b[M - 1] != 0;
        }"#;
    let folder = tempfile::tempdir().expect("temporary folder");
    build(folder.path(), "gcc", "threads.c", THREADS, &["-pthread"]);
    let misses = |options: &[&str]| lines(&run(folder.path(), &[&["--cpus", "12-13"], &SMALL[..], options].concat()).1);
    let (without, with) = (misses(&[]), misses(&["--sector", "L2=10,assign=malloc@main"]));
    // Both halves of the stream; both threads find b in their common L2, or wait for the same line.
    let stream = 4 * REUSED;
    assert!(with < stream + stream / 20 && without > stream + stream / 5, "{with}, {without}, {stream} lines");
}

#[test]
fn numbers_of_ways_and_sectors_that_do_not_exist_are_refused_by_the_calls() {
    const WRONG: &str = r#"
        #include <stdio.h>
        #include <fxscope.h>
        static double data[4];
        int main(void)
        {
            printf("%d %d %d %d\n", fxscope_sector_l2_ways(17, 0), fxscope_sector_l2_ways(0, -1),
                   fxscope_sector_l1_ways(5, 0, 0, 0), fxscope_sector_l1_ways(1, 1, 1, 1));
            fxscope_sector_restore();
            double *same = fxscope_sector_assign(data, 4), *tagged = fxscope_sector_assign(data, 3);
            printf("%d %lx\n", same == data, (unsigned long)tagged >> 56);
            return tagged[1] != 0;
        }"#;
    let folder = tempfile::tempdir().expect("temporary folder");
    build(folder.path(), "gcc", "wrong.c", WRONG, &[]);
    assert_eq!(run(folder.path(), &[]).0, "-1 -1 -1 1\n1 3\n");
}

#[test]
fn wrong_calls_and_options_that_hide_allocations_are_refused() {
    let folder = tempfile::tempdir().expect("temporary folder");
    build(folder.path(), "gcc", "heap.c", HEAP, &[]);
    let message = |options: &[&str]| {
        let (status, message) = failure(folder.path(), &[&["run"], options, &["--", "./program"]].concat());
        assert_ne!(status, 0);
        message
    };
    for (what, expected) in [
        ("assign=malloc@", "'' names no call; write malloc@FUNCTION"),
        ("assign=malloc@f+x", "'x' is not a number"),
        ("assign=malloc@no_such", "the program has no function no_such"),
        ("assign=malloc@reused_block+0x10000", "is not within reused_block"),
        ("assign=malloc@heap.c:3", "no debug information"),
    ] {
        let message = message(&["--sector", what]);
        assert!(message.contains("--sector") && message.contains(expected), "{what}: {message}");
    }
    let option = ["--sector", "assign=malloc@reused_block"];
    for other in [
        &["--sample"][..],
        &["--mode", "functional"],
        &["--from", "instructions=10"],
        &["--konata", "t.kanata"],
        &["--checkpoint", "c"],
    ] {
        let message = message(&[&option[..], other].concat());
        assert!(message.contains("--sector") && message.contains("malloc@CALL"), "{other:?}: {message}");
    }
}

/// They take longest.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn the_examples_of_the_page_keep_the_reused_array_in_l2() {
        for (language, tool, file) in
            [("c", "gcc", "example.c"), ("c++", "g++", "example.cc"), ("fortran", "gfortran", "example.f90")]
        {
            let folder = tempfile::tempdir().expect("temporary folder");
            build(folder.path(), tool, file, &example(language), &[]);
            let (text, kept) = run(folder.path(), &SMALL);
            assert_eq!(text, "set 1, sum 2\n", "{language}");
            about(lines(&kept), STREAM);
            // Without the registers, nothing is set, and both uses of b fetch it.
            let (text, all) = run(folder.path(), &[&SMALL[..], &["--set", "sector_cache.enabled=false"]].concat());
            assert_eq!(text, "set 0, sum 2\n", "{language}");
            about(lines(&all), STREAM + 2 * REUSED);
        }
    }
}
