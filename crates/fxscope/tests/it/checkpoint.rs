//! `--checkpoint` and `fxscope resume`: a run that is continued from a snapshot ends as one that was not interrupted.

use crate::common;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use common::{compile, failure, fxscope, json, kernel};
use serde_json::Value;

/// A folder for a test, with the program.
struct Place {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("temporary folder");
        let source = include_str!("../programs/saved.c");
        let program = compile(folder.path(), "saved", &["-O2", "-mcpu=a64fx", "-static", "-pthread"], source);
        Place { folder, program: program.into() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns a new folder below this one, with input for the program.
    fn below(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir(&path).expect("made");
        fs::write(path.join("input"), "one two three four five six seven eight nine ten ").expect("written");
        path
    }

    /// Starts a command of fxscope in such a folder: these options, then the program with its arguments; input from `input`, output
    /// added to `output`.
    fn start(&self, folder: &Path, options: &str, arguments: &str) -> Child {
        let program = self.program.to_str().expect("UTF-8");
        let words: Vec<&str> =
            options.split_whitespace().chain(["--", program]).chain(arguments.split_whitespace()).collect();
        start(folder, &words)
    }

    fn run(&self, folder: &Path, options: &str, arguments: &str) -> Output {
        ended(self.start(folder, options, arguments))
    }
}

fn start(folder: &Path, words: &[&str]) -> Child {
    let mut command = fxscope(folder, words);
    if let Ok(input) = File::open(folder.join("input")) {
        command.stdin(input);
    }
    let appended = File::options().create(true).append(true).open(folder.join("output")).expect("opened");
    command.stdout(appended).stderr(Stdio::piped()).spawn().expect("starts")
}

fn resume(folder: &Path, options: &str) -> Output {
    let words: Vec<&str> = ["resume", "kept"].into_iter().chain(options.split_whitespace()).collect();
    ended(start(folder, &words))
}

/// Waits for the end of a process.
fn ended(mut child: Child) -> Output {
    let begin = Instant::now();
    while child.try_wait().expect("waited for").is_none() {
        if begin.elapsed() > Duration::from_secs(240) {
            let _ = child.kill();
            panic!("it did not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("ended")
}

fn error(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!error.contains("panicked"), "{error}");
    error
}

fn kill(signal: &str, process: u32) {
    let sent = std::process::Command::new("sh").args(["-c", &format!("kill -{signal} {process}")]).status();
    assert!(sent.expect("sh starts").success());
}

/// Returns what a run has counted: its JSON but for the host.
fn counted(folder: &Path) -> Value {
    let mut value = json(&fs::read(folder.join("run.json")).expect("written"));
    value.as_object_mut().expect("an object").remove("host").expect("about the host");
    value
}

fn text(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the numbers of the snapshots in `kept`.
fn snapshots(folder: &Path) -> Vec<u64> {
    let entries = fs::read_dir(folder.join("kept")).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut numbers: Vec<u64> = names.filter_map(|name| name.strip_suffix(".snapshot")?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Waits until a run has saved snapshot `number`.
fn saves(child: &mut Child, folder: &Path, number: u64) {
    let begin = Instant::now();
    while snapshots(folder).last() < Some(&number) {
        assert!(begin.elapsed() < Duration::from_secs(120), "no snapshot");
        assert!(child.try_wait().expect("waited for").is_none(), "it has ended too early");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn sigusr1_saves_a_snapshot_and_the_run_continues() {
    let place = Place::new();
    let folder = place.below("asked");
    let mut child = place.start(&folder, "run -v --checkpoint kept --every 10h", "threads 2 80");
    let begin = Instant::now();
    while fs::metadata(folder.join("output")).map_or(0, |file| file.len()) == 0 {
        assert!(begin.elapsed() < Duration::from_secs(60), "it does not start");
        std::thread::sleep(Duration::from_millis(1));
    }
    kill("USR1", child.id());
    saves(&mut child, &folder, 1);
    let output = ended(child);
    assert!(output.status.success() && error(&output).contains("snapshot 1 at "), "{}", error(&output));
    let listed = common::output(&folder, &["resume", "kept", "--list"]);
    let listed = String::from_utf8(listed.stdout).expect("text");
    assert!(listed.contains("threads 2 80 on a64fx, timing; the run has ended"), "{listed}");
    assert!(listed.lines().count() == 3 && listed.contains("Z "), "{listed}");
}

#[test]
fn what_cannot_be_saved_is_named_and_the_run_continues() {
    let place = Place::new();
    let folder = place.below("lock");
    let output = place.run(&folder, "run -q --checkpoint kept --every 50k", "lock 2 5");
    let told = error(&output);
    assert!(
        output.status.success()
            && told.contains("no snapshot was taken: a snapshot cannot hold a record lock on a file"),
        "{told}"
    );
    assert_eq!(told.lines().count(), 1, "the same reason is reported once: {told}");
    assert!(snapshots(&folder).is_empty() && fs::read_dir(folder.join("kept")).expect("there").count() == 2);
}

#[test]
fn a_disk_that_is_full_leaves_the_last_whole_snapshot_and_the_run_continues() {
    let place = Place::new();
    let folder = place.below("full");
    let program = place.program.to_str().expect("UTF-8");
    // Its first snapshots fit below the limit of the size of files; later ones do not.
    let command = format!(
        "ulimit -f 1800; exec {} run -q --mode functional --checkpoint kept --every 2M -- {program} grow 1 58 >> output",
        env!("CARGO_BIN_EXE_fxscope")
    );
    let output = std::process::Command::new("sh").args(["-c", &command]).current_dir(&folder).output().expect("starts");
    let told = error(&output);
    assert!(output.status.success() && told.contains("no snapshot was taken: "), "{told}");
    assert!(told.contains("File too large"), "{told}");
    let names = fs::read_dir(folder.join("kept")).expect("there").flatten();
    assert!(names.map(|entry| entry.file_name()).all(|name| !name.to_string_lossy().ends_with(".part")));
    let numbers = snapshots(&folder);
    assert!(!numbers.is_empty(), "{told}");
    let again = resume(&folder, &format!("-q --at {}", numbers[0]));
    assert!(again.status.success(), "{}", error(&again));
}

#[test]
fn the_program_cannot_change_its_snapshots() {
    let place = Place::new();
    let folder = place.below("protected");
    fs::create_dir(folder.join("deep")).expect("made");
    let options = "run -q --mode functional --checkpoint deep/kept --every 50k";
    let output = place.run(&folder, options, "spoil 1 2 deep/kept/run deep deep/kept/more");
    assert!(output.status.success(), "{}", error(&output));
    assert!(text(&folder, "output").starts_with("spoil 1 1 1 1\n"), "{}", text(&folder, "output"));
}

#[test]
fn a_damaged_snapshot_is_left_out_and_an_older_one_is_used() {
    let place = Place::new();
    let folder = place.below("damaged");
    let options = "run -q --json run.json --checkpoint kept --every 50k --keep 100";
    assert!(place.run(&folder, options, "threads 2 5").status.success());
    let (record, numbers) = (counted(&folder), snapshots(&folder));
    let newest = numbers.last().expect("several");
    fs::remove_file(folder.join("kept/ended")).expect("it has ended");
    // One manifest has changed, and the pages of another snapshot.
    let manifest = folder.join(format!("kept/{newest:06}.snapshot"));
    let mut bytes = fs::read(&manifest).expect("readable");
    bytes[100] ^= 4;
    fs::write(&manifest, bytes).expect("written");
    let pages = folder.join(format!("kept/{:06}.pages", newest - 1));
    let mut bytes = fs::read(&pages).expect("readable");
    bytes.iter_mut().for_each(|byte| *byte ^= 1);
    fs::write(&pages, bytes).expect("written");
    let output = resume(&folder, "-q");
    let told = error(&output);
    assert!(output.status.success() && told.lines().count() == 2, "{told}");
    assert!(
        told.contains(&format!("snapshot {newest} is left out: ")) && told.contains("its pages have changed"),
        "{told}"
    );
    assert_eq!(counted(&folder), record);
}

#[test]
fn what_differs_from_the_run_is_named_and_nothing_is_changed() {
    let place = Place::new();
    let folder = place.below("other");
    fs::copy(&place.program, folder.join("own")).expect("copied");
    let words = "run -q --checkpoint kept --every 50k -- ./own threads 1 5".split_whitespace().collect::<Vec<_>>();
    assert!(ended(start(&folder, &words)).status.success());
    let before = text(&folder, "output");
    let refused = |folder: &Path| {
        let output = resume(folder, "--at 1");
        assert_eq!(output.status.code(), Some(125), "{}", error(&output));
        error(&output)
    };
    fs::write(folder.join("input"), "something else").expect("written");
    assert!(refused(&folder).contains("input, which has changed since the snapshot"));
    fs::remove_file(folder.join("input")).expect("removed");
    assert!(refused(&folder).contains("input, which cannot be opened"));

    assert!(folder.join("kept/ended").exists());

    let folder = place.below("program");
    fs::copy(&place.program, folder.join("own")).expect("copied");
    assert!(ended(start(&folder, &words)).status.success());
    fs::copy(kernel("sort.elf"), folder.join("own")).expect("copied");
    assert!(refused(&folder).contains("own: not the program that the snapshot is of"));
    assert!(failure(&folder, &["resume", "kept", "--at", "99"]).1.contains("has no snapshot 99"));
    let (_, again) = failure(&folder, &["run", "--checkpoint", "kept", "--", "./own"]);
    assert!(again.contains("has the snapshots of another run"), "{again}");
    let (_, none) = failure(&folder, &["resume", "."]);
    assert!(none.contains("no folder of snapshots"), "{none}");
    let (_, foreign) = failure(&folder, &["run", "--checkpoint", ".", "--", "./own"]);
    assert!(foreign.contains("has other files"), "{foreign}");
    for options in ["--konata trace --checkpoint new", "--clock host --checkpoint new"] {
        let words: Vec<&str> = ["run"].into_iter().chain(options.split_whitespace()).chain(["--", "./own"]).collect();
        assert!(failure(&folder, &words).1.contains("--checkpoint: "), "{options}");
        assert!(!folder.join("new").exists());
    }
    assert!(text(&place.path().join("other"), "output") == before);
}

mod slow {
    use super::*;

    /// Programs with their options: of one thread and of many, timed, sampled and functional, with sectors, pages and locks.
    const PROGRAMS: [(&str, &str); 10] = [
        ("", "sort.elf n=5000 passes=1"),
        ("", "triad-threads.elf n=30720 passes=4 threads=12"),
        ("--host-threads 2", "triad-threads.elf n=49152 passes=4 threads=36"),
        ("", "lock.elf threads=4"),
        ("--sector L2=10", "triad-threads.elf n=30720 passes=4 threads=4"),
        ("--sample begin=20000,window=500,warm=100,period=5000", "sort.elf n=10000 passes=1"),
        ("--sample begin=20000,window=500,warm=100,period=5000", "triad-threads.elf n=30720 passes=8 threads=4"),
        ("--interval 20us", "barrier.elf threads=4 rounds=20"),
        ("--mode functional", "nbody.elf n=256 passes=2"),
        ("--pages all=64KiB", "gather.elf n=4096 passes=2"),
    ];

    #[test]
    #[ignore = "make slow-test runs it"]
    fn resuming_equals_continuing_at_a_hundred_random_points_of_ten_programs() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut points = 0;
        for (number, (options, command)) in PROGRAMS.into_iter().enumerate() {
            let (program, arguments) = command.split_once(' ').unwrap_or((command, ""));
            let program = kernel(program);
            let here = folder.path().join(number.to_string());
            fs::create_dir(&here).expect("made");
            let run = |more: &str| {
                let words: Vec<&str> = ["run", "-q", "--json", "run.json"]
                    .into_iter()
                    .chain(options.split_whitespace())
                    .chain(more.split_whitespace())
                    .chain(["--", &program])
                    .chain(arguments.split_whitespace())
                    .collect();
                let output = ended(start(&here, &words));
                assert!(output.status.success(), "{options} {command}: {}", error(&output));
            };
            run("");
            let whole = counted(&here);
            let instructions = whole["simulated"]["instructions"].as_u64().expect("a number");
            fs::remove_file(here.join("output")).expect("written");
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let every = instructions / 11 - (random >> 33) % (instructions / 400);
            run(&format!("--checkpoint kept --every {every} --keep 100"));
            assert_eq!(counted(&here), whole, "{options} {command}");
            let numbers = snapshots(&here);
            for &number in &numbers {
                let output = resume(&here, &format!("-q --at {number}"));
                assert!(output.status.success(), "{options} {command} {number}: {}", error(&output));
                assert_eq!(counted(&here), whole, "{options} {command} {number}");
                points += 1;
            }
        }
        assert!(points >= 100, "{points}");
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn sigterm_saves_a_run_of_twelve_threads_or_of_processes_and_says_how_to_continue_it() {
        let place = Place::new();
        for (name, options, arguments) in [
            ("threads", "", "threads 12 20"),
            ("processes", "", "processes 3 80"),
            ("functional", "--mode functional", "processes 3 1500"),
        ] {
            let whole = place.below(&format!("whole-{name}"));
            assert!(place.run(&whole, &format!("run -q {options} --json run.json"), arguments).status.success());
            let folder = place.below(name);
            let options = format!("run -q {options} --json run.json --checkpoint kept --every 200k");
            let mut child = place.start(&folder, &options, arguments);
            saves(&mut child, &folder, 1);
            kill("TERM", child.id());
            let first = ended(child);
            assert_eq!(first.status.code(), Some(143), "{}", error(&first));
            let told = error(&first);
            let path = folder.join("output");
            let how = format!("continue it with: fxscope resume kept >> {}", path.display());
            assert!(told.contains("SIGTERM: the run is suspended in snapshot") && told.contains(&how), "{told}");
            assert!(!folder.join("run.json").exists(), "it is not over");
            let second = resume(&folder, "-q");
            assert!(second.status.success(), "{}", error(&second));
            assert_eq!(counted(&folder), counted(&whole), "{name}");
            for file in ["output", if name == "threads" { "log" } else { "sums" }] {
                let read = |folder: &Path| fs::read(folder.join(file)).unwrap_or_default();
                assert_eq!(read(&folder), read(&whole), "{name} {file}");
            }
            let (status, again) = failure(&folder, &["resume", "kept"]);
            assert!(status == 125 && again.contains("the run has ended; to go back to a snapshot"), "{again}");
        }
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_run_that_is_continued_from_any_snapshot_has_the_same_record_output_and_files() {
        let place = Place::new();
        let modes = [
            "",
            "--mode functional",
            "--mode functional --engine translator",
            "--sample begin=20000,window=500,warm=100,period=5000",
        ];
        for (i, mode) in modes.into_iter().enumerate() {
            let whole = place.below(&format!("whole{i}"));
            let arguments = "threads 2 5";
            assert!(place.run(&whole, &format!("run -q {mode} --json run.json"), arguments).status.success());
            let folder = place.below(&format!("saved{i}"));
            let options = format!("run -q {mode} --json run.json -o run.fxr --checkpoint kept --every 50k --keep 100");
            assert!(place.run(&folder, &options, arguments).status.success());
            assert_eq!(counted(&folder), counted(&whole), "{mode}: taking snapshots changes nothing");
            let (record, mut numbers) = (counted(&folder), snapshots(&folder));
            assert!(numbers.len() >= 3, "{numbers:?}");
            // All points of the first mode, and the ends of the others.
            if i > 0 {
                numbers.drain(1..numbers.len() - 1);
            }
            for number in numbers {
                fs::remove_file(folder.join("run.json")).expect("written");
                let output = resume(&folder, &format!("-q --at {number}"));
                assert!(output.status.success(), "{mode} {number}: {}", error(&output));
                assert_eq!(counted(&folder), record, "{mode} {number}");
                assert_eq!(
                    text(&folder, "output"),
                    text(&whole, "output"),
                    "{mode} {number}: what came later is cut off"
                );
            }
        }
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_run_that_is_killed_continues_from_its_last_snapshot() {
        let place = Place::new();
        let whole = place.below("whole");
        let arguments = "processes 3 100";
        assert!(place.run(&whole, "run -q --json run.json", arguments).status.success());
        let folder = place.below("killed");
        let options = "run -q --json run.json --checkpoint snapshots --every 100k";
        let mut child = place.start(&folder, options, arguments);
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..4 {
            let begin = Instant::now();
            let before = fs::metadata(folder.join("sums")).map_or(0, |file| file.len());
            let grown = || fs::metadata(folder.join("sums")).map_or(0, |file| file.len()) > before + 200;
            while !grown()
                && begin.elapsed() < Duration::from_secs(60)
                && child.try_wait().expect("waited for").is_none()
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            std::thread::sleep(Duration::from_micros((random >> 40) % 30_000));
            let _ = child.kill();
            ended(child);
            child = start(&folder, &["resume", "snapshots", "-q"]);
        }
        let last = ended(child);
        assert!(last.status.success() || error(&last).contains("has ended"), "{}", error(&last));
        assert_eq!(counted(&folder), counted(&whole));
        assert_eq!(text(&folder, "sums"), text(&whole, "sums"), "the file that it appends to");
        assert_eq!(text(&folder, "output"), text(&whole, "output"));
    }
}
