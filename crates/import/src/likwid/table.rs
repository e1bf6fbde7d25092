//! Reads tables, as CSV or drawn with lines.

use fxscope_record::ALL;

use super::rows::Columns;
use crate::losses::Losses;
use crate::rows::Pass;
use crate::{FileError, Machine, Source};

/// A table: its heading and where its rows begin.
#[derive(Debug)]
struct Table<'a> {
    region: &'a str,
    group: usize,
    /// Whether it has statistics over hardware threads.
    statistics: bool,
    /// Number of its rows; `None` if only a line below ends it.
    rows: Option<usize>,
    /// Index of the line after the heading.
    begin: usize,
}

/// How tables are written.
#[derive(Clone, Copy)]
enum Form {
    /// Fields between this character.
    Csv(char),
    /// Fields between vertical lines.
    Drawn,
}

impl Form {
    fn of(lines: &[&str]) -> Form {
        let mark = lines.iter().find_map(|line| line.strip_prefix("TABLE")?.chars().next());
        mark.map_or(Form::Drawn, Form::Csv)
    }

    /// The fields of a row; `None` for lines that are none.
    fn fields(self, line: &str) -> Option<Vec<&str>> {
        match self {
            Form::Csv(mark) => Some(line.trim_end_matches(mark).split(mark).map(str::trim).collect()),
            Form::Drawn => {
                let inside = line.trim().strip_prefix('|')?.strip_suffix('|')?;
                Some(inside.split('|').map(str::trim).collect())
            }
        }
    }

    /// Finds the tables of counts and of metrics.
    fn tables<'a>(self, lines: &[&'a str]) -> Vec<Table<'a>> {
        match self {
            Form::Csv(mark) => {
                let heading = |(i, line): (usize, &&'a str)| csv_heading(line, mark, i + 1);
                lines.iter().enumerate().filter_map(heading).collect()
            }
            Form::Drawn => drawn_tables(lines),
        }
    }

    /// Returns whether a line ends the table before it.
    fn ends(self, line: &str) -> bool {
        match self {
            Form::Csv(_) => line.starts_with("TABLE") || line.starts_with("STRUCT"),
            Form::Drawn => !line.trim_start().starts_with(['|', '+']),
        }
    }
}

/// Parses `TABLE,[Region NAME,]Group N Raw|Metric [STAT],GROUP,ROWS`. Region names may contain commas.
fn csv_heading(line: &str, mark: char, begin: usize) -> Option<Table<'_>> {
    let rest = line.strip_prefix("TABLE")?.strip_prefix(mark)?.trim_end_matches(mark);
    let (rest, rows) = rest.rsplit_once(mark)?;
    let (rest, _) = rest.rsplit_once(mark)?;
    let (region, table) = match rest.strip_prefix("Region ") {
        Some(rest) => rest.rsplit_once(mark)?,
        None => (ALL, rest),
    };
    let (group, kind) = table.strip_prefix("Group ")?.split_once(' ')?;
    let rows = Some(rows.parse().ok()?);
    Some(Table { region, group: group.parse().ok()?, statistics: kind.ends_with("STAT"), rows, begin })
}

/// Finds drawn tables, whose headings are in the lines before: `Region NAME, Group N: GROUP`, `Region: NAME` and `Group: N`
/// of likwid-mpirun, or `Group N: GROUP`.
fn drawn_tables<'a>(lines: &[&'a str]) -> Vec<Table<'a>> {
    let (mut region, mut group) = (ALL, 1);
    let mut tables = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("Region: ") {
            region = name;
        } else if let Some((name, rest)) = line.strip_prefix("Region ").and_then(|rest| rest.rsplit_once(", Group ")) {
            region = name;
            group = number_before(rest).unwrap_or(group);
        } else if let Some(rest) = line.strip_prefix("Group").map(|rest| rest.trim_start_matches([':', ' '])) {
            group = number_before(rest).unwrap_or(group);
        } else if line.starts_with('+') && lines.get(i + 1).is_some_and(|next| is_head(next)) {
            let statistics = lines[i + 1].split('|').any(|field| field.trim() == "Sum");
            tables.push(Table { region, group, statistics, rows: None, begin: i + 1 });
        }
    }
    tables
}

/// The number at the beginning of a text.
fn number_before(text: &str) -> Option<usize> {
    text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Returns whether a line has the headings of a drawn table.
fn is_head(line: &str) -> bool {
    let first = line.trim().strip_prefix('|').and_then(|rest| rest.split('|').next()).map(str::trim);
    first.is_some_and(|first| matches!(first, "Region Info" | "Event" | "Metric"))
}

/// Reads the tables: one pass per group.
pub(super) fn read(
    source: &Source<'_>,
    text: &str,
    machine: &Machine,
    losses: &mut Losses,
) -> Result<Vec<Pass>, FileError> {
    let lines: Vec<&str> = text.lines().collect();
    let form = Form::of(&lines);
    let mut passes: Vec<Pass> = Vec::new();
    let mut hosts: Vec<String> = Vec::new();
    for table in form.tables(&lines) {
        if table.group == 0 || table.group > lines.len() {
            return Err(source.problem(Some(table.begin), format!("group {} makes no sense", table.group)));
        }
        if table.statistics {
            continue;
        }
        if passes.len() < table.group {
            passes.resize_with(table.group, Pass::default);
        }
        let pass = &mut passes[table.group - 1];
        read_table(source, form, (&lines, &table), pass, (machine, losses, &mut hosts))?;
    }
    if let (Some(pass), false) = (passes.iter_mut().find(|pass| !pass.regions.is_empty()), hosts.is_empty()) {
        pass.notes.push(format!("The nodes are {}, numbered in this order.", hosts.join(", ")));
    }
    Ok(passes)
}

/// Reads the rows of a table.
fn read_table(
    source: &Source<'_>,
    form: Form,
    (lines, table): (&[&str], &Table<'_>),
    pass: &mut Pass,
    (machine, losses, hosts): (&Machine, &mut Losses, &mut Vec<String>),
) -> Result<(), FileError> {
    let rows = pass.region(table.region);
    let mut columns = Columns::default();
    // Times and calls come before the events; some versions count them among the rows, others do not.
    let (mut events, mut all) = (0, 0);
    for (i, line) in lines.iter().enumerate().skip(table.begin) {
        if form.ends(line) || table.rows == Some(events) && events > 0 {
            break;
        }
        let Some(fields) = form.fields(line).filter(|fields| fields.iter().any(|field| !field.is_empty())) else {
            continue;
        };
        let problem = |what: String| source.problem(Some(i + 1), what);
        match fields[0] {
            "Region Info" | "Event" | "Metric" => columns = Columns::parse(&fields, hosts).map_err(problem)?,
            // What a program prints may follow.
            _ if table.rows.is_some_and(|wanted| all >= wanted) && !columns.fit(&fields) => break,
            name => {
                columns.row(&fields, rows, machine, losses).map_err(problem)?;
                let of_region = matches!(name, "RDTSC Runtime [s]" | super::RUNTIME | "call count" | "Region calls");
                events += usize::from(!of_region);
                all += 1;
            }
        }
    }
    match table.rows {
        Some(wanted) if all < wanted => {
            let end = Some(lines.len());
            Err(source.problem(end, "the file ends within a table: it is truncated".to_owned()))
        }
        _ => Ok(()),
    }
}
