//! Where outputs go: files that are replaced as a whole, and streams.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use fxscope::host::{draft_in, write_error};
use fxscope::linux::Stdio;

use super::Failure;

/// What standard output is called.
const STANDARD_OUTPUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// A place for output that could be written when it was checked.
pub(super) enum Target {
    StandardOutput,
    /// A file that is replaced as a whole.
    File(PathBuf),
    /// A device or a pipe.
    Stream(PathBuf),
}

impl Target {
    /// Checks the argument of an option before there is anything to write. Nothing is changed.
    pub(super) fn check(path: &Path) -> Result<Target, Failure> {
        if STANDARD_OUTPUT.iter().any(|name| path == Path::new(name)) {
            return Ok(Target::StandardOutput);
        }
        Ok(replaceable(path)?.map_or_else(|| Target::Stream(path.to_owned()), Target::File))
    }

    /// Writes `value`. A file holds either what it held before or the whole of it.
    pub(super) fn write(self, value: &serde_json::Value) -> Result<(), Failure> {
        self.write_bytes(format!("{value:#}\n").as_bytes())
    }

    /// Writes `bytes`. A file holds either what it held before or the whole of it.
    pub(super) fn write_bytes(self, bytes: &[u8]) -> Result<(), Failure> {
        self.write_with(|out| out.write_all(bytes))
    }

    /// Writes what `write` does. A file holds either what it held before or the whole of it.
    pub(super) fn write_with(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        let finish = |file: &mut dyn Write| {
            let mut out = BufWriter::new(file);
            write(&mut out)?;
            out.flush()
        };
        match self {
            Target::StandardOutput => super::told(finish(&mut io::stdout().lock())),
            Target::Stream(path) => {
                let open = OpenOptions::new().write(true).open(&path);
                open.and_then(|mut file| finish(&mut file)).map_err(|e| failure(&path, &e))
            }
            Target::File(path) => {
                let mut draft = draft(&path)?;
                finish(&mut draft).map_err(|e| failure(&path, &e))?;
                draft.persist(&path).map_err(|e| failure(&path, &e.error))?;
                Ok(())
            }
        }
    }
}

/// Checks that a file could be written to `path`, as a whole in place of one that is there, and gives its own path.
/// Nothing is changed. `None` for a device or a pipe.
pub(super) fn replaceable(path: &Path) -> Result<Option<PathBuf>, Failure> {
    match std::fs::metadata(path) {
        _ if path == Path::new("-") => Err("-: standard output cannot hold it; give the path of a file".into()),
        Ok(m) if m.is_dir() => Err(format!("{}: is a folder; give the path of a file", path.display()).into()),
        Ok(m) if m.is_file() => {
            OpenOptions::new().write(true).open(path).map_err(|e| failure(path, &e))?;
            // Through a link, the file itself is replaced.
            let path = std::fs::canonicalize(path).map_err(|e| failure(path, &e))?;
            draft(&path)?;
            Ok(Some(path))
        }
        Ok(_) => Ok(None),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            draft(path)?;
            Ok(Some(path.to_owned()))
        }
        Err(e) => Err(failure(path, &e)),
    }
}

/// The standard streams of a program, where they are not those of fxscope: when fxscope writes its results to standard output,
/// what the program writes there goes to standard error.
pub(super) fn program_streams(target: Option<&Target>) -> io::Result<Option<Stdio>> {
    if !matches!(target, Some(Target::StandardOutput)) {
        return Ok(None);
    }
    let mut stdio = Stdio::inherit()?;
    stdio.output = stdio.error.try_clone()?;
    Ok(Some(stdio))
}

/// The folder that a file is in.
pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file in the folder of `path` that vanishes unless it takes its place.
pub(super) fn draft(path: &Path) -> Result<tempfile::NamedTempFile, Failure> {
    draft_in(folder(path)).map_err(|e| failure(path, &e))
}

pub(super) fn failure(path: &Path, error: &std::io::Error) -> Failure {
    format!("{}: {}", path.display(), write_error(error)).into()
}
