//! The rows and the programs of `validation` and `kernels/prebuilt`, so that no command needs the sources.

use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;

// ROWS, the files of `validation`, and PROGRAMS, those of `kernels/prebuilt`: names and compressed contents.
include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// The files of `validation`: names and contents.
///
/// # Errors
/// If the command's file is damaged.
pub(crate) fn rows() -> Result<Vec<(&'static str, String)>, String> {
    let text = |&(name, content): &(&'static str, &[u8])| {
        let text = String::from_utf8(unpacked(name, content)?).map_err(|e| format!("{name}: {e}"))?;
        Ok((name, text))
    };
    ROWS.iter().map(text).collect()
}

/// Writes the programs that fxscope contains to a folder, which is created if it is missing; returns how many there are.
///
/// # Errors
/// If the folder or a file cannot be written.
pub fn unpack_programs(folder: &Path) -> Result<usize, String> {
    let failed = |e: std::io::Error| format!("{}: cannot be written ({e})", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    for (name, content) in PROGRAMS {
        let file = folder.join(name);
        std::fs::write(&file, unpacked(name, content)?).map_err(failed)?;
        make_executable(&file).map_err(failed)?;
    }
    Ok(PROGRAMS.len())
}

/// A file's content, whose checksum is compared.
fn unpacked(name: &str, content: &[u8]) -> Result<Vec<u8>, String> {
    let mut unpacked = Vec::new();
    GzDecoder::new(content)
        .read_to_end(&mut unpacked)
        .map_err(|e| format!("{name}: the copy inside fxscope is damaged ({e}); install fxscope again"))?;
    Ok(unpacked)
}

/// Lets the program be started, by an emulator of the user's choice as well.
fn make_executable(file: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;

    /// The files in a folder of the sources that end with `suffix`.
    fn sources(folder: &str, suffix: &str) -> BTreeMap<String, Vec<u8>> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
        let files =
            std::fs::read_dir(folder).expect("the sources are there").map(|file| file.expect("readable").path());
        let named = files.filter(|file| file.to_string_lossy().ends_with(suffix));
        let name = |file: &Path| file.file_name().expect("a file").to_string_lossy().into_owned();
        named.map(|file| (name(&file), std::fs::read(&file).expect("readable"))).collect()
    }

    #[test]
    fn every_file_of_rows_is_contained() {
        let rows = rows().expect("undamaged").into_iter();
        assert_eq!(
            sources("validation", ".csv"),
            rows.map(|(name, text)| (name.to_owned(), text.into_bytes())).collect()
        );
    }

    #[test]
    fn every_program_but_that_of_calibration_is_written_to_a_new_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("a/b");
        let mut expected = sources("kernels/prebuilt", ".elf");
        assert!(expected.remove("collect.elf").is_some(), "`fxscope calibrate` has it");
        assert_eq!(unpack_programs(&folder), Ok(expected.len()));
        for (name, content) in &expected {
            assert!(std::fs::read(folder.join(name)).expect("written") == *content, "{name}");
        }
        assert!(
            unpack_programs(&folder.join("spmv.elf")).is_err_and(|e| e.contains("spmv.elf")),
            "a file is no folder"
        );
    }

    #[test]
    fn damage_is_noticed() {
        let (name, content) = PROGRAMS[0];
        let mut damaged = content.to_vec();
        damaged[content.len() / 2] ^= 1;
        assert!(unpacked(name, &damaged).is_err_and(|e| e.contains("install fxscope again")));
    }
}
