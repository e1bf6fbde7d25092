//! Metrics: named quantities that follow from event counts.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use fxscope_machine::Spec;
use fxscope_record::Region;

use crate::TableError;
use crate::events::Events;
use crate::formula::Formula;

/// The groups of metrics, in the order in which reports show them.
const BUILT_IN: &[(&str, &str)] = &[
    ("time.toml", include_str!("../../../metrics/time.toml")),
    ("vector.toml", include_str!("../../../metrics/vector.toml")),
    ("memory.toml", include_str!("../../../metrics/memory.toml")),
    ("cycle-accounting.toml", include_str!("../../../metrics/cycle-accounting.toml")),
    ("misses.toml", include_str!("../../../metrics/misses.toml")),
    ("busy.toml", include_str!("../../../metrics/busy.toml")),
];

/// A constant of a machine: its name in formulas, and its value.
type Constant = (&'static str, fn(&Spec) -> f64);

/// The constants that formulas may use.
const CONSTANTS: &[Constant] = &[
    // Core clock, Hz.
    ("core_hz", |spec| spec.clock.core_hz as f64),
    // Vector length, bits.
    ("vector_bits", |spec| f64::from(spec.clock.vector_bits)),
    // Size of a line on the way between L2 cache and memory.
    ("line_bytes", |spec| f64::from(spec.l2.line_bytes)),
    // Banks of the L2 cache, each with a pipeline.
    ("l2_banks", |spec| f64::from(spec.l2_timing.banks)),
    // Most double-precision operations a core can do each second: two for each element and pipe.
    ("peak_flops_dp", |spec| {
        let clock = &spec.clock;
        clock.core_hz as f64 * f64::from(clock.fma_pipes) * 2.0 * f64::from(clock.vector_bits) / 64.0
    }),
    // Number of the first core, as threads have it, and cores of a CMG.
    ("first_core", |spec| f64::from(spec.topology.first_core)),
    ("cmg_cores", |spec| f64::from(spec.topology.cores_per_cmg)),
    // Most bytes that local memory can move each second.
    ("memory_peak", |spec| spec.memory.peak_bytes_per_second as f64),
];

/// The values of all constants for a machine, by name.
#[must_use]
pub fn constants(spec: &Spec) -> BTreeMap<String, f64> {
    CONSTANTS.iter().map(|(name, value)| ((*name).to_owned(), value(spec))).collect()
}

/// How the values of a region's threads become the region's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Total {
    /// The formula holds for the sums of the threads' counts.
    #[default]
    Sum,
    /// The mean of the threads' values.
    Mean,
    /// The largest of the threads' values.
    Max,
}

/// A named quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name: lower case, stable, for programs.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// Its unit: "s", "cycles", "GB/s", "%", …; "ratio" for a fraction of 1.
    pub unit: String,
    /// Its formula.
    pub formula: Formula,
    /// How threads add up.
    pub total: Total,
}

/// Metrics that belong together: one file.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name, for programs.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// Its metrics, in order.
    pub metrics: Vec<Metric>,
}

/// All metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    groups: Vec<Group>,
}

/// The values of metrics by name. One that could not be calculated, because an event was not counted, is
/// absent.
pub type Values = BTreeMap<String, f64>;

