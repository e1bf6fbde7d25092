//! Values of metrics for a region: for each thread, for the threads of a process on one CMG, and for all threads.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Index;

use fxscope_machine::Groups;
use fxscope_record::{Mode, Region, Run};

use crate::formula::{Formula, Reduction};
use crate::metrics::{CLOCKS, Count, KERNEL, Metric, Metrics, Name, Total, Variable, constant_values};
use crate::scope::{Cmg, cmg_of};
use crate::tables::{Column, Form, Mark};
use crate::{functions, passes, recorded};

/// The values of all metrics. A metric whose events were not counted is absent.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    metrics: &'static Metrics,
    values: Vec<Option<f64>>,
}

impl Values {
    /// Returns the value of the metric `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values[self.metrics.place(name)?]
    }

    /// Returns the values of all metrics, in the order of [`Metrics::all`].
    pub fn in_order(&self) -> impl Iterator<Item = Option<f64>> {
        self.values.iter().copied()
    }

    /// Returns all metrics that have a value, in the order of their groups.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Metric, f64)> {
        self.metrics.all().zip(&self.values).filter_map(|(metric, value)| Some((metric, (*value)?)))
    }
}

impl Index<&str> for Values {
    type Output = f64;

    /// The value of a metric that must have one.
    fn index(&self, name: &str) -> &f64 {
        let place = self.metrics.place(name).unwrap_or_else(|| panic!("unknown metric '{name}'"));
        self.values[place].as_ref().unwrap_or_else(|| panic!("'{name}' has no value"))
    }
}

/// The threads of a process that run on one CMG: the report's row "CMG n total".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Team {
    /// The process.
    pub process: u32,
    /// The CMG's number on its computer.
    pub cmg: u32,
    /// Its threads, as indices into the region's.
    pub threads: Vec<usize>,
}

/// A table cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// The value.
    pub value: f64,
    /// The column's mark that applies to it, if any.
    pub mark: Option<usize>,
}

/// The contents of a report column; `None` where there is no value.
#[derive(Clone, Debug, PartialEq)]
pub struct Cells {
    /// Title of what it shows, which depends on what was measured.
    pub title: String,
    /// For each thread, in the region's order.
    pub threads: Vec<Option<Cell>>,
    /// For each of [`Evaluation::teams`].
    pub cmgs: Vec<Option<Cell>>,
    /// For each of [`Evaluation::processes`].
    pub processes: Vec<Option<Cell>>,
    /// For all threads.
    pub total: Option<Cell>,
}

/// What a metric is evaluated for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// A thread, by index.
    Thread(usize),
    /// A team, by index.
    Team(usize),
    /// A process, by index.
    Process(usize),
    /// All threads.
    All,
}

/// A memoised value.
#[derive(Clone, Copy)]
enum Known {
    No,
    Yes(Option<f64>),
}

/// The metrics of a region, evaluated on demand.
pub struct Evaluation<'a> {
    metrics: &'static Metrics,
    region: &'a Region,
    /// The machine's constants, in the order of all constants.
    constants: Vec<Option<f64>>,
    /// For each count that formulas use, its pass and column.
    sources: Vec<Option<(usize, usize)>>,
    /// The CMG of each thread.
    cmgs: Vec<Option<Cmg>>,
    teams: Vec<Team>,
    team_of: Vec<Option<usize>>,
    processes: Vec<(u32, Vec<usize>)>,
    all: Vec<usize>,
    known: RefCell<Vec<Vec<Known>>>,
    /// The run, if its cycles by function may be used.
    run: Option<&'a Run>,
    /// Shares of cycles in groups of functions.
    functions: OnceCell<Vec<Option<f64>>>,
}

