//! `fxscope run --data`: which data misses are in, and which lines threads share.

use crate::common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{json, output};
use serde_json::Value;

/// `shared` has a counter for each of two threads in one line, `apart` one in a line each, `both` one that both write. A heap block of
/// 1 MiB is written once, a mapping of 2 MiB is read.
const SOURCE: &str = "\
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
struct { volatile long n[32]; } shared __attribute__((aligned(256)));
struct { volatile long n; char pad[248]; } apart[2] __attribute__((aligned(256)));
volatile long both __attribute__((aligned(256)));
static char more[64];
__attribute__((noinline)) char *block(size_t bytes)
{
    return malloc(bytes);
}
static pthread_barrier_t together;
static void *work(void *argument)
{
    long me = (long)argument;
    pthread_barrier_wait(&together);
    for (int i = 0; i < 300; i++) {
        shared.n[me]++;
        apart[me].n++;
        __atomic_fetch_add(&both, 1, __ATOMIC_RELAXED);
    }
    return 0;
}
int main(void)
{
    pthread_t other;
    pthread_barrier_init(&together, 0, 2);
    pthread_create(&other, 0, work, (void *)1);
    work(0);
    pthread_join(other, 0);
    char *heap = block(1 << 20);
    memset(heap, 1, 1 << 20);
    __asm__ volatile(\"\" : : \"r\"(heap) : \"memory\");
    char *map = mmap(0, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long sum = heap[5000] - 1;
    for (int i = 0; i < 2 << 20; i += 256)
        sum += map[i];
    free(heap);
    return sum + more[0] == 0 && both == 600 && apart[0].n == 300 ? 0 : 1;
}
";

fn ran(folder: &Path, link: &str) -> Value {
    fs::write(folder.join("data.c"), SOURCE).expect("written");
    let compiler = Command::new("aarch64-linux-gnu-gcc")
        .args(["-g", "-O1", "-mcpu=a64fx", link, "data.c", "-o", "data", "-pthread"])
        .current_dir(folder)
        .status();
    assert!(compiler.expect("the cross compiler is installed").success());
    let arguments = ["run", "-q", "--data", "--cpus", "12,24", "-o", "run.fxr", "--json", "run.json", "--", "./data"];
    let ran = output(folder, &arguments);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    json(&fs::read(folder.join("run.json")).expect("written"))
}

#[test]
fn misses_are_attributed_to_variables_blocks_and_mappings_and_false_sharing_is_named() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let run = ran(folder.path(), "-static");
    let objects = run["data"]["objects"].as_array().expect("a list");
    let of = |name: &str| {
        let found = objects.iter().find(|object| object["name"].as_str().is_some_and(|text| text.starts_with(name)));
        found.unwrap_or_else(|| panic!("no {name} in {objects:?}"))
    };
    let count = |name: &str, key: &str| of(name)[key].as_u64().expect("a count");

    // Two threads on two CMGs write the same line in turn: different bytes of it, or the same.
    assert!(count("shared", "transfers") > 10 && count("shared", "lines_across_cmgs") == 1);
    assert_eq!((count("shared", "falsely_shared_lines"), &of("shared")["kind"]), (1, &"variable".into()));
    assert_eq!(count("shared", "false_transfers"), count("shared", "transfers"));
    assert!(count("both", "transfers") > 10 && count("both", "falsely_shared_lines") == 0);
    assert_eq!(count("apart", "transfers"), 0);
    let lines = run["data"]["lines"].as_array().expect("a list");
    let shared = objects.iter().position(|object| object["name"] == "shared").expect("found");
    let line = lines.iter().find(|line| line["object"] == shared).expect("its line");
    assert_eq!((&line["falsely_shared"], &line["offset"]), (&true.into(), &0.into()));
    let written: Vec<&Value> = line["users"].as_array().expect("threads").iter().map(|user| &user["written"]).collect();
    assert!(written.contains(&&serde_json::json!([0, 7])) && written.contains(&&serde_json::json!([8, 15])), "{line}");

    // A block of 4096 lines with the line of its call, and a mapping of 8192.
    let heap = of("block+0x");
    assert_eq!((&heap["kind"], &heap["blocks"], &heap["bytes"]), (&"heap".into(), &1.into(), &(1 << 20).into()));
    assert_eq!(heap["line"], 11);
    assert!(heap["l1_refills"].as_u64() >= Some(4096 / 2), "{heap}");
    let mapping = of("main+0x");
    assert_eq!(mapping["kind"], "mapping");
    assert_eq!(mapping["bytes"], 2 << 20);
    let refills = mapping["l1_refills"].as_u64().expect("a count");
    assert!((8192..8192 * 12 / 10).contains(&refills), "{refills}");

    // All refills are attributed, but those of the first block of each core.
    let sum = |key: &str| objects.iter().filter_map(|object| object[key].as_u64()).sum::<u64>();
    for (key, event) in [("l1_refills", "L1D_CACHE_REFILL"), ("l2_refills", "L2D_CACHE_REFILL_DM")] {
        let all = run["regions"][0]["events"][event].as_u64().expect("a count");
        assert!(sum(key) > all * 9 / 10, "{key}: {} of {all}", sum(key));
    }
    let shown = output(folder.path(), &["report", "--section", "data", "run.fxr"]);
    let text = String::from_utf8(shown.stdout).expect("text");
    for part in ["variable shared", "heap block+0x", "(data.c:11)", "false sharing: ", "mapping main+0x"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn data_goes_neither_with_snapshots_nor_with_samples_and_needs_time() {
    let folder = tempfile::tempdir().expect("temporary folder");
    for (arguments, why) in [
        (&["--checkpoint", "kept"][..], "--data: neither a trace nor snapshots"),
        (&["--konata", "trace.log"], "--data: neither a trace nor snapshots"),
        (&["--sample", "auto"], "leave --data or --sample out"),
        (&["--mode", "functional"], "--data: misses need simulated time"),
    ] {
        let program = common::kernel("triad-l1.elf");
        let all = [&["run", "--data"], arguments, &["--", &program]].concat();
        let (status, error) = common::failure(folder.path(), &all);
        assert!(status == 125 && error.contains(why), "{all:?}: {error}");
    }
}

/// Each of two threads walks over an array of its own in the program, which has 64 KiB, and one in a library, which has 32 KiB.
const THREAD_LOCAL: &str = "\
#include <pthread.h>
extern long in_library(void);
static __thread char small;
__thread volatile long own[8192];
static void *work(void *argument)
{
    long sum = small;
    for (int i = 0; i < 8192; i += 32)
        sum += own[i]++;
    return (void *)(sum + in_library());
}
int main(void)
{
    pthread_t other;
    pthread_create(&other, 0, work, 0);
    work(0);
    pthread_join(other, 0);
    return 0;
}
";
const LIBRARY: &str = "\
static __thread volatile long of_library[4096];
long in_library(void)
{
    long sum = 0;
    for (int i = 0; i < 4096; i += 32)
        sum += of_library[i]++;
    return sum;
}
";

#[test]
fn thread_local_variables_of_programs_and_libraries_are_named() {
    for link in [&["-static", "data.c", "library.c"][..], &["data.c", "-L.", "-lown", "-Wl,-rpath,$ORIGIN"]] {
        let folder = tempfile::tempdir().expect("temporary folder");
        fs::write(folder.path().join("data.c"), THREAD_LOCAL).expect("written");
        fs::write(folder.path().join("library.c"), LIBRARY).expect("written");
        let compile = |arguments: &[&str]| {
            let mut compiler = Command::new("aarch64-linux-gnu-gcc");
            compiler.args(["-g", "-O1", "-mcpu=a64fx"]).args(arguments).current_dir(folder.path());
            let status = compiler.status();
            assert!(status.expect("the cross compiler is installed").success());
        };
        compile(&["-shared", "-fPIC", "library.c", "-o", "libown.so"]);
        compile(&[link, &["-pthread", "-o", "data"]].concat());
        let arguments =
            ["run", "-q", "--data", "--sysroot", "/usr/aarch64-linux-gnu", "--json", "run.json", "--", "./data"];
        let ran = output(folder.path(), &arguments);
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let run = json(&fs::read(folder.path().join("run.json")).expect("written"));
        let objects = run["data"]["objects"].as_array().expect("a list");
        for (name, bytes) in [("own (thread-local)", 64 << 10), ("of_library (thread-local)", 32 << 10)] {
            let of =
                objects.iter().find(|object| object["name"] == name).unwrap_or_else(|| panic!("{name}: {objects:?}"));
            assert_eq!(
                (&of["kind"], &of["blocks"], &of["bytes"]),
                (&"variable".into(), &2.into(), &(2 * bytes).into())
            );
            // A line of 256 bytes each; a line at either end may be shared with a neighbour.
            let (lines, refills) = (2 * bytes / 256, of["l1_refills"].as_u64().expect("a count"));
            assert!((lines - 2..=lines + 2).contains(&refills), "{name}: {refills} of {lines}");
        }
    }
}
