//! Converts rows of data objects.

use rusqlite::{Connection, Row};

use crate::data::{Data, DataCounts, DataLine, DataObject, DataUser, ObjectKind, SourceLine};
use crate::pack::unpack;
use crate::read::list;

fn wrong(column: &str) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnName(column.to_owned())
}

/// Reads the data objects of run `id`.
pub(crate) fn read(db: &Connection, id: u32) -> rusqlite::Result<Data> {
    let query =
        "SELECT kind, name, source, line, blocks, bytes, counts FROM data_object WHERE run = ?1 ORDER BY position";
    let objects: Vec<DataObject> = list(db, id, query, object)?;
    let query = "SELECT object, offset, transfers, falsely_shared FROM data_line WHERE run = ?1 ORDER BY position";
    let mut lines: Vec<DataLine> = list(db, id, query, |r| {
        let (object, offset, transfers) = (r.get(0)?, r.get(1)?, r.get(2)?);
        Ok(DataLine { object, offset, transfers, is_falsely_shared: r.get(3)?, users: Vec::new() })
    })?;
    if lines.iter().any(|line| line.object as usize >= objects.len()) {
        return Err(wrong("object"));
    }
    let query = "SELECT line, process, thread, cmg, touched_first, touched_last, written_first, written_last
                 FROM data_user WHERE run = ?1 ORDER BY line, position";
    let users: Vec<(usize, DataUser)> = list(db, id, query, |r| {
        let range = |at: usize| -> rusqlite::Result<Option<(u32, u32)>> {
            Ok(r.get::<_, Option<u32>>(at)?.zip(r.get::<_, Option<u32>>(at + 1)?))
        };
        let (process, thread, cmg) = (r.get(1)?, r.get(2)?, r.get(3)?);
        Ok((r.get(0)?, DataUser { process, thread, cmg, touched: range(4)?, written: range(6)? }))
    })?;
    for (line, user) in users {
        lines.get_mut(line).ok_or_else(|| wrong("line"))?.users.push(user);
    }
    Ok(Data { objects, lines })
}

fn object(r: &Row) -> rusqlite::Result<DataObject> {
    let kind = r.get_ref(0)?.as_str()?;
    let kind = ObjectKind::ALL.into_iter().find(|known| known.name() == kind).ok_or_else(|| wrong("kind"))?;
    let source = match r.get(2)? {
        Some(file) => Some(SourceLine { file, line: r.get(3)? }),
        None => None,
    };
    let counts = unpack(r.get_ref(6)?.as_blob()?).and_then(|counts| counts.try_into().ok());
    Ok(DataObject {
        kind,
        name: r.get(1)?,
        source,
        blocks: r.get(4)?,
        bytes: r.get(5)?,
        counts: DataCounts::from_numbers(counts.ok_or_else(|| wrong("counts"))?),
    })
}
