//! Snapshots: a run that is restored in another process of the host continues as the original run would have.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use fxscope_aarch64::Interpreter;
use fxscope_sim::snapshot::SnapshotError;
use fxscope_sim::{Control, Finish, Mode, Outcome, Simulation, SpinLoops};
use sha2::{Digest as _, Sha256};

use crate::common::{Run, build, kernel, streams, text};
use crate::parallel::run_of_triad;

/// The folder in which a test that runs as another process finds the snapshots and stores its results.
const FOLDER: &str = "FXSCOPE_TEST_SNAPSHOTS";

/// The plan of sampled runs, which are short.
const PLAN: &str = "begin=20000,window=500,warm=100,period=5000";

/// Points in a run at which it is saved and restored.
const POINTS: u64 = 10;

/// Runs of one thread, of threads that meet at barriers, of processes with a pipe, of threads that spin, with pages and
/// sectors of other kinds than the default ones and zero fill, sampled ones, and functional ones, of which one has functions of MPI.
fn runs() -> Vec<Run> {
    let snapshot = build("snapshot.c", &["-pthread"]);
    let zfill = Run::new(kernel("triad-threads.elf"), "n=3072 passes=2 form=zfill-swpf threads=3");
    let pages = "XOS_MMM_L_HPAGE_TYPE=none XOS_MMM_L_PAGING_POLICY=demand:demand:demand";
    vec![
        Run::new(kernel("sort.elf"), "n=2000 passes=1"),
        Run::new(kernel("triad-threads.elf"), "n=3072 passes=4 threads=4"),
        Run::new(snapshot.clone(), "/etc/hostname"),
        Run::new(kernel("lock.elf"), "threads=3"),
        Run::new(kernel("sector.elf"), ""),
        Run { environment: pages, ..zfill },
        Run { sample: Some(PLAN), ..Run::new(kernel("sort.elf"), "n=2000 passes=1") },
        Run { sample: Some(PLAN), ..Run::new(kernel("triad-threads.elf"), "n=3072 passes=20 threads=4") },
        Run { mode: Mode::Functional, ..Run::new(snapshot, "/etc/hostname") },
        Run { mode: Mode::Functional, ..Run::new(build("mpi_calls.c", &["-pthread"]), "") },
    ]
    .into_iter()
    .map(|run| Run { max_instructions: Some(600_000), ..run })
    .collect()
}

/// Returns everything that a run gives, as text.
fn given(run: &Simulation, outcome: &Outcome) -> String {
    format!(
        "{:?} after {} instructions, {} ns\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n",
        outcome.finish,
        run.guest().instructions(),
        outcome.now_ns,
        outcome.regions,
        outcome.mpi,
        outcome.intervals,
        outcome.unpaired,
        outcome.hot,
        outcome.files,
        outcome.pages,
        outcome.sample,
    )
}

fn finish(mut run: Simulation) -> String {
    let finish = run.advance(&mut |_| Control::Continue);
    let outcome = run.conclude(finish);
    given(&run, &outcome)
}

/// Returns the points at which a run of `instructions` instructions is saved: its beginning and random ones.
fn points(instructions: u64, seed: u64) -> Vec<u64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut points: Vec<u64> = (1..POINTS).map(|_| random() % instructions).chain([0]).collect();
    points.sort_unstable();
    points
}

fn at(folder: &Path, run: usize, point: usize, what: &str) -> std::path::PathBuf {
    folder.join(format!("{run}-{point}-{what}"))
}

fn append(path: &Path) -> File {
    File::options().create(true).append(true).read(true).open(path).expect("a file of the test")
}

