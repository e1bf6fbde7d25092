//! Loops and call stacks of a run: in its record, in reports, and in the formats of other tools.

use crate::common;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use common::{json, kernel, output};
use serde_json::Value;

/// `work` has an outer loop of 5 × 40 iterations with an inner one of 30, `main` calls it 5 times.
const SOURCE: &str = "\
#include <stdio.h>
__attribute__((noinline)) double leaf(double *a, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * 2.0;
    return sum;
}
__attribute__((noinline)) double work(double *a)
{
    double all = 0;
    for (int j = 0; j < 40; j++) {
        all += leaf(a, 30);
        for (int i = 0; i < 30; i++)
            a[i] = a[i] * 0.5 + all;
    }
    return all;
}
int main(void)
{
    static double a[64];
    double all = 0;
    for (int k = 0; k < 5; k++)
        all += work(a);
    return all == 1.5;
}
";

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("temporary folder")
}

/// Compiles [`SOURCE`] and records a run of it.
fn recorded(folder: &Path) {
    fs::write(folder.join("work.c"), SOURCE).expect("written");
    let compiler = Command::new("aarch64-linux-gnu-gcc")
        .args(["-g", "-O1", "-static", "-fno-omit-frame-pointer", "work.c", "-o", "work"])
        .current_dir(folder)
        .status();
    assert!(compiler.expect("the cross compiler is installed").success());
    let arguments = ["run", "--quiet", "--stacks", "1us", "--interval", "5us", "-o", "run.fxr", "--", "./work"];
    let ran = output(folder, &arguments);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

fn stdout(folder: &Path, arguments: &[&str]) -> Vec<u8> {
    let shown = output(folder, arguments);
    assert!(shown.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&shown.stderr));
    shown.stdout
}

fn text(folder: &Path, arguments: &[&str]) -> String {
    String::from_utf8(stdout(folder, arguments)).expect("text")
}

#[test]
fn loops_have_the_iterations_entries_nesting_lines_and_work_of_the_source() {
    let folder = folder();
    recorded(folder.path());
    let runs = json(&stdout(folder.path(), &["report", "--format", "json", "run.fxr"]));
    let loops = runs[0]["loops"].as_array().expect("a list");
    let of = |function: &str| -> Vec<&Value> { loops.iter().filter(|l| l["function"] == function).collect() };
    let [leaf] = of("leaf")[..] else { panic!("{loops:?}") };
    let lines = |l: &Value| (l["source"]["first"].as_u64(), l["source"]["last"].as_u64());
    assert_eq!((&leaf["iterations"], &leaf["entries"], &leaf["trips"]), (&6000.into(), &200.into(), &30.0.into()));
    assert_eq!(lines(leaf), (Some(5), Some(6)));
    // A multiply-add or a multiplication and an addition, of one double each, and the load.
    assert_eq!((&leaf["flop"], &leaf["vector_bits"]), (&12_000.into(), &64.0.into()));
    assert_eq!(leaf["bytes"]["l1"], 48_000.0);
    let [outer, inner] = of("work")[..] else { panic!("{loops:?}") };
    assert_eq!((&outer["iterations"], &outer["entries"], &outer["depth"]), (&200.into(), &5.into(), &0.into()));
    assert_eq!((&inner["iterations"], &inner["entries"], &inner["depth"]), (&6000.into(), &200.into(), &1.into()));
    assert_eq!(lines(inner), (Some(14), Some(15)));
    assert_eq!(
        outer["cycles"].as_u64(),
        inner["cycles"].as_u64().zip(outer["own_cycles"].as_u64()).map(|(i, o)| i + o)
    );
    let [main] = of("main")[..] else { panic!("{loops:?}") };
    assert_eq!((&main["iterations"], &main["entries"]), (&5.into(), &1.into()));
    // As a table, on the terminal and as CSV.
    let table = text(folder.path(), &["report", "--section", "loops", "run.fxr"]);
    assert!(table.contains("leaf (work.c:5-6)") && table.contains("  work (work.c:14-15)"), "{table}");
    let csv = text(folder.path(), &["report", "--section", "loops", "--format", "csv", "run.fxr"]);
    assert!(csv.lines().count() == loops.len() + 1 && csv.starts_with("run,loop,parent,depth,function,"), "{csv}");
}

