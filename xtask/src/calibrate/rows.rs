//! Fits one number of the machine to rows of `validation`: the value for which their mean error is zero.
//!
//! A fit uses only the rows that name its key in their column `fitted`, so no row that a number was fitted to is among those
//! that test the model. Such rows belong to programs of the part `fit` of `validation/programs.csv`; otherwise the rows cannot be
//! read. Each number has rows that depend on it and on little else, so it can be fitted alone. If one fit
//! builds on another (the cost of writes on the rate of reads), the other number is that of the machine's file: fit that one
//! first.

use std::path::{Path, PathBuf};

use fxscope_machine::spec::Tables;
use fxscope_validate::{Search, Simulator, Suite, judge};
use rayon::prelude::*;

/// Most simulations, apart from those at both ends.
const TRIES: u32 = 10;

/// A number of the machine that is fitted to rows of `validation`.
pub struct Fit {
    /// Its name in the machine's file.
    pub key: &'static str,
    /// Its value in the machine's file.
    pub today: fn(&Tables) -> f64,
    /// Search range.
    pub range: (f64, f64),
    /// Decimals.
    pub digits: usize,
}

/// Interval of a core's requests to L2: one core streams from memory, limited only by its request rate.
pub const REQUEST_PERIOD: Fit = Fit {
    key: "l2_timing.request_period",
    today: |tables| tables.l2_timing.request_period,
    range: (3.0, 7.0),
    digits: 1,
};

/// Time until a core knows that L2 has a line that it wrote back: two cores update lines in place from L2.
pub const ACKNOWLEDGE: Fit = Fit {
    key: "l2_timing.acknowledge",
    today: |tables| tables.l2_timing.acknowledge as f64,
    range: (0.0, 300.0),
    digits: 0,
};

/// Time that L2 takes for DC ZVA beyond a hit: lines of L1 are cleared and stored to, one after the other.
pub const ZERO: Fit =
    Fit { key: "l2_timing.zero", today: |tables| tables.l2_timing.zero as f64, range: (0.0, 500.0), digits: 0 };

/// Efficiency of memory for reads only: twelve cores load.
pub const READ_EFFICIENCY: Fit = Fit {
    key: "memory.read_efficiency",
    today: |tables| tables.memory.read_efficiency,
    range: (70.0, 100.0),
    digits: 1,
};

/// Cost of a written line relative to a read one: all measured copies and Triads on twelve cores, in which one of three to
/// five lines is written.
pub const WRITE_COST: Fit =
    Fit { key: "memory.write_cost", today: |tables| tables.memory.write_cost, range: (1.0, 1.6), digits: 2 };

/// Latency from a CMG to its neighbour: the twelve cores of CMG1 chase through memory of CMG0.
pub const HOP: Fit = Fit { key: "ring.hop", today: |tables| tables.ring.hop as f64, range: (0.0, 200.0), digits: 0 };

/// Latency from a CMG to those of another row: the cores of CMG2 and CMG3 chase through memory of CMG0.
pub const ROW_HOP: Fit =
    Fit { key: "ring.row_hop", today: |tables| tables.ring.row_hop as f64, range: (0.0, 300.0), digits: 0 };

/// Bandwidth of a CMG's port of the ring: twelve cores run the same Triad, all in a neighbour's memory.
pub const PORT_EFFICIENCY: Fit =
    Fit { key: "ring.port_efficiency", today: |tables| tables.ring.port_efficiency, range: (60.0, 100.0), digits: 1 };

/// Time that a CMG loses between lines of different CMGs: 48 threads with all pages on one CMG, and in turns.
pub const TURNAROUND: Fit =
    Fit { key: "ring.turnaround", today: |tables| tables.ring.turnaround as f64, range: (0.0, 20.0), digits: 0 };

/// Time from the last write of a round at the hardware barrier until others see it: barriers of two to six threads.
pub const BARRIER: Fit = Fit {
    key: "hardware_barrier.latency",
    today: |tables| tables.hardware_barrier.latency as f64,
    range: (20.0, 300.0),
    digits: 0,
};

impl Fit {
    /// Searches the value; prints all attempts, and the result beside the machine's value.
    ///
    /// # Errors
    /// If a row or program is missing or cannot be run, or no value in the range gives an error of zero.
    pub fn run(&self, fxscope: &Path, root: &Path) -> Result<(), String> {
        let tables = fxscope_machine::load("a64fx", &[]).map_err(|e| e.to_string())?.tables;
        let suite = self.suite(Suite::read(&root.join("validation"))?)?;
        let rows = Rows { fit: self, fxscope: fxscope.to_owned(), programs: root.join("kernels/prebuilt"), suite };
        let number = rows.suite.families.iter().map(|family| family.rows.len()).sum::<usize>();
        println!("{:<26} {:>12}  errors of {number} rows, %", self.key, "mean, %");
        let search = Search { range: self.range, step: 10f64.powi(-(self.digits as i32)), tries: TRIES, enough: 0.0 };
        let (low, high) = self.range;
        let found = search
            .zero(|value| rows.error(value))?
            .value
            .ok_or_else(|| format!("no value of {} from {low} to {high} makes the errors zero", self.key))?;
        println!("{} = {found:.*} (the machine's file has {})", self.key, self.digits, (self.today)(&tables));
        Ok(())
    }

