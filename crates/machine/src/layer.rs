//! One `machine.toml`: its values with their places, and the machine that it extends.

use std::str::FromStr as _;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{LoadError, Place, nearest, suggest};
use crate::evidence::{Evidence, Provenance, WORDS};
use crate::schema::{Key, Table, Value, renamed};
use crate::spec::{SCHEMA, Tables};

/// The top-level key that names the machine a file extends.
const EXTENDS: &str = "extends";
/// The table with the provenance of values that a file takes from the machine it extends: at the top level for all
/// tables, inside a table for its keys.
const INHERITED: &str = "inherited";
/// The table with the provenance of rows of `instructions.csv` that have no evidence of their own.
const INSTRUCTIONS: &str = "instructions";
/// The word for the value, in the long form of a key.
const VALUE: &str = "value";

/// A value, where it was given, and where it comes from.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The value, of its key's kind.
    pub value: Value,
    /// Where it was given.
    pub place: Place,
    /// Where it comes from.
    pub provenance: Provenance,
}

/// The values given so far, in the order of [`SCHEMA`].
#[derive(Clone, Debug)]
pub struct Layer {
    /// By table and key.
    pub cells: Vec<Vec<Option<Cell>>>,
    /// By table: the provenance of values from the extended machine, where the file states it.
    pub inherited: Vec<Option<Provenance>>,
    /// The evidence of instruction rows, those of the file's own folder and inherited ones; none where the file does not
    /// say.
    pub rows: RowEvidence,
}

/// The evidence of instruction rows that do not state their own.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowEvidence {
    /// Rows of the folder's own `instructions.csv`.
    pub own: Option<Evidence>,
    /// Rows of the machine that it extends.
    pub inherited: Option<Evidence>,
}

impl Layer {
    /// No value is given.
    #[must_use]
    pub fn empty() -> Layer {
        Layer {
            cells: SCHEMA.iter().map(|t| t.keys.iter().map(|_| None).collect()).collect(),
            inherited: vec![None; SCHEMA.len()],
            rows: RowEvidence::default(),
        }
    }

    /// Replaces values by those of `over`, with their provenance. Values that `over` does not give keep their provenance,
    /// unless `over` states one for inherited values.
    pub fn overlay(&mut self, over: Layer) {
        for ((cells, new), inherited) in self.cells.iter_mut().zip(over.cells).zip(over.inherited) {
            for (cell, new) in cells.iter_mut().zip(new) {
                match (new, cell.as_mut(), &inherited) {
                    (Some(new), ..) => *cell = Some(new),
                    (None, Some(old), Some(provenance)) => old.provenance.clone_from(provenance),
                    _ => {}
                }
            }
        }
    }

    /// The provenance of each value, in the order of [`SCHEMA`]; empty for values that are missing.
    #[must_use]
    pub fn provenance(&self) -> Vec<Vec<Provenance>> {
        let of = |cell: &Option<Cell>| cell.as_ref().map_or_else(Provenance::default, |c| c.provenance.clone());
        self.cells.iter().map(|cells| cells.iter().map(of).collect()).collect()
    }

    /// The tables, when every key has a value.
    ///
    /// # Errors
    /// Which keys are missing in `file`, the one that extends nothing.
    pub fn tables(&self, file: &Arc<str>) -> Result<Tables, LoadError> {
        let mut missing = Vec::new();
        let mut values = Vec::new();
        for (table, cells) in SCHEMA.iter().zip(&self.cells) {
            let absent = |(key, cell): (&Key, &Option<Cell>)| match cell {
                Some(cell) => Some(cell.value.clone()),
                None => {
                    missing.push(format!("[{}] {}", table.name, key.name));
                    None
                }
            };
            values.push(table.keys.iter().zip(cells).filter_map(absent).collect::<Vec<_>>());
        }
        if let Some(tables) = missing.is_empty().then(|| Tables::build(&values)).flatten() {
            return Ok(tables);
        }
        const SHOWN: usize = 4;
        let more = match missing.len() {
            ..=SHOWN => String::new(),
            n => format!(" and {} more keys", n - SHOWN),
        };
        missing.truncate(SHOWN);
        let what = format!("the file lacks {}{more}", missing.join(", "));
        Err(LoadError::bad(
            Place::of(file),
            what,
            "give them, or take them from a known machine: extends = \"a64fx\" before the first table",
        ))
    }
}

/// The name of the machine that a file extends, and where it says so.
pub type Base = (String, Place);

