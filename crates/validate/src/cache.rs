//! What runs counted, kept until program, arguments, options or simulator change.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::{Counts, Run};

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

    /// The file of a run; `None` when nothing is kept.
    ///
    /// # Errors
    /// When the program cannot be read.
    pub(crate) fn file(&self, run: &Run, program: &Path) -> Result<Option<PathBuf>, String> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let mut digest = Sha256::new();
        for part in [&self.simulator, &read(program)?, run.arguments.as_bytes(), run.options.as_bytes()] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        let name: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Some(folder.join(name + ".json")))
    }

    /// What is kept in a file. A file that is missing or damaged holds nothing.
    pub(crate) fn load(file: &Path) -> Option<Counts> {
        serde_json::from_slice(&std::fs::read(file).ok()?).ok()
    }

    /// Keeps counts, as a whole.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn store(file: &Path, counts: &Counts) -> Result<(), String> {
        let failed = |e: std::io::Error| format!("{}: cannot be written ({e})", file.display());
        let mut draft = tempfile::NamedTempFile::new_in(file.parent().unwrap_or(Path::new("."))).map_err(failed)?;
        let text = serde_json::to_vec(counts).map_err(|e| failed(e.into()))?;
        draft.write_all(&text).map_err(failed)?;
        draft.persist(file).map_err(|e| failed(e.error))?;
        Ok(())
    }
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|e| format!("{}: cannot be read ({e})", file.display()))
}