    /// Returns the rows of this fit alone.
    fn suite(&self, mut suite: Suite) -> Result<Suite, String> {
        for family in &mut suite.families {
            family.rows.retain(|(row, _)| row.is_fitted_to(self.key));
        }
        if suite.families.iter().all(|family| family.rows.is_empty()) {
            return Err(format!("no row of validation has {} in its column 'fitted'", self.key));
        }
        Ok(suite)
    }
}

/// The rows of a fit, and how they are simulated.
struct Rows<'a> {
    fit: &'a Fit,
    fxscope: PathBuf,
    programs: PathBuf,
    suite: Suite,
}

impl Rows<'_> {
    /// Returns the mean signed error of the rows at a value.
    fn error(&self, value: f64) -> Result<f64, String> {
        let mut suite = self.suite.clone();
        for run in suite.runs.values_mut() {
            run.options += &format!(" --set {}={value}", self.fit.key);
        }
        let simulator = Simulator { program: self.fxscope.clone(), kernels: self.programs.clone(), libraries: None };
        let counts = |run: &fxscope_validate::Run| (run.run.clone(), simulator.counts(run, &|| false));
        let results = suite.needed().into_par_iter().map(counts).collect();
        let errors = judge(&suite, &results)
            .into_iter()
            .map(|outcome| outcome.judgement.map(|j| j.error))
            .collect::<Result<Vec<_>, _>>()?;
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let each: Vec<_> = errors.iter().map(|error| format!("{error:+.1}")).collect();
        println!("{value:<26} {mean:>+12.2}  {}", each.join(" "));
        Ok(mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fxscope_validate::Part;

    const ALL: [Fit; 7] = [REQUEST_PERIOD, ZERO, READ_EFFICIENCY, WRITE_COST, HOP, PORT_EFFICIENCY, BARRIER];

    #[test]
    fn a_fit_uses_the_rows_that_are_marked_with_its_key_and_no_others() {
        let rows = |suite: &Suite| -> Vec<String> {
            suite.families.iter().flat_map(|family| &family.rows).map(|(row, _)| row.row.clone()).collect()
        };
        let suite = Suite::read(&crate::root().join("validation")).expect("rows");
        let used: Vec<_> = ALL.iter().map(|fit| rows(&fit.suite(suite.clone()).expect(fit.key)).len()).collect();
        assert_eq!(used, [1, 1, 1, 5, 12, 1, 4]);
        let mut unmarked = suite;
        for row in unmarked.families.iter_mut().flat_map(|family| &mut family.rows) {
            row.0.fitted.clear();
        }
        assert!(ALL.iter().all(|fit| fit.suite(unmarked.clone()).is_err()), "an unmarked row is used");
    }

    #[test]
    fn fits_use_programs_of_the_part_fit() {
        let suite = Suite::read(&crate::root().join("validation")).expect("rows");
        for fit in ALL {
            let used = fit.suite(suite.clone()).expect(fit.key);
            for (row, _) in used.families.iter().flat_map(|family| &family.rows) {
                assert_eq!(used.part(row), Part::Fit, "{} is used by {}", row.row, fit.key);
            }
        }
    }

    #[test]
    fn every_fit_has_rows_and_a_key_of_the_machine() {
        for fit in ALL {
            let suite = Suite::read(&crate::root().join("validation")).expect("rows");
            assert!(fit.suite(suite).is_ok(), "{}", fit.key);
            let setting = (fit.key.to_owned(), fit.range.0.to_string());
            let machine = fxscope_machine::load("a64fx", &[setting]).expect("a key with a value in its range");
            assert_eq!((fit.today)(&machine.tables), fit.range.0, "{}", fit.key);
        }
    }

    #[test]
    fn the_value_of_the_machines_file_lies_in_the_range_that_is_searched() {
        let tables = fxscope_machine::load("a64fx", &[]).expect("built in").tables;
        for fit in ALL {
            let today = (fit.today)(&tables);
            assert!(fit.range.0 < today && today < fit.range.1, "{} = {today}", fit.key);
            assert_eq!(format!("{today:.*}", fit.digits).parse(), Ok(today), "{}", fit.key);
        }
    }

    #[test]
    fn everything_that_rows_were_fitted_to_exists() {
        let machine = fxscope_machine::load("a64fx", &[]).expect("built in");
        let suite = Suite::read(&crate::root().join("validation")).expect("rows");
        let exists = |what: &str| match what.contains('.') {
            true => machine.provenance_of(what).is_some(),
            false => ["kernel", "rule"].contains(&what) || suite.gaps.contains_key(what),
        };
        for (row, _) in suite.families.iter().flat_map(|family| &family.rows) {
            for what in row.fitted.split_whitespace() {
                assert!(exists(what), "{} is marked with '{what}', which does not exist", row.row);
            }
        }
    }
}
