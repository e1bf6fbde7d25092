//! What a table says, in one line.

use super::plain::text;
use crate::document::{Body, Grid, Line, Place, Row, Section};
use crate::render::quantity::{quantity, share};

/// The columns of a table whose totals say most. Of other tables, these are the first two.
const COLUMNS: [(&str, &[&str]); 9] = [
    ("A", &["A01", "A02", "A04", "A11"]),
    ("D", &["D04", "D09", "D14"]),
    ("E", &["E01-E14", "E19-E21", "E29"]),
    ("F", &["F01", "F02", "F03"]),
    ("G", &["G01-G02", "G04"]),
    ("I", &["I01", "I04"]),
    ("J", &["J01 read", "J01 write"]),
    ("K", &["K CMG", "K energy", "K01"]),
    ("H", &["H01", "H02"]),
];
/// Tables whose largest columns say most, each with the column of its whole, if it has one.
const LARGEST: [(&str, Option<&str>); 2] = [("B", Some("B21")), ("C", None)];
/// Columns of such a table that are named.
const NAMED: usize = 2;

/// Returns the totals that say most about a table; empty if there are none.
pub fn of_grid(grid: &Grid) -> String {
    let Some(total) = grid.records.iter().find(|record| record.place == Place::Total) else { return String::new() };
    let known = |column: usize| Some((column, total.values[column]?));
    let find = |id: &str| grid.headings.iter().position(|heading| heading.id == id).and_then(known);
    let text = |(column, value): (usize, f64)| {
        format!("{} {}", grid.headings[column].title, quantity(value, &grid.headings[column].unit))
    };
    if let Some((_, whole)) = LARGEST.iter().find(|of| of.0 == grid.id) {
        let whole = whole.map(|id| (id, find(id).map_or(0.0, |found| found.1)));
        let parts =
            (0..grid.headings.len()).filter(|&column| whole.is_none_or(|(id, _)| grid.headings[column].id != id));
        let mut parts: Vec<(usize, f64)> = parts.filter_map(known).filter(|part| part.1 > 0.0).collect();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        let text = |part: (usize, f64)| match whole {
            Some((_, sum)) if sum > 0.0 => format!("{} {}", grid.headings[part.0].title, share(part.1 / sum)),
            _ => text(part),
        };
        return parts.into_iter().take(NAMED).map(text).collect::<Vec<_>>().join(", ");
    }
    let wanted: Vec<(usize, f64)> = match COLUMNS.iter().find(|of| of.0 == grid.id) {
        Some((_, ids)) => ids.iter().filter_map(|id| find(id)).collect(),
        None => (0..grid.headings.len()).filter_map(known).take(NAMED).collect(),
    };
    wanted.into_iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Returns the first row of a table, which is the most important one, and the number of rows.
pub fn of_rows<'a>(headings: &[String], rows: impl Iterator<Item = &'a Row>) -> String {
    let rows: Vec<&Row> = rows.collect();
    let Some(first) = rows.first() else { return String::new() };
    let value =
        first.values.iter().zip(headings.iter().skip(1)).find_map(|(value, heading)| Some((value.as_ref()?, heading)));
    let value = value.map_or_else(String::new, |(value, heading)| format!(": {heading} {}", text(value)));
    let more = if rows.len() > 1 { format!(", first of {}", rows.len()) } else { String::new() };
    format!("{}{value}{more}", first.label.trim())
}

/// Returns the first facts of each section.
pub fn of_facts(sections: &[&Section]) -> String {
    let rows = sections.iter().filter_map(|section| match &section.body {
        Body::Facts(rows) => rows.first(),
        _ => None,
    });
    let fact = |row: &Row| Some(format!("{} {}", row.label, text(row.values.first()?.as_ref()?)));
    rows.filter_map(fact).collect::<Vec<_>>().join(", ")
}

/// Returns the rows among the lines of a listing.
pub fn rows(lines: &[Line]) -> impl Iterator<Item = &Row> {
    lines.iter().filter_map(|line| match line {
        Line::Row(row) => Some(row),
        Line::Caption(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Heading, Record};

    fn grid(id: &str, columns: &[(&str, &str, &str, f64)]) -> Grid {
        let heading = |&(id, title, unit, _): &(&str, &str, &str, f64)| {
            let [id, title, unit] = [id, title, unit].map(str::to_owned);
            Heading { id, title, unit }
        };
        let total = Record { place: Place::Total, values: columns.iter().map(|column| Some(column.3)).collect() };
        let headings = columns.iter().map(heading).collect();
        Grid { id: id.to_owned(), headings, records: vec![total], marks: Vec::new() }
    }

    #[test]
    fn accounting_names_the_largest_parts_as_shares_of_the_total() {
        let columns = [("B03", "memory", "s", 2e-3), ("B10", "operations", "s", 5e-3), ("B21", "Total", "s", 1e-2)];
        assert_eq!(of_grid(&grid("B", &columns)), "operations 50.0 %, memory 20.0 %");
    }

    #[test]
    fn busy_rates_name_the_busiest_units() {
        let columns = [("C01", "FLA", "ratio", 0.25), ("C05", "L1", "ratio", 0.75), ("C06", "L2", "ratio", 0.5)];
        assert_eq!(of_grid(&grid("C", &columns)), "L1 75.0 %, L2 50.0 %");
    }

    #[test]
    fn statistics_name_time_and_rates() {
        let columns =
            [("A01", "Time", "s", 1e-3), ("A03", "Share", "ratio", 0.5), ("A11", "IPC", "instructions/cycle", 1.5)];
        assert_eq!(of_grid(&grid("A", &columns)), "Time 1.000 ms, IPC 1.500");
    }
}
