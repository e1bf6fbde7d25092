//! Which part of a run is timed, and its textual form.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Which of the numbers of a [`Point`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Count {
    /// This one, counted from the start of the run.
    OfRun(u64),
    /// This one, counted from the beginning of the part.
    OfPart(u64),
}

/// A point in a run.
///
/// Its textual form is what `--from` and `--until` take: `instructions=N` (with k, M or G), `time=2ms`, `function=NAME#K` or
/// `region=NAME#K`. With `+` in front of the number, it counts from the beginning of the part. `#K` may be left out.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Point {
    /// This number of instructions has been executed, by all threads together.
    Instructions(Count),
    /// The guest's clock shows this number of ns.
    Time(Count),
    /// A call of the function of this name. Of calls inside each other the outermost one counts, and each thread counts its own.
    /// `None`: the first one.
    Function(String, Option<Count>),
    /// An execution of the region of this name, in the same way.
    Region(String, Option<Count>),
}

/// How much of what comes before a part is followed ([`crate::Options::part`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Warming {
    /// The last [`DEFAULT_WARMING`] instructions before a number of instructions or a time, and all before anything else.
    #[default]
    Default,
    /// The last instructions, this number of them, before a number of instructions or a time. A nanosecond of functional mode is an instruction.
    Instructions(u64),
    /// All.
    All,
    /// Nothing.
    Nothing,
}

/// Instructions that are followed before a part if nothing else is asked for.
pub const DEFAULT_WARMING: u64 = 50_000_000;

/// What is timed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// From one point to another.
    Between {
        /// Where it begins: for functions and regions, when a thread enters them. `None`: at the start of the run.
        from: Option<Point>,
        /// Where it ends: for functions and regions, when the threads in them have left. `None`: at the end of the run.
        until: Option<Point>,
    },
    /// Each execution of the region of this name.
    Region(String),
}

/// The part of a run that is timed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct PartPlan {
    /// What is timed.
    pub selection: Selection,
    /// How much of what comes before is followed.
    #[serde(default)]
    pub warming: Warming,
    /// Whether the run ends where the part ends; otherwise the program continues, functionally.
    #[serde(default)]
    pub stops: bool,
}

/// Why a text is not a point, or points make no part.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PartError {
    /// Not one of the kinds.
    #[error("write it as instructions=5G, time=2ms, function=NAME#3 or region=NAME#3")]
    Kind,
    /// Not a number of instructions.
    #[error("'{0}' is no number of instructions; write it as 5000000, 5M or +5M")]
    Instructions(String),
    /// Not a time.
    #[error("'{0}' is no time; write it as 100us, 2ms, 1s or +2ms")]
    Time(String),
    /// A number that is 0.
    #[error("'{0}' counts from 1")]
    Zero(String),
    /// The beginning of the part, counted from itself.
    #[error("with +, numbers count from the beginning of the part, which is what --from says; leave the + out")]
    RelativeBeginning,
    /// A part that ends before it begins.
    #[error("the part ends at {0} and begins at {1}; give a later end")]
    Empty(Point, Point),
    /// A number of instructions before what comes at an unknown time.
    #[error(
        "when {0} comes is not known in advance, so a number of instructions before it is not either; give all or none"
    )]
    UnknownBeginning(String),
}

impl PartPlan {
    /// Returns the plan for a selection with default warming.
    #[must_use]
    pub fn new(selection: Selection) -> PartPlan {
        PartPlan { selection, warming: Warming::Default, stops: false }
    }

    /// Checks that the points make a part.
    ///
    /// # Errors
    /// If they do not.
    pub fn check(&self) -> Result<(), PartError> {
        let Selection::Between { from, until } = &self.selection else { return self.check_warming(None) };
        if from.as_ref().and_then(Point::count).is_some_and(|count| matches!(count, Count::OfPart(_))) {
            return Err(PartError::RelativeBeginning);
        }
        let ends = |from: &Point, until: &Point| match (from, until) {
            (Point::Instructions(Count::OfRun(from)), Point::Instructions(Count::OfRun(until)))
            | (Point::Time(Count::OfRun(from)), Point::Time(Count::OfRun(until))) => until <= from,
            (Point::Function(its, Some(Count::OfRun(from))), Point::Function(other, Some(Count::OfRun(until))))
            | (Point::Region(its, Some(Count::OfRun(from))), Point::Region(other, Some(Count::OfRun(until)))) => {
                its == other && until < from
            }
            _ => false,
        };
        if let (Some(from), Some(until)) = (from, until)
            && ends(from, until)
        {
            return Err(PartError::Empty(until.clone(), from.clone()));
        }
        self.check_warming(from.as_ref())
    }

