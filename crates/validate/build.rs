//! Packs the rows of `validation` and the programs of `kernels/prebuilt`: compressed together, they take a fifth of the space, since programs
//! have code in common.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use zstd::Encoder;

/// What is packed: the list's name, the folder of the sources, the ending of the files' names, and a file that is not packed.
const LISTS: [(&str, &str, &str, Option<&str>); 2] = [
    ("ROWS", "validation", "csv", None),
    // `fxscope calibrate` has collect.elf.
    ("PROGRAMS", "kernels/prebuilt", "elf", Some("collect.elf")),
];

/// Higher ones take much longer and save little.
const LEVEL: i32 = 12;

fn main() -> Result<(), Box<dyn Error>> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let mut code = String::new();
    for (list, folder, ending, left_out) in LISTS {
        println!("cargo::rerun-if-changed={}", sources.join(folder).display());
        let mut files = files(&sources.join(folder), ending)?;
        files.retain(|file| left_out.is_none_or(|name| !file.ends_with(name)));
        let mut content = Vec::new();
        writeln!(code, "const {list}: Packed = Packed {{ files: &[")?;
        for file in files {
            let name = file.file_name().and_then(|name| name.to_str()).ok_or("a name that is no UTF-8")?;
            let file = std::fs::read(&file)?;
            writeln!(code, "    ({name:?}, {}),", file.len())?;
            content.extend(file);
        }
        std::fs::write(out.join(list), compressed(&content)?)?;
        writeln!(code, "], content: include_bytes!({list:?}) }};")?;
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
    let mut encoder = Encoder::new(Vec::new(), LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.long_distance_matching(true)?;
    encoder.write_all(content)?;
    encoder.finish()
}
