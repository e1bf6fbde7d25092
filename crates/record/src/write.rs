//! Converts runs to rows.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use rusqlite::{Connection, params};

use crate::counts::{Names, Region, Thread};
use crate::data::Data;
use crate::pack::pack;
use crate::part::Part;
use crate::profile::{Profile, Stacks};
use crate::run::{Description, Finish, Intervals, Mode, Origin, Pages, Parallel, Run};
use crate::sample::Sample;
use crate::schema::{digest, runs};

/// Inserts `run` as the next one.
pub(crate) fn insert(db: &Connection, run: &Run) -> rusqlite::Result<()> {
    let id = runs(db)? + 1;
    insert_origin(db, id, run)?;
    let sets = insert_counts(db, id, &run.regions)?;
    insert_intervals(db, id, sets, &run.intervals)?;
    if let Some(sample) = &run.sample {
        insert_sample(db, id, sets + run.intervals.len() as i64, sample)?;
    }
    if let Some(part) = &run.part {
        insert_part(db, id, part)?;
    }
    insert_parallel(db, id, &run.parallel)?;
    insert_pages(db, id, &run.pages)?;
    insert_hot_spots(db, id, run)?;
    insert_loops(db, id, &run.profile)?;
    insert_stacks(db, id, &run.profile.stacks)?;
    crate::write_calls::insert(db, id, &run.profile.calls)?;
    insert_data(db, id, &run.profile.data)?;
    db.execute("INSERT INTO digest VALUES (?1, ?2)", params![id, digest(db, id)?])?;
    db.execute("UPDATE contents SET runs = ?1", [id])?;
    Ok(())
}

fn insert_origin(db: &Connection, id: u32, run: &Run) -> rusqlite::Result<()> {
    insert_run(db, id, run)?;
    if let Origin::Imported { files, .. } = &run.origin {
        for (i, path) in files.iter().enumerate() {
            db.execute("INSERT INTO source VALUES (?1, ?2, ?3)", params![id, i as i64, path])?;
        }
    }
    for (i, name) in run.passes.iter().enumerate() {
        db.execute("INSERT INTO pass VALUES (?1, ?2, ?3)", params![id, i as i64, name])?;
    }
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
    if let Some(description) = &run.description {
        insert_description(db, id, description)?;
    }
    for (i, value) in run.notes.iter().enumerate() {
        db.execute("INSERT INTO note VALUES (?1, ?2, ?3)", params![id, i as i64, value])?;
    }
    for (i, value) in run.failures.iter().enumerate() {
        db.execute("INSERT INTO failure VALUES (?1, ?2, ?3)", params![id, i as i64, value])?;
    }
    Ok(())
}

fn insert_description(db: &Connection, id: u32, description: &Description) -> rusqlite::Result<()> {
    let Description { path, pmu_csv, groups_csv } = description;
    let mut text = db.prepare("INSERT OR IGNORE INTO text VALUES (?1, ?2)")?;
    let digests = [pmu_csv, groups_csv].map(|content| crate::digest(content.as_bytes()));
    for (digest, content) in digests.iter().zip([pmu_csv, groups_csv]) {
        text.execute(params![digest, content])?;
    }
    let [pmu_csv, groups_csv] = digests;
    db.execute("INSERT INTO description VALUES (?1, ?2, ?3, ?4)", params![id, path, pmu_csv, groups_csv])?;
    Ok(())
}

/// Inserts the row of the table `run`.
fn insert_run(db: &Connection, id: u32, run: &Run) -> rusqlite::Result<()> {
    let mode = match run.mode {
        Mode::Timing => "timing",
        Mode::Functional => "functional",
    };
    let (finish, status, message) = match &run.finish {
        Finish::Exited(code) => ("exited", Some(*code), None),
        Finish::Killed { signal, message } => ("killed", Some(*signal), Some(message)),
        Finish::Unknown => ("unknown", None, None),
        Finish::Limit => ("limit", None, None),
        Finish::Stopped => ("stopped", None, None),
        Finish::Failed(message) => ("failed", None, Some(message)),
        Finish::NoProgress(message) => ("no progress", None, Some(message)),
    };
    let format = match &run.origin {
        Origin::Simulated => None,
        Origin::Imported { format, .. } => Some(format),
    };
    let h = &run.host;
    db.execute(
        "INSERT INTO run VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
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
            h.guest_bytes,
            format,
            h.skipped_mips
        ],
    )?;
    Ok(())
}

/// Numbers values that many rows share, in order of first appearance.
struct Numbered<T>(HashMap<T, i64>);

impl<T: Hash + Eq> Numbered<T> {
    /// The number of `thing`, and whether it is new.
    fn number(&mut self, thing: T) -> (i64, bool) {
        let next = self.0.len() as i64;
        let number = *self.0.entry(thing).or_insert(next);
        (number, number == next)
    }
}