    /// Returns whether it begins or ends at a time.
    #[must_use]
    pub fn uses_time(&self) -> bool {
        let Selection::Between { from, until } = &self.selection else { return false };
        [from, until].into_iter().any(|point| matches!(point, Some(Point::Time(_))))
    }

    fn check_warming(&self, from: Option<&Point>) -> Result<(), PartError> {
        let unknown = match (&self.selection, from) {
            (Selection::Region(name), _) => Some(format!("region '{name}'")),
            (_, Some(point)) if point.place().is_none() => Some(point.to_string()),
            _ => None,
        };
        match (unknown, self.warming) {
            (Some(what), Warming::Instructions(_)) => Err(PartError::UnknownBeginning(what)),
            _ => Ok(()),
        }
    }

    /// Returns the name of the function whose calls must be known, for the beginning and for the end.
    #[must_use]
    pub fn functions(&self) -> Vec<String> {
        let Selection::Between { from, until } = &self.selection else { return Vec::new() };
        let name = |point: &Option<Point>| match point {
            Some(Point::Function(name, _)) => Some(name.clone()),
            _ => None,
        };
        let mut names: Vec<String> = [from, until].into_iter().filter_map(name).collect();
        names.dedup();
        names
    }
}

/// Where a point is if it is no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Instructions(u64),
    Ns(u64),
}

impl Point {
    fn count(&self) -> Option<Count> {
        match self {
            Point::Instructions(count) | Point::Time(count) => Some(*count),
            Point::Function(_, count) | Point::Region(_, count) => *count,
        }
    }

    /// Returns where the point is if that is known in advance.
    pub(crate) fn place(&self) -> Option<Place> {
        match *self {
            Point::Instructions(Count::OfRun(n)) => Some(Place::Instructions(n)),
            Point::Time(Count::OfRun(ns)) => Some(Place::Ns(ns)),
            _ => None,
        }
    }
}

impl FromStr for Point {
    type Err = PartError;

    fn from_str(text: &str) -> Result<Point, PartError> {
        let (kind, value) = text.split_once('=').filter(|(_, value)| !value.is_empty()).ok_or(PartError::Kind)?;
        match kind {
            "instructions" => counted(value, instructions, PartError::Instructions).map(Point::Instructions),
            "time" => counted(value, nanoseconds, PartError::Time).map(Point::Time),
            "function" => numbered(value).map(|(name, count)| Point::Function(name, count)),
            "region" => numbered(value).map(|(name, count)| Point::Region(name, count)),
            _ => Err(PartError::Kind),
        }
    }
}

/// Parses a number with or without `+`.
fn counted(
    text: &str,
    parse: impl Fn(&str) -> Option<u64>,
    wrong: impl Fn(String) -> PartError,
) -> Result<Count, PartError> {
    let (relative, number) = text.strip_prefix('+').map_or((false, text), |rest| (true, rest));
    let number = parse(number).ok_or_else(|| wrong(text.to_owned()))?;
    Ok(if relative { Count::OfPart(number) } else { Count::OfRun(number) })
}

/// Parses a name with or without a number. What follows the last `#` and is no number belongs to the name.
fn numbered(text: &str) -> Result<(String, Option<Count>), PartError> {
    let split = text.rsplit_once('#').filter(|(name, _)| !name.is_empty());
    let count = split.and_then(|(name, number)| {
        let (relative, digits) = number.strip_prefix('+').map_or((false, number), |rest| (true, rest));
        let number = digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
        Some((name, if relative { Count::OfPart(number) } else { Count::OfRun(number) }))
    });
    match count {
        Some((_, Count::OfRun(0) | Count::OfPart(0))) => Err(PartError::Zero(text.to_owned())),
        Some((name, count)) => Ok((name.to_owned(), Some(count))),
        None => Ok((text.to_owned(), None)),
    }
}

/// Parses a number of instructions, such as 1500000, 1.5M or 2G.
fn instructions(text: &str) -> Option<u64> {
    scaled(text, &[("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)])
}

/// Parses a time, such as 100us or 1.5ms. Returns ns.
fn nanoseconds(text: &str) -> Option<u64> {
    scaled(text, &[("ns", 1), ("us", 1_000), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)])
}

/// Parses a decimal number with one of these units. What is less than one is cut off; numbers of more than 2^63 are none.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let &(_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |digits: &str| digits.len() <= 19 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) || number.ends_with('.') {
        return None;
    }
    let scale = u128::from(scale);
    let parts = fraction.parse::<u128>().unwrap_or(0) * scale / 10_u128.pow(fraction.len() as u32);
    let all = whole.parse::<u128>().ok()?.checked_mul(scale)? + parts;
    u64::try_from(all).ok().filter(|&all| all <= 1 << 63)
}

