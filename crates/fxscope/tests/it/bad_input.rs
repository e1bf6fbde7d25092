//! Invalid input: one clear message that says what to do, a nonzero status, and no damage.

use crate::common;

use std::fs;
use std::path::Path;

use common::{elf, exit, failure, kernel, place};

/// Checks that the message is one line of fxscope, and names the object and what to do.
fn check(folder: &Path, args: &[&str], status: i32, parts: &[&str]) {
    let (got, error) = failure(folder, args);
    assert_eq!(got, status, "{args:?}: {error}");
    assert!(error.starts_with("fxscope: "), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    for part in parts {
        assert!(error.contains(part), "'{part}' in {error}");
    }
}

fn run_program(file: &[u8], status: i32, parts: &[&str]) {
    let folder = tempfile::tempdir().expect("temporary folder");
    place(folder.path(), "program", file);
    check(folder.path(), &["run", "-o", "o.fxr", "--json", "o.json", "--", "./program"], status, parts);
    let names: Vec<_> = fs::read_dir(folder.path()).expect("readable").map(|e| e.expect("entry").file_name()).collect();
    assert_eq!(names, ["program"], "no output is left behind");
}

#[test]
fn an_unknown_option_is_not_mistaken_for_the_program() {
    let folder = tempfile::tempdir().expect("temporary folder");
    for command in [&["run"][..], &["collect", "-o", "o.fxr"], &["latency", "collect", "-o", "o.json"]] {
        let (status, error) = failure(folder.path(), &[command, &["--rekord", "./program"]].concat());
        assert_eq!(status, 2, "{error}");
        assert!(error.contains("unexpected argument '--rekord'"), "{error}");
    }
    // Arguments after the program are its own.
    check(folder.path(), &["run", "./program", "--rekord"], 127, &["./program"]);
}

#[test]
fn a_file_that_is_not_a_program() {
    run_program(b"#!/bin/sh\necho hello\n", 126, &["./program", "not an ELF file"]);
    run_program(b"", 126, &["not an ELF file", "empty"]);
}

#[test]
fn a_program_for_another_processor() {
    let mut x86 = elf(&exit(0));
    x86[18] = 62;
    run_program(&x86, 126, &["x86-64", "aarch64-linux-gnu"]);
    let mut narrow = elf(&exit(0));
    narrow[4] = 1;
    run_program(&narrow, 126, &["32-bit"]);
}

#[test]
fn a_truncated_program() {
    let file = fs::read(kernel("triad-l1.elf")).expect("readable");
    run_program(&file[..file.len() / 4], 126, &["truncated"]);
    run_program(&file[..50], 126, &["truncated"]);
}

#[test]
fn a_segment_of_terabytes() {
    let mut file = elf(&exit(0));
    file[64 + 40..64 + 48].copy_from_slice(&(4u64 << 40).to_le_bytes());
    run_program(&file, 126, &["bytes"]);
}

#[test]
fn a_program_whose_interpreter_is_missing() {
    let mut file = elf(&exit(0));
    // A second header, PT_INTERP, instead of the first words of the code.
    file[56] = 2;
    file.splice(120..120, [3u32, 4].map(u32::to_le_bytes).concat());
    file.splice(128..128, [176u64, 0, 0, 12, 12, 1].map(u64::to_le_bytes).concat());
    file.splice(176..176, *b"/no/ld.so.9\0");
    run_program(&file, 126, &["dynamically linked", "/no/ld.so.9", "host's own folders", "--sysroot DIR", "-static"]);
}

#[test]
fn a_program_that_is_missing_or_not_readable() {
    let folder = tempfile::tempdir().expect("temporary folder");
    check(folder.path(), &["run", "--", "./no-such"], 127, &["./no-such", "check the path"]);
    check(folder.path(), &["run", "--", "."], 126, &["cannot read ."]);
    let path = place(folder.path(), "secret", &elf(&exit(0)));
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o000)).expect("permissions");
    // The superuser may read everything.
    if fs::File::open(&path).is_err() {
        check(folder.path(), &["run", "--", "./secret"], 126, &["./secret", "ermission"]);
    }
}

#[test]
fn an_unknown_machine() {
    let folder = tempfile::tempdir().expect("temporary folder");
    check(folder.path(), &["run", "-m", "a64fy", "--", &kernel("triad-l1.elf")], 125, &["a64fy", "a64fx"]);
    check(folder.path(), &["events", "vax"], 125, &["vax", "a64fx"]);
}

#[test]
fn outputs_that_cannot_be_written_are_reported_before_the_run() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-l1.elf");
    for option in ["-o", "--json"] {
        check(
            folder.path(),
            &["run", option, "no/such/folder", "--", &program],
            125,
            &["no/such/folder", "check the path"],
        );
        check(folder.path(), &["run", option, ".", "--", &program], 125, &["is a folder"]);
    }
}

#[test]
fn a_file_that_is_not_a_record_is_left_unchanged() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = place(folder.path(), "results.fxr", b"my measurements");
    check(folder.path(), &["run", "-o", "results.fxr", "--", &kernel("triad-l1.elf")], 125, &["not an fxscope record"]);
    check(folder.path(), &["report", "results.fxr"], 125, &["not an fxscope record"]);
    assert_eq!(fs::read(path).expect("readable"), b"my measurements");
    check(folder.path(), &["report", "no.fxr"], 125, &["no.fxr"]);
}

#[test]
fn an_output_that_fails_at_the_end_is_reported_and_the_other_one_is_written() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-l1.elf");
    let args = ["run", "--quiet", "-o", "o.fxr", "--json", "/dev/full", "--", &program, "passes=1"];
    check(folder.path(), &args, 125, &["/dev/full", "space"]);
    assert!(folder.path().join("o.fxr").exists());
}

#[test]
fn a_wrong_command_line_is_explained() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-l1.elf");
    for args in [
        &["run", "-e", "NOVALUE", "--", &program][..],
        &["run", "--mode", "fast", "--", &program],
        &["run", "--max-instructions", "-3", "--", &program],
        &["run"],
        &["fly"],
    ] {
        let (status, error) = failure(folder.path(), args);
        assert_eq!(status, 2, "{error}");
        assert!(error.contains("error:") && error.contains("--help"), "{error}");
    }
}

#[test]
fn a_wrong_setting_or_machine_file_is_reported_with_the_nearest_name_and_the_place() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-l1.elf");
    let set = |setting| ["run", "--set", setting, "--", &program].map(str::to_owned);
    for (setting, parts) in [
        ("l2.byte=1MiB", ["l2.byte", "bytes"]),
        ("l3.bytes=1MiB", ["l3", "l2"]),
        ("clock.vector_bits=500", ["vector_bits", "512"]),
        ("clock.core_hz=fast", ["core_hz", "fast"]),
    ] {
        let args = set(setting);
        check(folder.path(), &args.each_ref().map(String::as_str), 125, &parts);
    }
    place(folder.path(), "machine.toml", b"extends = \"a64fx\"\n\n[tlb]\nl1_entrys = 32\n");
    let parts = ["machine.toml:4", "l1_entrys", "l1_entries"];
    check(folder.path(), &["run", "-m", "./machine.toml", "--", &program], 125, &parts);
    check(folder.path(), &["machine", "check", "machine.toml"], 125, &parts);
    check(folder.path(), &["run", "-m", "no/such/machine", "--", &program], 125, &["no/such/machine"]);
}
