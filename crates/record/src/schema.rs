//! The tables of a record file, and how a run becomes rows and a row becomes part of a run again.
//!
//! A change of any table is a new [`VERSION`]; files of version 1, which knew neither files nor causes, and of version 2,
//! which knew no pages, can be read.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use sha2::{Digest as _, Sha256};

use crate::run::{CodeFile, Finish, Host, HotSpot, Mode, Pages, Region, Run, Thread};

/// `PRAGMA application_id`: "fxsr".
pub(crate) const APPLICATION: i32 = 0x6678_7372;
/// The oldest version that can be read.
pub(crate) const OLDEST: i32 = 1;
/// `PRAGMA user_version`.
pub(crate) const VERSION: i32 = 3;

/// Everything of one run has its number in the column `run`. `digest` holds, for each run, the digest over
/// its rows in all other tables and over the digest of the run before it; `contents` the number of runs. `part` names
/// causes of waiting (kind `stall`) and pipes (kind `pipe`), `hot_part` has the cycles of each instruction for each of
/// them, except zeros.
pub(crate) const SCHEMA: &str = "
CREATE TABLE contents (runs INTEGER NOT NULL) STRICT;
CREATE TABLE digest (run INTEGER PRIMARY KEY, value BLOB NOT NULL) STRICT;
CREATE TABLE run (run INTEGER PRIMARY KEY, tool TEXT NOT NULL, machine TEXT NOT NULL, machine_hash TEXT NOT NULL,
    mode TEXT NOT NULL, finish TEXT NOT NULL, status INTEGER, message TEXT, host_cpus INTEGER NOT NULL,
    wall_seconds REAL NOT NULL, mips REAL NOT NULL, peak_rss_bytes INTEGER NOT NULL, guest_bytes INTEGER NOT NULL
    ) STRICT;
CREATE TABLE argument (run INTEGER NOT NULL, position INTEGER NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (run, position)) STRICT, WITHOUT ROWID;
CREATE TABLE environment (run INTEGER NOT NULL, position INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (run, position)) STRICT, WITHOUT ROWID;
CREATE TABLE setting (run INTEGER NOT NULL, position INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (run, position)) STRICT, WITHOUT ROWID;
CREATE TABLE constant (run INTEGER NOT NULL, name TEXT NOT NULL, value REAL NOT NULL,
    PRIMARY KEY (run, name)) STRICT, WITHOUT ROWID;
CREATE TABLE note (run INTEGER NOT NULL, position INTEGER NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (run, position)) STRICT, WITHOUT ROWID;
CREATE TABLE region (run INTEGER NOT NULL, region INTEGER NOT NULL, name TEXT NOT NULL, calls INTEGER NOT NULL,
    PRIMARY KEY (run, region)) STRICT, WITHOUT ROWID;
CREATE TABLE thread (run INTEGER NOT NULL, region INTEGER NOT NULL, position INTEGER NOT NULL,
    thread INTEGER NOT NULL, cpu INTEGER NOT NULL,
    PRIMARY KEY (run, region, position), UNIQUE (run, region, thread)) STRICT, WITHOUT ROWID;
CREATE TABLE event (run INTEGER NOT NULL, region INTEGER NOT NULL, thread INTEGER NOT NULL, name TEXT NOT NULL,
    count INTEGER NOT NULL, PRIMARY KEY (run, region, thread, name)) STRICT, WITHOUT ROWID;
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
";

/// The tables a run's digest covers, each with the columns that order it and the version that brought it.
const COVERED: &[(&str, &str, i32)] = &[
    ("run", "run", 1),
    ("argument", "position", 1),
    ("environment", "position", 1),
    ("setting", "position", 1),
    ("constant", "name", 1),
    ("note", "position", 1),
    ("region", "region", 1),
    ("thread", "region, position", 1),
    ("event", "region, thread, name", 1),
    ("page", "position", 3),
    ("code_file", "file", 2),
    ("hot_spot", "spot", 1),
    ("part", "part", 2),
    ("hot_part", "spot, part", 2),
];

