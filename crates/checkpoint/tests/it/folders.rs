//! What is in a folder, and who may use it.

use fxscope_checkpoint::{About, CHUNK, Error, Folder, PageKey};

use super::{Contents, contents, folder_in, names, writer_of};

#[test]
fn a_snapshot_gives_back_what_was_saved() {
    let parent = tempfile::tempdir().expect("folder");
    let folder = folder_in(parent.path());
    let state = (0..3 * CHUNK + 17).map(|n| (n / 7) as u8).collect();
    let saved = Contents { state, ..Contents::of(&(0..200).map(|n| (3 * n, n)).collect::<Vec<_>>()) };
    let mut writer = writer_of(&folder, 2);
    assert_eq!(saved.save(&mut writer, 77).expect("saved").number, 1);
    assert_eq!(contents(&folder, 1), saved);
    let listed = folder.snapshots().expect("listed");
    assert_eq!((listed.len(), listed[0].about.as_ref().expect("whole").instructions), (1, 77));
    assert_eq!(Folder::open(&parent.path().join("snapshots")).expect("a run").run().expect("whole"), b"a run");
}

#[test]
fn pages_that_have_not_changed_are_not_written_again_by_this_process_or_another() {
    let parent = tempfile::tempdir().expect("folder");
    let folder = folder_in(parent.path());
    let many: Vec<(u64, u64)> = (0..40).map(|n| (n, n)).collect();
    let mut writer = writer_of(&folder, 2);
    let first = Contents::of(&many).save(&mut writer, 1).expect("saved");
    assert!(first.bytes > 40 * CHUNK as u64);
    let second = Contents::of(&[&many[..], &[(40, 40)]].concat()).save(&mut writer, 2).expect("saved");
    drop(writer);
    // A page has moved, too.
    let third = Contents::of(&[&[(99, 0)], &many[1..]].concat()).save(&mut writer_of(&folder, 2), 3).expect("saved");
    assert!(second.bytes < 2 * CHUNK as u64 && third.bytes < CHUNK as u64, "{second:?} {third:?}");
    assert_eq!(contents(&folder, 3).pages[&99], contents(&folder, 2).pages[&0]);
}

#[test]
fn the_newest_are_kept_with_the_packs_that_they_need() {
    let parent = tempfile::tempdir().expect("folder");
    let (folder, path) = (folder_in(parent.path()), parent.path().join("snapshots"));
    let mut writer = writer_of(&folder, 2);
    // Four of five pages stay; then all are others.
    for n in 0..5 {
        Contents::of(&[(0, 0), (1, 1), (2, 2), (3, 3), (4, 100 + n)]).save(&mut writer, n).expect("saved");
    }
    assert_eq!(names(&path)[..4], ["000001.pages", "000004.pages", "000004.snapshot", "000005.pages"]);
    let numbers: Vec<u64> = folder.snapshots().expect("listed").iter().map(|listed| listed.number).collect();
    assert_eq!(numbers, [4, 5]);
    for n in 5..8 {
        Contents::of(&[(0, 200 + n), (1, 300 + n)]).save(&mut writer, n).expect("saved");
    }
    assert_eq!(names(&path), ["000007.pages", "000007.snapshot", "000008.pages", "000008.snapshot", "run"]);
}

#[test]
fn a_pack_of_which_little_is_needed_is_replaced() {
    let parent = tempfile::tempdir().expect("folder");
    let (folder, path) = (folder_in(parent.path()), parent.path().join("snapshots"));
    let mut writer = writer_of(&folder, 1);
    Contents::of(&(0..10).map(|n| (n, n)).collect::<Vec<_>>()).save(&mut writer, 0).expect("saved");
    let few = Contents::of(&[(0, 0), (1, 1)]);
    // It uses the pack, and finds that most of it is not needed.
    few.save(&mut writer, 1).expect("saved");
    few.save(&mut writer, 2).expect("saved");
    assert!(!path.join("000001.pages").exists() && path.join("000003.pages").exists());
    assert_eq!(contents(&folder, 3), few);
}

#[test]
fn a_snapshot_that_is_given_up_leaves_nothing() {
    let parent = tempfile::tempdir().expect("folder");
    let (folder, path) = (folder_in(parent.path()), parent.path().join("snapshots"));
    let mut writer = writer_of(&folder, 1);
    for round in 0..2 {
        let mut snapshot = writer.begin().expect("begun");
        for (&index, page) in &Contents::of(&(0..200).map(|n| (n, n)).collect::<Vec<_>>()).pages {
            snapshot.page(PageKey { object: 0, index }, page).expect("passed on");
        }
        if round == 0 {
            assert!(snapshot.abort().is_none());
        }
    }
    assert_eq!(names(&path), ["run"]);
    let mut snapshot = writer.begin().expect("begun");
    assert!(snapshot.page(PageKey { object: 0, index: 0 }, &[]).is_err());
    assert!(snapshot.page(PageKey { object: 0, index: 0 }, &vec![1; CHUNK + 1]).is_err());
    assert_eq!(snapshot.finish(About::default()).expect("an empty one").number, 1);
}

#[test]
fn a_folder_with_something_else_or_another_run_is_left_alone() {
    let parent = tempfile::tempdir().expect("folder");
    let foreign = parent.path().join("foreign");
    std::fs::create_dir(&foreign).expect("made");
    std::fs::write(foreign.join("notes"), "mine").expect("written");
    assert!(matches!(Folder::create(&foreign, b"a run"), Err(Error::Foreign(_))));
    assert!(matches!(Folder::open(&foreign), Err(Error::NoRun(_))));
    assert_eq!(names(&foreign), ["notes"]);

    let folder = folder_in(parent.path());
    let path = parent.path().join("snapshots");
    assert!(matches!(Folder::create(&path, b"another"), Err(Error::InUse(_))));
    assert!(matches!(Folder::open(&path).expect("a run").lock(), Err(Error::InUse(_))));
    drop(folder);
    assert!(matches!(Folder::create(&path, b"another"), Err(Error::HasRun(_))));
    assert!(Folder::open(&path).expect("a run").lock().is_ok());
    assert!(matches!(Folder::create(&parent.path().join("no/such"), b"a run"), Err(Error::Host { .. })));
    assert!(matches!(Folder::open(&path).expect("a run").snapshot(3), Err(Error::Missing { number: 3, .. })));
}

#[test]
fn what_a_killed_run_was_writing_is_removed_by_the_next() {
    let parent = tempfile::tempdir().expect("folder");
    let (folder, path) = (folder_in(parent.path()), parent.path().join("snapshots"));
    drop(folder);
    for name in ["000001.pages.part", "000001.pages", "000009.pages"] {
        std::fs::write(path.join(name), "half").expect("written");
    }
    let folder = Folder::open(&path).expect("a run");
    let saved = Contents::of(&[(0, 1)]).save(&mut writer_of(&folder, 1), 1).expect("saved");
    assert_eq!(
        (saved.number, names(&path)),
        (1, ["000001.pages", "000001.snapshot", "run"].map(str::to_owned).to_vec())
    );
}

#[test]
fn a_run_is_marked_as_ended_and_as_going_on() {
    let parent = tempfile::tempdir().expect("folder");
    let folder = folder_in(parent.path());
    for ended in [true, true, false, false, true] {
        folder.set_ended(ended).expect("marked");
        assert_eq!(folder.has_ended(), ended);
    }
}
