//! Reads `instructions.csv`: what each timing class costs.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::error::{LoadError, Place, nearest, suggest};
use crate::evidence::Evidence;
use crate::notation::read_uops;
use crate::recipe::{MAX_PORTS, MAX_UOPS, Recipe, Recipes, Uop};
use crate::spec::VECTOR_BITS;

/// Columns; the first line of the file names them, in any order.
const COLUMNS: [&str; 12] = [
    "class",
    "vl_bits",
    "uops",
    "pipes",
    "latency",
    "blocking",
    "decode_notes",
    "fetch_ports",
    "store_ports",
    "flops_per_element",
    "source",
    "evidence",
];
/// Columns that a file may omit: they are for readers.
const OPTIONAL: [&str; 3] = ["flops_per_element", "source", "evidence"];
/// Words of the column `decode_notes`, joined by `+`.
const NOTES: [&str; 7] = [
    "seq_decode",
    "pre_sync",
    "post_sync",
    "tor",
    "movprfx_packable",
    "extra_uop_if_movprfx_merging",
    "varies_with_system_register(manual footnote 1)",
];
/// Longest cell, bytes: several times the length of the longest one of the manual.
const MAX_CELL: usize = 1024;

/// Rows by class, each with the vector length it holds for (0: any).
pub type Rows = BTreeMap<String, Vec<(u64, Recipe)>>;

/// Reads the rows of a file.
///
/// # Errors
/// The first mistake, with line and class.
pub fn parse(text: &str, file: &Arc<str>) -> Result<Rows, LoadError> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(|e| bad_csv(&e, file))?;
    let columns = columns(header).map_err(|(what, advice)| LoadError::bad(Place::line(file, 1), what, advice))?;
    let records = reader.records().collect::<Result<Vec<_>, _>>().map_err(|e| bad_csv(&e, file))?;
    let mut rows = Rows::new();
    let mut known = Known::new();
    for record in &records {
        let line = record.position().map_or(0, |p| p.line() as usize);
        let cells = columns.map(|column| trimmed(column.and_then(|i| record.get(i)).unwrap_or("")));
        let class = cells[0];
        let bad = |(what, advice): (String, String)| {
            let named = if class.is_empty() { String::new() } else { format!("{}: ", shortened(class)) };
            LoadError::bad(Place::line(file, line), format!("{named}{what}"), advice)
        };
        let (bits, mut recipe) = row(cells, &mut known).map_err(bad)?;
        recipe.line = line as u32;
        let of_class = rows.entry(class.to_owned()).or_default();
        if let Some((_, other)) = of_class.iter().find(|(length, _)| *length == bits) {
            let what = format!("line {} already gives this class for the same vl_bits", other.line);
            return Err(bad((what, "remove one of the two".to_owned())));
        }
        of_class.push((bits, recipe));
    }
    Ok(rows)
}

/// A cell without blanks around it. Nearly all have none, so that one look at both ends is enough.
fn trimmed(cell: &str) -> &str {
    match cell.as_bytes() {
        [] => cell,
        [first, .., last] if first.is_ascii_graphic() && last.is_ascii_graphic() => cell,
        _ => cell.trim(),
    }
}

/// Replaces rows of the extended machine by those of `over`. A row for any vector length replaces all rows of its class.
///
/// # Errors
/// A class that the extended machine does not have: it would never be used.
pub fn overlay(rows: &mut Rows, over: Rows, file: &Arc<str>) -> Result<(), LoadError> {
    for (class, new) in over {
        let Some(old) = rows.get_mut(&class) else {
            let line = new.iter().map(|(_, recipe)| recipe.line).min().unwrap_or(0) as usize;
            let what = format!("{}: the extended machine has no such class", shortened(&class));
            let advice = suggest(nearest(&class, rows.keys().map(String::as_str)), || {
                "use the names of its own instructions.csv".to_owned()
            });
            return Err(LoadError::bad(Place::line(file, line), what, advice));
        };
        let any_length = new.iter().any(|(length, _)| *length == 0);
        old.retain(|(length, _)| !any_length && new.iter().all(|(other, _)| other != length));
        old.extend(new);
    }
    Ok(())
}

/// Sets the evidence of each row to what `choose` returns for its own.
pub fn set_evidence(rows: &mut Rows, choose: impl Fn(Option<Evidence>) -> Option<Evidence>) {
    for (_, recipe) in rows.values_mut().flatten() {
        recipe.evidence = choose(recipe.evidence);
    }
}

