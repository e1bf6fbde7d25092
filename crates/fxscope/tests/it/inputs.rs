//! Input files of commands: named pipes, devices, folders and endless files are refused, and nothing hangs.

use crate::common;

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{compile, fxscope, kernel, output};

/// Runs a command to its end; fails if it does not end.
fn ends(mut command: Command) -> Output {
    let begin = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    while child.try_wait().expect("waited for").is_none() {
        if begin.elapsed() > Duration::from_secs(120) {
            let _ = child.kill();
            panic!("{command:?} did not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().expect("ended")
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_command_that_reads_files_refuses_anything_but_regular_files() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let made = Command::new("mkfifo").arg(folder.path().join("fifo")).status();
    assert!(made.expect("mkfifo starts").success());
    fs::create_dir(folder.path().join("folder")).expect("made");
    let commands: [&[&str]; 12] = [
        &["report", "FILE"],
        &["compare", "FILE", "FILE"],
        &["annotate", "FILE"],
        &["import", "perf", "FILE", "-o", "out.fxr"],
        &["import", "likwid", "FILE", "-o", "out.fxr"],
        &["latency", "predict", "FILE"],
        &["latency", "check", "--plan", "FILE"],
        &["jitter", "show", "FILE"],
        &["jitter", "fit", "FILE", "-o", "out.toml"],
        &["jitter", "import", "tracer", "FILE", "-o", "out.fxn"],
        &["jitter", "simulate", "--model", "FILE"],
        &["run", "FILE"],
    ];
    for (file, kind) in [("fifo", "is a named pipe (FIFO)"), ("/dev/zero", "is a device"), ("folder", "is a folder")] {
        for command in commands {
            let args: Vec<&str> = command.iter().map(|&word| if word == "FILE" { file } else { word }).collect();
            let ended = ends(fxscope(folder.path(), &args));
            let said = error(&ended);
            assert!(!ended.status.success() && !said.contains("panicked"), "{args:?}: {ended:?}");
            assert!(said.contains(file), "{args:?}: {said}");
            // Folders have different messages where a folder may be given.
            assert!(said.contains(kind) || file == "folder", "{args:?}: {said}");
        }
    }
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 2, "nothing is written");
}

#[test]
fn an_endless_file_is_refused_by_its_size_and_standard_input_at_the_same_size() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let hole = File::create(folder.path().join("hole")).expect("made");
    hole.set_len(1 << 40).expect("a hole");
    for args in
        [&["import", "perf", "hole", "-o", "out.fxr"][..], &["jitter", "import", "fwq", "hole", "-o", "out.fxn"]]
    {
        let said = error(&ends(fxscope(folder.path(), args)));
        assert!(said.contains("hole") && said.contains("is larger than 4 GiB"), "{args:?}: {said}");
    }
    // Only the header of a file is read before it is known to be a program.
    let said = error(&ends(fxscope(folder.path(), &["run", "hole"])));
    assert!(said.contains("hole: not an ELF file"), "{said}");
    let said = error(&ends(fxscope(folder.path(), &["machine", "check", "hole"])));
    assert!(said.contains("it has more than"), "{said}");
    // Continues reading a command's standard input.
    let fwq = "1000\n1000\n1500\n1000\n";
    fs::write(folder.path().join("fwq"), fwq).expect("written");
    let mut command = fxscope(folder.path(), &["jitter", "import", "fwq", "/dev/stdin", "-o", "out.fxn"]);
    let mut cat = Command::new("cat").arg(folder.path().join("fwq")).stdout(Stdio::piped()).spawn().expect("cat");
    command.stdin(cat.stdout.take().expect("piped"));
    let ended = ends(command);
    assert!(ended.status.success(), "{ended:?}");
    cat.wait().expect("ended");
    let mut command = fxscope(folder.path(), &["machine", "check", "/dev/stdin"]);
    command.stdin(File::open("/dev/zero").expect("there"));
    let said = error(&ends(command));
    assert!(said.contains("it has more than"), "{said}");
}

fn script(folder: &Path, text: &str) {
    let path = folder.join("perf");
    fs::write(&path, text).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("allowed");
}

/// Checks that a measurement of noise with this text as perf ends, and reports whether detours are unnamed.
fn noise_is_measured_in_spite_of(perf: &str) {
    let folder = tempfile::tempdir().expect("temporary folder");
    script(folder.path(), perf);
    let args = ["jitter", "measure", "--duration", "100ms", "--perf", "./perf", "-o", "t.fxn"];
    let ended = ends(fxscope(folder.path(), &args));
    assert!(ended.status.success(), "{ended:?}");
    // Where the kernel's own tracers are available, perf is not used.
    let shown = String::from_utf8_lossy(&ended.stdout).replace('\n', " ");
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("killed: detours have no names") != words.contains("are named by"), "{words}");
}

