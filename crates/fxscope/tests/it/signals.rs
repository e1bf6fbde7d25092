//! Signals to fxscope: a run that they end keeps its results, and leftovers of killed runs are removed by the next one.

use crate::common;

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{FOREVER, SVC, compile, elf, fxscope, json, mov, output, place};

/// Reports that it runs, then loops.
const SAYS_AND_LOOPS: [u32; 6] = [mov(0, 1), 0x1000_0001, mov(2, 1), mov(8, 64), SVC, FOREVER]; // adr x1, .

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("temporary folder")
}

fn start(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts")
}

/// Returns the command with signals as a terminal leaves them: what starts the tests may ignore some, as `nohup` does.
fn with_default_signals(command: &Command) -> Command {
    let mut wrapped = Command::new("env");
    wrapped.arg("--default-signal=HUP,INT,TERM").arg(command.get_program()).args(command.get_args());
    wrapped.envs(command.get_envs().filter_map(|(name, value)| value.map(|value| (name, value))));
    command.get_current_dir().into_iter().for_each(|folder| _ = wrapped.current_dir(folder));
    wrapped
}

/// Waits until the program has written a byte.
fn runs(child: &mut Child) {
    child.stdout.as_mut().expect("piped").read_exact(&mut [0]).expect("it says so");
}

fn kill(signal: &str, process: u32) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {process}")]).status();
    assert!(sent.expect("sh starts").success());
}

