//! `fxscope pages risks`: accesses with a false mask to pages that do not exist.

use crate::common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{elf, exit, failure, json, kernel, output, place};
use serde_json::{Value, json};

const ROWS: u64 = 200;

/// Returns the output of `fxscope pages risks --json -` with these arguments.
fn risks(folder: &Path, arguments: &[&str]) -> Value {
    let output = output(folder, &[&["pages", "risks", "--json", "found.json"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    json(&fs::read(folder.join("found.json")).expect("written"))
}

/// Returns the risks that `pages risks` finds in `masked.elf` with these options before the program, and these arguments.
fn masked(options: &[&str], own: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("temporary folder");
    let (program, rows) = (kernel("masked.elf"), format!("rows={ROWS}"));
    risks(folder.path(), &[options, &["--", &program, &rows, "inner=2"], own].concat())
}

/// Returns the only instruction that was found.
fn only(found: &Value) -> &Value {
    let list = found["risks"].as_array().expect("a list");
    assert_eq!(list.len(), 1, "{found:#}");
    &list[0]
}

#[test]
fn each_kind_of_access_to_memory_that_was_never_mapped_is_found_with_its_function() {
    for (access, kind, indexed) in
        [("store", "store", false), ("load", "load", false), ("scatter", "store", true), ("gather", "load", true)]
    {
        let found = masked(&[], &[&format!("access={access}"), "step=65536"]);
        let risk = only(&found);
        assert_eq!(risk["function"], format!("masked_{access}_kernel"));
        assert_eq!((&risk["kind"], &risk["indexed"]), (&json!(kind), &json!(indexed)), "{risk}");
        // The program makes one row before it measures, which is the first measured one as well. Rows are a page apart.
        let expected = json!(ROWS + 1);
        assert_eq!((&risk["accesses"], &risk["none_active"], &risk["executions"]), (&expected, &expected, &expected));
        assert_eq!((&risk["unmapped"]["pages"], &risk["untouched"]["pages"]), (&json!(ROWS), &json!(0)), "{risk}");
        assert!(risk["text"].as_str().is_some_and(|text| text.contains("p1")), "{risk}");
    }
}

#[test]
fn untouched_memory_is_a_risk_only_if_pages_are_allocated_on_demand() {
    let demand = ["-e", "XOS_MMM_L_PAGING_POLICY=demand:demand:demand"];
    let found = masked(&demand, &["state=untouched"]);
    let risk = only(&found);
    assert_eq!((&risk["untouched"]["accesses"], &risk["unmapped"]["accesses"]), (&json!(ROWS + 1), &json!(0)));
    assert_eq!(risk["untouched"]["pages"], 1, "200 rows of 64 bytes");
    assert_eq!(masked(&[], &["state=untouched"])["risks"], json!([]), "taken when it was mapped");
}

#[test]
fn memory_in_use_active_elements_and_a_condition_before_the_loop_are_no_risk() {
    for own in [&["state=used"][..], &["state=untouched", "active=3"], &["form=branch"], &["state=used", "active=1"]] {
        assert_eq!(masked(&[], own)["risks"], json!([]), "{own:?}");
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    place(folder.path(), "plain", &elf(&exit(0)));
    assert_eq!(risks(folder.path(), &["--", "./plain"])["risks"], json!([]));
    let text = output(folder.path(), &["pages", "risks", "--", "./plain"]).stdout;
    assert!(String::from_utf8_lossy(&text).contains("None found"), "{}", String::from_utf8_lossy(&text));
}

/// A loop whose store is conditional; lines are numbered as in an editor.
const SOURCE: &str = "#include <arm_sve.h>
__attribute__((noinline)) void conditional(double *z, long rows, long used)
{
    svbool_t mask = svwhilelt_b64(0L, used);
    for (long row = 0; row < rows; row++)
        svst1(mask, z + row * 8, svdup_f64(1));
}
__attribute__((noinline)) double search(const double *z)
{
    svsetffr();
    return svaddv(svptrue_b64(), svldff1(svptrue_b64(), z));
}
__attribute__((noinline)) double last(const double *z, long elements)
{
    return svaddv(svptrue_b64(), svld1(svwhilelt_b64(0L, elements), z));
}
#include <sys/mman.h>
int main(int argc, char **argv)
{
    (void)argv;
    conditional((double *)0x600000000000, 50, argc - 1);
    char *two = mmap(0, 2 << 21, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(two + (1 << 21), 1 << 21);
    double *edge = (double *)(two + (1 << 21)) - 1;
    return (int)(search(edge) + last(edge, argc));
}
";

#[test]
fn lines_are_named_edges_distinguished_from_idle_accesses_and_first_fault_loads_left_out() {
    let folder = tempfile::tempdir().expect("temporary folder");
    fs::write(folder.path().join("loop.c"), SOURCE).expect("written");
    let compiler = Command::new("aarch64-linux-gnu-gcc")
        .args(["-g", "-O1", "-march=armv8.2-a+sve", "-static", "loop.c", "-o", "loop"])
        .current_dir(folder.path())
        .status();
    assert!(compiler.expect("the cross compiler is installed").success());
    let found = risks(folder.path(), &["--", "./loop"]);
    let list = found["risks"].as_array().expect("a list");
    let risk = list.iter().find(|risk| risk["function"] == "conditional").expect("found");
    assert!(risk["line"].as_str().is_some_and(|line| line.ends_with("loop.c:6")), "{risk}");
    assert_eq!(risk["none_active"], 50);
    assert_eq!(risk["unmapped"]["first"], 0x6000_0000_0000u64);
    let edge = list.iter().find(|risk| risk["function"] == "last").expect("found");
    assert_eq!((&edge["accesses"], &edge["none_active"]), (&json!(1), &json!(0)), "{edge}");
    assert!(list.iter().all(|risk| risk["function"] != "search"), "{found:#}");
    assert_eq!(found["first_fault_accesses"], 1);
    let text = String::from_utf8(output(folder.path(), &["pages", "risks", "--", "./loop"]).stdout).expect("text");
    assert!(
        text.contains("loop.c:6") && text.contains("with one loop per value") && text.contains("First-fault"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn a_missing_program_is_reported_with_what_to_do() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let (status, message) = failure(folder.path(), &["pages", "risks", "--", "./missing"]);
    assert!(status == 127 && message.contains("missing"), "{status} {message}");
    let (status, message) = failure(folder.path(), &["pages", "risks"]);
    assert!(status == 2 && message.contains("PROGRAM"), "{status} {message}");
}

#[test]
fn a_machine_that_translates_inactive_elements_misses_each_time_with_any_page_size() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let (program, rows) = (kernel("masked.elf"), format!("rows={ROWS}"));
    let walks = |options: &[&str], own: &str| {
        let begin = ["run", "--quiet", "--json", "run.json"];
        let args = [&begin[..], options, &["--", &program, &rows, "inner=2", own]].concat();
        assert!(output(folder.path(), &args).status.success());
        let run = json(&fs::read(folder.path().join("run.json")).expect("written"));
        let region = run["regions"].as_array().expect("a list").iter().find(|region| region["name"] == "masked");
        region.expect("marked")["events"]["L2D_TLB_REFILL"].as_u64().expect("counted")
    };
    for pages in ["mmap=64KiB", "mmap=2MiB"] {
        let looks_up = ["--pages", pages, "--set", "tlb.inactive_lookup=true"];
        assert_eq!(walks(&looks_up, "state=absent"), ROWS, "{pages}");
        assert_eq!(walks(&looks_up, "state=used"), 0, "{pages}: one page, in the TLB since it was written");
        assert_eq!(walks(&looks_up, "form=branch"), 0);
    }
    assert_eq!(walks(&[], "state=absent"), 0, "a64fx");
}