impl<'a> Evaluation<'a> {
    /// Returns the metrics of a region of a run.
    #[must_use]
    pub fn new(run: &'a Run, region: &'a Region) -> Evaluation<'a> {
        let evaluation = Evaluation::with(region, &run.constants, &recorded::of_run(run).groups);
        Evaluation { run: Some(run), ..evaluation }
    }

    /// Returns the metrics of a piece of code of a function, whose counts `region` has.
    #[must_use]
    pub fn of_code(run: &'a Run, region: &'a Region, function: &str) -> Evaluation<'a> {
        let evaluation = Evaluation::with(region, &run.constants, &recorded::of_run(run).groups);
        let inside = evaluation.metrics.functions().iter().map(|group| Some(f64::from(group.contain(function))));
        Evaluation { functions: OnceCell::from(inside.collect::<Vec<_>>()), ..evaluation }
    }

    /// Returns the metrics of a region on a machine with these constants and event groups.
    #[must_use]
    pub fn with(region: &'a Region, constants: &BTreeMap<String, f64>, groups: &Groups) -> Evaluation<'a> {
        let metrics = Metrics::built_in();
        let cmgs: Vec<Option<Cmg>> = region.threads.iter().map(|t| cmg_of(t, constants)).collect();
        let mut teams: BTreeMap<(u32, Cmg), Vec<usize>> = BTreeMap::new();
        let mut processes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (i, (thread, cmg)) in region.threads.iter().zip(&cmgs).enumerate() {
            processes.entry(thread.process).or_default().push(i);
            if let Some(cmg) = cmg {
                teams.entry((thread.process, *cmg)).or_default().push(i);
            }
        }
        let team = |((process, (_, cmg)), threads)| Team { process, cmg, threads };
        let teams: Vec<Team> = teams.into_iter().map(team).collect();
        let team_of = (0..cmgs.len()).map(|i| teams.iter().position(|team| team.threads.contains(&i)));
        let scopes = cmgs.len() + teams.len() + processes.len() + 1;
        Evaluation {
            metrics,
            region,
            constants: constant_values(constants),
            sources: sources(metrics, region, &passes::of_groups(groups, region)),
            team_of: team_of.collect(),
            teams,
            processes: processes.into_iter().collect(),
            all: (0..cmgs.len()).collect(),
            cmgs,
            known: RefCell::new(vec![Vec::new(); scopes]),
            run: None,
            functions: OnceCell::new(),
        }
    }

    /// Returns the values for each thread, in the region's order.
    #[must_use]
    pub fn threads(&self) -> Vec<Values> {
        self.all.iter().map(|&i| self.values(Scope::Thread(i))).collect()
    }

    /// Returns the values for the threads of each process on each CMG, by the rules of the CPU performance analysis
    /// report for its row "CMG n total". Empty if the threads' CMGs are unknown.
    #[must_use]
    pub fn cmgs(&self) -> Vec<(&Team, Values)> {
        self.teams.iter().enumerate().map(|(i, team)| (team, self.values(Scope::Team(i)))).collect()
    }

    /// Returns the threads of each process on each CMG.
    #[must_use]
    pub fn teams(&self) -> &[Team] {
        &self.teams
    }

    /// Returns the values for all threads of a process; `None` if the region has no such process.
    #[must_use]
    pub fn process(&self, process: u32) -> Option<Values> {
        let place = self.processes.iter().position(|p| p.0 == process)?;
        Some(self.values(Scope::Process(place)))
    }

    /// Returns the values for all threads of each process, in the order of [`Evaluation::processes`].
    #[must_use]
    pub fn of_processes(&self) -> Vec<Values> {
        (0..self.processes.len()).map(|place| self.values(Scope::Process(place))).collect()
    }

    /// Returns the processes of the region, ascending.
    pub fn processes(&self) -> impl Iterator<Item = u32> {
        self.processes.iter().map(|p| p.0)
    }

    /// Returns the values for all threads.
    #[must_use]
    pub fn total(&self) -> Values {
        self.values(Scope::All)
    }

    /// Returns the contents of a report column.
    #[must_use]
    pub fn column(&self, column: &Column) -> Cells {
        let form = self.form(column);
        let cell = |wanted: bool, scope: Scope| if wanted { self.cell(column, form, scope) } else { None };
        Cells {
            title: form.title.clone(),
            threads: self.all.iter().map(|&i| cell(column.threads, Scope::Thread(i))).collect(),
            cmgs: (0..self.teams.len()).map(|i| cell(column.totals, Scope::Team(i))).collect(),
            processes: (0..self.processes.len()).map(|i| cell(column.totals, Scope::Process(i))).collect(),
            total: cell(column.totals, Scope::All),
        }
    }

    /// Returns the cell of a column for all threads, and its title.
    #[must_use]
    pub fn total_of<'c>(&self, column: &'c Column) -> (&'c str, Option<Cell>) {
        let form = self.form(column);
        (&form.title, self.cell(column, form, Scope::All).filter(|_| column.totals))
    }

    /// The first form of a column that has a value.
    fn form<'c>(&self, column: &'c Column) -> &'c Form {
        let filled = |form: &&Form| {
            let threads = || self.all.iter().any(|&i| self.value(form.place, Scope::Thread(i)).is_some());
            self.value(form.place, Scope::All).is_some() || threads()
        };
        column.forms.iter().find(filled).unwrap_or(&column.forms[0])
    }

    fn cell(&self, column: &Column, form: &Form, scope: Scope) -> Option<Cell> {
        let value = self.value(form.place, scope)?;
        let other = |mark: &&Mark| {
            let with = mark.with.as_ref()?;
            self.value(self.metrics.place(&with.metric)?, scope)
        };
        Some(Cell { value, mark: column.marks.iter().position(|mark| mark.holds(value, other(&mark))) })
    }

    /// Names of the events that must be measured as well for a metric to have a value in all threads; empty if it has
    /// one, or if no event is missing.
    #[must_use]
    pub fn missing(&self, metric: &str) -> Vec<String> {
        self.metrics.place(metric).map_or_else(Vec::new, |place| self.missing_at(place))
    }

    /// Returns the events that must be measured as well for a report column to show its preferred form.
    #[must_use]
    pub fn missing_in(&self, column: &Column) -> Vec<String> {
        self.missing_at(column.forms[0].place)
    }

    /// The value of a definition for all threads.
    pub(crate) fn whole(&self, place: usize) -> Option<f64> {
        self.value(place, Scope::All)
    }

    /// The rules that can be evaluated.
    pub(crate) fn metrics(&self) -> &'static Metrics {
        self.metrics
    }

    /// Names of the events that must be measured as well for a definition to have a value.
    pub(crate) fn missing_at(&self, place: usize) -> Vec<String> {
        let mut events = BTreeSet::new();
        if self.value(place, Scope::All).is_none() {
            self.add_missing(&self.metrics.definitions()[place].formula, &mut events);
        }
        events.into_iter().collect()
    }

    fn add_missing(&self, formula: &Formula<Name>, events: &mut BTreeSet<String>) {
        if let Formula::Known(all) = formula {
            // The last alternative needs only events that every measurement can count.
            return all.last().into_iter().for_each(|a| self.add_missing(a, events));
        }
        for operand in formula.operands() {
            self.add_missing(operand, events);
        }
        match formula {
            Formula::Name(Name::Metric(place)) => {
                self.add_missing(&self.metrics.definitions()[*place].formula, events);
            }
            Formula::Name(Name::Count(place)) => {
                let name = &self.metrics.counts()[*place].name;
                let lacks = || self.all.iter().any(|&thread| self.region.count(thread, name).is_none());
                // Events that only simulation knows cannot be measured.
                if name != KERNEL && lacks() {
                    events.insert(name.clone());
                }
            }
            _ => {}
        }
    }

    fn values(&self, scope: Scope) -> Values {
        let values = (0..self.metrics.all().count()).map(|place| self.value(place, scope)).collect();
        Values { metrics: self.metrics, values }
    }

    /// The threads of a scope, by index.
    fn members(&self, scope: &Scope) -> &[usize] {
        match *scope {
            Scope::Thread(i) => &self.all[i..=i],
            Scope::Team(i) => &self.teams[i].threads,
            Scope::Process(i) => &self.processes[i].1,
            Scope::All => &self.all,
        }
    }

    fn number(&self, scope: Scope) -> usize {
        let (threads, teams) = (self.all.len(), self.teams.len());
        match scope {
            Scope::Thread(i) => i,
            Scope::Team(i) => threads + i,
            Scope::Process(i) => threads + teams + i,
            Scope::All => threads + teams + self.processes.len(),
        }
    }

    /// The value of a definition.
    fn value(&self, place: usize, scope: Scope) -> Option<f64> {
        let number = self.number(scope);
        if let Some(Known::Yes(value)) = self.known.borrow()[number].get(place) {
            return *value;
        }
        let value = self.calculate(place, scope);
        let mut known = self.known.borrow_mut();
        known[number].resize(self.metrics.definitions().len(), Known::No);
        known[number][place] = Known::Yes(value);
        value
    }

    fn calculate(&self, place: usize, scope: Scope) -> Option<f64> {
        let definition = &self.metrics.definitions()[place];
        if definition.instead_of.iter().any(|&other| self.value(other, scope).is_some()) {
            return None;
        }
        let rule = match scope {
            Scope::Thread(_) => Total::Sum,
            Scope::Team(_) => definition.total,
            Scope::Process(_) | Scope::All => definition.whole,
        };
        let threads = self.members(&scope);
        let each = || threads.iter().map(|&thread| self.value(place, Scope::Thread(thread)));
        match rule {
            Total::Sum if threads.is_empty() => None,
            Total::Sum => definition.formula.value(&Names { evaluation: self, scope }),
            Total::Mean => Some(each().sum::<Option<f64>>()? / threads.len() as f64).filter(|_| !threads.is_empty()),
            Total::Add => each().sum::<Option<f64>>().filter(|_| !threads.is_empty()),
            Total::Max => each().collect::<Option<Vec<_>>>()?.into_iter().reduce(f64::max),
        }
    }

    /// A thread's count.
    fn count(&self, thread: usize, place: usize) -> Option<u64> {
        let (pass, column) = self.sources[place]?;
        // Another pass may have the thread's count, but not from the same time.
        let name = &self.metrics.counts()[place].name;
        let elsewhere = || self.region.count(thread, name).filter(|_| !CLOCKS.contains(&name.as_str()));
        self.region.passes[pass].at(thread, column).or_else(elsewhere)
    }

    /// The threads that `first` and `most` consider.
    fn siblings(&self, scope: Scope) -> &[usize] {
        match scope {
            Scope::Thread(i) => match self.team_of[i] {
                Some(team) => &self.teams[team].threads,
                None => &self.all,
            },
            _ => self.members(&scope),
        }
    }
}