/// The version that gave hot spots their numbers, files and parts.
const NUMBERED_SPOTS: i32 = 2;
/// The version that brought pages.
const PAGES: i32 = 3;

/// Writes the tables into an empty database.
pub(crate) fn create(db: &Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "application_id", APPLICATION)?;
    db.pragma_update(None, "user_version", VERSION)?;
    db.execute_batch(SCHEMA)?;
    db.execute("INSERT INTO contents VALUES (0)", [])?;
    Ok(())
}

/// The version of the file's tables.
pub(crate) fn version(db: &Connection) -> rusqlite::Result<i32> {
    db.pragma_query_value(None, "user_version", |r| r.get(0))
}

/// The tables a run's digest covers in a version, each with the columns that order it.
fn covered(version: i32) -> impl Iterator<Item = (&'static str, &'static str)> {
    let there = COVERED.iter().filter(move |(_, _, since)| *since <= version);
    there.map(move |&(table, order, _)| match table {
        "hot_spot" if version < NUMBERED_SPOTS => (table, "address"),
        _ => (table, order),
    })
}

/// The number of runs that the file says it holds.
pub(crate) fn runs(db: &Connection) -> rusqlite::Result<u32> {
    db.query_row("SELECT runs FROM contents", [], |r| r.get(0))
}

/// The stored digest of run `id`; none for run 0, which does not exist.
pub(crate) fn stored_digest(db: &Connection, id: u32) -> rusqlite::Result<Vec<u8>> {
    let found = db.query_row("SELECT value FROM digest WHERE run = ?1", [id], |r| r.get(0)).optional()?;
    Ok(found.unwrap_or_default())
}

/// The digest of the rows of run `id` as they stand.
pub(crate) fn digest(db: &Connection, id: u32) -> rusqlite::Result<Vec<u8>> {
    use rusqlite::types::ValueRef;
    let mut hash = Sha256::new();
    hash.update(stored_digest(db, id - 1)?);
    for (table, order) in covered(version(db)?) {
        let mut statement = db.prepare(&format!("SELECT * FROM {table} WHERE run = ?1 ORDER BY {order}"))?;
        let columns = statement.column_count();
        hash.update(table.as_bytes());
        let mut rows = statement.query([id])?;
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                // Type and length before each value, so that no two different rows read alike.
                let (kind, bytes) = match row.get_ref(column)? {
                    ValueRef::Null => (0u8, Vec::new()),
                    ValueRef::Integer(i) => (1, i.to_le_bytes().to_vec()),
                    ValueRef::Real(f) => (2, f.to_bits().to_le_bytes().to_vec()),
                    ValueRef::Text(t) => (3, t.to_vec()),
                    ValueRef::Blob(b) => (4, b.to_vec()),
                };
                hash.update([kind]);
                hash.update((bytes.len() as u64).to_le_bytes());
                hash.update(bytes);
            }
        }
    }
    Ok(hash.finalize().to_vec())
}

/// Writes `run` as the next one.
pub(crate) fn insert(db: &Connection, run: &Run) -> rusqlite::Result<()> {
    let id = runs(db)? + 1;
    insert_origin(db, id, run)?;
    insert_counts(db, id, &run.regions)?;
    insert_pages(db, id, &run.pages)?;
    insert_hot_spots(db, id, run)?;
    db.execute("INSERT INTO digest VALUES (?1, ?2)", params![id, digest(db, id)?])?;
    db.execute("UPDATE contents SET runs = ?1", [id])?;
    Ok(())
}

