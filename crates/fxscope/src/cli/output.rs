//! Destinations of output: files that are replaced atomically, and streams. Both are opened before any work is done.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use fxscope::host::{Found, OutputFile, write_error};
use fxscope::linux::Stdio;
use fxscope::report::render::json;

use super::Failure;

/// Names of standard output.
const STANDARD_OUTPUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// A destination that was writable when it was checked.
pub(super) enum Target {
    StandardOutput,
    /// A file that is replaced atomically.
    File(OutputFile),
    /// A device or a pipe.
    Stream(PathBuf, File),
}

impl Target {
    /// Opens the destination named by an option before any work is done. Changes no file.
    pub(super) fn check(path: &Path) -> Result<Target, Failure> {
        if STANDARD_OUTPUT.iter().any(|name| path == Path::new(name)) {
            return Ok(Target::StandardOutput);
        }
        if let Some(file) = replaceable(path)? {
            return Ok(Target::File(file));
        }
        let stream = OpenOptions::new().write(true).open(path).map_err(|e| failure(path, &e))?;
        Ok(Target::Stream(path.to_owned(), stream))
    }

    /// Writes an answer with the version of its form. A file holds either its old content or all of the new.
    pub(super) fn write(self, value: &serde_json::Value) -> Result<(), Failure> {
        self.write_bytes(json::text(value).as_bytes())
    }

    /// Writes `bytes`. A file holds either its old content or all of the new.
    pub(super) fn write_bytes(self, bytes: &[u8]) -> Result<(), Failure> {
        self.write_with(|out| out.write_all(bytes))
    }

    /// Writes what `write` produces. A file holds either its old content or all of the new.
    pub(super) fn write_with(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        let finish = |file: &mut dyn Write| {
            let mut out = BufWriter::new(file);
            write(&mut out)?;
            out.flush()
        };
        match self {
            Target::StandardOutput => super::told(finish(&mut io::stdout().lock())),
            Target::Stream(path, mut stream) => finish(&mut stream).map_err(|e| failure(&path, &e)),
            Target::File(place) => place.replace(|file| finish(file)).map_err(|e| failure(place.path(), &e)),
        }
    }
}

/// Returns the destination for a file that is replaced atomically, `None` for a device or a pipe. Changes nothing.
pub(super) fn replaceable(path: &Path) -> Result<Option<OutputFile>, Failure> {
    if path == Path::new("-") {
        return Err("-: standard output cannot hold it; give the path of a file".into());
    }
    match OutputFile::find(path) {
        Ok(Found::File(file)) => Ok(Some(file)),
        Ok(Found::Folder) => Err(format!("{}: is a folder; give the path of a file", path.display()).into()),
        Ok(Found::Stream) => Ok(None),
        Err(error) => Err(failure(path, &error)),
    }
}

/// Returns the program's standard streams, if they differ from fxscope's: if fxscope writes its results to standard
/// output, the program's output goes to standard error.
pub(super) fn program_streams(target: Option<&Target>) -> io::Result<Option<Stdio>> {
    if !matches!(target, Some(Target::StandardOutput)) {
        return Ok(None);
    }
    let mut stdio = Stdio::inherit()?;
    stdio.output = stdio.error.try_clone()?;
    Ok(Some(stdio))
}

/// Returns the folder of a file.
pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(super) fn failure(path: &Path, error: &std::io::Error) -> Failure {
    format!("{}: {}", path.display(), write_error(error)).into()
}

/// Returns the cache folder of a command (XDG Base Directory specification).
pub(super) fn default_cache(command: &str) -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache")))?;
    Some(base.join("fxscope").join(command))
}
