//! `fxscope pages host`: this host, and its processes.

use crate::common;

use std::path::Path;
use std::process::{Command, Stdio};

use common::{failure, output};
use serde_json::Value;

fn text(args: &[&str]) -> String {
    let output = output(Path::new("/"), args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_host_is_shown_in_the_columns_that_there_are() {
    let arguments = ["pages", "host", "--pid", &std::process::id().to_string()];
    let output = common::fxscope(Path::new("/"), &arguments).env("COLUMNS", "100").output().expect("fxscope starts");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.starts_with("Pages of this host\n") && text.contains("base "), "{text}");
    assert!(text.contains("Findings") && text.contains(&format!("Process {}", std::process::id())), "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn json_has_the_process_and_its_mappings_add_up() {
    let text = text(&["pages", "host", "--json", "-", "--pid", &std::process::id().to_string()]);
    let all: Value = serde_json::from_str(&text).expect("JSON");
    let process = &all["process"];
    assert_eq!(process["pid"], std::process::id());
    let sum = |list: &Value| list.as_array().expect("list").iter().filter_map(|one| one["rss"].as_u64()).sum::<u64>();
    assert!(sum(&process["mappings"]) > 0);
    assert_eq!(sum(&process["mappings"]), sum(&process["segments"]));
    assert!(all["host"]["base_page"].as_u64().is_some_and(u64::is_power_of_two));
    assert!(all["host_findings"].as_array().is_some_and(|list| !list.is_empty()));
}

#[test]
fn processes_that_cannot_be_inspected_give_one_message() {
    let refused = |pid: u32, parts: &[&str]| {
        let (status, error) = failure(Path::new("/"), &["pages", "host", "--pid", &pid.to_string()]);
        assert_eq!((status, error.lines().count()), (125, 1), "{error}");
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    };
    // Process numbers are below 2^22.
    refused(1 << 30, &["no process 1073741824", "ps -e"]);
    let mut child = Command::new("true").stdin(Stdio::null()).spawn().expect("starts");
    let stat = format!("/proc/{}/stat", child.id());
    while !std::fs::read_to_string(&stat).expect("not waited for").contains(") Z ") {
        std::thread::yield_now();
    }
    refused(child.id(), &["has ended", "parent"]);
    child.wait().expect("waits");
    let (status, error) = failure(Path::new("/"), &["pages", "host", "--pid", "0"]);
    assert!(status != 0 && error.contains("'0'"), "{error}");
    let (_, error) = failure(Path::new("/"), &["pages", "host", "--json", "/no/such/folder/f.json"]);
    assert!(error.contains("/no/such/folder/f.json: cannot be written"), "{error}");
}