#[test]
fn refills_of_instructions_and_loops_add_up_to_those_of_the_run() {
    let folder = folder();
    let program = kernel("triad-mem.elf");
    let arguments = ["run", "--quiet", "-o", "run.fxr", "--json", "run.json", "--", &program, "n=40000", "passes=2"];
    let ran = output(folder.path(), &arguments);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let run = json(&fs::read(folder.path().join("run.json")).expect("written"));
    let events = &run["regions"][0]["events"];
    let loops = run["loops"].as_array().expect("a list");
    let hottest = loops.iter().max_by_key(|l| l["own_cycles"].as_u64()).expect("a loop");
    assert_eq!(hottest["function"], "triad_kernel");
    for event in ["L1D_CACHE_REFILL", "L2D_CACHE_REFILL"] {
        let all = events[event].as_u64().expect("a count");
        let of_loop = hottest["events"][event].as_u64().unwrap_or(0);
        let of_loops: u64 =
            loops.iter().filter(|l| l["parent"].is_null()).filter_map(|l| l["events"][event].as_u64()).sum();
        assert!(of_loops <= all && of_loop <= of_loops, "{event}: {of_loop} of {of_loops} of {all}");
        assert!(of_loops * 10 >= all * 8, "{event}: {of_loops} of {all}");
    }
    let lines = hottest["entries"].as_u64().expect("known") * 3 * 40_000 * 8 / 256;
    let refilled = hottest["events"]["L1D_CACHE_REFILL"].as_u64().expect("a count");
    assert!((lines * 9 / 10..lines * 11 / 10).contains(&refilled), "{refilled} of {lines}");
}

#[test]
fn call_stacks_show_who_called_whom_in_every_format() {
    let folder = folder();
    recorded(folder.path());
    let export = |to: &str| stdout(folder.path(), &["export", "--to", to, "run.fxr"]);

    let folded = String::from_utf8(export("folded")).expect("text");
    let weights: BTreeMap<&str, u64> = folded
        .lines()
        .map(|line| line.rsplit_once(' ').expect("a stack and a number"))
        .map(|(stack, n)| (stack, n.parse().expect("a number")))
        .collect();
    let ends = |end: &str| weights.iter().filter(|(stack, _)| stack.ends_with(end)).map(|(_, n)| n).sum::<u64>();
    let (leaf, work) = (ends("main;work;leaf"), ends("main;work"));
    assert!(leaf > 0 && work > 0 && weights.values().all(|n| n % 1000 == 0), "{folded}");

    let speedscope = json(&export("speedscope"));
    check_speedscope(&speedscope);
    let profile = &speedscope["profiles"][0];
    assert_eq!(profile["unit"], "nanoseconds");
    let frames = speedscope["shared"]["frames"].as_array().expect("a list");
    let named = |sample: &Value| -> Vec<&str> {
        let frames = sample.as_array().expect("a stack").iter();
        frames.map(|i| frames_name(&speedscope, i)).collect()
    };
    let samples = profile["samples"].as_array().expect("a list");
    let in_leaf = samples.iter().filter(|sample| named(sample).ends_with(&["main", "work", "leaf"])).count();
    assert!(!frames.is_empty() && in_leaf as u64 * 1000 == leaf, "{in_leaf} for {leaf}");

    let firefox = json(&export("firefox"));
    check_firefox(&firefox);
    check_perfetto(&json(&export("perfetto")));
    let pprof = pprof(&export("pprof"));
    let sum: u64 =
        pprof.iter().filter(|(stack, _)| stack.starts_with(&["leaf".into(), "work".into()])).map(|s| s.1).sum();
    assert_eq!(sum, leaf);
}

#[test]
fn without_call_stacks_profiles_have_functions_in_their_callers_and_loops_with_all_cycles() {
    let folder = folder();
    let program = kernel("dgemm-tile.elf");
    let ran =
        output(folder.path(), &["run", "--quiet", "-o", "run.fxr", "--json", "run.json", "--", &program, "passes=20"]);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let run = json(&fs::read(folder.path().join("run.json")).expect("written"));
    let folded = text(folder.path(), &["export", "--to", "folded", "run.fxr"]);
    let sum: u64 = folded.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum();
    assert_eq!(Some(sum), run["simulated"]["cycles"].as_u64(), "{folded}");
    assert!(
        folded.lines().any(|l| {
            l.starts_with("dgemm-tile.elf;_start;") && l.contains(";dgemm_5x4_kernel;loop dgemm_5x4_kernel+0x")
        }),
        "{folded}"
    );
    check_speedscope(&json(&stdout(folder.path(), &["export", "--to", "speedscope", "run.fxr"])));
    check_firefox(&json(&stdout(folder.path(), &["export", "--to", "firefox", "run.fxr"])));
    let all: u64 = pprof(&stdout(folder.path(), &["export", "--to", "pprof", "run.fxr"])).iter().map(|s| s.1).sum();
    assert_eq!(all, sum);
    let refused = output(folder.path(), &["export", "--to", "perfetto", "run.fxr"]);
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("--stacks 100us"));
}

