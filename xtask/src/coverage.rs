//! Writes the tables of instructions in `docs`: each encoding, whether it executes, whether it is compared with QEMU, and
//! which rows of the machine's table give its timing. All of it comes from the encodings, the list of exceptions in
//! `fxscope_aarch64::coverage` and the machine's `instructions.csv`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::sync::LazyLock;

use fxscope_aarch64::coverage::{self, Coverage, Execution, PARTLY_COMPARED};
use fxscope_aarch64::insn::{GROUPS, Group};
use fxscope_aarch64::table::Encoding;
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};

use crate::root;

/// The machine whose rows time the instructions.
const MACHINE: &str = "a64fx";
/// Path of the overview, from the root.
const OVERVIEW: &str = "docs/instructions.md";
/// The pages: name, title, and prefixes of their groups' names.
const PAGES: [(&str, &str, &[&str]); 3] = [
    ("base", "Base instructions", &["base_"]),
    ("simd", "Floating-point, AdvSIMD and cryptographic instructions", &["fp_", "simd_"]),
    ("sve", "SVE instructions", &["sve_"]),
];

/// Options of `xtask coverage`.
#[derive(clap::Args)]
pub struct Args {
    /// Write nothing; fail if the tables are out of date.
    #[arg(long)]
    check: bool,
}

