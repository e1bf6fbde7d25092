//! A restored guest continues as the original would have.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use fxscope_aarch64::{Engine as _, Interpreter};
use fxscope_guestmem::PAGE;
use fxscope_linux::{Access, Code, Guest, Setup, SnapshotError, Stdio, Surroundings};

use crate::common::kept::Kept;
use crate::common::{HOSTED, build, output, platform, running};

/// Instructions after which snapshots are taken: before, among and after threads, child and signals.
const STOPS: [u64; 5] = [1_000, 120_000, 700_000, 1_500_000, 3_000_000];

/// More than the program runs.
const ENOUGH: u64 = 300_000_000;

/// The variable with which a test that runs in another process finds the snapshot, and stores its result.
const SNAPSHOT: &str = "FXSCOPE_TEST_SNAPSHOT";

/// Returns standard streams with output to `output`.
fn streams(output: &Path) -> Stdio {
    let null = || OwnedFd::from(File::options().read(true).write(true).open("/dev/null").expect("null device"));
    let output = File::options().create(true).append(true).open(output).expect("output");
    Stdio { input: null(), output: output.into(), error: null() }
}

/// Starts a new run of the program, which reads `text`.
fn start(text: &Path, output: &Path) -> (Guest, Code) {
    start_of("snapshot.c", text, output, Vec::new())
}

/// Starts a new run of a program with the argument `file`, which may write in the folders `write`.
fn start_of(source: &str, file: &Path, output: &Path, write: Vec<PathBuf>) -> (Guest, Code) {
    let program = build(source, &[HOSTED, &["-pthread"]].concat());
    let mut setup = Setup::new(platform(64), program.to_str().expect("UTF-8 path")).expect("setup");
    setup.args.push(file.to_str().expect("UTF-8 path").into());
    setup.stdio = streams(output);
    setup.access = Access { write, ..Access::standard() };
    let guest = Guest::open(&program, setup).unwrap_or_else(|e| panic!("{e}"));
    let code = Code::of(&guest);
    (guest, code)
}

/// Returns a snapshot of a run.
fn saved((guest, code): &(Guest, Code)) -> Kept {
    let mut kept = Kept::default();
    guest.save(code, &mut kept).unwrap_or_else(|e| panic!("{e}"));
    kept
}

/// Continues a run, which may write in the folders `write`.
fn restored_with(kept: &Kept, streams: &Stdio, write: Vec<PathBuf>) -> Result<(Guest, Code), SnapshotError> {
    let access = Access { write, ..Access::standard() };
    let surroundings = Surroundings { access, ..Surroundings::new(streams) };
    let restored = Guest::restore(&kept.state, &mut kept.clone(), surroundings, &Interpreter::new(64))?;
    if !restored.rest.is_empty() {
        return Err(SnapshotError::Damaged);
    }
    restored.files.cut()?;
    Ok((restored.guest, restored.code))
}

fn restored(kept: &Kept, streams: &Stdio) -> Result<(Guest, Code), SnapshotError> {
    restored_with(kept, streams, Vec::new())
}

fn run((guest, code): &mut (Guest, Code), instructions: u64) {
    let stop = guest.instructions() + instructions;
    while guest.end().is_none() && guest.instructions() < stop {
        guest.run_functional(code, stop - guest.instructions());
    }
}

/// Runs a guest to its end.
fn ended(mut run_of: (Guest, Code)) -> Guest {
    run(&mut run_of, ENOUGH);
    run_of.0
}

/// Runs a guest to its end; returns how it ended, its instructions, the time, and a digest of its memory.
fn outcome(run_of: (Guest, Code)) -> String {
    outcome_of(ended(run_of))
}

/// Returns the readable pages of a guest that are backed, with their addresses.
fn pages(guest: &mut Guest) -> Vec<(u64, Vec<u64>)> {
    let regions: Vec<_> = guest.memory().regions().filter(|region| region.prot.read).copied().collect();
    let pages = regions.iter().flat_map(|region| (region.start..region.end).step_by(PAGE as usize));
    let backed: Vec<u64> = pages.filter(|&page| guest.memory().physical(page).is_some()).collect();
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let mut words = |page: u64| {
        let mut bytes = vec![0; PAGE as usize];
        guest.memory_mut().read(page, &mut bytes).expect("readable");
        bytes.chunks(8).map(word).collect()
    };
    backed.into_iter().map(|page| (page, words(page))).collect()
}

/// Returns the first word that differs in the memory of two guests: its address and both values.
fn first_difference(one: &mut Guest, other: &mut Guest) -> Option<String> {
    let (one, other) = (pages(one), pages(other));
    one.iter().zip(&other).find_map(|((page, ours), (_, theirs))| {
        let differ = |place: &usize| ours[*place] != theirs[*place];
        let place = (0..ours.len()).find(differ)?;
        Some(format!("{:#x}: {:#x}, {:#x}", page + 8 * place as u64, ours[place], theirs[place]))
    })
}

