//! Loads machine descriptions: built-in ones by name, others by path, each with what it extends.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fxscope_host::Refusal;

use crate::check::{Violation, check};
use crate::error::{Lines, LoadError, Place, nearest, suggest};
use crate::layer::Layer;
use crate::pmu::Pmu;
use crate::recipe::Pipes;
use crate::rows::{self, Rows};
use crate::schema::Value;
use crate::spec::{SCHEMA, Spec};
use crate::{layer, modes, settings};

/// A built-in machine: the files of its folder. It takes what it lacks from the machine that it extends.
struct BuiltIn {
    name: &'static str,
    tables: &'static str,
    instructions: Option<&'static str>,
    events: Option<&'static str>,
    groups: Option<&'static str>,
}

/// The built-in machines.
const BUILT_IN: &[BuiltIn] = &[
    BuiltIn {
        name: "a64fx",
        tables: include_str!("../../../data/machines/a64fx/machine.toml"),
        instructions: Some(include_str!("../../../data/machines/a64fx/instructions.csv")),
        events: Some(include_str!("../../../data/machines/a64fx/pmu.csv")),
        groups: Some(include_str!("../../../data/machines/a64fx/groups.csv")),
    },
    BuiltIn {
        name: "fx1000",
        tables: include_str!("../../../data/machines/fx1000/machine.toml"),
        instructions: None,
        events: None,
        groups: None,
    },
    BuiltIn {
        name: "fugaku",
        tables: include_str!("../../../data/machines/fugaku/machine.toml"),
        instructions: None,
        events: None,
        groups: None,
    },
    BuiltIn {
        name: "fx700",
        tables: include_str!("../../../data/machines/fx700/machine.toml"),
        instructions: None,
        events: None,
        groups: None,
    },
    BuiltIn {
        name: "k-computer",
        tables: include_str!("../../../data/machines/k-computer/machine.toml"),
        instructions: None,
        events: None,
        groups: None,
    },
    BuiltIn {
        name: "knl",
        tables: include_str!("../../../data/machines/knl/machine.toml"),
        instructions: None,
        events: Some(include_str!("../../../data/machines/knl/pmu.csv")),
        groups: None,
    },
    BuiltIn {
        name: "knl-small",
        tables: include_str!("../../../data/machines/knl-small/machine.toml"),
        instructions: None,
        events: None,
        groups: None,
    },
];

/// The file with the tables, in a machine's folder.
const TABLES_FILE: &str = "machine.toml";
/// The file with the instruction rows, beside it.
const ROWS_FILE: &str = "instructions.csv";
/// The file with the events of the PMU.
const EVENTS_FILE: &str = "pmu.csv";
/// The file with the groups of events that are counted together.
const GROUPS_FILE: &str = "groups.csv";
/// Largest file that is read, bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Loads a machine: a built-in one by name, or one by the path of its folder or of its `machine.toml`.
/// `settings` are keys with values that replace those of the files, such as `("l2.bytes", "16MiB")`.
///
/// # Errors
/// See [`LoadError`].
pub fn load(name_or_path: &str, settings: &[(String, String)]) -> Result<Spec, LoadError> {
    assemble(find(name_or_path, None)?, settings)
}

/// Loads a machine from the bytes of a `machine.toml` and an `instructions.csv`. It can extend a built-in machine, whose PMU
/// it then has.
///
/// # Errors
/// See [`LoadError`].
pub fn load_bytes(
    tables: &[u8],
    instructions: Option<&[u8]>,
    settings: &[(String, String)],
) -> Result<Spec, LoadError> {
    let text = |bytes, file: &str| -> Result<Text, LoadError> {
        let file = file.into();
        Ok(Text { text: Cow::Borrowed(utf8(bytes, &file)?), file })
    };
    let files = Files {
        name: "text".to_owned(),
        id: "text".to_owned(),
        folder: None,
        tables: text(tables, TABLES_FILE)?,
        instructions: instructions.map(|bytes| text(bytes, ROWS_FILE)).transpose()?,
        events: None,
        groups: None,
    };
    assemble(files, settings)
}

