//! Record files: opens, checks, reads, and appends runs.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fxscope_host::{Found, OutputFile, Refusal, file_size_limit};
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags, TransactionBehavior};

use crate::Run;
use crate::schema::{self, APPLICATION, OLDEST, VERSION};
use crate::{read, write};

/// Why a record file cannot be read or written. Each message says what to do.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the fields are the numbers and names in the messages
pub enum RecordError {
    #[error("{}: {source}; check the path, its permissions and the free space", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{}: {why}", path.display())]
    Refused { path: PathBuf, why: String },
    #[error("{}: file size limit (ulimit -f) reached, which is {limit} bytes; raise it, or choose another file", path.display())]
    Limit { path: PathBuf, limit: u64 },
    #[error("{}: {what}; give the path of a file", path.display())]
    NotAFile { path: PathBuf, what: &'static str },
    #[error("{}: not an fxscope record ({what}); it is left unchanged, choose another file", path.display())]
    NotARecord { path: PathBuf, what: String },
    #[error("{}: written by a newer fxscope (schema {found}, this one knows {VERSION}); update fxscope", path.display())]
    Newer { path: PathBuf, found: i32 },
    #[error("{}: damaged ({what}); restore it from a copy, or repeat the run into another file", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error("{}: in use by another program; try again when that has ended", path.display())]
    Busy { path: PathBuf },
    #[error("{}: no space left on the device; free some space, or choose a file elsewhere", path.display())]
    Full { path: PathBuf },
    #[error("{}: would become larger than a record can be (1 GiB); add the run to another file", path.display())]
    TooLarge { path: PathBuf },
    #[error("{}: cannot be written ({what}); check the permissions of the file and its folder", path.display())]
    NotWritable { path: PathBuf, what: String },
    #[error("{}: the run cannot be stored: {what}", path.display())]
    Run { path: PathBuf, what: String },
}

/// How long to wait for another program that writes the same file.
const PATIENCE: Duration = Duration::from_secs(10);

/// Number of counts from which a file uses large database pages.
const MANY_COUNTS: usize = 1 << 20;
/// Size of a database header, bytes.
const HEADER: usize = 100;

/// Reads all runs of a file, oldest first.
///
/// # Errors
/// If the file is not a record, or is damaged.
pub fn load(path: &Path) -> Result<Vec<Run>, RecordError> {
    let db = open(path)?;
    let count = check_runs(&db, path)?;
    read_runs(&db, count, path)
}

fn read_runs(db: &Connection, count: u32, path: &Path) -> Result<Vec<Run>, RecordError> {
    read::read_all(db, count).map_err(|e| sql_error(path, &e))
}

/// Checks every run against its digest; returns the number of runs.
fn check_runs(db: &Connection, path: &Path) -> Result<u32, RecordError> {
    let sql = |e| sql_error(path, &e);
    let count = schema::runs(db).map_err(sql)?;
    let rows: u32 = db.query_row("SELECT count(*) FROM run", [], |r| r.get(0)).map_err(sql)?;
    if rows != count {
        return Err(damaged(path, &format!("{rows} runs of {count}")));
    }
    for id in 1..=count {
        if schema::digest(db, id).map_err(sql)? != schema::stored_digest(db, id).map_err(sql)? {
            return Err(damaged(path, &format!("run {id} differs from what was written")));
        }
    }
    Ok(count)
}

/// Appends `run` to the file, like [`append_all`].
///
/// # Errors
/// As for [`append_all`].
pub fn append(path: &Path, run: &Run) -> Result<(), RecordError> {
    append_all(path, std::slice::from_ref(run))
}

/// Appends `runs` to the file, like [`Target::append`].
///
/// # Errors
/// If the file is not an intact record, or cannot be written.
pub fn append_all(path: &Path, runs: &[Run]) -> Result<(), RecordError> {
    Target::find(path)?.append(runs)
}

/// A record file for runs that are yet to be made.
#[derive(Debug)]
pub struct Target(OutputFile);

impl Target {
    /// Finds the file at `path`, or a place for it, and checks that [`Target::append`] will be able to write a record
    /// there. Changes nothing.
    ///
    /// # Errors
    /// The errors of [`Target::append`], unless something changes in between.
    pub fn check(path: &Path) -> Result<Target, RecordError> {
        let target = Target::find(path)?;
        if path.exists() {
            check_runs(&open(path)?, path)?;
        }
        Ok(target)
    }

