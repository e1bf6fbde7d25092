//! The tables of a record file, and the digests of their rows.
//!
//! Every change of a table increments [`VERSION`]. Older versions can be read: 1 (without files and stall causes), 2
//! (without pages), 3 (one row per count), 4 (without intervals), 5 (intervals of whole runs only), 6 (without the machine's
//! tables), 7 (without processes and calls of MPI), 8 (without failures and skipped instructions), 9 (without samples), 10 (without
//! parts that were timed), 11 (without loops, call stacks, data objects and events of instructions) and 12 (without calls of functions).

use rusqlite::{Connection, OptionalExtension as _};
use sha2::{Digest as _, Sha256};

/// `PRAGMA application_id`: "fxsr".
pub(crate) const APPLICATION: i32 = 0x6678_7372;
/// The oldest readable version.
pub(crate) const OLDEST: i32 = 1;
/// `PRAGMA user_version`.
pub(crate) const VERSION: i32 = 13;

/// All rows of a run have its number in the column `run`. `digest` has for each run a digest over its rows in all other
/// tables and the digest of the previous run; `contents` the number of runs. `part` names stall causes (kind `stall`),
/// pipes (kind `pipe`) and events (kind `event`); `hot_part` has the cycles or events of each instruction for each of them, without
/// zeros, and `loop_part` those of each loop in `loop`. An imported
/// run has its format in `run` and its files in `source`.
///
/// `count` has one row per region and pass with all its counts, encoded by [`crate::pack`]: thread by thread in the
/// order of the region's `team` (`thread`, by position), and for each thread name by name in the order of the row's
/// `name_set` (`name`, by position). `fxscope report --format csv` lists them individually.
///
/// `series` has one row per series of intervals, and `interval` one row per interval with its counts, in the same
/// encoding and in the order of the series' `name_set`.
///
/// `described` has for a run the path of its machine and the texts of its `pmu.csv` and `groups.csv`. Each text is
/// stored once in `text`, under its SHA-256.
///
/// `process` has the processes of a run, `mpi_function` the sums of their calls of MPI, and `mpi_call` the first calls one by one, with
/// their function's position in `mpi_function`; `mpi_dropped` the number of further calls.
///
/// `sample` says how a run was sampled. `replicate` has for each region of such a run the totals of events in each replicate: event
/// by event in the order of the row's `name_set`, for each the total in the first replicate, then the differences of one replicate to the
/// next, as 0, −1, 1, −2 and so on numbered from 0, in the encoding of `count`.
///
/// `stack_frame` has the functions of call stacks, and `stack_samples` their samples, in the encoding of `count`: for each the process,
/// the thread, the ns since the one before, and the position in `stack_frame`.
///
/// `call_context` has functions in the contexts of their callers, and `call_counts` what threads have counted in them, in the encoding of
/// `count`: for each the context, the process, the thread, calls and cycles.
///
/// `data_object` has the data objects of a run, with their counts in the encoding of `count`; `data_line` the lines that moved most often
/// between threads, and `data_user` the threads of each.
///
/// `timed_part` says which part of a run was timed, if not all of it.
pub(crate) const SCHEMA: &str = "
CREATE TABLE contents (runs INTEGER NOT NULL) STRICT;
CREATE TABLE digest (run INTEGER PRIMARY KEY, value BLOB NOT NULL) STRICT;
CREATE TABLE run (run INTEGER PRIMARY KEY, tool TEXT NOT NULL, machine TEXT NOT NULL, machine_hash TEXT NOT NULL,
    mode TEXT NOT NULL, finish TEXT NOT NULL, status INTEGER, message TEXT, host_cpus INTEGER NOT NULL,
    wall_seconds REAL NOT NULL, mips REAL NOT NULL, peak_rss_bytes INTEGER NOT NULL, guest_bytes INTEGER NOT NULL,
    format TEXT, skipped_mips REAL NOT NULL) STRICT;
CREATE TABLE source (run INTEGER NOT NULL, position INTEGER NOT NULL, path TEXT NOT NULL,
    PRIMARY KEY (run, position)) STRICT, WITHOUT ROWID;
