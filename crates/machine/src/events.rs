//! The events of a machine: `pmu.csv`.

use std::collections::BTreeMap;
use std::fmt;

use fxscope_counts::{Signal, Signals};

use crate::error::{LoadError, nearest, suggest};
use crate::rows::shortened;
use crate::table::{Mistake, each_row, to_csv};

/// Columns of `pmu.csv`, in their order.
const COLUMNS: [&str; 5] = ["number", "name", "scope", "signals", "reason"];
/// What `pmu.csv` has instead of signals for an event that counts energy.
const ENERGY: &str = "energy";

/// The part of the chip whose activity an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// That of the core (processing element) that counts.
    Pe,
    /// That of its whole CMG: every core of it reads the same.
    Cmg,
}

impl Scope {
    const ALL: [Scope; 2] = [Scope::Pe, Scope::Cmg];

    /// The word for it in `pmu.csv`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Scope::Pe => "PE",
            Scope::Cmg => "CMG",
        }
    }
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
    /// It counts energy, which follows from other events by the machine's table of energy.
    pub energy: bool,
    /// Why the model does not count it; empty when it does.
    pub reason: String,
}

/// A multiple of a signal of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Its factor; negative terms are subtracted.
    pub times: i64,
    /// The signal.
    pub signal: Signal,
}

impl Term {
    /// Reads a term such as `16*FLA_VAL`, `FLA_VAL` or `-FLA_INACTIVE`.
    fn parse(text: &str) -> Result<Term, Mistake> {
        let (sign, text) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        let (times, name) = match text.split_once('*') {
            Some((times, name)) => (times.parse().map_err(|_| not_a_factor(times))?, name),
            None => (1, text),
        };
        let signal = Signal::ALL.iter().find(|signal| signal.name() == name);
        let signal = signal.copied().ok_or_else(|| {
            let known = Signal::ALL.iter().map(|signal| signal.name());
            let advice = suggest(nearest(name, known), || "`fxscope events` shows what events count".to_owned());
            (format!("no signal is called '{}'", shortened(name)), advice)
        })?;
        Ok(Term { times: sign * times, signal })
    }

    /// The term as [`Term::parse`] reads it.
    fn csv(&self) -> String {
        match self.times {
            1 => self.signal.name().to_owned(),
            -1 => format!("-{}", self.signal.name()),
            times => format!("{times}*{}", self.signal.name()),
        }
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
    #[must_use]
    pub fn count(&self, signals: &Signals) -> u64 {
        let value = |term: &Term| i128::from(term.times) * i128::from(signals.get(term.signal));
        self.terms.iter().map(value).sum::<i128>().clamp(0, u64::MAX.into()) as u64
    }
}

fn not_a_factor(text: &str) -> Mistake {
    (format!("'{}' is not a whole number", shortened(text)), "write a multiple of a signal as 16*FLA_VAL".to_owned())
}

/// The events of one machine, by ascending number.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Events(Vec<Event>);

impl Events {
    /// These, and those of the machine that this one extends: by name alone, as numbers are those of one PMU. An event
    /// here replaces an inherited one of the same name.
    pub(crate) fn inheriting(mut self, base: &Events) -> Events {
        let inherited = base.0.iter().filter(|event| self.named(&event.name).is_none());
        let inherited: Vec<_> = inherited.map(|event| Event { number: None, ..event.clone() }).collect();
        self.0.extend(inherited);
        self
    }

    /// One event of the core for each signal of the model, by its name: for machines without a `pmu.csv`.
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

    /// Reads the text of a `pmu.csv`; `file` is its name in messages.
    ///
    /// # Errors
    /// The first mistake, with its line and what to do.
    pub fn parse(file: &str, text: &str) -> Result<Events, LoadError> {
        Events::read(file, text, |term| Term::parse(term).map(Some))
    }

    /// Reads what [`Events::to_csv`] wrote into a record, perhaps in another version of this program: signals that do not
    /// exist here are left out.
    ///
    /// # Errors
    /// The first mistake.
    pub fn recorded(text: &str) -> Result<Events, LoadError> {
        Events::read("the record's pmu.csv", text, |term| Ok(Term::parse(term).ok()))
    }