/// Maximum number of tables packed ahead of writing.
const PACKED_AHEAD: usize = 64;

/// Writes regions and their counts; returns the number of their sets of names.
fn insert_counts(db: &Connection, id: u32, regions: &[Region]) -> rusqlite::Result<i64> {
    let (packed, ready) = sync_channel(PACKED_AHEAD);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut tables = regions.iter().flat_map(|region| &region.passes);
            // The receiver is gone if writing has failed.
            tables.try_for_each(|counts| packed.send(pack(counts.values())))
        });
        insert_regions(db, id, regions, ready)
    })
}

/// Writes regions; their packed counts arrive region by region and pass by pass.
fn insert_regions(db: &Connection, id: u32, regions: &[Region], packed: Receiver<Vec<u8>>) -> rusqlite::Result<i64> {
    let mut teams: Numbered<&[Thread]> = Numbered(HashMap::new());
    // Compared by address of the shared list, which is faster than by contents.
    let mut sets: Numbered<*const Names> = Numbered(HashMap::new());
    let mut counted = db.prepare("INSERT INTO count VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for (r, region) in regions.iter().enumerate() {
        let r = r as i64;
        let (team, new) = teams.number(&region.threads);
        if new {
            insert_team(db, id, team, &region.threads)?;
        }
        let row = params![id, r, region.name, region.calls, team];
        db.prepare_cached("INSERT INTO region VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(row)?;
        for (pass, (counts, packed)) in region.passes.iter().zip(&packed).enumerate() {
            let (set, new) = sets.number(Arc::as_ptr(counts.names()));
            if new {
                insert_names(db, id, set, counts.names())?;
            }
            counted.execute(params![id, r, pass as i64, set, packed])?;
        }
    }
    Ok(sets.0.len() as i64)
}

fn insert_team(db: &Connection, id: u32, team: i64, threads: &[Thread]) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached("INSERT INTO thread VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    for (i, t) in threads.iter().enumerate() {
        insert.execute(params![id, team, i as i64, t.process, t.thread, t.node, t.cpu])?;
    }
    Ok(())
}

fn insert_names(db: &Connection, id: u32, set: i64, names: &Names) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached("INSERT INTO name VALUES (?1, ?2, ?3, ?4)")?;
    for (i, name) in names.iter().enumerate() {
        insert.execute(params![id, set, i as i64, name])?;
    }
    Ok(())
}

/// Writes series of intervals, whose sets of names are numbered from `first_set`.
fn insert_intervals(db: &Connection, id: u32, first_set: i64, intervals: &[Intervals]) -> rusqlite::Result<()> {
    let mut insert = db.prepare("INSERT INTO interval VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for (s, series) in (0i64..).zip(intervals) {
        let set = first_set + s;
        insert_names(db, id, set, &series.names)?;
        db.execute("INSERT INTO series VALUES (?1, ?2, ?3, ?4, ?5)", params![id, s, series.pass, set, series.region])?;
        for (position, interval) in (0i64..).zip(&series.rows) {
            insert.execute(params![id, s, position, interval.end_ns, pack(&interval.counts)])?;
        }
    }
    Ok(())
}

/// Writes how a run was sampled. Sets of names are numbered from `first_set`.
fn insert_sample(db: &Connection, id: u32, first_set: i64, sample: &Sample) -> rusqlite::Result<()> {
    let s = sample;
    db.execute(
        "INSERT INTO sample VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![id, s.plan, s.windows, s.exact, s.timed, s.followed, s.error, s.confidence],
    )?;
    // Few regions have sets of their own: events that no window has seen in a region are exact there.
    let mut sets: Numbered<&Names> = Numbered(HashMap::new());
    let mut insert = db.prepare("INSERT INTO replicate VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    for (region, of_region) in (0i64..).zip(&sample.regions) {
        let totals = &of_region.totals;
        let (set, new) = sets.number(totals.names());
        let set = first_set + set;
        if new {
            insert_names(db, id, set, totals.names())?;
        }
        let packed = pack(&totals.differences());
        insert.execute(params![id, region, of_region.unseen, set, totals.replicates(), packed])?;
    }
    Ok(())
}

fn insert_part(db: &Connection, id: u32, part: &Part) -> rusqlite::Result<()> {
    let p = part;
    db.execute(
        "INSERT INTO timed_part VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![id, p.options, p.skipped, p.followed, p.timed, p.behind, p.executions, p.begin_ns, p.ended],
    )?;
    Ok(())
}

