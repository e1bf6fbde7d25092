//! Converts calls of functions to rows.

use rusqlite::{Connection, params};

use crate::calls::{CallCount, Calls};
use crate::pack::pack;

/// Inserts the calls of run `id`.
pub(crate) fn insert(db: &Connection, id: u32, calls: &Calls) -> rusqlite::Result<()> {
    if calls.contexts.is_empty() {
        return Ok(());
    }
    let mut insert = db.prepare("INSERT INTO call_context VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
    for (position, c) in (0i64..).zip(&calls.contexts) {
        let (source, line) = (c.site.as_ref().map(|site| &site.file), c.site.as_ref().map(|site| site.line));
        insert.execute(params![id, position, c.caller, c.function, c.file, c.is_inlined, source, line, c.in_loop])?;
    }
    let numbers = calls.counts.iter().flat_map(|count| {
        let CallCount { context, process, thread, calls, cycles } = *count;
        [context.into(), process.into(), thread.into(), calls, cycles]
    });
    let counts: Vec<u64> = numbers.collect();
    db.execute("INSERT INTO call_counts VALUES (?1, ?2)", params![id, pack(&counts)])?;
    Ok(())
}