impl Metrics {
    /// The metrics that come with the program.
    ///
    /// # Panics
    /// When they are wrong, which a test rules out.
    #[must_use]
    pub fn built_in() -> &'static Metrics {
        static METRICS: LazyLock<Metrics> =
            LazyLock::new(|| Metrics::parse(BUILT_IN).expect("built-in tables are tested"));
        &METRICS
    }

    /// Reads and checks groups of metrics, each a file name and its text.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(files: &[(&str, &str)]) -> Result<Metrics, TableError> {
        let groups = files.iter().map(|(file, text)| parse_group(file, text)).collect::<Result<_, _>>()?;
        let metrics = Metrics { groups };
        let events: Vec<Events> = Events::machines().filter_map(Events::of).collect();
        for (group, (file, _)) in metrics.groups.iter().zip(files) {
            for metric in &group.metrics {
                let error =
                    |what: String| TableError { file: (*file).to_owned(), what: format!("{}: {what}", metric.name) };
                if metrics.all().filter(|m| m.name == metric.name).count() > 1 {
                    return Err(error("a second metric has this name".to_owned()));
                }
                for name in metric.formula.names() {
                    let known = CONSTANTS.iter().any(|c| c.0 == name)
                        || metrics.named(name).is_some()
                        || events.iter().any(|e| e.named(name).is_some());
                    if !known {
                        return Err(error(format!("no event, constant or metric is called '{name}'")));
                    }
                }
                if metrics.reaches(metric, &metric.name, metrics.all().count()) {
                    return Err(error("its formula leads back to itself".to_owned()));
                }
            }
        }
        Ok(metrics)
    }

    /// Whether the formula of `from` uses the metric `name`, directly or through others.
    fn reaches(&self, from: &Metric, name: &str, depth: usize) -> bool {
        from.formula.names().into_iter().any(|n| {
            n == name || depth > 0 && self.named(n).is_some_and(|metric| self.reaches(metric, name, depth - 1))
        })
    }

    /// The groups in order.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The group called `name`.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|g| g.name == name)
    }

    /// All metrics, group by group.
    pub fn all(&self) -> impl Iterator<Item = &Metric> {
        self.groups.iter().flat_map(|g| &g.metrics)
    }

    /// The metric called `name`.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Metric> {
        self.all().find(|m| m.name == name)
    }

    /// The values of all metrics for a region, on a machine with these constants.
    #[must_use]
    pub fn of_region(&self, region: &Region, constants: &BTreeMap<String, f64>) -> Values {
        let threads: Vec<_> = region.threads.iter().map(|t| &t.events).collect();
        let of = |m: &Metric| Some((m.name.clone(), self.value(m, &threads, constants)?));
        self.all().filter_map(of).collect()
    }

    fn value(&self, metric: &Metric, threads: &[&BTreeMap<String, u64>], constants: &Values) -> Option<f64> {
        if metric.total != Total::Sum && threads.len() > 1 {
            let values = threads.iter().map(|t| self.value(metric, &[t], constants));
            return match metric.total {
                Total::Max => values.collect::<Option<Vec<_>>>()?.into_iter().reduce(f64::max),
                _ => Some(values.sum::<Option<f64>>()? / threads.len() as f64),
            };
        }
        metric.formula.value(&|name| {
            if let Some(metric) = self.named(name) {
                return self.value(metric, threads, constants);
            }
            if CONSTANTS.iter().any(|c| c.0 == name) {
                return constants.get(name).copied();
            }
            let counts = threads.iter().map(|t| t.get(name).map(|&n| n as f64));
            counts.sum::<Option<f64>>().filter(|_| !threads.is_empty())
        })
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
    }
    let error = |what: String| TableError { file: file.to_owned(), what };
    let parsed: File = toml::from_str(text).map_err(|e| error(e.to_string()))?;
    let metrics = parsed.metric.into_iter().map(|e| {
        let formula = Formula::parse(&e.formula).map_err(|what| error(format!("{}: {what}", e.name)))?;
        Ok(Metric { name: e.name, title: e.title, unit: e.unit, formula, total: e.total })
    });
    Ok(Group { name: parsed.group, title: parsed.title, metrics: metrics.collect::<Result<_, _>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fxscope_record::Thread;

    fn region(threads: &[&[(&str, u64)]]) -> Region {
        let events = |list: &[(&str, u64)]| list.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        let thread = |(i, list): (usize, &&[_])| Thread { thread: i as u32, cpu: 12 + i as u32, events: events(list) };
        Region { name: "all".to_owned(), calls: 1, threads: threads.iter().enumerate().map(thread).collect() }
    }

    fn a64fx() -> BTreeMap<String, f64> {
        constants(&fxscope_machine::load("a64fx", &[]).expect("built in"))
    }

    #[test]
    fn built_in_metrics_are_sound() {
        Metrics::parse(BUILT_IN).unwrap_or_else(|e| panic!("{e}"));
    }

    #[test]
    fn peaks_are_those_of_one_core_and_one_memory_group() {
        // 2 GHz, two pipes, eight doubles, multiply and add; 256 GB/s for each CMG.
        let constants = a64fx();
        assert_eq!(constants["peak_flops_dp"], 64e9);
        assert_eq!(constants["memory_peak"], 256e9);
    }

    #[test]
    fn basic_metrics_follow_from_counts() {
        let run = region(&[&[
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
        let values = Metrics::built_in().of_region(&run, &a64fx());
        assert_eq!(values["seconds"], 1e-3);
        assert_eq!(values["ipc"], 2.0);
        assert_eq!(values["instructions"], 5e6);
        let near = |name: &str, expected: f64| assert!((values[name] / expected - 1.0).abs() < 1e-12, "{name}");
        near("gflops", 4.0005);
        near("gflops_percent_of_peak", 4.0005 / 64.0 * 100.0);
        near("memory_gbs", 400.0 * 256.0 / 1e9 / 1e-3);
        near("memory_percent_of_peak", 400.0 * 256.0 / 1e-3 / 256e9 * 100.0);
        assert!(!values.contains_key("l1d_miss_rate"), "loads and stores were not counted");
    }

    #[test]
    fn the_parts_of_cycle_accounting_add_up_to_the_cycles() {
        let run = region(&[&[
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
        let values = metrics.of_region(&run, &a64fx());
        let group = metrics.group("cycle_accounting").expect("there");
        assert_eq!(group.metrics.len(), 20);
        let parts: Vec<f64> = group.metrics.iter().map(|m| values[&m.name]).collect();
        // Hand-made from the table of Fujitsu's CPU performance analysis report, in its order.
        let expected = [35, 15, 30, 50, 20, 50, 50, 50, 30, 90, 40, 40, 25, 70, 5, 100, 110, 90, 95, 5];
        assert_eq!(parts, expected.map(f64::from));
        assert_eq!(parts.iter().sum::<f64>(), 1000.0);
    }

    #[test]
    fn each_cause_of_waiting_is_the_part_of_cycle_accounting_that_has_its_title() {
        use fxscope_base::{Signal, Signals, Stall};
        let metrics = Metrics::built_in();
        let group = metrics.group("cycle_accounting").expect("there");
        for &stall in Stall::ALL {
            let mut signals = Signals::default();
            signals.add_stalls(&std::array::from_fn(|i| if i == stall as usize { 100 } else { 0 }));
            signals.set(Signal::CpuCycles, 100);
            let counts: Vec<(&str, u64)> = signals.iter().map(|(signal, n)| (signal.name(), n)).collect();
            let values = metrics.of_region(&region(&[&counts]), &a64fx());
            let parts: Vec<_> = group.metrics.iter().filter(|m| values[&m.name] > 0.0).collect();
            // The report has one part for all cycles in which no whole instruction commits.
            let title = match stall {
                Stall::UopOnly | Stall::Movprfx => "Other wait",
                _ => stall.title(),
            };
            assert_eq!(parts.iter().map(|m| m.title.as_str()).collect::<Vec<_>>(), [title]);
            assert_eq!(values[&parts[0].name], 100.0, "{title}");
        }
    }

    #[test]
    fn threads_add_up_as_each_metric_says() {
        let counts = [("CPU_CYCLES", 2_000_000), ("EFFECTIVE_INST_SPEC", 2_000_000)];
        let other = [("CPU_CYCLES", 4_000_000), ("EFFECTIVE_INST_SPEC", 8_000_000)];
        let values = Metrics::built_in().of_region(&region(&[&counts, &other]), &a64fx());
        assert_eq!(values["ipc"], 1.5, "mean of 1 and 2");
        assert_eq!(values["seconds"], 2e-3, "largest");
        assert_eq!(values["effective_instructions"], 1e7, "sum");
    }

    #[test]
    fn mistakes_are_told_with_file_and_metric() {
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
            (metric("a", "b") + &metric("b", "a * 2"), "f: a: its formula leads back to itself"),
            (metric("a", "1") + &metric("a", "2"), "f: a: a second metric has this name"),
        ];
        for (body, message) in cases {
            let error = Metrics::parse(&[("f", &file(&body))]).expect_err(&body);
            assert_eq!(error.to_string(), message);
        }
    }
}
