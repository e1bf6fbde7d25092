//! Metrics: named quantities derived from event counts.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use fxscope_machine::{Events, Pmu, Spec};

use crate::TableError;
use crate::formula::Formula;
use crate::functions::Functions;
use crate::rules::{self, Rule};
use crate::tables::{self, Table};

/// The groups of metrics, in the order of reports.
const BUILT_IN: &[(&str, &str)] = &[
    ("time.toml", include_str!("../../../data/metrics/time.toml")),
    ("vector.toml", include_str!("../../../data/metrics/vector.toml")),
    ("memory.toml", include_str!("../../../data/metrics/memory.toml")),
    ("cycle-accounting.toml", include_str!("../../../data/metrics/cycle-accounting.toml")),
    ("cycle-accounting-brief.toml", include_str!("../../../data/metrics/cycle-accounting-brief.toml")),
    ("misses.toml", include_str!("../../../data/metrics/misses.toml")),
    ("busy.toml", include_str!("../../../data/metrics/busy.toml")),
    ("instruction-mix.toml", include_str!("../../../data/metrics/instruction-mix.toml")),
    ("extra.toml", include_str!("../../../data/metrics/extra.toml")),
    ("hardware-prefetch.toml", include_str!("../../../data/metrics/hardware-prefetch.toml")),
    ("traffic.toml", include_str!("../../../data/metrics/traffic.toml")),
    ("power.toml", include_str!("../../../data/metrics/power.toml")),
    ("time-shares.toml", include_str!("../../../data/metrics/time-shares.toml")),
    ("manual-rates.toml", include_str!("../../../data/metrics/manual-rates.toml")),
];

/// The tables of the report.
const TABLES: (&str, &str) = ("report.toml", include_str!("../../../data/metrics/report.toml"));

/// A machine constant: its name in formulas, and its value.
type Constant = (&'static str, fn(&Spec) -> f64);

/// The constants available to formulas.
const CONSTANTS: &[Constant] = &[
    // Core clock, Hz.
    ("core_hz", |spec| spec.clock.core_hz as f64),
    // Vector length, bits.
    ("vector_bits", |spec| f64::from(spec.clock.vector_bits)),
    // Size of a line transferred between L2 cache and memory, bytes.
    ("line_bytes", |spec| f64::from(spec.l2.line_bytes)),
    // Banks of the L2 cache, each with a pipeline.
    ("l2_banks", |spec| f64::from(spec.l2_timing.banks)),
    // Peak double-precision operations of a core per second: two per element and pipe.
    ("peak_flops_dp", |spec| {
        let clock = &spec.clock;
        clock.core_hz as f64 * f64::from(clock.fma_pipes) * 2.0 * f64::from(clock.vector_bits) / 64.0
    }),
    // Number of the first core, as in threads, and cores per CMG.
    ("first_core", |spec| f64::from(spec.topology.first_core)),
    ("cmg_cores", |spec| f64::from(spec.topology.cores_per_cmg)),
    // Timer ticks per second.
    ("timer_hz", |spec| spec.identity.counter_hz as f64),
    // Peak load bandwidth of a core from L1, bytes per second: a vector in each of two load/store pipes.
    ("l1_core_peak", |spec| 2.0 * f64::from(spec.clock.vector_bits) / 8.0 * spec.clock.core_hz as f64),
    // Peak bandwidth of a core from L2, and of L2 (a line from each bank), bytes per second.
    ("l2_core_peak", |spec| f64::from(spec.l2_timing.fill_bytes_per_cycle) * spec.clock.core_hz as f64),
    ("l2_cmg_peak", |spec| f64::from(spec.l2_timing.banks) * f64::from(spec.l2.line_bytes) * spec.clock.core_hz as f64),
    // Peak bandwidth of local memory, bytes per second.
    ("memory_peak", |spec| spec.memory.peak_bytes_per_second as f64),
    // Latency of a load that hits L2, and of one that local memory serves, cycles: means over cores.
    ("l2_latency", |spec| f64::midpoint(spec.l2_timing.hit_nearest as f64, spec.l2_timing.hit_farthest as f64)),
    ("memory_latency", |spec| f64::midpoint(spec.memory.latency_nearest as f64, spec.memory.latency_farthest as f64)),
    // Cycles of a translation that the second level of the TLB has, and what a walk of translation tables takes in addition to its
    // reads.
    ("tlb_l2_hit", |spec| spec.tlb.l2_hit as f64),
    ("tlb_walk", |spec| spec.tlb.walk_extra as f64),
    // Entries of the TLB's second level.
    ("tlb_entries", |spec| f64::from(spec.tlb.l2_entries)),
];

/// Returns the values of all constants for a machine, by name.
#[must_use]
pub fn constants(spec: &Spec) -> BTreeMap<String, f64> {
    CONSTANTS.iter().map(|(name, value)| ((*name).to_owned(), value(spec))).collect()
}

/// Returns the constants available to formulas, in order; `None` where `values` lacks one.
pub(crate) fn constant_values(values: &BTreeMap<String, f64>) -> Vec<Option<f64>> {
    CONSTANTS.iter().map(|(name, _)| values.get(*name).copied()).collect()
}

/// Variables available to formulas in addition to events and constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variable {
    /// Number of times the region was entered.
    Calls,
    /// Number of cores that the threads run on.
    Cores,
    /// Number of CMGs that the threads run on.
    Cmgs,
    /// Number of threads.
    Threads,
    /// Number of a thread's CMG.
    CmgNumber,
}

