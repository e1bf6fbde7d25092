//! `fxscope annotate`: cycles by function and instruction, beside the code.

use crate::common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{elf, exit, failure, json, kernel, output, place};
use serde_json::Value;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("temporary folder")
}

/// Returns the output of `fxscope annotate --json FILE` with more arguments.
fn annotate(folder: &Path, args: &[&str]) -> Value {
    let all = [&["annotate", "--json", "out.json"], args].concat();
    let output = output(folder, &all);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    json(&fs::read(folder.join("out.json")).expect("written"))
}

fn sum(list: &Value, key: &str) -> u64 {
    list.as_array().expect("a list").iter().map(|v| v[key].as_u64().expect("a number")).sum()
}

/// Makes `run.fxr` of a program in `folder`.
fn record(folder: &Path, command: &[&str]) {
    let output = output(folder, &[&["run", "--quiet", "-o", "run.fxr", "--"], command].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_kernel_is_the_hottest_function_and_all_cycles_add_up() {
    let folder = folder();
    for (program, arguments, name) in [
        ("dgemm-tile.elf", ["passes=500", "k=128"], "dgemm_5x4_kernel"),
        ("triad-l1.elf", ["passes=200", "n=2048"], "triad_kernel"),
    ] {
        let program = kernel(program);
        let command = ["--top", "1000", "--", &program, arguments[0], arguments[1]];
        let json = annotate(folder.path(), &command);
        let functions = &json["functions"];
        assert_eq!(functions[0]["name"], name);
        assert!(functions[0]["share"].as_f64().is_some_and(|share| share > 0.5), "{name}");
        let cycles = json["cycles"].as_u64().expect("a number");
        let outside = json["cycles_outside"].as_u64().expect("a number");
        assert_eq!(sum(functions, "cycles") + outside, cycles);
        assert!(outside * 20 < cycles, "{outside} of {cycles}");
        for function in functions.as_array().expect("a list") {
            assert_eq!(sum(&function["instructions"], "cycles"), function["cycles"]);
            assert_eq!(sum(&function["instructions"], "executions"), function["executions"]);
        }
    }
}

#[test]
fn a_record_is_annotated_like_a_run() {
    let folder = folder();
    let program = kernel("dgemm-tile.elf");
    let mut direct = annotate(folder.path(), &["--", &program, "passes=20"]);
    record(folder.path(), &[&program, "passes=1"]);
    record(folder.path(), &[&program, "passes=20"]);
    assert_eq!(annotate(folder.path(), &["run.fxr"]), direct, "the last run");
    direct["arguments"][0] = "passes=1".into();
    let first = annotate(folder.path(), &["run.fxr", "--run", "1"]);
    assert_eq!(first["arguments"], direct["arguments"]);
    assert!(first["cycles"].as_u64() < direct["cycles"].as_u64());
}

#[test]
fn instructions_have_text_micro_operations_and_pipes_of_the_machine() {
    let folder = folder();
    let program = kernel("dgemm-tile.elf");
    let json = annotate(folder.path(), &["--function", "dgemm_5x4_kernel", "--", &program, "passes=2"]);
    let functions = json["functions"].as_array().expect("a list");
    let list = functions.iter().find_map(|f| f["instructions"].as_array()).expect("those asked for");
    let fmla = list.iter().find(|i| i["text"].as_str().is_some_and(|t| t.starts_with("fmla z0.d"))).expect("FMLA");
    let expected = serde_json::json!([{
        "flows": [{"pipes": ["FLA", "FLB"], "all_pipes": false, "latency": 9, "pipe_cycles": 1}],
        "independent": false
    }]);
    assert_eq!(fmla["uops"], expected, "manual: FLA | FLB, 9 cycles");
    let stp = list.iter().find(|i| i["text"].as_str().is_some_and(|t| t.starts_with("stp d8"))).expect("STP");
    assert_eq!(stp["uops"][0]["flows"].as_array().map(Vec::len), Some(2), "address and data");
    assert_eq!(stp["uops"][0]["independent"], true);
}

#[test]
fn the_terminal_shows_functions_then_the_instructions_of_the_hottest() {
    let folder = folder();
    let output = output(folder.path(), &["annotate", "--", &kernel("dgemm-tile.elf"), "passes=500"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.starts_with("dgemm-tile ok"), "the program's own output comes first: {text}");
    for part in ["Function ", "put_number", "dgemm_5x4_kernel at 0x", "FL_COMP_WAIT"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // Instructions are shown whole, however wide the pipes beside them, with signed offsets.
    for instruction in
        ["fmla z16.d, p0/m, z24.d, z31.d ", "ld1d {z27.d}, p0/z, [x2, #-5, mul vl]", "stp d8, d9, [sp, #-64]!"]
    {
        assert!(text.contains(instruction), "{instruction} in {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn without_the_programs_file_the_cycles_are_shown_and_what_is_missing() {
    let folder = folder();
    let copy = folder.path().join("copy.elf");
    fs::copy(kernel("triad-l1.elf"), &copy).expect("copied");
    record(folder.path(), &["./copy.elf", "passes=2"]);
    let whole = annotate(folder.path(), &["run.fxr"]);
    fs::rename(&copy, folder.path().join("moved.elf")).expect("moved");
    let without = annotate(folder.path(), &["run.fxr"]);
    assert_eq!(without["cycles"], whole["cycles"]);
    assert!(without["code"].is_null() && without["functions"][0]["instructions"][0]["text"].is_null());
    let note = without["notes"][0].as_str().expect("a note");
    assert!(note.contains("/copy.elf") && note.contains("--program PATH"), "{note}");
    let found = annotate(folder.path(), &["run.fxr", "--program", "moved.elf"]);
    assert_eq!(found["functions"], whole["functions"]);
}

#[test]
fn a_program_that_was_replaced_is_reported() {
    let folder = folder();
    let copy = folder.path().join("copy.elf");
    fs::copy(kernel("triad-l1.elf"), &copy).expect("copied");
    record(folder.path(), &["./copy.elf", "passes=2"]);
    fs::copy(kernel("dgemm-tile.elf"), &copy).expect("copied");
    let json = annotate(folder.path(), &["run.fxr"]);
    let note = json["notes"][0].as_str().expect("a note");
    assert!(json["code"].is_null() && note.contains("not the program that ran"), "{note}");
}

#[test]
fn source_lines_come_from_debug_information() {
    const SOURCE: &str = "int work(int n)\n{\n    volatile int sum = 0;\n    for (int i = 0; i < n; i++)\n        \
                          sum += i * i;\n    return sum & 1;\n}\n\nint main(void)\n{\n    return work(20000) & 0;\n}\n";
    let folder = folder();
    fs::write(folder.path().join("work.c"), SOURCE).expect("written");
    for link in ["-static", "-static-pie"] {
        let compiler = Command::new("aarch64-linux-gnu-gcc")
            .args(["-g", "-O1", link, "work.c", "-o", "work"])
            .current_dir(folder.path())
            .status();
        assert!(compiler.expect("the cross compiler is installed").success());
        let json = annotate(folder.path(), &["--", "./work"]);
        let function = &json["functions"][0];
        assert_eq!(function["name"], "work", "{link}");
        let list = function["instructions"].as_array().expect("a list");
        assert!(list.iter().all(|i| i["file"].as_str().is_some_and(|f| f.ends_with("work.c"))), "{link}: {list:?}");
        let hottest = list.iter().max_by_key(|i| i["cycles"].as_u64()).expect("some");
        assert!(hottest["line"] == 4 || hottest["line"] == 5, "{link}: the loop, not {}", hottest["line"]);
    }
    let output = output(folder.path(), &["annotate", "--", "./work"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("work.c:5: sum += i * i;\n"));
}

#[test]
fn causes_and_pipes_of_instructions_add_up_to_the_counters() {
    let folder = folder();
    let program = kernel("dgemm-tile.elf");
    let run = output(folder.path(), &["run", "--quiet", "--json", "run.json", "--", &program, "passes=20"]);
    assert!(run.status.success());
    let run = json(&fs::read(folder.path().join("run.json")).expect("written"));
    let events = &run["regions"][0]["events"];
    let annotated = annotate(folder.path(), &["--top", "1000", "--", &program, "passes=20"]);
    let instructions = || {
        let functions = annotated["functions"].as_array().expect("a list").iter();
        functions.flat_map(|f| f["instructions"].as_array().expect("those asked for"))
    };
    let sum = |of: &str, name: &str| instructions().filter_map(|i| i[of][name].as_u64()).sum::<u64>();
    for event in ["FL_COMP_WAIT", "BR_COMP_WAIT", "UOP_ONLY_COMMIT"] {
        assert_eq!(sum("stalls", event), events[event].as_u64().expect("counted"), "{event}");
    }
    for pipe in ["EXA", "EXB", "EAGA", "EAGB", "FLA", "FLB", "PRX"] {
        assert_eq!(sum("pipes", pipe), events[format!("{pipe}_VAL")].as_u64().expect("counted"), "{pipe}");
    }
    // A multiply-add is in flight for at least its nine cycles.
    let fmla = instructions().find(|i| i["text"].as_str().is_some_and(|t| t.starts_with("fmla"))).expect("FMLA");
    assert!(fmla["issue_to_commit"].as_f64().is_some_and(|cycles| cycles >= 9.0), "{fmla}");
}

#[test]
fn functions_of_a_program_started_by_another_have_their_own_names_and_code() {
    const FIRST: &str =
        "#include <unistd.h>\nint main(void)\n{\n    return execl(\"./second\", \"second\", (char *)0);\n}\n";
    const SECOND: &str = "__attribute__((noinline)) int second_work(int n)\n{\n    volatile int sum = 0;\n    \
                          for (int i = 0; i < n; i++)\n        sum += i;\n    return sum & 0;\n}\n\n\
                          int main(void)\n{\n    return second_work(20000);\n}\n";
    let folder = folder();
    for (name, source) in [("first", FIRST), ("second", SECOND)] {
        let file = format!("{name}.c");
        fs::write(folder.path().join(&file), source).expect("written");
        let compiler = Command::new("aarch64-linux-gnu-gcc")
            .args(["-g", "-O1", "-static", &file, "-o", name])
            .current_dir(folder.path())
            .status();
        assert!(compiler.expect("the cross compiler is installed").success());
    }
    let json = annotate(folder.path(), &["--", "./first"]);
    let hottest = &json["functions"][0];
    assert_eq!(hottest["name"], "second_work");
    assert!(hottest["file"].as_str().is_some_and(|file| file.ends_with("/second")), "{}", hottest["file"]);
    let list = hottest["instructions"].as_array().expect("a list");
    assert!(list.iter().all(|i| i["text"].is_string() && i["file"].as_str().is_some_and(|f| f.ends_with("second.c"))));
}

#[test]
fn a_record_of_an_older_version_shows_its_cycles_and_says_what_is_missing() {
    let folder = folder();
    fs::write(folder.path().join("run.fxr"), include_bytes!("../../../record/tests/version1.fxr")).expect("written");
    let json = annotate(folder.path(), &["run.fxr"]);
    assert_eq!(json["functions"][0]["name"], "_start");
    assert!(json["functions"][0]["stalls"].is_null() && json["code"].is_null());
    assert!(json["notes"][0].as_str().is_some_and(|note| note.contains("older fxscope")), "{}", json["notes"]);
}

#[test]
fn a_program_without_names_is_one_entry() {
    let folder = folder();
    place(folder.path(), "plain", &elf(&exit(3)));
    let json = annotate(folder.path(), &["--", "./plain"]);
    assert_eq!(json["functions"].as_array().map(Vec::len), Some(1));
    assert_eq!(json["functions"][0]["name"], "");
    assert_eq!(json["functions"][0]["instructions"][2]["text"], "svc #0");
}

#[test]
fn runs_that_cannot_be_annotated_are_explained() {
    let folder = folder();
    place(folder.path(), "plain", &elf(&exit(0)));
    record(folder.path(), &["./plain"]);
    let functional = ["run", "--quiet", "--mode", "functional", "-o", "functional.fxr", "--", "./plain"];
    assert!(output(folder.path(), &functional).status.success());
    for (args, status, parts) in [
        (&["annotate"][..], 2, &["FILE.fxr"][..]),
        (&["annotate", "none.fxr"], 125, &["none.fxr"]),
        (&["annotate", "run.fxr", "--run", "2"], 125, &["run.fxr", "no run 2", "holds 1"]),
        (&["annotate", "run.fxr", "--function", "nothing"], 125, &["nothing", "no function of that name"]),
        (&["annotate", "functional.fxr"], 125, &["functional mode", "timing mode"]),
        (&["annotate", "run.fxr", "--program", "none"], 125, &["none: ", "--program PATH"]),
        (&["annotate", "run.fxr", "--program", "run.fxr"], 125, &["run.fxr: not an ELF file"]),
        (&["annotate", "run.fxr", "--sandbox"], 2, &["--sandbox"]),
        (&["annotate", "run.fxr", "--", "./plain"], 2, &["cannot be used with"]),
        (&["annotate", "--", "./nothing"], 127, &["./nothing"]),
    ] {
        let (code, error) = failure(folder.path(), args);
        assert_eq!(code, status, "{args:?}: {error}");
        for part in parts {
            assert!(error.contains(part), "{args:?}: {part} in {error}");
        }
    }
}

/// They take seconds each.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn the_functions_of_a_dynamic_program_and_of_its_libraries_have_their_code() {
        const SOURCE: &str = "#include <stdlib.h>\nstatic int order(const void *a, const void *b)\n{\n    \
                              return *(const int *)a - *(const int *)b;\n}\n\nint main(void)\n{\n    \
                              static int list[500];\n    for (int i = 0; i < 500; i++)\n        \
                              list[i] = i * 7919 % 10007;\n    qsort(list, 500, sizeof *list, order);\n    \
                              return 0;\n}\n";
        let folder = folder();
        fs::write(folder.path().join("sort.c"), SOURCE).expect("written");
        let compiler = Command::new("aarch64-linux-gnu-gcc")
            .args(["-g", "-O1", "sort.c", "-o", "sort"])
            .current_dir(folder.path())
            .status();
        assert!(compiler.expect("the cross compiler is installed").success());
        let json = annotate(folder.path(), &["--top", "1000", "--", "./sort"]);
        let functions = json["functions"].as_array().expect("a list");
        let order = functions.iter().find(|f| f["name"] == "order").expect("called by the library");
        let first = &order["instructions"][0];
        assert_eq!(first["line"], 4, "{first}");
        assert!(first["text"].as_str().is_some_and(|text| text.starts_with("ldr")), "{first}");
        // Functions of the C library have their code, read from its own file, by the digest in the run.
        let library = |f: &&Value| f["file"].as_str().is_some_and(|file| file.contains("libc.so"));
        let sort = functions.iter().filter(library).find(|f| f["name"].as_str().is_some_and(|n| n.contains("sort")));
        let list = sort.expect("called by the program")["instructions"].as_array().expect("a list");
        assert!(list.iter().all(|i| i["text"].is_string() && i["uops"].is_array()), "{list:?}");
        assert_eq!(json["notes"], serde_json::json!([]));
    }
}