/// The built-in machines: name and title.
///
/// # Panics
/// Never: a test loads them all.
#[must_use]
pub fn list() -> Vec<(&'static str, String)> {
    let title = |name| load(name, &[]).expect("built-in machines load").tables.identity.title;
    names().map(|name| (name, title(name))).collect()
}

/// The names of the built-in machines.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|m| m.name)
}

/// The PMU of a built-in machine.
pub(crate) fn built_in_pmu(name: &str) -> Option<Pmu> {
    let machine = BUILT_IN.iter().find(|m| m.name == name)?;
    let pmu = chain(machine.files()).and_then(|chain| pmu_of(&chain));
    Some(pmu.expect("built-in machines load: a test loads them all"))
}

struct Text<'a> {
    file: Arc<str>,
    text: Cow<'a, str>,
}

impl Text<'_> {
    /// The file's name and content.
    fn named(&self) -> (&str, &str) {
        (&self.file, &self.text)
    }
}

/// The files of one machine.
struct Files<'a> {
    name: String,
    /// A unique name by which `extends` can refer to this machine.
    id: String,
    /// The folder from which paths in `extends` start; none for text that is not a file.
    folder: Option<PathBuf>,
    tables: Text<'a>,
    instructions: Option<Text<'a>>,
    events: Option<Text<'a>>,
    groups: Option<Text<'a>>,
}

impl Files<'_> {
    /// Whether it has a table beside `machine.toml`.
    fn has_csv(&self) -> bool {
        self.instructions.is_some() || self.events.is_some() || self.groups.is_some()
    }
}

impl BuiltIn {
    fn files(&self) -> Files<'static> {
        let text = |file: &str, text| Text { file: format!("{}/{file}", self.name).into(), text: Cow::Borrowed(text) };
        Files {
            name: self.name.to_owned(),
            id: self.name.to_owned(),
            folder: None,
            tables: text(TABLES_FILE, self.tables),
            instructions: self.instructions.map(|rows| text(ROWS_FILE, rows)),
            events: self.events.map(|events| text(EVENTS_FILE, events)),
            groups: self.groups.map(|groups| text(GROUPS_FILE, groups)),
        }
    }
}

/// A machine, the one that it extends, and so on to the one that extends none.
type Chain<'a> = Vec<(Files<'a>, Layer)>;

/// Follows `extends` down to the machine that extends nothing.
fn chain(machine: Files) -> Result<Chain, LoadError> {
    let mut chain: Chain = Vec::new();
    let mut next = Some(machine);
    while let Some(files) = next.take() {
        let (layer, base) = layer::parse(&files.tables.text, &files.tables.file)?;
        if let Some((base, place)) = base {
            let found = base_of(&files, &base, &place)?;
            if files.id == found.id || chain.iter().any(|(f, _)| f.id == found.id) {
                let ids: Vec<&str> = chain.iter().map(|(f, _)| f.id.as_str()).chain([files.id.as_str()]).collect();
                let what = format!("machines extend each other in a circle: {}, {}", ids.join(", "), found.id);
                return Err(LoadError::bad(place, what, "let one of them extend a built-in machine or nothing"));
            }
            next = Some(found);
        }
        chain.push((files, layer));
    }
    Ok(chain)
}

/// The PMU of the first machine of a chain.
fn pmu_of(chain: &Chain) -> Result<Pmu, LoadError> {
    let mut pmu: Option<Pmu> = None;
    for (files, _) in chain.iter().rev() {
        let (events, groups) = (files.events.as_ref().map(Text::named), files.groups.as_ref().map(Text::named));
        // A table of events replaces the model's own signals.
        let base = match (pmu, events) {
            (Some(pmu), _) => pmu,
            (None, Some(_)) => Pmu::default(),
            (None, None) => Pmu::of_the_model(),
        };
        pmu = Some(base.extended(events, groups)?);
    }
    Ok(pmu.unwrap_or_default())
}

