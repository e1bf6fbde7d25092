//! The sector cache from the command line and from programs, to the counts.

use crate::common;

use std::path::Path;

use common::{failure, json, kernel, output};
use serde_json::Value;

/// Elements of b: 288 KiB, nine ways of an L2 of 512 KiB with fourteen usable ways.
const M: u64 = 36_864;
const LINE: u64 = 256;
const PASSES: u64 = 2;

/// Results of the measured passes of `sector`, each of which goes through b twice, with these options of fxscope and of
/// the program.
fn sector(folder: &Path, options: &[&str], arguments: &[&str]) -> Value {
    let program = kernel("sector.elf");
    let (n, m, passes) = (format!("n={}", 2 * M), format!("m={M}"), format!("passes={PASSES}"));
    let small = ["run", "--quiet", "--json", "out.json", "--set", "l2.bytes=512KiB"];
    let args = [&small, options, &["--", &program, &n, &m, &passes], arguments].concat();
    let output = output(folder, &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    json(&std::fs::read(folder.join("out.json")).expect("written"))
}

/// Returns the lines that L2 fetched in the measured passes, per line of b accessed.
fn misses(run: &Value) -> f64 {
    let regions = run["regions"].as_array().expect("regions");
    let region = regions.iter().find(|r| r["name"] == "sector").expect("the measured part");
    region["events"]["L2D_CACHE_REFILL"].as_u64().expect("counted") as f64 / (2 * PASSES * M * 8 / LINE) as f64
}

/// Per line of b, and the lines of a and c used with it.
const ALL: f64 = 3.0;
const STREAMS: f64 = 2.0;

fn about(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.05 * expected, "{found} instead of {expected}");
}

#[test]
fn without_sectors_the_streams_evict_b_from_l2() {
    let folder = tempfile::tempdir().expect("temporary folder");
    about(misses(&sector(folder.path(), &[], &[])), ALL);
}

#[test]
fn a_program_that_tags_its_pointers_and_sets_the_ways_keeps_b_in_l2() {
    let folder = tempfile::tempdir().expect("temporary folder");
    about(misses(&sector(folder.path(), &[], &["pointers=tagged", "l2-ways=10"])), STREAMS);
    about(misses(&sector(folder.path(), &[], &["pointers=plain", "l2-ways=10"])), ALL);
    about(misses(&sector(folder.path(), &[], &["pointers=tagged", "l2-ways=0"])), ALL);
}

#[test]
fn an_unmodified_program_gets_ways_and_data_of_sectors_by_name_or_address() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let run = sector(folder.path(), &["--sector", "L2=10,assign=b"], &[]);
    about(misses(&run), STREAMS);
    assert_eq!(run["settings"]["sector_cache.l2_ways"], "[4, 10]");
    let note = run["notes"].as_array().expect("notes").iter().find_map(Value::as_str).expect("one");
    let address = |word| u64::from_str_radix(note.split(' ').nth(word).expect(note).trim_start_matches("0x"), 16);
    let (start, end) = (address(2).expect(note), address(4).expect(note));
    let by_address = format!("L2=4:10,assign={start:#x}:{}", end - start);
    assert_eq!(misses(&sector(folder.path(), &["--sector", &by_address], &[])), misses(&run));
    let tagged = sector(folder.path(), &["--sector", "L2=10"], &["pointers=tagged"]);
    about(misses(&tagged), STREAMS);
}

#[test]
fn ways_without_data_of_their_own_leave_the_rest_to_everything_else() {
    let folder = tempfile::tempdir().expect("temporary folder");
    about(misses(&sector(folder.path(), &["--sector", "L2=10"], &[])), ALL);
}

#[test]
fn a_machine_whose_sector_cache_is_off_ignores_tags_and_ends_programs_that_use_its_registers() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let off = ["--set", "sector_cache.enabled=false"];
    let [tagged, plain] = ["tagged", "plain"].map(|p| sector(folder.path(), &off, &[&format!("pointers={p}")]));
    // The arguments differ in length, so that the stack's lines differ, too.
    assert!((misses(&tagged) - misses(&plain)).abs() < 0.001);
    const SIGILL: i32 = 4;
    let program = kernel("sector.elf");
    let (status, message) =
        failure(folder.path(), &["run", off[0], off[1], "--", &program, "n=64", "m=8", "l2-ways=10"]);
    assert_eq!(status, 128 + SIGILL, "{message}");
}