/// Writes a number with the largest unit of which it is a whole multiple.
fn write_scaled(f: &mut fmt::Formatter<'_>, number: u64, units: &[(&str, u64)]) -> fmt::Result {
    let fits = |(_, scale): &&(&str, u64)| number >= *scale && number.is_multiple_of(*scale);
    let &(unit, scale) = units.iter().rev().find(fits).unwrap_or(&units[0]);
    write!(f, "{}{unit}", number / scale)
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, number) = match self.count() {
            Some(Count::OfRun(number)) => ("", number),
            Some(Count::OfPart(number)) => ("+", number),
            None => ("", 0),
        };
        match self {
            Point::Instructions(_) => {
                write!(f, "instructions={sign}")?;
                write_scaled(f, number, &[("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)])
            }
            Point::Time(_) => {
                write!(f, "time={sign}")?;
                write_scaled(f, number, &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)])
            }
            Point::Function(name, None) => write!(f, "function={name}"),
            Point::Region(name, None) => write!(f, "region={name}"),
            Point::Function(name, _) => write!(f, "function={name}#{sign}{number}"),
            Point::Region(name, _) => write!(f, "region={name}#{sign}{number}"),
        }
    }
}

impl FromStr for Warming {
    type Err = PartError;

    fn from_str(text: &str) -> Result<Warming, PartError> {
        match text {
            "all" => Ok(Warming::All),
            "none" => Ok(Warming::Nothing),
            _ => {
                let number = instructions(text).ok_or_else(|| PartError::Instructions(text.to_owned()))?;
                Ok(if number == 0 { Warming::Nothing } else { Warming::Instructions(number) })
            }
        }
    }
}

impl fmt::Display for Warming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warming::Default => write!(f, "default"),
            Warming::All => write!(f, "all"),
            Warming::Nothing => write!(f, "none"),
            Warming::Instructions(number) => write!(f, "{number}"),
        }
    }
}

impl fmt::Display for PartPlan {
    /// Writes the options that make it, but for the default ones.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.selection {
            Selection::Region(name) => write!(f, "--region {name}")?,
            Selection::Between { from, until } => {
                let from = from.iter().map(|point| format!("--from {point}"));
                let until = until.iter().map(|point| format!("--until {point}"));
                write!(f, "{}", from.chain(until).collect::<Vec<_>>().join(" "))?;
            }
        }
        if self.warming != Warming::Default {
            write!(f, " --warm {}", self.warming)?;
        }
        if self.stops { write!(f, " --stop") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(text: &str) -> Point {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn between(from: &str, until: &str) -> Result<(), PartError> {
        let given = |text: &str| Some(text).filter(|text| !text.is_empty()).map(point);
        PartPlan::new(Selection::Between { from: given(from), until: given(until) }).check()
    }

    #[test]
    fn points_are_written_as_they_are_read() {
        for text in [
            "instructions=5M",
            "instructions=+1234",
            "instructions=0",
            "time=2ms",
            "time=+1500ns",
            "function=main",
            "function=step#3",
            "function=step#+3",
            "region=a, 1#2",
            "region=a#b",
        ] {
            assert_eq!(point(text).to_string(), text);
        }
        assert_eq!(point("instructions=1.5G"), Point::Instructions(Count::OfRun(1_500_000_000)));
        assert_eq!(point("time=0.5us"), Point::Time(Count::OfRun(500)));
    }

    #[test]
    fn what_is_no_point_is_refused_with_what_to_write() {
        for text in [
            "",
            "instructions",
            "instructions=",
            "instructions=x",
            "instructions=-5",
            "instructions=1.",
            "instructions=.5",
            "instructions=99999999999999999999",
            "instructions=9999999999G",
            "time=5",
            "time=1h",
            "function=",
            "function=f#0",
            "line=3",
        ] {
            assert!(text.parse::<Point>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_part_ends_behind_its_beginning() {
        assert_eq!(between("instructions=5", "instructions=6"), Ok(()));
        assert_eq!(between("instructions=5", "instructions=+1"), Ok(()));
        assert_eq!(between("function=f", "time=1ms"), Ok(()));
        assert!(matches!(between("instructions=5", "instructions=5"), Err(PartError::Empty(..))));
        assert!(matches!(between("time=2ms", "time=1ms"), Err(PartError::Empty(..))));
        assert_eq!(between("instructions=+5", ""), Err(PartError::RelativeBeginning));
    }

    #[test]
    fn a_number_of_instructions_before_an_event_is_refused() {
        let plan = |from: &str| PartPlan {
            warming: Warming::Instructions(5),
            ..PartPlan::new(Selection::Between { from: Some(point(from)), until: None })
        };
        assert_eq!(plan("instructions=9").check(), Ok(()));
        assert!(matches!(plan("function=f").check(), Err(PartError::UnknownBeginning(_))));
    }
}
