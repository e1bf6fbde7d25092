//! The programs of laboratories: those that fxscope contains, or a folder of the user.

use std::path::{Path, PathBuf};

use fxscope_host::{PrivateFolder, private_folder_in, remove_dead_folders};

use crate::Error;

/// Prefix of the folders that programs are unpacked to.
const PREFIX: &str = "fxscope-programs-";

/// A folder with the programs of `kernels/prebuilt`.
#[derive(Debug)]
pub struct Programs(Place);

#[derive(Debug)]
enum Place {
    Given(PathBuf),
    /// Removed when dropped.
    Unpacked(PrivateFolder),
}

impl Programs {
    /// Returns a folder of the user or, without one, a temporary folder with the programs that fxscope contains.
    ///
    /// # Errors
    /// If the temporary folder cannot be made.
    pub fn new(folder: Option<&Path>) -> Result<Programs, Error> {
        if let Some(folder) = folder {
            return Ok(Programs(Place::Given(folder.to_owned())));
        }
        let parent = std::env::temp_dir();
        remove_dead_folders(&parent, PREFIX);
        let failed = |e: std::io::Error| format!("{}: has no room for the programs ({e})", parent.display());
        let folder = private_folder_in(&parent, PREFIX).map_err(failed)?;
        fxscope_validate::unpack_programs(folder.path())?;
        Ok(Programs(Place::Unpacked(folder)))
    }

    /// Returns the folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        match &self.0 {
            Place::Given(folder) => folder,
            Place::Unpacked(folder) => folder.path(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_there_as_long_as_they_are_needed() {
        let programs = Programs::new(None).expect("room");
        let folder = programs.folder().to_owned();
        assert!(folder.join("triad-l1.elf").is_file());
        drop(programs);
        assert!(!folder.exists());
        assert_eq!(Programs::new(Some(Path::new("here"))).expect("given").folder(), Path::new("here"));
    }
}
