//! The groups in which a measurement counts a machine's events, one pass of the program for each.

use std::sync::LazyLock;

use fxscope_record::Region;

use crate::TableError;
use crate::events::Events;

/// The machines whose groups are known: name, `groups.csv`.
const BUILT_IN: &[(&str, &str)] = &[("a64fx", A64FX), ("k-computer", A64FX), ("knl", A64FX), ("knl-small", A64FX)];
const A64FX: &str = include_str!("../../../machines/a64fx/groups.csv");

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
    /// The groups of a machine that comes with the program; none for others.
    ///
    /// # Panics
    /// When its table is wrong, which a test rules out.
    #[must_use]
    pub fn of(machine: &str) -> &'static Groups {
        static READ: LazyLock<Vec<Groups>> = LazyLock::new(|| BUILT_IN.iter().map(Groups::built_in).collect());
        static NONE: Groups = Groups(Vec::new());
        BUILT_IN.iter().position(|m| m.0 == machine).map_or(&NONE, |place| &READ[place])
    }

    fn built_in((machine, text): &(&str, &str)) -> Groups {
        let events = Events::of(machine).unwrap_or_default();
        Groups::parse(&format!("{machine}/groups.csv"), text, &events).expect("built-in tables are tested")
    }

    /// Reads the text of a `groups.csv`; `file` is its name in messages, `events` are the machine's.
    ///
    /// # Errors
    /// What is wrong with it, and in which line.
    pub fn parse(file: &str, text: &str, events: &Events) -> Result<Groups, TableError> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Row {
            group: u8,
            level: u8,
            events: String,
        }
        let error =
            |line: usize, what: String| TableError { file: file.to_owned(), what: format!("line {line}: {what}") };
        let mut groups: Vec<Group> = Vec::new();
        for (i, row) in csv::Reader::from_reader(text.as_bytes()).deserialize::<Row>().enumerate() {
            let line = i + 2;
            let row = row.map_err(|e| error(line, e.to_string()))?;
            if usize::from(row.group) != i + 1 {
                return Err(error(line, format!("group {} where {} follows", row.group, i + 1)));
            }
            let names: Vec<String> = row.events.split('+').map(str::to_owned).collect();
            if let Some(name) = names.iter().find(|name| events.named(name).is_none()) {
                return Err(error(line, format!("no event is called '{name}'")));
            }
            groups.push(Group { number: row.group, level: row.level, events: names });
        }
        Ok(Groups(groups))
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

    /// For each group the pass of a region that has counted all its events; where there is one pass, that one.
    pub(crate) fn passes(&self, region: &Region) -> Vec<Option<usize>> {
        let whole = |group: &Group| {
            let counted = |pass: &fxscope_record::Counts| group.events.iter().all(|e| pass.names().index(e).is_some());
            if region.passes.len() == 1 { Some(0) } else { region.passes.iter().position(counted) }
        };
        self.0.iter().map(whole).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_of_a64fx_are_those_of_1_5_11_and_17_runs() {
        let groups = Groups::of("a64fx");
        let up_to = |level: u8| groups.iter().filter(|g| g.level <= level).count();
        assert_eq!([1, 2, 3, 4].map(up_to), [1, 5, 11, 17]);
        // The processor has eight counters besides that of cycles.
        assert!(groups.iter().all(|g| (6..=8).contains(&g.events.len())));
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        let events = Events::of("a64fx").expect("built in");
        let cases = [
            ("group,level,events\n2,1,LD_SPEC\n", "t: line 2: group 2 where 1 follows"),
            ("group,level,events\n1,1,LD_SPEC+LD_SPECK\n", "t: line 2: no event is called 'LD_SPECK'"),
        ];
        for (text, message) in cases {
            assert_eq!(Groups::parse("t", text, &events).expect_err(text).to_string(), message);
        }
    }
}
