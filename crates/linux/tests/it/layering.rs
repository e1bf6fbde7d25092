//! The layering of the crate: system calls use the subsystems of the kernel, and no subsystem uses system calls.

use std::path::{Path, PathBuf};

/// Folders of the subsystems in `src`.
const SUBSYSTEMS: [&str; 6] = ["abi", "mm", "fs", "sched", "ipc", "signal"];

/// The Rust files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(folder).expect("a folder of the crate").map(|entry| entry.expect("readable").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn subsystems_do_not_use_system_calls() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in SUBSYSTEMS.iter().flat_map(|subsystem| files(&source.join(subsystem))) {
        let text = std::fs::read_to_string(&file).expect("readable");
        assert!(!text.contains("crate::syscalls"), "{} uses system calls", file.display());
    }
}
