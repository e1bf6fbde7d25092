//! Which call of a program a mapping comes from.

use std::path::{Path, PathBuf};

use fxscope_linux::Process;

use crate::annotate::source_line;

/// Most frames that are looked at.
const FRAMES: usize = 64;
/// Registers of the procedure call standard: frame pointer and return address.
const FP: u8 = 29;
const LR: u8 = 30;

/// Functions that map memory for those who call them, besides names that the C standard keeps for its libraries (with
/// an underscore in front) and C++'s `operator new`.
const ALLOCATORS: &[&str] = &[
    "aligned_alloc",
    "alloc_new_heap",
    "calloc",
    "malloc",
    "memalign",
    "mmap",
    "mmap64",
    "mremap",
    "new_heap",
    "posix_memalign",
    "pvalloc",
    "realloc",
    "reallocarray",
    "syscall",
    "sysmalloc",
    "sysmalloc_mmap",
    "valloc",
];

/// A call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The file that the calling code is from, as the host has it, and the offset of the call in it.
    pub file: Option<(PathBuf, u64)>,
    /// The call's address.
    pub address: u64,
    /// The function that calls.
    pub function: Option<String>,
    /// Bytes that it has mapped in all.
    pub bytes: u64,
}

impl Site {
    /// The call in the program's own file that has led to the system call which the thread in place is about to make: the
    /// first on the chain of frame pointers that is in no allocator. Where there is none, one in another file.
    pub(super) fn calling(process: &mut Process) -> Site {
        let calls: Vec<u64> = return_addresses(process).into_iter().map(|address| address.wrapping_sub(4)).collect();
        let file = |&address: &u64| process.file_at(address);
        let own = |address: &u64| file(address).is_some_and(|(path, _)| path == process.program_file());
        let name = |address: u64| process.running_symbols().at(address).map(|place| place.function.to_owned());
        let outside = |address: &u64| name(*address).is_none_or(|name| !allocates(&name));
        let candidates = || calls.iter().copied().filter(outside);
        let address = candidates().find(own).or_else(|| candidates().find(|address| file(address).is_some()));
        let address = address.unwrap_or(calls[0]);
        let place = file(&address).map(|(path, place)| (process.host_path(&path), place));
        Site { file: place, address, function: name(address), bytes: 0 }
    }

    /// Whether it is the same call: of the same file, or at the same address.
    pub(super) fn is_at(&self, other: &Site) -> bool {
        self.file == other.file && (self.file.is_some() || self.address == other.address)
    }

    /// Its function and, where debug information has it, its line.
    #[must_use]
    pub fn describe(&self) -> String {
        let line = self.file.as_ref().and_then(|(path, place)| source_line(path, *place));
        let line = line.map(|(file, line)| {
            let file = Path::new(&file).file_name().map_or(file.clone(), |name| name.to_string_lossy().into_owned());
            format!("{file}:{line}")
        });
        match (&self.function, line) {
            (Some(function), Some(line)) => format!("{function} ({line})"),
            (Some(function), None) => function.clone(),
            (None, Some(line)) => line,
            (None, None) => format!("{:#x}", self.address),
        }
    }
}

/// Where the thread in place is, and where its calls return to, the innermost first.
fn return_addresses(process: &mut Process) -> Vec<u64> {
    let cpu = process.cpu();
    let (mut frame, mut addresses) = (cpu.x(FP), vec![cpu.pc, cpu.x(LR)]);
    while addresses.len() < FRAMES
        && let (Some(next), Some(address)) = (word(process, frame), word(process, frame.wrapping_add(8)))
    {
        addresses.push(address);
        // Stacks grow down: the frame of a caller lies above.
        if next <= frame {
            break;
        }
        frame = next;
    }
    addresses
}

/// The doubleword at an address.
fn word(process: &mut Process, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    for (byte, address) in bytes.iter_mut().zip(address..) {
        *byte = process.read_byte(address)?;
    }
    Some(u64::from_le_bytes(bytes))
}

/// Whether a function maps memory for its caller.
fn allocates(name: &str) -> bool {
    let reserved = name.starts_with('_') && !name.starts_with("_Z");
    let operator_new = name.starts_with("_Znw") || name.starts_with("_Zna");
    // Versions of shared libraries' symbols, and what compilers add to names of parts of functions.
    let plain = name.split(['@', '.']).next().unwrap_or(name);
    reserved || operator_new || ALLOCATORS.contains(&plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocators_are_passed_over_and_functions_of_programs_are_not() {
        for name in [
            "malloc",
            "__mmap64",
            "_int_malloc",
            "sysmalloc",
            "_Znwm",
            "_Znam",
            "calloc@GLIBC_2.17",
            "sysmalloc_mmap.constprop.0",
        ] {
            assert!(allocates(name), "{name}");
        }
        for name in ["main", "MAIN__", "_ZN4Grid4initEv", "allocate_arrays_", "malloc_fields"] {
            assert!(!allocates(name), "{name}");
        }
    }
}