/// The source of each count that formulas use. `of_groups` has the pass that counted all of a group; for other groups
/// it is the pass with most of the events that the formula uses.
fn sources(metrics: &Metrics, region: &Region, of_groups: &[Option<usize>]) -> Vec<Option<(usize, usize)>> {
    let column = |pass: usize, name: &str| Some((pass, region.passes[pass].names().index(name)?));
    let anywhere = |name: &str| (0..region.passes.len()).find_map(|pass| column(pass, name));
    let source = |count: &Count| {
        let Some(group) = count.group else { return anywhere(&count.name) };
        if let Some(pass) = of_groups.get(usize::from(group) - 1).copied().flatten() {
            return column(pass, &count.name);
        }
        let has = |pass: &usize| {
            let names = region.passes[*pass].names();
            count.together.iter().filter(|name| names.index(name).is_some()).count()
        };
        // The first of several passes with equally many.
        let pass = (0..region.passes.len()).rev().max_by_key(has).filter(|pass| has(pass) > 0);
        match pass.and_then(|pass| column(pass, &count.name)) {
            // Clocks must come from the pass that has the events.
            None if !CLOCKS.contains(&count.name.as_str()) => anywhere(&count.name),
            source => source,
        }
    };
    metrics.counts().iter().map(source).collect()
}

