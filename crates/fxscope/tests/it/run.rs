//! `fxscope run`: what passes through, what it writes, and how it ends.

use crate::common;

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::Stdio;

use common::{ENTRY, FOREVER, LOAD, SVC, echo, elf, exit, failure, fxscope, json, kernel, mov, output, place};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("temporary folder")
}

#[test]
fn input_output_and_exit_status_of_the_program_pass_through_unchanged() {
    let folder = folder();
    place(folder.path(), "echo", &elf(&echo()));
    let mut command = fxscope(folder.path(), &["run", "--quiet", "--", "./echo"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let text = b"\x00\xff\r\nno newline at the end";
    child.stdin.take().expect("piped").write_all(text).expect("written");
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.stdout, text);
    assert_eq!(output.stderr, text);
    assert_eq!(output.status.code(), Some(7));
}

#[test]
fn the_summary_goes_to_standard_error() {
    let folder = folder();
    let output = output(folder.path(), &["run", "--", &kernel("triad-l1.elf"), "passes=2"]);
    assert!(output.status.success());
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.starts_with("triad-l1 ok") && out.lines().count() == 1, "{out}");
    for part in
        ["time", "cycles", "IPC", "GFLOPS", "GB/s", "Where the cycles went", "Misses", "Busy", "MIPS", "Region triad"]
    {
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[test]
fn json_has_the_keys_that_scripts_depend_on() {
    let folder = folder();
    let program = kernel("triad-l1.elf");
    let args = ["run", "--quiet", "--json", "out.json", "-e", "A=1", "--", &program, "passes=2"];
    assert!(output(folder.path(), &args).status.success());
    let json = json(&fs::read(folder.path().join("out.json")).expect("written"));
    assert_eq!(json["machine"], "a64fx");
    assert_eq!(json["program"], program);
    assert_eq!(json["arguments"][0], "passes=2");
    assert_eq!(json["environment"]["A"], "1");
    assert_eq!(json["exit_code"], 0);
    for key in ["cycles", "seconds", "instructions", "ipc"] {
        assert!(json["simulated"][key].as_f64().is_some_and(|v| v > 0.0), "simulated.{key}");
    }
    for key in ["wall_seconds", "mips", "peak_rss_bytes", "guest_bytes"] {
        assert!(json["host"][key].as_f64().is_some_and(|v| v > 0.0), "host.{key}");
    }
    let regions = json["regions"].as_array().expect("a list");
    assert_eq!(regions.iter().map(|r| r["name"].as_str()).collect::<Vec<_>>(), [Some("all"), Some("triad")]);
    for region in regions {
        assert!(region["events"]["CPU_CYCLES"].as_u64().is_some_and(|n| n > 0));
        assert!(region["metrics"]["gflops"].as_f64().is_some_and(|n| n > 0.0));
        assert_eq!(region["threads"][0]["thread"], 0);
        assert_eq!(region["threads"][0]["cpu"], 12);
        assert_eq!(region["threads"][0]["events"], region["events"]);
    }
}

#[test]
fn json_is_alone_on_standard_output_and_the_programs_output_goes_to_standard_error() {
    let folder = folder();
    let output = output(folder.path(), &["run", "--quiet", "--json", "-", "--", &kernel("triad-l1.elf"), "passes=2"]);
    assert_eq!(json(&output.stdout)["exit_code"], 0);
    assert!(output.stderr.starts_with(b"triad-l1 ok"), "{output:?}");
}

#[test]
fn two_runs_give_identical_counts() {
    let folder = folder();
    let run = |name: &str, variable: &str| {
        let program = kernel("triad-mem.elf");
        let args = ["run", "--quiet", "--json", name, "--", &program, "n=4096", "passes=2"];
        // Variables of the host that the program does not receive make no difference.
        let status = fxscope(folder.path(), &args).env("SOMETHING", variable).stdout(Stdio::null()).status();
        assert!(status.expect("starts").success());
        let mut json = json(&fs::read(folder.path().join(name)).expect("written"));
        json["host"] = serde_json::Value::Null;
        json.to_string()
    };
    assert_eq!(run("a.json", "x"), run("b.json", "a longer value"));
}

#[test]
fn the_program_gets_few_variables_and_those_it_is_given() {
    // Writes the string at the fifth word on the stack: with argc 1, the first variable's text.
    const LDR_X1_SP_24: u32 = 0xf940_0fe1; // ldr x1, [sp, #24]
    let code = [&[mov(0, 1), LDR_X1_SP_24, mov(2, 6), mov(8, 64), SVC][..], &exit(0)].concat();
    let folder = folder();
    place(folder.path(), "first", &elf(&code));
    let mut command = fxscope(folder.path(), &["run", "--quiet", "-e", "ZZ=abc", "--", "./first"]);
    let output = command.env_clear().env("SECRET", "1").output().expect("starts");
    assert_eq!(output.stdout, b"ZZ=abc");
}

#[test]
fn a_fault_is_reported_with_signal_and_address_and_gives_128_plus_n() {
    let folder = folder();
    place(folder.path(), "fault", &elf(&[mov(0, 16), LOAD]));
    let (status, error) = failure(folder.path(), &["run", "--quiet", "--json", "out.json", "--", "./fault"]);
    assert_eq!(status, 128 + 11);
    assert!(
        error.contains("SIGSEGV") && error.contains(&format!("{:#x}", ENTRY + 4)) && error.contains("0x10"),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1);
    let json = json(&fs::read(folder.path().join("out.json")).expect("written"));
    assert_eq!(json["exit_code"], 139);
}

#[test]
fn an_instruction_that_the_processor_does_not_have_is_fatal_as_there_and_reported_with_address_bytes_and_name() {
    let folder = folder();
    // SQDMULH Z0.B, Z0.B, Z0.B of SVE2, which the machine does not have.
    place(folder.path(), "sve2", &elf(&[mov(0, 0), 0x0420_7000]));
    let (status, error) = failure(folder.path(), &["run", "--quiet", "--", "./sve2"]);
    const SIGILL: i32 = 4;
    assert_eq!(status, 128 + SIGILL, "{error}");
    for part in [&format!("{:#x}", ENTRY + 4), "00 70 20 04", "sqdmulh z0.b, z0.b, z0.b"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn the_instruction_limit_ends_a_run_that_is_still_reported() {
    let folder = folder();
    place(folder.path(), "forever", &elf(&[FOREVER]));
    for mode in ["timing", "functional"] {
        let args = ["run", "--mode", mode, "--max-instructions", "1000", "--json", "out.json", "--", "./forever"];
        let (status, error) = failure(folder.path(), &args);
        assert_eq!(status, 0);
        assert!(error.contains("instruction limit"), "{error}");
        let json = json(&fs::read(folder.path().join("out.json")).expect("written"));
        assert!(json["exit_code"].is_null());
        assert!(json["simulated"]["instructions"].as_u64().is_some_and(|n| (1000..1064).contains(&n)));
    }
}

#[test]
fn functional_mode_reports_only_what_it_counts() {
    let folder = folder();
    let program = kernel("triad-l1.elf");
    let args = ["run", "--quiet", "--mode", "functional", "--json", "o", "--", &program, "passes=2"];
    assert!(output(folder.path(), &args).status.success());
    let json = json(&fs::read(folder.path().join("o")).expect("written"));
    let events = json["regions"][0]["events"].as_object().expect("an object");
    assert!(events.contains_key("INST_RETIRED") && !events.contains_key("L1D_CACHE_REFILL"), "{events:?}");
    assert!(json["simulated"]["ipc"].is_null());
}

#[test]
fn ctrl_c_ends_the_run_and_what_was_simulated_is_reported() {
    let folder = folder();
    // Reports that it runs, then loops.
    let code = [mov(0, 1), 0x1000_0001, mov(2, 1), mov(8, 64), SVC, FOREVER]; // adr x1, .
    place(folder.path(), "forever", &elf(&code));
    let mut command = fxscope(folder.path(), &["run", "--json", "out.json", "-o", "out.fxr", "--", "./forever"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    child.stdout.as_mut().expect("piped").read_exact(&mut [0]).expect("it says so");
    let kill = std::process::Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status();
    assert!(kill.expect("sh starts").success());
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&output.stderr).contains("stopped by the user"));
    let json = json(&fs::read(folder.path().join("out.json")).expect("written"));
    assert_eq!(json["finish"], "stopped");
    assert!(json["simulated"]["instructions"].as_u64().is_some_and(|n| n > 0));
    assert!(folder.path().join("out.fxr").exists());
}

#[test]
fn records_collect_runs_that_report_shows() {
    let folder = folder();
    for passes in ["passes=1", "passes=2"] {
        let args = ["run", "--quiet", "-o", "r.fxr", "--", &kernel("triad-l1.elf"), passes];
        assert!(output(folder.path(), &args).status.success());
    }
    let text = output(folder.path(), &["report", "r.fxr", "--region", "triad"]);
    assert!(text.status.success());
    let text = String::from_utf8(text.stdout).expect("text");
    assert!(text.starts_with("Region triad") && text.contains("1 triad-l1.elf       2 triad-l1.elf"), "{text}");
    let list = json(&output(folder.path(), &["report", "--format", "json", "r.fxr"]).stdout);
    let arguments: Vec<_> = list.as_array().expect("a list").iter().map(|r| &r["arguments"][0]).collect();
    assert_eq!(arguments, ["passes=1", "passes=2"]);
    let (status, error) = failure(folder.path(), &["report", "r.fxr", "--region", "x"]);
    assert_eq!(status, 125);
    assert!(error.contains("it has all, triad"), "{error}");
}

#[test]
fn events_are_listed_with_their_numbers() {
    let folder = folder();
    let text = String::from_utf8(output(folder.path(), &["events"]).stdout).expect("text");
    let has = |number: &str, name: &str, counts: &str| {
        text.lines().any(|l| l.starts_with(number) && l.contains(&format!(" {name} ")) && l.contains(counts))
    };
    assert!(has("0x0011  core", "CPU_CYCLES", " modelled"), "{text}");
    assert!(has("0x01e0  core", "EA_CORE", "modelled: energy"), "{text}");
    assert!(has("0x01b4  core", "FLA_VAL_PRD_CNT", "modelled: 16 * FLA_VAL - FLA_INACTIVE"), "{text}");
    assert!(has("0x0314  CMG", "BUS_READ_TOTAL_TOFU", "not modelled: "), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
}

#[test]
fn settings_change_the_machine_and_are_recorded() {
    let folder = folder();
    let run = |args: &[&str]| {
        let program = kernel("triad-l1.elf");
        let args = [&["run", "--quiet", "--json", "out.json"], args, &["--", &program, "passes=2"]].concat();
        let output = output(folder.path(), &args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let out = String::from_utf8(output.stdout).expect("text");
        (out, json(&fs::read(folder.path().join("out.json")).expect("written")))
    };
    let (_, plain) = run(&[]);
    let (out, narrow) = run(&["--vector-bits", "256", "--set", "clock.core_hz=1000000000"]);
    assert!(out.contains("vl=256"), "{out}");
    assert_eq!(narrow["settings"]["clock.vector_bits"], "256");
    assert_eq!(narrow["settings"]["clock.core_hz"], "1000000000");
    assert_ne!(narrow["machine_hash"], plain["machine_hash"]);
    let seconds = narrow["simulated"]["cycles"].as_f64().map(|c| c / 1e9);
    assert_eq!(narrow["simulated"]["seconds"].as_f64(), seconds);
}

#[test]
fn machines_can_be_listed_shown_and_checked() {
    let folder = folder();
    let text = |args: &[&str]| {
        let output = output(folder.path(), args);
        assert!(output.status.success(), "{args:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    assert!(text(&["machine", "list"]).starts_with("a64fx "));
    let shown = text(&["machine", "show"]);
    assert!(shown.contains("[l2_timing]") && shown.contains("evidence"), "{shown}");
    // The shown path is a machine.
    place(folder.path(), "mine.toml", shown.as_bytes());
    assert!(text(&["machine", "check", "mine.toml"]).starts_with("mine.toml: sound"));
}
