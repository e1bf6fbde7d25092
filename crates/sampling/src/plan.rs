//! The parameters of a sample.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The parameters of a sample: how long windows are, and how many a run has.
///
/// Its textual form is what `--sample` takes: `auto`, or parameters with values, `window=5000,warm=500,period=50000`, with or without
/// `auto` in front. Parameters that are left out have their defaults. Instructions are those of each core, on average.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// `auto`: windows become fewer once time is known well enough ([`crate::Schedule::wants_more`]).
    pub auto: bool,
    /// `begin`: instructions at the beginning of the run that are all timed; a shorter run is not sampled.
    pub begin: u64,
    /// `window`: instructions of a window.
    pub window: u64,
    /// `warm`: instructions of detailed warm-up before each window, which are timed but not counted; on each of several cores that
    /// share a memory as many times as many, at most what the period leaves.
    pub warm: u64,
    /// `period`: instructions between the beginnings of windows, on average, while the run is short.
    pub period: u64,
    /// `keep`: windows of each period: it doubles whenever the run is 2 · `keep` periods long.
    pub keep: u64,
    /// `rare`: a window begins at once when `period` instructions have run in blocks that windows have seen less often than this; 0
    /// for never.
    pub rare: u64,
    /// `follow`: what is followed before each window. What comes before that may be executed without keeping caches warm.
    pub follow: Follow,
    /// `seed`: of the random places of windows in their periods.
    pub seed: u64,
}

/// How much of a run is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Follow {
    /// All that is not timed.
    All,
    /// As much before each window as trials show to be enough.
    Auto,
    /// This number of instructions before each window.
    Instructions(u64),
}

impl Follow {
    /// Returns what a text means; `None`: it means nothing, or more instructions than a plan may have.
    fn parse(text: &str) -> Option<Follow> {
        match text {
            "all" => Some(Follow::All),
            "auto" => Some(Follow::Auto),
            number => number.parse().ok().filter(|&number| number <= MOST).map(Follow::Instructions),
        }
    }
}

impl fmt::Display for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Follow::All => f.write_str("all"),
            Follow::Auto => f.write_str("auto"),
            Follow::Instructions(number) => write!(f, "{number}"),
        }
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            auto: false,
            begin: 5_000_000,
            window: 5_000,
            warm: 500,
            period: 50_000,
            keep: 1_000,
            rare: 20,
            follow: Follow::Auto,
            seed: 1,
        }
    }
}

/// Why a text is not a plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// A parameter that does not exist.
    #[error(
        "sampling plan: there is no parameter '{0}'; write auto, or begin=, window=, warm=, period=, keep=, rare=, follow= and \
         seed= with numbers"
    )]
    Unknown(String),
    /// A parameter without `=`.
    #[error("sampling plan: '{0}' has no value; write {0}=NUMBER")]
    NoValue(String),
    /// A value of `auto`.
    #[error("sampling plan: 'auto' takes no value, not '{0}'; write auto")]
    ValueOfAuto(String),
    /// A value that is not a number of 64 bits.
    #[error("sampling plan: {0}={1} is not a whole number; write digits only, as in {0}={2}")]
    NotANumber(&'static str, String, u64),
    /// A value of `follow` that is neither a number nor a word.
    #[error(
        "sampling plan: follow={0} is neither 'auto' or 'all' nor a whole number up to {MOST}; write follow=500000, for example"
    )]
    Follow(String),
    /// A parameter that occurs twice.
    #[error("sampling plan: '{0}' occurs twice; leave one out")]
    Twice(String),
    /// A value outside its range.
    #[error("sampling plan: {0}={1} is out of range; write a number from {2} to {3}")]
    OutOfRange(&'static str, u64, u64, u64),
    /// Windows that do not fit into the period.
    #[error(
        "sampling plan: a window with its warm-up takes {0} instructions and leaves nothing of a period of {1} that is not timed; write a \
         period greater than {0}, or leave sampling out to time the whole program"
    )]
    PeriodTooShort(u64, u64),
}

/// A parameter: its name, its range and its place in a plan.
struct Parameter {
    name: &'static str,
    least: u64,
    most: u64,
    value: fn(&mut Plan) -> &mut u64,
}

/// Longest window, warm-up and period, and most windows: no sum of them comes near 2⁶⁴.
const MOST: u64 = 1_000_000_000_000;

const PARAMETERS: [Parameter; 7] = [
    Parameter { name: "begin", least: 0, most: MOST, value: |plan| &mut plan.begin },
    Parameter { name: "window", least: 1, most: MOST, value: |plan| &mut plan.window },
    Parameter { name: "warm", least: 0, most: MOST, value: |plan| &mut plan.warm },
    Parameter { name: "period", least: 1, most: MOST, value: |plan| &mut plan.period },
    Parameter { name: "keep", least: 1, most: 1_000_000, value: |plan| &mut plan.keep },
    Parameter { name: "rare", least: 0, most: MOST, value: |plan| &mut plan.rare },
    Parameter { name: "seed", least: 0, most: u64::MAX, value: |plan| &mut plan.seed },
];

impl Plan {
    /// Returns the plan that `auto` means.
    #[must_use]
    pub fn auto() -> Self {
        Self { auto: true, ..Self::default() }
    }

    /// Checks that windows fit into their periods and that numbers are in range.
    fn check(mut self) -> Result<Self, PlanError> {
        for parameter in &PARAMETERS {
            let value = *(parameter.value)(&mut self);
            if value < parameter.least || value > parameter.most {
                return Err(PlanError::OutOfRange(parameter.name, value, parameter.least, parameter.most));
            }
        }
        let timed = self.window + self.warm;
        if timed >= self.period {
            return Err(PlanError::PeriodTooShort(timed, self.period));
        }
        Ok(self)
    }
}

impl FromStr for Plan {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let mut plan = Self::default();
        let mut given: Vec<&str> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (name, value) = part.split_once('=').map_or((part, None), |(name, value)| (name, Some(value)));
            if given.contains(&name) {
                return Err(PlanError::Twice(name.to_owned()));
            }
            given.push(name);
            match (name, value) {
                ("auto", None) => plan.auto = true,
                ("follow", Some(value)) => {
                    plan.follow = Follow::parse(value).ok_or_else(|| PlanError::Follow(value.to_owned()))?;
                }
                ("follow", None) => return Err(PlanError::NoValue(name.to_owned())),
                ("auto", Some(value)) => return Err(PlanError::ValueOfAuto(value.to_owned())),
                _ => set(&mut plan, name, value)?,
            }
        }
        plan.check()
    }
}

/// Sets a parameter to the value of a text.
fn set(plan: &mut Plan, name: &str, value: Option<&str>) -> Result<(), PlanError> {
    let parameter = PARAMETERS.iter().find(|p| p.name == name).ok_or_else(|| PlanError::Unknown(name.to_owned()))?;
    let value = value.ok_or_else(|| PlanError::NoValue(name.to_owned()))?;
    let place = (parameter.value)(plan);
    *place = value.parse().map_err(|_| PlanError::NotANumber(parameter.name, value.to_owned(), *place))?;
    Ok(())
}

impl fmt::Display for Plan {
    /// Writes all parameters, so that a text means the same plan when defaults change.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut plan = self.clone();
        let parameters = PARAMETERS.iter().map(|p| format!("{}={}", p.name, (p.value)(&mut plan)));
        let auto = self.auto.then(|| "auto".to_owned());
        let follow = format!("follow={}", self.follow);
        f.write_str(&auto.into_iter().chain(parameters).chain([follow]).collect::<Vec<_>>().join(","))
    }
}
