//! Tasks of the project.

use std::path::{Path, PathBuf};

pub mod calibrate;
pub mod counts;
pub mod coverage;
pub mod kernel;
pub mod latency;
pub mod power;
pub mod release;
pub mod sampling;
pub mod speed;
pub mod tidy;

/// Returns the root of the workspace.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_path_buf()
}
