//! The events of a machine.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use fxscope_base::{Signal, Signals};

use crate::TableError;

/// The machines whose events are known: name, `pmu.csv`. One with a memory side that is counted otherwise than A64FX's has a
/// table of its own, and A64FX's events without their numbers.
const BUILT_IN: &[(&str, &str)] = &[("a64fx", A64FX), ("k-computer", A64FX), ("knl", KNL), ("knl-small", KNL)];
const A64FX: &str = include_str!("../../../machines/a64fx/pmu.csv");
const KNL: &str = include_str!("../../../machines/knl/pmu.csv");

/// What `pmu.csv` has in place of signals for an event that counts energy.
const ENERGY: &str = "energy";

/// Whose activity an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Scope {
    /// That of the core (processing element) that counts.
    Pe,
    /// That of its whole CMG: every core of it reads the same.
    Cmg,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number, as `perf stat -e rNNNN` takes it, if the machine gives it one.
    pub number: Option<u16>,
    /// Its name.
    pub name: String,
    /// Whose activity it counts.
    pub scope: Scope,
    /// The sum of signals of the model that it counts; none: the model does not count it.
    pub terms: Vec<Term>,
    /// It counts energy, which [`crate::energy`] computes from other events.
    pub energy: bool,
    /// Why the model does not count it; empty when it does.
    pub reason: String,
}

/// A multiple of a signal of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// How many times it counts; negative ones are taken away.
    pub times: i64,
    /// The signal.
    pub signal: Signal,
}

impl Term {
    /// Reads a term such as `16*FLA_VAL`, `FLA_VAL` or `-FLA_INACTIVE`.
    fn parse(text: &str) -> Result<Term, String> {
        let (sign, text) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        let (times, name) = match text.split_once('*') {
            Some((times, name)) => (times.parse().map_err(|_| format!("'{times}' is no whole number"))?, name),
            None => (1, text),
        };
        let signal = Signal::ALL.iter().find(|signal| signal.name() == name);
        let signal = signal.copied().ok_or_else(|| format!("no signal is called '{name}'"))?;
        Ok(Term { times: sign * times, signal })
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.times {
            1 => f.write_str(self.signal.name()),
            times => write!(f, "{times} * {}", self.signal.name()),
        }
    }
}

impl Event {
    /// Its count, given those of the model.
    fn count(&self, signals: &Signals) -> u64 {
        let value = |term: &Term| i128::from(term.times) * i128::from(signals.get(term.signal));
        self.terms.iter().map(value).sum::<i128>().clamp(0, u64::MAX.into()) as u64
    }
}

/// The events of one machine, by ascending number.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Events(Vec<Event>);

impl Events {
    /// The events of a machine that comes with the program, or `None` when it does not come with it.
    ///
    /// # Panics
    /// When its table is wrong, which a test rules out.
    #[must_use]
    pub fn of(machine: &str) -> Option<Events> {
        let place = BUILT_IN.iter().position(|m| m.0 == machine)?;
        Some(Events::built_in()[place].clone())
    }

