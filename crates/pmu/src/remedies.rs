//! Remedies: what may help against the causes that rules find without changing the program, from `data/remedies.toml`.
//!
//! Each is a list of options of `fxscope run`, so that it can be simulated, and says how to do the same on a machine. Values that depend
//! on the machine or on the run, such as distances of prefetch, are named there and inserted by the caller that applies the remedy.

use crate::TableError;
use crate::rules::Rule;

/// The table of remedies.
pub(crate) const BUILT_IN: (&str, &str) = ("remedies.toml", include_str!("../../../data/remedies.toml"));

/// What stands for the value in a remedy's texts.
const VALUE: &str = "{}";

/// Values that remedies are tried with: each stands for some that follow from the machine, the scenario or the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Values {
    /// Distances of prefetch into L1 other than the machine's, lines.
    L1Distances,
    /// Distances of prefetch into L2 other than the machine's, lines.
    L2Distances,
    /// The size of large pages, if it is not that of normal ones.
    LargePage,
    /// Numbers of threads that divide the cores of a CMG, or are multiples of them.
    ThreadCounts,
    /// As many CPUs as now, all on one CMG.
    CpusOfOneCmg,
    /// As many CPUs as now, on all CMGs alike.
    CpusOfAllCmgs,
    /// The memory node of the CMG that all threads run on.
    LocalNode,
    /// Vector lengths below the machine's, bits.
    VectorLengths,
    /// Static variables that are read again and again, with the ways of L2 that hold them: `L2=WAYS,assign=NAME`.
    ReusedVariables,
    /// Page sizes by segment as `fxscope pages advise` finds them.
    PageSizes,
}

/// A remedy.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remedy {
    /// What it changes. `{}` in this and the following texts stands for the value.
    pub name: String,
    /// What it is a choice of: remedies of different kinds can be combined.
    pub kind: String,
    /// The rules whose causes it may help against; empty if it is a trade-off.
    #[serde(default)]
    pub rules: Vec<String>,
    /// It gives time for energy or energy for time, whatever limits the program.
    #[serde(default)]
    pub trade_off: bool,
    /// Options of `fxscope run` that apply it, option and argument in turn; empty with [`Values::PageSizes`], whose values have their own.
    #[serde(default)]
    pub options: Vec<String>,
    /// How to do the same on a machine.
    pub machine: String,
    /// The values that it is tried with.
    pub values: Option<Values>,
    /// Where the setting is described.
    pub source: String,
}

impl Remedy {
    /// Returns the remedy with a value inserted.
    #[must_use]
    pub fn with_value(&self, value: &str) -> Remedy {
        let insert = |text: &String| text.replace(VALUE, value);
        Remedy {
            name: insert(&self.name),
            machine: insert(&self.machine),
            options: self.options.iter().map(insert).collect(),
            ..self.clone()
        }
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    remedy: Vec<Remedy>,
}

/// Parses remedies for `rules`.
///
/// # Errors
/// The error, the file and the remedy.
pub(crate) fn parse((file, text): (&str, &str), rules: &[Rule]) -> Result<Vec<Remedy>, TableError> {
    let error = |what: String| TableError { file: file.to_owned(), what };
    let File { remedy: remedies } = toml::from_str(text).map_err(|e| error(e.to_string()))?;
    for (place, remedy) in remedies.iter().enumerate() {
        let twice = remedies[..place].iter().any(|other| other.name == remedy.name);
        let what = if twice { Err("a second remedy has this name".to_owned()) } else { check(remedy, rules) };
        what.map_err(|what| error(format!("{}: {what}", remedy.name)))?;
    }
    // A command needs options without values.
    let has = |name: &String| remedies.iter().any(|remedy| remedy.name == *name && remedy.values.is_none());
    let named = rules.iter().flat_map(|rule| rule.tries.iter().filter_map(move |t| Some((rule, t.remedy.as_ref()?))));
    match named.into_iter().find(|(_, name)| !has(name)) {
        Some((rule, name)) => Err(error(format!("rule {}: no remedy without values is called '{name}'", rule.name))),
        None => Ok(remedies),
    }
}

fn check(remedy: &Remedy, rules: &[Rule]) -> Result<(), String> {
    if let Some(unknown) = remedy.rules.iter().find(|name| rules.iter().all(|rule| rule.name != **name)) {
        return Err(format!("no rule is called '{unknown}'"));
    }
    if remedy.rules.is_empty() != remedy.trade_off {
        return Err("it has rules, or else is a trade-off".to_owned());
    }
    if remedy.source.trim().is_empty() {
        return Err("its source is missing".to_owned());
    }
    let has_own = remedy.values == Some(Values::PageSizes);
    if remedy.options.is_empty() != has_own || !remedy.options.len().is_multiple_of(2) {
        return Err("its options are missing, or one has no argument".to_owned());
    }
    let takes_value = remedy.options.iter().any(|option| option.contains(VALUE));
    if takes_value != (remedy.values.is_some() && !has_own) {
        return Err(format!("{VALUE} is in the options of remedies with values, and only there"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parsed for a rule without a remedy of its own.
    fn parsed(remedies: &str) -> Result<Vec<Remedy>, TableError> {
        let rules = crate::Metrics::built_in().rules();
        let plain = rules.iter().find(|rule| rule.name == "l2_latency").expect("there is one");
        parse(("f.toml", remedies), std::slice::from_ref(plain))
    }

    #[test]
    fn remedies_that_rules_name_exist() {
        let rules = crate::Metrics::built_in().rules();
        let error = parse(("f.toml", "remedy = []"), rules).expect_err("none");
        assert!(error.to_string().contains("no remedy without values is called"), "{error}");
    }

    fn with(key: &str, value: &str) -> String {
        let usual = [
            ("name", "'L2 prefetch {} lines ahead'"),
            ("kind", "'prefetch'"),
            ("rules", "['l2_latency']"),
            ("options", "['--hwpf', '--distL2 {}']"),
            ("machine", "'hwpfctl --distL2 {}'"),
            ("values", "'l2_distances'"),
            ("source", "'docs'"),
        ];
        let line = |(known, usual): (&str, &str)| format!("{known} = {}\n", if known == key { value } else { usual });
        format!("[[remedy]]\n{}", usual.map(line).concat())
    }

    #[test]
    fn a_value_is_inserted_everywhere() {
        let remedy = parsed(&with("", "")).expect("valid").remove(0).with_value("20");
        assert_eq!((&remedy.name[..], &remedy.machine[..]), ("L2 prefetch 20 lines ahead", "hwpfctl --distL2 20"));
        assert_eq!(remedy.options, ["--hwpf", "--distL2 20"]);
    }

    #[test]
    fn mistakes_are_reported_with_file_and_remedy() {
        let name = "f.toml: L2 prefetch {} lines ahead";
        let cases = [
            (with("rules", "['none']"), "no rule is called 'none'"),
            (with("rules", "[]"), "it has rules, or else is a trade-off"),
            (with("source", "' '"), "its source is missing"),
            (with("options", "['--hwpf']"), "its options are missing, or one has no argument"),
            (with("options", "['-e', 'A=1']"), "{} is in the options of remedies with values, and only there"),
            (with("values", "'page_sizes'"), "its options are missing, or one has no argument"),
            (with("", "").repeat(2), "a second remedy has this name"),
        ];
        for (text, message) in cases {
            assert_eq!(parsed(&text).expect_err(&text).to_string(), format!("{name}: {message}"));
        }
    }
}