/// Returns its exit status; fails if it does not end.
fn ended(mut child: Child) -> Output {
    let begin = Instant::now();
    while child.try_wait().expect("waited for").is_none() {
        if begin.elapsed() > Duration::from_secs(120) {
            let _ = child.kill();
            panic!("it did not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().expect("ended")
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_signals_of_terminals_and_batch_systems_end_a_run_whose_results_are_written() {
    for (signal, status, jobs) in [("INT", 130, ""), ("TERM", 143, ""), ("HUP", 129, ""), ("TERM", 143, "--jobs=2")] {
        let folder = folder();
        place(folder.path(), "forever", &elf(&SAYS_AND_LOOPS));
        let args = ["run", "--json", "out.json", "-o", "out.fxr", jobs, "--", "./forever"];
        let args: Vec<&str> = args.into_iter().filter(|word| !word.is_empty()).collect();
        let mut child = start(with_default_signals(&fxscope(folder.path(), &args)));
        runs(&mut child);
        kill(signal, child.id());
        let output = ended(child);
        assert_eq!(output.status.code(), Some(status), "{signal}: {output:?}");
        assert!(error(&output).contains(&format!("SIG{signal}")), "{signal}: {output:?}");
        let json = json(&fs::read(folder.path().join("out.json")).expect("written"));
        assert_eq!(json["finish"], "stopped");
        let report = common::output(folder.path(), &["report", "out.fxr"]);
        assert!(report.status.success(), "{signal}: {report:?}");
    }
}

#[test]
fn a_program_that_waits_for_input_or_sleeps_by_the_hosts_clock_ends_with_its_run() {
    let sleeps = [mov(0, 1), 0x1000_0001, mov(2, 1), mov(8, 64), SVC]
        .into_iter()
        // sub sp, sp, #16; str xzr, [sp, #8]; mov x1, #4096; str x1, [sp]; mov x0, sp; mov x1, #0; nanosleep
        .chain([0xd100_43ff, 0xf900_07ff, mov(1, 4096), 0xf900_03e1, 0x9100_03e0, mov(1, 0), mov(8, 101), SVC]);
    let reads = [mov(0, 1), 0x1000_0001, mov(2, 1), mov(8, 64), SVC]
        .into_iter()
        // sub sp, sp, #64; read(0, sp, 64)
        .chain([0xd101_03ff, mov(0, 0), 0x9100_03e1, mov(2, 64), mov(8, 63), SVC]);
    for code in [sleeps.collect::<Vec<_>>(), reads.collect()] {
        let folder = folder();
        place(folder.path(), "waits", &elf(&code));
        let mut command = fxscope(folder.path(), &["run", "--clock", "host", "-o", "out.fxr", "--", "./waits"]);
        command.stdin(Stdio::piped());
        let mut child = start(command);
        let input = child.stdin.take();
        runs(&mut child);
        std::thread::sleep(Duration::from_millis(300));
        kill("TERM", child.id());
        let output = ended(child);
        drop(input);
        assert_eq!(output.status.code(), Some(143), "{output:?}");
        assert!(folder.path().join("out.fxr").exists());
    }
}

#[test]
fn a_hangup_that_nohup_has_ignored_stays_ignored() {
    let folder = folder();
    place(folder.path(), "forever", &elf(&SAYS_AND_LOOPS));
    let mut command = Command::new("sh");
    let script = "trap '' HUP; exec \"$0\" run -o out.fxr -- ./forever";
    command.args(["-c", script, env!("CARGO_BIN_EXE_fxscope")]).current_dir(folder.path()).stdin(Stdio::null());
    let mut child = start(command);
    runs(&mut child);
    kill("HUP", child.id());
    std::thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().expect("waited for").is_none(), "it continues");
    kill("TERM", child.id());
    assert_eq!(ended(child).status.code(), Some(143));
}

/// A fake perf that does not end when asked to, but when fxscope has ended.
const STUBBORN: &str = "#!/bin/sh\ntrap '' TERM\necho\nwhile kill -0 $PPID; do sleep 1; done\n";

fn perf(folder: &Path, script: &str) {
    let path = folder.join("perf");
    fs::write(&path, script).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("allowed");
}

#[test]
fn a_measurement_under_perf_ends_with_a_signal_and_at_once_with_a_second_one() {
    let folder = folder();
    perf(folder.path(), STUBBORN);
    let args = ["collect", "--any-processor", "--perf", "./perf", "-o", "run.fxr", "--", "true"];
    let mut child = start(fxscope(folder.path(), &args));
    runs(&mut child);
    kill("TERM", child.id());
    let output = ended(child);
    assert_eq!(output.status.code(), Some(143), "{output:?}");
    assert!(error(&output).contains("SIGTERM ended the measurement; nothing is recorded"), "{output:?}");

    let mut child = start(fxscope(folder.path(), &args));
    runs(&mut child);
    kill("TERM", child.id());
    std::thread::sleep(Duration::from_secs(1));
    let begin = Instant::now();
    kill("INT", child.id());
    let output = ended(child);
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
}

/// Makes an object in `/dev/shm`, reports it, and waits for ever.
const SHARES: &str = r#"
    #include <fcntl.h>
    #include <sys/stat.h>
    #include <unistd.h>
    int main(int count, char **arguments) {
        if (open("/dev/shm/object", O_CREAT | O_RDWR | O_EXCL, 0600) < 0) return 1;
        write(1, "x", 1);
        while (count > 1) {}
        return 0;
    }"#;

#[test]
fn leftovers_of_a_killed_run_in_shared_memory_and_beside_its_record_are_removed_by_the_next_run() {
    let folder = folder();
    let program = compile(folder.path(), "shares", &["-O1", "-static"], SHARES);
    let mut child = start(fxscope(folder.path(), &["run", "-o", "out.fxr", "--", &program, "wait"]));
    runs(&mut child);
    let left: Vec<_> = fs::read_dir("/dev/shm").expect("readable").flatten().map(|entry| entry.path()).collect();
    let held = left.iter().find(|path| path.join("object").exists() && holds(&child, path)).cloned();
    let held = held.expect("the run's folder");
    // Those of a running program are left alone by others.
    assert!(output(folder.path(), &["run", "-q", "--", &program]).status.success());
    assert!(held.join("object").exists());
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(held.exists(), "nobody could remove it");
    // As left by a run that is killed while it writes.
    fs::create_dir(folder.path().join(".fxscope-dead.tmp")).expect("made");
    fs::write(folder.path().join(".fxscope-dead.tmp/.tmpdraft"), "x").expect("written");
    assert!(output(folder.path(), &["run", "-q", "-o", "out.fxr", "--", &program]).status.success());
    assert!(!held.exists());
    let names = fs::read_dir(folder.path()).expect("readable").flatten().map(|entry| entry.file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with(".fxscope-")));
}

/// Whether a process has the folder open.
fn holds(child: &Child, folder: &Path) -> bool {
    let open = fs::read_dir(format!("/proc/{}/fd", child.id())).expect("readable").flatten();
    open.into_iter().any(|fd| fs::read_link(fd.path()).is_ok_and(|target| target == folder))
}
