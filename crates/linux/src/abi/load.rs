//! Loads a program into an empty address space: the file itself and, if it is dynamic, its interpreter.
//!
//! Used at the start of a process and by `execve`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use fxscope_guestmem::PAGE;
use fxscope_guestmem::{Memory, Prot, Segment};

use crate::abi::content::{Content, ProgramFile};
use crate::abi::elf::{ElfError, Image, Role};
use crate::abi::layout::SIGNAL_RETURN;
use crate::abi::stack::{self, InitialStack};
use crate::fs::vfs::View;
use crate::fs::vfs::access::real_path;
use crate::mm::mapped::{Mapped, MappedFiles};
use crate::platform::Platform;
use crate::signal::frame;
use crate::start_error::StartError;

/// A program in memory.
pub(crate) struct Loaded {
    /// The program's own file.
    pub image: Image,
    /// The base address of the interpreter (`AT_BASE`), or 0 without an interpreter.
    pub interpreter_base: u64,
    /// Address of the first instruction: the interpreter's if there is one.
    pub entry: u64,
    /// Which parts of the files are mapped where.
    pub mapped: MappedFiles,
}

/// Maps the program with the contents `file`, and its interpreter, found through `view`. `path` is for messages. `memory_bytes`
/// is the memory of the machine.
///
/// # Errors
/// When either file cannot be loaded or the interpreter is missing.
pub(crate) fn load(
    path: &Path,
    file: Content<'_>,
    view: &View,
    mem: &mut Memory,
    memory_bytes: u64,
) -> Result<Loaded, StartError> {
    let elf = |path: &Path| {
        let path = path.to_owned();
        move |source: ElfError| StartError::Elf { path, source }
    };
    let mut image = Image::read(file, Role::Program).map_err(elf(path))?;
    image.map_from(file, mem, memory_bytes).map_err(elf(path))?;
    let mut mapped = MappedFiles::default();
    note(&image, path, &mut mapped);
    let Some(name) = image.interpreter() else {
        return Ok(Loaded { entry: image.entry(), interpreter_base: 0, image, mapped });
    };
    let (found, file) = open_interpreter(path, name, view, memory_bytes)?;
    let content = Content::File(&file);
    let mut interpreter = Image::read(content, Role::Interpreter).map_err(elf(&found))?;
    interpreter.map_from(content, mem, memory_bytes).map_err(elf(&found))?;
    note(&interpreter, &found, &mut mapped);
    image.symbols.add(std::mem::take(&mut interpreter.symbols));
    Ok(Loaded { entry: interpreter.entry(), interpreter_base: interpreter.bias(), image, mapped })
}

/// Records where the parts of a file are mapped.
fn note(image: &Image, path: &Path, mapped: &mut MappedFiles) {
    let path = real_path(path);
    for (range, offset) in image.file_ranges() {
        mapped.insert(range.start, Mapped::private(range.end, path.clone(), offset));
    }
}

/// The arguments of a new program.
pub(crate) struct Arguments {
    /// Its path as requested (`AT_EXECFN`).
    pub program: Vec<u8>,
    /// `argv`, the program's name first.
    pub args: Vec<Vec<u8>>,
    /// The environment, each entry as `NAME=value`.
    pub env: Vec<Vec<u8>>,
    /// Bytes of stack.
    pub stack_bytes: u64,
}

/// A program ready to start: loaded, with its stack.
pub(crate) struct Ready {
    pub program: Loaded,
    pub stack: InitialStack,
}

/// Fills an empty address space so that the program can start; `random` is what `AT_RANDOM` points to.
///
/// # Errors
/// Those of [`load`], and when arguments or memory do not fit.
pub(crate) fn prepare(
    path: &Path,
    file: Content<'_>,
    view: &View,
    mem: &mut Memory,
    platform: &Platform,
    arguments: &Arguments,
    random: [u8; 16],
) -> Result<Ready, StartError> {
    let program = load(path, file, view, mem, platform.memory_bytes)?;
    map_return_code(mem).ok_or(StartError::NoMemory { bytes: PAGE })?;
    let stack = stack::build(mem, &program, platform, arguments, random)?;
    Ok(Ready { program, stack })
}

/// Maps the page that signal handlers return to.
fn map_return_code(mem: &mut Memory) -> Option<()> {
    mem.map(SIGNAL_RETURN, PAGE, Prot::RX, Segment::File).ok()?;
    mem.write_privileged(SIGNAL_RETURN, bytemuck::cast_slice(&frame::RETURN_CODE)).ok()
}

/// Opens the interpreter; returns its path on the host and its file.
fn open_interpreter(
    path: &Path,
    name: &[u8],
    view: &View,
    memory_bytes: u64,
) -> Result<(PathBuf, ProgramFile), StartError> {
    let opened = view.find(name).and_then(|found| Ok((ProgramFile::open(&found, memory_bytes)?, found)));
    let (file, found) = opened.map_err(|source| StartError::Interpreter {
        path: path.to_owned(),
        interpreter: OsStr::from_bytes(name).into(),
        searched: view.searched(),
        source,
    })?;
    Ok((found, file))
}
