//! Promotion and demotion of pages by heat, as an option asks for it.

use fxscope_machine::Spec;
use fxscope_machine::settings::integer;

use crate::{Error, Mode, Scenario};

/// What the value of a part of the option is.
#[derive(Clone, Copy)]
enum Unit {
    Time,
    Size,
    Rate,
}

/// The parts of the option: their names, the keys of the machine that they set, and their units.
const PARTS: [(&str, &str, Unit); 8] = [
    ("delay", "scan_delay_ns", Unit::Time),
    ("period", "scan_period_ns", Unit::Time),
    ("scan", "scan_bytes", Unit::Size),
    ("threshold", "hot_threshold_ns", Unit::Time),
    ("adjust", "adjust_period_ns", Unit::Time),
    ("rate", "promote_bytes_per_second", Unit::Rate),
    ("window", "promote_window_ns", Unit::Time),
    ("ample", "ample_bytes", Unit::Size),
];

/// Settings of a machine whose system promotes and demotes pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TieringOption(Vec<(String, String)>);

impl TieringOption {
    /// Parses `KEY=VALUE,…`. Keys that are not given have the machine's values.
    ///
    /// # Errors
    /// If the text is malformed; the message says how to write it.
    pub fn parse(text: &str) -> Result<TieringOption, String> {
        let mut settings = vec![("tiering.enabled".to_owned(), "true".to_owned())];
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let names = || PARTS.map(|(name, ..)| name).join(", ");
            let how = || format!("'{part}' is not KEY=VALUE, such as period=1ms; keys are {}", names());
            let (name, value) = part.split_once('=').ok_or_else(how)?;
            let found = PARTS.iter().find(|(known, ..)| *known == name);
            let (_, key, unit) = found.ok_or_else(|| format!("there is no '{name}'; keys are {}", names()))?;
            settings.push((format!("tiering.{key}"), number(value, *unit)?.to_string()));
        }
        Ok(TieringOption(settings))
    }

    /// Returns the settings that it stands for.
    #[must_use]
    pub fn settings(&self) -> &[(String, String)] {
        &self.0
    }
}

/// Parses a value: ns, bytes, or bytes per second.
fn number(text: &str, unit: Unit) -> Result<u64, String> {
    let (units, example): (&[(&str, f64)], _) = match unit {
        Unit::Time => (&TIMES, "time; write it like 500us or 1ms"),
        Unit::Rate => (
            &[("MB/s", 1e6), ("GB/s", 1e9), ("MiB/s", 1048576.0), ("GiB/s", 1073741824.0)],
            "rate; write it like 500MB/s",
        ),
        Unit::Size => {
            return integer(text).ok_or_else(|| format!("'{text}' is not a size; write it like 64MiB"));
        }
    };
    with_unit(text, units).ok_or_else(|| format!("'{text}' is not a {example}"))
}

/// Units of time, with their ns.
pub(crate) const TIMES: [(&str, f64); 5] = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];

/// Parses a number of at least 1 with one of these units; `None` if it is none.
pub(crate) fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<u64> {
    let value = units.iter().find_map(|(unit, n)| Some(text.strip_suffix(unit)?.trim_end().parse::<f64>().ok()? * n));
    value.filter(|value| (1.0..1e18).contains(value)).map(|value| value as u64)
}

impl Scenario {
    /// Checks that pages can be moved by heat: there is somewhere to go, and all accesses are timed in order.
    pub(crate) fn check_tiering(&self, spec: &Spec) -> Result<(), Error> {
        if !spec.tiering.enabled {
            return Ok(());
        }
        let options = &self.options;
        let reasons = [
            (
                spec.memory_tiers.names().next().is_none(),
                "the machine has no memory tier for pages to move to; add one with --memory-tier",
            ),
            (
                options.mode == Mode::Functional,
                "functional mode has no TLB that shows which pages are used; use timing mode",
            ),
            (options.sample.is_some(), "pages move by accesses of the whole run; leave --sample out"),
            (options.part.is_some(), "pages move by accesses of the whole run; leave --from, --until and --region out"),
            (
                options.jobs.is_some(),
                "pages move at times that are known only after the program has run; leave --jobs out",
            ),
            (options.host_threads > 1, "pages move in the order of simulated time; leave --host-threads out"),
        ];
        match reasons.into_iter().find(|(fails, _)| *fails) {
            Some((_, why)) => Err(Error::option("tiering", why)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_become_settings_of_the_machine_in_its_units() {
        let option = TieringOption::parse("period=1.5ms,scan=64MiB,rate=500MB/s").expect("well-formed");
        let expected = [
            ("tiering.enabled", "true"),
            ("tiering.scan_period_ns", "1500000"),
            ("tiering.scan_bytes", "67108864"),
            ("tiering.promote_bytes_per_second", "500000000"),
        ];
        assert!(option.settings().iter().map(|(key, value)| (key.as_str(), value.as_str())).eq(expected));
        assert_eq!(TieringOption::parse("").map(|option| option.settings().len()), Ok(1));
        let all = PARTS.map(|(name, _, unit)| {
            format!(
                "{name}={}",
                match unit {
                    Unit::Time => "2ms",
                    Unit::Size => "1MiB",
                    Unit::Rate => "2GB/s",
                }
            )
        });
        let tier = ("memory_tiers.names".to_owned(), String::new());
        let settings = [TieringOption::parse(&all.join(",")).expect("well-formed").settings(), &[tier]].concat();
        assert!(fxscope_machine::load("a64fx", &settings).is_ok_and(|spec| spec.tiering.enabled));
    }

    #[test]
    fn what_cannot_be_read_is_told_with_how_to_write_it() {
        for (text, why) in [
            ("speed=1", "there is no 'speed'; keys are delay, period"),
            ("period", "is not KEY=VALUE"),
            ("period=1", "'1' is not a time; write it like 500us"),
            ("scan=much", "'much' is not a size"),
            ("rate=5", "'5' is not a rate"),
        ] {
            assert!(TieringOption::parse(text).is_err_and(|told| told.contains(why)), "{text}");
        }
    }
}
