//! The lines that hardware prefetch requests for a stream of accesses, access by access.

use fxscope_memory::Pointer;
use fxscope_memory::prefetch::{Access, Prefetcher, Run};
use fxscope_report::sheet::{Cell, Column, Sheet, Table};

use crate::Error;

/// The machine whose prefetcher is shown, if none is named.
pub const DEFAULT_MACHINE: &str = fxscope_session::DEFAULT_MACHINE;

/// The first line of the stream: any that lies far from the ends of memory.
const FIRST: u64 = 1 << 20;

/// An access that the prefetcher expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Its line, counted from that of the first miss.
    pub line: u64,
    /// The lines that it prefetches into L2, counted likewise.
    pub l2: Vec<u64>,
    /// Those into L1.
    pub l1: Vec<u64>,
}

/// Returns what an ascending stream of `hits` lines behind a first miss prefetches, at these distances; `None`: those of the
/// machine.
///
/// # Errors
/// If the machine cannot be loaded, or does not have such distances.
pub fn stream(machine: &str, l1_lines: Option<u32>, l2_lines: Option<u32>, hits: u32) -> Result<Vec<Hit>, Error> {
    let distance = |key: &str, lines: Option<u32>| Some((format!("prefetch.{key}"), lines?.to_string()));
    let settings: Vec<_> =
        [distance("l1_lines", l1_lines), distance("l2_lines", l2_lines)].into_iter().flatten().collect();
    let spec = fxscope_machine::load(machine, &settings)?;
    let shift = spec.l1d.line_bytes.trailing_zeros();
    let mut prefetcher = Prefetcher::new(&spec.prefetch, shift);
    let mut access = |line: u64, missed: bool| {
        let addr = (FIRST + line) << shift;
        prefetcher.access(Access { addr, missed, steering: Pointer::from(addr).steering })
    };
    access(0, true);
    let hit = |line: u64| {
        let requests = access(line, false);
        let of = |run: fn(&fxscope_memory::prefetch::Requests) -> Run| {
            let lines = requests.as_ref().map(|requests| (run(requests), requests.step));
            lines.map_or_else(Vec::new, |(run, step)| behind(run, step))
        };
        Hit { line, l2: of(|requests| requests.l2), l1: of(|requests| requests.l1) }
    };
    Ok((1..=u64::from(hits)).map(hit).collect())
}

/// Returns the lines of a run, counted from the first miss.
fn behind(run: Run, step: i64) -> Vec<u64> {
    let line = |i: i64| run.first.wrapping_add_signed(step * i).wrapping_sub(FIRST);
    (0..i64::from(run.count)).map(line).collect()
}

/// Formats lines as `A+2 A+3`.
#[must_use]
pub fn lines(lines: &[u64]) -> String {
    let texts: Vec<String> = lines.iter().map(|line| format!("A+{line}")).collect();
    if texts.is_empty() { "-".to_owned() } else { texts.join(" ") }
}

/// Returns the stream's accesses and their prefetches as a table.
///
/// # Errors
/// As [`stream`].
pub fn sheet(machine: &str, l1_lines: Option<u32>, l2_lines: Option<u32>, hits: u32) -> Result<Sheet, Error> {
    let mut table = Table::new("Prefetched lines", ["access", "into L2", "into L1"].map(Column::new));
    for hit in stream(machine, l1_lines, l2_lines, hits)? {
        let cells = [&hit.l2, &hit.l1].map(|run| Cell::new(run, lines(run)));
        table.push(format!("A+{}", hit.line), cells.to_vec());
    }
    let bytes = fxscope_machine::load(machine, &[])?.l1d.line_bytes;
    let note = format!("A is the line of the first miss; lines have {bytes} bytes.");
    Ok(Sheet {
        title: format!("Hardware prefetch of an ascending stream on {machine}"),
        tables: vec![table],
        notes: vec![("Lines", vec![note])],
        ..Sheet::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_runs_ahead_by_two_lines_an_access_up_to_its_distance() {
        let hits = stream(DEFAULT_MACHINE, Some(4), Some(10), 6).expect("distances of the machine");
        assert_eq!(hits[0], Hit { line: 1, l2: vec![2, 3], l1: vec![] });
        assert_eq!(hits[4], Hit { line: 5, l2: vec![10, 11], l1: vec![8, 9] });
        assert_eq!(lines(&hits[4].l1), "A+8 A+9");
    }

    #[test]
    fn a_distance_beyond_the_machine_is_refused() {
        assert!(stream(DEFAULT_MACHINE, Some(16), None, 1).is_err_and(|e| e.to_string().contains("l1_lines")));
    }
}