/// Lays the machines of a chain one over the other.
fn assemble(machine: Files, settings: &[(String, String)]) -> Result<Spec, LoadError> {
    let (name, path) = (machine.name.clone(), machine.folder.is_some().then(|| machine.id.clone()));
    let settings = settings::read(settings)?;
    let chain = chain(machine)?;
    let root = Arc::clone(&chain.last().expect("at least the machine itself").0.tables.file);
    if chain.iter().all(|(files, _)| files.instructions.is_none()) {
        let advice = format!("put an {ROWS_FILE} beside it, or let it extend a known machine: extends = \"a64fx\"");
        return Err(LoadError::bad(Place::of(&root), "no file gives the cost of instructions", advice));
    }
    let csv_from = chain.iter().find(|(files, _)| files.has_csv()).map(|(files, _)| files.id.clone());
    let pmu = pmu_of(&chain)?;
    let mut values: Option<Layer> = None;
    let mut rows: Option<Rows> = None;
    for (files, layer) in chain.into_iter().rev() {
        let known = layer.rows;
        match &mut values {
            None => values = Some(layer),
            Some(values) => values.overlay(layer),
        }
        if let (Some(rows), Some(evidence)) = (&mut rows, known.inherited) {
            rows::set_evidence(rows, |_| Some(evidence));
        }
        let Some(Text { file, text }) = &files.instructions else { continue };
        let mut new = rows::parse(text, file)?;
        rows::set_evidence(&mut new, |own| own.or(known.own));
        match &mut rows {
            None => rows = Some(new),
            Some(rows) => rows::overlay(rows, new, file)?,
        }
    }
    let mut values = values.unwrap_or_else(Layer::empty);
    values.overlay(settings.clone());
    modes::apply(&mut values, &settings)?;
    let tables = values.tables(&root)?;
    refuse_unused_options(&settings, &values)?;
    check(&tables).map_err(|found| LoadError::Values(placed(found, &values, &root)))?;
    let mut recipes = rows::recipes(rows.unwrap_or_default(), tables.clock.vector_bits);
    recipes.set_loads(&tables.load_store);
    if tables.clock.fma_pipes == 1 {
        // Only the first has all functional units (manual 6.2, table 6-1).
        recipes.close_pipe(Pipes::FLB, Pipes::FLA);
    }
    let provenance = values.provenance();
    Ok(Spec { name, path, csv_from: csv_from.unwrap_or_default(), tables, provenance, recipes, pmu })
}

/// Refuses settings of keys that are options of policies other than the selected one: they would change nothing. A file
/// may have such keys, since a machine that extends none gives all.
fn refuse_unused_options(settings: &Layer, values: &Layer) -> Result<(), LoadError> {
    for (t, table) in SCHEMA.iter().enumerate() {
        for (key, cell) in table.keys.iter().zip(&settings.cells[t]) {
            let (Some(option), Some(cell)) = (key.option_of, cell) else { continue };
            let selected = table.find(option.selector).and_then(|k| values.cells[t][k].as_ref());
            let Some(Value::Text(selected)) = selected.map(|cell| &cell.value) else { continue };
            if !option.policies.contains(&selected.as_str()) {
                let (name, selector) = (table.name, option.selector);
                let what = format!("{name}.{} has no effect with {name}.{selector} {selected}", key.name);
                let advice = format!("it is an option of {}; leave it out", option.policies.join(" and "));
                return Err(LoadError::bad(cell.place.clone(), what, advice));
            }
        }
    }
    Ok(())
}

/// The machine that `files` extend.
fn base_of(files: &Files, base: &str, place: &Place) -> Result<Files<'static>, LoadError> {
    find(base, Some(files)).map_err(|e| match e {
        LoadError::Unknown { name, advice } => {
            LoadError::bad(place.clone(), format!("no machine is called '{name}'"), advice)
        }
        LoadError::Read { path, why, advice } => {
            LoadError::bad(place.clone(), format!("cannot read {path}: {why}"), advice)
        }
        other => other,
    })
}

/// Adds the places at which the values were given. Of several values that contradict each other, the place is that of the
/// one that was changed last: a setting, or else one from a file that extends `root`.
fn placed(mut found: Vec<Violation>, values: &Layer, root: &Arc<str>) -> Vec<Violation> {
    let place = |name: &String| {
        let (table, key) = name.split_once('.')?;
        let t = SCHEMA.iter().position(|t| t.name == table)?;
        Some(&values.cells[t][SCHEMA[t].find(key)?].as_ref()?.place)
    };
    for violation in &mut found {
        let places = violation.others.iter().chain([&violation.key]).filter_map(place);
        violation.place = places.max_by_key(|p| (p.at.is_none(), p.source != *root)).cloned();
    }
    found
}

