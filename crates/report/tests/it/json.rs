//! The JSON form of runs, whose keys are stable.

use crate::common;

use fxscope_record::{ALL, Finish, Run, Thread};
use fxscope_report::render::json;
use fxscope_report::{By, Level, Options};
use serde_json::Value;

#[test]
fn stable_keys_exist() {
    let run = common::run("a.elf", vec![common::region(ALL, 1, 10), common::region("triad", 7, 5)]);
    let json = json::run(&run);
    assert_eq!(json["machine"], "a64fx");
    assert_eq!(json["program"], "a.elf");
    assert_eq!(json["exit_code"], 0);
    assert_eq!(json["simulated"]["cycles"], 2_000_000);
    assert_eq!(json["simulated"]["seconds"], 1e-3);
    assert_eq!(json["simulated"]["instructions"], 1_250_000);
    assert_eq!(json["simulated"]["ipc"], 0.6);
    assert_eq!(json["host"]["wall_seconds"], 0.0825);
    assert_eq!(json["host"]["mips"], 15.15);
    assert_eq!(json["host"]["peak_rss_bytes"], 120 << 20);
    let regions = json["regions"].as_array().expect("a list");
    assert_eq!(regions.len(), 2);
    assert_eq!(regions[0]["name"], "all");
    assert_eq!(regions[1]["name"], "triad");
    assert_eq!(regions[1]["events"]["CPU_CYCLES"], 1_000_000);
    assert_eq!(regions[1]["metrics"]["ipc"], 0.6);
    assert_eq!(regions[1]["threads"][0]["thread"], 0);
    assert_eq!(regions[1]["threads"][0]["cpu"], 12);
    assert_eq!(regions[1]["threads"][0]["events"]["INST_RETIRED"], 625_000);
}

#[test]
fn events_of_a_region_are_the_sums_of_its_threads() {
    let thread = |thread| (Thread { thread, cpu: 12 + thread, ..Thread::default() }, common::counts(10));
    let run = common::of_threads(vec![thread(0), thread(1)]);
    let json = json::run(&run);
    assert_eq!(json["regions"][0]["events"]["INST_RETIRED"], 2_500_000);
    assert_eq!(json["regions"][0]["threads"][1]["events"]["INST_RETIRED"], 1_250_000);
}

#[test]
fn cmg_wide_events_count_once_per_cmg() {
    // Two threads on the first CMG and one on the second.
    let threads = (0..).zip([(12, 70), (23, 70), (24, 5)]).map(|(thread, (cpu, lines))| {
        let mut counts = common::counts(10);
        counts.insert("BUS_READ_TOTAL_MEM".to_owned(), lines);
        (Thread { thread, cpu, ..Thread::default() }, counts)
    });
    let mut run = common::of_threads(threads.collect());
    run.constants.extend([("first_core".to_owned(), 12.0), ("cmg_cores".to_owned(), 12.0)]);
    let json = json::run(&run);
    assert_eq!(json["regions"][0]["events"]["BUS_READ_TOTAL_MEM"], 75);
    assert_eq!(json["regions"][0]["events"]["INST_RETIRED"], 3 * 1_250_000);
    assert_eq!(json["regions"][0]["threads"][1]["events"]["BUS_READ_TOTAL_MEM"], 70);
}

#[test]
fn unknown_values_are_null_or_absent() {
    let counts = [("INST_RETIRED".to_owned(), 1_250_000)].into();
    let mut run = common::of_threads(vec![(Thread { cpu: 12, ..Thread::default() }, counts)]);
    run.finish = Finish::Stopped;
    let json = json::run(&run);
    assert!(json["exit_code"].is_null());
    assert!(json["simulated"]["cycles"].is_null());
    assert_eq!(json["simulated"]["instructions"], 1_250_000);
    let metrics = json["regions"][0]["metrics"].as_object().expect("an object");
    assert_eq!(metrics.keys().collect::<Vec<_>>(), ["instructions"]);
}

#[test]
fn a_program_ended_by_a_signal_has_the_status_a_shell_shows() {
    let mut run = common::plain();
    run.finish = Finish::Killed { signal: 11, message: "ended by SIGSEGV".to_owned() };
    assert_eq!(json::run(&run)["exit_code"], 139);
}

