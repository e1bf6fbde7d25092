//! A folder: how it is made, what it has, and what is removed from it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use crate::manifest::{About, Manifest};
use crate::reader::Reader;
use crate::sealed::{self, Broken};
use crate::store::{ENDED, Kind, RUN, Store, pages_name, snapshot_name};
use crate::{Error, Writer};

/// A folder with the snapshots of a run.
#[derive(Debug)]
pub struct Folder {
    pub(crate) store: Store,
}

/// A snapshot of a folder.
#[derive(Debug)]
pub struct Listed {
    /// Its number.
    pub number: u64,
    /// What it is about; or, what is wrong with it.
    pub about: Result<About, Error>,
    /// The bytes that its own files take.
    pub bytes: u64,
}

impl Folder {
    /// Makes a folder for a new run, which only this user may read; `run` says how the run is started. Its parent must exist. It is
    /// locked for this process.
    ///
    /// # Errors
    /// When it has a run or other files, another process uses it, or it cannot be written.
    pub fn create(path: &Path, run: &[u8]) -> Result<Folder, Error> {
        let host = |source| Error::Host { path: path.display().to_string(), source };
        // Like a core dump, it is nobody else's to read.
        match std::fs::DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(host(error)),
            _ => {}
        }
        let folder = Folder { store: Store::open(path)? };
        folder.lock()?;
        let name = || path.display().to_string();
        for kind in folder.store.names().map_err(host)?.iter().map(|name| Kind::of(name)) {
            match kind {
                Kind::Part => {}
                Kind::Foreign => return Err(Error::Foreign(name())),
                _ => return Err(Error::HasRun(name())),
            }
        }
        folder.store.write(RUN, &sealed::seal(run)).map_err(folder.store.failed(RUN))?;
        Ok(folder)
    }

    /// Opens the folder of a run, to read it.
    ///
    /// # Errors
    /// When it has no run, or cannot be read.
    pub fn open(path: &Path) -> Result<Folder, Error> {
        let store = Store::open(path)?;
        if store.has(RUN) { Ok(Folder { store }) } else { Err(Error::NoRun(path.display().to_string())) }
    }

    /// Locks it for this process, so that no other adds snapshots.
    ///
    /// # Errors
    /// When another process has locked it.
    pub fn lock(&self) -> Result<(), Error> {
        if self.store.lock() { Ok(()) } else { Err(Error::InUse(self.store.path().display().to_string())) }
    }

    /// Returns how the run is started: what [`Folder::create`] got.
    ///
    /// # Errors
    /// When it cannot be read, is damaged or of another version.
    pub fn run(&self) -> Result<Vec<u8>, Error> {
        let file = self.store.read(RUN).map_err(self.store.failed(RUN))?;
        Ok(sealed::contents(&file).map_err(|broken| self.broken(RUN, broken))?.to_vec())
    }

    /// Returns whether the run has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.store.has(ENDED)
    }

    /// Notes that the run has ended, or that it continues after all.
    ///
    /// # Errors
    /// The host's.
    pub fn set_ended(&self, ended: bool) -> Result<(), Error> {
        let set = if ended { self.store.write(ENDED, b"") } else { self.store.remove(ENDED) };
        set.map_err(self.store.failed(ENDED))
    }

    /// Returns its snapshots, oldest first. Their chunks are not read, only looked for.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn snapshots(&self) -> Result<Vec<Listed>, Error> {
        let listed = self.numbers()?.into_iter().map(|number| {
            let sizes = [snapshot_name(number), pages_name(number)].map(|name| self.bytes_of(&name).unwrap_or(0));
            Listed { number, about: self.whole(number).map(|manifest| manifest.about), bytes: sizes.iter().sum() }
        });
        Ok(listed.collect())
    }

    /// Opens a snapshot.
    ///
    /// # Errors
    /// When there is no such snapshot, or it is not whole.
    pub fn snapshot(&self, number: u64) -> Result<Reader, Error> {
        if !self.store.has(&snapshot_name(number)) {
            return Err(Error::Missing { path: self.store.path().display().to_string(), number });
        }
        Reader::open(self.store.clone(), number, self.whole(number)?)
    }

    /// Starts a thread that adds snapshots and keeps the newest `keep`. The folder should be locked.
    ///
    /// # Errors
    /// When the folder cannot be read, or the host cannot start a thread.
    pub fn writer(&self, keep: usize) -> Result<Writer, Error> {
        for name in self.names()?.iter().filter(|name| Kind::of(name) == Kind::Part) {
            self.store.remove(name).map_err(self.store.failed(name))?;
        }
        Writer::start(Folder { store: self.store.clone() }, keep)
    }

    /// Returns the numbers of its snapshots, lowest first.
    pub(crate) fn numbers(&self) -> Result<Vec<u64>, Error> {
        let numbers = self.names()?.into_iter().filter_map(|name| match Kind::of(&name) {
            Kind::Snapshot(number) => Some(number),
            _ => None,
        });
        let mut numbers: Vec<u64> = numbers.collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Reads a manifest, and looks whether its packs are long enough.
    pub(crate) fn whole(&self, number: u64) -> Result<Manifest, Error> {
        let name = snapshot_name(number);
        let file = self.store.read(&name).map_err(self.store.failed(&name))?;
        let manifest = Manifest::read(&file).map_err(|broken| self.broken(&name, broken))?;
        let mut ends = vec![0; manifest.packs.len()];
        for chunk in manifest.chunks() {
            let end = &mut ends[chunk.pack as usize];
            *end = (chunk.offset + u64::from(chunk.stored)).max(*end);
        }
        for (&pack, end) in manifest.packs.iter().zip(ends) {
            let name = pages_name(pack);
            if self.bytes_of(&name).map_err(self.store.failed(&name))? < end {
                return Err(Error::Damaged { path: self.store.path_of(&name), what: "a part is missing" });
            }
        }
        Ok(manifest)
    }

    pub(crate) fn bytes_of(&self, name: &str) -> io::Result<u64> {
        Ok(self.store.file(name)?.metadata()?.len())
    }

    /// Removes all but the newest `keep` whole snapshots, and packs that none of the others has chunks in. Snapshots that cannot be
    /// read stay as they are, with the packs of the same number.
    pub(crate) fn clean(&self, keep: usize) -> Result<(), Error> {
        let mut whole: BTreeMap<u64, Manifest> = BTreeMap::new();
        let mut used: BTreeSet<u64> = BTreeSet::new();
        for number in self.numbers()? {
            match self.whole(number) {
                Ok(manifest) => drop(whole.insert(number, manifest)),
                Err(_) => drop(used.insert(number)),
            }
        }
        let old: Vec<u64> = whole.keys().rev().skip(keep.max(1)).copied().collect();
        for number in old {
            let name = snapshot_name(number);
            self.store.remove(&name).map_err(self.store.failed(&name))?;
            whole.remove(&number);
        }
        used.extend(whole.values().flat_map(|manifest| &manifest.packs));
        for name in self.names()? {
            if matches!(Kind::of(&name), Kind::Pages(number) if !used.contains(&number)) {
                self.store.remove(&name).map_err(self.store.failed(&name))?;
            }
        }
        Ok(())
    }

    fn names(&self) -> Result<Vec<String>, Error> {
        let path = self.store.path().display().to_string();
        self.store.names().map_err(|source| Error::Host { path, source })
    }

    fn broken(&self, name: &str, broken: Broken) -> Error {
        let path = self.store.path_of(name);
        match broken {
            Broken::Version(found) => Error::Version { path, found },
            Broken::Damaged(what) => Error::Damaged { path, what },
        }
    }
}
