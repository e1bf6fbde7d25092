//! Energy: counts that are derived from other counts of a thread and its CMG.
//!
//! A core consumes energy in every cycle, for each vector operation in proportion to its active elements, and for each
//! busy cycle of a load/store pipe; an L2 cache in every cycle and for each use of a pipeline; memory all the time and
//! for each line read or written. The coefficients are the machine's (`[energy]` in its `machine.toml`), fitted to
//! measured programs by `cargo run -p xtask -- calibrate power`.

use fxscope_machine::spec::Energy;
use fxscope_record::{ALL, Counts, Interval, Intervals, Region, Run};

use crate::Evaluation;

/// The energy events: of cores, of L2 caches and of memories.
pub const NAMES: [&str; 3] = ["EA_CORE", "EA_L2", "EA_MEMORY"];

/// Count of a vector operation with all elements active.
const ALL_ACTIVE: u128 = 16;
const PJ_PER_NJ: u128 = 1_000;
const NS_PER_S: f64 = 1e9;
/// Picojoules per second and milliwatt.
const PJ_PER_MW_SECOND: u128 = 1_000_000_000;

/// Sets the energy events of a region in which every thread has its CMG's counts of CMG-wide events. Threads without
/// the underlying events are left unchanged.
pub fn count(region: &mut Region, energy: &Energy, core_hz: u64) {
    let threads = region.threads.len();
    for counts in &mut region.passes {
        for thread in 0..threads {
            let counted = Of { counts, thread };
            let values = [counted.core(energy), counted.l2(energy), counted.memory(energy, core_hz)];
            for (name, value) in NAMES.into_iter().zip(values) {
                if let (Some(column), Some(value)) = (counts.names().index(name), value) {
                    counts.set(thread, column, u64::try_from(value).unwrap_or(u64::MAX));
                }
            }
        }
    }
}

/// Returns the power of the chip in each interval of a run, W: that of its counts in the intervals, with those parts that depend on time
/// alone for the CMGs that its threads run on. `None` for runs without the events or the machine's coefficients.
#[must_use]
pub fn chip_watts(run: &Run, intervals: &Intervals) -> Option<Vec<f64>> {
    let constant = |name: &str| run.constants.get(name).copied();
    let cmgs = Evaluation::new(run, run.region(ALL)?).total().get("cmgs_used")?;
    let (core, memory) = (constant("chip_core_factor")?, constant("chip_memory_factor")?);
    let operation = core * constant("vector_operation_joules")? / ALL_ACTIVE as f64;
    let load_store = core * constant("load_store_cycle_joules")?;
    let line = memory * constant("memory_line_joules")?;
    let each = [
        ("CPU_CYCLES", core * constant("core_cycle_joules")? - constant("chip_saved_joules")?),
        ("FLA_VAL_PRD_CNT", operation),
        ("FLB_VAL_PRD_CNT", operation),
        ("L1_PIPE0_VAL", load_store),
        ("L1_PIPE1_VAL", load_store),
        ("L2_PIPE_VAL", core * constant("l2_pipe_cycle_joules")?),
        ("BUS_READ_TOTAL_MEM", line),
        ("BUS_WRITE_TOTAL_MEM", line),
    ];
    let idle = core * constant("core_hz")? * constant("l2_cycle_joules")? + memory * constant("memory_watts")?;
    let always = constant("chip_base_watts")? + cmgs * idle;
    let mut begin = 0;
    let watts = |row: &Interval| {
        let seconds = row.end_ns.saturating_sub(begin) as f64 / NS_PER_S;
        begin = row.end_ns;
        let joules = |&(name, each): &(&str, f64)| Some(row.counts[intervals.names.index(name)?] as f64 * each);
        let joules: f64 = each.iter().map(joules).sum::<Option<f64>>()?;
        Some(always + joules / seconds).filter(|watts| watts.is_finite())
    };
    intervals.rows.iter().map(watts).collect()
}

/// The counts of one thread.
struct Of<'a> {
    counts: &'a Counts,
    thread: usize,
}