/// Their names in formulas.
const VARIABLES: &[(&str, Variable)] = &[
    ("calls", Variable::Calls),
    ("cores", Variable::Cores),
    ("cmgs", Variable::Cmgs),
    ("threads", Variable::Threads),
    ("cmg_number", Variable::CmgNumber),
];

/// Number of times a thread has entered a region, as a count of a pass; not a machine event.
pub const CALLS: &str = "CALLS";
/// Timer ticks that a pass took; not a machine event.
pub const TICKS: &str = "CNTVCT";
/// The processor's cycles.
pub const CYCLES: &str = "CPU_CYCLES";

/// Cycles that the kernel spends for the program; part of cycle accounting, known only to simulation.
pub const KERNEL: &str = "KERNEL_CYCLES";

/// Counts that are not machine events.
const OTHER_COUNTS: &[&str] = &[TICKS, CALLS];

/// The counts that every pass has, regardless of its events.
pub const CLOCKS: [&str; 3] = [CALLS, TICKS, CYCLES];

/// A resolved name in a formula.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Name {
    /// A machine constant, by index ([`constant_values`]).
    Constant(usize),
    /// A property of the region.
    Variable(Variable),
    /// A metric, by index.
    Metric(usize),
    /// The share of cycles in a group of functions, by index.
    Functions(usize),
    /// A count, by index among the counts that formulas use.
    Count(usize),
}

/// A count that a formula uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub name: String,
    /// The group whose pass it must come from.
    pub group: Option<u8>,
    /// All events of that group that the formula uses.
    pub together: Vec<String>,
}

/// A formula with resolved names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Definition {
    pub formula: Formula<Name>,
    /// How the threads of a process on one CMG are combined.
    pub total: Total,
    /// How all threads are combined.
    pub whole: Total,
    /// It has a value only if none of these has one.
    pub instead_of: Vec<usize>,
}

/// How the values of a region's threads are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Total {
    /// The formula applied to the sums of the threads' counts.
    #[default]
    Sum,
    /// The mean of the threads' values.
    Mean,
    /// The sum of the threads' values.
    Add,
    /// The maximum of the threads' values.
    Max,
}

/// Returns whether any built-in machine has an event of this name.
fn is_event(name: &str) -> bool {
    static KNOWN: LazyLock<Vec<Events>> =
        LazyLock::new(|| fxscope_machine::names().filter_map(Pmu::built_in).map(|pmu| pmu.events).collect());
    KNOWN.iter().any(|events| events.named(name).is_some())
}

/// A named quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Name: lower case and stable, for programs.
    pub name: String,
    /// Title for display.
    pub title: String,
    /// Unit: "s", "cycles", "GB/s", "%", …; "ratio" for a fraction of 1.
    pub unit: String,
    /// Formula.
    pub formula: Formula,
    /// How the threads of a process on one CMG are combined.
    pub total: Total,
    /// How all threads of a region are combined.
    pub whole: Total,
    /// Names of more precise metrics: this one has a value only if none of them has one.
    pub instead_of: Vec<String>,
}

/// A group of metrics: one file.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Name, for programs.
    pub name: String,
    /// Title for display.
    pub title: String,
    /// Its metrics, in order.
    pub metrics: Vec<Metric>,
}

