//! The rows and the programs of `validation` and `kernels/prebuilt`, so that no command needs the sources.

use std::path::Path;

macro_rules! files {
    ($read:ident, $folder:literal, $suffix:literal, $($name:literal),+ $(,)?) => {
        &[$((concat!($name, $suffix), $read!(concat!("../../../", $folder, "/", $name, $suffix)))),+]
    };
}

/// The files of `validation`, by name.
pub(crate) const ROWS: &[(&str, &str)] = files![
    include_str,
    "validation",
    ".csv",
    "cmg",
    "copy",
    "core",
    "gaps",
    "gather-scatter",
    "l1",
    "l2",
    "latency",
    "libraries",
    "memory",
    "openmp",
    "pages",
    "power",
    "prefetch",
    "programs",
    "public-likwid",
    "public-steps",
    "runs",
    "sector",
    "sfi",
    "streamlike",
    "workbooks",
    "zfill",
];

/// The programs of `kernels/prebuilt` that runs use, by name.
const PROGRAMS: &[(&str, &[u8])] = files![
    include_bytes,
    "kernels/prebuilt",
    ".elf",
    "arith-types",
    "arith",
    "atomics",
    "axhelm",
    "barrier",
    "blocks",
    "chase",
    "copy-zfill",
    "copy",
    "dgemm-threads",
    "dgemm-tile",
    "dgemm",
    "dtrn3",
    "family",
    "gather-threads",
    "gather",
    "hashjoin",
    "horner",
    "ill",
    "interlock",
    "litmus",
    "lock",
    "maps",
    "masked",
    "nbody",
    "openmp",
    "pingpong",
    "plain-threads",
    "plain",
    "rowadd",
    "sector-threads",
    "sector",
    "sharing",
    "sort",
    "spmv",
    "stencil",
    "steps",
    "streamlike",
    "streams20",
    "tlb-arrays",
    "tlb-segments",
    "tlb-stride",
    "triad-l1",
    "triad-l2",
    "triad-mem-8x",
    "triad-mem-swpf",
    "triad-mem-zfill",
    "triad-mem",
    "triad-threads",
    "triadt",
    "twst",
    "types",
    "unary",
];

/// Writes the programs that fxscope contains to a folder, which is created if it is missing; returns how many there are.
///
/// # Errors
/// If the folder or a file cannot be written.
pub fn unpack_programs(folder: &Path) -> Result<usize, String> {
    let failed = |e: std::io::Error| format!("{}: cannot be written ({e})", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    for (name, content) in PROGRAMS {
        let file = folder.join(name);
        std::fs::write(&file, content).map_err(failed)?;
        make_executable(&file).map_err(failed)?;
    }
    Ok(PROGRAMS.len())
}

/// Lets the program be started, by an emulator of the user's choice as well.
fn make_executable(file: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use super::*;

    /// The names of the files in a folder of the sources that end with `suffix`.
    fn names(folder: &str, suffix: &str) -> BTreeSet<String> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
        let files = std::fs::read_dir(folder).expect("the sources are there");
        let names = files.map(|file| file.expect("readable").file_name().to_string_lossy().into_owned());
        names.filter(|name| name.ends_with(suffix)).collect()
    }

    #[test]
    fn every_file_of_rows_is_contained() {
        let contained = ROWS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(names("validation", ".csv"), contained);
    }

    #[test]
    fn every_program_is_contained_but_that_of_calibration() {
        let mut files = names("kernels/prebuilt", ".elf");
        // `fxscope calibrate` has it.
        assert!(files.remove("collect.elf"));
        assert_eq!(files, PROGRAMS.iter().map(|(name, _)| (*name).to_owned()).collect());
    }

    #[test]
    fn programs_are_written_to_a_new_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("a/b");
        assert_eq!(unpack_programs(&folder), Ok(PROGRAMS.len()));
        let (name, content) = PROGRAMS[0];
        assert_eq!(std::fs::read(folder.join(name)).expect("written"), content);
        assert!(unpack_programs(&folder.join(name)).is_err_and(|e| e.contains(name)), "a file is no folder");
    }
}