/// The recipes for one vector length. A row for that length has priority over one for any length.
#[must_use]
pub fn recipes(rows: Rows, vector_bits: u32) -> Recipes {
    let pick = |mut by_length: Vec<(u64, Recipe)>| {
        let place = |bits: u64| by_length.iter().position(|(length, _)| *length == bits);
        let place = place(u64::from(vector_bits)).or_else(|| place(0))?;
        Some(by_length.swap_remove(place).1)
    };
    rows.into_iter().filter_map(|(class, by_length)| Some((class, pick(by_length)?))).collect()
}

/// What is wrong, and what to do.
type Mistake = (String, String);

/// Where each of [`COLUMNS`] stands.
fn columns(header: &csv::StringRecord) -> Result<[Option<usize>; COLUMNS.len()], Mistake> {
    for name in header {
        if !COLUMNS.contains(&name.trim()) {
            let what = format!("there is no column '{}'", shortened(name));
            return Err((what, suggest(nearest(name, COLUMNS), || format!("the columns are {}", COLUMNS.join(",")))));
        }
    }
    let places = COLUMNS.map(|column| header.iter().position(|name| name.trim() == column));
    match COLUMNS.iter().zip(places).find(|(name, place)| place.is_none() && !OPTIONAL.contains(name)) {
        Some((name, _)) => {
            Err((format!("column '{name}' is missing"), format!("the first line must be {}", COLUMNS.join(","))))
        }
        None => Ok(places),
    }
}

/// Micro-operations by the cells that they were parsed from: most rows are like others.
type Known<'a> = HashMap<(&'a str, &'a str, &'a str, usize), Arc<[Uop]>>;

fn row<'a>(cells: [&'a str; COLUMNS.len()], known: &mut Known<'a>) -> Result<(u64, Recipe), Mistake> {
    let mend = |what: String| (what, "correct this row".to_owned());
    if let Some(i) = (0..COLUMNS.len()).find(|&i| cells[i].len() > MAX_CELL) {
        return Err(mend(format!("{} is longer than {MAX_CELL} bytes", COLUMNS[i])));
    }
    if cells[0].is_empty() {
        return Err(("the row names no class".to_owned(), "begin it with a timing class".to_owned()));
    }
    let number = |column: usize, low: u64, high: u64| match cells[column] {
        "" if low == 0 => Ok(0),
        text => text.parse().ok().filter(|n| (low..=high).contains(n)).ok_or_else(|| {
            let what = format!("{} is '{}'", COLUMNS[column], shortened(text));
            (what, format!("give a whole number from {low} to {high}"))
        }),
    };
    let bits = match cells[1] {
        "" => 0,
        text => text.parse().ok().filter(|bits| VECTOR_BITS.contains(bits)).ok_or_else(|| {
            (format!("vl_bits is '{}'", shortened(text)), "give 128, 256 or 512, or nothing for all".to_owned())
        })?,
    };
    let count = number(2, 1, MAX_UOPS as u64)? as usize;
    let notes: Vec<&str> = cells[6].split('+').filter(|n| !n.is_empty()).collect();
    if let Some(unknown) = notes.iter().find(|n| !NOTES.contains(n)) {
        let what = format!("there is no decode note '{}'", shortened(unknown));
        return Err((what, suggest(nearest(unknown, NOTES), || format!("the notes are {}", NOTES.join(", ")))));
    }
    let has = |note: &str| notes.contains(&note);
    let uops = match known.entry((cells[3], cells[4], cells[5], count)) {
        Entry::Occupied(same) => Arc::clone(same.get()),
        Entry::Vacant(new) => {
            let read = read_uops(cells[3], cells[4], cells[5], count).map_err(mend)?;
            Arc::clone(new.insert(read.into()))
        }
    };
    let evidence = match cells[11] {
        "" => None,
        word => Some(Evidence::named(word).ok_or_else(|| {
            let known = Evidence::ALL.map(Evidence::name).join(", ");
            (format!("evidence is '{}'", shortened(word)), format!("give one of {known}, or nothing"))
        })?),
    };
    let recipe = Recipe {
        uops,
        sequential: has("seq_decode"),
        pre_sync: has("pre_sync"),
        post_sync: has("post_sync"),
        temporary_operand: has("tor"),
        movprfx_packable: has("movprfx_packable"),
        movprfx_extra_uop: has("extra_uop_if_movprfx_merging"),
        fetch_ports: number(7, 0, MAX_PORTS)? as u32,
        store_ports: number(8, 0, MAX_PORTS)? as u32,
        evidence,
        line: 0,
    };
    Ok((bits, recipe))
}

pub(crate) fn bad_csv(error: &csv::Error, file: &Arc<str>) -> LoadError {
    let place = error.position().map_or(Place::of(file), |p| Place::line(file, p.line() as usize));
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => LoadError::bad(
            place,
            format!("the row has {len} cells, the first line has {expected_len}"),
            "write commas for empty cells, and quotes around cells with a comma",
        ),
        _ => LoadError::bad(place, error.to_string(), "correct the CSV there"),
    }
}

