//! Exit statuses: one table, from which help and the manual are made. `docs/exit-codes.md` has it as well.

use std::fmt::Write as _;

/// Exit status if a check of the command found something: a slower run, a worse error, a run that failed.
pub(super) const FOUND: u8 = 1;
/// Exit status if the command line is wrong, as of clap.
const USAGE: u8 = 2;
/// Exit status if the program makes no progress, as of `timeout`.
pub(super) const NO_PROGRESS: u8 = 124;
/// Exit status if fxscope itself failed.
pub(super) const FAILED: u8 = 125;
/// Exit status if the program's file cannot be run, and if it does not exist, as in shells.
pub(super) const CANNOT_RUN: u8 = 126;
pub(super) const NOT_FOUND: u8 = 127;
/// What the number of a signal is added to, as in shells.
pub(super) const SIGNAL: u8 = 128;

/// Each status, and what it means.
const MEANINGS: &[(u8, &str)] = &[
    (0, "the command did what it was asked"),
    (FOUND, "a check failed (compare --fail-above, validate), or a run of a set"),
    (USAGE, "the command line is wrong"),
    (NO_PROGRESS, "the simulated program makes no progress (run --no-progress)"),
    (FAILED, "fxscope failed: wrong input, unwritable output, deadlock of the program, an error of fxscope itself"),
    (CANNOT_RUN, "the program cannot be executed"),
    (NOT_FOUND, "the program does not exist"),
];

/// Returns each status with its meaning, the lowest first.
fn meanings() -> impl Iterator<Item = (String, &'static str)> {
    let fixed = MEANINGS.iter().map(|&(status, meaning)| (status.to_string(), meaning));
    fixed.chain([(format!("{SIGNAL}+n"), "signal n ended fxscope or the program: 130 Ctrl-C, 143 SIGTERM")])
}

/// Returns the text of help.
pub(super) fn help() -> String {
    let mut text = "Exit status (run, resume and advise pass on that of the simulated program):\n".to_owned();
    for (status, meaning) in meanings() {
        let _ = writeln!(text, "  {status:<6} {meaning}");
    }
    text
}

/// Returns the items of a section of the manual: each status with its meaning.
pub(super) fn manual(roff: &mut clap_mangen::roff::Roff) {
    use clap_mangen::roff::{bold, roman};
    roff.control("SH", ["EXIT STATUS"]);
    roff.text([roman("run, resume and advise pass on the exit status of the simulated program.")]);
    for (status, meaning) in meanings() {
        roff.control("TP", ["8"]);
        roff.text([bold(status)]);
        roff.text([roman(meaning)]);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_document_has_every_status_with_its_meaning() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/exit-codes.md");
        let document = std::fs::read_to_string(path).expect("docs/exit-codes.md is there");
        let shown: Vec<&str> = document.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
        let table: Vec<String> =
            super::meanings().map(|(status, meaning)| format!("| {status} | {meaning} |")).collect();
        assert_eq!(shown, table);
    }
}
