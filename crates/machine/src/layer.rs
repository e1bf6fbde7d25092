//! One `machine.toml`: its values, where each stands, and what it extends.

use std::str::FromStr as _;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{LoadError, Place, nearest, suggest};
use crate::schema::{EVIDENCE, Key, SOURCE, Table, Value};
use crate::spec::{Evidence, SCHEMA, Tables};

/// The top-level key that names the machine a file extends.
const EXTENDS: &str = "extends";

/// A value and where it was given.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The value, of its key's kind.
    pub value: Value,
    /// Where it was given.
    pub place: Place,
}

/// The values given so far, in the order of [`SCHEMA`].
#[derive(Clone, Debug)]
pub struct Layer {
    /// By table and key.
    pub cells: Vec<Vec<Option<Cell>>>,
}

impl Layer {
    /// No value is given.
    #[must_use]
    pub fn empty() -> Layer {
        Layer { cells: SCHEMA.iter().map(|t| t.keys.iter().map(|_| None).collect()).collect() }
    }

    /// Values of `over` take the place of those here. A table that `over` changes without saying how well
    /// the new numbers are known counts as assumed from here on.
    pub fn overlay(&mut self, over: Layer) {
        for ((table, cells), new) in SCHEMA.iter().zip(&mut self.cells).zip(over.cells) {
            let evidence = table.keys.len() - 1;
            debug_assert_eq!(table.keys[evidence].name, EVIDENCE);
            let changed = table.keys.iter().zip(&new).find_map(|(key, cell)| match cell {
                Some(cell) if ![SOURCE, EVIDENCE].contains(&key.name) => Some(cell.place.clone()),
                _ => None,
            });
            if let Some(place) = changed {
                cells[evidence] = Some(Cell { value: Value::Text(Evidence::Assumed.name().to_owned()), place });
            }
            for (cell, new) in cells.iter_mut().zip(new) {
                if new.is_some() {
                    *cell = new;
                }
            }
        }
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
    for (name, item) in in_order(document.get_ref()) {
        let place = at(name.span().start);
        let name = name.get_ref().as_ref();
        match (SCHEMA.iter().position(|t| t.name == name), item.get_ref()) {
            (Some(t), DeValue::Table(keys)) => read_table(&SCHEMA[t], keys, &mut layer.cells[t], &at)?,
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
    Ok((layer, base))
}

/// The items of a table in the order in which they stand in the file.
fn in_order<'a, 'i>(table: &'a DeTable<'i>) -> Vec<(&'a Spanned<toml::de::DeString<'i>>, &'a Spanned<DeValue<'i>>)> {
    let mut items: Vec<_> = table.iter().collect();
    items.sort_by_key(|(name, _)| name.span().start);
    items
}

fn read_table(
    table: &Table,
    keys: &DeTable,
    cells: &mut [Option<Cell>],
    at: &impl Fn(usize) -> Place,
) -> Result<(), LoadError> {
    for (name, item) in in_order(keys) {
        let name_place = at(name.span().start);
        let name = name.get_ref().as_ref();
        let Some(k) = table.find(name) else { return Err(unknown_key(table, name, name_place)) };
        let key = &table.keys[k];
        let value = value(item.get_ref()).and_then(|v| key.kind.accept(v)).ok_or_else(|| {
            let what = format!("{}.{name} is {}", table.name, described(item.get_ref()));
            LoadError::bad(at(item.span().start), what, format!("it must be {}", key.kind.expects()))
        })?;
        cells[k] = Some(Cell { value, place: name_place });
    }
    Ok(())
}

/// A TOML value as ours; nothing when none of ours is like it.
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

/// A value that does not fit, for a message.
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
    let near = nearest(name, known().chain([EXTENDS]));
    let advice = suggest(near, || {
        let home = SCHEMA.iter().find(|t| t.find(name).is_some());
        match home {
            Some(table) => format!("the key belongs into a table, [{}] for instance", table.name),
            None => format!("the tables are {}", known().collect::<Vec<_>>().join(", ")),
        }
    });
    LoadError::bad(place, format!("there is no table '{}'", name.escape_debug()), advice)
}

fn unknown_key(table: &Table, name: &str, place: Place) -> LoadError {
    let what = format!("table [{}] has no key '{}'", table.name, name.escape_debug());
    let home = SCHEMA.iter().find(|t| t.find(name).is_some());
    let advice = match home {
        Some(home) => format!("the key belongs to [{}]", home.name),
        None => suggest(nearest(name, table.keys.iter().map(|k| k.name)), || {
            format!("its keys are {}", table.keys.iter().map(|k| k.name).collect::<Vec<_>>().join(", "))
        }),
    };
    LoadError::bad(place, what, advice)
}