#[test]
fn pages_report_internal_fragmentation() {
    let mut run = common::plain();
    let segment = "bss".to_owned();
    run.pages = vec![fxscope_record::Pages { segment, page_bytes: 2 << 20, node: 5, pages: 3, bytes: 5 << 20 }];
    let pages = &json::run(&run)["pages"][0];
    assert_eq!((pages["segment"].as_str(), pages["node"].as_u64()), (Some("bss"), Some(5)));
    assert_eq!((pages["pages"].as_u64(), pages["lost_bytes"].as_u64()), (Some(3), Some(1 << 20)));
}

#[test]
fn runs_written_region_by_region_are_identical() {
    let runs =
        [common::run("a.elf", vec![common::region(ALL, 1, 10), common::region("triad", 7, 5)]), common::threads()];
    let whole: Value = runs.iter().map(json::run).collect();
    // Both are compared after a conversion to text, which drops the last digits of numbers.
    let whole: Value = serde_json::from_str(&whole.to_string()).expect("JSON");
    assert!(written(&runs, &Options::default()) == whole);
}

#[test]
fn a_thread_and_a_column_of_a_table_have_one_line_each() {
    let text = text(&[common::threads()], &Options::default());
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    assert_eq!(lines.iter().filter(|line| line.starts_with("{\"process\":0,\"thread\":")).count(), 4);
    assert!(lines.iter().any(|line| line.starts_with("\"A01\": {\"title\":")));
    assert!(lines.contains(&"\"name\": \"all\","));
}

#[test]
fn parts_smaller_than_requested_are_omitted() {
    let of = |by| written(&[common::threads()], &Options { by, ..Options::default() })[0]["regions"][0].clone();
    let (thread, cmg, process) = (of(By::Thread), of(By::Cmg), of(By::Process));
    let column = |region: &Value| region["tables"]["C05"].clone();
    let has = |region: &Value, part: &str| (region.get(part).is_some(), column(region).get(part).is_some());
    assert_eq!((has(&thread, "threads"), has(&thread, "cmgs")), ((true, true), (true, true)));
    assert_eq!((has(&cmg, "threads"), has(&cmg, "cmgs")), ((false, false), (true, true)));
    assert_eq!((has(&process, "threads"), has(&process, "cmgs")), ((false, false), (false, false)));
    assert_eq!(has(&process, "processes"), (true, true));
    assert_eq!(thread["metrics"], process["metrics"]);
}

#[test]
fn a_level_omits_what_its_runs_do_not_count() {
    let of = |level| written(&[common::plain()], &Options { level, ..Options::default() })[0]["regions"][0].clone();
    let (single, detailed) = (of(Level::Single), of(Level::Detailed));
    assert!(detailed["tables"].get("C01").is_some() && single["tables"].get("C01").is_none());
    assert!(detailed["events"].get("FLA_VAL").is_some() && single["events"].get("FLA_VAL").is_none());
    assert_eq!(single["metrics"]["seconds"], detailed["metrics"]["seconds"]);
}

#[test]
fn a_column_without_a_value_names_the_events_it_needs() {
    let region = json::run(&common::plain())["regions"][0].clone();
    assert_eq!(region["missing"]["K01"], serde_json::json!(["EA_CORE"]));
    assert!(region["tables"].get("K01").is_none());
    // A column with a value lacks nothing.
    assert!(region["tables"].get("A01").is_some() && region["missing"].get("A01").is_none());
}

#[test]
fn a_single_region_can_be_requested() {
    let run = common::run("a.elf", vec![common::region(ALL, 1, 10), common::region("triad", 7, 5)]);
    let options = |name: &str| Options { region: Some(name.to_owned()), ..Options::default() };
    let regions = written(std::slice::from_ref(&run), &options("triad"))[0]["regions"].clone();
    assert_eq!(regions.as_array().map(|list| list.iter().map(|r| &r["name"]).collect()), Some(vec![&"triad".into()]));
    let refusal = fxscope_report::check(&[run], &options("copy")).expect_err("no such region");
    assert_eq!(refusal, "a.elf has no region 'copy'; it has all, triad");
}

/// The text written for runs.
fn text(runs: &[Run], options: &Options) -> String {
    let mut out = Vec::new();
    json::write(&mut out, runs, &[], options).expect("written to memory");
    String::from_utf8(out).expect("text")
}

fn written(runs: &[Run], options: &Options) -> Value {
    serde_json::from_str(&text(runs, options)).expect("JSON")
}