    fn find(path: &Path) -> Result<Target, RecordError> {
        let not = |what| RecordError::NotAFile { path: path.to_owned(), what };
        if path == Path::new("-") {
            return Err(not("standard output cannot hold a record"));
        }
        if path.file_name().is_none() && !path.exists() {
            return Err(not("names no file"));
        }
        let file = match OutputFile::find(path) {
            Ok(Found::File(file)) => file,
            Ok(Found::Folder) => return Err(not("is a folder")),
            Ok(Found::Stream) => return Err(not("is not a regular file")),
            Err(source) => return Err(io_error(path, source)),
        };
        if journal(file.path()).exists() {
            // A program that wrote in place was interrupted: opening the file rolls it back.
            open(file.path())?;
        }
        Ok(Target(file))
    }

    /// Appends `runs` to the file, which is created if missing. The operation is atomic: afterwards the file holds its
    /// earlier contents with all of `runs` or with none; an incomplete new file is not created. The path is not looked
    /// up again.
    ///
    /// # Errors
    /// If the file is not an intact record, or cannot be written.
    pub fn append(&self, runs: &[Run]) -> Result<(), RecordError> {
        let Target(output) = self;
        let path = output.path();
        let io = |source| io_error(path, source);
        loop {
            let Some(file) = output.current().map_err(io)? else {
                let bytes = database(path, runs)?;
                match output.create(|out| out.write_all(&bytes)) {
                    // Another program has created the file in the meantime.
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                    done => return done.map_err(io),
                }
            };
            lock(&file, path)?;
            // The previous holder of the lock has replaced the file.
            if output.is(&file).map_err(io)? {
                // The file stays open, and thus locked, until it is replaced.
                let bytes = extended(&file, path, runs)?;
                return output.replace(|out| out.write_all(&bytes)).map_err(io);
            }
        }
    }
}

/// Locks `file` against other writers until it is closed.
fn lock(file: &File, path: &Path) -> Result<(), RecordError> {
    let end = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
            Err(TryLockError::WouldBlock) => return Err(RecordError::Busy { path: path.to_owned() }),
            // File systems without locks.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => return Ok(()),
            Err(TryLockError::Error(source)) => return Err(io_error(path, source)),
        }
    }
}

/// The bytes of a new file with these runs.
fn database(path: &Path, runs: &[Run]) -> Result<Vec<u8>, RecordError> {
    let sql = |e| sql_error(path, &e);
    let mut db = Connection::open_in_memory().map_err(sql)?;
    schema::create(&db, page_bytes(runs)).map_err(sql)?;
    add(&mut db, path, runs)?;
    Ok(db.serialize(MAIN_DB).map_err(sql)?.to_vec())
}

/// The bytes of a file with the runs of the record `file`, followed by `runs`.
fn extended(mut file: &File, path: &Path, runs: &[Run]) -> Result<Vec<u8>, RecordError> {
    let sql = |e| sql_error(path, &e);
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|source| io_error(path, source))?;
    check_header(&bytes, path)?;
    let mut db = Connection::open_in_memory().map_err(sql)?;
    db.deserialize_read_exact(MAIN_DB, &bytes[..], bytes.len(), false).map_err(sql)?;
    sound(&db, bytes.len() as u64, path)?;
    let count = check_runs(&db, path)?;
    if schema::version(&db).map_err(sql)? < VERSION {
        // Older runs are rewritten with the current schema, too.
        let mut all = read_runs(&db, count, path)?;
        all.extend_from_slice(runs);
        return database(path, &all);
    }
    add(&mut db, path, runs)?;
    Ok(db.serialize(MAIN_DB).map_err(sql)?.to_vec())
}

/// Inserts `runs` into a database in memory.
fn add(db: &mut Connection, path: &Path, runs: &[Run]) -> Result<(), RecordError> {
    let full = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::OutOfMemory | ErrorCode::TooBig) => {
            RecordError::TooLarge { path: path.to_owned() }
        }
        _ => sql_error(path, &error),
    };
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(full)?;
    insert(&transaction, runs).map_err(|e| match e {
        rusqlite::Error::ToSqlConversionFailure(what) => {
            RecordError::Run { path: path.to_owned(), what: what.to_string() }
        }
        rusqlite::Error::SqliteFailure(f, what) if f.code == ErrorCode::ConstraintViolation => {
            RecordError::Run { path: path.to_owned(), what: what.unwrap_or_else(|| f.to_string()) }
        }
        e => full(e),
    })?;
    transaction.commit().map_err(full)
}

fn insert(db: &Connection, runs: &[Run]) -> rusqlite::Result<()> {
    runs.iter().try_for_each(|run| write::insert(db, run))
}