    fn read(file: &str, text: &str, term: impl Fn(&str) -> Result<Option<Term>, Mistake>) -> Result<Events, LoadError> {
        let mut list: Vec<Event> = Vec::new();
        each_row(file, text, &COLUMNS, |cells: [&str; COLUMNS.len()]| {
            let event = event(cells, &term)?;
            let before = list.last().and_then(|last| last.number);
            if !list.is_empty() && !follows(event.number, before) {
                let what = format!("{} does not follow the number before it", quoted_or_none(cells[0]));
                return Err((what, "sort the rows by number, those without one last".to_owned()));
            }
            if list.iter().any(|e| e.name == event.name) {
                let what = format!("a second event is called '{}'", shortened(&event.name));
                return Err((what, "remove one of the two".to_owned()));
            }
            list.push(event);
            Ok(())
        })?;
        Ok(Events(list))
    }

    /// The events as the text of a `pmu.csv`.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let row = |event: &Event| {
            let number = event.number.map_or_else(String::new, |n| format!("{n:#06x}"));
            let signals = match event.energy {
                true => ENERGY.to_owned(),
                false => event.terms.iter().map(Term::csv).collect::<Vec<_>>().join("+").replace("+-", "-"),
            };
            [number, event.name.clone(), event.scope.name().to_owned(), signals, event.reason.clone()]
        };
        to_csv(&COLUMNS, self.0.iter().map(row))
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
    /// something must not report a zero for it. Events of energy get an entry, which [`crate::energy::count`] fills.
    #[must_use]
    pub fn counts(&self, signals: &Signals, counted: impl Fn(Signal) -> bool) -> BTreeMap<String, u64> {
        let counted = |e: &&Event| match e.energy {
            true => counted(Signal::FlaVal),
            false => !e.terms.is_empty() && e.terms.iter().all(|t| counted(t.signal)),
        };
        self.0.iter().filter(counted).map(|e| (e.name.clone(), e.count(signals))).collect()
    }
}

/// One row as an event.
fn event(
    [number_cell, name, scope, signals, reason]: [&str; COLUMNS.len()],
    term: impl Fn(&str) -> Result<Option<Term>, Mistake>,
) -> Result<Event, Mistake> {
    let number = (!number_cell.is_empty()).then(|| number(number_cell)).transpose()?;
    if name.is_empty() {
        return Err(("the event has no name".to_owned(), "name it in the second column".to_owned()));
    }
    let scope = Scope::ALL.into_iter().find(|s| s.name() == scope).ok_or_else(|| {
        let what = format!("'{}' has the scope '{}'", shortened(name), shortened(scope));
        (what, "write PE for an event of the core, CMG for one of its whole CMG".to_owned())
    })?;
    let energy = signals == ENERGY;
    let sum = if energy { String::new() } else { signals.replace('-', "+-") };
    if (sum.is_empty() && !energy) == reason.is_empty() {
        let what = format!("'{}' needs either signals or the reason why it has none", shortened(name));
        return Err((what, "fill exactly one of the two columns".to_owned()));
    }
    let terms = sum.split('+').filter(|text| !text.is_empty()).map(term);
    let terms = terms.filter_map(Result::transpose).collect::<Result<Vec<_>, _>>()?;
    Ok(Event { number, name: name.to_owned(), scope, terms, energy, reason: reason.to_owned() })
}

/// An event's number, written as 0x0011.
fn number(text: &str) -> Result<u16, Mistake> {
    let number = text.strip_prefix("0x").and_then(|hex| u16::from_str_radix(hex, 16).ok());
    number.ok_or_else(|| {
        let what = format!("'{}' is not an event number", shortened(text));
        (what, "write it as 0x0011, or leave the cell empty".to_owned())
    })
}

fn quoted_or_none(cell: &str) -> String {
    if cell.is_empty() { "no number".to_owned() } else { format!("'{}'", shortened(cell)) }
}