#[test]
fn a_run_continues_from_any_snapshot_in_another_process_to_the_same_record_and_output() {
    if let Ok(folder) = std::env::var(FOLDER) {
        return continue_runs(Path::new(&folder));
    }
    let folder = tempfile::tempdir().expect("temporary directory");
    let mut expected = Vec::new();
    for (number, run) in runs().iter().enumerate() {
        let output = tempfile::tempfile().expect("temporary file");
        let mut whole: Simulation = run.simulation(&output);
        let finish = whole.advance(&mut |_| Control::Continue);
        let outcome = whole.conclude(finish);
        let (whole, instructions) = (given(&whole, &outcome), whole.guest().instructions());
        expected.push((whole, text(output)));

        // One run is paused at each point, where what it has written so far is kept, too.
        let output = tempfile::tempfile().expect("temporary file");
        let mut paused: Simulation = run.simulation(&output);
        for (point, instructions) in points(instructions, number as u64 + 1).into_iter().enumerate() {
            let finish = paused.advance_to(instructions, &mut |_| Control::Continue);
            assert!(finish.is_none(), "it ends behind the point");
            let bytes = paused.save().unwrap_or_else(|error| panic!("{}: {error}", run.program.display()));
            std::fs::write(at(folder.path(), number, point, "snapshot"), bytes).expect("write");
            std::fs::write(at(folder.path(), number, point, "output"), text(output.try_clone().expect("duplicate")))
                .expect("write");
        }
        let finish = paused.advance(&mut |_| Control::Continue);
        let outcome = paused.conclude(finish);
        assert_eq!(given(&paused, &outcome), expected[number].0, "paused, not restored: {}", run.program.display());
    }
    let name = "snapshot::a_run_continues_from_any_snapshot_in_another_process_to_the_same_record_and_output";
    let mut other = Command::new(std::env::current_exe().expect("this program"));
    let result = other.args([name, "--exact"]).env(FOLDER, folder.path()).output().expect("start");
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stdout));
    for (number, (run, (record, output))) in runs().iter().zip(&expected).enumerate() {
        for point in 0..POINTS as usize {
            let read = |what| std::fs::read_to_string(at(folder.path(), number, point, what)).expect("written");
            let named = format!("{} {}, point {point}", run.program.display(), run.arguments);
            for (restored, whole) in read("record").lines().zip(record.lines()) {
                assert_eq!(restored, whole, "{named}");
            }
            assert_eq!(read("output"), *output, "{named}");
        }
    }
}

/// The other process: restores each run and leaves what comes of it.
fn continue_runs(folder: &Path) {
    for (number, run) in runs().iter().enumerate() {
        for point in 0..POINTS as usize {
            let bytes = std::fs::read(at(folder, number, point, "snapshot")).expect("a snapshot");
            let output = append(&at(folder, number, point, "output"));
            let restored = Simulation::<Interpreter>::restore(&bytes, &streams(&output), run.options());
            let restored = restored.unwrap_or_else(|error| panic!("{}: {error}", run.program.display()));
            std::fs::write(at(folder, number, point, "record"), finish(restored)).expect("write");
        }
    }
}

#[test]
fn a_run_on_several_host_threads_continues_from_its_snapshot_to_the_same_counts() {
    const ARGUMENTS: &str = "n=49152 passes=4 threads=36";
    let begun = || {
        let (mut run, options) = run_of_triad(ARGUMENTS, 2);
        assert!(run.advance_to(400_000, &mut |_| Control::Continue).is_none());
        (run, options)
    };
    let (plain, options) = begun();
    let snapshot = plain.save().expect("it can be kept");
    let null = File::options().read(true).write(true).open("/dev/null").expect("null device");
    let restored = Simulation::restore(&snapshot, &streams(&null), options).expect("it can be read");
    assert_eq!(finish(plain), finish(restored));
}

/// A short timed run, begun, and its snapshot.
fn begun() -> (Run, Vec<u8>) {
    let run = Run::new(kernel("triad-threads.elf"), "n=1024 passes=2 threads=2");
    let mut begun: Simulation = run.simulation(&tempfile::tempfile().expect("temporary file"));
    assert!(begun.advance_to(20_000, &mut |_| Control::Continue).is_none());
    let snapshot = begun.save().expect("it can be kept");
    (run, snapshot)
}