    /// The events of all machines that come with the program.
    pub(crate) fn built_in() -> &'static [Events] {
        static READ: LazyLock<Vec<Events>> = LazyLock::new(|| {
            let read =
                |name: &str, text: &str| Events::parse(&format!("{name}/pmu.csv"), text).expect("tables are tested");
            let all = |&(name, text): &(&str, &str)| match text {
                A64FX => read(name, text),
                own => read(name, own).with_unnumbered(read(name, A64FX)),
            };
            BUILT_IN.iter().map(all).collect()
        });
        &READ
    }

    /// These, and `others` by their names alone.
    fn with_unnumbered(mut self, others: Events) -> Events {
        self.0.extend(others.0.into_iter().map(|event| Event { number: None, ..event }));
        self
    }

    /// One event of the core for each signal of the model, by its name: for machines whose events nobody has written down.
    #[must_use]
    pub fn of_the_model() -> Events {
        let event = |&s: &Signal| Event {
            number: None,
            name: s.name().to_owned(),
            scope: Scope::Pe,
            terms: vec![Term { times: 1, signal: s }],
            energy: false,
            reason: String::new(),
        };
        Events(Signal::ALL.iter().map(event).collect())
    }

    /// The machines that [`Events::of`] knows.
    pub fn machines() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|m| m.0)
    }

    /// Reads the text of a `pmu.csv`; `file` is its name in messages.
    ///
    /// # Errors
    /// What is wrong with it, and in which line.
    pub fn parse(file: &str, text: &str) -> Result<Events, TableError> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Row {
            number: String,
            name: String,
            scope: Scope,
            signals: String,
            reason: String,
        }
        let error =
            |line: usize, what: String| TableError { file: file.to_owned(), what: format!("line {line}: {what}") };
        let mut list: Vec<Event> = Vec::new();
        for (i, row) in csv::Reader::from_reader(text.as_bytes()).deserialize::<Row>().enumerate() {
            let line = i + 2;
            let row = row.map_err(|e| error(line, e.to_string()))?;
            let number = (!row.number.is_empty()).then(|| number(&row.number)).transpose();
            let number = number.map_err(|what| error(line, what))?;
            if list.last().is_some_and(|last| !follows(number, last.number)) {
                return Err(error(line, format!("'{}' does not follow the number before it", row.number)));
            }
            if list.iter().any(|e| e.name == row.name) {
                return Err(error(line, format!("a second event is called '{}'", row.name)));
            }
            let energy = row.signals == ENERGY;
            let sum = if energy { String::new() } else { row.signals.replace('-', "+-") };
            let terms = sum.split('+').filter(|term| !term.is_empty()).map(Term::parse).collect::<Result<Vec<_>, _>>();
            let terms = terms.map_err(|what| error(line, what))?;
            if (terms.is_empty() && !energy) == row.reason.is_empty() {
                return Err(error(line, format!("'{}' needs either signals or the reason why it has none", row.name)));
            }
            list.push(Event { number, name: row.name, scope: row.scope, terms, energy, reason: row.reason });
        }
        Ok(Events(list))
    }

    /// All events.
    pub fn iter(&self) -> impl Iterator<Item = &Event> {
        self.0.iter()
    }

    /// The event called `name`.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Event> {
        self.0.iter().find(|e| e.name == name)
    }

    /// Counts by event name of those events whose signals `counted` accepts: a run that does not model
    /// something must not report a zero for it. Events of energy have room only: [`crate::energy::count`] fills it.
    #[must_use]
    pub fn counts(&self, signals: &Signals, counted: impl Fn(Signal) -> bool) -> BTreeMap<String, u64> {
        let counted = |e: &&Event| match e.energy {
            true => counted(Signal::FlaVal),
            false => !e.terms.is_empty() && e.terms.iter().all(|t| counted(t.signal)),
        };
        self.0.iter().filter(counted).map(|e| (e.name.clone(), e.count(signals))).collect()
    }
}

/// An event's number, written as 0x0011.
fn number(text: &str) -> Result<u16, String> {
    let number = text.strip_prefix("0x").and_then(|hex| u16::from_str_radix(hex, 16).ok());
    number.ok_or_else(|| format!("'{text}' is no event number such as 0x0011"))
}

