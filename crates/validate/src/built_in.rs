//! The rows and the programs of `validation` and `kernels/prebuilt`, so that no command needs the sources.

use std::path::Path;

/// Files, compressed together: name and length of each, one after the other.
struct Packed {
    files: &'static [(&'static str, usize)],
    content: &'static [u8],
}

// ROWS, the files of `validation`, and PROGRAMS, those of `kernels/prebuilt`.
include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// The files of `validation`: names and contents.
///
/// # Errors
/// If the command's file is damaged.
pub(crate) fn rows() -> Result<Vec<(&'static str, String)>, String> {
    let text = |(name, content): (&'static str, Vec<u8>)| {
        Ok((name, String::from_utf8(content).map_err(|e| format!("{name}: {e}"))?))
    };
    ROWS.unpacked()?.into_iter().map(text).collect()
}

/// Writes the programs that fxscope contains to a folder, which is created if it is missing; returns how many there are.
///
/// # Errors
/// If the folder or a file cannot be written.
pub fn unpack_programs(folder: &Path) -> Result<usize, String> {
    let failed = |e: std::io::Error| format!("{}: cannot be written ({e})", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    for (name, content) in PROGRAMS.unpacked()? {
        let file = folder.join(name);
        std::fs::write(&file, content).map_err(failed)?;
        make_executable(&file).map_err(failed)?;
    }
    Ok(PROGRAMS.files.len())
}

impl Packed {
    /// The files and their contents, whose checksum is compared.
    fn unpacked(&self) -> Result<Vec<(&'static str, Vec<u8>)>, String> {
        let damaged = |why: &str| format!("the files inside fxscope are damaged ({why}); install fxscope again");
        let content = zstd::decode_all(self.content).map_err(|e| damaged(&e.to_string()))?;
        let mut rest = &content[..];
        let mut files = Vec::new();
        for &(name, length) in self.files {
            let (file, after) = rest.split_at_checked(length).ok_or_else(|| damaged("they are too short"))?;
            files.push((name, file.to_vec()));
            rest = after;
        }
        Ok(files)
    }
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
        let mut damaged = PROGRAMS.content.to_vec();
        damaged[PROGRAMS.content.len() / 2] ^= 1;
        let damaged = Packed { files: PROGRAMS.files, content: damaged.leak() };
        assert!(damaged.unpacked().is_err_and(|e| e.contains("install fxscope again")));
    }
}