/// Journal of a program that writes in place, with the file's earlier contents.
fn journal(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-journal");
    name.into()
}

/// Page size of a new file for these runs: large tables of counts waste little space in large pages.
fn page_bytes(runs: &[Run]) -> u32 {
    let regions = runs.iter().flat_map(|run| &run.regions);
    let counts: usize = regions.flat_map(|region| &region.passes).map(|counts| counts.values().len()).sum();
    if counts < MANY_COUNTS { 4 << 10 } else { 64 << 10 }
}

/// Opens an existing record file, and checks that it is a sound database.
fn open(path: &Path) -> Result<Connection, RecordError> {
    let io = |source| RecordError::Io { path: path.to_owned(), source };
    let mut header = Vec::new();
    let file = fxscope_host::open(path, u64::MAX).map_err(|e| match e.why {
        Refusal::Io(source) => io(source),
        why => RecordError::Refused { path: path.to_owned(), why: why.to_string() },
    })?;
    file.take(HEADER as u64).read_to_end(&mut header).map_err(io)?;
    // Checked before anything else: foreign files are never opened for writing.
    check_header(&header, path)?;
    // Required for reading, too: a journal left by an interrupted program is rolled back first.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let setup = || {
        let db = Connection::open_with_flags(path, flags)?;
        db.busy_timeout(PATIENCE)?;
        Ok(db)
    };
    let db = setup().map_err(|e| sql_error(path, &e))?;
    // The length after the journal was rolled back, which the first access does.
    db.pragma_query_value(None, "page_count", |_| Ok(())).map_err(|e| sql_error(path, &e))?;
    sound(&db, std::fs::metadata(path).map_err(io)?.len(), path)?;
    Ok(db)
}

/// Checks the first bytes (database file format, <https://www.sqlite.org/fileformat.html>, section 1.3).
fn check_header(header: &[u8], path: &Path) -> Result<(), RecordError> {
    let not = |what: &str| RecordError::NotARecord { path: path.to_owned(), what: what.to_owned() };
    let number = |at: usize| i32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if header.is_empty() {
        return Err(not("it is empty"));
    }
    if !header.starts_with(b"SQLite format 3\0") {
        return Err(not("no SQLite database"));
    }
    if header.len() < HEADER {
        return Err(damaged(path, "shorter than a database header"));
    }
    if number(68) != APPLICATION {
        return Err(not("an SQLite database of another program"));
    }
    match number(60) {
        OLDEST..=VERSION => Ok(()),
        found if found > VERSION => Err(RecordError::Newer { path: path.to_owned(), found }),
        found => Err(damaged(path, &format!("schema version {found}"))),
    }
}

/// Refuses a database of `length` bytes that is inconsistent, or truncated within its last page, since SQLite reads
/// missing bytes as zeros.
fn sound(db: &Connection, length: u64, path: &Path) -> Result<(), RecordError> {
    let sql = |e| sql_error(path, &e);
    db.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;").map_err(sql)?;
    let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, u64>(0)).map_err(sql);
    let wanted = number("page_count")? * number("page_size")?;
    if length < wanted {
        return Err(damaged(path, &format!("it is truncated: {length} bytes of {wanted}")));
    }
    let verdict: String = db.query_row("PRAGMA integrity_check(1)", [], |r| r.get(0)).map_err(sql)?;
    if verdict == "ok" { Ok(()) } else { Err(damaged(path, &verdict)) }
}

/// Translates an I/O error.
fn io_error(path: &Path, source: std::io::Error) -> RecordError {
    let path = path.to_owned();
    match source.kind() {
        ErrorKind::FileTooLarge => match file_size_limit() {
            Some(limit) => RecordError::Limit { path, limit },
            None => RecordError::Io { path, source },
        },
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => RecordError::Full { path },
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            RecordError::NotWritable { path, what: source.to_string() }
        }
        _ => RecordError::Io { path, source },
    }
}

fn damaged(path: &Path, what: &str) -> RecordError {
    RecordError::Damaged { path: path.to_owned(), what: what.to_owned() }
}

/// Translates a database error. Rows that cannot be read back count as damage.
fn sql_error(path: &Path, error: &rusqlite::Error) -> RecordError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => RecordError::Full { path },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => RecordError::Busy { path },
        Some(
            ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::SystemIoFailure,
        ) => RecordError::NotWritable { path, what: error.to_string() },
        _ => RecordError::Damaged { path, what: error.to_string() },
    }
}
