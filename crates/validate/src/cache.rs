//! What runs counted, kept until program, arguments, options or simulator change.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use crate::Run;

/// A folder with a file for each run, named by a digest of all that the run depends on.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: Option<PathBuf>,
    simulator: Vec<u8>,
}

impl Cache {
    /// A cache in `folder`, which is made when it is missing, for runs of the executable `simulator`; without a folder
    /// nothing is kept.
    ///
    /// # Errors
    /// When the folder cannot be made or the executable cannot be read.
    pub fn new(folder: Option<&Path>, simulator: &Path) -> Result<Cache, String> {
        if let Some(folder) = folder {
            std::fs::create_dir_all(folder)
                .map_err(|e| format!("{}: cannot be made ({e}); name another with --cache", folder.display()))?;
        }
        let mut digest = Sha256::new();
        digest.update(read(simulator)?);
        Ok(Cache { folder: folder.map(Path::to_owned), simulator: digest.finalize().to_vec() })
    }

    /// The file of what follows from these parts, whatever they are, and the simulator; `None` when nothing is kept.
    #[must_use]
    pub fn place(&self, parts: &[&[u8]]) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        let mut digest = Sha256::new();
        for part in std::iter::once(&&*self.simulator).chain(parts) {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        let name: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Some(folder.join(name + ".json"))
    }

    /// The file of a run; `None` when nothing is kept.
    ///
    /// # Errors
    /// When the program cannot be read.
    pub(crate) fn file(&self, run: &Run, program: &Path) -> Result<Option<PathBuf>, String> {
        if self.folder.is_none() {
            return Ok(None);
        }
        Ok(self.place(&[&read(program)?, run.arguments.as_bytes(), run.options.as_bytes()]))
    }

    /// What is kept in a file. A file that is missing or damaged holds nothing.
    #[must_use]
    pub fn load<T: DeserializeOwned>(file: &Path) -> Option<T> {
        serde_json::from_slice(&std::fs::read(file).ok()?).ok()
    }

    /// Keeps what was counted, as a whole.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn store<T: Serialize>(file: &Path, counts: &T) -> Result<(), String> {
        let failed = |e: std::io::Error| format!("{}: cannot be written ({e})", file.display());
        let mut draft = tempfile::NamedTempFile::new_in(file.parent().unwrap_or(Path::new("."))).map_err(failed)?;
        let text = serde_json::to_vec(counts).map_err(|e| failed(e.into()))?;
        draft.write_all(&text).map_err(failed)?;
        draft.persist(file).map_err(|e| failed(e.error))?;
        Ok(())
    }
}

/// Largest program, bytes.
const MOST_BYTES: u64 = 4 << 30;

fn read(file: &Path) -> Result<Vec<u8>, String> {
    fxscope_host::read(file, MOST_BYTES).map_err(|e| e.to_string())
}
