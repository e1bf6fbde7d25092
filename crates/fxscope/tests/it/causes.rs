//! What limits each loop and each function of a program with several illnesses: the rules of the verdict on what its instructions count.

use crate::common;

use std::path::Path;

use common::{compile, json, output};
use serde_json::Value;

/// Four functions with a loop each, of which each has its own illness, and one that keeps the pipes busy.
const PROGRAM: &str = r#"
#include <stdint.h>
double matrix[1024 * 512], table[64];
static volatile double result;
static volatile uint64_t count;
#define LOOP static __attribute__((noinline)) void
LOOP chain(void) { double s = 1; for (int i = 0; i < 12000; i++) s = s * 0.999 + 1.0; result = s; }
LOOP division(void) { double s = 0; for (int i = 0; i < 3000; i++) s += table[i % 64] / (i + 1.5); result = s; }
LOOP branches(void)
{
    uint64_t r = 88172645463325252, n = 0;
    for (int i = 0; i < 6000; i++) {
        r ^= r << 13; r ^= r >> 7; r ^= r << 17;
        if (r & 4) { __asm__ volatile("nop"); n += 3; }
    }
    count = n;
}
LOOP columns(void)
{
    double s[4] = {0};
    for (int j = 0; j < 8; j++)
        for (int i = 0; i < 1024; i += 4)
            for (int k = 0; k < 4; k++) s[k] += matrix[(i + k) * 512 + j];
    result = s[0] + s[1] + s[2] + s[3];
}
LOOP busy(void)
{
    double a[24];
    for (int k = 0; k < 24; k++) a[k] = k;
    for (int i = 0; i < 3000; i++)
#pragma GCC unroll 24
        for (int k = 0; k < 24; k++) a[k] = a[k] * 0.999 + 0.5;
    double s = 0;
    for (int k = 0; k < 24; k++) s += a[k];
    result = s;
}
int main(void) { chain(); division(); branches(); columns(); busy(); return 0; }
"#;

fn done(folder: &Path, args: &[&str]) -> Vec<u8> {
    let output = output(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The rules in a list of limits, the first one first.
fn rules(limits: &Value) -> Vec<&str> {
    limits.as_array().expect("a list").iter().map(|limit| limit["rule"].as_str().expect("a name")).collect()
}

/// The rules that find something in the hottest loop of a function, and in the function.
fn found<'a>(run: &'a Value, function: &str) -> [Vec<&'a str>; 2] {
    let loops = run["loops"].as_array().expect("loops").iter().filter(|of| of["function"] == function);
    let hottest = loops.max_by_key(|of| of["own_cycles"].as_u64()).unwrap_or_else(|| panic!("no loop in {function}"));
    let functions = run["regions"][0]["verdict"]["hottest"].as_array().expect("functions");
    let whole = functions.iter().find(|of| of["function"] == function).unwrap_or_else(|| panic!("not hot: {function}"));
    [rules(&hottest["limits"]), rules(&whole["limits"])]
}

#[test]
fn each_loop_and_each_function_has_its_own_cause() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    compile(folder.path(), "several", &["-O2", "-static", "-g", "-mcpu=a64fx", "-fno-tree-vectorize"], PROGRAM);
    done(folder.path(), &["run", "-q", "-o", "run.fxr", "--", "./several"]);
    let run = json(&done(folder.path(), &["report", "--format", "json", "run.fxr"]));
    let run = &run[0];
    let expected = [
        ("chain", "fp_latency"),
        ("division", "divisions"),
        ("branches", "mispredictions"),
        ("columns", "sparse_lines"),
        ("busy", "fp_pipes"),
    ];
    for (function, rule) in expected {
        for rules in found(run, function) {
            // All of them compute with scalars as well.
            assert!(rules.contains(&rule), "{function}: {rules:?}");
            let others = expected.iter().filter(|(other, _)| *other != function);
            assert!(others.into_iter().all(|(_, other)| !rules.contains(other)), "{function}: {rules:?}");
        }
    }
    let text = String::from_utf8(done(folder.path(), &["report", "run.fxr"])).expect("text");
    let chain = text.lines().skip_while(|line| !line.contains("chain (several.c:")).nth(1).expect("a line");
    assert!(chain.contains("limited by ") && chain.contains("latency of floating-point operations"), "{text}");
    let page = String::from_utf8(done(folder.path(), &["report", "--format", "html", "run.fxr"])).expect("text");
    assert!(page.contains("limited by divisions and square roots"));
}
