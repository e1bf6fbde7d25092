//! `--hwpf`, and `hwpfctl` in front of a program: the setting of hardware prefetch at the start of a run.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use fxscope::linux::hwpfctl::{self, Call, Settings};

use super::{Failure, say};

/// Parses the value of `--hwpf`: options of `hwpfctl`, as one argument.
pub(super) fn options(text: &str) -> Result<Settings, String> {
    let words: Vec<Vec<u8>> = text.split_whitespace().map(|word| word.as_bytes().to_vec()).collect();
    match hwpfctl::parse(&words)? {
        Call::Help => Err(format!("give the options of hwpfctl as one argument\n{}", hwpfctl::HELP)),
        Call::Set(_, [first, ..]) => {
            let first = String::from_utf8_lossy(first);
            Err(format!("'{first}' is not an option; the program comes after fxscope's own options"))
        }
        Call::Set(settings, []) => Ok(settings),
    }
}

/// Takes `hwpfctl` and its options off the front of a command line, unless a file of that name exists. Returns the rest
/// and the settings.
pub(super) fn taken_off(command: &[OsString]) -> Result<Option<(Vec<OsString>, Settings)>, Failure> {
    let Some((program, rest)) = command.split_first() else { return Ok(None) };
    let program = Path::new(program);
    if program.file_name().is_none_or(|name| name != hwpfctl::NAME) || program.exists() {
        return Ok(None);
    }
    let rest: Vec<Vec<u8>> = rest.iter().map(|word| word.as_bytes().to_vec()).collect();
    match hwpfctl::parse(&rest).map_err(|what| format!("hwpfctl: {what}"))? {
        Call::Help => Err(hwpfctl::HELP.into()),
        Call::Set(_, []) => Err("hwpfctl: no program given after its options; hwpfctl --help shows them".into()),
        Call::Set(settings, command) => Ok(Some((command.iter().cloned().map(OsString::from_vec).collect(), settings))),
    }
}

/// Reports settings that differ from what was asked for, namely rounded distances, and the register with --verbose.
pub(super) fn tell(settings: &Settings) {
    settings.notes.iter().for_each(|note| say(note));
    if settings.verbose {
        say(&format!("before: {}", hwpfctl::describe(0.into())));
        say(&format!("now:    {}", hwpfctl::describe(settings.stream_detect)));
    }
}
