//! `fxscope run --spool` and `fxscope work`: intervals timed by other processes, whichever of them live.

use std::fs;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common;

use common::{FOREVER, SVC, elf, failure, fxscope, json, kernel, mov, output, place};

/// A program of two intervals.
const SORT: [&str; 3] = ["sort.elf", "n=60000", "passes=1"];

/// A process that ends with its test, since a run of a test that fails may never end.
struct Process(Option<Child>);

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Process {
    fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("not ended")
    }

    fn has_ended(&mut self) -> bool {
        self.child().try_wait().expect("waited for").is_some()
    }
}

fn start(folder: &Path, args: &[&str]) -> Process {
    let mut command = fxscope(folder, args);
    Process(Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts")))
}

/// Starts a run whose intervals `processes` time through the folder `shared`.
fn lead(folder: &Path, processes: usize, program: &[&str]) -> Process {
    let jobs = format!("--jobs={processes}");
    let options = ["run", "-q", &jobs, "--spool", "shared", "--lost-after", "2", "--json", "shared.json", "--"];
    start(folder, &[&options[..], program].concat())
}

fn help(folder: &Path) -> Process {
    start(folder, &["work", "shared"])
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits for the end of a process that should end by itself.
fn ended(mut process: Process) -> Output {
    until("it ends", || process.has_ended());
    process.0.take().expect("not ended").wait_with_output().expect("ended")
}

fn until(what: &str, is_so: impl FnMut() -> bool) {
    let mut is_so = is_so;
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(120), "not seen: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(signal: &str, process: &mut Process) {
    let sent =
        std::process::Command::new("sh").args(["-c", &format!("kill -{signal} {}", process.child().id())]).status();
    assert!(sent.expect("sh starts").success());
}

/// Whether the folder `shared` has a file whose name begins like this.
fn has(folder: &Path, prefix: &str) -> bool {
    let entries = fs::read_dir(folder.join("shared")).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
}

/// The counts of a run, without what they say of the host.
fn counts(folder: &Path, name: &str) -> Value {
    let mut counts = json(&fs::read(folder.join(name)).expect("written"));
    counts.as_object_mut().expect("an object").remove("host");
    counts
}

/// The counts of a program with `--jobs 1`.
fn alone(folder: &Path, program: &[&str]) -> Value {
    let run = output(folder, &[&["run", "-q", "--jobs", "1", "--json", "alone.json", "--"], program].concat());
    assert!(run.status.success(), "{}", error(&run));
    counts(folder, "alone.json")
}

#[test]
fn a_run_without_helpers_ends_by_itself() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("chase.elf");
    let leader = ended(lead(folder.path(), 8, &[&program]));
    assert!(leader.status.success(), "{}", error(&leader));
    assert!(alone(folder.path(), &[&program]) == counts(folder.path(), "shared.json"));
}

/// Writes a byte, then loops.
fn endless(folder: &Path) -> &'static str {
    place(folder, "forever", &elf(&[mov(0, 1), 0x1000_0001, mov(2, 1), mov(8, 64), SVC, FOREVER]));
    "./forever"
}

#[test]
fn a_signal_ends_the_run_and_a_killed_run_ends_its_helpers() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let folder = folder.path();
    let program = endless(folder);
    let mut leader = lead(folder, 2, &[program]);
    until("the run begins", || has(folder, "run"));
    let helper = help(folder);
    let (status, message) = failure(folder, &["run", "--jobs", "2", "--spool", "shared", "--", program]);
    assert!(status == 125 && message.contains("--spool: shared: a run uses this folder"), "{status}: {message}");
    fs::write(folder.join("shared/interval-000900"), "no interval").expect("written");
    let helped = ended(helper);
    assert_eq!(helped.status.code(), Some(125));
    assert!(error(&helped).contains("claimed-000900: is damaged: it is another kind of file"), "{}", error(&helped));
    let helper = help(folder);
    kill("TERM", &mut leader);
    let leader = ended(leader);
    assert_eq!(leader.status.code(), Some(143), "{}", error(&leader));
    assert_eq!(counts(folder, "shared.json")["finish"], "stopped");
    let helped = ended(helper);
    assert!(matches!(helped.status.code(), Some(0 | 125)), "{}", error(&helped));
    let leader = lead(folder, 2, &[program]);
    until("the run begins", || has(folder, "run"));
    let helper = start(folder, &["work", "shared", "--lost-after", "4"]);
    // The helper has seen it.
    std::thread::sleep(Duration::from_millis(300));
    drop(leader);
    let helped = ended(helper);
    assert_eq!(helped.status.code(), Some(125));
    assert!(error(&helped).contains("shows no sign of life any more"), "{}", error(&helped));
}

