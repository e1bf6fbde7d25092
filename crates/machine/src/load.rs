//! Loads machine descriptions.

use crate::notation::read_uops;
use crate::recipe::Recipe;
use crate::spec::{Spec, Tables};
use fxscope_uop::ClassId;

/// The machines that come with the program: name, `machine.toml`, `instructions.csv`.
const BUILT_IN: &[(&str, &str, &str)] = &[(
    "a64fx",
    include_str!("../../../machines/a64fx/machine.toml"),
    include_str!("../../../machines/a64fx/instructions.csv"),
)];

/// Why a machine cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No such machine.
    #[error("no machine is called '{0}'")]
    Unknown(String),
    /// A file does not say what it should.
    #[error("{file}: {what}")]
    Bad {
        /// The file.
        file: String,
        /// What is wrong.
        what: String,
    },
}

/// Loads a built-in machine by name.
///
/// # Errors
/// See [`LoadError`].
pub fn load(name: &str) -> Result<Spec, LoadError> {
    let (name, tables, rows) =
        BUILT_IN.iter().find(|m| m.0 == name).ok_or_else(|| LoadError::Unknown(name.to_string()))?;
    let tables: Tables = toml::from_str(tables)
        .map_err(|e| LoadError::Bad { file: format!("{name}/machine.toml"), what: e.to_string() })?;
    let recipes = read_rows(rows, tables.clock.vector_bits)
        .map_err(|what| LoadError::Bad { file: format!("{name}/instructions.csv"), what })?;
    Ok(Spec { name: (*name).to_string(), tables, recipes })
}

#[derive(serde::Deserialize)]
struct Row {
    class: String,
    vl_bits: Option<u32>,
    uops: usize,
    pipes: String,
    latency: String,
    blocking: String,
    decode_notes: String,
    fetch_ports: Option<u32>,
    store_ports: Option<u32>,
}

fn read_rows(text: &str, vector_bits: u32) -> Result<crate::Recipes, String> {
    let mut recipes = crate::Recipes::default();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    for (i, row) in reader.deserialize::<Row>().enumerate() {
        let line = i as u32 + 2;
        let row = row.map_err(|e| e.to_string())?;
        if row.vl_bits.is_some_and(|bits| bits != vector_bits) {
            continue;
        }
        let uops = read_uops(&row.pipes, &row.latency, &row.blocking, row.uops)
            .map_err(|what| format!("line {line}, {}: {what}", row.class))?;
        let note = |n: &str| row.decode_notes.split('+').any(|x| x == n);
        recipes.insert(
            ClassId::of(Box::leak(row.class.clone().into_boxed_str())),
            Recipe {
                uops,
                sequential: note("seq_decode"),
                pre_sync: note("pre_sync"),
                post_sync: note("post_sync"),
                movprfx_packable: note("movprfx_packable"),
                movprfx_extra_uop: note("extra_uop_if_movprfx_merging"),
                fetch_ports: row.fetch_ports.unwrap_or(0),
                store_ports: row.store_ports.unwrap_or(0),
                line,
            },
        );
    }
    Ok(recipes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_machine_loads() {
        for (name, ..) in BUILT_IN {
            load(name).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}