/// Whether an event may stand behind another one: numbers ascend, what has none comes last.
fn follows(number: Option<u16>, before: Option<u16>) -> bool {
    match (number, before) {
        (Some(number), Some(before)) => number > before,
        (number, _) => number.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_table_loads() {
        for (name, text) in BUILT_IN {
            Events::parse(name, text).unwrap_or_else(|e| panic!("{e}"));
        }
    }

    #[test]
    fn every_signal_of_the_model_is_counted_by_an_event_of_each_machine_that_can_have_it() {
        // A64FX has nothing in front of its memory.
        let missing = [Signal::MemoryCacheHit, Signal::MemoryCacheMiss, Signal::MemoryCacheWb];
        for (machine, missing) in [("a64fx", &missing[..]), ("knl", &[])] {
            let events = Events::of(machine).expect("built in");
            for signal in Signal::ALL {
                let counted = events.iter().any(|e| e.terms.iter().any(|t| t.signal == *signal));
                assert_eq!(counted, !missing.contains(signal), "{machine}: {}", signal.name());
            }
        }
    }

    #[test]
    fn no_two_events_of_a_machine_have_one_name() {
        for machine in Events::machines() {
            let events = Events::of(machine).expect("built in");
            let names: std::collections::BTreeSet<&str> = events.iter().map(|e| e.name.as_str()).collect();
            assert_eq!(names.len(), events.iter().count(), "{machine}");
        }
    }

    #[test]
    fn architectural_events_have_the_numbers_that_arm_gives_them() {
        let events = Events::of("a64fx").expect("built in");
        // Arm Architecture Reference Manual, D13.12: common event numbers.
        let expected =
            [("INST_RETIRED", 0x08), ("CPU_CYCLES", 0x11), ("L1D_CACHE_REFILL", 0x03), ("FP_SCALE_OPS_SPEC", 0x80c0)];
        for (name, number) in expected {
            assert_eq!(events.named(name).expect(name).number, Some(number));
        }
    }

    #[test]
    fn an_event_counts_the_sum_of_its_signals_and_is_absent_when_one_is_not_counted() {
        let events = Events::parse(
            "t",
            "number,name,scope,signals,reason\n0x0001,LOADS,PE,LD_SPEC,\n0x0002,BOTH,PE,LD_SPEC+ST_SPEC,\n0x3,X,CMG,,w\n",
        );
        let events = events.expect("a table");
        let mut signals = Signals::default();
        signals.set(Signal::LdSpec, 5);
        signals.set(Signal::StSpec, 2);
        let all: Vec<_> = events.counts(&signals, |_| true).into_iter().collect();
        assert_eq!(all, [("BOTH".to_owned(), 7), ("LOADS".to_owned(), 5)]);
        let some: Vec<_> = events.counts(&signals, |s| s == Signal::LdSpec).into_iter().collect();
        assert_eq!(some, [("LOADS".to_owned(), 5)]);
    }

    #[test]
    fn an_event_may_count_multiples_of_signals_less_others() {
        let events = Events::parse("t", "number,name,scope,signals,reason\n0x1,P,PE,16*FLA_VAL-FLA_INACTIVE,\n");
        let events = events.expect("a table");
        let mut signals = Signals::default();
        signals.set(Signal::FlaVal, 5);
        signals.set(Signal::FlaInactive, 24);
        assert_eq!(events.counts(&signals, |_| true)["P"], 16 * 5 - 24);
        let terms: Vec<_> = events.named("P").expect("there").terms.iter().map(Term::to_string).collect();
        assert_eq!(terms, ["16 * FLA_VAL", "-1 * FLA_INACTIVE"]);
    }

    #[test]
    fn all_events_that_the_documents_list_are_there() {
        // A64FX PMU events 1.3 lists 183; the CPU performance analysis report uses two more.
        let events = Events::of("a64fx").expect("built in");
        assert_eq!(events.iter().filter(|e| e.number.is_some()).count(), 185);
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        let cases = [
            (
                "number,name,scope,signals,reason\n0x1,A,PE,,\n",
                "t: line 2: 'A' needs either signals or the reason why it has none",
            ),
            ("number,name,scope,signals,reason\n17,A,PE,,w\n", "t: line 2: '17' is no event number such as 0x0011"),
            (
                "number,name,scope,signals,reason\n0x1,A,PE,,w\n0x1,B,PE,,w\n",
                "t: line 3: '0x1' does not follow the number before it",
            ),
            (
                "number,name,scope,signals,reason\n,A,PE,,w\n0x1,B,PE,,w\n",
                "t: line 3: '0x1' does not follow the number before it",
            ),
            ("number,name,scope,signals,reason\n0x1,A,PE,,w\n0x2,A,PE,,w\n", "t: line 3: a second event is called 'A'"),
            ("number,name,scope,signals,reason\n0x1,A,PE,LD_SPECK,\n", "t: line 2: no signal is called 'LD_SPECK'"),
            ("number,name,scope,signals,reason\n0x1,A,PE,x*LD_SPEC,\n", "t: line 2: 'x' is no whole number"),
        ];
        for (text, message) in cases {
            assert_eq!(Events::parse("t", text).expect_err(text).to_string(), message);
        }
    }
}
