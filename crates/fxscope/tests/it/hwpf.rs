//! Setting hardware prefetch: `--hwpf`, and `hwpfctl` in front of a program and inside one.

use crate::common;

use std::path::Path;

use common::{compile, json, kernel, output};

/// Prints the prefetch register; executes its arguments first, if there are any.
const SHOW: &str = r#"
    #include <stdio.h>
    #include <unistd.h>
    int main(int argc, char **argv) {
        if (argc > 1) {
            if (access("/usr/bin/hwpfctl", X_OK) != 0) return 3;
            execvp(argv[1], argv + 1);
            return 4;
        }
        unsigned long word;
        __asm__("mrs %0, S3_3_C11_C4_0" : "=r"(word));
        printf("%016lx\n", word);
        return 0;
    }"#;

/// Returns standard output, standard error and exit status of a functional run.
fn run(folder: &Path, args: &[&str]) -> (String, String, i32) {
    let run =
        output(folder, &[&["run", "--quiet", "--mode", "functional", "-e", "PATH=/none:/usr/bin"], args].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&run.stdout), text(&run.stderr), run.status.code().expect("exited"))
}

fn program(folder: &Path) -> String {
    compile(folder, "show", &["-O1", "-static"], SHOW)
}

#[test]
fn a_program_starts_with_the_prefetch_register_that_the_option_or_hwpfctl_before_it_sets() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = program(folder.path());
    let quiet = |out: &str| (format!("{out}\n"), String::new(), 0);
    assert_eq!(run(folder.path(), &["--", &program]), quiet("0000000000000000"));
    let options = "--distL1 4 --distL2 20 --weakL2";
    assert_eq!(run(folder.path(), &["--hwpf", options, "--", &program]), quiet("8040000004050000"));
    let before = ["--", "hwpfctl", "--distL1", "4", "--distL2=20", "--weakL2", &program];
    assert_eq!(run(folder.path(), &before), quiet("8040000004050000"));
}

#[test]
fn rounded_distances_are_reported_and_verbose_shows_the_register() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = program(folder.path());
    let (out, told, status) = run(folder.path(), &["--hwpf", "--distL2 5 --distL1 16 --verbose", "--", &program]);
    assert_eq!((out.as_str(), status), ("8000000000020000\n", 0));
    for line in [
        "--distL2 5: rounded up to 8",
        "--distL1 16: taken as the CPU's default; the range is 1 to 15",
        "before: IMP_PF_STREAM_DETECT_CTRL_EL0 = 0x0000000000000000",
        "now:    IMP_PF_STREAM_DETECT_CTRL_EL0 = 0x8000000000020000: L1 default distance, L2 8 lines",
    ] {
        assert!(told.contains(line), "{line} in {told}");
    }
}

#[test]
fn wrong_options_are_refused_before_the_program_starts() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = program(folder.path());
    for (args, message) in [
        (["--hwpf", "--distL3 4", &program], "there is no option --distL3"),
        (["--hwpf", "4", &program], "'4' is not an option"),
        (["--", "hwpfctl", "--weakL1"], "no program given after its options"),
    ] {
        let (out, told, status) = run(folder.path(), &args);
        assert!(out.is_empty() && status != 0 && told.contains(message), "{args:?}: {told}");
    }
}

#[test]
fn a_program_finds_hwpfctl_and_executes_another_one_through_it() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = program(folder.path());
    let inside = |args: &[&str]| run(folder.path(), &[&["--", &program], args].concat());
    let (out, told, status) = inside(&["hwpfctl", "--distL1", "9", "--verbose", &program]);
    let register = "IMP_PF_STREAM_DETECT_CTRL_EL0";
    let shown = format!(
        "hwpfctl: before: {register} = 0x0000000000000000: the CPU's defaults\n\
         hwpfctl: now:    {register} = 0x8000000009000000: L1 9 lines, L2 default distance\n\
         8000000009000000\n"
    );
    assert_eq!((out, told.as_str(), status), (shown, "", 0));
    // Of two settings, the last applies.
    let (out, _, _) = inside(&["hwpfctl", "--weakL1", "/usr/bin/hwpfctl", "--default", &program]);
    assert_eq!(out, "0000000000000000\n");
}

#[test]
fn a_reset_without_a_command_applies_to_its_caller_and_everything_that_starts_later() {
    const CALLER: &str = r#"
        #define _GNU_SOURCE
        #include <sched.h>
        #include <stdio.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static void reset_on(int cpu) {
            if (fork() == 0) {
                cpu_set_t cpus;
                CPU_ZERO(&cpus);
                CPU_SET(cpu, &cpus);
                sched_setaffinity(0, sizeof cpus, &cpus);
                execlp("hwpfctl", "hwpfctl", "--reset", NULL);
                _exit(1);
            }
            wait(NULL);
            unsigned long word;
            __asm__ volatile("mrs %0, S3_3_C11_C4_0" : "=r"(word));
            printf("%016lx\n", word);
        }
        int main(void) {
            int own = sched_getcpu();
            reset_on(own + 1);
            reset_on(own);
            return 0;
        }"#;
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = compile(folder.path(), "caller", &["-O1", "-static"], CALLER);
    let (out, told, status) = run(folder.path(), &["--hwpf", "--distL1 4", "--", &program]);
    assert_eq!((out.as_str(), told.as_str(), status), ("8000000004000000\n0000000000000000\n", "", 0));
}

#[test]
fn hwpfctl_inside_a_program_fails_as_a_command_does() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = program(folder.path());
    for (args, message, status) in [
        (["hwpfctl", "--weakL1", "no-such-command"], "hwpfctl: cannot execute no-such-command: No such file", 127),
        (["hwpfctl", "--weakL3", "x"], "hwpfctl: there is no option --weakL3", 1),
        (["hwpfctl", "--weakL1", "--weakL2"], "hwpfctl: no command given", 1),
    ] {
        let (out, told, ended) = run(folder.path(), &[&["--", &program], &args[..]].concat());
        assert!(out.is_empty() && told.starts_with(message) && ended == status, "{args:?}: {ended} {told}");
    }
}

#[test]
fn prefetches_that_are_switched_off_are_off_from_the_first_instruction_of_each_thread_on() {
    let folder = tempfile::tempdir().expect("temporary folder");
    for (program, args) in [
        ("triad-mem.elf", &["n=65536", "passes=1"][..]),
        ("triad-threads.elf", &["threads=3", "n=65472", "passes=1", "form=plain"]),
    ] {
        let kernel = kernel(program);
        for off in ["--disableL1", "--disableL2", "--disableL1 --disableL2"] {
            let options = ["run", "--quiet", "--json", "run.json", "--hwpf", off, "--", &kernel];
            let ran = output(folder.path(), &[&options[..], args].concat());
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
            let run = json(&std::fs::read(folder.path().join("run.json")).expect("written"));
            for thread in run["regions"][0]["threads"].as_array().expect("threads") {
                for (level, event) in [("L1", "L1HWPF_STREAM_PF"), ("L2", "L2HWPF_STREAM_PF")] {
                    let asked = thread["events"][event].as_u64().expect(event);
                    let is_off = off.contains(&format!("disable{level}"));
                    assert_eq!(asked == 0, is_off, "{program} {off}: {event} {asked} in thread {}", thread["thread"]);
                }
            }
        }
    }
}
