//! Packs the rows of `validation` and the programs of `kernels/prebuilt`: compressed, they take less than half of the space.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

/// What is packed: the list's name, the folder of the sources, the ending of the files' names, and a file that is not packed.
const LISTS: [(&str, &str, &str, Option<&str>); 2] = [
    ("ROWS", "validation", "csv", None),
    // `fxscope calibrate` has collect.elf.
    ("PROGRAMS", "kernels/prebuilt", "elf", Some("collect.elf")),
];

fn main() -> Result<(), Box<dyn Error>> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let mut code = String::new();
    for (list, folder, ending, left_out) in LISTS {
        println!("cargo::rerun-if-changed={}", sources.join(folder).display());
        writeln!(code, "const {list}: &[(&str, &[u8])] = &[")?;
        for file in files(&sources.join(folder), ending)? {
            let name = file.file_name().and_then(|name| name.to_str()).ok_or("a name that is no UTF-8")?;
            if Some(name) != left_out {
                std::fs::write(out.join(format!("{name}.gz")), compressed(&std::fs::read(&file)?)?)?;
                writeln!(code, "    ({name:?}, include_bytes!({:?})),", format!("{name}.gz"))?;
            }
        }
        writeln!(code, "];")?;
    }
    std::fs::write(out.join("built_in.rs"), code)?;
    Ok(())
}

/// The files of a folder with this ending, by name.
fn files(folder: &Path, ending: &str) -> std::io::Result<Vec<PathBuf>> {
    let mut files = std::fs::read_dir(folder)?.map(|file| Ok(file?.path())).collect::<std::io::Result<Vec<_>>>()?;
    files.retain(|file| file.extension().is_some_and(|found| found == ending));
    files.sort();
    Ok(files)
}

fn compressed(content: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    encoder.finish()
}
