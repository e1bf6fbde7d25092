//! Converts rows to runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::ONE_PASS;
use crate::counts::{Counts, Names, Region, Thread};
use crate::pack::unpack;
use crate::part::Part;
use crate::profile::Profile;
use crate::run::{
    CodeFile, Description, Finish, Host, HotSpot, Interval, Intervals, Mode, MpiCall, MpiFunction, Origin, Pages,
    Parallel, Process, Run,
};
use crate::sample::{Replicates, Sample, Totals};
use crate::schema::{
    CALLS, DESCRIBED, FAILURES, INTERVALS, LOOPS, NUMBERED_SPOTS, PACKED, PAGES, PARALLEL, PARTS, REGION_INTERVALS,
    SAMPLES, version,
};

/// Reads all `count` runs.
pub(crate) fn read_all(db: &Connection, count: u32) -> rusqlite::Result<Vec<Run>> {
    let mut runs: Vec<Run> = Vec::new();
    for id in 1..=count {
        let mut run = read(db, id)?;
        // Most runs in a file share their machine.
        if let Some(same) = runs.iter().find(|other| other.description == run.description) {
            run.description = same.description.clone();
        }
        runs.push(run);
    }
    Ok(runs)
}

/// Reads run `id`.
fn read(db: &Connection, id: u32) -> rusqlite::Result<Run> {
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
    let version = version(db)?;
    if version >= PACKED {
        run.origin = read_sources(db, id)?;
        run.passes = list(db, id, "SELECT name FROM pass WHERE run = ?1 ORDER BY pass", |r| r.get(0))?;
        run.regions = read_regions(db, id)?;
    } else {
        run.passes = vec![ONE_PASS.to_owned()];
        run.regions = read_old_regions(db, id)?;
    }
    if version >= INTERVALS {
        run.intervals = read_intervals(db, id)?;
    }
    if version >= SAMPLES {
        run.sample = read_sample(db, id, run.regions.len())?;
    }
    if version >= PARTS {
        run.part = read_part(db, id)?;
    }
    if version >= PARALLEL {
        run.parallel = read_parallel(db, id)?;
    }
    if version >= FAILURES {
        run.failures = list(db, id, "SELECT value FROM failure WHERE run = ?1 ORDER BY position", |r| r.get(0))?;
        let skipped = db.query_row("SELECT skipped_mips FROM run WHERE run = ?1", [id], |r| r.get(0));
        run.host.skipped_mips = skipped?;
    }
    if version >= DESCRIBED {
        run.description = read_description(db, id)?.map(Arc::new);
    }
    if version >= PAGES {
        run.pages = read_pages(db, id)?;
    }
    if version < NUMBERED_SPOTS {
        read_old_hot_spots(db, id, &mut run)?
    } else {
        read_hot_spots(db, id, &mut run)?
    }
    if version >= LOOPS {
        run.profile.loops = crate::read_loops::read(db, id, &run)?;
        run.profile.stacks = crate::read_loops::read_stacks(db, id)?;
        run.profile.data = crate::read_data::read(db, id)?;
    }
    if version >= CALLS {
        run.profile.calls = crate::read_calls::read(db, id, &run)?;
    }
    Ok(run)
}

fn read_sources(db: &Connection, id: u32) -> rusqlite::Result<Origin> {
    let format: Option<String> = db.query_row("SELECT format FROM run WHERE run = ?1", [id], |r| r.get(0))?;
    let files = list(db, id, "SELECT path FROM source WHERE run = ?1 ORDER BY position", |r| r.get(0))?;
    Ok(format.map_or(Origin::Simulated, |format| Origin::Imported { format, files }))
}

fn read_description(db: &Connection, id: u32) -> rusqlite::Result<Option<Description>> {
    let query = "SELECT path, pmu_csv, groups_csv FROM described WHERE run = ?1";
    let description = |r: &Row| Ok(Description { path: r.get(0)?, pmu_csv: r.get(1)?, groups_csv: r.get(2)? });
    db.query_row(query, [id], description).optional()
}

