//! Puts a program into an empty address space: the file itself and, when it is dynamic, its interpreter.
//!
//! Used at the start of a process and by `execve`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use fxscope_aarch64::Memory;

use crate::elf::{ElfError, Image, Role};
use crate::process::StartError;
use crate::vfs::View;

/// A program in memory.
pub(crate) struct Loaded {
    /// The program's own file.
    pub image: Image,
    /// What was added to the interpreter's addresses (`AT_BASE`), or 0 without an interpreter.
    pub interpreter_base: u64,
    /// Address of the first instruction: the interpreter's when there is one.
    pub entry: u64,
}

/// Maps the program whose file has the contents `file`, and its interpreter, found through `view`. `path` is
/// for messages. `memory_bytes` is how much memory the machine has.
///
/// # Errors
/// When either file cannot be loaded or the interpreter is missing.
pub(crate) fn load(
    path: &Path,
    file: &[u8],
    view: &View,
    mem: &mut Memory,
    memory_bytes: u64,
) -> Result<Loaded, StartError> {
    let elf = |path: &Path| {
        let path = path.to_owned();
        move |source: ElfError| StartError::Elf { path, source }
    };
    let image = Image::parse(file).map_err(elf(path))?;
    image.map(file, mem, memory_bytes).map_err(elf(path))?;
    let Some(name) = image.interpreter() else {
        return Ok(Loaded { entry: image.entry(), interpreter_base: 0, image });
    };
    let (found, content) = read_interpreter(path, name, view)?;
    let interpreter = Image::parse_as(&content, Role::Interpreter).map_err(elf(&found))?;
    interpreter.map(&content, mem, memory_bytes).map_err(elf(&found))?;
    Ok(Loaded { entry: interpreter.entry(), interpreter_base: interpreter.bias(), image })
}

/// Where the interpreter is, and its contents.
fn read_interpreter(path: &Path, name: &[u8], view: &View) -> Result<(PathBuf, Vec<u8>), StartError> {
    let found = PathBuf::from(OsStr::from_bytes(&view.host_path(name.to_vec())));
    let content = std::fs::read(&found).map_err(|source| StartError::Interpreter {
        path: path.to_owned(),
        interpreter: OsStr::from_bytes(name).into(),
        searched: view.searched(),
        source,
    })?;
    Ok((found, content))
}
