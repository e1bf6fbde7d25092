//! `hwpfctl`, the command of Fugaku and FX1000 that runs another command with the given hardware prefetch settings.
//!
//! Programs find it at [`PATH`] unless the host or the sysroot has a file there. It needs no program: the settings are one
//! register of the core, `IMP_PF_STREAM_DETECT_CTRL_EL0`, which later processes inherit.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use fxscope_aarch64::hpc::StreamDetect;

/// Path of the command for programs.
pub const PATH: &str = "/usr/bin/hwpfctl";

/// The command's name.
pub const NAME: &str = "hwpfctl";

/// Largest L1 distance, lines.
const L1_LINES: u64 = 15;
/// Largest L2 distance and its granularity, lines.
const L2_LINES: u64 = 60;
const L2_UNIT: u64 = 4;

/// The settings that its options request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The register.
    pub stream_detect: StreamDetect,
    /// Whether to print the register's value.
    pub verbose: bool,
    /// Adjusted distances, one sentence each.
    pub notes: Vec<String>,
}

/// A call of the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call<'a> {
    /// `--help`.
    Help,
    /// Set the register, and run the command with its arguments, if there is one.
    Set(Settings, &'a [Vec<u8>]),
}

/// What `--help` shows.
pub const HELP: &str = "\
Usage: hwpfctl [OPTIONS] COMMAND [ARGUMENTS]
Runs COMMAND with its settings of hardware prefetch in stream detect mode.
  --disableL1      no hardware prefetch into the L1 cache
  --disableL2      no hardware prefetch into the L2 cache
  --distL1 LINES   distance of L1 prefetches, 1 to 15 lines; otherwise the CPU's default
  --distL2 LINES   distance of L2 prefetches, 1 to 60 lines, rounded up to 4; otherwise the CPU's default
  --weakL1         L1 prefetches may be dropped
  --weakL2         L2 prefetches may be dropped
  --default        the CPU's defaults
  --reset          the same; needs no COMMAND
  --verbose        show the register before and after
  --help           show this
";

/// Parses the arguments after the command's name.
///
/// # Errors
/// What is wrong with them.
pub fn parse(args: &[Vec<u8>]) -> Result<Call<'_>, String> {
    let mut settings = Settings::default();
    let (mut reset, mut i) = (false, 0);
    while let Some(word) = args.get(i).filter(|word| word.starts_with(b"-")) {
        i += 1;
        if word == b"--" {
            break;
        }
        let word = String::from_utf8_lossy(word).into_owned();
        let (name, mut value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (&word[..], None),
        };
        let set = &mut settings.stream_detect;
        match name {
            "--distL1" | "--distL2" => {
                if value.is_none() {
                    value = args.get(i).map(|next| String::from_utf8_lossy(next).into_owned());
                    i += 1;
                }
                let value = value.ok_or_else(|| format!("{name} needs a number of lines: {}", range(name)))?;
                settings.distance(name, &value);
            }
            _ if value.is_some() => return Err(format!("{name} takes no value")),
            "--disableL1" => set.l1_disabled = true,
            "--disableL2" => set.l2_disabled = true,
            "--weakL1" => set.l1_weak = true,
            "--weakL2" => set.l2_weak = true,
            "--default" | "--reset" => reset = true,
            "--verbose" => settings.verbose = true,
            "--help" => return Ok(Call::Help),
            _ => return Err(format!("there is no option {name}; hwpfctl --help lists them")),
        }
    }
    if reset && settings.stream_detect != StreamDetect::default() {
        return Err("--default and --reset cannot be combined with settings".to_owned());
    }
    settings.stream_detect.valid = !reset;
    let command = &args[i.min(args.len())..];
    if settings.stream_detect == (StreamDetect { valid: true, ..StreamDetect::default() }) {
        // Without settings, the register is not set.
        settings.stream_detect.valid = false;
    }
    Ok(Call::Set(settings, command))
}

