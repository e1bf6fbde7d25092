//! What a machine's performance monitoring unit (PMU) counts, and what it counts together.

use crate::error::LoadError;
use crate::events::Events;
use crate::groups::Groups;

/// The PMU of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Pmu {
    /// Its events, from `pmu.csv`.
    pub events: Events,
    /// Which of them a measurement counts together, from `groups.csv`.
    pub groups: Groups,
}

impl Pmu {
    /// The PMU of a machine without a `pmu.csv`: an event for each signal of the model, no groups.
    #[must_use]
    pub fn of_the_model() -> Pmu {
        Pmu { events: Events::of_the_model(), groups: Groups::default() }
    }

    /// The PMU of a built-in machine.
    #[must_use]
    pub fn built_in(name: &str) -> Option<Pmu> {
        crate::load::built_in_pmu(name)
    }

    /// Reads what [`Events::to_csv`] and [`Groups::to_csv`] wrote into a record.
    ///
    /// # Errors
    /// The first mistake.
    pub fn recorded(events: &str, groups: &str) -> Result<Pmu, LoadError> {
        let events = Events::recorded(events)?;
        let groups = Groups::parse("the record's groups.csv", groups, &events)?;
        Ok(Pmu { events, groups })
    }

    /// This PMU, where a machine that extends its machine has tables of its own: the text of each with its file's name.
    /// Events of its own come before the inherited ones, which lose their numbers; groups of its own replace all groups.
    pub(crate) fn extended(self, events: Option<(&str, &str)>, groups: Option<(&str, &str)>) -> Result<Pmu, LoadError> {
        let events = match events {
            Some((file, text)) => Events::parse(file, text)?.inheriting(&self.events),
            None => self.events,
        };
        let groups = match groups {
            Some((file, text)) => Groups::parse(file, text, &events)?,
            None => self.groups,
        };
        Ok(Pmu { events, groups })
    }
}
