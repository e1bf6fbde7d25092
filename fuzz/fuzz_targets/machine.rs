//! Any machine file or setting is refused, or gives a machine from which a core can be built, without a panic.

#![no_main]

use std::sync::LazyLock;

use fxscope_machine::schema::Kind;
use fxscope_machine::spec::SCHEMA;
use fxscope_machine::{LoadError, Spec, load, load_bytes, show};
use fxscope_memory::Chip;
use fxscope_pipeline::Pipeline;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

/// The first line of an `instructions.csv`.
const COLUMNS: &str = "class,vl_bits,uops,pipes,latency,blocking,decode_notes,fetch_ports,store_ports\n";

/// A key by number and a value for it.
#[derive(Arbitrary, Debug)]
struct Setting {
    table: u8,
    key: u8,
    number: u64,
    real: f64,
    text: String,
}

impl Setting {
    fn pair(&self) -> (String, String) {
        let table = &SCHEMA[usize::from(self.table) % SCHEMA.len()];
        let key = &table.keys[usize::from(self.key) % table.keys.len()];
        let value = match key.kind {
            // Small numbers and powers of two are the likely ones.
            Kind::Integer(_) => match self.number % 4 {
                0 => (self.number >> 2).to_string(),
                1 => (1u64 << (self.number >> 2 & 63)).to_string(),
                _ => (self.number >> 2 & 0xfff).to_string(),
            },
            Kind::Real => self.real.to_string(),
            Kind::Switch => (self.number & 1 == 1).to_string(),
            Kind::List(n) => format!("{:?}", vec![self.number & 0x1ff; n]),
            Kind::UpTo(n) => format!("{:?}", vec![self.number & 0x1ff; (self.number >> 9) as usize % (n + 1)]),
            Kind::Text => self.text.clone(),
            Kind::Choice(names) => names[self.number as usize % names.len()].to_owned(),
        };
        (format!("{}.{}", table.name, key.name), value)
    }
}

/// What may be wrong.
#[derive(Arbitrary, Debug)]
enum Input<'a> {
    /// `machine.toml` as it comes.
    Tables(&'a [u8]),
    /// The text below `extends` of a machine that extends another.
    Extension(&'a [u8]),
    /// `instructions.csv` as it comes.
    Rows(&'a [u8]),
    /// Its rows below a correct first line.
    RowsBelow(&'a [u8]),
    /// Settings.
    Settings(Vec<Setting>),
    /// A key and a value as they come.
    Setting(String, String),
}

fuzz_target!(|input: Input| {
    // A machine that extends nothing and has few rows loads much faster than a real one.
    let tables = complete().as_bytes();
    let rows = COLUMNS.as_bytes();
    match input {
        Input::Tables(bytes) => built(load_bytes(bytes, Some(rows), &[])),
        Input::Extension(bytes) => built(load_bytes(&[b"extends = \"a64fx\"\n", bytes].concat(), None, &[])),
        Input::Rows(bytes) => built(load_bytes(tables, Some(bytes), &[])),
        Input::RowsBelow(bytes) => built(load_bytes(tables, Some(&[rows, bytes].concat()), &[])),
        Input::Settings(settings) => {
            let pairs: Vec<_> = settings.iter().map(Setting::pair).collect();
            built(load_bytes(tables, Some(rows), &pairs));
        }
        Input::Setting(key, value) => built(load_bytes(tables, Some(rows), &[(key, value)])),
    }
});

/// The tables of a machine that extends nothing.
fn complete() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| alone(&show(&load("a64fx", &[]).expect("built in"))));
    &TEXT
}

/// A shown machine without the line that says whose rows it has.
fn alone(shown: &str) -> String {
    shown.lines().filter(|l| !l.starts_with("extends")).fold(String::new(), |all, line| all + line + "\n")
}

/// A machine that has loaded can be shown, loaded again, and built; a message is one that can be printed.
fn built(loaded: Result<Spec, LoadError>) {
    match loaded {
        Ok(spec) => {
            let again = load_bytes(alone(&show(&spec)).as_bytes(), Some(COLUMNS.as_bytes()), &[]);
            assert_eq!(again.expect("what is shown loads").tables, spec.tables);
            let _ = (Chip::new(&spec), Pipeline::new(&spec, spec.topology.cores_per_cmg - 1));
        }
        Err(e) => assert!(!e.to_string().is_empty()),
    }
}