fn read_part(db: &Connection, id: u32) -> rusqlite::Result<Option<Part>> {
    let query =
        "SELECT options, skipped, followed, timed, behind, executions, begin_ns, ended FROM timed_part WHERE run = ?1";
    let part = |r: &Row| {
        let (skipped, followed, timed, behind) = (r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?);
        let (executions, begin_ns, ended) = (r.get(5)?, r.get(6)?, r.get(7)?);
        Ok(Part { options: r.get(0)?, skipped, followed, timed, behind, executions, begin_ns, ended })
    };
    db.query_row(query, [id], part).optional()
}

fn read_parallel(db: &Connection, id: u32) -> rusqlite::Result<Parallel> {
    let query = "SELECT number, rank, program FROM process WHERE run = ?1 ORDER BY number";
    let processes = list(db, id, query, |r| Ok(Process { number: r.get(0)?, rank: r.get(1)?, program: r.get(2)? }))?;
    let query = "SELECT process, name, kind, calls, ns, bytes FROM mpi_function WHERE run = ?1 ORDER BY position";
    let functions: Vec<MpiFunction> = list(db, id, query, |r| {
        let (process, name, kind) = (r.get(0)?, r.get(1)?, r.get(2)?);
        Ok(MpiFunction { process, name, kind, calls: r.get(3)?, ns: r.get(4)?, bytes: r.get(5)? })
    })?;
    let query = "SELECT process, thread, function, bytes, partner, begin_ns, end_ns FROM mpi_call WHERE run = ?1 ORDER BY position";
    let calls: Vec<MpiCall> = list(db, id, query, |r| {
        let (process, thread, function) = (r.get(0)?, r.get(1)?, r.get(2)?);
        let (bytes, partner, begin_ns, end_ns) = (r.get(3)?, r.get(4)?, r.get(5)?, r.get(6)?);
        Ok(MpiCall { process, thread, function, bytes, partner, begin_ns, end_ns })
    })?;
    if calls.iter().any(|call| call.function as usize >= functions.len()) {
        return Err(rusqlite::Error::InvalidColumnName("function".to_owned()));
    }
    let dropped = db.query_row("SELECT calls FROM mpi_dropped WHERE run = ?1", [id], |r| r.get(0)).optional()?;
    Ok(Parallel { processes, functions, calls, dropped_calls: dropped.unwrap_or(0) })
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
    (run.stalls, run.pipes, run.profile.events) = (named("stall")?, named("pipe")?, named("event")?);
    let [stalls, pipes, events] = [&run.stalls, &run.pipes, &run.profile.events].map(|names| vec![0; names.len()]);
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
            events: events.clone(),
        })
    })?;
    let mut parts = db.prepare("SELECT spot, part, cycles FROM hot_part WHERE run = ?1")?;
    let mut rows = parts.query([id])?;
    while let Some(row) = rows.next()? {
        let (spot, part): (usize, usize) = (row.get(0)?, row.get(1)?);
        let spot = run.hot_spots.get_mut(spot);
        let cycles = spot.and_then(|s| s.stalls.iter_mut().chain(&mut s.pipes).chain(&mut s.events).nth(part));
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

/// Reads a run's row of the table `run`.
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
        "unknown" => Finish::Unknown,
        "limit" => Finish::Limit,
        "stopped" => Finish::Stopped,
        "failed" => Finish::Failed(row.get("message")?),
        "no progress" => Finish::NoProgress(row.get("message")?),
        _ => return Err(wrong("finish")),
    };
    Ok(Run {
        tool: row.get("tool")?,
        command: Vec::new(),
        environment: Vec::new(),
        machine: row.get("machine")?,
        settings: Vec::new(),
        machine_hash: row.get("machine_hash")?,
        description: None,
        constants: Default::default(),
        mode,
        finish,
        host: Host {
            cpus: row.get("host_cpus")?,
            wall_seconds: row.get("wall_seconds")?,
            mips: row.get("mips")?,
            skipped_mips: 0.0,
            peak_rss_bytes: row.get("peak_rss_bytes")?,
            guest_bytes: row.get("guest_bytes")?,
        },
        notes: Vec::new(),
        failures: Vec::new(),
        origin: Origin::Simulated,
        passes: Vec::new(),
        regions: Vec::new(),
        sample: None,
        part: None,
        intervals: Vec::new(),
        parallel: Parallel::default(),
        pages: Vec::new(),
        files: Vec::new(),
        stalls: Vec::new(),
        pipes: Vec::new(),
        hot_spots: Vec::new(),
        profile: Profile::default(),
    })
}