impl Of<'_> {
    /// The sum of events.
    fn sum(&self, events: &[&str]) -> Option<u128> {
        events.iter().map(|name| self.counts.get(self.thread, name).map(u128::from)).sum()
    }

    fn cycles(&self) -> Option<u128> {
        self.sum(&["CPU_CYCLES"])
    }

    fn core(&self, e: &Energy) -> Option<u128> {
        let elements = self.sum(&["FLA_VAL_PRD_CNT", "FLB_VAL_PRD_CNT"])?;
        let load_store = self.sum(&["L1_PIPE0_VAL", "L1_PIPE1_VAL"])?;
        let pj = self.cycles()? * u128::from(e.core_cycle_pj)
            + elements * u128::from(e.vector_operation_pj) / ALL_ACTIVE
            + load_store * u128::from(e.load_store_cycle_pj);
        Some(pj / (u128::from(e.core_count_nj) * PJ_PER_NJ))
    }

    fn l2(&self, e: &Energy) -> Option<u128> {
        let busy = self.sum(&["L2_PIPE_VAL"])?;
        let pj = self.cycles()? * u128::from(e.l2_cycle_pj) + busy * u128::from(e.l2_pipe_cycle_pj);
        Some(pj / (u128::from(e.l2_count_nj) * PJ_PER_NJ))
    }

    fn memory(&self, e: &Energy, core_hz: u64) -> Option<u128> {
        let lines = self.sum(&["BUS_READ_TOTAL_MEM", "BUS_WRITE_TOTAL_MEM"])?;
        let always = self.cycles()? * u128::from(e.memory_mw) * PJ_PER_MW_SECOND / u128::from(core_hz.max(1));
        Some((always + lines * u128::from(e.memory_line_pj)) / (u128::from(e.memory_count_nj) * PJ_PER_NJ))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fxscope_record::Thread;

    use super::*;

    fn energy() -> Energy {
        fxscope_machine::load("a64fx", &[]).expect("built in").tables.energy
    }

    /// The energy events of a thread with these counts.
    fn counted(caused: &[(&str, u64)]) -> [u64; 3] {
        let row: BTreeMap<String, u64> =
            caused.iter().copied().chain(NAMES.map(|name| (name, 0))).map(|(name, n)| (name.to_owned(), n)).collect();
        let mut region = Region::of_one_pass("all", 1, vec![(Thread::default(), row)]);
        count(&mut region, &energy(), 2_000_000_000);
        NAMES.map(|name| region.count(0, name).expect("counted"))
    }

    /// Events of a thread that idles for `cycles`.
    fn idle(cycles: u64) -> Vec<(&'static str, u64)> {
        let nothing = [
            "FLA_VAL_PRD_CNT",
            "FLB_VAL_PRD_CNT",
            "L1_PIPE0_VAL",
            "L1_PIPE1_VAL",
            "L2_PIPE_VAL",
            "BUS_READ_TOTAL_MEM",
            "BUS_WRITE_TOTAL_MEM",
        ];
        [("CPU_CYCLES", cycles)].into_iter().chain(nothing.map(|name| (name, 0))).collect()
    }

    #[test]
    fn idle_core_cache_and_memory_consume_their_base_energy() {
        let e = energy();
        // One second at 2 GHz.
        let [core, l2, memory] = counted(&idle(2_000_000_000));
        assert_eq!(core, 2_000_000 * e.core_cycle_pj / e.core_count_nj);
        assert_eq!(l2, 2_000_000 * e.l2_cycle_pj / e.l2_count_nj);
        assert_eq!(memory, e.memory_mw * 1_000_000 / e.memory_count_nj);
    }

    #[test]
    fn each_kind_of_work_adds_energy_to_its_component() {
        let e = energy();
        const N: u64 = 8_192_000;
        let before = counted(&idle(2_000_000_000));
        let more = |name: &str, n: u64| {
            let mut caused = idle(2_000_000_000);
            caused.iter_mut().find(|c| c.0 == name).expect("an event").1 = n;
            let after = counted(&caused);
            [0, 1, 2].map(|i| after[i] - before[i])
        };
        // Half of the elements of N operations.
        assert_eq!(more("FLB_VAL_PRD_CNT", 8 * N), [N / 2 * e.vector_operation_pj / 1_000 / e.core_count_nj, 0, 0]);
        assert_eq!(more("L1_PIPE1_VAL", N), [N * e.load_store_cycle_pj / 1_000 / e.core_count_nj, 0, 0]);
        assert_eq!(more("L2_PIPE_VAL", N), [0, N * e.l2_pipe_cycle_pj / 1_000 / e.l2_count_nj, 0]);
        for bus in ["BUS_READ_TOTAL_MEM", "BUS_WRITE_TOTAL_MEM"] {
            assert_eq!(more(bus, N), [0, 0, N * e.memory_line_pj / 1_000 / e.memory_count_nj], "{bus}");
        }
    }

    #[test]
    fn without_the_underlying_events_energy_is_unchanged() {
        assert_eq!(counted(&[("CPU_CYCLES", 2_000_000_000)]), [0; 3]);
    }
}