fn insert_origin(db: &Connection, id: u32, run: &Run) -> rusqlite::Result<()> {
    let mode = match run.mode {
        Mode::Timing => "timing",
        Mode::Functional => "functional",
    };
    let (finish, status, message) = match &run.finish {
        Finish::Exited(code) => ("exited", Some(*code), None),
        Finish::Killed { signal, message } => ("killed", Some(*signal), Some(message)),
        Finish::Limit => ("limit", None, None),
        Finish::Stopped => ("stopped", None, None),
        Finish::Failed(message) => ("failed", None, Some(message)),
    };
    let h = &run.host;
    db.execute(
        "INSERT INTO run VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        params![
            id,
            run.tool,
            run.machine,
            run.machine_hash,
            mode,
            finish,
            status,
            message,
            h.cpus,
            h.wall_seconds,
            h.mips,
            h.peak_rss_bytes,
            h.guest_bytes
        ],
    )?;
    for (i, value) in run.command.iter().enumerate() {
        db.execute("INSERT INTO argument VALUES (?1, ?2, ?3)", params![id, i as i64, value])?;
    }
    for (i, (name, value)) in run.environment.iter().enumerate() {
        db.execute("INSERT INTO environment VALUES (?1, ?2, ?3, ?4)", params![id, i as i64, name, value])?;
    }
    for (i, (key, value)) in run.settings.iter().enumerate() {
        db.execute("INSERT INTO setting VALUES (?1, ?2, ?3, ?4)", params![id, i as i64, key, value])?;
    }
    for (name, value) in &run.constants {
        db.execute("INSERT INTO constant VALUES (?1, ?2, ?3)", params![id, name, value])?;
    }
    for (i, value) in run.notes.iter().enumerate() {
        db.execute("INSERT INTO note VALUES (?1, ?2, ?3)", params![id, i as i64, value])?;
    }
    Ok(())
}