/// All metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    groups: Vec<Group>,
    places: BTreeMap<String, usize>,
    counts: Vec<Count>,
    definitions: Vec<Definition>,
    tables: Vec<Table>,
    functions: Vec<Functions>,
    rules: Vec<Rule>,
}

impl Metrics {
    /// Returns the built-in metrics.
    ///
    /// # Panics
    /// If they are invalid, which a test rules out.
    #[must_use]
    pub fn built_in() -> &'static Metrics {
        static METRICS: LazyLock<Metrics> = LazyLock::new(|| {
            let metrics = Metrics::parse(BUILT_IN).and_then(|metrics| metrics.with_tables(TABLES));
            let metrics = metrics.and_then(|metrics| metrics.with_rules(rules::BUILT_IN));
            metrics.expect("built-in tables are tested")
        });
        &METRICS
    }

    /// Parses and checks groups of metrics, each given as file name and text.
    ///
    /// # Errors
    /// The error and its location.
    pub fn parse(files: &[(&str, &str)]) -> Result<Metrics, TableError> {
        let groups: Vec<Group> = files.iter().map(|(file, text)| parse_group(file, text)).collect::<Result<_, _>>()?;
        let places = groups.iter().flat_map(|g| &g.metrics).enumerate().map(|(i, m)| (m.name.clone(), i)).collect();
        let mut metrics = Metrics {
            groups,
            places,
            counts: Vec::new(),
            definitions: Vec::new(),
            tables: Vec::new(),
            functions: Vec::new(),
            rules: Vec::new(),
        };
        for (group, (file, _)) in metrics.groups.iter().zip(files) {
            for metric in &group.metrics {
                let error =
                    |what: String| TableError { file: (*file).to_owned(), what: format!("{}: {what}", metric.name) };
                if metrics.places[&metric.name] != metrics.definitions.len() {
                    return Err(error("a second metric has this name".to_owned()));
                }
                let functions = &metrics.functions;
                let mut resolver = Resolver { places: &metrics.places, functions, counts: &mut metrics.counts };
                let definition = resolver.define(metric).map_err(error)?;
                metrics.definitions.push(definition);
            }
        }
        for (file, metric) in metrics.groups.iter().zip(files).flat_map(|(g, f)| g.metrics.iter().map(|m| (f.0, m))) {
            if metrics.depends_on_itself(metrics.places[&metric.name]) {
                let what = format!("{}: its formula depends on itself", metric.name);
                return Err(TableError { file: file.to_owned(), what });
            }
        }
        Ok(metrics)
    }

    /// Adds report tables, given as file name and text.
    ///
    /// # Errors
    /// The error and its location.
    pub fn with_tables(mut self, (file, text): (&str, &str)) -> Result<Metrics, TableError> {
        self.tables = tables::parse(file, text, &mut self)?;
        Ok(self)
    }

    /// Adds rules, given as file name and text.
    ///
    /// # Errors
    /// The error and its location.
    pub fn with_rules(mut self, files: &[(&str, &str)]) -> Result<Metrics, TableError> {
        self.rules = rules::parse(files, &mut self)?;
        Ok(self)
    }

    /// Adds a group of functions, whose share of the cycles formulas can use.
    pub(crate) fn add_functions(&mut self, functions: Functions) -> Result<(), String> {
        if self.places.contains_key(&functions.name) || self.functions.iter().any(|f| f.name == functions.name) {
            return Err("a metric or another group of functions has this name".to_owned());
        }
        self.functions.push(functions);
        Ok(())
    }

    /// Adds a formula that is not a metric; returns its index among all definitions.
    pub(crate) fn define(&mut self, formula: &Formula, total: Total, whole: Total) -> Result<usize, String> {
        let functions = &self.functions;
        let mut resolver = Resolver { places: &self.places, functions, counts: &mut self.counts };
        let formula = resolver.resolve_all(formula)?;
        self.definitions.push(Definition { formula, total, whole, instead_of: Vec::new() });
        Ok(self.definitions.len() - 1)
    }

    /// Returns whether a definition depends on itself.
    fn depends_on_itself(&self, start: usize) -> bool {
        let mut seen = vec![false; self.definitions.len()];
        let mut next = vec![start];
        while let Some(at) = next.pop() {
            let Definition { formula, instead_of, .. } = &self.definitions[at];
            let named = formula.names().into_iter().filter_map(|name| match name {
                Name::Metric(place) => Some(*place),
                _ => None,
            });
            for place in named.chain(instead_of.iter().copied()) {
                if place == start {
                    return true;
                }
                if !std::mem::replace(&mut seen[place], true) {
                    next.push(place);
                }
            }
        }
        false
    }

    /// Returns the groups in order.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Returns the group `name`.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|g| g.name == name)
    }

    /// Returns the tables of the CPU performance analysis report.
    #[must_use]
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Returns the rules, in the order of their files.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the groups of functions whose shares of the cycles formulas can use.
    pub(crate) fn functions(&self) -> &[Functions] {
        &self.functions
    }

    /// Returns all metrics, group by group.
    pub fn all(&self) -> impl Iterator<Item = &Metric> {
        self.groups.iter().flat_map(|g| &g.metrics)
    }

    /// Returns the metric `name`.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Metric> {
        self.all().nth(self.place(name)?)
    }

    /// Returns the index of the metric `name`.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// Returns the counts that formulas use.
    pub(crate) fn counts(&self) -> &[Count] {
        &self.counts
    }

    /// Returns the formulas of all metrics, then those of columns.
    pub(crate) fn definitions(&self) -> &[Definition] {
        &self.definitions
    }
}