CREATE TABLE pass (run INTEGER NOT NULL, pass INTEGER NOT NULL, name TEXT NOT NULL,
    PRIMARY KEY (run, pass)) STRICT, WITHOUT ROWID;
CREATE TABLE argument (run INTEGER NOT NULL, position INTEGER NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (run, position)) STRICT, WITHOUT ROWID;
CREATE TABLE environment (run INTEGER NOT NULL, position INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (run, position)) STRICT, WITHOUT ROWID;
CREATE TABLE setting (run INTEGER NOT NULL, position INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (run, position)) STRICT, WITHOUT ROWID;
CREATE TABLE constant (run INTEGER NOT NULL, name TEXT NOT NULL, value REAL NOT NULL,
    PRIMARY KEY (run, name)) STRICT, WITHOUT ROWID;
CREATE TABLE text (digest TEXT PRIMARY KEY, content TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE description (run INTEGER PRIMARY KEY, path TEXT, pmu_csv TEXT NOT NULL, groups_csv TEXT NOT NULL) STRICT;
CREATE VIEW described (run, path, pmu_csv, groups_csv) AS
    SELECT run, path, pmu.content, grouped.content FROM description
    JOIN text pmu ON pmu.digest = pmu_csv JOIN text grouped ON grouped.digest = groups_csv;
CREATE TABLE note (run INTEGER NOT NULL, position INTEGER NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (run, position)) STRICT, WITHOUT ROWID;
CREATE TABLE failure (run INTEGER NOT NULL, position INTEGER NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (run, position)) STRICT, WITHOUT ROWID;
CREATE TABLE region (run INTEGER NOT NULL, region INTEGER NOT NULL, name TEXT NOT NULL, calls INTEGER NOT NULL,
    team INTEGER NOT NULL, PRIMARY KEY (run, region)) STRICT, WITHOUT ROWID;
CREATE TABLE thread (run INTEGER NOT NULL, team INTEGER NOT NULL, position INTEGER NOT NULL, process INTEGER NOT NULL,
    thread INTEGER NOT NULL, node INTEGER NOT NULL, cpu INTEGER NOT NULL,
    PRIMARY KEY (run, team, position), UNIQUE (run, team, process, thread)) STRICT, WITHOUT ROWID;
CREATE TABLE name (run INTEGER NOT NULL, name_set INTEGER NOT NULL, position INTEGER NOT NULL, name TEXT NOT NULL,
    PRIMARY KEY (run, name_set, position)) STRICT, WITHOUT ROWID;
CREATE TABLE count (run INTEGER NOT NULL, region INTEGER NOT NULL, pass INTEGER NOT NULL, name_set INTEGER NOT NULL,
    counts BLOB NOT NULL, PRIMARY KEY (run, region, pass)) STRICT;
CREATE TABLE series (run INTEGER NOT NULL, series INTEGER NOT NULL, pass INTEGER NOT NULL, name_set INTEGER NOT NULL,
    region TEXT NOT NULL, PRIMARY KEY (run, series)) STRICT, WITHOUT ROWID;
CREATE TABLE interval (run INTEGER NOT NULL, series INTEGER NOT NULL, position INTEGER NOT NULL, end_ns INTEGER NOT NULL,
    counts BLOB NOT NULL, PRIMARY KEY (run, series, position)) STRICT, WITHOUT ROWID;
CREATE TABLE sample (run INTEGER PRIMARY KEY, plan TEXT NOT NULL, windows INTEGER NOT NULL, exact INTEGER NOT NULL,
    timed INTEGER NOT NULL, followed INTEGER NOT NULL, error REAL NOT NULL, confidence REAL NOT NULL) STRICT;
CREATE TABLE replicate (run INTEGER NOT NULL, region INTEGER NOT NULL, unseen REAL NOT NULL, name_set INTEGER NOT NULL,
    replicates INTEGER NOT NULL, totals BLOB NOT NULL, PRIMARY KEY (run, region)) STRICT;
CREATE TABLE timed_part (run INTEGER PRIMARY KEY, options TEXT NOT NULL, skipped INTEGER NOT NULL, followed INTEGER NOT NULL,
    timed INTEGER NOT NULL, behind INTEGER NOT NULL, executions INTEGER NOT NULL, begin_ns INTEGER NOT NULL,
    ended INTEGER NOT NULL) STRICT;
CREATE TABLE process (run INTEGER NOT NULL, number INTEGER NOT NULL, rank INTEGER, program TEXT NOT NULL,
    PRIMARY KEY (run, number)) STRICT, WITHOUT ROWID;
CREATE TABLE mpi_function (run INTEGER NOT NULL, position INTEGER NOT NULL, process INTEGER NOT NULL, name TEXT NOT NULL,
    kind TEXT NOT NULL, calls INTEGER NOT NULL, ns INTEGER NOT NULL, bytes INTEGER NOT NULL,
    PRIMARY KEY (run, position)) STRICT, WITHOUT ROWID;
CREATE TABLE mpi_call (run INTEGER NOT NULL, position INTEGER NOT NULL, process INTEGER NOT NULL, thread INTEGER NOT NULL,
    function INTEGER NOT NULL, bytes INTEGER, partner INTEGER, begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,
    PRIMARY KEY (run, position)) STRICT, WITHOUT ROWID;
CREATE TABLE mpi_dropped (run INTEGER PRIMARY KEY, calls INTEGER NOT NULL) STRICT;
CREATE TABLE page (run INTEGER NOT NULL, position INTEGER NOT NULL, segment TEXT NOT NULL, page_bytes INTEGER NOT NULL,
    node INTEGER NOT NULL, pages INTEGER NOT NULL, bytes INTEGER NOT NULL,
    PRIMARY KEY (run, position)) STRICT, WITHOUT ROWID;
CREATE TABLE code_file (run INTEGER NOT NULL, file INTEGER NOT NULL, path TEXT NOT NULL, digest TEXT NOT NULL,
    PRIMARY KEY (run, file)) STRICT, WITHOUT ROWID;
CREATE TABLE hot_spot (run INTEGER NOT NULL, spot INTEGER NOT NULL, file INTEGER, place INTEGER NOT NULL,
    address INTEGER NOT NULL, function TEXT NOT NULL, offset INTEGER NOT NULL, executions INTEGER NOT NULL,
    cycles INTEGER NOT NULL, in_flight INTEGER NOT NULL,
    PRIMARY KEY (run, spot), UNIQUE (run, file, place)) STRICT, WITHOUT ROWID;
CREATE TABLE part (run INTEGER NOT NULL, part INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
    PRIMARY KEY (run, part)) STRICT, WITHOUT ROWID;
CREATE TABLE hot_part (run INTEGER NOT NULL, spot INTEGER NOT NULL, part INTEGER NOT NULL, cycles INTEGER NOT NULL,
    PRIMARY KEY (run, spot, part)) STRICT, WITHOUT ROWID;
CREATE TABLE loop (run INTEGER NOT NULL, loop INTEGER NOT NULL, parent INTEGER, function TEXT NOT NULL, file INTEGER NOT NULL,
    place INTEGER NOT NULL, address INTEGER NOT NULL, offset INTEGER NOT NULL, size INTEGER NOT NULL, source TEXT,
    first_line INTEGER, last_line INTEGER, iterations INTEGER NOT NULL, entries INTEGER, instructions INTEGER NOT NULL,
    cycles INTEGER NOT NULL, own_cycles INTEGER NOT NULL, operations INTEGER NOT NULL, of_all_elements INTEGER NOT NULL,
    arithmetic INTEGER NOT NULL, bits INTEGER NOT NULL, loaded INTEGER NOT NULL, stored INTEGER NOT NULL,
    PRIMARY KEY (run, loop), UNIQUE (run, file, place)) STRICT, WITHOUT ROWID;
CREATE TABLE loop_part (run INTEGER NOT NULL, loop INTEGER NOT NULL, part INTEGER NOT NULL, amount INTEGER NOT NULL,
    PRIMARY KEY (run, loop, part)) STRICT, WITHOUT ROWID;
CREATE TABLE stack_frame (run INTEGER NOT NULL, position INTEGER NOT NULL, caller INTEGER, function TEXT NOT NULL, file TEXT,
    PRIMARY KEY (run, position)) STRICT, WITHOUT ROWID;
CREATE TABLE call_context (run INTEGER NOT NULL, position INTEGER NOT NULL, caller INTEGER, function TEXT NOT NULL, file INTEGER,
    inlined INTEGER NOT NULL, source TEXT, line INTEGER, in_loop INTEGER, PRIMARY KEY (run, position)) STRICT, WITHOUT ROWID;
CREATE TABLE call_counts (run INTEGER PRIMARY KEY, counts BLOB NOT NULL) STRICT;
CREATE TABLE data_object (run INTEGER NOT NULL, position INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, source TEXT,
    line INTEGER, blocks INTEGER NOT NULL, bytes INTEGER NOT NULL, counts BLOB NOT NULL,
    PRIMARY KEY (run, position)) STRICT, WITHOUT ROWID;
CREATE TABLE data_line (run INTEGER NOT NULL, position INTEGER NOT NULL, object INTEGER NOT NULL, offset INTEGER NOT NULL,
    transfers INTEGER NOT NULL, falsely_shared INTEGER NOT NULL, PRIMARY KEY (run, position)) STRICT, WITHOUT ROWID;
CREATE TABLE data_user (run INTEGER NOT NULL, line INTEGER NOT NULL, position INTEGER NOT NULL, process INTEGER NOT NULL,
    thread INTEGER NOT NULL, cmg INTEGER NOT NULL, touched_first INTEGER, touched_last INTEGER, written_first INTEGER,
    written_last INTEGER, PRIMARY KEY (run, line, position)) STRICT, WITHOUT ROWID;
CREATE TABLE stack_samples (run INTEGER PRIMARY KEY, interval_ns INTEGER NOT NULL, samples BLOB NOT NULL) STRICT;
";

/// A table or view that a run's digest covers.
struct Covered {
    name: &'static str,
    /// The columns that order its rows.
    order: &'static str,
    /// The versions with this form of the table.
    versions: std::ops::RangeInclusive<i32>,
}

const fn covered(name: &'static str, order: &'static str, first: i32, last: i32) -> Covered {
    Covered { name, order, versions: first..=last }
}

/// In the order of the digest.
const COVERED: &[Covered] = &[
    covered("run", "run", 1, VERSION),
    covered("source", "position", PACKED, VERSION),
    covered("argument", "position", 1, VERSION),
    covered("environment", "position", 1, VERSION),
    covered("setting", "position", 1, VERSION),
    covered("constant", "name", 1, VERSION),
    covered("described", "run", DESCRIBED, VERSION),
    covered("note", "position", 1, VERSION),
    covered("failure", "position", FAILURES, VERSION),
    covered("pass", "pass", PACKED, VERSION),
    covered("region", "region", 1, VERSION),
    covered("thread", "region, position", 1, PACKED - 1),
    covered("thread", "team, position", PACKED, VERSION),
    covered("event", "region, thread, name", 1, PACKED - 1),
    covered("name", "name_set, position", PACKED, VERSION),
    covered("count", "region, pass", PACKED, VERSION),
    covered("series", "series", INTERVALS, VERSION),
    covered("interval", "series, position", INTERVALS, VERSION),
    covered("sample", "run", SAMPLES, VERSION),
    covered("replicate", "region", SAMPLES, VERSION),
    covered("timed_part", "run", PARTS, VERSION),
    covered("process", "number", PARALLEL, VERSION),
    covered("mpi_function", "position", PARALLEL, VERSION),
    covered("mpi_call", "position", PARALLEL, VERSION),
    covered("mpi_dropped", "calls", PARALLEL, VERSION),
    covered("page", "position", PAGES, VERSION),
    covered("code_file", "file", NUMBERED_SPOTS, VERSION),
    covered("hot_spot", "address", 1, NUMBERED_SPOTS - 1),
    covered("hot_spot", "spot", NUMBERED_SPOTS, VERSION),
    covered("part", "part", NUMBERED_SPOTS, VERSION),
    covered("hot_part", "spot, part", NUMBERED_SPOTS, VERSION),
    covered("loop", "loop", LOOPS, VERSION),
    covered("loop_part", "loop, part", LOOPS, VERSION),
    covered("stack_frame", "position", LOOPS, VERSION),
    covered("stack_samples", "run", LOOPS, VERSION),
    covered("call_context", "position", CALLS, VERSION),
    covered("call_counts", "run", CALLS, VERSION),
    covered("data_object", "position", LOOPS, VERSION),
    covered("data_line", "position", LOOPS, VERSION),
    covered("data_user", "line, position", LOOPS, VERSION),
];

/// The version that added numbers, files and parts of hot spots.
pub(crate) const NUMBERED_SPOTS: i32 = 2;
/// The version that added pages.
pub(crate) const PAGES: i32 = 3;
/// The version that added passes and packed counts.
pub(crate) const PACKED: i32 = 4;
/// The version that added intervals.
pub(crate) const INTERVALS: i32 = 5;
/// The version that added intervals of a region.
pub(crate) const REGION_INTERVALS: i32 = 6;
/// The version that added the machine's tables.
pub(crate) const DESCRIBED: i32 = 7;

/// The version that added processes and calls of MPI.
pub(crate) const PARALLEL: i32 = 8;

/// The version that added failures and skipped instructions.
pub(crate) const FAILURES: i32 = 9;

/// The version that added samples.
pub(crate) const SAMPLES: i32 = 10;

/// The version that added parts that were timed.
pub(crate) const PARTS: i32 = 11;

/// The version that added loops, call stacks, data objects and events of instructions.
pub(crate) const LOOPS: i32 = 12;

/// The version that added calls of functions.
pub(crate) const CALLS: i32 = 13;

/// Creates the tables in an empty database with a page size.
pub(crate) fn create(db: &Connection, page_bytes: u32) -> rusqlite::Result<()> {
    db.pragma_update(None, "page_size", page_bytes)?;
    db.pragma_update(None, "application_id", APPLICATION)?;
    db.pragma_update(None, "user_version", VERSION)?;
    db.execute_batch(SCHEMA)?;
    db.execute("INSERT INTO contents VALUES (0)", [])?;
    Ok(())
}

/// Returns the schema version of a file.
pub(crate) fn version(db: &Connection) -> rusqlite::Result<i32> {
    db.pragma_query_value(None, "user_version", |r| r.get(0))
}

/// Returns the number of runs that a file claims to have.
pub(crate) fn runs(db: &Connection) -> rusqlite::Result<u32> {
    db.query_row("SELECT runs FROM contents", [], |r| r.get(0))
}

/// Returns the stored digest of run `id`; `None` for run 0, which does not exist.
pub(crate) fn stored_digest(db: &Connection, id: u32) -> rusqlite::Result<Vec<u8>> {
    let found = db.query_row("SELECT value FROM digest WHERE run = ?1", [id], |r| r.get(0)).optional()?;
    Ok(found.unwrap_or_default())
}

/// Computes the digest of the rows of run `id`.
pub(crate) fn digest(db: &Connection, id: u32) -> rusqlite::Result<Vec<u8>> {
    use rusqlite::types::ValueRef;
    let mut hash = Sha256::new();
    hash.update(stored_digest(db, id - 1)?);
    let version = version(db)?;
    for Covered { name: table, order, .. } in COVERED.iter().filter(|table| table.versions.contains(&version)) {
        let mut statement = db.prepare(&format!("SELECT * FROM {table} WHERE run = ?1 ORDER BY {order}"))?;
        let columns = statement.column_count();
        hash.update(table.as_bytes());
        let mut rows = statement.query([id])?;
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                let value = row.get_ref(column)?;
                let fixed: [u8; 8];
                let (kind, bytes): (u8, &[u8]) = match value {
                    ValueRef::Null => (0, &[]),
                    ValueRef::Integer(i) => (1, {
                        fixed = i.to_le_bytes();
                        &fixed
                    }),
                    ValueRef::Real(f) => (2, {
                        fixed = f.to_bits().to_le_bytes();
                        &fixed
                    }),
                    ValueRef::Text(text) => (3, text),
                    ValueRef::Blob(bytes) => (4, bytes),
                };
                // Type and length precede each value, so that different rows never hash the same bytes.
                hash.update([kind]);
                hash.update((bytes.len() as u64).to_le_bytes());
                hash.update(bytes);
            }
        }
    }
    Ok(hash.finalize().to_vec())
}
