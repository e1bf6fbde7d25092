//! Metrics and rules of the user's own, from files.

use std::path::PathBuf;

use fxscope_pmu::{Metrics, OwnFile};

/// Largest file, bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Adds the metrics and rules of files to the built-in ones, for all reports of this process. Must come before the first report.
///
/// # Errors
/// If a file cannot be read or has an error: the file, the place and what is wrong.
pub fn add(metric_files: &[PathBuf], rule_files: &[PathBuf]) -> Result<(), String> {
    if metric_files.is_empty() && rule_files.is_empty() {
        return Ok(());
    }
    let (metrics, rules) = (texts(metric_files)?, texts(rule_files)?);
    Metrics::add(&borrowed(&metrics), &borrowed(&rules)).map_err(|e| e.to_string())
}

/// Returns the names and texts of files.
fn texts(files: &[PathBuf]) -> Result<Vec<(String, String)>, String> {
    let text = |file: &PathBuf| {
        let text = fxscope_host::read_text(file, MAX_BYTES).map_err(|e| e.to_string())?;
        Ok((file.display().to_string(), text))
    };
    files.iter().map(text).collect()
}

fn borrowed(files: &[(String, String)]) -> Vec<OwnFile<'_>> {
    files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
}