/// Reads a `machine.toml`.
///
/// # Errors
/// The first mistake, with line and column.
pub fn parse(text: &str, file: &Arc<str>) -> Result<(Layer, Option<Base>), LoadError> {
    let at = |offset: usize| Place::offset(file, text.as_bytes(), offset);
    let document = DeTable::parse(text).map_err(|e| {
        let what = e.message().lines().collect::<Vec<_>>().join(", ");
        LoadError::bad(at(e.span().map_or(0, |s| s.start)), what, "correct the TOML there")
    })?;
    let mut layer = Layer::empty();
    let mut base = None;
    let mut inherited = None;
    for (name, item) in in_order(document.get_ref()) {
        let place = at(name.span().start);
        let name = name.get_ref().as_ref();
        match (SCHEMA.iter().position(|t| t.name == name), item.get_ref()) {
            (Some(t), DeValue::Table(keys)) => {
                layer.inherited[t] = read_table(&SCHEMA[t], keys, &mut layer.cells[t], &at)?;
            }
            (None, DeValue::Table(words)) if name == INHERITED => inherited = Some(read_provenance(name, words, &at)?),
            (None, DeValue::Table(words)) if name == INSTRUCTIONS => {
                layer.rows.own = read_provenance(name, words, &at)?.evidence;
            }
            (Some(_), _) => {
                let what = format!("'{name}' is a table, not a value");
                return Err(LoadError::bad(place, what, format!("write its keys below a line [{name}]")));
            }
            (None, DeValue::String(machine)) if name == EXTENDS => base = Some((machine.to_string(), place)),
            (None, _) if name == EXTENDS => {
                let advice = "give the name or path of a machine in quotes";
                return Err(LoadError::bad(place, "'extends' is not text", advice));
            }
            (None, _) => return Err(unknown_table(name, place)),
        }
    }
    if let Some(all) = inherited {
        layer.rows.inherited = all.evidence;
        for table in &mut layer.inherited {
            *table = Some(table.take().map_or_else(|| all.clone(), |own| own.or(&all)));
        }
    }
    Ok((layer, base))
}

/// The items of a table in the order in which they stand in the file.
fn in_order<'a, 'i>(table: &'a DeTable<'i>) -> Vec<(&'a Spanned<toml::de::DeString<'i>>, &'a Spanned<DeValue<'i>>)> {
    let mut items: Vec<_> = table.iter().collect();
    items.sort_by_key(|(name, _)| name.span().start);
    items
}

/// Reads the keys of a table into `cells`. Returns the provenance that the table states for inherited values.
fn read_table(
    table: &Table,
    keys: &DeTable,
    cells: &mut [Option<Cell>],
    at: &impl Fn(usize) -> Place,
) -> Result<Option<Provenance>, LoadError> {
    let (mut defaults, mut inherited) = (Provenance::default(), None);
    for (name, item) in in_order(keys) {
        let place = at(name.span().start);
        let name = name.get_ref().as_ref();
        let full = format!("{}.{name}", table.name);
        match (table.find(name), item.get_ref()) {
            (Some(k), DeValue::Table(parts)) => cells[k] = Some(long_form(&full, &table.keys[k], parts, place, at)?),
            (Some(k), _) => {
                let value = read_value(&full, &table.keys[k], item, at)?;
                cells[k] = Some(Cell { value, place, provenance: Provenance::default() });
            }
            (None, _) if WORDS.contains(&name) => read_word(&full, name, item, &mut defaults, at)?,
            (None, DeValue::Table(words)) if name == INHERITED => inherited = Some(read_provenance(&full, words, at)?),
            (None, _) => return Err(unknown_key(table, name, place)),
        }
    }
    for cell in cells.iter_mut().flatten() {
        cell.provenance = std::mem::take(&mut cell.provenance).or(&defaults);
    }
    Ok(inherited)
}

/// Reads a key that is a table: its value and its provenance.
fn long_form(
    full: &str,
    key: &Key,
    parts: &DeTable,
    place: Place,
    at: &impl Fn(usize) -> Place,
) -> Result<Cell, LoadError> {
    let (mut value, mut provenance) = (None, Provenance::default());
    for (name, item) in in_order(parts) {
        match name.get_ref().as_ref() {
            VALUE => value = Some(read_value(full, key, item, at)?),
            word if WORDS.contains(&word) => read_word(&format!("{full}.{word}"), word, item, &mut provenance, at)?,
            word => return Err(unknown_word(full, word, at(name.span().start))),
        }
    }
    let Some(value) = value else {
        return Err(LoadError::bad(place, format!("{full} has no value"), "write value = ... among its words"));
    };
    Ok(Cell { value, place, provenance })
}