fn outcome_of(mut guest: Guest) -> String {
    let fold = |digest: u64, word: &u64| (digest ^ word).wrapping_mul(0x0100_0000_01b3);
    let digest = pages(&mut guest)
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |digest, (page, words)| words.iter().fold(digest ^ page, fold));
    let end = guest.end().map_or_else(|| "still runs".to_owned(), ToString::to_string);
    format!("{end}; {} instructions, {} ns, memory {digest:016x}\n", guest.instructions(), guest.now_ns())
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file of the test")
}

/// Returns a folder with the file that the program reads.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("temporary directory");
    std::fs::write(folder.path().join("text"), "one two three").expect("write");
    folder
}

/// The other process: restores the guest and stores its result.
fn continue_run(folder: &Path) {
    let mut bytes = Vec::new();
    File::open(folder.join("snapshot")).and_then(|mut file| file.read_to_end(&mut bytes)).expect("snapshot");
    let guest = restored(&Kept::from_bytes(&bytes), &streams(&folder.join("output"))).unwrap_or_else(|e| panic!("{e}"));
    let mut file = File::create(folder.join("outcome")).expect("create");
    file.write_all(outcome(guest).as_bytes()).expect("write");
}

#[test]
fn a_changed_or_missing_file_is_named() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let mut guest = start(&at("text"), &at("output"));
    run(&mut guest, STOPS[2]);
    let kept = saved(&guest);
    let refused = || match restored(&kept, &streams(&at("output"))) {
        Err(error @ SnapshotError::File { .. }) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("restored"),
    };
    std::fs::write(at("text"), "something else").expect("write");
    assert_eq!(refused(), format!("{}: has changed since the snapshot", at("text").display()));
    std::fs::remove_file(at("text")).expect("remove");
    assert!(refused().contains("cannot be opened again: No such file"), "{}", refused());
}

#[test]
fn invalid_snapshots_and_those_of_another_version_are_refused() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let kept = saved(&start(&at("text"), &at("output")));
    let streams = streams(&at("output"));
    let restore = |state: &[u8]| restored(&Kept { state: state.to_vec(), ..kept.clone() }, &streams);
    let state = &kept.state;
    assert!(matches!(restore(&state[..state.len() / 2]), Err(SnapshotError::Damaged)));
    assert!(matches!(restore(&[&[99], &state[1..]].concat()), Err(SnapshotError::Version { found: 99 })));
    assert!(restore(state).is_ok());
    let mut elsewhere = kept.clone();
    elsewhere.pages[0].0.index = 1 << 40;
    assert!(
        matches!(restored(&elsewhere, &streams), Err(SnapshotError::Host(_))),
        "a page that the memory does not have"
    );
}

/// A program that appends to one file and writes another in place, saved and killed later: what it then adds a second time.
#[test]
fn files_that_the_program_was_writing_are_cut_to_their_length_at_the_snapshot() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let write = || vec![folder.path().to_owned()];
    let begin = |name: &str| start_of("appends.c", &at(name), &at("output"), write());
    assert!(outcome(begin("whole")).starts_with("exited with status 0;"));
    let mut killed = begin("log");
    run(&mut killed, 400_000);
    let kept = saved(&killed);
    let bytes_then = std::fs::metadata(at("log")).expect("begun").len();
    run(&mut killed, 400_000);
    drop(killed);
    let bytes_later = std::fs::metadata(at("log")).expect("there").len();
    assert!(bytes_then > 0 && bytes_later > bytes_then, "{bytes_then} {bytes_later}");

    let again = || restored_with(&kept, &streams(&at("output")), write());
    let error = restored(&kept, &streams(&at("output"))).err().expect("it may not write there").to_string();
    assert!(error.contains("cannot be opened again: Permission denied"), "{error}");
    assert_eq!(std::fs::metadata(at("log")).expect("there").len(), bytes_later, "what fails changes no file");
    assert!(outcome(again().unwrap_or_else(|e| panic!("{e}"))).starts_with("exited with status 0;"));
    assert_eq!(text(&at("log")), text(&at("whole")));

    let mut changed = std::fs::read(at("log")).expect("there");
    changed[0] ^= 1;
    std::fs::write(at("log"), &changed).expect("write");
    let error = again().err().expect("it is not what it was").to_string();
    assert_eq!(error, format!("{}: was changed after the snapshot, and not only at its end", at("log").display()));
    std::fs::write(at("log"), &changed[..bytes_then as usize - 1]).expect("write");
    assert!(again().err().expect("it is too short").to_string().contains("is shorter than at the snapshot"));
    std::fs::rename(at("whole"), at("log")).expect("replace");
    assert!(
        again().err().expect("it is another one").to_string().contains("is another file than the one that was open")
    );
}

/// They take longest.
mod slow {
    use super::*;