/// Text of a file as a message shows it.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(80).collect::<String>().escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "class,vl_bits,uops,pipes,latency,blocking,decode_notes,fetch_ports,store_ports\n";

    fn read(rows: &str) -> Result<Rows, String> {
        parse(&format!("{HEADER}{rows}"), &"f.csv".into()).map_err(|e| e.to_string())
    }

    #[test]
    fn a_wrong_row_is_reported_with_line_class_and_remedy() {
        let cases = [
            ("a,,1,FLC,4,,,,\n", "f.csv:2: a: unknown pipe 'FLC'; correct this row"),
            (
                "a,,1,FLA,4,,,,\nb,,2,FLA,4,,,,\n",
                "f.csv:3: b: uops says 2, but pipes has 1 and latency 1 micro-operations",
            ),
            ("a,,0,FLA,4,,,,\n", "f.csv:2: a: uops is '0'; give a whole number from 1 to 64"),
            ("a,100,1,FLA,4,,,,\n", "f.csv:2: a: vl_bits is '100'; give 128, 256 or 512"),
            ("a,,1,FLA,4,,pre_sink,,\n", "no decode note 'pre_sink'; did you mean 'pre_sync'?"),
            ("a,,1,FLA,4,,,,-1\n", "store_ports is '-1'"),
            ("a,,1,FLA\n", "f.csv:2: the row has 4 cells, the first line has 9"),
            (",,1,FLA,4,,,,\n", "f.csv:2: the row names no class"),
            ("a,,1,FLA,4,,,,\na,,1,FLB,4,,,,\n", "f.csv:3: a: line 2 already gives this class"),
        ];
        for (rows, expected) in cases {
            let message = read(rows).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn a_wrong_header_is_reported() {
        let message = |text: &str| parse(text, &"f.csv".into()).unwrap_err().to_string();
        assert!(message("class,latensy\n").contains("f.csv:1: there is no column 'latensy'; did you mean 'latency'?"));
        assert!(message("class,vl_bits\n").contains("column 'uops' is missing"));
        assert!(message("").contains("column 'class' is missing"));
    }

    #[test]
    fn rows_for_one_vector_length_count_before_rows_for_all() {
        let rows = read("a,,1,FLA,4,,,,\na,256,1,FLA,6,,,,\n").unwrap();
        let latency = |bits| recipes(rows.clone(), bits).named("a").unwrap().uops[0].flows[0].latency;
        assert_eq!((latency(512), latency(256)), (4, 6));
    }

    #[test]
    fn an_extending_row_replaces_its_class_or_one_vector_length_of_it() {
        let base = read("a,128,1,FLA,1,,,,\na,512,1,FLA,5,,,,\n").unwrap();
        let latency = |over: &str, bits| {
            let mut rows = base.clone();
            overlay(&mut rows, read(over).unwrap(), &"o.csv".into()).unwrap();
            recipes(rows, bits).named("a").unwrap().uops[0].flows[0].latency
        };
        assert_eq!((latency("a,512,1,FLA,9,,,,\n", 512), latency("a,512,1,FLA,9,,,,\n", 128)), (9, 1));
        assert_eq!((latency("a,,1,FLA,9,,,,\n", 512), latency("a,,1,FLA,9,,,,\n", 128)), (9, 9));
    }

    #[test]
    fn a_class_that_the_extended_machine_lacks_is_refused() {
        let mut rows = read("sve:FADD,,1,FLA,9,,,,\n").unwrap();
        let e = overlay(&mut rows, read("sve:FAD,,1,FLA,9,,,,\n").unwrap(), &"o.csv".into()).unwrap_err().to_string();
        assert_eq!(e, "o.csv:2: sve:FAD: the extended machine has no such class; did you mean 'sve:FADD'?");
    }

    #[test]
    fn hostile_rows_neither_overflow_the_stack_nor_fill_memory() {
        let deep = format!("a,,1,{}FLA{},4,,,,\n", "(".repeat(400), ")".repeat(400));
        let repeated = "a,,1,((((FLA / FLA) x 60) x 60) x 60) x 60,4,,,,\n";
        let nothing = "a,,1,((((FLA) x 0) x 64) x 64) x 64,4,,,,\n";
        let huge = "a,,1,\"Pipe(FLA, 4000000000)\",4294967295,,,,\n";
        let range = "a,,1,FLA,n (9-3),,,,\n";
        let early = "a,,1,FLA,[1]4,,,,\n";
        let _ = read(&deep);
        for rows in [repeated, nothing, huge, range, early] {
            assert!(read(rows).is_err(), "{rows}");
        }
    }
}