/// Whether an event may follow another one: numbers ascend, and events without a number come last.
fn follows(number: Option<u16>, before: Option<u16>) -> bool {
    match (number, before) {
        (Some(number), Some(before)) => number > before,
        (number, _) => number.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(machine: &str) -> Events {
        crate::load(machine, &[]).expect("built in").pmu.events
    }

    fn machines() -> impl Iterator<Item = &'static str> {
        crate::list().into_iter().map(|(name, _)| name)
    }

    #[test]
    fn what_is_written_into_a_record_reads_as_it_was() {
        for machine in machines() {
            let events = of(machine);
            assert_eq!(Events::recorded(&events.to_csv()).expect(machine), events);
            assert_eq!(Events::parse("t", &events.to_csv()).expect(machine), events);
        }
    }

    #[test]
    fn a_record_may_name_signals_that_do_not_exist_here() {
        let text = "number,name,scope,signals,reason\n0x1,A,CMG,LD_SPEC+FLUX,\n";
        let events = Events::recorded(text).expect("readable");
        assert_eq!(events.named("A").expect("there").scope, Scope::Cmg);
        assert!(Events::parse("t", text).is_err(), "a machine's file may not");
    }

    #[test]
    fn a_machine_with_events_of_its_own_inherits_the_others_by_name_without_their_numbers() {
        let table = |rows: &str| Events::parse("t", &format!("number,name,scope,signals,reason\n{rows}")).expect(rows);
        let base = table("0x0001,LOADS,PE,LD_SPEC,\n0x0002,STORES,PE,ST_SPEC,\n");
        let own = table("0x0001,READS,PE,LD_SPEC,\n,STORES,CMG,ST_SPEC,\n");
        let events = own.inheriting(&base);
        let all: Vec<_> = events.iter().map(|e| (e.number, e.name.as_str(), e.scope)).collect();
        let expected = [(Some(1), "READS", Scope::Pe), (None, "STORES", Scope::Cmg), (None, "LOADS", Scope::Pe)];
        assert_eq!(all, expected);
    }

    #[test]
    fn every_signal_of_the_model_is_counted_by_an_event_of_each_machine_that_can_have_it() {
        // A64FX has nothing in front of its memory.
        let missing = [Signal::MemoryCacheHit, Signal::MemoryCacheMiss, Signal::MemoryCacheWb];
        for (machine, missing) in [("a64fx", &missing[..]), ("knl", &[])] {
            let events = of(machine);
            for signal in Signal::ALL {
                let counted = events.iter().any(|e| e.terms.iter().any(|t| t.signal == *signal));
                assert_eq!(counted, !missing.contains(signal), "{machine}: {}", signal.name());
            }
        }
    }

    #[test]
    fn no_two_events_of_a_machine_have_one_name() {
        for machine in machines() {
            let events = of(machine);
            let names: std::collections::BTreeSet<&str> = events.iter().map(|e| e.name.as_str()).collect();
            assert_eq!(names.len(), events.iter().count(), "{machine}");
        }
    }

    #[test]
    fn architectural_events_have_the_numbers_that_arm_gives_them() {
        let events = of("a64fx");
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
        let events = of("a64fx");
        assert_eq!(events.iter().filter(|e| e.number.is_some()).count(), 185);
    }

    #[test]
    fn a_mistake_is_named_with_its_line_and_what_to_do() {
        let cases = [
            ("0x1,A,PE,,", "t:2: 'A' needs either signals or the reason why it has none; fill exactly one"),
            ("17,A,PE,,w", "t:2: '17' is not an event number; write it as 0x0011, or leave the cell empty"),
            ("0x1,A,PE,,w\n0x1,B,PE,,w", "t:3: '0x1' does not follow the number before it; sort the rows by number"),
            (",A,PE,,w\n0x1,B,PE,,w", "t:3: '0x1' does not follow the number before it; sort the rows by number"),
            ("0x1,A,PE,,w\n0x2,A,PE,,w", "t:3: a second event is called 'A'; remove one of the two"),
            ("0x1,A,PE,LD_SPECK,", "t:2: no signal is called 'LD_SPECK'; did you mean 'LD_SPEC'?"),
            ("0x1,A,PE,x*LD_SPEC,", "t:2: 'x' is not a whole number; write a multiple of a signal as 16*FLA_VAL"),
            ("0x1,A,CORE,LD_SPEC,", "t:2: 'A' has the scope 'CORE'; write PE for an event of the core"),
            ("0x1,,PE,LD_SPEC,", "t:2: the event has no name; name it in the second column"),
            ("0x1,A,PE", "t:2: the row has 3 cells, the first line has 5; write commas for empty cells"),
        ];
        for (rows, message) in cases {
            let text = format!("number,name,scope,signals,reason\n{rows}\n");
            let error = Events::parse("t", &text).expect_err(rows).to_string();
            assert!(error.starts_with(message), "{error}");
        }
        let header = Events::parse("t", "garbage\n").expect_err("no header").to_string();
        assert_eq!(
            header,
            "t:1: the first line is 'garbage'; it must name the columns: number,name,scope,signals,reason"
        );
    }
}
