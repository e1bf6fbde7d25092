//! Metrics: named quantities derived from event counts.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use fxscope_machine::{Events, Pmu, Spec};

use crate::TableError;
use crate::formula::Formula;
use crate::functions::Functions;
use crate::remedies::Remedy;
use crate::rules::Rule;
use crate::tables::Table;
use crate::{remedies, rules, tables};

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
    // Sizes of the L1 caches, bytes.
    ("l1d_bytes", |spec| spec.l1d.bytes as f64),
    ("l1i_bytes", |spec| spec.l1i.bytes as f64),
    // Streams that the hardware prefetcher follows: entries of its queue.
    ("prefetch_queue", |spec| f64::from(spec.prefetch.queue)),
    // Cycles from the resolution of a mispredicted branch until instructions of the correct path are decoded, and one of them is resolved
    // as a branch on flags.
    ("mispredict_cycles", |spec| (restart(spec) + spec.stages.branch) as f64),
    // The same until a branch on a value that has to be loaded is resolved.
    ("branch_restart", |spec| {
        (restart(spec) + spec.stages.address + spec.load_store.load_integer + spec.stages.branch_after_execute) as f64
    }),
    // Cycles from a flow of a load that is cancelled to the next one.
    ("replay_cycles", |spec| (spec.stages.commit_short + spec.load_store.resubmit) as f64),
    // Bandwidth of local memory that a stream of reads reaches, bytes per second.
    ("memory_read_peak", |spec| spec.memory.peak_bytes_per_second as f64 * spec.memory.read_efficiency / 100.0),
    // Cycles between two requests of a core to L2.
    ("l2_request_period", |spec| spec.l2_timing.request_period),
    // What the nearest memory of another CMG takes longer than the local one, cycles: requests and lines pass the ring.
    ("remote_extra", |spec| (2 * spec.ring.hop.min(spec.ring.row_hop)) as f64),
    // Micro-operations that commit in a cycle.
    ("commit_width", |spec| f64::from(spec.window.commit_width)),
    // Cycles from the operands of a fused multiply-add to its result, and pipes that execute it.
    ("fma_latency", fma_latency),
    ("fma_pipes", |spec| f64::from(spec.clock.fma_pipes)),
    // Cycles of a load that hits L1: into a general-purpose register, and of a vector.
    ("load_integer", |spec| spec.load_store.load_integer as f64),
    ("load_long", |spec| spec.load_store.load_long as f64),
    // Bytes of a block whose elements one flow of a gather reads, and address bits that loads and stores are compared by.
    ("flow_block", |spec| f64::from(spec.load_store.flow_block)),
    ("alias_bits", |spec| f64::from(spec.load_store.partial_address_bits)),
    // Energy of what the events of energy count, J, and power of a CMG's idle memory, W.
    ("core_cycle_joules", |spec| spec.energy.core_cycle_pj as f64 / 1e12),
    ("vector_operation_joules", |spec| spec.energy.vector_operation_pj as f64 / 1e12),
    ("load_store_cycle_joules", |spec| spec.energy.load_store_cycle_pj as f64 / 1e12),
    ("l2_cycle_joules", |spec| spec.energy.l2_cycle_pj as f64 / 1e12),
    ("l2_pipe_cycle_joules", |spec| spec.energy.l2_pipe_cycle_pj as f64 / 1e12),
    ("memory_watts", |spec| spec.energy.memory_mw as f64 / 1e3),
    ("memory_line_joules", |spec| spec.energy.memory_line_pj as f64 / 1e12),
    // Power of the chip that no event counts, W; its energy for a joule that the events of cores and L2 caches, or of memory, count; and
    // what a core takes less in each cycle, J.
    ("chip_base_watts", |spec| spec.power.base_watts()),
    ("chip_core_factor", |spec| spec.power.core_factor()),
    ("chip_memory_factor", |spec| spec.power.memory_factor()),
    ("chip_saved_joules", |spec| spec.power.saved_per_cycle()),
];

/// Cycles from the resolution of a mispredicted branch until the correct path is decoded.
fn restart(spec: &Spec) -> u64 {
    spec.frontend.fetch_to_decode + spec.frontend.mispredict_extra
}

/// Cycles of FMADD; 0 if the machine has no such instruction.
fn fma_latency(spec: &Spec) -> f64 {
    let flow = spec.recipes.named("simd:FMADD").and_then(|recipe| recipe.uops.first()?.flows.first());
    flow.map_or(0.0, |flow| f64::from(flow.latency))
}

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
    /// 1 where cycles are measured or simulated; no value in functional mode, where each instruction takes the same number.
    Timed,
}

/// Their names in formulas.
const VARIABLES: &[(&str, Variable)] = &[
    ("calls", Variable::Calls),
    ("cores", Variable::Cores),
    ("cmgs", Variable::Cmgs),
    ("threads", Variable::Threads),
    ("cmg_number", Variable::CmgNumber),
    ("timed", Variable::Timed),
];

/// Number of times a thread has entered a region, as a count of a pass; not a machine event.
pub const CALLS: &str = "CALLS";
/// Timer ticks that a pass took; not a machine event.
pub const TICKS: &str = "CNTVCT";
/// The processor's cycles.
pub const CYCLES: &str = "CPU_CYCLES";

/// Cycles that the kernel spends for the program; part of cycle accounting, known only to simulation.
pub const KERNEL: &str = "KERNEL_CYCLES";

/// The bytes that the instructions of a piece of code load and store. Only code has it ([`crate::Evaluation::of_code`]), no region.
pub const ACCESSED: &str = "ACCESSED_BYTES";

/// Counts that are not machine events.
const OTHER_COUNTS: &[&str] = &[TICKS, CALLS, ACCESSED];

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
    /// The formula as its file has it, on one line.
    pub written: String,
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
    remedies: Vec<Remedy>,
}

impl Metrics {
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
            remedies: Vec::new(),
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

    /// Adds remedies for its rules, given as file name and text.
    ///
    /// # Errors
    /// The error and its location.
    pub fn with_remedies(mut self, file: (&str, &str)) -> Result<Metrics, TableError> {
        self.remedies = remedies::parse(file, &self.rules)?;
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

    /// Returns the remedies that need no change of the program, in the order of their file.
    #[must_use]
    pub fn remedies(&self) -> &[Remedy] {
        &self.remedies
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
        let written = e.formula.split_whitespace().collect::<Vec<_>>().join(" ");
        let Entry { name, title, unit, total, instead_of, .. } = e;
        Ok(Metric { name, title, unit, formula, written, total, whole: e.whole.unwrap_or(total), instead_of })
    });
    Ok(Group { name: parsed.group, title: parsed.title, metrics: metrics.collect::<Result<_, _>>()? })
}

#[cfg(test)]
mod tests;
