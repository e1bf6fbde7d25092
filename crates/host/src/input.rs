//! Input files. Opening one never blocks, whatever its path names, and reading it ends.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// Why an input file was refused.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct InputError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub why: Refusal,
}

/// The reason for refusing a file, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The system cannot open or read it.
    #[error("cannot be read ({0}); check the path")]
    Io(io::Error),
    /// It is not a regular file, so reading might block or never end; what it is instead, with an article.
    #[error("is {0}; give the path of a regular file")]
    Kind(&'static str),
    /// It is larger than this, the maximum for such a file, in bytes.
    #[error("is larger than {}, the maximum accepted here; check the path", size(*.0))]
    TooLarge(u64),
    /// It is not text.
    #[error("is not text in UTF-8; check the path")]
    NotText,
}

impl InputError {
    fn new(path: &Path, why: Refusal) -> InputError {
        InputError { path: path.to_owned(), why }
    }
}

impl From<InputError> for io::Error {
    /// Returns the system's own error, or one with the reason, without the path and the advice.
    fn from(error: InputError) -> io::Error {
        let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        match error.why {
            Refusal::Io(source) => source,
            Refusal::Kind(what) => invalid(format!("it is {what}")),
            Refusal::TooLarge(most) => invalid(format!("it is larger than {}", size(most))),
            Refusal::NotText => invalid("it is not text in UTF-8".to_owned()),
        }
    }
}

/// Opens a regular file of at most `most` bytes for reading.
///
/// # Errors
/// When it cannot be opened, is not a regular file, or is larger.
pub fn open(path: &Path, most: u64) -> Result<File, InputError> {
    let (file, metadata) = open_any(path)?;
    if !metadata.is_file() {
        return Err(InputError::new(path, Refusal::Kind(kind(&metadata))));
    }
    check_size(path, metadata.len(), most)?;
    Ok(file)
}

/// Reads a file of at most `most` bytes: a regular file, or one that the caller has already opened and names by its descriptor,
/// such as `/dev/stdin` or `/dev/fd/3`.
///
/// # Errors
/// The same as those of [`open`].
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, InputError> {
    let (file, metadata) = open_any(path)?;
    if !metadata.is_file() && (metadata.is_dir() || !names_descriptor(path)) {
        return Err(InputError::new(path, Refusal::Kind(kind(&metadata))));
    }
    if metadata.is_file() {
        check_size(path, metadata.len(), most)?;
    }
    let mut bytes = Vec::new();
    let read = file.take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|source| InputError::new(path, Refusal::Io(source)))?;
    check_size(path, bytes.len() as u64, most)?;
    Ok(bytes)
}

/// Reads a text file of at most `most` bytes, with the same rules as [`read`].
///
/// # Errors
/// Those of [`read`], and when it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> Result<String, InputError> {
    String::from_utf8(read(path, most)?).map_err(|_| InputError::new(path, Refusal::NotText))
}

/// Opens a file without blocking: a plain open of a FIFO waits for its writer.
fn open_any(path: &Path) -> Result<(File, Metadata), InputError> {
    let io = |source| InputError::new(path, Refusal::Io(source));
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| io(e.into()))?;
    let flags = rustix::fs::fcntl_getfl(&file).map_err(|e| io(e.into()))?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK).map_err(|e| io(e.into()))?;
    let file = File::from(file);
    let metadata = file.metadata().map_err(io)?;
    Ok((file, metadata))
}

/// Returns whether a path names an open file of this process.
fn names_descriptor(path: &Path) -> bool {
    path == Path::new("/dev/stdin") || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd")
}

fn check_size(path: &Path, bytes: u64, most: u64) -> Result<(), InputError> {
    if bytes <= most { Ok(()) } else { Err(InputError::new(path, Refusal::TooLarge(most))) }
}

fn kind(metadata: &Metadata) -> &'static str {
    let kind = metadata.file_type();
    match () {
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a named pipe (FIFO)",
        () if kind.is_socket() => "a socket",
        () if kind.is_char_device() || kind.is_block_device() => "a device",
        () => "not a regular file",
    }
}

fn size(bytes: u64) -> String {
    [(30, "GiB"), (20, "MiB"), (10, "KiB")]
        .into_iter()
        .find(|(shift, _)| bytes >> shift << shift == bytes && bytes >> shift > 0)
        .map_or_else(|| format!("{bytes} bytes"), |(shift, unit)| format!("{} {unit}", bytes >> shift))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn refused(path: &Path) -> String {
        let opened = open(path, 1 << 20).expect_err("refused").to_string();
        assert_eq!(read(path, 1 << 20).expect_err("refused").to_string(), opened);
        opened
    }

    #[test]
    fn files_that_are_not_regular_are_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .expect("made");
        assert!(refused(&fifo).ends_with("is a named pipe (FIFO); give the path of a regular file"));
        assert!(refused(folder.path()).ends_with("is a folder; give the path of a regular file"));
        assert_eq!(refused(Path::new("/dev/zero")), "/dev/zero: is a device; give the path of a regular file");
        assert!(
            refused(&folder.path().join("nothing"))
                .ends_with("(No such file or directory (os error 2)); check the path")
        );
    }

    #[test]
    fn a_file_of_the_maximum_size_is_read_and_a_larger_one_refused() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&[b'x'; 2048]).expect("written");
        assert_eq!(read(file.path(), 2048).expect("read").len(), 2048);
        for refused in [open(file.path(), 2047).map(drop), read(file.path(), 1024).map(drop)] {
            assert!(matches!(refused, Err(InputError { why: Refusal::TooLarge(_), .. })), "{refused:?}");
        }
        let message = read(file.path(), 1024).expect_err("too large").to_string();
        assert!(message.ends_with("is larger than 1 KiB, the maximum accepted here; check the path"), "{message}");
        // Refusing a sparse file takes no memory.
        file.as_file().set_len(1 << 40).expect("a hole");
        assert!(matches!(read(file.path(), 1 << 30), Err(InputError { why: Refusal::TooLarge(_), .. })));
    }

    #[test]
    fn a_pipe_that_the_caller_has_opened_is_read_up_to_the_limit() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let path = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader)));
        writer.write_all(b"text").expect("written");
        drop(writer);
        assert_eq!(read_text(&path, 4).expect("read"), "text");
        let (reader, writer) = io::pipe().expect("a pipe");
        let path = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader)));
        let endless = std::thread::spawn(move || while (&writer).write_all(&[0; 4096]).is_ok() {});
        assert!(matches!(read(&path, 100_000), Err(InputError { why: Refusal::TooLarge(_), .. })));
        drop(reader);
        endless.join().expect("its reader is gone");
    }
}
