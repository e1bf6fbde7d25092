//! Tests of the built-in metrics.

use super::*;
use crate::evaluate::{Evaluation, Values};
use crate::own::{BUILT_IN, TABLES};
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
        (metric("a", "FP_HP_FIXED_OPS_HPEC"), "f: a: no event, constant or metric is called 'FP_HP_FIXED_OPS_HPEC'"),
        (metric("a", "1 +"), "f: a: something is missing at the end"),
        (metric("a", "b") + &metric("b", "a * 2"), "f: a: its formula depends on itself"),
        (metric("a", "1") + &metric("a", "2"), "f: a: a second metric has this name"),
    ];
    for (body, message) in cases {
        let error = Metrics::parse(&[("f", &file(&body))]).expect_err(&body);
        assert_eq!(error.to_string(), message);
    }
}
