//! What programs may access, and the messages about refusals, at the command line.

use crate::common;

use common::{compile, elf, failure, output, place};

/// Creates a file `made` in the given folder.
const WRITER: &str = r#"
    #include <fcntl.h>
    #include <stdio.h>
    int main(int argc, char **argv) {
        char path[4096];
        snprintf(path, sizeof path, "%s/made", argv[1]);
        return open(path, O_CREAT | O_WRONLY, 0600) < 0;
    }"#;

/// A working folder, and one that is neither below it nor below /tmp.
fn folders() -> (tempfile::TempDir, tempfile::TempDir) {
    (tempfile::tempdir().expect("folder"), tempfile::tempdir_in("/var/tmp").expect("folder"))
}

#[test]
fn a_write_elsewhere_is_refused_and_the_switch_named_that_allows_it() {
    let (here, outside) = folders();
    let program = compile(here.path(), "writer", &["-static"], WRITER);
    let target = outside.path().canonicalize().expect("path");
    let target = target.to_str().expect("UTF-8");
    let run = |switches: &[&str]| {
        let args = [&["run", "--mode", "functional"], switches, &["--", &program, target]].concat();
        let output = output(here.path(), &args);
        (
            output.status.code(),
            String::from_utf8(output.stderr).expect("text").split_whitespace().collect::<Vec<_>>().join(" "),
        )
    };
    let (status, error) = run(&[]);
    assert_eq!(status, Some(1));
    let told = format!("refused writing in {target} (calls: 1); --allow write={target} permits it.");
    // Long names are wrapped at the end of a line.
    assert!(error.replace(' ', "").contains(&told.replace(' ', "")), "{error}");
    assert!(!outside.path().join("made").exists());
    let (status, error) = run(&["--allow", &format!("write={target}")]);
    assert_eq!((status, error.contains("refused")), (Some(0), false), "{error}");
    assert!(outside.path().join("made").exists());
}

#[test]
fn access_that_cannot_be_allowed_is_explained() {
    let here = tempfile::tempdir().expect("folder");
    for (switches, words) in [
        (["--allow", "everything"], "read=DIR, write=DIR or net"),
        (["--allow", "write=/no/such/folder"], "/no/such/folder is not a folder"),
        (["--sysroot", "/no/such/folder"], "not a folder"),
    ] {
        let args = [&["run"], &switches[..], &["--", "program"]].concat();
        let output = output(here.path(), &args);
        let error = String::from_utf8(output.stderr).expect("text");
        assert!(!output.status.success() && error.contains(words), "{error}");
    }
}

#[test]
fn a_missing_library_is_named_with_the_folder_it_was_looked_for_in() {
    let here = tempfile::tempdir().expect("folder");
    compile(here.path(), "libgone.so", &["-shared"], "int gone(void) { return 0; }");
    let folder = format!("-L{}", here.path().display());
    let flags = ["-Wl,--no-as-needed", &folder, "-l:libgone.so"];
    let program = compile(here.path(), "program", &flags, "int main(void) { return 0; }");
    std::fs::remove_file(here.path().join("libgone.so")).expect("deleted");
    let output = output(here.path(), &["run", "--mode", "functional", "--", &program]);
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(127), "{error}");
    assert!(
        error.contains("libgone.so") && error.contains("looked for in") && error.contains("--sysroot DIR"),
        "{error}"
    );
}

#[test]
fn a_damaged_interpreter_is_named() {
    let here = tempfile::tempdir().expect("folder");
    let program = compile(here.path(), "program", &[], "int main(void) { return 0; }");
    let root = here.path().join("root");
    std::fs::create_dir_all(root.join("lib")).expect("folder");
    let path = root.join("lib/ld-linux-aarch64.so.1");
    std::fs::write(&path, "\x7fELF and nothing more").expect("file");
    let args = ["run", "--sysroot", root.to_str().expect("UTF-8"), "--", &program];
    let output = output(here.path(), &args);
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(126), "{error}");
    assert!(error.contains("ld-linux-aarch64.so.1: truncated"), "{error}");
}

/// Maps 64 MiB; its exit status is the error number, or 0.
const MAP_64_MIB: [u32; 11] = [
    0xd280_1bc8, // mov x8, #222 (mmap)
    0xd280_0000, // mov x0, #0
    0xd2a0_8001, // mov x1, #0x400_0000
    0xd280_0062, // mov x2, #3 (PROT_READ | PROT_WRITE)
    0xd280_0443, // mov x3, #0x22 (MAP_PRIVATE | MAP_ANONYMOUS)
    0x9280_0004, // mov x4, #-1
    0xd280_0005, // mov x5, #0
    0xd400_0001, // svc #0
    0xcb00_03e0, // neg x0, x0
    0xd280_0ba8, // mov x8, #93 (exit)
    0xd400_0001, // svc #0
];

#[test]
fn memory_beyond_the_limit_is_refused_to_the_program_and_a_limit_beyond_the_machine_to_the_user() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = place(folder.path(), "map.elf", &elf(&MAP_64_MIB));
    let run = |memory: &str| {
        failure(folder.path(), &["run", "--quiet", "--memory", memory, "--", program.to_str().expect("UTF-8")])
    };
    const ENOMEM: i32 = 12;
    assert_eq!(run("48MiB").0, ENOMEM);
    assert_eq!(run("1GiB"), (0, String::new()));
    let (status, message) = run("64GiB");
    assert_eq!(status, 125);
    assert!(message.contains("--memory 68719476736: a64fx has 34359738368 bytes; reduce --memory"), "{message}");
    assert!(run("lots").1.contains("write it as a number of bytes, or as 512MiB or 8GiB"));
}

/// Executes the given program; its exit status is the error number if it cannot.
const EXEC: &str = r#"
    #include <errno.h>
    #include <unistd.h>
    int main(int argc, char **argv) {
        execv(argv[1], argv + 1);
        return errno;
    }"#;

#[test]
fn in_a_sandbox_a_program_gets_no_interpreter_that_it_may_not_read() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let exec = compile(folder.path(), "exec", &["-static"], EXEC);
    let dynamic = compile(folder.path(), "dynamic", &[], "int main(void) { return 0; }");
    let allowed = format!("read={}", folder.path().display());
    let run = |options: &[&str]| {
        let command = [&["run", "--quiet"], options, &["--", &exec, &dynamic]].concat();
        output(folder.path(), &command).status.code()
    };
    const EACCES: i32 = 13;
    assert_eq!(run(&[]), Some(0));
    assert_eq!(run(&["--sandbox", "--allow", &allowed]), Some(EACCES));
}