#[test]
fn a_functional_run_has_neither_and_says_what_to_do() {
    let folder = folder();
    let program = kernel("triad-l1.elf");
    output(folder.path(), &["run", "-q", "--mode", "functional", "-o", "run.fxr", "--", &program, "passes=1"]);
    for (arguments, why) in [
        (["export", "--to", "folded", "run.fxr"], "repeat it in timing mode"),
        (["report", "--section", "loops", "run.fxr"], "no data on loops"),
    ] {
        let refused = output(folder.path(), &arguments);
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(125) && error.contains(why), "{error}");
    }
    let refused = output(folder.path(), &["run", "--mode", "functional", "--stacks", "1us", "--", &program]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--stacks: call stacks are sampled in simulated time"));
}

fn frames_name<'a>(file: &'a Value, index: &Value) -> &'a str {
    let index = index.as_u64().expect("an index") as usize;
    file["shared"]["frames"][index]["name"].as_str().expect("a name")
}

/// What the schema of speedscope requires of a file with sampled profiles.
fn check_speedscope(file: &Value) {
    assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let frames = file["shared"]["frames"].as_array().expect("frames");
    for frame in frames {
        assert!(frame["name"].is_string() && (frame["file"].is_null() || frame["file"].is_string()), "{frame}");
        assert!(frame.as_object().expect("an object").values().all(|value| !value.is_null()), "{frame}");
    }
    for profile in file["profiles"].as_array().expect("profiles") {
        assert_eq!(profile["type"], "sampled");
        assert!(profile["name"].is_string());
        assert!(["none", "nanoseconds"].contains(&profile["unit"].as_str().expect("a unit")));
        let list = |key: &str| profile[key].as_array().expect("a list");
        assert_eq!(list("samples").len(), list("weights").len());
        let indices = list("samples").iter().flat_map(|sample| sample.as_array().expect("a stack"));
        assert!(indices.into_iter().all(|i| i.as_u64().is_some_and(|i| (i as usize) < frames.len())));
        let sum: u64 = list("weights").iter().map(|weight| weight.as_u64().expect("a weight")).sum();
        assert_eq!((profile["startValue"].as_u64(), profile["endValue"].as_u64()), (Some(0), Some(sum)));
    }
}

/// What the processed profile format requires: tables of equal length whose indices exist.
fn check_firefox(file: &Value) {
    assert!(file["meta"]["preprocessedProfileVersion"].as_u64().is_some(), "{}", file["meta"]);
    assert!(file["meta"]["interval"].as_f64().is_some_and(|ms| ms > 0.0));
    let threads = file["threads"].as_array().expect("threads");
    assert!(!threads.is_empty());
    for thread in threads {
        let length = |table: &str| thread[table]["length"].as_u64().expect("a length");
        let stacks = thread["samples"]["stack"].as_array().expect("stacks");
        assert_eq!(stacks.len() as u64, length("samples"));
        assert!(stacks.iter().all(|stack| stack.is_null() || stack.as_u64().is_some_and(|i| i < length("stackTable"))));
        let frames = thread["stackTable"]["frame"].as_array().expect("frames");
        assert!(frames.iter().all(|frame| frame.as_u64().is_some_and(|i| i < length("frameTable"))));
        let prefixes = thread["stackTable"]["prefix"].as_array().expect("prefixes");
        assert!((0u64..).zip(prefixes).all(|(i, prefix)| prefix.is_null() || prefix.as_u64().is_some_and(|p| p < i)));
    }
}

