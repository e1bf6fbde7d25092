//! Converts rows of loops and call stacks.

use rusqlite::{Connection, OptionalExtension as _, Row};

use crate::pack::unpack;
use crate::profile::{Accesses, Arithmetic, Loop, SourceLines, StackFrame, StackSample, Stacks};
use crate::read::list;
use crate::run::Run;

/// Reads the loops of run `id`, whose names of stall causes, pipes and events are known.
pub(crate) fn read(db: &Connection, id: u32, run: &Run) -> rusqlite::Result<Vec<Loop>> {
    let query = "SELECT parent, function, file, place, address, offset, size, source, first_line, last_line, iterations, entries,
                 instructions, cycles, own_cycles, operations, of_all_elements, arithmetic, bits, loaded, stored
                 FROM loop WHERE run = ?1 ORDER BY loop";
    let mut loops: Vec<Loop> = list(db, id, query, |row| of_row(row, run))?;
    let wrong = |column: &str| rusqlite::Error::InvalidColumnName(column.to_owned());
    for (index, of) in loops.iter().enumerate() {
        if of.parent.is_some_and(|parent| parent as usize >= index) {
            return Err(wrong("parent"));
        }
        if of.file as usize >= run.files.len() {
            return Err(wrong("file"));
        }
    }
    let mut parts = db.prepare("SELECT loop, part, amount FROM loop_part WHERE run = ?1")?;
    let mut rows = parts.query([id])?;
    while let Some(row) = rows.next()? {
        let (index, part): (usize, usize) = (row.get(0)?, row.get(1)?);
        let of = loops.get_mut(index);
        let amount = of.and_then(|l| l.stalls.iter_mut().chain(&mut l.pipes).chain(&mut l.events).nth(part));
        *amount.ok_or_else(|| wrong("part"))? = row.get(2)?;
    }
    Ok(loops)
}

fn of_row(r: &Row, run: &Run) -> rusqlite::Result<Loop> {
    let [stalls, pipes, events] = [&run.stalls, &run.pipes, &run.profile.events].map(|names| vec![0; names.len()]);
    let source = match r.get(7)? {
        Some(file) => Some(SourceLines { file, first: r.get(8)?, last: r.get(9)? }),
        None => None,
    };
    let (operations, of_all_elements, instructions, bits) = (r.get(15)?, r.get(16)?, r.get(17)?, r.get(18)?);
    Ok(Loop {
        parent: r.get(0)?,
        function: r.get(1)?,
        file: r.get(2)?,
        place: r.get(3)?,
        address: r.get(4)?,
        offset: r.get(5)?,
        size: r.get(6)?,
        source,
        iterations: r.get(10)?,
        entries: r.get(11)?,
        instructions: r.get(12)?,
        cycles: r.get(13)?,
        own_cycles: r.get(14)?,
        stalls,
        pipes,
        events,
        arithmetic: Arithmetic { operations, of_all_elements, instructions, bits },
        accesses: Accesses { loaded: r.get(19)?, stored: r.get(20)? },
    })
}

/// Reads the call stacks of run `id`.
pub(crate) fn read_stacks(db: &Connection, id: u32) -> rusqlite::Result<Stacks> {
    let wrong = |column: &str| rusqlite::Error::InvalidColumnName(column.to_owned());
    let query = "SELECT interval_ns, samples FROM stack_samples WHERE run = ?1";
    let row = db.query_row(query, [id], |r| Ok((r.get(0)?, unpack(r.get_ref(1)?.as_blob()?)))).optional()?;
    let Some((interval_ns, samples)) = row else { return Ok(Stacks::default()) };
    let query = "SELECT caller, function, file FROM stack_frame WHERE run = ?1 ORDER BY position";
    let frames: Vec<StackFrame> =
        list(db, id, query, |r| Ok(StackFrame { caller: r.get(0)?, function: r.get(1)?, file: r.get(2)? }))?;
    if frames.iter().enumerate().any(|(index, frame)| frame.caller.is_some_and(|caller| caller as usize >= index)) {
        return Err(wrong("caller"));
    }
    let samples: Vec<u64> = samples.ok_or_else(|| wrong("samples"))?;
    let mut at_ns = 0u64;
    let sample = |numbers: &[u64]| {
        let &[process, thread, passed, frame] = numbers else { return None };
        at_ns = at_ns.wrapping_add(passed);
        let frame = u32::try_from(frame).ok().filter(|&frame| (frame as usize) < frames.len())?;
        Some(StackSample { process: process.try_into().ok()?, thread: thread.try_into().ok()?, at_ns, frame })
    };
    let samples: Option<Vec<StackSample>> = samples.chunks(4).map(sample).collect();
    Ok(Stacks { interval_ns, frames, samples: samples.ok_or_else(|| wrong("samples"))? })
}
