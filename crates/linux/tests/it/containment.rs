//! Programs access nothing on the host except what they may.

use crate::common;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use common::{HOSTED, Outcome, Run, build, build_dynamic, oracle, run_qemu, run_with};
use fxscope_linux::{Access, Denied};

/// Returns everything about a folder that a program could change, in the order of the names.
fn snapshot(folder: &Path) -> Vec<(String, u32, std::time::SystemTime, Vec<u8>)> {
    let mut list = Vec::new();
    for entry in std::fs::read_dir(folder).expect("folder") {
        let entry = entry.expect("entry");
        let meta = entry.metadata().expect("metadata");
        let content = if meta.is_file() { std::fs::read(entry.path()).expect("readable") } else { Vec::new() };
        let name = entry.path().display().to_string();
        list.push((name, meta.permissions().mode(), meta.modified().expect("time"), content));
        if meta.is_dir() {
            list.extend(snapshot(&entry.path()));
        }
    }
    list.sort();
    list
}

#[test]
fn nothing_outside_the_allowed_folders_can_be_changed() {
    let program = build("contain.c", HOSTED);
    let base = tempfile::tempdir().expect("temporary folder");
    let base = base.path().canonicalize().expect("real path");
    let (inside, outside) = (base.join("inside"), base.join("outside"));
    std::fs::create_dir_all(&inside).expect("folder");
    std::fs::create_dir_all(outside.join("folder")).expect("folder");
    std::fs::write(outside.join("victim"), "intact").expect("file");
    std::fs::write(outside.join("victim (deleted)"), "intact").expect("file");
    let before = snapshot(&outside);

    let args = [inside.to_str().expect("UTF-8"), outside.to_str().expect("UTF-8")];
    let access = Access { write: vec![inside.clone()], ..Access::standard() };
    let (outcome, refusals) = run_with(&program, &Run { args: &args, ..Run::default() }, &access);
    assert_eq!(outcome.status, 0, "{}", outcome.error);
    let allowed = ["enter", "own file", "access to read", "go there", "null device", "internet socket"];
    for line in outcome.output.lines() {
        let (what, result) = line.split_once(": ").expect("what: result");
        let expected: &[&str] = match what {
            _ if allowed.contains(&what) => &["done"],
            "existing folder" => &["EEXIST"],
            "size of an open file" => &["EINVAL", "EBADF"],
            "memory of a host process" | "host device" | "another terminal" | "local socket of the host" => &["ENOENT"],
            "packet socket" => &["EAFNOSUPPORT"],
            _ => &["EACCES"],
        };
        assert!(expected.contains(&result), "{line}");
    }
    assert!(outcome.output.lines().count() > 40, "{}", outcome.output);
    assert_eq!(snapshot(&outside), before);
    let wrote: u64 = refusals.iter().filter(|r| r.denied == Denied::Write).map(|r| r.calls).sum();
    assert!(wrote > 25, "{refusals:?}");
    assert!(refusals.iter().any(|r| r.denied == Denied::Write && r.folder == outside), "{refusals:?}");
}

#[test]
fn circular_links_through_two_trees_are_detected() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let real = folder.path().canonicalize().expect("real path");
    let root = real.join("root");
    // Each link is in both trees and leads to the next one, which can be looked up in either tree.
    let inside = root.join(real.strip_prefix("/").expect("absolute"));
    std::fs::create_dir_all(&inside).expect("folder");
    for n in 0..39 {
        let (name, next) = (format!("link{n}"), real.join(format!("link{}", n + 1)));
        std::os::unix::fs::symlink(&next, real.join(&name)).expect("link");
        std::os::unix::fs::symlink(&next, inside.join(&name)).expect("link");
    }
    let first = real.join("link0");
    let run = Run { args: &[first.to_str().expect("UTF-8")], sysroot: Some(root), ..Run::default() };
    let (outcome, _) = run_with(&build("show.c", HOSTED), &run, &Access::standard());
    assert!(outcome.error.contains("Too many levels of symbolic links"), "{}", outcome.error);
}

#[test]
fn with_network_access_programs_talk_over_sockets() {
    let program = build("network.c", HOSTED);
    let access = Access { network: true, ..Access::standard() };
    let outcome = |run: &dyn Fn(&Run) -> Outcome| {
        let folder = tempfile::tempdir().expect("temporary folder");
        run(&Run { args: &[folder.path().to_str().expect("UTF-8")], ..Run::default() })
    };
    let here = outcome(&|run| run_with(&program, run, &access).0);
    let qemu = oracle(&here, || outcome(&|run| run_qemu(&program, run)));
    assert_eq!(here, qemu);
    assert_eq!(here.status, 0);
}

#[test]
fn a_sandboxed_program_has_only_its_standard_streams() {
    let run = Run { args: &["x", "last"], input: b"first\nsecond", ..Run::default() };
    let (outcome, refusals) = run_with(&build("hosted.c", HOSTED), &run, &Access::sandbox());
    assert!(outcome.output.contains("first"), "{}", outcome.output);
    assert!(refusals.is_empty(), "{refusals:?}");
    // The libraries of a dynamic program are files like any other.
    let program = build_dynamic("hosted.c", HOSTED);
    let (outcome, refusals) = run_with(&program, &run, &Access::sandbox());
    assert_eq!(outcome.status, 127, "{}", outcome.error);
    assert!(refusals.iter().any(|r| r.denied == Denied::Read), "{refusals:?}");
    let sysroot = fxscope_linux::default_sysroot().unwrap_or_else(|| "/lib".into());
    let access = Access { read: Some(vec![sysroot]), ..Access::sandbox() };
    let (outcome, _) = run_with(&program, &run, &access);
    assert!(outcome.output.contains("first"), "{}", outcome.error);
}
