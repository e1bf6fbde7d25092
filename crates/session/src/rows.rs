//! Checks of a machine's `instructions.csv` against the instructions that its rows are for.

use std::collections::BTreeMap;

use fxscope_aarch64::coverage::samples;
use fxscope_aarch64::table::encodings;
use fxscope_machine::Spec;

/// Words tested per encoding: enough for every form that has its own row.
const WORDS: u32 = 600;

/// Checks that the row of each instruction that accesses memory has a flow through an address pipe.
///
/// # Errors
/// Lists the rows without one, by line, and what to do.
pub fn check_rows(spec: &Spec) -> Result<(), String> {
    let mut lacking = BTreeMap::new();
    for (decoded, _) in encodings().flat_map(|encoding| samples(encoding, WORDS)) {
        let class = decoded.info.class;
        if let Some(recipe) = spec.recipes.get(class)
            && fxscope_pipeline::lacks_access(&decoded.info, recipe)
        {
            lacking.insert(recipe.line, class.name());
        }
    }
    if lacking.is_empty() {
        return Ok(());
    }
    let rows: Vec<String> = lacking.iter().map(|(line, class)| format!("instructions.csv:{line}: {class}")).collect();
    Err(format!(
        "{}: these instructions access memory, and no flow of their rows passes an address pipe: {}; give each row a flow \
         through EAGA, EAGB or EAG*",
        spec.csv_from,
        rows.join(", ")
    ))
}
