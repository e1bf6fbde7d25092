//! The groups in which a measurement counts a machine's events, one pass of the program for each: `groups.csv`.

use crate::error::{LoadError, nearest, suggest};
use crate::events::Events;
use crate::rows::shortened;
use crate::table::{Mistake, each_row, to_csv};

/// Columns of `groups.csv`, in their order.
const COLUMNS: [&str; 3] = ["group", "level", "events"];
/// Levels of the report.
const LEVELS: std::ops::RangeInclusive<u8> = 1..=4;

/// Events that are counted at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its number, from 1; formulas mean it with `EVENT@number`.
    pub number: u8,
    /// The lowest level of the report that needs it: 1 single, 2 brief, 3 standard, 4 detailed.
    pub level: u8,
    /// The events' names.
    pub events: Vec<String>,
}

/// The groups of one machine, by ascending number.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Groups(Vec<Group>);

impl Groups {
    /// Reads the text of a `groups.csv`; `file` is its name in messages, `events` are the machine's.
    ///
    /// # Errors
    /// The first mistake, with its line and what to do.
    pub fn parse(file: &str, text: &str, events: &Events) -> Result<Groups, LoadError> {
        let mut groups: Vec<Group> = Vec::new();
        each_row(file, text, &COLUMNS, |cells: [&str; COLUMNS.len()]| {
            groups.push(group(cells, groups.len(), events)?);
            Ok(())
        })?;
        Ok(Groups(groups))
    }

    /// The groups as the text of a `groups.csv`.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let row = |group: &Group| [group.number.to_string(), group.level.to_string(), group.events.join("+")];
        to_csv(&COLUMNS, self.0.iter().map(row))
    }

    /// All groups.
    pub fn iter(&self) -> impl Iterator<Item = &Group> {
        self.0.iter()
    }

    /// The group with this number.
    #[must_use]
    pub fn numbered(&self, number: u8) -> Option<&Group> {
        self.0.iter().find(|group| group.number == number)
    }
}

/// One row as a group; `before` groups stand above it.
fn group([number, level, events]: [&str; 3], before: usize, known: &Events) -> Result<Group, Mistake> {
    let next = u8::try_from(before + 1)
        .map_err(|_| (format!("more than {} groups", u8::MAX), "remove groups until their numbers fit".to_owned()))?;
    if number.parse() != Ok(next) {
        let what = format!("group '{}' where {next} follows", shortened(number));
        return Err((what, "number the groups from 1 without gaps".to_owned()));
    }
    let level = level.parse().ok().filter(|level| LEVELS.contains(level)).ok_or_else(|| {
        let what = format!("level is '{}'", shortened(level));
        (what, "give 1 for single, 2 for brief, 3 for standard, 4 for detailed reports".to_owned())
    })?;
    let events: Vec<String> = events.split('+').map(|name| name.trim().to_owned()).collect();
    if let Some(name) = events.iter().find(|name| known.named(name).is_none()) {
        let near = nearest(name, known.iter().map(|event| event.name.as_str()));
        let advice = suggest(near, || "name events of the machine's pmu.csv, joined by +".to_owned());
        return Err((format!("no event is called '{}'", shortened(name)), advice));
    }
    Ok(Group { number: next, level, events })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_of_a64fx_are_those_of_1_5_11_and_17_runs() {
        let groups = crate::load("a64fx", &[]).expect("built in").pmu.groups;
        let up_to = |level: u8| groups.iter().filter(|g| g.level <= level).count();
        assert_eq!([1, 2, 3, 4].map(up_to), [1, 5, 11, 17]);
        // The processor has eight counters and a separate one for cycles.
        assert!(groups.iter().all(|g| (6..=8).contains(&g.events.len())));
    }

    #[test]
    fn what_is_written_into_a_record_reads_as_it_was() {
        let pmu = crate::load("a64fx", &[]).expect("built in").pmu;
        assert_eq!(Groups::parse("t", &pmu.groups.to_csv(), &pmu.events).expect("written"), pmu.groups);
    }

    #[test]
    fn a_mistake_is_named_with_its_line_and_what_to_do() {
        let events = crate::load("a64fx", &[]).expect("built in").pmu.events;
        let cases = [
            ("2,1,LD_SPEC", "t:2: group '2' where 1 follows; number the groups from 1 without gaps"),
            ("1,5,LD_SPEC", "t:2: level is '5'; give 1 for single"),
            ("1,1,LD_SPEC+LD_SPECK", "t:2: no event is called 'LD_SPECK'; did you mean 'LD_SPEC'?"),
        ];
        for (row, message) in cases {
            let error =
                Groups::parse("t", &format!("group,level,events\n{row}\n"), &events).expect_err(row).to_string();
            assert!(error.starts_with(message), "{error}");
        }
        assert!(
            Groups::parse("t", "x\n", &events).expect_err("no header").to_string().starts_with("t:1: the first line")
        );
    }
}
