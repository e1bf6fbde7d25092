//! Calls of functions: contexts, totals, and stacks in the formats of other tools.

use crate::common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use common::{json, output};
use serde_json::Value;

/// A run of a part of `calls.c`.
struct Calls {
    folder: tempfile::TempDir,
    run: Value,
}

impl Calls {
    fn of(what: &str, options: &[&str]) -> Calls {
        let folder = tempfile::tempdir().expect("temporary folder");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/calls.c");
        let flags = ["-g", "-O1", "-foptimize-sibling-calls", "-static", "-fno-omit-frame-pointer", "-pthread"];
        let program = folder.path().join("calls");
        let compiler = Command::new("aarch64-linux-gnu-gcc").args(flags).arg(&source).arg("-o").arg(program).status();
        assert!(compiler.expect("the cross compiler is installed").success());
        let mut arguments = vec!["run", "--quiet", "-o", "run.fxr", "--json", "run.json"];
        arguments.extend(options);
        arguments.extend(["--", "./calls", what]);
        let ran = output(folder.path(), &arguments);
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let run = json(&fs::read(folder.path().join("run.json")).expect("written"));
        Calls { folder, run }
    }

    fn contexts(&self) -> &Vec<Value> {
        self.run["calls"].as_array().expect("a list")
    }

    /// Returns the functions from `main`, or from the outermost one, to a context.
    fn path(&self, context: &Value) -> String {
        let mut names = vec![name(context)];
        let mut caller = &context["caller"];
        while let (Some(index), true) = (caller.as_u64(), names[names.len() - 1] != "main") {
            let context = &self.contexts()[index as usize];
            names.push(name(context));
            caller = &context["caller"];
        }
        names.reverse();
        names.join(";")
    }

    /// Returns the sums of a number over contexts with the same path.
    fn paths(&self, of: &str) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for context in self.contexts() {
            *sums.entry(self.path(context)).or_default() += context[of].as_u64().expect("a number");
        }
        sums
    }

    fn shown(&self, arguments: &[&str]) -> String {
        let shown = output(self.folder.path(), arguments);
        assert!(shown.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&shown.stderr));
        String::from_utf8(shown.stdout).expect("text")
    }
}

fn name(context: &Value) -> &str {
    context["function"].as_str().expect("a name")
}

#[test]
fn a_recursive_function_is_once_on_a_path_with_all_its_calls() {
    let calls = Calls::of("recursion", &[]);
    let paths = calls.paths("calls");
    // fib(n) makes 2 fib(n + 1) - 1 calls in all.
    assert_eq!(paths.get("main;fib"), Some(&177), "{paths:?}");
    assert!(!paths.keys().any(|path| path.contains("fib;")), "{paths:?}");
    let cycles = calls.run["regions"][0]["events"]["CPU_CYCLES"].as_u64().expect("a count");
    let own: u64 = calls.contexts().iter().filter_map(|context| context["own_cycles"].as_u64()).sum();
    assert!(own <= cycles && own * 100 >= cycles * 95, "{own} of {cycles}");
    let table = calls.shown(&["report", "--section", "calls", "run.fxr"]);
    for heading in ["  Function ", "  Call tree ", "  Call "] {
        assert!(table.contains(heading), "{table}");
    }
    assert!(table.contains("main → fib") && table.contains("fib (calls.c:"), "{table}");
    let csv = calls.shown(&["report", "--section", "calls", "--format", "csv", "run.fxr"]);
    let fib = csv.lines().find(|line| line.starts_with("1,fib,")).expect("a line");
    assert_eq!(fib.split(',').nth(4), Some("177"), "{fib}");
}

#[test]
fn functions_that_call_each_other_continue_their_outer_contexts() {
    let calls = Calls::of("mutual", &[]);
    let paths = calls.paths("calls");
    assert_eq!((paths.get("main;even"), paths.get("main;even;odd")), (Some(&11), Some(&10)), "{paths:?}");
    assert_eq!((paths.get("main;even;spend"), paths.get("main;even;odd;spend")), (Some(&11), Some(&10)));
    assert!(!paths.contains_key("main;even;odd;even"), "{paths:?}");
}

#[test]
fn a_function_that_ends_with_a_jump_is_replaced_by_the_other_one() {
    let calls = Calls::of("tail", &[]);
    let paths = calls.paths("cycles");
    assert!(paths.contains_key("main;hop") && paths["main;spend"] > 20 * paths["main;hop"], "{paths:?}");
    assert!(!paths.contains_key("main;hop;spend"), "{paths:?}");
}

#[test]
fn a_long_jump_ends_the_calls_that_it_leaves() {
    let calls = Calls::of("longjmp", &[]);
    let paths = calls.paths("calls");
    assert_eq!(paths.get("main;leaves;deep;spend"), Some(&4), "{paths:?}");
    assert_eq!((paths.get("main;after"), paths.get("main;after;spend")), (Some(&1), Some(&1)), "{paths:?}");
}

#[test]
fn a_signal_handler_is_called_by_what_it_interrupts() {
    let calls = Calls::of("signal", &[]);
    let paths = calls.paths("calls");
    let handler = paths.iter().find(|(path, _)| path.ends_with(";handle;spend")).expect("a handler");
    assert!(handler.0.starts_with("main;interrupted;") && *handler.1 == 1, "{paths:?}");
    assert_eq!((paths.get("main;interrupted;after"), paths.get("main;after")), (Some(&1), Some(&1)), "{paths:?}");
}