/// Finds a machine by name, or by path: from the current folder, or from that of the machine that extends it.
fn find(name_or_path: &str, from: Option<&Files>) -> Result<Files<'static>, LoadError> {
    if let Some(m) = BUILT_IN.iter().find(|m| m.name == name_or_path) {
        return Ok(m.files());
    }
    let path = match from {
        None => Some(PathBuf::from(name_or_path)),
        Some(files) => files.folder.as_ref().map(|folder| folder.join(name_or_path)),
    };
    let looks_like_path = name_or_path.contains(std::path::MAIN_SEPARATOR) || name_or_path.ends_with(".toml");
    match path {
        Some(path) if looks_like_path || path.exists() => read_machine(&path),
        _ => {
            let advice = suggest(nearest(name_or_path, names()), || {
                let all = names().collect::<Vec<_>>().join(", ");
                format!("known are {all}; others are named by the path of a folder with a {TABLES_FILE}")
            });
            Err(LoadError::Unknown { name: name_or_path.escape_debug().to_string(), advice })
        }
    }
}

/// Reads a machine's folder, or its file of tables.
fn read_machine(path: &Path) -> Result<Files<'static>, LoadError> {
    let file = if path.is_dir() { path.join(TABLES_FILE) } else { path.to_path_buf() };
    let tables = read_text(&file)?;
    let real = file.canonicalize().unwrap_or_else(|_| file.clone());
    let folder = real.parent().unwrap_or(Path::new("/")).to_path_buf();
    // Only a whole folder has tables of its own: a single file may be among unrelated files.
    let whole = file.file_name().is_some_and(|n| n == TABLES_FILE);
    let beside = |name: &str| {
        let path = file.with_file_name(name);
        if whole && path.exists() { read_text(&path).map(Some) } else { Ok(None) }
    };
    let (instructions, events, groups) = (beside(ROWS_FILE)?, beside(EVENTS_FILE)?, beside(GROUPS_FILE)?);
    let named = if whole { folder.file_name() } else { real.file_stem() };
    Ok(Files {
        name: named.map_or_else(|| "machine".to_owned(), |n| n.to_string_lossy().into_owned()),
        id: if whole { &folder } else { &real }.to_string_lossy().into_owned(),
        folder: Some(folder),
        tables,
        instructions,
        events,
        groups,
    })
}

fn read_text(path: &Path) -> Result<Text<'static>, LoadError> {
    let fail = |why: String, advice: &str| LoadError::Read {
        path: path.display().to_string(),
        why,
        advice: advice.to_owned(),
    };
    const ADVICE: &str = "give the path of a folder with a machine.toml, or of such a file";
    let bytes = fxscope_host::read(path, MAX_BYTES).map_err(|e| match e.why {
        Refusal::Io(e) if e.kind() == ErrorKind::NotFound => fail("there is no such file".to_owned(), ADVICE),
        Refusal::Io(e) if e.kind() == ErrorKind::PermissionDenied => {
            fail("permission denied".to_owned(), "make it readable for this user")
        }
        Refusal::Io(e) => fail(e.to_string(), ADVICE),
        Refusal::Kind(what) => fail(format!("it is {what}"), ADVICE),
        Refusal::TooLarge(_) => {
            fail(format!("it has more than {MAX_BYTES} bytes"), "a machine's file is text of a few pages")
        }
        Refusal::NotText => fail("it is not text".to_owned(), ADVICE),
    })?;
    let file: Arc<str> = path.display().to_string().into();
    let text = utf8(&bytes, &file)?.to_owned();
    Ok(Text { file, text: Cow::Owned(text) })
}

fn utf8<'a>(bytes: &'a [u8], file: &Arc<str>) -> Result<&'a str, LoadError> {
    std::str::from_utf8(bytes).map_err(|e| {
        let place = Lines::of(bytes).place(file, e.valid_up_to());
        LoadError::bad(place, "this is not UTF-8 text", "save the file as UTF-8, or give another one")
    })
}