/// Reads a table that holds words of a [`Provenance`] alone.
fn read_provenance(full: &str, words: &DeTable, at: &impl Fn(usize) -> Place) -> Result<Provenance, LoadError> {
    let mut provenance = Provenance::default();
    for (name, item) in in_order(words) {
        let word = name.get_ref().as_ref();
        if !WORDS.contains(&word) {
            return Err(unknown_word(full, word, at(name.span().start)));
        }
        read_word(&format!("{full}.{word}"), word, item, &mut provenance, at)?;
    }
    Ok(provenance)
}

/// Reads one word of a [`Provenance`].
fn read_word(
    full: &str,
    word: &str,
    item: &Spanned<DeValue>,
    provenance: &mut Provenance,
    at: &impl Fn(usize) -> Place,
) -> Result<(), LoadError> {
    let bad = |expected: String| {
        let what = format!("{full} is {}", described(item.get_ref()));
        LoadError::bad(at(item.span().start), what, format!("it must be {expected}"))
    };
    let DeValue::String(text) = item.get_ref() else { return Err(bad("text in quotes".to_owned())) };
    match word {
        "evidence" => {
            let known = || format!("one of {}", Evidence::ALL.map(Evidence::name).join(", "));
            provenance.evidence = Some(Evidence::named(text).ok_or_else(|| bad(known()))?);
        }
        "source" => provenance.source = text.to_string(),
        "why" => provenance.why = text.to_string(),
        _ => provenance.would_close = text.to_string(),
    }
    Ok(())
}

/// Reads the value of a key.
fn read_value(
    full: &str,
    key: &Key,
    item: &Spanned<DeValue>,
    at: &impl Fn(usize) -> Place,
) -> Result<Value, LoadError> {
    value(item.get_ref()).and_then(|v| key.kind.accept(v)).ok_or_else(|| {
        let what = format!("{full} is {}", described(item.get_ref()));
        LoadError::bad(at(item.span().start), what, format!("it must be {}", key.kind.expects()))
    })
}

/// A TOML value as a [`Value`]; none if there is no such kind.
fn value(item: &DeValue) -> Option<Value> {
    let integer = |n: &toml::de::DeInteger| u64::from_str_radix(n.as_str(), n.radix()).ok();
    Some(match item {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(n) => Value::Integer(integer(n)?),
        DeValue::Float(x) => Value::Real(f64::from_str(x.as_str()).ok()?),
        DeValue::Boolean(on) => Value::Switch(*on),
        DeValue::Array(list) => {
            let number = |item: &Spanned<DeValue>| match item.get_ref() {
                DeValue::Integer(n) => integer(n),
                _ => None,
            };
            Value::List(list.iter().map(number).collect::<Option<_>>()?)
        }
        DeValue::Datetime(_) | DeValue::Table(_) => return None,
    })
}

/// A value of the wrong kind, for a message.
fn described(item: &DeValue) -> String {
    match item {
        DeValue::String(text) => format!("the text \"{}\"", text.chars().take(40).collect::<String>().escape_debug()),
        DeValue::Integer(n) => n.to_string(),
        DeValue::Float(x) => x.to_string(),
        DeValue::Boolean(on) => on.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(list) => format!("a list of {}", list.len()),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

fn unknown_table(name: &str, place: Place) -> LoadError {
    let known = || SCHEMA.iter().map(|t| t.name);
    let near = nearest(name, known().chain([EXTENDS, INHERITED, INSTRUCTIONS]));
    let advice = suggest(near, || {
        let home = SCHEMA.iter().find(|t| t.find(name).is_some());
        match home {
            Some(table) => format!("the key belongs in a table, such as [{}]", table.name),
            None => format!("the tables are {}", known().collect::<Vec<_>>().join(", ")),
        }
    });
    LoadError::bad(place, format!("there is no table '{}'", name.escape_debug()), advice)
}

fn unknown_key(table: &Table, name: &str, place: Place) -> LoadError {
    let what = format!("table [{}] has no key '{}'", table.name, name.escape_debug());
    let home = SCHEMA.iter().find(|t| t.find(name).is_some());
    let advice = match (home, renamed(table.name, name)) {
        (_, Some(now)) => format!("its name is '{now}' now"),
        (Some(home), None) => format!("the key belongs in [{}]", home.name),
        (None, None) => suggest(nearest(name, table.keys.iter().map(|k| k.name)), || {
            format!("its keys are {}", table.keys.iter().map(|k| k.name).collect::<Vec<_>>().join(", "))
        }),
    };
    LoadError::bad(place, what, advice)
}

fn unknown_word(full: &str, word: &str, place: Place) -> LoadError {
    let what = format!("{full} has no part '{}'", word.escape_debug());
    let words = || [VALUE].into_iter().chain(WORDS);
    let advice =
        suggest(nearest(word, words()), || format!("its parts are {}", words().collect::<Vec<_>>().join(", ")));
    LoadError::bad(place, what, advice)
}