/// Teams of threads, or sets of names, by number.
type Numbered<T> = BTreeMap<i64, T>;

fn read_regions(db: &Connection, id: u32) -> rusqlite::Result<Vec<Region>> {
    let mut teams: Numbered<Vec<Thread>> = Numbered::new();
    let query = "SELECT team, process, thread, node, cpu FROM thread WHERE run = ?1 ORDER BY team, position";
    for_each(db, id, query, |r| {
        let thread = Thread { process: r.get(1)?, thread: r.get(2)?, node: r.get(3)?, cpu: r.get(4)? };
        teams.entry(r.get(0)?).or_default().push(thread);
        Ok(())
    })?;
    let mut regions: Vec<Region> =
        list(db, id, "SELECT name, calls, team FROM region WHERE run = ?1 ORDER BY region", |r| {
            let threads = teams.get(&r.get(2)?).cloned().unwrap_or_default();
            Ok(Region { name: r.get(0)?, calls: r.get(1)?, threads, passes: Vec::new() })
        })?;
    let sets = read_names(db, id)?;
    let query = "SELECT region, pass, name_set, counts FROM count WHERE run = ?1 ORDER BY region, pass";
    for_each(db, id, query, |r| {
        let wrong = || rusqlite::Error::InvalidColumnName("counts".to_owned());
        let region = regions.get_mut(r.get::<_, usize>(0)?).ok_or_else(wrong)?;
        let names = sets.get(&r.get(2)?).cloned().unwrap_or_default();
        let values = unpack(r.get_ref(3)?.as_blob()?).ok_or_else(wrong)?;
        let counts = Counts::from_values(names, region.threads.len(), values).ok_or_else(wrong)?;
        region.passes.push(counts);
        Ok(())
    })?;
    Ok(regions)
}

fn read_names(db: &Connection, id: u32) -> rusqlite::Result<Numbered<Arc<Names>>> {
    let mut sets: Numbered<Vec<String>> = Numbered::new();
    for_each(db, id, "SELECT name_set, name FROM name WHERE run = ?1 ORDER BY name_set, position", |r| {
        sets.entry(r.get(0)?).or_default().push(r.get(1)?);
        Ok(())
    })?;
    Ok(sets.into_iter().map(|(set, names)| (set, Arc::new(names.into_iter().collect()))).collect())
}

fn read_intervals(db: &Connection, id: u32) -> rusqlite::Result<Vec<Intervals>> {
    let sets = read_names(db, id)?;
    let region = if version(db)? < REGION_INTERVALS { "'all'" } else { "region" };
    let query = format!("SELECT pass, name_set, {region} FROM series WHERE run = ?1 ORDER BY series");
    let mut series: Vec<Intervals> = list(db, id, &query, |r| {
        let names = sets.get(&r.get(1)?).map(|names| Names::clone(names)).unwrap_or_default();
        Ok(Intervals { pass: r.get(0)?, region: r.get(2)?, names, rows: Vec::new() })
    })?;
    let query = "SELECT series, end_ns, counts FROM interval WHERE run = ?1 ORDER BY series, position";
    for_each(db, id, query, |r| {
        let wrong = || rusqlite::Error::InvalidColumnName("counts".to_owned());
        let series = series.get_mut(r.get::<_, usize>(0)?).ok_or_else(wrong)?;
        let counts = unpack(r.get_ref(2)?.as_blob()?).filter(|counts| counts.len() == series.names.len());
        series.rows.push(Interval { end_ns: r.get(1)?, counts: counts.ok_or_else(wrong)? });
        Ok(())
    })?;
    Ok(series)
}