/// Describes the range of a distance.
fn range(name: &str) -> String {
    match name {
        "--distL1" => format!("1 to {L1_LINES}, or 0 for the CPU's default"),
        _ => format!("1 to {L2_LINES}, rounded up to a multiple of {L2_UNIT}, or 0 for the CPU's default"),
    }
}

impl Settings {
    /// Parses options in one argument, without a command.
    ///
    /// # Errors
    /// If they are wrong, or something else is among them; the message says how to write them.
    pub fn parse(text: &str) -> Result<Settings, String> {
        let words: Vec<Vec<u8>> = text.split_whitespace().map(|word| word.as_bytes().to_vec()).collect();
        match parse(&words)? {
            Call::Help => Err(format!("give the options of hwpfctl as one argument\n{HELP}")),
            Call::Set(_, [first, ..]) => {
                let first = String::from_utf8_lossy(first);
                Err(format!("'{first}' is not an option; the program comes after fxscope's own options"))
            }
            Call::Set(settings, []) => Ok(settings),
        }
    }

    /// Takes the command and its options off the front of a command line, unless a file of that name exists. Returns the rest
    /// and the settings; `None`: the line does not begin with it.
    ///
    /// # Errors
    /// If its options are wrong, or no program follows them.
    pub fn taken_off(line: &[OsString]) -> Result<Option<(Vec<OsString>, Settings)>, String> {
        let Some((program, rest)) = line.split_first() else { return Ok(None) };
        let program = Path::new(program);
        if program.file_name().is_none_or(|name| name != NAME) || program.exists() {
            return Ok(None);
        }
        let rest: Vec<Vec<u8>> = rest.iter().map(|word| word.as_bytes().to_vec()).collect();
        match parse(&rest).map_err(|what| format!("hwpfctl: {what}"))? {
            Call::Help => Err(HELP.to_owned()),
            Call::Set(_, []) => {
                Err("hwpfctl: no program given after its options; hwpfctl --help shows them".to_owned())
            }
            Call::Set(settings, command) => {
                Ok(Some((command.iter().cloned().map(OsString::from_vec).collect(), settings)))
            }
        }
    }

    /// Returns messages about them for the user: adjusted distances and, if asked for, the register before and after.
    #[must_use]
    pub fn told(&self) -> Vec<String> {
        let mut told = self.notes.clone();
        if self.verbose {
            told.push(format!("before: {}", describe(0.into())));
            told.push(format!("now:    {}", describe(self.stream_detect)));
        }
        told
    }

    /// Sets a distance; an invalid one becomes the CPU's default.
    fn distance(&mut self, name: &str, text: &str) {
        let l1 = name == "--distL1";
        let most = if l1 { L1_LINES } else { L2_LINES };
        let lines = text.parse().ok().filter(|lines| *lines <= most);
        if lines.is_none() {
            self.notes.push(format!("{name} {text}: taken as the CPU's default; the range is {}", range(name)));
        }
        let lines = lines.unwrap_or(0);
        if l1 {
            self.stream_detect.l1_dist = lines;
            return;
        }
        self.stream_detect.l2_dist = lines.div_ceil(L2_UNIT);
        let rounded = self.stream_detect.l2_dist * L2_UNIT;
        if rounded != lines {
            self.notes.push(format!("{name} {lines}: rounded up to {rounded}"));
        }
    }
}

/// Describes the register's value in one line, for `--verbose`.
#[must_use]
pub fn describe(set: StreamDetect) -> String {
    let level = |name: &str, disabled: bool, weak: bool, lines: u64| match (disabled, lines) {
        (true, _) => format!("{name} off"),
        (_, 0) => format!("{name} default distance{}", strength(weak)),
        _ => format!("{name} {lines} lines{}", strength(weak)),
    };
    let what = if set.valid {
        let l1 = level("L1", set.l1_disabled, set.l1_weak, set.l1_dist);
        let l2 = level("L2", set.l2_disabled, set.l2_weak, L2_UNIT * set.l2_dist);
        format!("{l1}, {l2}")
    } else {
        "the CPU's defaults".to_owned()
    };
    format!("IMP_PF_STREAM_DETECT_CTRL_EL0 = {:#018x}: {what}", u64::from(set))
}