#[test]
fn wrong_sectors_are_refused_with_what_is_allowed() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("sector.elf");
    let message = |options: &[&str]| {
        let (status, message) = failure(folder.path(), &[&["run"], options, &["--", &program]].concat());
        assert_ne!(status, 0);
        message
    };
    let cases = [
        ("L2=15", "0 to 14 ways of L2: it has 16, of which 2 are reserved for the assistant core of CMG0"),
        ("L1=5", "0 to 4 ways of L1"),
        ("L2=1:2:3", "give those of sector 1, or of 2 sectors"),
        ("L2=many", "'many' is not a number of ways"),
        ("L3=1", "write L1=WAYS, L2=WAYS or assign=DATA"),
        ("assign4=b", "sectors are 0 to 3"),
        ("assign=d", "no variable d; its largest are c, a, b"),
        ("assign=b+0x800000", "is not within b, which has 8388608 bytes"),
        ("assign=0x1000", "0x1000 has no length; write NAME, NAME+OFFSET:BYTES or 0xADDRESS:BYTES"),
        ("assign=b,assign2=b+64:8", "b and b+64:8 overlap"),
    ];
    for (what, expected) in cases {
        let message = message(&["--sector", what]);
        assert!(message.contains("--sector") && message.contains(expected), "{what}: {message}");
    }
    let both = message(&["--set", "sector_cache.enabled=false", "--sector", "L2=10"]);
    assert!(both.contains("--sector") && both.contains("sector_cache.enabled is false"), "{both}");
}

/// Runs a program, which must succeed, with sectors that apply from the start.
#[track_caller]
fn succeeds(folder: &Path, options: &[&str], program: &[&str]) {
    let (path, arguments) = (kernel(program[0]), &program[1..]);
    let output = output(folder, &[&["run", "--quiet"], options, &["--", &path], arguments].concat());
    assert!(output.status.success(), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn threaded_programs_have_sectors_from_the_start_on_any_cores() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let triad = |threads: u32| format!("threads={threads}");
    for (options, threads) in [
        ("--cpus 12-13", 2),
        ("--cpus 12,24,36,48", 4),
        ("--cpus 36-37 --sector L1=1", 2),
        ("--cpus 12-13,24-25 --host-threads 2", 4),
    ] {
        let options: Vec<&str> = ["--sector", "L2=10"].into_iter().chain(options.split(' ')).collect();
        succeeds(folder.path(), &options, &["triad-threads.elf", &triad(threads), "n=6400", "passes=1"]);
    }
    let small = ["n1=64", "n2=16", "n3=10", "passes=1", "pointers=tagged", "l2-ways=13"];
    succeeds(folder.path(), &[], &[&["stencil.elf", "threads=2"], &small[..]].concat());
    succeeds(folder.path(), &["--host-threads", "2"], &[&["stencil.elf", "threads=12"], &small[..]].concat());
}

#[test]
fn threads_of_each_cmg_keep_their_data_in_the_sectors_of_its_l2() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let misses = |options: &[&str]| {
        let (m, n, program) = (format!("m={M}"), format!("n={}", 4 * M), kernel("sector-threads.elf"));
        let small = ["run", "--quiet", "--json", "out.json", "--set", "l2.bytes=512KiB", "--cpus", "24-25"];
        let program = [&program, "threads=2", &n, &m, "passes=2"];
        let output = output(folder.path(), &[&small, options, &["--"], &program].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let run = json(&std::fs::read(folder.path().join("out.json")).expect("written"));
        let regions = run["regions"].as_array().expect("regions").clone();
        let region = regions.into_iter().find(|r| r["name"] == "sector").expect("the measured part");
        region["events"]["L2D_CACHE_REFILL"].as_u64().expect("counted")
    };
    let (without, with) = (misses(&[]), misses(&["--sector", "L2=10,assign=b"]));
    // Two passes through two streams of 4 M elements each; without sectors, lines of b are fetched again.
    let streams = 2 * 2 * 4 * M * 8 / LINE;
    assert!(with < streams + streams / 20 && without > streams + streams / 5, "{with}, {without}, {streams} lines");
}

#[test]
fn processes_that_a_program_starts_have_its_sectors() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let source = r#"
#include <sys/wait.h>
#include <unistd.h>
static volatile double b[4096];
int main(void)
{
    pid_t child = fork();
    for (int i = 0; i < 4096; i++) b[i] += i;
    int status = 0;
    if (child) wait(&status);
    return status;
}
"#;
    let program = common::compile(folder.path(), "program", &["-O1", "-static"], source);
    for options in ["--cpus 12-13", "--cpus 12,24", "--follow first --cpus 12-13", "--cpus 12,24 --host-threads 2"] {
        let options: Vec<&str> =
            ["run", "--quiet", "--sector", "L2=10,assign=b"].into_iter().chain(options.split(' ')).collect();
        let output = output(folder.path(), &[&options[..], &["--", &program]].concat());
        assert!(output.status.success(), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn cmgs_without_an_assistant_core_have_two_ways_more_for_sectors() {
    let folder = tempfile::tempdir().expect("temporary folder");
    succeeds(folder.path(), &["--cpus", "36", "--sector", "L2=15"], &["sector.elf", "n=64", "m=8"]);
    let program = kernel("sector.elf");
    for cpus in ["24", "24,36"] {
        let (_, message) = failure(folder.path(), &["run", "--cpus", cpus, "--sector", "L2=15", "--", &program]);
        assert!(message.contains("0 to 14 ways of L2"), "{message}");
    }
}
