//! The benchmarks, and the numbers that are fitted to them. The measuring program has the same table of benchmarks.

use std::sync::LazyLock;

const BENCHMARKS: &str = include_str!("../../../../data/calibration/benchmarks.csv");
const KEYS: &str = include_str!("../../../../data/calibration/fits.csv");

/// A benchmark: a small loop, and where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Benchmark {
    /// Its name.
    pub name: String,
    /// The loop of the measuring program (`kernels/collect_loops.c`).
    pub loop_name: String,
    /// Arguments of the loop, separated by blanks.
    pub arguments: String,
    /// Cores of its threads as `CMG.CORE` or `CMG.FIRST-LAST`, several joined by `+`; `@CMG` names the CMG whose memory they use,
    /// by default that of the first thread.
    pub threads: String,
    /// Events that are counted, with their numbers.
    pub events: Vec<(String, u16)>,
    /// What it decides: a gap of `validation/gaps.csv`, or a key of the machine; empty if other benchmarks need it only.
    pub gap: String,
    /// What it isolates.
    pub isolates: String,
}

/// A number of the machine that is fitted to benchmarks.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// `TABLE.KEY`.
    pub name: String,
    /// The time that depends on it.
    pub quantity: Quantity,
    /// Smallest value of the search.
    pub low: Bound,
    /// Largest value of the search.
    pub high: Bound,
    /// Difference between neighbouring values.
    pub step: f64,
}

/// An end of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// A number.
    Number(f64),
    /// The value of another key, by its name: the machine's, or the fitted one.
    Key(String),
}

/// The time of one operation that a number is fitted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// That of a benchmark.
    Of(String),
    /// That of the first less that of the second.
    Difference(String, String),
    /// The shortest of all benchmarks whose names begin so.
    Least(String),
    /// The longest of them.
    Most(String),
}

/// Returns the benchmarks, in the order in which they run.
#[must_use]
pub fn benchmarks() -> &'static [Benchmark] {
    static TABLE: LazyLock<Vec<Benchmark>> = LazyLock::new(|| rows(BENCHMARKS).map(|row| benchmark(&row)).collect());
    &TABLE
}

/// Returns the numbers that are fitted, in the order of the fits: each builds on those before it.
#[must_use]
pub fn keys() -> &'static [Key] {
    static TABLE: LazyLock<Vec<Key>> = LazyLock::new(|| rows(KEYS).map(|row| key(&row)).collect());
    &TABLE
}

/// Returns the rows of a table of this crate. Tests read all of them.
fn rows(table: &'static str) -> impl Iterator<Item = csv::StringRecord> {
    csv::Reader::from_reader(table.as_bytes()).into_records().map(|row| row.expect("a table of this crate"))
}

fn benchmark(row: &csv::StringRecord) -> Benchmark {
    let event = |text: &str| {
        let (name, number) = text.split_once("=0x").expect("NAME=0xNUMBER");
        (name.to_owned(), u16::from_str_radix(number, 16).expect("a hexadecimal number"))
    };
    Benchmark {
        name: row[0].to_owned(),
        loop_name: row[1].to_owned(),
        arguments: row[2].to_owned(),
        threads: row[3].to_owned(),
        events: row[4].split_whitespace().map(event).collect(),
        gap: row[5].to_owned(),
        isolates: row[6].to_owned(),
    }
}

fn key(row: &csv::StringRecord) -> Key {
    let bound = |text: &str| text.parse().map_or_else(|_| Bound::Key(text.to_owned()), Bound::Number);
    Key {
        name: row[0].to_owned(),
        quantity: Quantity::parse(&row[1]),
        low: bound(&row[2]),
        high: bound(&row[3]),
        step: row[4].parse().expect("a number"),
    }
}

impl Quantity {
    fn parse(text: &str) -> Quantity {
        let own = str::to_owned;
        match text.split(' ').collect::<Vec<_>>()[..] {
            ["least", prefix] => Quantity::Least(own(prefix)),
            ["most", prefix] => Quantity::Most(own(prefix)),
            [first, "-", second] => Quantity::Difference(own(first), own(second)),
            _ => Quantity::Of(own(text)),
        }
    }

