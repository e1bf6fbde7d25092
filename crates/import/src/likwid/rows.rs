//! Rows of LIKWID's tables.

use super::RUNTIME;
use crate::losses::{Losses, is_absent};
use crate::number::Marks;
use crate::rows::{Rows, Who};
use crate::{Machine, event_name};

/// Whose values the columns of a table are.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    whose: Vec<Who>,
    /// Whether a counter is between a row's name and its values, as in tables of events.
    counter: bool,
}

impl Columns {
    /// Columns of a table of events.
    pub(super) fn of_events(whose: Vec<Who>) -> Columns {
        Columns { whose, counter: true }
    }

    /// Parses the headings of columns: `HWThread 12`, `Core 12` in version 4, `host:rank:cpu` of likwid-mpirun. `hosts`
    /// collects the names of hosts, whose places are the numbers of nodes.
    pub(super) fn parse(fields: &[&str], hosts: &mut Vec<String>) -> Result<Columns, String> {
        let words = fields.iter().skip(1).filter(|field| **field != "Counter");
        let mut whose = Vec::new();
        for field in words {
            let of_thread = || {
                let number = field.strip_prefix("HWThread ").or_else(|| field.strip_prefix("Core "))?;
                number.parse().ok().map(Who::Cpu)
            };
            let who = of_thread().or_else(|| of_rank(field, hosts));
            whose.push(who.ok_or_else(|| {
                format!("'{field}' is not a hardware thread such as 'HWThread 12', or 'host:0:12' of likwid-mpirun")
            })?);
        }
        Ok(Columns { whose, counter: fields.contains(&"Counter") })
    }

    /// Returns whether a row has as many fields as these columns need.
    pub(super) fn fit(&self, fields: &[&str]) -> bool {
        !self.whose.is_empty() && fields.len() == 1 + usize::from(self.counter) + self.whose.len()
    }

    /// Reads a row of a table: a name, the counter of an event, values.
    pub(super) fn row(
        &self,
        fields: &[&str],
        rows: &mut Rows,
        machine: &Machine,
        losses: &mut Losses,
    ) -> Result<(), String> {
        let name = fields.first().copied().unwrap_or_default();
        if !self.fit(fields) {
            return Err(format!("{name}: a value for each of {} hardware threads belongs here", self.whose.len()));
        }
        for (who, text) in self.whose.iter().zip(&fields[fields.len() - self.whose.len()..]) {
            let is_time = matches!(name, "RDTSC Runtime [s]" | RUNTIME);
            let is_calls = matches!(name, "call count" | "Region calls");
            // A metric, which fxscope calculates itself from the counts.
            if !self.counter && !is_time && !is_calls {
                return Ok(());
            }
            if is_absent(text) {
                losses.lose(name, &format!("has no count where LIKWID wrote '{text}'"))?;
            } else if is_time {
                let seconds = time(text, name)?;
                rows.counts.entry(who.clone()).or_default();
                rows.set_seconds(Some(who), seconds, machine);
            } else if is_calls {
                rows.calls = rows.calls.max(count(text, name)?);
            } else {
                rows.add(who, event_name(&machine.pmu.events, name), count(text, name)?)?;
            }
        }
        Ok(())
    }
}

/// Parses `host:rank:cpu`.
fn of_rank(text: &str, hosts: &mut Vec<String>) -> Option<Who> {
    let (rest, cpu) = text.rsplit_once(':')?;
    let (host, rank) = rest.rsplit_once(':')?;
    let (rank, cpu) = (rank.parse().ok()?, cpu.parse().ok()?);
    let place = hosts.iter().position(|known| known == host).unwrap_or_else(|| {
        hosts.push(host.to_owned());
        hosts.len() - 1
    });
    Some(Who::Rank { rank, node: u32::try_from(place).ok()?, cpu })
}

fn time(text: &str, name: &str) -> Result<f64, String> {
    let seconds = number(text).filter(|seconds| *seconds >= 0.0);
    seconds.ok_or_else(|| format!("'{text}' is not a time of {name}"))
}

/// A count, which LIKWID writes with a fraction or an exponent if it is large.
pub(super) fn count(text: &str, name: &str) -> Result<u64, String> {
    let value = number(text).ok_or_else(|| format!("'{text}' is not a count of {name}"))?;
    if value < 0.0 || value > (1u64 << 56) as f64 {
        return Err(format!("{text} is not a count of {name}"));
    }
    Ok(value.round() as u64)
}

/// A number. LIKWID writes decimal points, spreadsheets perhaps commas.
pub(super) fn number(text: &str) -> Option<f64> {
    let number = text.parse::<f64>().ok().or_else(|| Marks::default().real(text).ok());
    number.filter(|number| number.is_finite())
}