fn strength(weak: bool) -> &'static str {
    if weak { " (weak)" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Vec<u8>> {
        text.split_whitespace().map(|word| word.as_bytes().to_vec()).collect()
    }

    /// Returns the register, the notes, and the number of words of the command.
    fn set(text: &str) -> (u64, Vec<String>, usize) {
        match parse(&words(text)) {
            Ok(Call::Set(settings, command)) => (settings.stream_detect.into(), settings.notes, command.len()),
            other => panic!("{text}: {other:?}"),
        }
    }

    const V: u64 = 1 << 63;

    #[test]
    fn options_set_the_corresponding_fields() {
        assert_eq!(set("--disableL1 --disableL2 ./a.out"), (V | 1 << 59 | 1 << 58, vec![], 1));
        assert_eq!(set("--distL1 4 --distL2=20 --weakL1 --weakL2 -- ./a.out --x"), (0x80c0_0000_0405_0000, vec![], 2));
        assert_eq!(set("./a.out --distL1 4"), (0, vec![], 3), "options after the command belong to it");
    }

    #[test]
    fn an_l2_distance_is_rounded_up_to_four_lines_with_a_note() {
        for (lines, field) in [(1, 1), (4, 1), (5, 2), (57, 15), (60, 15)] {
            let (register, notes, _) = set(&format!("--distL2 {lines} x"));
            assert_eq!(register, V | field << 16, "{lines}");
            assert_eq!(notes.is_empty(), lines % 4 == 0, "{lines}");
        }
        assert_eq!(set("--distL2 5 x").1, ["--distL2 5: rounded up to 8"]);
    }

    #[test]
    fn a_distance_out_of_range_becomes_the_default_with_a_note() {
        for option in ["--distL1 16", "--distL2 61", "--distL1 -1", "--distL2 many"] {
            let (register, notes, _) = set(&format!("{option} --weakL1 x"));
            assert_eq!(register, V | 1 << 55, "{option}");
            assert!(notes.len() == 1 && notes[0].starts_with(&format!("{option}: taken as the CPU's default")));
        }
        assert_eq!(set("--distL1 15 --distL2 0 x"), (V | 15 << 24, vec![], 1));
    }

    #[test]
    fn default_and_reset_clear_the_register_and_exclude_settings() {
        assert_eq!(set("--default x"), (0, vec![], 1));
        assert_eq!(set("--reset"), (0, vec![], 0));
        assert!(parse(&words("--reset --weakL1")).is_err());
    }

    #[test]
    fn invalid_options_are_reported() {
        let error = |text: &str| parse(&words(text)).expect_err(text);
        assert_eq!(error("--distL3 4 x"), "there is no option --distL3; hwpfctl --help lists them");
        assert_eq!(error("--distL1"), "--distL1 needs a number of lines: 1 to 15, or 0 for the CPU's default");
        assert_eq!(error("--weakL1=1 x"), "--weakL1 takes no value");
        assert_eq!(parse(&words("--help")), Ok(Call::Help));
    }

    #[test]
    fn the_register_is_described_in_words() {
        let text = |options: &str| match parse(&words(options)) {
            Ok(Call::Set(settings, _)) => describe(settings.stream_detect),
            other => panic!("{other:?}"),
        };
        let register = "IMP_PF_STREAM_DETECT_CTRL_EL0";
        assert_eq!(text("--default x"), format!("{register} = 0x0000000000000000: the CPU's defaults"));
        let weak = format!("{register} = 0x8440000004000000: L1 4 lines, L2 off");
        assert_eq!(text("--distL1 4 --disableL2 --weakL2 x"), weak);
        let far = format!("{register} = 0x8040000000050000: L1 default distance, L2 20 lines (weak)");
        assert_eq!(text("--weakL2 --distL2 20 x"), far);
    }
}
