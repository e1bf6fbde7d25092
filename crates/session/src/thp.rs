//! Transparent huge pages, as an option asks for them.

use fxscope_machine::settings::{integer, size};

use crate::tiering::{TIMES, with_unit};

/// What the value of a part of the option is.
#[derive(Clone, Copy)]
enum Unit {
    Time,
    Count,
}

/// Settings of khugepaged in the option: their names, which are those of Linux's files, the keys of the machine, and their units.
const KNOBS: [(&str, &str, Unit); 5] = [
    ("scan_sleep", "scan_sleep_ns", Unit::Time),
    ("alloc_sleep", "alloc_sleep_ns", Unit::Time),
    ("pages_to_scan", "pages_to_scan", Unit::Count),
    ("max_ptes_none", "max_ptes_none", Unit::Count),
    ("max_ptes_shared", "max_ptes_shared", Unit::Count),
];
/// When huge pages are used.
const WHEN: [&str; 3] = ["always", "madvise", "never"];
/// The same for one size.
const WHEN_SIZE: [&str; 4] = ["always", "inherit", "madvise", "never"];

/// Settings of a machine whose system has transparent huge pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThpOption(Vec<(String, String)>);

impl ThpOption {
    /// Parses `[always|madvise|never][,SIZE=WHEN…][,khugepaged=off][,KEY=VALUE…]` into settings of a machine. khugepaged runs unless it is
    /// off. What is not given has the machine's values; sizes that are not given, those of Linux.
    ///
    /// # Errors
    /// If the text is malformed; the message says how to write it.
    pub fn parse(text: &str) -> Result<ThpOption, String> {
        let mut enabled = None;
        let mut khugepaged = true;
        let mut knobs = Vec::new();
        let mut sizes: [Vec<String>; 4] = Default::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let Some((name, value)) = part.split_once('=') else {
                let known = WHEN.contains(&part) && enabled.is_none();
                enabled = Some(known.then_some(part).ok_or_else(|| not_known(part))?);
                continue;
            };
            if let Some((_, key, unit)) = KNOBS.iter().find(|(known, ..)| *known == name) {
                knobs.push((format!("thp.{key}"), number(value, *unit)?.to_string()));
            } else if name == "khugepaged" {
                khugepaged = match value {
                    "on" => true,
                    "off" => false,
                    _ => return Err(format!("khugepaged={value}: write khugepaged=on or khugepaged=off")),
                };
            } else {
                let bytes = integer(name).ok_or_else(|| not_known(part))?;
                let when = WHEN_SIZE.iter().position(|when| *when == value);
                let when = when.ok_or_else(|| format!("'{value}' is not one of {}", WHEN_SIZE.join(", ")))?;
                sizes[when].push(size(bytes));
            }
        }
        let mut settings = vec![("thp.khugepaged".to_owned(), khugepaged.to_string())];
        settings.extend(enabled.map(|when| ("thp.enabled".to_owned(), when.to_owned())));
        let lists = WHEN_SIZE.iter().zip(&sizes).filter(|(_, sizes)| !sizes.is_empty());
        settings.extend(lists.map(|(when, sizes)| (format!("thp.{when}"), format!("[{}]", sizes.join(", ")))));
        settings.extend(knobs);
        Ok(ThpOption(settings))
    }

    /// Returns the settings that it stands for.
    #[must_use]
    pub fn settings(&self) -> &[(String, String)] {
        &self.0
    }
}

/// Says how to write the option instead of a part of it.
fn not_known(part: &str) -> String {
    let knobs = KNOBS.map(|(name, ..)| name).join(", ");
    format!(
        "'{part}' is none of {} (once), a size such as 2MiB=always, khugepaged=off, and KEY=VALUE; keys are {knobs}",
        WHEN.join(", ")
    )
}

/// Parses a value: ns, or a number.
fn number(text: &str, unit: Unit) -> Result<u64, String> {
    match unit {
        Unit::Count => integer(text).ok_or_else(|| format!("'{text}' is not a number of pages")),
        Unit::Time => {
            with_unit(text, &TIMES).ok_or_else(|| format!("'{text}' is not a time; write it like 500us or 10ms"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(String, String)> {
        ThpOption::parse(text).expect("well-formed").settings().to_vec()
    }

    #[test]
    fn parts_become_settings_of_the_machine_and_khugepaged_runs() {
        let text = "always,2MiB=always,256KiB=madvise,4MiB=always,512MiB=inherit,scan_sleep=1.5ms,max_ptes_none=0";
        let settings = parsed(text);
        let expected = [
            ("thp.khugepaged", "true"),
            ("thp.enabled", "always"),
            ("thp.always", "[2MiB, 4MiB]"),
            ("thp.inherit", "[512MiB]"),
            ("thp.madvise", "[256KiB]"),
            ("thp.scan_sleep_ns", "1500000"),
            ("thp.max_ptes_none", "0"),
        ];
        assert!(settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).eq(expected), "{settings:?}");
        assert!(fxscope_machine::load("a64fx", &settings).is_ok_and(|spec| spec.thp.always == [2 << 20, 4 << 20]));
        let off = parsed("never,khugepaged=off");
        assert_eq!(off[0], ("thp.khugepaged".to_owned(), "false".to_owned()));
        let all = KNOBS.map(|(name, _, unit)| {
            format!(
                "{name}={}",
                match unit {
                    Unit::Time => "2ms",
                    Unit::Count => "7",
                }
            )
        });
        assert!(fxscope_machine::load("a64fx", &parsed(&all.join(","))).is_ok());
    }

    #[test]
    fn what_cannot_be_read_is_told_with_how_to_write_it() {
        for (text, why) in [
            ("sometimes", "'sometimes' is none of always, madvise, never (once)"),
            ("always,never", "'never' is none of"),
            ("speed=1", "keys are scan_sleep, alloc_sleep"),
            ("2MiB=yes", "'yes' is not one of always, inherit, madvise, never"),
            ("khugepaged=maybe", "write khugepaged=on or khugepaged=off"),
            ("scan_sleep=1", "'1' is not a time; write it like 500us"),
            ("pages_to_scan=many", "'many' is not a number"),
        ] {
            assert!(ThpOption::parse(text).is_err_and(|told| told.contains(why)), "{text}");
        }
    }

    #[test]
    fn sizes_that_the_machine_does_not_have_and_sizes_with_two_settings_are_refused() {
        for (text, why) in
            [("128KiB=always", "from 262_144 to 536_870_912"), ("2MiB=always,2MiB=never", "no other list of thp has")]
        {
            let refused = fxscope_machine::load("a64fx", &parsed(text)).err();
            let told = refused.expect("refused").to_string();
            assert!(told.contains(why), "{told}");
        }
    }
}
