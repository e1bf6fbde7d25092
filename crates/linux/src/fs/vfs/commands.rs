//! Commands of arm64 that programs find although neither the sysroot nor the host has them: those with which processors, memory and
//! counters are chosen on the machine. They make the system calls that the commands of a distribution make.

use crate::abi::elf::is_for_this_machine;

/// A program that is each of them, depending on the name by which it is called (`guest`).
pub(crate) const CONTENT: &[u8] = include_bytes!("../../../../../guest/prebuilt/commands.elf");

/// Folders in which programs find them.
const FOLDERS: [&str; 2] = ["/usr/bin/", "/bin/"];
const NAMES: [&str; 5] = ["lscpu", "numactl", "nproc", "perf", "taskset"];

/// Returns whether a command exists for this path.
pub(super) fn stands_in_for(path: &[u8]) -> bool {
    let name = FOLDERS.iter().find_map(|folder| path.strip_prefix(folder.as_bytes()));
    name.is_some_and(|name| NAMES.iter().any(|known| known.as_bytes() == name))
}

/// Returns whether a command is executed instead of the host's file at this path, which begins with `start`: that file is the same
/// command for the host's processor.
pub(crate) fn replaces(path: &[u8], start: &[u8]) -> bool {
    !cfg!(target_arch = "aarch64") && stands_in_for(path) && !is_for_this_machine(start)
}

/// Returns the path of a command that is named with or without its folder.
pub(crate) fn path_of(name: &[u8]) -> Option<String> {
    let known = NAMES.iter().map(|known| format!("{}{known}", FOLDERS[0]));
    let mut found = known.filter(|path| {
        let bare = &path.as_bytes()[FOLDERS[0].len()..];
        bare == name || FOLDERS.iter().any(|folder| name.strip_prefix(folder.as_bytes()) == Some(bare))
    });
    found.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_in_the_folders_of_commands_only() {
        for path in ["/usr/bin/numactl", "/bin/perf"] {
            assert!(stands_in_for(path.as_bytes()), "{path}");
        }
        for path in ["/usr/bin/numactl2", "/usr/local/bin/perf", "numactl", "/usr/bin/sh"] {
            assert!(!stands_in_for(path.as_bytes()), "{path}");
        }
        for name in ["taskset", "/usr/bin/taskset", "/bin/taskset"] {
            assert_eq!(path_of(name.as_bytes()).as_deref(), Some("/usr/bin/taskset"), "{name}");
        }
        assert_eq!(path_of(b"./taskset"), None);
        assert_eq!(path_of(b"sh"), None);
    }

    #[test]
    fn files_for_this_machine_are_executed_themselves() {
        assert!(!replaces(b"/usr/bin/numactl", CONTENT));
        assert!(!replaces(b"/usr/bin/sh", b"#!/bin/sh"));
        assert_eq!(replaces(b"/usr/bin/perf", b"#!/bin/sh"), !cfg!(target_arch = "aarch64"));
    }
}
