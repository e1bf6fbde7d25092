//! Substitutes for libraries of measuring tools that neither the host nor the sysroot has: programs call them to mark regions,
//! which the simulator recognises by the names of the functions.

/// A shared library with these functions, which do nothing (`kernels/marks.c`).
pub(super) const CONTENT: &[u8] = include_bytes!("../../../../../kernels/prebuilt/libmarks.so");

/// Folders that the C library searches last, so that every real library takes precedence.
const FOLDERS: [&[u8]; 4] = [b"/lib/", b"/usr/lib/", b"/lib64/", b"/usr/lib64/"];
/// The libraries' file names up to the version: PAPI, LIKWID, Fujitsu's profilers.
const NAMES: [&[u8]; 3] = [b"libpapi.so", b"liblikwid.so", b"libfjprofcore.so"];

/// Returns whether a substitute exists for a file at this path.
pub(super) fn stands_in_for(path: &[u8]) -> bool {
    let name = FOLDERS.iter().find_map(|folder| path.strip_prefix(*folder));
    let version = name.and_then(|name| NAMES.iter().find_map(|known| name.strip_prefix(*known)));
    version.is_some_and(|version| {
        version.is_empty() || version[0] == b'.' && version.iter().all(|&b| b == b'.' || b.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_measuring_tools_have_a_substitute_for_every_version() {
        for path in ["/usr/lib/libpapi.so.7", "/lib64/liblikwid.so.5.2", "/lib/libpapi.so"] {
            assert!(stands_in_for(path.as_bytes()), "{path}");
        }
        for path in ["/usr/lib/libm.so.6", "/usr/lib/libpapi.sock", "/tmp/libpapi.so.7", "/usr/lib/libpapi.so.x"] {
            assert!(!stands_in_for(path.as_bytes()), "{path}");
        }
    }
}