/// What the trace event format requires: a phase, a process and a thread for each event, times for those that have one.
fn check_perfetto(file: &Value) {
    let events = file["traceEvents"].as_array().expect("events");
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    let (names, spans, counters) = (of("M"), of("X"), of("C"));
    assert_eq!(names.len() + spans.len() + counters.len(), events.len());
    assert!(events.iter().all(|event| event["pid"].is_u64() && event["tid"].is_u64() && event["name"].is_string()));
    assert!(names.iter().any(|event| event["name"] == "thread_name" && event["args"]["name"] == "thread 0"));
    assert!(
        spans
            .iter()
            .all(|span| span["ts"].as_f64().zip(span["dur"].as_f64()).is_some_and(|(t, d)| t >= 0.0 && d > 0.0))
    );
    let leaf: f64 = spans.iter().filter(|span| span["name"] == "leaf").filter_map(|span| span["dur"].as_f64()).sum();
    let work: f64 = spans.iter().filter(|span| span["name"] == "work").filter_map(|span| span["dur"].as_f64()).sum();
    assert!(leaf > 0.0 && leaf <= work, "a caller lasts as long as what it calls: {leaf} in {work}");
    for counter in ["GFLOPS", "memory GB/s", "IPC"] {
        let of: Vec<f64> =
            counters.iter().filter(|c| c["name"] == counter).filter_map(|c| c["args"]["value"].as_f64()).collect();
        assert!(of.len() > 1 && of.iter().all(|&value| value >= 0.0), "{counter}: {of:?}");
    }
    assert!(counters.iter().any(|c| c["name"] == "GFLOPS" && c["args"]["value"].as_f64() > Some(0.0)));
}

/// A field of a message in the wire format of protocol buffers.
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

/// Reads a message: its fields by number, in order.
fn message(bytes: &[u8]) -> Vec<(u64, Field)> {
    let mut at = 0;
    let varint = |at: &mut usize| {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = bytes[*at];
            *at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    };
    let mut fields = Vec::new();
    while at < bytes.len() {
        let key = varint(&mut at);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut at)),
            2 => {
                let length = varint(&mut at) as usize;
                at += length;
                Field::Bytes(bytes[at - length..at].to_vec())
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

fn number(fields: &[(u64, Field)], wanted: u64) -> u64 {
    let found = fields.iter().find_map(|(field, value)| match value {
        Field::Number(number) if *field == wanted => Some(*number),
        _ => None,
    });
    found.unwrap_or(0)
}

fn parts(fields: &[(u64, Field)], wanted: u64) -> Vec<&[u8]> {
    let of = fields.iter().filter_map(|(field, value)| match value {
        Field::Bytes(bytes) if *field == wanted => Some(&bytes[..]),
        _ => None,
    });
    of.collect()
}

/// Returns the stacks of a profile of pprof, the innermost function first, with their weights.
fn pprof(bytes: &[u8]) -> Vec<(Vec<String>, u64)> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain).expect("gzip");
    let profile = message(&plain);
    let strings: Vec<String> =
        parts(&profile, 6).into_iter().map(|text| String::from_utf8(text.to_vec()).expect("text")).collect();
    assert_eq!(strings[0], "", "the first string is empty");
    let functions: BTreeMap<u64, String> = parts(&profile, 5)
        .into_iter()
        .map(message)
        .map(|function| (number(&function, 1), strings[number(&function, 2) as usize].clone()))
        .collect();
    let locations: BTreeMap<u64, String> = parts(&profile, 4)
        .into_iter()
        .map(message)
        .map(|location| {
            let line = message(parts(&location, 4)[0]);
            (number(&location, 1), functions[&number(&line, 1)].clone())
        })
        .collect();
    let packed = |bytes: &[u8]| -> Vec<u64> {
        // A packed list is numbers without keys.
        let mut list = Vec::new();
        let (mut value, mut shift) = (0, 0);
        for byte in bytes {
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                list.push(std::mem::take(&mut value));
                shift = 0;
            }
        }
        list
    };
    let of_type = message(parts(&profile, 1)[0]);
    assert!(["time", "cycles"].contains(&strings[number(&of_type, 1) as usize].as_str()));
    let sample = |bytes: &[u8]| {
        let sample = message(bytes);
        let stack = packed(parts(&sample, 1)[0]).iter().map(|id| locations[id].clone()).collect();
        (stack, packed(parts(&sample, 2)[0])[0])
    };
    parts(&profile, 2).into_iter().map(sample).collect()
}
