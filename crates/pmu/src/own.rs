//! The tables that evaluations use: those that are built in, and those that a user adds.

use std::sync::OnceLock;

use crate::metrics::{Group, Metrics};
use crate::{TableError, remedies, rules};

/// The groups of metrics, in the order of reports.
pub(crate) const BUILT_IN: &[(&str, &str)] = &[
    ("time.toml", include_str!("../../../data/metrics/time.toml")),
    ("vector.toml", include_str!("../../../data/metrics/vector.toml")),
    ("memory.toml", include_str!("../../../data/metrics/memory.toml")),
    ("cycle-accounting.toml", include_str!("../../../data/metrics/cycle-accounting.toml")),
    ("cycle-accounting-brief.toml", include_str!("../../../data/metrics/cycle-accounting-brief.toml")),
    ("misses.toml", include_str!("../../../data/metrics/misses.toml")),
    ("busy.toml", include_str!("../../../data/metrics/busy.toml")),
    ("instruction-mix.toml", include_str!("../../../data/metrics/instruction-mix.toml")),
    ("extra.toml", include_str!("../../../data/metrics/extra.toml")),
    ("hardware-prefetch.toml", include_str!("../../../data/metrics/hardware-prefetch.toml")),
    ("traffic.toml", include_str!("../../../data/metrics/traffic.toml")),
    ("power.toml", include_str!("../../../data/metrics/power.toml")),
    ("time-shares.toml", include_str!("../../../data/metrics/time-shares.toml")),
    ("manual-rates.toml", include_str!("../../../data/metrics/manual-rates.toml")),
];

/// The tables of the report.
pub(crate) const TABLES: (&str, &str) = ("report.toml", include_str!("../../../data/metrics/report.toml"));

/// A file of the user's own: its name in messages, and its text.
pub type OwnFile<'a> = (&'a str, &'a str);

/// The tables of this process.
static METRICS: OnceLock<Metrics> = OnceLock::new();

impl Metrics {
    /// Returns the built-in metrics, and those that were added.
    ///
    /// # Panics
    /// If the built-in ones are invalid, which a test rules out.
    #[must_use]
    pub fn built_in() -> &'static Metrics {
        METRICS.get_or_init(|| Metrics::with_own(&[], &[]).expect("built-in tables are tested"))
    }

    /// Adds metrics and rules of the user's own to the built-in ones, for the whole process. Their formats are those of
    /// `data/metrics/*.toml` and `data/rules/*.toml`.
    ///
    /// # Errors
    /// The error and its location; or that metrics were used already, which makes it too late.
    pub fn add(metrics: &[OwnFile], rules: &[OwnFile]) -> Result<(), TableError> {
        let all = Metrics::with_own(metrics, rules)?;
        METRICS.set(all).map_err(|_| TableError {
            file: metrics.iter().chain(rules).next().map_or_else(String::new, |file| file.0.to_owned()),
            what: "cannot be added after the first use of metrics".to_owned(),
        })
    }

    /// Returns the built-in metrics with those of files, and the built-in rules with those of others.
    ///
    /// # Errors
    /// The error and its location.
    pub fn with_own(metrics: &[OwnFile], rules: &[OwnFile]) -> Result<Metrics, TableError> {
        Metrics::parse(&[BUILT_IN, metrics].concat())?
            .with_tables(TABLES)?
            .with_rules(&[rules::BUILT_IN, rules].concat())?
            .with_remedies(remedies::BUILT_IN)
    }

    /// Returns the groups of metrics that were added.
    #[must_use]
    pub fn own_groups(&self) -> &[Group] {
        self.groups().get(BUILT_IN.len()..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: &str =
        "group = 'own'\ntitle = 'Own'\n[[metric]]\nname = 'half'\ntitle = 'Half'\nunit = 's'\nformula = 'seconds / 2'";
    const RULE: &str = "subject = 'own'\n[[rule]]\nname = 'slow'\ntitle = 'slowness'\nwhen = ['half > 1']\nshare = '1'\n\
        says = 'takes {half}'\nevidence = ['half']\ntry = []\nsource = 'a test'";

    #[test]
    fn own_metrics_and_rules_use_built_in_ones_and_each_other() {
        let metrics = Metrics::with_own(&[("half.toml", HALF)], &[("slow.toml", RULE)]).expect("valid");
        assert_eq!(metrics.own_groups().iter().map(|group| group.name.as_str()).collect::<Vec<_>>(), ["own"]);
        assert_eq!(metrics.named("half").map(|metric| metric.unit.as_str()), Some("s"));
        assert_eq!(metrics.rules().last().map(|rule| rule.name.as_str()), Some("slow"));
        assert_eq!(metrics.all().count(), Metrics::with_own(&[], &[]).expect("valid").all().count() + 1);
    }

    #[test]
    fn mistakes_in_own_files_name_the_file() {
        let wrong = HALF.replace("seconds /", "secnds /");
        let cases = [
            (
                Metrics::with_own(&[("half.toml", &wrong)], &[]),
                "half.toml: half: no event, constant or metric is called 'secnds'",
            ),
            (Metrics::with_own(&[("a", HALF), ("b", HALF)], &[]), "half: a second metric has this name"),
            (
                Metrics::with_own(&[], &[("slow.toml", RULE)]),
                "slow.toml: slow: no event, constant or metric is called 'half'",
            ),
        ];
        for (parsed, message) in cases {
            let error = parsed.expect_err(message).to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn nothing_is_added_after_the_first_use() {
        let _ = Metrics::built_in();
        let error = Metrics::add(&[("half.toml", HALF)], &[]).expect_err("too late");
        assert_eq!(error.to_string(), "half.toml: cannot be added after the first use of metrics");
    }
}
