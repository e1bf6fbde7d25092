//! Snapshots: a run that is restored in another process of the host continues as the original run would have.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use fxscope_aarch64::{Engine as _, Interpreter};
use fxscope_linux::Stdio;
use fxscope_sim::part::{PartPlan, Selection, Warming};
use fxscope_sim::snapshot::{SnapshotError, Surroundings};
use fxscope_sim::{Control, Finish, Mode, Options, Outcome, Simulation, SpinLoops};

use crate::common::kept::Kept;
use crate::common::{Run, build, kernel, streams, text};
use crate::parallel::run_of_triad;
use crate::parts::{between, steps, with};

/// The folder in which a test that runs as another process finds the snapshots and stores its results.
const FOLDER: &str = "FXSCOPE_TEST_SNAPSHOTS";

/// The plan of sampled runs, which are short.
const PLAN: &str = "begin=20000,window=500,warm=100,period=5000";

/// The same with code that is skipped.
const SKIPPING: &str = "begin=20000,window=500,warm=100,period=60000,follow=2000";

/// Points in a run at which it is saved and restored.
const POINTS: u64 = 10;

/// Runs of one thread, of threads that meet at barriers, of processes with a pipe, of threads that spin, with pages and
/// sectors of other kinds than the default ones and zero fill, sampled ones, and functional ones, of which one has functions of
/// MPI; and runs of which a part is timed.
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
        Run { sample: Some(SKIPPING), ..Run::new(kernel("sort.elf"), "n=2000 passes=4") },
        Run { mode: Mode::Functional, ..Run::new(snapshot, "/etc/hostname") },
        Run { mode: Mode::Functional, ..Run::new(build("mpi_calls.c", &["-pthread"]), "") },
        Run { part: Some(with(between("function=step#2", "region=work#3"), Warming::Nothing)), ..steps("barrier 3 4") },
        Run { part: Some(PartPlan::new(Selection::Region("work".to_owned()))), ..steps("spin 2 4") },
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
        (&outcome.sample, &outcome.part),
    )
}

/// Returns a snapshot of a run.
fn saved(run: &Simulation) -> Kept {
    let mut kept = Kept::default();
    run.save(&mut kept).unwrap_or_else(|error| panic!("{error}"));
    kept
}

/// Returns the run of a snapshot.
fn restored(kept: &Kept, stdio: &Stdio, options: Options) -> Result<Simulation, SnapshotError> {
    Simulation::restore(&mut kept.clone(), Surroundings::new(stdio), options, &Interpreter::new(64))
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

/// The other process: restores each run and leaves what comes of it.
fn continue_runs(folder: &Path) {
    for (number, run) in runs().iter().enumerate() {
        for point in 0..POINTS as usize {
            let bytes = std::fs::read(at(folder, number, point, "snapshot")).expect("a snapshot");
            let output = append(&at(folder, number, point, "output"));
            let restored = restored(&Kept::from_bytes(&bytes), &streams(&output), run.options());
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
    let restored = restored(&saved(&plain), &nowhere(), options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(finish(plain), finish(restored));
}

/// Streams that lead nowhere.
fn nowhere() -> Stdio {
    streams(&File::options().read(true).write(true).open("/dev/null").expect("null device"))
}

/// A short timed run, begun, and its snapshot.
fn begun() -> (Run, Kept) {
    let run = Run::new(kernel("triad-threads.elf"), "n=1024 passes=2 threads=2");
    let mut begun: Simulation = run.simulation(&tempfile::tempfile().expect("temporary file"));
    assert!(begun.advance_to(20_000, &mut |_| Control::Continue).is_none());
    (run, saved(&begun))
}

fn refused(run: &Run, snapshot: &Kept) -> SnapshotError {
    match restored(snapshot, &nowhere(), run.options()) {
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
    snapshot.state[0] += 1;
    assert!(matches!(refused(&run, &snapshot), SnapshotError::Version(_)));
}

#[test]
fn a_snapshot_of_which_a_part_is_missing_is_refused() {
    let (run, snapshot) = begun();
    let bytes = snapshot.state.len();
    for left in [0, 3, 4, 5, 100, bytes / 2, bytes - 1] {
        refused(&run, &Kept { state: snapshot.state[..left].to_vec(), ..snapshot.clone() });
    }
    let longer = Kept { state: [&snapshot.state[..], b"more"].concat(), ..snapshot };
    assert!(matches!(refused(&run, &longer), SnapshotError::Damaged(_)));
}

/// A run ends at a limit that only the restored one has.
#[test]
fn a_restored_run_may_have_another_limit() {
    let (run, snapshot) = begun();
    let limited = Run { max_instructions: Some(21_000), ..run };
    let restored = restored(&snapshot, &nowhere(), limited.options());
    let finish = restored.unwrap_or_else(|error| panic!("{error}")).advance(&mut |_| Control::Continue);
    assert!(matches!(finish, Finish::Limit));
}

/// Takes a minute of processor time.
mod slow {
    use super::*;

    /// Snapshots that somebody has changed on purpose.
    #[test]
    #[ignore = "make slow-test runs it"]
    fn whatever_a_snapshot_says_restoring_it_does_not_panic() {
        let (run, snapshot) = begun();
        let (mut state, mut accepted) = (1_u64, 0);
        for round in 0..400 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut changed = snapshot.state.clone();
            // Most of it is tables and calendars: the beginning and the end have the structure.
            let reach = [2_000, 50_000, changed.len()][round % 3].min(changed.len());
            let place = (state >> 20) as usize % reach;
            let place = if round % 2 == 0 { place } else { changed.len() - 1 - place };
            match round % 4 {
                0 | 1 => changed[place] ^= 1 << (state >> 60 & 7),
                2 => changed[place] = 0xff,
                _ => changed.truncate(place),
            }
            let changed = Kept { state: changed, ..snapshot.clone() };
            accepted += usize::from(restored(&changed, &nowhere(), run.options()).is_ok());
        }
        assert!(accepted < 400, "some of this is noticed");
    }

    #[test]
    #[ignore = "make slow-test runs it"]
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
                std::fs::write(at(folder.path(), number, point, "snapshot"), saved(&paused).to_bytes()).expect("write");
                std::fs::write(
                    at(folder.path(), number, point, "output"),
                    text(output.try_clone().expect("duplicate")),
                )
                .expect("write");
            }
            let finish = paused.advance(&mut |_| Control::Continue);
            let outcome = paused.conclude(finish);
            assert_eq!(given(&paused, &outcome), expected[number].0, "paused, not restored: {}", run.program.display());
        }
        let name = "snapshot::slow::a_run_continues_from_any_snapshot_in_another_process_to_the_same_record_and_output";
        let mut other = Command::new(std::env::current_exe().expect("this program"));
        let result = other.args([name, "--exact", "--ignored"]).env(FOLDER, folder.path()).output().expect("start");
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
}