/// Writes the tables, or checks them.
///
/// # Errors
/// If an encoding is neither compared nor excepted or has no timing row, if a file cannot be written, or, in a check, if a
/// table is out of date.
pub fn run(args: &Args) -> Result<(), String> {
    let found = gaps()?;
    if !found.is_empty() {
        return Err(found.join("\n"));
    }
    if args.check {
        let stale = stale()?;
        return if stale.is_empty() { Ok(()) } else { Err(stale.join("\n")) };
    }
    for (path, text) in pages()? {
        let path = root().join(path);
        fs::create_dir_all(path.parent().expect("a page lies in a folder"))
            .and_then(|()| fs::write(&path, text))
            .map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// Returns the tables that are out of date.
///
/// # Errors
/// If the machine cannot be read.
pub fn stale() -> Result<Vec<String>, String> {
    let differs = |(path, text): &(String, String)| fs::read_to_string(root().join(path)).ok().as_ref() != Some(text);
    let advice = |(path, _)| format!("{path} is out of date: run cargo run -p xtask -- coverage");
    Ok(pages()?.into_iter().filter(differs).map(advice).collect())
}

/// Returns the encodings without a timing row.
///
/// # Errors
/// If the machine cannot be read.
pub fn gaps() -> Result<Vec<String>, String> {
    let sources = sources()?;
    let recipes = fxscope_machine::load(MACHINE, &[]).map_err(|e| e.to_string())?.recipes;
    let mut found = Vec::new();
    for row in GROUPS.iter().flat_map(|group| group.rows) {
        let Some(coverage) = coverage_of(row) else {
            found.push(format!("{}: no word of it decodes", row.name));
            continue;
        };
        let untimed = coverage.classes.iter().filter(|class| recipes.named(class).is_none() || !sources.has(class));
        found.extend(untimed.map(|class| format!("{}: {MACHINE}'s instructions.csv has no row {class}", row.name)));
    }
    Ok(found)
}

/// Returns the timing rows that no encoding uses.
///
/// # Errors
/// If the machine cannot be read.
pub fn unused_rows() -> Result<Vec<String>, String> {
    let rows = GROUPS.iter().flat_map(|group| group.rows);
    let used: Vec<&str> = rows.filter_map(coverage_of).flat_map(|c| &c.classes).copied().collect();
    Ok(sources()?.0.into_keys().filter(|class| !used.contains(&class.as_str())).collect())
}

/// Returns the coverage of an encoding; `None`: no word of it decodes. It is found by decoding many words, once for all encodings.
fn coverage_of(row: &Encoding) -> Option<&'static Coverage> {
    static BY_NAME: LazyLock<BTreeMap<&str, Coverage>> = LazyLock::new(|| {
        let rows = GROUPS.par_iter().flat_map(|group| group.rows);
        rows.filter_map(|row| Some((row.name, coverage::of(row)?))).collect()
    });
    BY_NAME.get(row.name)
}

/// Sources of the numbers of each timing class.
struct Sources(BTreeMap<String, String>);

impl Sources {
    fn has(&self, class: &str) -> bool {
        self.0.contains_key(class)
    }
}

fn sources() -> Result<Sources, String> {
    let path = root().join(format!("data/machines/{MACHINE}/instructions.csv"));
    let bad = |e: csv::Error| format!("{}: {e}", path.display());
    let mut reader = csv::Reader::from_path(&path).map_err(bad)?;
    let header = reader.headers().map_err(bad)?;
    let column = |name: &str| {
        let place = header.iter().position(|h| h == name);
        place.ok_or_else(|| format!("{}: there is no column '{name}'", path.display()))
    };
    let (class, source) = (column("class")?, column("source")?);
    let mut sources = BTreeMap::new();
    for record in reader.records() {
        let record = record.map_err(bad)?;
        sources.insert(record[class].to_owned(), record[source].to_owned());
    }
    Ok(Sources(sources))
}

/// Returns all files with their text.
fn pages() -> Result<Vec<(String, String)>, String> {
    let sources = sources()?;
    let mut totals = Vec::new();
    let mut pages = Vec::new();
    for (name, title, beginnings) in PAGES {
        let mut text =
            format!("# {title}\n\n{GENERATED}\n\nThe columns are explained in [{OVERVIEW}](../instructions.md).\n");
        let groups = GROUPS.iter().filter(|g| beginnings.iter().any(|b| g.name.starts_with(b)));
        for group in groups {
            totals.push((name, section(&mut text, group, &sources)));
        }
        pages.push((format!("docs/instructions/{name}.md"), text));
    }
    pages.push((OVERVIEW.to_owned(), overview(&totals)));
    Ok(pages)
}

/// First line below the title of each page.
const GENERATED: &str =
    "Written by `cargo run -p xtask -- coverage` from the encodings and the machine's table; a test keeps it current.";

/// First line of the overview.
const PURPOSE: &str = "Which instructions fxscope executes, how each is tested, and how it is timed.";

/// Totals of a group's section.
struct Total {
    group: &'static str,
    encodings: usize,
    never_executes: usize,
    not_compared: usize,
}

/// Writes the table of one group.
fn section(text: &mut String, group: &'static Group, sources: &Sources) -> Total {
    let file = format!("crates/aarch64/src/insn/{}.rs", group.name);
    let _ = write!(text, "\n## {}\n\n[`{file}`](../../{file})\n\n", group.name);
    text.push_str("| Encoding | Bits | Executes | Compared | Timed from |\n|---|---|---|---|---|\n");
    let mut total = Total { group: group.name, encodings: 0, never_executes: 0, not_compared: 0 };
    for row in group.rows {
        let Some(coverage) = coverage_of(row) else { continue };
        total.encodings += 1;
        total.never_executes += usize::from(coverage.execution == Execution::Never);
        total.not_compared += usize::from(coverage::not_compared(row.name).is_some());
        let cells = [
            row.name.to_owned(),
            format!("`{}`", row.notation),
            executes(coverage).to_owned(),
            compared(row),
            timed(coverage, sources),
        ];
        let _ = writeln!(text, "| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
    }
    total
}

fn executes(coverage: &Coverage) -> &'static str {
    match coverage.execution {
        Execution::Always => "yes",
        Execution::Sometimes => "by operands",
        Execution::Never => "SIGILL",
    }
}

fn compared(row: &Encoding) -> String {
    if let Some(reason) = coverage::not_compared(row.name) {
        return format!("no: {reason}");
    }
    match PARTLY_COMPARED.iter().find(|(name, _)| *name == row.name) {
        Some((_, what)) => format!("yes; {what}"),
        None => "yes".to_owned(),
    }
}

/// Formats the classes with their sources, grouped by source.
fn timed(coverage: &Coverage, sources: &Sources) -> String {
    let mut by_source: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for class in &coverage.classes {
        let source = sources.0.get(*class).map_or("no row", String::as_str);
        by_source.entry(source).or_default().push(format!("`{class}`"));
    }
    let parts: Vec<String> =
        by_source.into_iter().map(|(source, classes)| format!("{} ({source})", classes.join(", "))).collect();
    parts.join("; ")
}

fn overview(totals: &[(&str, Total)]) -> String {
    let mut text = format!("# Instructions\n\n{PURPOSE}\n\n{GENERATED}\n\n{LEGEND}\n\n");
    text.push_str("| Group | Encodings | of these raise SIGILL | not compared |\n|---|---|---|---|\n");
    for (page, t) in totals {
        let _ = writeln!(
            text,
            "| [{group}](instructions/{page}.md#{group}) | {} | {} | {} |",
            t.encodings,
            t.never_executes,
            t.not_compared,
            group = t.group
        );
    }
    let sum = |what: fn(&Total) -> usize| totals.iter().map(|(_, t)| what(t)).sum::<usize>();
    let (all, never, not) = (sum(|t| t.encodings), sum(|t| t.never_executes), sum(|t| t.not_compared));
    let _ = writeln!(text, "| all | {all} | {never} | {not} |");
    text
}

/// Explains the columns of the tables.
const LEGEND: &str = "\
Every encoding that the processor has is one row of a file in `crates/aarch64/src/insn`. A word that belongs to no row, or
whose fields are an unallocated combination, raises SIGILL (`ILL_ILLOPC`).

* *Bits*: the pattern as in the encoding table, from bit 31 down; `name:width` is an operand.
* *Executes*: \"SIGILL\" marks instructions that user code may not execute; \"by operands\" those that execute
  or not depending on a register or operation named in the word.
* *Compared*: random operands and states are compared bit for bit with `qemu-aarch64 -cpu a64fx`
  (`crates/aarch64/tests/it/differential`); otherwise the table gives the reason.
* *Timed from*: the rows of `data/machines/a64fx/instructions.csv`, by operands and vector length, and the source of their
  numbers. MM is the A64FX Microarchitecture Manual with section and page: documented evidence.";
