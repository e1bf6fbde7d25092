//! The remedies that the simulator can apply to an unchanged program.

use fxscope_linux::hwpfctl::{self, Call};
use fxscope_machine::Spec;
use fxscope_session::Scenario;

/// A remedy.
pub(super) struct Trial {
    /// What it changes.
    pub name: &'static str,
    /// How to do the same on a machine.
    pub how: &'static str,
    /// The rules (`data/rules/*.toml`) that suggest it.
    pub rules: &'static [&'static str],
    /// The changed scenario; `None` if it would be the same, or if the machine cannot do it.
    pub change: fn(&Scenario, &Spec) -> Option<Scenario>,
}

/// Rules about waiting for data that a prefetch may bring.
const WAITS: &[&str] = &[
    "memory_latency",
    "l2_latency",
    "many_streams",
    "sparse_lines",
    "requests_in_flight",
    "core_l2_bandwidth",
    "memory_bandwidth",
];
/// Rules about data on other CMGs.
const PLACES: &[&str] = &["one_memory", "remote_memory"];
/// Rules about translations.
const TRANSLATION: &[&str] = &["tlb_misses"];

/// The segments whose pages programs can choose without being linked differently; text and files have the system's pages.
const SEGMENTS: [&str; 7] = ["data", "bss", "heap", "stack", "thread_stack", "mmap", "shared"];

/// The variable that says when pages are allocated.
const POLICY: &str = "XOS_MMM_L_PAGING_POLICY";

/// All of them. Of equal gains, the first is listed first.
pub(super) const TRIALS: &[Trial] = &[
    Trial {
        name: "pages at first touch",
        how: "XOS_MMM_L_PAGING_POLICY=demand:demand:demand",
        rules: PLACES,
        change: |scenario, _| variable(scenario, POLICY, "demand:demand:demand"),
    },
    Trial {
        name: "pages interleaved over all CMGs",
        how: "numactl --interleave=all",
        rules: PLACES,
        change: |scenario, _| (!scenario.placement.places_memory()).then(|| scenario.clone().with_interleaving()),
    },
    Trial {
        name: "large pages everywhere",
        how: "XOS_MMM_L_HPAGE_TYPE=hugetlbfs, and huge pages for shared memory",
        rules: TRANSLATION,
        change: large_pages,
    },
    Trial {
        name: "memory kept after free",
        how: "XOS_MMM_L_ARENA_FREE=2",
        rules: &["kernel"],
        change: |scenario, _| variable(scenario, "XOS_MMM_L_ARENA_FREE", "2"),
    },
    Trial {
        name: "L2 prefetch 60 lines ahead",
        how: "hwpfctl --distL2 60",
        rules: WAITS,
        change: |s, _| prefetch(s, &["--distL2", "60"]),
    },
    Trial {
        name: "L2 prefetch 20 lines ahead",
        how: "hwpfctl --distL2 20",
        rules: WAITS,
        change: |s, _| prefetch(s, &["--distL2", "20"]),
    },
    Trial {
        name: "L1 prefetch 15 lines ahead",
        how: "hwpfctl --distL1 15",
        rules: WAITS,
        change: |s, _| prefetch(s, &["--distL1", "15"]),
    },
    Trial {
        name: "L1 prefetch 2 lines ahead",
        how: "hwpfctl --distL1 2",
        rules: WAITS,
        change: |s, _| prefetch(s, &["--distL1", "2"]),
    },
    Trial {
        name: "no hardware prefetch",
        how: "hwpfctl --disableL1 --disableL2",
        rules: WAITS,
        change: |s, _| prefetch(s, &["--disableL1", "--disableL2"]),
    },
];

/// The scenario with a variable of the program's environment, if it does not have it.
fn variable(scenario: &Scenario, name: &str, value: &str) -> Option<Scenario> {
    let has = scenario.variables.iter().any(|(known, _)| known == name);
    (!has).then(|| scenario.clone().with_variables(&[(name, value)]))
}

/// The scenario with the machine's large pages for all segments, unless page sizes are chosen already.
fn large_pages(scenario: &Scenario, spec: &Spec) -> Option<Scenario> {
    let large = spec.pages.large;
    let is_chosen =
        !scenario.placement.pages.is_empty() || scenario.overrides.iter().any(|(key, _)| key.starts_with("pages."));
    (!is_chosen && large > spec.pages.normal)
        .then(|| scenario.clone().with_pages(SEGMENTS.map(|segment| (segment, large))))
}

/// The scenario with settings of hardware prefetch, unless it has some.
fn prefetch(scenario: &Scenario, options: &[&str]) -> Option<Scenario> {
    let words: Vec<Vec<u8>> = options.iter().map(|word| word.as_bytes().to_vec()).collect();
    let Ok(Call::Set(settings, _)) = hwpfctl::parse(&words) else { return None };
    let mut changed = scenario.clone();
    changed.options.stream_detect = settings.stream_detect.into();
    (scenario.options.stream_detect == 0).then_some(changed)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn remedies_are_for_rules_that_exist_and_change_a_plain_scenario() {
        let rules: BTreeSet<&str> =
            fxscope_pmu::Metrics::built_in().rules().iter().map(|rule| rule.name.as_str()).collect();
        let scenario = Scenario::new("a.out");
        let spec = scenario.spec().expect("built in");
        for trial in TRIALS {
            assert!(trial.rules.iter().all(|rule| rules.contains(rule)), "{}: {:?}", trial.name, trial.rules);
            let changed = (trial.change)(&scenario, &spec).expect(trial.name);
            assert_ne!(changed, scenario, "{}", trial.name);
            changed.spec().unwrap_or_else(|e| panic!("{}: {e}", trial.name));
            // What is chosen already stays.
            assert_eq!((trial.change)(&changed, &spec), None, "{}", trial.name);
        }
    }
}
