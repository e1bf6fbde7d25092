//! Files that have changed, by accident or on purpose.

use std::fs;
use std::path::PathBuf;

use fxscope_checkpoint::{Error, Folder, Manifest};
use proptest::prelude::*;

use super::{Contents, contents, folder_in, writer_of};

/// A folder with two snapshots.
fn two() -> (tempfile::TempDir, Folder, PathBuf) {
    let parent = tempfile::tempdir().expect("folder");
    let folder = folder_in(parent.path());
    let mut writer = writer_of(&folder, 5);
    Contents::of(&[(0, 0), (1, 1), (2, 2)]).save(&mut writer, 1).expect("saved");
    Contents::of(&[(0, 0), (1, 1), (3, 3)]).save(&mut writer, 2).expect("saved");
    let path = parent.path().join("snapshots");
    (parent, folder, path)
}

#[test]
fn each_changed_or_missing_byte_of_a_manifest_is_noticed() {
    let (_parent, folder, path) = two();
    let (name, whole) = (path.join("000002.snapshot"), fs::read(path.join("000002.snapshot")).expect("readable"));
    for place in 0..whole.len() {
        let mut changed = whole.clone();
        changed[place] ^= 1 << (place % 8);
        assert!(Manifest::from_file(&changed).is_err(), "byte {place}");
        assert!(Manifest::from_file(&whole[..place]).is_err(), "{place} bytes");
    }
    assert!(Manifest::from_file(&[&whole[..], &[0]].concat()).is_err());
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    fs::write(&name, &changed).expect("written");
    assert!(matches!(folder.snapshot(2), Err(Error::Damaged { .. })));
    let listed = folder.snapshots().expect("listed");
    assert!(listed[0].about.is_ok() && listed[1].about.is_err());
    assert_eq!(contents(&folder, 1).pages.len(), 3);
    // A snapshot that cannot be read stays as it is.
    let saved = Contents::of(&[(7, 7)]).save(&mut writer_of(&folder, 1), 3).expect("saved");
    assert_eq!((saved.number, fs::read(&name).expect("there")), (3, changed));
}

#[test]
fn a_changed_byte_of_a_page_is_noticed_when_it_is_read_and_a_missing_part_before() {
    let (_parent, folder, path) = two();
    let pack = path.join("000001.pages");
    let whole = fs::read(&pack).expect("readable");
    for place in [0, whole.len() / 2, whole.len() - 1] {
        let mut changed = whole.clone();
        changed[place] ^= 0x10;
        fs::write(&pack, &changed).expect("written");
        let found = [1, 2].map(|number| Contents::read(&folder.snapshot(number).expect("it looks whole")));
        let damaged = |read: &std::io::Result<Contents>| {
            read.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::InvalidData)
        };
        assert!(found.iter().any(damaged), "byte {place}");
    }
    fs::write(&pack, &whole[..whole.len() - 1]).expect("written");
    assert!(matches!(folder.snapshot(1), Err(Error::Damaged { .. })));
    fs::remove_file(&pack).expect("removed");
    assert!(matches!(folder.snapshot(1), Err(Error::Host { .. })));
}

#[test]
fn files_of_another_version_are_named_and_left_alone() {
    let (_parent, folder, path) = two();
    for name in ["run", "000002.snapshot"] {
        let mut file = fs::read(path.join(name)).expect("readable");
        file[12] += 1;
        fs::write(path.join(name), file).expect("written");
    }
    let version =
        |error: Error| matches!(error, Error::Version { found, .. } if found == fxscope_checkpoint::VERSION + 1);
    assert!(version(folder.run().expect_err("another version")));
    assert!(version(folder.snapshot(2).expect_err("another version")));
    Contents::of(&[(7, 7)]).save(&mut writer_of(&folder, 1), 3).expect("saved");
    assert!(path.join("000002.snapshot").exists() && path.join("000002.pages").exists());
}

/// Contents with a digest that is right, whatever they say.
fn sealed(contents: &[u8]) -> Vec<u8> {
    let mut file = Manifest::default().to_file();
    file.truncate(16);
    file.extend(<[u8; 32]>::from(<sha2::Sha256 as sha2::Digest>::digest(contents)));
    file.extend(contents);
    file
}

proptest! {
    #[test]
    fn whatever_a_manifest_says_reading_it_does_not_panic(contents in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Manifest::from_file(&contents);
        let _ = Manifest::from_file(&sealed(&contents));
    }

    #[test]
    fn a_forged_manifest_reads_nothing_but_what_is_there(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        thread_local!(static TWO: (tempfile::TempDir, Folder, PathBuf) = two());
        TWO.with(|(_parent, folder, path)| {
            let name = path.join("000002.snapshot");
            let whole = fs::read(&name).expect("readable");
            let mut contents = whole[48..].to_vec();
            for (place, byte) in &changes {
                let place = place.index(contents.len());
                contents[place] = *byte;
            }
            fs::write(&name, sealed(&contents)).expect("written");
            if let Ok(reader) = folder.snapshot(2) {
                let _ = Contents::read(&reader);
            }
            fs::write(&name, whole).expect("written");
        });
    }
}