    /// Two processes with data on their way in sockets, connections that wait, `epoll` instances, objects with descriptors and files in
    /// `/dev/shm`. Saving must not disturb the run, which continues.
    #[test]
    #[ignore = "make slow-test runs it"]
    fn data_on_their_way_between_processes_arrive_after_a_restore() {
        let folder = folder();
        let at = |name: &str| folder.path().join(name);
        let begin = |name: &str| start_of("in_flight.c", &at("text"), &at(name), Vec::new());
        // The program looks at files of the host, whose numbers and times are not the run's: its memory is not compared.
        let outcome = |run_of| {
            let text = outcome(run_of);
            text.split_once(", memory").map(|(before, _)| before.to_owned()).expect("with its memory")
        };
        let whole = begin("whole");
        let whole = {
            let _running = running();
            outcome(whole)
        };
        assert!(whole.starts_with("exited with status 0;"), "{whole} {}", text(&at("whole")));
        for stop in (1..16).map(|part| part * 110_000) {
            let mut first = begin("output");
            let _running = running();
            run(&mut first, stop);
            let kept = saved(&first);
            let before = text(&at("output"));
            assert_eq!(
                (outcome(first), text(&at("output"))),
                (whole.clone(), text(&at("whole"))),
                "after {stop}, going on"
            );
            std::fs::write(at("output"), &before).expect("write");
            let mut again = restored(&kept, &streams(&at("output"))).unwrap_or_else(|e| panic!("{e}"));
            run(&mut again, 30_000);
            let kept = saved(&again);
            drop(again);
            let again = restored(&kept, &streams(&at("output"))).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(
                (outcome(again), text(&at("output"))),
                (whole.clone(), text(&at("whole"))),
                "after {stop}, restored"
            );
            std::fs::remove_file(at("output")).expect("remove");
        }
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_restored_guest_continues_in_another_process_as_if_nothing_had_happened() {
        if let Ok(files) = std::env::var(SNAPSHOT) {
            return continue_run(Path::new(&files));
        }
        for stop in STOPS {
            let folder = folder();
            let at = |name: &str| folder.path().join(name);
            let mut whole = start(&at("text"), &at("whole"));
            run(&mut whole, stop);
            let whole = outcome(whole);
            assert!(whole.starts_with("exited with status 3;"), "{whole}");
            assert!(text(&at("whole")).contains("again 799980000, attached 799980000 1\n"), "{}", text(&at("whole")));
            assert!(
                text(&at("whole")).contains("one  two , child 17, sums 799980000 799980000 "),
                "{}",
                text(&at("whole"))
            );

            let mut first = start(&at("text"), &at("output"));
            run(&mut first, stop);
            std::fs::write(at("snapshot"), saved(&first).to_bytes()).expect("write");
            drop(first);
            let name = "snapshot::slow::a_restored_guest_continues_in_another_process_as_if_nothing_had_happened";
            let mut other = Command::new(std::env::current_exe().expect("this program"));
            let output =
                output(other.args([name, "--exact", "--ignored"]).env(SNAPSHOT, folder.path())).expect("start");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
            assert_eq!(text(&at("outcome")), whole, "after {stop} instructions");
            assert_eq!(text(&at("output")), text(&at("whole")), "after {stop} instructions");
        }
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_guest_and_its_clone_end_in_the_same_way() {
        for stop in STOPS {
            let folder = folder();
            let at = |name: &str| folder.path().join(name);
            let mut guest = start(&at("text"), &at("first"));
            let _running = running();
            run(&mut guest, stop);
            std::fs::copy(at("first"), at("second")).expect("copy");
            // Times of the host's files are theirs, not the run's: the program does not look at them.
            let second = File::options().append(true).open(at("second")).expect("open");
            second.set_modified(UNIX_EPOCH + Duration::from_secs(1)).expect("set");
            let second = streams(&at("second"));
            let access = Access { write: Vec::new(), ..Access::standard() };
            let surroundings = Surroundings { access, ..Surroundings::new(&second) };
            let clone = guest.0.try_clone(&guest.1, surroundings).unwrap_or_else(|e| panic!("{e}"));
            let (mut guest, mut clone) = (ended(guest), ended(clone));
            assert_eq!(first_difference(&mut guest, &mut clone), None, "after {stop} instructions");
            assert_eq!(outcome_of(guest), outcome_of(clone), "after {stop} instructions");
            assert_eq!(text(&at("first")), text(&at("second")), "after {stop} instructions");
        }
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn whatever_the_bytes_say_restoring_a_guest_does_not_panic() {
        let folder = folder();
        let at = |name: &str| folder.path().join(name);
        let mut begun = start(&at("text"), &at("output"));
        run(&mut begun, STOPS[2]);
        let kept = saved(&begun);
        let bytes = &kept.state;
        let streams = streams(&at("output"));
        let (mut state, mut refused) = (7_u64, 0);
        for round in 0..600 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut changed = bytes.clone();
            let reach = [300, 5_000, 200_000, changed.len()][round % 4].min(changed.len());
            let place = (state >> 20) as usize % reach;
            let place = if round % 8 < 4 { place } else { changed.len() - 1 - place };
            match round % 3 {
                0 => changed[place] ^= 1 << (state >> 60 & 7),
                1 => changed[place] = 0xff,
                _ => changed.truncate(place),
            }
            refused += usize::from(restored(&Kept { state: changed, ..kept.clone() }, &streams).is_err());
        }
        assert!(refused > 200, "parts that are missing are noticed: {refused}");
    }
}