    /// Returns the names of its benchmarks.
    #[must_use]
    pub fn benchmarks(&self) -> Vec<&str> {
        match self {
            Quantity::Of(name) => vec![name],
            Quantity::Difference(first, second) => vec![first, second],
            Quantity::Least(prefix) | Quantity::Most(prefix) => {
                let names = benchmarks().iter().map(|benchmark| benchmark.name.as_str());
                names.filter(|name| name.starts_with(prefix.as_str())).collect()
            }
        }
    }

    /// Returns its value, ns, if `time` returns the time of an operation of each benchmark, ns.
    ///
    /// # Errors
    /// The first error of `time`.
    pub fn value<E>(&self, mut time: impl FnMut(&str) -> Result<f64, E>) -> Result<f64, E> {
        match self {
            Quantity::Of(name) => time(name),
            Quantity::Difference(first, second) => Ok(time(first)? - time(second)?),
            Quantity::Least(_) | Quantity::Most(_) => {
                let times = self.benchmarks().into_iter().map(time).collect::<Result<Vec<f64>, E>>()?;
                let fold = if matches!(self, Quantity::Least(_)) { f64::min } else { f64::max };
                Ok(times.into_iter().reduce(fold).unwrap_or(f64::NAN))
            }
        }
    }
}

impl std::fmt::Display for Quantity {
    /// In words.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Quantity::Of(name) => f.write_str(name),
            Quantity::Difference(first, second) => write!(f, "{first} less {second}"),
            Quantity::Least(prefix) => write!(f, "least of {prefix}*"),
            Quantity::Most(prefix) => write!(f, "most of {prefix}*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn spec() -> fxscope_machine::Spec {
        fxscope_machine::load("a64fx", &[]).expect("a built-in machine")
    }

    #[test]
    fn benchmarks_have_names_of_their_own_and_count_events_of_the_machine() {
        let names: BTreeSet<&str> = benchmarks().iter().map(|benchmark| benchmark.name.as_str()).collect();
        assert_eq!(names.len(), benchmarks().len());
        let spec = spec();
        for benchmark in benchmarks() {
            assert!(benchmark.events.len() <= 6, "{}: the program counts six events at most", benchmark.name);
            for (name, number) in &benchmark.events {
                let event = spec.pmu.events.named(name).expect(name);
                assert_eq!(event.number, Some(*number), "{}: {name}", benchmark.name);
            }
        }
    }

    /// The measuring program takes the first five columns as they are: they are cut out without regard to quotes.
    #[test]
    fn what_the_measuring_program_reads_has_no_quotes_and_fits_its_fields() {
        const FIELD_BYTES: usize = 128;
        for line in BENCHMARKS.lines().skip(1) {
            let fields: Vec<&str> = line.splitn(6, ',').collect();
            assert!(fields[..5].iter().all(|field| field.len() < FIELD_BYTES && !field.contains('"')), "{line}");
            assert!(fields[2].split(' ').count() < 16, "{line}");
        }
    }

    #[test]
    fn each_benchmark_answers_a_gap_or_a_key_or_is_part_of_a_fit() {
        let gaps = include_str!("../../../../validation/gaps.csv");
        let gap = |name: &str| gaps.lines().any(|line| line.split(',').next() == Some(name));
        let spec = spec();
        for benchmark in benchmarks() {
            let used = keys().iter().any(|key| key.quantity.benchmarks().contains(&benchmark.name.as_str()));
            let known = gap(&benchmark.gap) || spec.entries().any(|entry| entry.name() == benchmark.gap);
            assert!(known || benchmark.gap.is_empty() && used, "{}: {}", benchmark.name, benchmark.gap);
        }
    }

    #[test]
    fn fits_name_keys_of_the_machine_and_benchmarks_and_their_ranges_hold_the_value_of_today() {
        let spec = spec();
        let value = |name: &str| super::super::fit::value_of(&spec, name).expect(name);
        for key in keys() {
            let end = |bound: &Bound| match bound {
                Bound::Number(number) => *number,
                Bound::Key(name) => value(name),
            };
            let today = value(&key.name);
            assert!(end(&key.low) < today && today < end(&key.high), "{}: {today}", key.name);
            assert!(!key.quantity.benchmarks().is_empty(), "{}", key.name);
            for name in key.quantity.benchmarks() {
                assert!(benchmarks().iter().any(|benchmark| benchmark.name == name), "{}: {name}", key.name);
            }
        }
    }
}