#[test]
fn a_wrong_folder_file_or_number_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let folder = folder.path();
    let program = kernel("chase.elf");
    fs::write(folder.join("text"), "text").expect("written");
    fs::create_dir(folder.join("empty")).expect("made");
    for (command, said) in [
        (
            &["run", "--jobs", "1", "--spool", "shared", "--", &program][..],
            "--spool: with --jobs 1, this process times",
        ),
        (&["run", "--jobs", "2", "--spool", "text", "--", &program], "text"),
        (&["run", "--jobs", "2", "--spool", "none/shared", "--", &program], "none/shared: No such file"),
        (&["work", "none", "--lost-after", "2"], "none: no run has begun to use this folder"),
        (
            &["work", "empty", "--lost-after", "2"],
            "empty: no run has begun to use this folder (fxscope run --jobs N --spool",
        ),
        (&["work", "text", "--counts", "counts"], "text: is damaged: it is another kind of file"),
        (&["work", "none", "--counts", "counts"], "none"),
    ] {
        let (status, message) = failure(folder, command);
        assert!(status == 125 && message.contains(said), "{command:?}: {status}: {message}");
    }
    let (status, message) = failure(folder, &["run", "--spool", "shared", "--", &program]);
    assert!(status == 2 && message.contains("--jobs"), "{status}: {message}");
}

/// Programs of several intervals: they take many seconds.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn helpers_that_come_and_are_killed_at_any_time_change_nothing() {
        for (name, arguments) in [("spmv.elf", ["n=40000", "reps=20"]), ("sort.elf", ["n=60000", "passes=2"])] {
            let folder = tempfile::tempdir().expect("temporary folder");
            let program = kernel(name);
            let program = [program.as_str(), arguments[0], arguments[1]];
            let mut leader = lead(folder.path(), 3, &program);
            until("the run begins", || has(folder.path(), "run"));
            let mut round = 0;
            while !leader.has_ended() {
                round += 1;
                let helper = help(folder.path());
                std::thread::sleep(Duration::from_millis(200 * (1 + round % 8)));
                drop(helper);
            }
            let leader = ended(leader);
            assert!(leader.status.success(), "{}", error(&leader));
            assert!(alone(folder.path(), &program) == counts(folder.path(), "shared.json"), "{name}");
        }
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn intervals_timed_by_other_processes_count_the_same_even_if_one_of_them_is_killed() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let program = kernel(SORT[0]);
        let program = [&program, SORT[1], SORT[2]];
        let leader = lead(folder.path(), 2, &program);
        until("the run begins", || has(folder.path(), "run"));
        let killed = help(folder.path());
        until("an interval is claimed", || has(folder.path(), "claimed-"));
        drop(killed);
        let helpers = [help(folder.path()), help(folder.path())];
        let leader = ended(leader);
        assert!(leader.status.success(), "{}", error(&leader));
        for helper in helpers.map(ended) {
            assert!(helper.status.success() && error(&helper).contains("intervals timed: "), "{}", error(&helper));
        }
        assert!(!folder.path().join("shared").exists(), "nothing is left");
        assert!(alone(folder.path(), &program) == counts(folder.path(), "shared.json"));
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_run_times_what_it_cannot_put_into_the_folder_and_ends_when_others_remove_what_it_has_put_there() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let folder = folder.path();
        let program = kernel(SORT[0]);
        let program = [&program, SORT[1], SORT[2]];
        let leader = lead(folder, 2, &program);
        until("the run begins", || has(folder, "run"));
        fs::remove_dir_all(folder.join("shared")).expect("removed");
        let leader = ended(leader);
        assert!(leader.status.success(), "{}", error(&leader));
        assert!(error(&leader).contains("this process times the interval itself"), "{}", error(&leader));
        assert!(alone(folder, &program) == counts(folder, "shared.json"));
        let leader = lead(folder, 2, &program);
        until("an interval waits", || fs::remove_file(folder.join("shared/interval-000000")).is_ok());
        let leader = ended(leader);
        assert_eq!(leader.status.code(), Some(125));
        assert!(error(&leader).contains("--spool: interval 0: its file has been removed from"), "{}", error(&leader));
    }
}