/// Under a limit of the size of files of 8 KiB.
fn limited(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 16; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_fxscope")]).args(args);
    command.current_dir(folder).stdin(Stdio::null());
    ends(command)
}

#[test]
fn outputs_beyond_the_file_size_limit_are_reported_and_leave_nothing_half_written() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-l1.elf");
    let args = ["run", "-q", "-o", "out.fxr", "--json", "out.json", "--", &program, "passes=1"];
    let ended = limited(folder.path(), &args);
    assert_eq!(ended.status.code(), Some(125), "{ended:?}");
    for file in ["out.fxr", "out.json"] {
        assert!(error(&ended).contains(&format!("{file}: file size limit (ulimit -f) reached")), "{ended:?}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 0);
    // An existing record keeps its content.
    assert!(output(folder.path(), &args).status.success());
    let before = fs::read(folder.path().join("out.fxr")).expect("written");
    let ended = limited(folder.path(), &["run", "-q", "-o", "out.fxr", "--", &program, "passes=1"]);
    assert_eq!(ended.status.code(), Some(125), "{ended:?}");
    assert!(error(&ended).contains("out.fxr: file size limit (ulimit -f) reached"), "{ended:?}");
    assert_eq!(fs::read(folder.path().join("out.fxr")).expect("still there"), before);
}

/// Writes and truncates beyond any limit, with SIGXFSZ at its default or ignored.
const WRITES: &str = r#"
    #include <errno.h>
    #include <fcntl.h>
    #include <signal.h>
    #include <stdio.h>
    #include <unistd.h>
    int main(int count, char **arguments) {
        static char bytes[4096];
        if (count > 1) signal(SIGXFSZ, SIG_IGN);
        int file = open("big", O_CREAT | O_WRONLY | O_TRUNC, 0600);
        long written = 0, last;
        while ((last = write(file, bytes, sizeof bytes)) > 0) written += last;
        printf("%ld %d", written, errno == EFBIG);
        printf(" %d", ftruncate(file, 1 << 20) < 0 && errno == EFBIG);
        printf(" %d\n", truncate("big", 1 << 20) < 0 && errno == EFBIG);
        return 0;
    }"#;

#[test]
fn a_program_that_writes_beyond_the_limit_gets_the_error_and_the_signal_of_linux() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = compile(folder.path(), "writes", &["-O1", "-static"], WRITES);
    let run = |args: &[&str]| {
        limited(folder.path(), &[&["run", "-q", "--mode", "functional", "--", &program], args].concat())
    };
    let ended = run(&["ignore"]);
    assert_eq!((ended.status.code(), &ended.stdout[..]), (Some(0), &b"8192 1 1 1\n"[..]), "{ended:?}");
    // SIGXFSZ is 25.
    let ended = run(&[]);
    assert_eq!(ended.status.code(), Some(128 + 25), "{ended:?}");
    assert!(error(&ended).contains("SIGXFSZ"), "{ended:?}");
}

/// They wait until patience ends.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_perf_that_sleeps_for_ever_does_not_keep_a_measurement_of_noise_from_ending() {
        noise_is_measured_in_spite_of("#!/bin/sh\nexec sleep 1000000\n");
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_perf_that_floods_standard_error_does_not_keep_a_measurement_of_noise_from_ending() {
        noise_is_measured_in_spite_of("#!/bin/sh\nwhile :; do echo flood >&2; sleep 0.01; done\n");
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_perf_that_sleeps_for_ever_does_not_keep_collect_from_ending() {
        let folder = tempfile::tempdir().expect("temporary folder");
        script(folder.path(), "#!/bin/sh\nexec sleep 1000000\n");
        let args = ["collect", "--any-processor", "--perf", "./perf", "-o", "run.fxr", "--", "true"];
        let ended = ends(fxscope(folder.path(), &args));
        assert!(error(&ended).contains("./perf has started no program within 30 s and was stopped"), "{ended:?}");
        script(folder.path(), "#!/bin/sh\nsleep 1000000\n");
        let ended = ends(fxscope(folder.path(), &[&["collect", "--timeout", "1s"], &args[1..]].concat()));
        assert!(error(&ended).contains("did not end within 1 s (--timeout)"), "{ended:?}");
        assert!(!folder.path().join("run.fxr").exists());
    }
}
