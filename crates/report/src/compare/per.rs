//! Comparisons of runs that did different amounts of work: times and counts per unit of work.

use std::fmt;
use std::str::FromStr;

use super::analysis::{COUNTS, Comparison, Kind, Quantity, Spread};

/// What times and counts are divided by.
#[derive(Clone, Debug, PartialEq)]
pub enum Per {
    /// A thousand instructions.
    Instruction,
    /// A thousand floating-point operations.
    Flop,
    /// A call of the region.
    Call,
    /// A number of the user for each subject, such as elements or iterations.
    Number(Vec<f64>),
}

/// A thousand instructions or operations have misses of a size that people know.
const THOUSAND: f64 = 1_000.0;
/// Runs whose floating-point operations differ by more than this factor did different amounts of work.
const DIFFERENT_WORK: f64 = 1.1;

impl FromStr for Per {
    type Err = String;

    fn from_str(text: &str) -> Result<Per, String> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
        match text {
            "instruction" => Ok(Per::Instruction),
            "flop" => Ok(Per::Flop),
            "call" => Ok(Per::Call),
            _ => text.split(',').map(number).collect::<Option<_>>().map(Per::Number).ok_or_else(|| {
                "give instruction, flop, call, or a positive number for each file, such as 1e6,4e6".to_owned()
            }),
        }
    }
}

impl fmt::Display for Per {
    /// Writes the unit of work.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Per::Instruction => "1000 instructions",
            Per::Flop => "1000 FLOP",
            Per::Call => "call",
            Per::Number(_) => "unit of work",
        })
    }
}

impl Comparison {
    /// Returns the comparison with times and counts per unit of work. Rates and ratios stay as they are.
    ///
    /// # Errors
    /// If the amount of work of a subject is unknown or zero, or there is not a number for each.
    pub fn per(mut self, per: &Per) -> Result<Comparison, String> {
        let amounts = self.amounts(per)?;
        let all = [&mut self.regions, &mut self.accounting, &mut self.metrics, &mut self.events];
        for quantity in all.into_iter().flatten().filter(|quantity| is_amount(quantity)) {
            quantity.unit = format!("{} per {per}", quantity.unit);
            for (value, amount) in quantity.values.iter_mut().zip(&amounts) {
                *value = value.map(|spread| divided(&spread, *amount));
            }
        }
        self.per = Some(per.to_string());
        self.sort();
        Ok(self)
    }

    /// Returns the work of each subject in the unit of `per`.
    fn amounts(&self, per: &Per) -> Result<Vec<f64>, String> {
        let metric = |name: &str| {
            let found = self.metrics.iter().find(|q| q.name == name);
            let mean = |i: usize| Some(found?.values[i]?.mean / THOUSAND);
            (0..self.labels.len()).map(mean).collect::<Vec<_>>()
        };
        let amounts = match per {
            Per::Instruction => metric("instructions"),
            Per::Flop => metric("flop"),
            Per::Call => self.calls.iter().copied().map(Some).collect(),
            Per::Number(numbers) if numbers.len() == self.labels.len() => numbers.iter().copied().map(Some).collect(),
            Per::Number(numbers) => {
                let (given, subjects) = (numbers.len(), self.labels.join(", "));
                return Err(format!(
                    "--per has {given} of {} numbers: give one for each of {subjects}",
                    self.labels.len()
                ));
            }
        };
        let known = |(amount, label): (&Option<f64>, &String)| {
            amount.filter(|&amount| amount > 0.0).ok_or_else(|| {
                let work = match per {
                    Per::Instruction => "instructions",
                    Per::Flop => "floating-point operations",
                    Per::Call | Per::Number(_) => "calls",
                };
                format!(
                    "{label}: the number of {work} is unknown or zero, so nothing can be given per {per}; --per with a number for each \
                     file, such as its elements, needs no counts"
                )
            })
        };
        amounts.iter().zip(&self.labels).map(known).collect()
    }

    /// Returns how many times the work of the first subject another one does, and what counts it, if it is another amount of work:
    /// floating-point operations, or instructions where a subject lacks their counts.
    pub(super) fn other_work(&self, subject: usize) -> Option<(f64, Per)> {
        let ratio = |name: &str| self.metrics.iter().find(|q| q.name == name)?.ratio(subject);
        let flop = ratio("flop").map(|ratio| (ratio, Per::Flop));
        let (ratio, per) = flop.or_else(|| Some((ratio("instructions")?, Per::Instruction)))?;
        (self.per.is_none() && ratio > 0.0 && ratio.max(1.0 / ratio) > DIFFERENT_WORK).then_some((ratio, per))
    }
}

/// Returns whether a quantity grows with the work: a time, or a count of something that happens. Metrics that count something else, such
/// as CMGs, do not.
fn is_amount(quantity: &Quantity) -> bool {
    let happens = quantity.kind == Kind::Event || quantity.unit != "count";
    quantity.unit == "s" || happens && COUNTS.contains(&quantity.unit.as_str())
}

fn divided(spread: &Spread, amount: f64) -> Spread {
    Spread {
        runs: spread.runs,
        mean: spread.mean / amount,
        deviation: spread.deviation.map(|deviation| deviation / amount),
        least: spread.least / amount,
        most: spread.most / amount,
        half_width: spread.half_width.map(|half_width| half_width / amount),
    }
}
