//! The environment of a program.

use std::ffi::{OsStr, OsString};

/// Variables passed on by name, which programs commonly need.
const NAMES: &[&str] = &["HOME", "PATH", "LANG", "USER", "TERM", "PWD"];
/// Variables passed on by prefix: settings of OpenMP runtimes, of the large-page library, and of the allocator. They
/// affect speed, so records keep them.
const PREFIXES: &[&str] = &["OMP_", "GOMP_", "KMP_", "XOS_", "MALLOC_"];

/// Returns whether a variable affects a program's speed.
pub(crate) fn affects_speed(name: &OsStr) -> bool {
    PREFIXES.iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
}

/// Returns the environment of a program: few of the `host`'s variables, sorted by name, so that runs of different users
/// and shells are alike; then those in `explicit`, which replace the host's.
#[must_use]
pub fn guest_environment(
    host: impl Iterator<Item = (OsString, OsString)>,
    explicit: &[(OsString, OsString)],
) -> Vec<(OsString, OsString)> {
    let passes = |name: &OsStr| NAMES.iter().any(|n| name == *n) || affects_speed(name);
    let replaced = |name: &OsStr| explicit.iter().any(|(n, _)| n == name);
    let mut list: Vec<_> = host.filter(|(name, _)| passes(name) && !replaced(name)).collect();
    list.sort();
    for (i, (name, value)) in explicit.iter().enumerate() {
        // Of several settings of one variable, the last applies.
        if !explicit[i + 1..].iter().any(|(n, _)| n == name) {
            list.push((name.clone(), value.clone()));
        }
    }
    list
}

/// Parses `VAR=VALUE`.
///
/// # Errors
/// If the text is malformed; the message says how to write it.
pub fn variable(text: &str) -> Result<(OsString, OsString), String> {
    let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("write it as VAR=VALUE")?;
    Ok((name.into(), value.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(n, v)| (n.into(), v.into())).collect()
    }

    #[test]
    fn few_variables_pass_and_explicit_ones_win() {
        let host = list(&[
            ("SSH_AUTH_SOCK", "/tmp/x"),
            ("OMP_NUM_THREADS", "12"),
            ("HOME", "/home/me"),
            ("OMPX", "1"),
            ("LANG", "C.UTF-8"),
        ]);
        let explicit = list(&[("A", "1"), ("LANG", "C"), ("A", "2")]);
        let expected = list(&[("HOME", "/home/me"), ("OMP_NUM_THREADS", "12"), ("LANG", "C"), ("A", "2")]);
        assert_eq!(guest_environment(host.into_iter(), &explicit), expected);
    }
}
