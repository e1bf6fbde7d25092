//! Processes that are killed while they save.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fxscope_checkpoint::Folder;

use super::{Contents, contents, writer_of};

/// The folder in which a test that runs as another process saves snapshots.
const FOLDER: &str = "FXSCOPE_TEST_KILLED";

/// Times that a process is killed.
const KILLED: u32 = 8;

/// The contents of a snapshot after this number of instructions: most of it stays from one to the next.
fn at(instructions: u64) -> Contents {
    Contents::of(
        &(0..24)
            .map(|page| (page, if page % 8 == instructions % 8 { 100 + instructions } else { page }))
            .collect::<Vec<_>>(),
    )
}

#[test]
fn a_process_that_is_killed_at_any_time_leaves_whole_snapshots() {
    if let Ok(folder) = std::env::var(FOLDER) {
        return save_for_ever(Path::new(&folder));
    }
    let parent = tempfile::tempdir().expect("folder");
    let path = parent.path().join("snapshots");
    drop(super::folder_in(parent.path()));
    let (mut newest, mut random) = (0, 0x2545_f491_4f6c_dd1d_u64);
    for round in 0..KILLED {
        let name = "killed::a_process_that_is_killed_at_any_time_leaves_whole_snapshots";
        let mut other = Command::new(std::env::current_exe().expect("this program"));
        let other = other.args([name, "--exact"]).env(FOLDER, &path).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = other.spawn().expect("starts");
        // At least one snapshot more, and then at any time.
        let (begin, before) = (Instant::now(), newest);
        while newest == before {
            assert!(begin.elapsed() < Duration::from_secs(60), "round {round}: no snapshot");
            std::thread::sleep(Duration::from_millis(1));
            newest =
                Folder::open(&path).expect("a run").snapshots().expect("listed").last().map_or(0, |last| last.number);
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_micros((random >> 40) % 15_000));
        child.kill().expect("killed");
        child.wait().expect("ended");
        let folder = Folder::open(&path).expect("a run");
        let listed = folder.snapshots().expect("listed");
        assert!(!listed.is_empty(), "round {round}");
        for snapshot in listed {
            let about = snapshot.about.unwrap_or_else(|error| panic!("round {round}: {error}"));
            assert_eq!(contents(&folder, snapshot.number), at(about.instructions), "round {round}");
            newest = snapshot.number;
        }
    }
}

/// The other process.
fn save_for_ever(path: &Path) {
    let folder = Folder::open(path).expect("a run");
    let last = folder.snapshots().expect("listed").last().map_or(0, |last| last.number);
    let mut writer = writer_of(&folder, 2);
    for instructions in last.. {
        at(instructions).save(&mut writer, instructions).expect("saved");
    }
}