fn insert_counts(db: &Connection, id: u32, regions: &[Region]) -> rusqlite::Result<()> {
    let mut threads = db.prepare("INSERT INTO thread VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let mut events = db.prepare("INSERT INTO event VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for (r, region) in regions.iter().enumerate() {
        let r = r as i64;
        db.execute("INSERT INTO region VALUES (?1, ?2, ?3, ?4)", params![id, r, region.name, region.calls])?;
        for (t, thread) in region.threads.iter().enumerate() {
            threads.execute(params![id, r, t as i64, thread.thread, thread.cpu])?;
            for (name, count) in &thread.events {
                events.execute(params![id, r, thread.thread, name, count])?;
            }
        }
    }
    Ok(())
}

fn insert_pages(db: &Connection, id: u32, pages: &[Pages]) -> rusqlite::Result<()> {
    let mut insert = db.prepare("INSERT INTO page VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    for (i, p) in pages.iter().enumerate() {
        insert.execute(params![id, i as i64, p.segment, p.page_bytes, p.node, p.pages, p.bytes])?;
    }
    Ok(())
}

fn insert_hot_spots(db: &Connection, id: u32, run: &Run) -> rusqlite::Result<()> {
    for (i, file) in run.files.iter().enumerate() {
        db.execute("INSERT INTO code_file VALUES (?1, ?2, ?3, ?4)", params![id, i as i64, file.path, file.digest])?;
    }
    let kinds = run.stalls.iter().map(|name| ("stall", name)).chain(run.pipes.iter().map(|name| ("pipe", name)));
    for (i, (kind, name)) in kinds.enumerate() {
        db.execute("INSERT INTO part VALUES (?1, ?2, ?3, ?4)", params![id, i as i64, kind, name])?;
    }
    let mut hot = db.prepare("INSERT INTO hot_spot VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?;
    let mut parts = db.prepare("INSERT INTO hot_part VALUES (?1, ?2, ?3, ?4)")?;
    for (i, h) in run.hot_spots.iter().enumerate() {
        let i = i as i64;
        let (offset, executions, cycles) = (h.offset, h.executions, h.cycles);
        let function = &h.function;
        hot.execute(params![id, i, h.file, h.place, h.address, function, offset, executions, cycles, h.in_flight])?;
        for (part, &cycles) in h.stalls.iter().chain(&h.pipes).enumerate().filter(|&(_, &cycles)| cycles > 0) {
            parts.execute(params![id, i, part as i64, cycles])?;
        }
    }
    Ok(())
}

/// Reads run `id`.
pub(crate) fn read(db: &Connection, id: u32) -> rusqlite::Result<Run> {
    let mut run = db.query_row("SELECT * FROM run WHERE run = ?1", [id], read_origin)?;
    run.command = list(db, id, "SELECT value FROM argument WHERE run = ?1 ORDER BY position", |r| r.get(0))?;
    run.environment = list(db, id, "SELECT name, value FROM environment WHERE run = ?1 ORDER BY position", |r| {
        Ok((r.get(0)?, r.get(1)?))
    })?;
    run.settings = list(db, id, "SELECT key, value FROM setting WHERE run = ?1 ORDER BY position", |r| {
        Ok((r.get(0)?, r.get(1)?))
    })?;
    run.constants = list(db, id, "SELECT name, value FROM constant WHERE run = ?1", |r| Ok((r.get(0)?, r.get(1)?)))?;
    run.notes = list(db, id, "SELECT value FROM note WHERE run = ?1 ORDER BY position", |r| r.get(0))?;
    run.regions = read_regions(db, id)?;
    let version = version(db)?;
    if version >= PAGES {
        run.pages = read_pages(db, id)?;
    }
    if version < NUMBERED_SPOTS {
        read_old_hot_spots(db, id, &mut run)?
    } else {
        read_hot_spots(db, id, &mut run)?
    }
    Ok(run)
}

fn read_pages(db: &Connection, id: u32) -> rusqlite::Result<Vec<Pages>> {
    let query = "SELECT segment, page_bytes, node, pages, bytes FROM page WHERE run = ?1 ORDER BY position";
    list(db, id, query, |r| {
        let (segment, page_bytes, node) = (r.get(0)?, r.get(1)?, r.get(2)?);
        Ok(Pages { segment, page_bytes, node, pages: r.get(3)?, bytes: r.get(4)? })
    })
}

fn read_hot_spots(db: &Connection, id: u32, run: &mut Run) -> rusqlite::Result<()> {
    run.files = list(db, id, "SELECT path, digest FROM code_file WHERE run = ?1 ORDER BY file", |r| {
        Ok(CodeFile { path: r.get(0)?, digest: r.get(1)? })
    })?;
    let named = |kind: &str| {
        let query = format!("SELECT name FROM part WHERE run = ?1 AND kind = '{kind}' ORDER BY part");
        list(db, id, &query, |r| r.get(0))
    };
    (run.stalls, run.pipes) = (named("stall")?, named("pipe")?);
    let (stalls, pipes) = (vec![0; run.stalls.len()], vec![0; run.pipes.len()]);
    let query = "SELECT file, place, address, function, offset, executions, cycles, in_flight FROM hot_spot
                 WHERE run = ?1 ORDER BY spot";
    run.hot_spots = list(db, id, query, |r| {
        Ok(HotSpot {
            file: r.get(0)?,
            place: r.get(1)?,
            address: r.get(2)?,
            function: r.get(3)?,
            offset: r.get(4)?,
            executions: r.get(5)?,
            cycles: r.get(6)?,
            in_flight: r.get(7)?,
            stalls: stalls.clone(),
            pipes: pipes.clone(),
        })
    })?;
    let mut parts = db.prepare("SELECT spot, part, cycles FROM hot_part WHERE run = ?1")?;
    let mut rows = parts.query([id])?;
    while let Some(row) = rows.next()? {
        let (spot, part): (usize, usize) = (row.get(0)?, row.get(1)?);
        let spot = run.hot_spots.get_mut(spot);
        let cycles = spot.and_then(|s| s.stalls.iter_mut().chain(&mut s.pipes).nth(part));
        *cycles.ok_or_else(|| rusqlite::Error::InvalidColumnName("part".to_owned()))? = row.get(2)?;
    }
    Ok(())
}

/// Version 1 has addresses only.
fn read_old_hot_spots(db: &Connection, id: u32, run: &mut Run) -> rusqlite::Result<()> {
    let query = "SELECT address, function, offset, executions, cycles FROM hot_spot WHERE run = ?1 ORDER BY address";
    run.hot_spots = list(db, id, query, |r| {
        Ok(HotSpot {
            place: r.get(0)?,
            address: r.get(0)?,
            function: r.get(1)?,
            offset: r.get(2)?,
            executions: r.get(3)?,
            cycles: r.get(4)?,
            ..HotSpot::default()
        })
    })?;
    Ok(())
}

/// What the table `run` knows of a run.
fn read_origin(row: &Row) -> rusqlite::Result<Run> {
    let wrong = |column: &str| rusqlite::Error::InvalidColumnName(column.to_owned());
    let mode = match row.get_ref("mode")?.as_str()? {
        "timing" => Mode::Timing,
        "functional" => Mode::Functional,
        _ => return Err(wrong("mode")),
    };
    let finish = match row.get_ref("finish")?.as_str()? {
        "exited" => Finish::Exited(row.get("status")?),
        "killed" => Finish::Killed { signal: row.get("status")?, message: row.get("message")? },
        "limit" => Finish::Limit,
        "stopped" => Finish::Stopped,
        "failed" => Finish::Failed(row.get("message")?),
        _ => return Err(wrong("finish")),
    };
    Ok(Run {
        tool: row.get("tool")?,
        command: Vec::new(),
        environment: Vec::new(),
        machine: row.get("machine")?,
        settings: Vec::new(),
        machine_hash: row.get("machine_hash")?,
        constants: Default::default(),
        mode,
        finish,
        host: Host {
            cpus: row.get("host_cpus")?,
            wall_seconds: row.get("wall_seconds")?,
            mips: row.get("mips")?,
            peak_rss_bytes: row.get("peak_rss_bytes")?,
            guest_bytes: row.get("guest_bytes")?,
        },
        notes: Vec::new(),
        regions: Vec::new(),
        pages: Vec::new(),
        files: Vec::new(),
        stalls: Vec::new(),
        pipes: Vec::new(),
        hot_spots: Vec::new(),
    })
}

fn read_regions(db: &Connection, id: u32) -> rusqlite::Result<Vec<Region>> {
    let mut regions: Vec<Region> =
        list(db, id, "SELECT name, calls FROM region WHERE run = ?1 ORDER BY region", |r| {
            Ok(Region { name: r.get(0)?, calls: r.get(1)?, threads: Vec::new() })
        })?;
    let mut threads = db.prepare("SELECT thread, cpu FROM thread WHERE run = ?1 AND region = ?2 ORDER BY position")?;
    let mut events = db.prepare("SELECT name, count FROM event WHERE run = ?1 AND region = ?2 AND thread = ?3")?;
    for (r, region) in regions.iter_mut().enumerate() {
        let r = r as i64;
        region.threads = threads
            .query_map(params![id, r], |row| {
                Ok(Thread { thread: row.get(0)?, cpu: row.get(1)?, events: Default::default() })
            })?
            .collect::<rusqlite::Result<_>>()?;
        for thread in &mut region.threads {
            thread.events = events
                .query_map(params![id, r, thread.thread], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<_>>()?;
        }
    }
    Ok(regions)
}

fn list<T, C: FromIterator<T>>(
    db: &Connection,
    id: u32,
    query: &str,
    read: impl FnMut(&Row) -> rusqlite::Result<T>,
) -> rusqlite::Result<C> {
    db.prepare(query)?.query_map([id], read)?.collect()
}
