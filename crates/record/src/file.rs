//! Record files: opening, checking, reading, adding a run.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fxscope_host::{DraftApart, Refusal, draft_apart_in, file_size_limit};
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::Run;
use crate::schema::{self, APPLICATION, OLDEST, VERSION};
use crate::{read, write};

/// Why a record file cannot be read or written. Each message says what to do.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the fields are the numbers and names in the messages
pub enum RecordError {
    #[error("{}: {source}; check the path, its permissions and the free space there", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{}: {why}", path.display())]
    Refused { path: PathBuf, why: String },
    #[error("{}: file size limit (ulimit -f) reached, which is {limit} bytes; raise it, or choose another file", path.display())]
    Limit { path: PathBuf, limit: u64 },
    #[error("{}: {what}; give the path of a file", path.display())]
    NotAFile { path: PathBuf, what: &'static str },
    #[error("{}: not an fxscope record ({what}); it is left as it is, choose another file", path.display())]
    NotARecord { path: PathBuf, what: String },
    #[error("{}: written by a newer fxscope (schema {found}, this one knows {VERSION}); update fxscope", path.display())]
    Newer { path: PathBuf, found: i32 },
    #[error("{}: damaged ({what}); restore it from a copy, or repeat the run into another file", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error("{}: in use by another program; try again when that has ended", path.display())]
    Busy { path: PathBuf },
    #[error("{}: no space left on the device; make room, or choose a file elsewhere", path.display())]
    Full { path: PathBuf },
    #[error("{}: cannot be written ({what}); check the permissions of the file and its folder", path.display())]
    NotWritable { path: PathBuf, what: String },
    #[error("{}: the run cannot be stored: {what}", path.display())]
    Run { path: PathBuf, what: String },
}

/// How long to wait for another program that writes the same file.
const PATIENCE: Duration = Duration::from_secs(10);

/// Counts from which on a file has large pages.
const MANY_COUNTS: usize = 1 << 20;
/// Bytes of a new file that are read as memory.
const MOST_MAPPED: i64 = 1 << 32;

/// Reads all runs of a file, oldest first.
///
/// # Errors
/// When the file is not a record, or not intact.
pub fn load(path: &Path) -> Result<Vec<Run>, RecordError> {
    let db = open(path)?;
    let count = check_runs(&db, path)?;
    (1..=count).map(|id| read::read(&db, id).map_err(|e| sql_error(path, &e))).collect()
}

/// The number of runs, each of which is what was written.
fn check_runs(db: &Connection, path: &Path) -> Result<u32, RecordError> {
    let sql = |e| sql_error(path, &e);
    let count = schema::runs(db).map_err(sql)?;
    let rows: u32 = db.query_row("SELECT count(*) FROM run", [], |r| r.get(0)).map_err(sql)?;
    if rows != count {
        return Err(damaged(path, &format!("{rows} runs of {count}")));
    }
    for id in 1..=count {
        if schema::digest(db, id).map_err(sql)? != schema::stored_digest(db, id).map_err(sql)? {
            return Err(damaged(path, &format!("run {id} is not what was written")));
        }
    }
    Ok(count)
}

/// Adds `run` to the file, as [`append_all`] does.
///
/// # Errors
/// As [`append_all`] has them.
pub fn append(path: &Path, run: &Run) -> Result<(), RecordError> {
    append_all(path, std::slice::from_ref(run))
}

/// Adds `runs` to the file, which is made when it does not exist. Whatever happens, the file afterwards holds
/// what it held before, with all of `runs` or without; a file that could not be finished is not made.
///
/// # Errors
/// When the file is not an intact record, or cannot be written.
pub fn append_all(path: &Path, runs: &[Run]) -> Result<(), RecordError> {
    if !exists(path)? {
        match create(path, runs) {
            // Another program has made the file in the meantime.
            Err(RecordError::Io { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => {}
            done => return done,
        }
    }
    let mut db = open(path)?;
    if schema::version(&db).map_err(|e| sql_error(path, &e))? < VERSION {
        drop(db);
        upgrade(path)?;
        db = open(path)?;
    }
    let sql = |e| sql_error(path, &e);
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
    check_runs(&transaction, path)?;
    insert(&transaction, path, runs)?;
    transaction.commit().map_err(sql)
}

/// Writes the runs of an older file again, with today's tables.
fn upgrade(path: &Path) -> Result<(), RecordError> {
    let draft = fill_draft(path, &load(path)?)?;
    draft.persist(path).map_err(|source| RecordError::Io { path: path.to_owned(), source })
}

/// Tells whether [`append`] would find a file that it may write, before there is a run to write.
///
/// # Errors
/// What [`append`] would find, apart from what happens in between.
pub fn check_target(path: &Path) -> Result<(), RecordError> {
    if !exists(path)? {
        return draft(path).map(|_| ());
    }
    let db = open(path)?;
    if db.is_readonly("main").map_err(|e| sql_error(path, &e))? {
        return Err(RecordError::NotWritable { path: path.to_owned(), what: "read-only".to_owned() });
    }
    check_runs(&db, path)?;
    // The rollback journal is written beside the file.
    draft(path).map(|_| ())
}

/// Whether there is a file at `path`.
fn exists(path: &Path) -> Result<bool, RecordError> {
    let what = match std::fs::metadata(path) {
        _ if path == Path::new("-") => "standard output cannot hold a record",
        Ok(m) if m.is_file() => return Ok(true),
        Ok(m) if m.is_dir() => "is a folder",
        Ok(_) => "is not a regular file",
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            if path.file_name().is_some() {
                return Ok(false);
            }
            "names no file"
        }
        Err(source) => return Err(RecordError::Io { path: path.to_owned(), source }),
    };
    Err(RecordError::NotAFile { path: path.to_owned(), what })
}

/// An empty file in the folder of `path` that vanishes unless it is given a name.
fn draft(path: &Path) -> Result<DraftApart, RecordError> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    draft_apart_in(folder).map_err(|source| RecordError::Io { path: path.to_owned(), source })
}

fn create(path: &Path, runs: &[Run]) -> Result<(), RecordError> {
    let draft = fill_draft(path, runs)?;
    draft.persist_noclobber(path).map_err(|source| RecordError::Io { path: path.to_owned(), source })
}

/// A file with these runs that has no name yet.
fn fill_draft(path: &Path, runs: &[Run]) -> Result<DraftApart, RecordError> {
    let sql = |e| sql_error(path, &e);
    let draft = draft(path)?;
    let mut db = connect(draft.file.path(), path)?;
    schema::create(&db, page_bytes(runs)).map_err(sql)?;
    // Nobody else has this file, so it may be read as memory: that is quicker.
    db.pragma_update(None, "mmap_size", MOST_MAPPED).map_err(sql)?;
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
    insert(&transaction, path, runs)?;
    transaction.commit().map_err(sql)?;
    db.close().map_err(|(_, e)| sql_error(path, &e))?;
    Ok(draft)
}

/// The size of the pages of a file that is made for these runs: large tables of counts waste little in large ones.
fn page_bytes(runs: &[Run]) -> u32 {
    let regions = runs.iter().flat_map(|run| &run.regions);
    let counts: usize = regions.flat_map(|region| &region.passes).map(|counts| counts.values().len()).sum();
    if counts < MANY_COUNTS { 4 << 10 } else { 64 << 10 }
}

fn insert(db: &Connection, path: &Path, runs: &[Run]) -> Result<(), RecordError> {
    runs.iter().try_for_each(|run| write::insert(db, run)).map_err(|e| match e {
        rusqlite::Error::ToSqlConversionFailure(what) => {
            RecordError::Run { path: path.to_owned(), what: what.to_string() }
        }
        rusqlite::Error::SqliteFailure(f, what) if f.code == ErrorCode::ConstraintViolation => {
            RecordError::Run { path: path.to_owned(), what: what.unwrap_or_else(|| f.to_string()) }
        }
        e => sql_error(path, &e),
    })
}

/// Opens a file that exists, is ours, and is sound as a database.
fn open(path: &Path) -> Result<Connection, RecordError> {
    check_header(path)?;
    let db = connect(path, path)?;
    let verdict: String =
        db.query_row("PRAGMA integrity_check(1)", [], |r| r.get(0)).map_err(|e| sql_error(path, &e))?;
    if verdict == "ok" { Ok(db) } else { Err(damaged(path, &verdict)) }
}

/// Looks at the first bytes before anything else touches the file: what is not ours is never opened for
/// writing. (Database file format, <https://www.sqlite.org/fileformat.html>, section 1.3.)
fn check_header(path: &Path) -> Result<(), RecordError> {
    let io = |source| RecordError::Io { path: path.to_owned(), source };
    let not = |what: &str| RecordError::NotARecord { path: path.to_owned(), what: what.to_owned() };
    let mut header = Vec::new();
    let file = fxscope_host::open(path, u64::MAX).map_err(|e| match e.why {
        Refusal::Io(source) => io(source),
        why => RecordError::Refused { path: path.to_owned(), why: why.to_string() },
    })?;
    file.take(100).read_to_end(&mut header).map_err(io)?;
    let number = |at: usize| i32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if header.is_empty() {
        return Err(not("it is empty"));
    }
    if !header.starts_with(b"SQLite format 3\0") {
        return Err(not("no SQLite database"));
    }
    if header.len() < 100 {
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

/// Opens the database `file`; messages speak of `path`.
fn connect(file: &Path, path: &Path) -> Result<Connection, RecordError> {
    // Reading too needs this: a journal that an interrupted program left is rolled back first.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let setup = || {
        let db = Connection::open_with_flags(file, flags)?;
        db.busy_timeout(PATIENCE)?;
        db.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;")?;
        Ok(db)
    };
    let db = setup().map_err(|e| sql_error(path, &e))?;
    check_length(&db, file, path)?;
    Ok(db)
}

/// Refuses a file that is cut within its last page: SQLite reads what is missing there as zeros.
fn check_length(db: &Connection, file: &Path, path: &Path) -> Result<(), RecordError> {
    let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, u64>(0)).map_err(|e| sql_error(path, &e));
    let wanted = number("page_count")? * number("page_size")?;
    let length = std::fs::metadata(file).map_err(|source| RecordError::Io { path: path.to_owned(), source })?.len();
    if length < wanted {
        return Err(damaged(path, &format!("it is cut off: {length} bytes of {wanted}")));
    }
    Ok(())
}

fn damaged(path: &Path, what: &str) -> RecordError {
    RecordError::Damaged { path: path.to_owned(), what: what.to_owned() }
}

/// What a failure of the database means for the file. Rows that do not read as they were written count as
/// damage.
fn sql_error(path: &Path, error: &rusqlite::Error) -> RecordError {
    let path = path.to_owned();
    match (error.sqlite_error_code(), file_size_limit()) {
        // SQLite does not say which error of the system it was.
        (Some(ErrorCode::SystemIoFailure), Some(limit)) => RecordError::Limit { path, limit },
        (Some(ErrorCode::DiskFull), _) => RecordError::Full { path },
        (Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked), _) => RecordError::Busy { path },
        (
            Some(
                ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::SystemIoFailure,
            ),
            _,
        ) => RecordError::NotWritable { path, what: error.to_string() },
        _ => RecordError::Damaged { path, what: error.to_string() },
    }
}
