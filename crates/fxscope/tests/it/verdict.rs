//! Verdicts on small programs with one known illness each: the verdict names it first, and not if the program is cured.

use crate::common;

use common::{kernel, output};
use serde_json::Value;

/// An illness of `kernels/ill.c`, and the rule that finds it.
struct Illness {
    name: &'static str,
    rule: &'static str,
    /// Further options of the run.
    options: &'static [&'static str],
}

const fn illness(name: &'static str, rule: &'static str) -> Illness {
    Illness { name, rule, options: &[] }
}

/// Returns the rules that apply to the measured part of the program, the first one first.
fn limits(of: &Illness, ill: bool) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = kernel("ill.elf");
    let (illness, ill) = (format!("illness={}", of.name), format!("ill={}", u8::from(ill)));
    let arguments = ["--", &program, &illness, &ill];
    let ran = output(folder.path(), &[&["run", "-q", "--json", "run.json"], of.options, &arguments].concat());
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let text = std::fs::read(folder.path().join("run.json")).expect("written");
    let run: Value = serde_json::from_slice(&text).expect("JSON");
    let region = &run["regions"][1];
    assert_eq!(region["name"], of.name);
    let limits = region["verdict"]["limits"].as_array().expect("a verdict");
    let shares: Vec<f64> = limits.iter().map(|limit| limit["share"].as_f64().expect("a number")).collect();
    assert!(
        shares.is_sorted_by(|a, b| a >= b) && shares.iter().all(|share| (0.05..=1.0).contains(share)),
        "{shares:?}"
    );
    limits.iter().map(|limit| limit["rule"].as_str().expect("text").to_owned()).collect()
}

fn check(illnesses: &[Illness]) {
    for illness in illnesses {
        let (ill, cured) = (limits(illness, true), limits(illness, false));
        assert_eq!(ill.first().map(String::as_str), Some(illness.rule), "{}: {ill:?}", illness.name);
        assert!(!cured.contains(&illness.rule.to_owned()), "{} cured: {cured:?}", illness.name);
    }
}

#[test]
fn illnesses_of_operations_are_named_first() {
    check(&[
        illness("denormals", "subnormals"),
        illness("division", "divisions"),
        illness("scalar", "scalar_code"),
        illness("chain", "fp_latency"),
        illness("branches", "mispredictions"),
    ]);
}

/// They take longest.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn illnesses_of_threads_are_named_first() {
        let on = |options, name, rule| Illness { options, ..illness(name, rule) };
        check(&[
            illness("false-sharing", "line_sharing"),
            illness("imbalance", "imbalance"),
            illness("lock", "locks"),
            on(&["--cpus", "12-15,24-27"], "first-touch", "one_memory"),
            on(&["--cpus", "12,24"], "remote", "remote_memory"),
        ]);
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn illnesses_of_memory_accesses_are_named_first() {
        check(&[
            illness("stride", "sparse_lines"),
            illness("gather", "gathers"),
            illness("tlb", "tlb_misses"),
            illness("small-pages", "tlb_misses"),
            illness("aliasing", "aliasing"),
            illness("interlock", "store_fetch_interlock"),
            illness("streams", "many_streams"),
        ]);
    }
}
