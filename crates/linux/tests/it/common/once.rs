//! Programs that many tests of a binary use, each built once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Returns the file of a program, which `build` makes when the first test asks for it; others wait meanwhile.
pub fn once(name: &str, build: impl FnOnce() -> PathBuf) -> PathBuf {
    static BUILT: Mutex<BTreeMap<String, Arc<OnceLock<PathBuf>>>> = Mutex::new(BTreeMap::new());
    let file = BUILT.lock().unwrap_or_else(PoisonError::into_inner).entry(name.to_owned()).or_default().clone();
    file.get_or_init(build).clone()
}