/// Reads how a run with this number of regions was sampled; `None` if it was not.
fn read_sample(db: &Connection, id: u32, regions: usize) -> rusqlite::Result<Option<Sample>> {
    let query = "SELECT plan, windows, exact, timed, followed, error, confidence FROM sample WHERE run = ?1";
    let sample = |r: &Row| {
        Ok(Sample {
            plan: r.get(0)?,
            windows: r.get(1)?,
            exact: r.get(2)?,
            timed: r.get(3)?,
            followed: r.get(4)?,
            error: r.get(5)?,
            confidence: r.get(6)?,
            regions: Vec::new(),
        })
    };
    let Some(mut sample) = db.query_row(query, [id], sample).optional()? else { return Ok(None) };
    if !(sample.confidence > 0.0 && sample.confidence < 1.0) {
        return Err(rusqlite::Error::InvalidColumnName("confidence".to_owned()));
    }
    let sets = read_names(db, id)?;
    let query = "SELECT unseen, name_set, replicates, totals FROM replicate WHERE run = ?1 ORDER BY region";
    for_each(db, id, query, |r| {
        let names = sets.get(&r.get(1)?).cloned().unwrap_or_default();
        let differences = unpack(r.get_ref(3)?.as_blob()?);
        let totals = differences.and_then(|d| Totals::from_differences(names, r.get(2).ok()?, &d));
        let totals = totals.ok_or_else(|| rusqlite::Error::InvalidColumnName("totals".to_owned()))?;
        sample.regions.push(Replicates { unseen: r.get(0)?, totals });
        Ok(())
    })?;
    match sample.regions.len() == regions {
        true => Ok(Some(sample)),
        false => Err(rusqlite::Error::InvalidColumnName("region".to_owned())),
    }
}

/// Versions without passes: one row per thread of a region, and one per count.
fn read_old_regions(db: &Connection, id: u32) -> rusqlite::Result<Vec<Region>> {
    let regions: Vec<(String, u64)> =
        list(db, id, "SELECT name, calls FROM region WHERE run = ?1 ORDER BY region", |r| Ok((r.get(0)?, r.get(1)?)))?;
    let mut threads = db.prepare("SELECT thread, cpu FROM thread WHERE run = ?1 AND region = ?2 ORDER BY position")?;
    let mut events = db.prepare("SELECT name, count FROM event WHERE run = ?1 AND region = ?2 AND thread = ?3")?;
    let mut read = |r: i64, name: &str, calls| {
        let mut rows = Vec::new();
        let threads = threads.query_map(params![id, r], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (thread, cpu) in threads.collect::<rusqlite::Result<Vec<(u32, u32)>>>()? {
            let counts = events.query_map(params![id, r, thread], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.push((Thread { thread, cpu, ..Thread::default() }, counts.collect::<rusqlite::Result<_>>()?));
        }
        Ok(Region::of_one_pass(name, calls, rows))
    };
    (0..).zip(&regions).map(|(r, (name, calls))| read(r, name, *calls)).collect()
}

fn for_each(
    db: &Connection,
    id: u32,
    query: &str,
    mut each: impl FnMut(&Row) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut statement = db.prepare(query)?;
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        each(row)?;
    }
    Ok(())
}

pub(crate) fn list<T, C: FromIterator<T>>(
    db: &Connection,
    id: u32,
    query: &str,
    read: impl FnMut(&Row) -> rusqlite::Result<T>,
) -> rusqlite::Result<C> {
    db.prepare(query)?.query_map([id], read)?.collect()
}