fn insert_parallel(db: &Connection, id: u32, parallel: &Parallel) -> rusqlite::Result<()> {
    for p in &parallel.processes {
        db.execute("INSERT INTO process VALUES (?1, ?2, ?3, ?4)", params![id, p.number, p.rank, p.program])?;
    }
    let mut function = db.prepare("INSERT INTO mpi_function VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
    for (i, f) in (0i64..).zip(&parallel.functions) {
        function.execute(params![id, i, f.process, f.name, f.kind, f.calls, f.ns, f.bytes])?;
    }
    let mut call = db.prepare("INSERT INTO mpi_call VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
    for (i, c) in (0i64..).zip(&parallel.calls) {
        call.execute(params![id, i, c.process, c.thread, c.function, c.bytes, c.partner, c.begin_ns, c.end_ns])?;
    }
    if parallel.dropped_calls > 0 {
        db.execute("INSERT INTO mpi_dropped VALUES (?1, ?2)", params![id, parallel.dropped_calls])?;
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
    let kinds = kinds.chain(run.profile.events.iter().map(|name| ("event", name)));
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
        for (part, &cycles) in
            h.stalls.iter().chain(&h.pipes).chain(&h.events).enumerate().filter(|&(_, &cycles)| cycles > 0)
        {
            parts.execute(params![id, i, part as i64, cycles])?;
        }
    }
    Ok(())
}

fn insert_loops(db: &Connection, id: u32, profile: &Profile) -> rusqlite::Result<()> {
    let mut insert = db.prepare(
        "INSERT INTO loop VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
         ?22, ?23)",
    )?;
    let mut parts = db.prepare("INSERT INTO loop_part VALUES (?1, ?2, ?3, ?4)")?;
    for (i, l) in (0i64..).zip(&profile.loops) {
        let source = l.source.as_ref();
        insert.execute(params![
            id,
            i,
            l.parent,
            l.function,
            l.file,
            l.place,
            l.address,
            l.offset,
            l.size,
            source.map(|lines| &lines.file),
            source.map(|lines| lines.first),
            source.map(|lines| lines.last),
            l.iterations,
            l.entries,
            l.instructions,
            l.cycles,
            l.own_cycles,
            l.arithmetic.operations,
            l.arithmetic.of_all_elements,
            l.arithmetic.instructions,
            l.arithmetic.bits,
            l.accesses.loaded,
            l.accesses.stored
        ])?;
        let amounts = l.stalls.iter().chain(&l.pipes).chain(&l.events).enumerate();
        for (part, &amount) in amounts.filter(|&(_, &amount)| amount > 0) {
            parts.execute(params![id, i, part as i64, amount])?;
        }
    }
    Ok(())
}

fn insert_stacks(db: &Connection, id: u32, stacks: &Stacks) -> rusqlite::Result<()> {
    if stacks.interval_ns == 0 {
        return Ok(());
    }
    let mut insert = db.prepare("INSERT INTO stack_frame VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for (position, frame) in (0i64..).zip(&stacks.frames) {
        insert.execute(params![id, position, frame.caller, frame.function, frame.file])?;
    }
    let mut before = 0;
    let numbers = stacks.samples.iter().flat_map(|sample| {
        let passed = sample.at_ns.wrapping_sub(std::mem::replace(&mut before, sample.at_ns));
        [sample.process.into(), sample.thread.into(), passed, sample.frame.into()]
    });
    let samples: Vec<u64> = numbers.collect();
    db.execute("INSERT INTO stack_samples VALUES (?1, ?2, ?3)", params![id, stacks.interval_ns, pack(&samples)])?;
    Ok(())
}

fn insert_data(db: &Connection, id: u32, data: &Data) -> rusqlite::Result<()> {
    let mut insert = db.prepare("INSERT INTO data_object VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
    for (position, object) in (0i64..).zip(&data.objects) {
        let (kind, counts, source) = (object.kind.name(), pack(&object.counts.to_numbers()), object.source.as_ref());
        let (file, line) = (source.map(|source| &source.file), source.map(|source| source.line));
        insert.execute(params![id, position, kind, object.name, file, line, object.blocks, object.bytes, counts])?;
    }
    let mut insert = db.prepare("INSERT INTO data_line VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    let mut users = db.prepare("INSERT INTO data_user VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?;
    for (position, line) in (0i64..).zip(&data.lines) {
        insert.execute(params![id, position, line.object, line.offset, line.transfers, line.is_falsely_shared])?;
        for (place, user) in (0i64..).zip(&line.users) {
            let [touched, written] = [user.touched, user.written].map(|range| (range.map(|r| r.0), range.map(|r| r.1)));
            let (process, thread, cmg) = (user.process, user.thread, user.cmg);
            users.execute(params![
                id, position, place, process, thread, cmg, touched.0, touched.1, written.0, written.1
            ])?;
        }
    }
    Ok(())
}
