//! Converts rows of calls of functions.

use rusqlite::{Connection, OptionalExtension as _, Row};

use crate::calls::{CallContext, CallCount, Calls};
use crate::data::SourceLine;
use crate::pack::unpack;
use crate::read::list;
use crate::run::Run;

/// Reads the calls of run `id`, whose files and loops are known.
pub(crate) fn read(db: &Connection, id: u32, run: &Run) -> rusqlite::Result<Calls> {
    let wrong = |column: &str| rusqlite::Error::InvalidColumnName(column.to_owned());
    let query = "SELECT caller, function, file, inlined, source, line, in_loop FROM call_context WHERE run = ?1 ORDER BY position";
    let contexts: Vec<CallContext> = list(db, id, query, of_row)?;
    for (index, context) in contexts.iter().enumerate() {
        if context.caller.is_some_and(|caller| caller as usize >= index) {
            return Err(wrong("caller"));
        }
        if context.file.is_some_and(|file| file as usize >= run.files.len()) {
            return Err(wrong("file"));
        }
        if context.in_loop.is_some_and(|in_loop| in_loop as usize >= run.profile.loops.len()) {
            return Err(wrong("in_loop"));
        }
    }
    let query = "SELECT counts FROM call_counts WHERE run = ?1";
    let packed = db.query_row(query, [id], |r| Ok(unpack(r.get_ref(0)?.as_blob()?))).optional()?;
    let Some(numbers) = packed else { return Ok(Calls { contexts, counts: Vec::new() }) };
    let numbers: Vec<u64> = numbers.ok_or_else(|| wrong("counts"))?;
    let count = |numbers: &[u64]| {
        let &[context, process, thread, calls, cycles] = numbers else { return None };
        let context = u32::try_from(context).ok().filter(|&context| (context as usize) < contexts.len())?;
        Some(CallCount { context, process: process.try_into().ok()?, thread: thread.try_into().ok()?, calls, cycles })
    };
    let counts: Option<Vec<CallCount>> = numbers.chunks(5).map(count).collect();
    Ok(Calls { counts: counts.ok_or_else(|| wrong("counts"))?, contexts })
}

fn of_row(r: &Row) -> rusqlite::Result<CallContext> {
    let site = match (r.get(4)?, r.get(5)?) {
        (Some(file), Some(line)) => Some(SourceLine { file, line }),
        _ => None,
    };
    let (caller, function, file, is_inlined) = (r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?);
    Ok(CallContext { caller, function, file, is_inlined, site, in_loop: r.get(6)? })
}