/// Resolves the names in formulas.
struct Resolver<'a> {
    places: &'a BTreeMap<String, usize>,
    functions: &'a [Functions],
    counts: &'a mut Vec<Count>,
}

impl Resolver<'_> {
    fn define(&mut self, metric: &Metric) -> Result<Definition, String> {
        let formula = self.resolve_all(&metric.formula)?;
        let instead_of = metric
            .instead_of
            .iter()
            .map(|name| self.places.get(name).copied().ok_or_else(|| format!("unknown metric '{name}'")));
        let instead_of = instead_of.collect::<Result<_, _>>()?;
        Ok(Definition { formula, total: metric.total, whole: metric.whole, instead_of })
    }

    /// Resolves all names of a formula.
    fn resolve_all(&mut self, formula: &Formula) -> Result<Formula<Name>, String> {
        let first = self.counts.len();
        let resolved = formula.rename(&mut |name: &String| self.resolve(name, first))?;
        let (_, own) = self.counts.split_at_mut(first);
        let events = |group: Option<u8>, own: &[Count]| -> Vec<String> {
            let of_group = own.iter().filter(|c| c.group == group && !CLOCKS.contains(&c.name.as_str()));
            of_group.map(|c| c.name.clone()).collect()
        };
        let together: Vec<_> = own.iter().map(|count| events(count.group, own)).collect();
        for (count, together) in own.iter_mut().zip(together) {
            count.together = together;
        }
        Ok(resolved)
    }

    /// Resolves a name; `first` is the index of the first count of its formula.
    fn resolve(&mut self, text: &str, first: usize) -> Result<Name, String> {
        if let Some(constant) = CONSTANTS.iter().position(|c| c.0 == text) {
            return Ok(Name::Constant(constant));
        }
        if let Some(variable) = VARIABLES.iter().find(|v| v.0 == text) {
            return Ok(Name::Variable(variable.1));
        }
        if let Some(place) = self.places.get(text) {
            return Ok(Name::Metric(*place));
        }
        if let Some(place) = self.functions.iter().position(|functions| functions.name == text) {
            return Ok(Name::Functions(place));
        }
        let (name, group) = match text.split_once('@') {
            Some((name, group)) => {
                let number = group.parse().map_err(|_| format!("'{group}' is not the number of an event group"))?;
                (name, Some(number))
            }
            None => (text, None),
        };
        if !OTHER_COUNTS.contains(&name) && !is_event(name) {
            return Err(format!("no event, constant or metric is called '{name}'"));
        }
        let known = self.counts[first..].iter().position(|c| c.name == name && c.group == group);
        if let Some(known) = known {
            return Ok(Name::Count(first + known));
        }
        self.counts.push(Count { name: name.to_owned(), group, together: Vec::new() });
        Ok(Name::Count(self.counts.len() - 1))
    }
}

