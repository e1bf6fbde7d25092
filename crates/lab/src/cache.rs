//! A cache of what runs counted, valid until something that they depend on changes.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use fxscope_session::MAX_PROGRAM_BYTES;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use crate::Error;

/// How the names of its files end.
const SUFFIX: &str = ".json";

/// A folder with one file per result, named by a digest of everything that the result depends on.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: Option<PathBuf>,
    simulator: Vec<u8>,
}

impl Cache {
    /// Opens a cache in `folder`, which is created if missing, for results of the executable `simulator`; without a folder
    /// nothing is cached.
    ///
    /// # Errors
    /// If the folder cannot be created or the executable cannot be read.
    pub fn new(folder: Option<&Path>, simulator: &Path) -> Result<Cache, Error> {
        if let Some(folder) = folder {
            std::fs::create_dir_all(folder)
                .map_err(|e| format!("{}: cannot be created ({e}); name another with --cache", folder.display()))?;
        }
        let mut digest = Sha256::new();
        digest.update(content(simulator)?);
        Ok(Cache { folder: folder.map(Path::to_owned), simulator: digest.finalize().to_vec() })
    }

    /// Opens a cache for results of this process's own executable.
    ///
    /// # Errors
    /// As for [`Cache::new`].
    pub fn of_this_program(folder: Option<&Path>) -> Result<Cache, Error> {
        let simulator = std::env::current_exe().map_err(|e| format!("cannot find the executable of fxscope: {e}"))?;
        Cache::new(folder, &simulator)
    }

    /// Returns the folder of the user's cache for a command, as the XDG Base Directory specification has it; `None`: the user has none.
    #[must_use]
    pub fn usual_folder(command: &str) -> Option<PathBuf> {
        let of = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache")))?;
        Some(base.join("fxscope").join(command))
    }

    /// Returns a cache that stores nothing.
    #[must_use]
    pub fn none() -> Cache {
        Cache { folder: None, simulator: Vec::new() }
    }

    /// Returns its folder; `None`: nothing is cached.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Returns the name of the file that has the result for a key, and whether that is there.
    pub(crate) fn result(&self, key: &[Vec<u8>]) -> (String, bool) {
        let name = self.name(key) + SUFFIX;
        let is_there = self.folder.as_ref().is_some_and(|folder| folder.join(&name).exists());
        (name, is_there)
    }

    /// Returns the cached result for `key`, or the result of `make`, which is then cached. The key is everything that the
    /// result depends on apart from the simulator; it is only computed if results are cached.
    ///
    /// # Errors
    /// Those of `key` and `make`, and if the result cannot be written.
    pub fn get_or<T, E>(
        &self,
        key: impl FnOnce() -> Result<Vec<Vec<u8>>, E>,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<Error>,
    {
        let Some(folder) = &self.folder else { return make() };
        let file = folder.join(self.name(&key()?) + SUFFIX);
        if let Some(kept) = load(&file) {
            return Ok(kept);
        }
        let made = make()?;
        store(&file, &made)?;
        Ok(made)
    }

    /// Returns the name of the result for a key: a digest of the key and of the simulator.
    pub(crate) fn name(&self, key: &[Vec<u8>]) -> String {
        let mut digest = Sha256::new();
        for part in std::iter::once(&self.simulator).chain(key) {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Reads a cached result; a missing or damaged file has none.
pub(crate) fn load<T: DeserializeOwned>(file: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

/// Writes a file atomically.
pub(crate) fn store<T: Serialize>(file: &Path, value: &T) -> Result<(), Error> {
    let failed = |e: std::io::Error| Error::Request(format!("{}: cannot be written ({e})", file.display()));
    let mut draft = tempfile::NamedTempFile::new_in(file.parent().unwrap_or(Path::new("."))).map_err(failed)?;
    let text = serde_json::to_vec(value).map_err(|e| failed(e.into()))?;
    draft.write_all(&text).map_err(failed)?;
    draft.persist(file).map_err(|e| failed(e.error))?;
    Ok(())
}

/// Reads a program's file.
pub(crate) fn content(file: &Path) -> Result<Vec<u8>, Error> {
    Ok(fxscope_host::read(file, MAX_PROGRAM_BYTES).map_err(|e| e.to_string())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(cache: &Cache, key: &[&[u8]], value: u32) -> u32 {
        let key = || Ok(key.iter().map(|part| part.to_vec()).collect());
        cache.get_or::<u32, Error>(key, || Ok(value)).expect("it can be made")
    }

    #[test]
    fn a_result_is_made_once_for_each_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::of_this_program(Some(folder.path())).expect("a cache");
        assert_eq!(get(&cache, &[b"a", b"b"], 1), 1);
        assert_eq!(get(&cache, &[b"a", b"b"], 2), 1, "kept");
        assert_eq!(get(&cache, &[b"ab"], 3), 3, "parts of keys do not run together");
        assert_eq!(get(&Cache::none(), &[b"a", b"b"], 4), 4, "nothing is kept");
    }

    #[test]
    fn a_damaged_file_holds_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::of_this_program(Some(folder.path())).expect("a cache");
        get(&cache, &[b"a"], 1);
        for file in std::fs::read_dir(folder.path()).expect("readable") {
            std::fs::write(file.expect("a file").path(), "{").expect("writable");
        }
        assert_eq!(get(&cache, &[b"a"], 2), 2);
    }
}