/// The names in a definition's formula, within a scope.
struct Names<'a, 'b> {
    evaluation: &'a Evaluation<'b>,
    scope: Scope,
}

impl Names<'_, '_> {
    fn members(&self) -> &[usize] {
        self.evaluation.members(&self.scope)
    }

    /// The value of a formula for a thread.
    fn of_thread(&self, thread: usize, formula: &Formula<Name>) -> Option<f64> {
        formula.value(&Names { evaluation: self.evaluation, scope: Scope::Thread(thread) })
    }
}

impl crate::formula::Scope<Name> for Names<'_, '_> {
    fn name(&self, name: &Name) -> Option<f64> {
        let e = self.evaluation;
        match name {
            Name::Constant(place) => e.constants[*place],
            Name::Variable(Variable::Calls) => Some(e.region.calls as f64),
            Name::Variable(Variable::Cores) => {
                let place = |&t: &usize| (e.region.threads[t].node, e.region.threads[t].cpu);
                Some(self.members().iter().map(place).collect::<BTreeSet<_>>().len() as f64)
            }
            Name::Variable(Variable::Cmgs) => {
                Some(self.members().iter().map(|&t| e.cmgs[t]).collect::<BTreeSet<_>>().len() as f64)
            }
            Name::Variable(Variable::CmgNumber) => match self.members() {
                [first, ..] => e.cmgs[*first].map(|cmg| f64::from(cmg.1)),
                [] => None,
            },
            Name::Variable(Variable::Timed) => e.run.is_none_or(|run| run.mode == Mode::Timing).then_some(1.0),
            Name::Variable(Variable::Threads) => Some(self.members().len() as f64),
            Name::Metric(place) => e.value(*place, self.scope),
            Name::Functions(place) => {
                e.functions.get_or_init(|| functions::shares(e.metrics.functions(), e.run, e.region))[*place]
            }
            Name::Count(place) => self.members().iter().map(|&t| e.count(t, *place).map(|n| n as f64)).sum(),
        }
    }

    fn threads(&self, over: Reduction, formula: &Formula<Name>) -> Option<f64> {
        let siblings = self.evaluation.siblings(self.scope);
        match over {
            Reduction::First => self.of_thread(*siblings.first()?, formula),
            Reduction::Most => {
                let all: Option<Vec<f64>> = siblings.iter().map(|&t| self.of_thread(t, formula)).collect();
                all?.into_iter().reduce(f64::max)
            }
            Reduction::Cmg => {
                let mut cmgs: BTreeMap<Option<Cmg>, (f64, f64)> = BTreeMap::new();
                for &thread in self.members() {
                    let (sum, threads) = cmgs.entry(self.evaluation.cmgs[thread]).or_default();
                    *sum += self.of_thread(thread, formula)?;
                    *threads += 1.0;
                }
                Some(cmgs.values().map(|(sum, threads)| sum / threads).sum())
            }
        }
    }
}