fn parse_group(file: &str, text: &str) -> Result<Group, TableError> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        group: String,
        title: String,
        metric: Vec<Entry>,
    }
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Entry {
        name: String,
        title: String,
        unit: String,
        formula: String,
        #[serde(default)]
        total: Total,
        whole: Option<Total>,
        #[serde(default)]
        instead_of: Vec<String>,
    }
    let error = |what: String| TableError { file: file.to_owned(), what };
    let parsed: File = toml::from_str(text).map_err(|e| error(e.to_string()))?;
    let metrics = parsed.metric.into_iter().map(|e| {
        let formula = Formula::parse(&e.formula).map_err(|what| error(format!("{}: {what}", e.name)))?;
        let Entry { name, title, unit, total, instead_of, .. } = e;
        Ok(Metric { name, title, unit, formula, total, whole: e.whole.unwrap_or(total), instead_of })
    });
    Ok(Group { name: parsed.group, title: parsed.title, metrics: metrics.collect::<Result<_, _>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::{Evaluation, Values};
    use fxscope_record::{Region, Thread};

    fn values(threads: &[&[(&str, u64)]]) -> Values {
        let events = |list: &[(&str, u64)]| list.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        let rows = (0..)
            .zip(threads)
            .map(|(thread, list)| (Thread { thread, cpu: 12 + thread, ..Thread::default() }, events(list)));
        let region = Region::of_one_pass("all", 1, rows.collect());
        Evaluation::with(&region, &a64fx(), &Pmu::built_in("a64fx").expect("built in").groups).total()
    }

    fn a64fx() -> BTreeMap<String, f64> {
        constants(&fxscope_machine::load("a64fx", &[]).expect("built in"))
    }

    #[test]
    fn built_in_metrics_are_valid() {
        let metrics = Metrics::parse(BUILT_IN).and_then(|m| m.with_tables(TABLES));
        metrics.and_then(|m| m.with_rules(rules::BUILT_IN)).unwrap_or_else(|e| panic!("{e}"));
    }

    #[test]
    fn peaks_are_those_of_one_core_and_one_memory_group() {
        // 2 GHz, two pipes, eight doubles, multiply and add; 256 GB/s per CMG.
        let constants = a64fx();
        assert_eq!(constants["peak_flops_dp"], 64e9);
        assert_eq!(constants["memory_peak"], 256e9);
        // Per cycle, two vectors from L1, 64 bytes into L1, and a line from each of two L2 banks.
        assert_eq!(
            [constants["l1_core_peak"], constants["l2_core_peak"], constants["l2_cmg_peak"]],
            [256e9, 128e9, 1024e9]
        );
    }

    #[test]
    fn basic_metrics_follow_from_counts() {
        let values = values(&[&[
            ("CPU_CYCLES", 2_000_000),
            ("INST_RETIRED", 5_000_000),
            ("EFFECTIVE_INST_SPEC", 4_000_000),
            ("FP_SCALE_OPS_SPEC", 1_000_000),
            ("FP_FIXED_OPS_SPEC", 500),
            ("L2D_CACHE_REFILL", 310),
            ("L2D_SWAP_DM", 5),
            ("L2D_CACHE_MIBMCH_PRF", 5),
            ("L2D_CACHE_WB", 100),
        ]]);
        assert_eq!(values["seconds"], 1e-3);
        assert_eq!(values["ipc"], 2.0);
        assert_eq!(values["instructions"], 5e6);
        let near = |name: &str, expected: f64| assert!((values[name] / expected - 1.0).abs() < 1e-12, "{name}");
        near("gflops", 4.0005);
        near("gflops_percent_of_peak", 4.0005 / 64.0 * 100.0);
        near("memory_gbs", 400.0 * 256.0 / 1e9 / 1e-3);
        near("memory_percent_of_peak", 400.0 * 256.0 / 1e-3 / 256e9 * 100.0);
        assert!(values.get("l1d_miss_rate").is_none(), "loads and stores were not counted");
    }

    #[test]
    fn cycle_accounting_components_add_up_to_the_cycles() {
        let values = values(&[&[
            ("CPU_CYCLES", 1000),
            ("0INST_COMMIT", 600),
            ("1INST_COMMIT", 100),
            ("2INST_COMMIT", 110),
            ("3INST_COMMIT", 90),
            ("4INST_COMMIT", 95),
            ("LD_COMP_WAIT", 300),
            ("LD_COMP_WAIT_EX", 110),
            ("LD_COMP_WAIT_L2_MISS", 80),
            ("LD_COMP_WAIT_L2_MISS_EX", 30),
            ("LD_COMP_WAIT_L1_MISS", 70),
            ("LD_COMP_WAIT_L1_MISS_EX", 20),
            ("LD_COMP_WAIT_PFP_BUSY", 50),
            ("LD_COMP_WAIT_PFP_BUSY_EX", 10),
            ("LD_COMP_WAIT_PFP_BUSY_SWPF", 15),
            ("EU_COMP_WAIT", 120),
            ("FL_COMP_WAIT", 90),
            ("BR_COMP_WAIT", 40),
            ("ROB_EMPTY", 100),
            ("ROB_EMPTY_STQ_BUSY", 25),
            ("WFE_WFI_CYCLE", 5),
        ]]);
        let metrics = Metrics::built_in();
        let group = metrics.group("cycle_accounting").expect("there");
        let parts: Vec<f64> = group.metrics.iter().filter_map(|m| values.get(&m.name)).collect();
        // Calculated by hand from the table of Fujitsu's CPU performance analysis report, in its order.
        let expected = [35, 15, 30, 50, 20, 50, 50, 50, 30, 90, 40, 40, 25, 70, 5, 100, 110, 90, 95, 5];
        assert_eq!(parts, expected.map(f64::from));
        assert_eq!(parts.iter().sum::<f64>(), 1000.0);
    }

    #[test]
    fn kernel_time_is_a_separate_component_if_counted() {
        let counts = [("CPU_CYCLES", 1000), ("ROB_EMPTY", 900), ("ROB_EMPTY_STQ_BUSY", 25), ("WFE_WFI_CYCLE", 5)];
        let measured = values(&[&counts]);
        assert_eq!((measured["fetch_wait"], measured.get("kernel")), (870.0, None));
        let simulated = values(&[&[&counts[..], &[(KERNEL, 800)]].concat()]);
        assert_eq!((simulated["fetch_wait"], simulated["kernel"]), (70.0, 800.0));
    }

    #[test]
    fn each_stall_cause_matches_the_cycle_accounting_component_of_its_title() {
        use fxscope_counts::{Signal, Signals, Stall};
        let metrics = Metrics::built_in();
        let group = metrics.group("cycle_accounting").expect("there");
        for &stall in Stall::ALL {
            let mut signals = Signals::default();
            signals.add_stalls(&std::array::from_fn(|i| if i == stall as usize { 100 } else { 0 }));
            signals.set(Signal::CpuCycles, 100);
            let counts: Vec<(&str, u64)> = signals.iter().map(|(signal, n)| (signal.name(), n)).collect();
            let values = self::values(&[&counts]);
            let parts: Vec<_> = group.metrics.iter().filter(|m| values[m.name.as_str()] > 0.0).collect();
            // The report has one component for all cycles in which no whole instruction commits.
            let title = match stall {
                Stall::UopOnly | Stall::Movprfx | Stall::StoreData => "Other wait",
                _ => stall.title(),
            };
            assert_eq!(parts.iter().map(|m| m.title.as_str()).collect::<Vec<_>>(), [title]);
            assert_eq!(values[parts[0].name.as_str()], 100.0, "{title}");
        }
    }

    #[test]
    fn threads_are_combined_by_each_metrics_rule() {
        let counts = [("CPU_CYCLES", 2_000_000), ("EFFECTIVE_INST_SPEC", 2_000_000)];
        let other = [("CPU_CYCLES", 4_000_000), ("EFFECTIVE_INST_SPEC", 8_000_000)];
        let values = values(&[&counts, &other]);
        assert_eq!(values["ipc"], 1.5, "mean of 1 and 2");
        assert_eq!(values["seconds"], 2e-3, "largest");
        assert_eq!(values["effective_instructions"], 1e7, "sum");
    }

    #[test]
    fn errors_name_file_and_metric() {
        let file = |body: &str| format!("group = 'g'\ntitle = 'G'\n{body}");
        let metric = |name: &str, formula: &str| {
            format!("[[metric]]\nname = '{name}'\ntitle = 'T'\nunit = 's'\nformula = '{formula}'\n")
        };
        let cases = [
            (
                metric("a", "FP_HP_FIXED_OPS_HPEC"),
                "f: a: no event, constant or metric is called 'FP_HP_FIXED_OPS_HPEC'",
            ),
            (metric("a", "1 +"), "f: a: something is missing at the end"),
            (metric("a", "b") + &metric("b", "a * 2"), "f: a: its formula depends on itself"),
            (metric("a", "1") + &metric("a", "2"), "f: a: a second metric has this name"),
        ];
        for (body, message) in cases {
            let error = Metrics::parse(&[("f", &file(&body))]).expect_err(&body);
            assert_eq!(error.to_string(), message);
        }
    }
}