fn refused(run: &Run, snapshot: &[u8]) -> SnapshotError {
    let null = File::options().read(true).write(true).open("/dev/null").expect("null device");
    match Simulation::<Interpreter>::restore(snapshot, &streams(&null), run.options()) {
        Err(error) => error,
        Ok(_) => panic!("restored"),
    }
}

#[test]
fn a_snapshot_of_another_version_machine_or_option_is_refused_with_what_differs() {
    let (run, mut snapshot) = begun();
    let other = Run { spin: SpinLoops::Exact, ..run.clone() };
    assert_eq!(refused(&other, &snapshot).to_string(), "the snapshot is of a run with spin loops Fast, not Exact");
    let other = Run { mode: Mode::Functional, ..run.clone() };
    assert_eq!(refused(&other, &snapshot).to_string(), "the snapshot is of a run with mode Timing, not Functional");
    let other = Run { settings: &[("window.commit_stack", "64")], ..run.clone() };
    assert!(matches!(refused(&other, &snapshot), SnapshotError::Machine { .. }));
    snapshot[8] += 1;
    assert!(matches!(refused(&run, &snapshot), SnapshotError::Version(_)));
    assert!(matches!(refused(&run, b"#!/bin/sh\n"), SnapshotError::NotSnapshot));
}

#[test]
fn a_snapshot_of_which_a_part_is_missing_or_a_bit_has_changed_is_refused() {
    let (run, snapshot) = begun();
    for left in [0, 7, 8, 11, 12, 43, 44, 100, snapshot.len() / 2, snapshot.len() - 1] {
        refused(&run, &snapshot[..left]);
    }
    for place in (0..snapshot.len()).step_by(snapshot.len() / 97) {
        let mut changed = snapshot.clone();
        changed[place] ^= 1 << (place % 8);
        refused(&run, &changed);
    }
}

/// A run ends at a limit that only the restored one has.
#[test]
fn a_restored_run_may_have_another_limit() {
    let (run, snapshot) = begun();
    let null = File::options().read(true).write(true).open("/dev/null").expect("null device");
    let limited = Run { max_instructions: Some(21_000), ..run };
    let restored = Simulation::<Interpreter>::restore(&snapshot, &streams(&null), limited.options());
    let finish = restored.unwrap_or_else(|error| panic!("{error}")).advance(&mut |_| Control::Continue);
    assert!(matches!(finish, Finish::Limit));
}

/// Takes a minute of processor time.
mod slow {
    use super::*;

    /// Snapshots that somebody has changed on purpose, with a digest that is right.
    #[test]
    #[ignore = "make slow-test runs it"]
    fn whatever_a_snapshot_says_restoring_it_does_not_panic() {
        const HEAD: usize = 12;
        let (run, snapshot) = begun();
        let null = File::options().read(true).write(true).open("/dev/null").expect("null device");
        let (mut state, mut restored) = (1_u64, 0);
        for round in 0..400 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut changed = snapshot.clone();
            let body = HEAD + 32;
            // Most of it is pages of memory, tables and calendars: the beginning and the end have the structure.
            let reach = [2_000, 50_000, changed.len() - body][round % 3];
            let place = (state >> 20) as usize % reach.min(changed.len() - body);
            let place = if round % 2 == 0 { body + place } else { changed.len() - 1 - place };
            match round % 4 {
                0 | 1 => changed[place] ^= 1 << (state >> 60 & 7),
                2 => changed[place] = 0xff,
                _ => changed.truncate(place.max(body)),
            }
            let digest = Sha256::digest(&changed[body..]);
            changed[HEAD..body].copy_from_slice(&digest);
            let result = Simulation::<Interpreter>::restore(&changed, &streams(&null), run.options());
            restored += usize::from(result.is_ok());
        }
        assert!(restored < 400, "some of this is noticed");
    }
}