#[test]
fn threads_and_processes_have_stacks_of_their_own() {
    let calls = Calls::of("threads", &[]);
    let export = json(calls.shown(&["export", "--to", "speedscope", "run.fxr"]).as_bytes());
    let frames = export["shared"]["frames"].as_array().expect("frames");
    let stacks = |profile: &Value| -> Vec<(String, u64)> {
        let frame =
            |index: &Value| frames[index.as_u64().expect("an index") as usize]["name"].as_str().expect("a name");
        let stack =
            |sample: &Value| sample.as_array().expect("a stack").iter().map(frame).collect::<Vec<_>>().join(";");
        let weights = profile["weights"].as_array().expect("a list").iter().map(|w| w.as_u64().expect("a number"));
        profile["samples"].as_array().expect("a list").iter().map(stack).zip(weights).collect()
    };
    let profiles = export["profiles"].as_array().expect("profiles");
    let names: Vec<&str> = profiles.iter().filter_map(|profile| profile["name"].as_str()).collect();
    assert_eq!(profiles.len(), 4, "{names:?}");
    let in_worker = |profile: &Value| -> u64 {
        stacks(profile).iter().filter(|(stack, _)| stack.contains(";worker;spend")).map(|(_, n)| n).sum()
    };
    let workers: Vec<u64> = profiles.iter().map(in_worker).filter(|&cycles| cycles > 0).collect();
    let [first, second] = workers[..] else { panic!("{workers:?}") };
    assert!(second * 10 > first * 15 && second < first * 3, "twice the work: {workers:?}");
    assert!(!stacks(&profiles[0]).iter().any(|(stack, _)| stack.contains(";child")), "the parent runs no child");
    let of_child =
        profiles.iter().filter(|profile| stacks(profile).iter().any(|(stack, _)| stack.contains(";child;spend")));
    assert_eq!(of_child.count(), 1);
    // A thread begins with its own start routine, not in the function that created it.
    assert!(!profiles.iter().flat_map(&stacks).any(|(stack, _)| stack.contains("main") && stack.contains(";worker")));
}

#[test]
fn inlined_functions_have_contexts_and_loops_the_time_of_what_they_call() {
    let calls = Calls::of("inlined", &[]);
    let inlined: Vec<&Value> = calls.contexts().iter().filter(|context| context["inlined"] == true).collect();
    let twice = inlined.iter().find(|context| name(context) == "twice").expect("an inlined function");
    assert_eq!(calls.path(twice), "main;outer;twice");
    let paths = calls.paths("cycles");
    let all = paths["main;outer"];
    assert_eq!(all, paths["main;outer;spend"] + paths["main;outer;twice"] + calls.paths("own_cycles")["main;outer"]);
    assert!(paths["main;outer;twice"] * 5 > all, "{paths:?}");
    let spend = calls.contexts().iter().find(|c| calls.path(c) == "main;outer;spend").expect("a context");
    let around = &calls.run["loops"][spend["loop"].as_u64().expect("in a loop") as usize];
    let (cycles, total) =
        (around["cycles"].as_u64().expect("a number"), around["total_cycles"].as_u64().expect("known"));
    assert_eq!((&around["function"], total), (&"outer".into(), cycles + spend["cycles"].as_u64().expect("a number")));
    let table = calls.shown(&["report", "--section", "loops", "run.fxr"]);
    assert!(table.contains("  With calls "), "{table}");
    let folded = calls.shown(&["export", "--to", "folded", "run.fxr"]);
    assert!(folded.lines().any(|line| line.contains(";outer;twice (inlined) ")), "{folded}");
}

#[test]
fn threads_that_run_ahead_of_their_timing_make_the_same_calls() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = common::kernel("plain-threads.elf");
    let calls = |host_threads: &str| -> BTreeMap<(String, u64), u64> {
        let options =
            ["run", "-q", "--cpus", "12,13,24,25", "--host-threads", host_threads, "--json", "run.json", "--"];
        let ran = output(folder.path(), &[&options[..], &[&program, "threads=4", "n=20000", "passes=4"]].concat());
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let run = json(&fs::read(folder.path().join("run.json")).expect("written"));
        let contexts = run["calls"].as_array().expect("a list").iter();
        let mut numbers = BTreeMap::new();
        for context in contexts {
            let calls = context["calls"].as_u64().expect("a number");
            *numbers.entry((name(context).to_owned(), calls)).or_default() += 1;
        }
        numbers
    };
    let alone = calls("1");
    assert!(alone.keys().any(|(function, calls)| function.contains("kernel") && *calls > 0), "{alone:?}");
    assert_eq!(alone, calls("2"));
}

mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_sampled_run_has_the_same_contexts_and_about_the_same_shares() {
        let exact = Calls::of("long", &[]);
        let sampled = Calls::of("long", &["--sample", "auto"]);
        for path in ["main;after;spend", "main;spend"] {
            let share = |calls: &Calls| {
                let paths = calls.paths("cycles");
                paths[path] as f64 / paths["main"] as f64
            };
            let (exact, sampled) = (share(&exact), share(&sampled));
            assert!((exact - sampled).abs() < 0.05, "{path}: {sampled} instead of {exact}");
        }
    }
}
