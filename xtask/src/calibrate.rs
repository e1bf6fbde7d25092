//! Fits undocumented numbers to measured rows.
//!
//! `walk`: the time of a table walk in addition to its reads, `tlb.walk_extra`. Triad from memory reads and writes each page
//! once, so pages of 64 KiB cost a walk each, and pages of 2 MiB next to none. The difference of the two measured times is
//! the cost of walks, independent of other errors of the model.
//!
//! `power`: see [`crate::power`]. All others: see [`rows`].

mod rows;

use std::path::{Path, PathBuf};

use fxscope_pmu::formula::{Formula, Reduction, Scope};
use fxscope_validate::{Row, Run, Search, Suite};

use crate::{kernel, power, root};

/// Options of `xtask calibrate`.
#[derive(clap::Args)]
pub struct Args {
    /// What to fit.
    what: Target,
    /// The fxscope binary.
    #[arg(long, default_value = "target/release/fxscope")]
    fxscope: PathBuf,
}

/// Numbers that can be fitted.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Target {
    /// `tlb.walk_extra`, to one-thread Triad with 64 KiB and 2 MiB pages.
    Walk,
    /// `[energy]`, to the counts of measured programs; runs nothing.
    Power,
    /// `l2_timing.request_period`, to one-thread Triad from memory.
    RequestPeriod,
    /// `l2_timing.acknowledge`, to updates in place from L2.
    Acknowledge,
    /// `l2_timing.zero`, to stores into lines of L1 that DC ZVA clears before.
    Zero,
    /// `memory.read_efficiency`, to loads of twelve cores.
    ReadEfficiency,
    /// `memory.write_cost`, to copies and Triads of twelve cores.
    WriteCost,
    /// `ring.hop`, to the latency of a neighbour's memory.
    Hop,
    /// `ring.row_hop`, to the latency of memory of another row.
    RowHop,
    /// `ring.port_efficiency`, to Triad in a neighbour's memory.
    PortEfficiency,
    /// `ring.turnaround`, to 48 threads on pages of one CMG and on pages in turns.
    Turnaround,
    /// `hardware_barrier.latency`, to barriers of two to six threads.
    Barrier,
}

/// The key that [`walk`] fits.
const WALK_KEY: &str = "tlb.walk_extra";
/// Rows of `validation` with pages of 64 KiB and of 2 MiB.
const SMALL_PAGES: &str = "largepage-0031";
const LARGE_PAGES: &str = "largepage-0032";
/// Most simulations, apart from those at both ends; the cost of a page is nearly linear in the fitted number.
const TRIES: u32 = 6;

/// Fits, and prints all attempts.
///
/// # Errors
/// If rows are missing or a kernel cannot be run.
pub fn run(args: &Args) -> Result<(), String> {
    let fxscope = root().join(&args.fxscope);
    let fit = match args.what {
        Target::Walk => return walk(&fxscope),
        Target::Power => return power::run(),
        Target::RequestPeriod => rows::REQUEST_PERIOD,
        Target::Acknowledge => rows::ACKNOWLEDGE,
        Target::Zero => rows::ZERO,
        Target::RowHop => rows::ROW_HOP,
        Target::ReadEfficiency => rows::READ_EFFICIENCY,
        Target::WriteCost => rows::WRITE_COST,
        Target::Hop => rows::HOP,
        Target::PortEfficiency => rows::PORT_EFFICIENCY,
        Target::Turnaround => rows::TURNAROUND,
        Target::Barrier => rows::BARRIER,
    };
    fit.run(&fxscope, &root())
}

fn walk(fxscope: &Path) -> Result<(), String> {
    let suite = Suite::read(&root().join("validation"))?;
    let (small, large) = (Rate::of(&suite, SMALL_PAGES)?, Rate::of(&suite, LARGE_PAGES)?);
    let wanted = small.measured_seconds()? - large.measured_seconds()?;
    let without = kernel::count(fxscope, &large.run.program, &large.run.arguments, &large.run.options)?.seconds;
    println!("{:<15} {:>9} {:>14} {:>9}", WALK_KEY, "GB/s", "cycles a walk", "walks");
    let measured = small.row.measured;
    let simulated = large.value(without)?;
    let mut fit = Fit { fxscope, small, without, wanted };
    let best = fit.search()?;
    println!("{:<15} {measured:>9.2}", "measured");
    println!("pages of 2 MiB: {:.2} GB/s measured, {simulated:.2} simulated", large.row.measured);
    println!("{WALK_KEY} = {best}");
    Ok(())
}

/// A measured row that is work divided by time.
struct Rate<'a> {
    row: &'a Row,
    formula: &'a Formula,
    run: &'a Run,
}

/// The only name in the formula of a rate.
struct Seconds(f64);

impl Scope<String> for Seconds {
    fn name(&self, name: &String) -> Option<f64> {
        (name == "seconds").then_some(self.0)
    }

    fn threads(&self, _: Reduction, _: &Formula) -> Option<f64> {
        None
    }
}

impl<'a> Rate<'a> {
    fn of(suite: &'a Suite, name: &str) -> Result<Rate<'a>, String> {
        let mut rows = suite.families.iter().flat_map(|f| &f.rows);
        let (row, formula) = rows.find(|(row, _)| row.row == name).ok_or_else(|| format!("no row {name}"))?;
        if !row.is_fitted_to(WALK_KEY) {
            return Err(format!(
                "row {name} is not marked with {WALK_KEY} in its column 'fitted', so no fit may use it"
            ));
        }
        let run = suite.runs.get(&row.run).ok_or_else(|| format!("no run {}", row.run))?;
        Ok(Rate { row, formula, run })
    }

    /// Returns the rate of a run of this time.
    fn value(&self, seconds: f64) -> Result<f64, String> {
        self.formula.value(&Seconds(seconds)).ok_or_else(|| format!("{}: no rate", self.row.row))
    }

    /// Returns the time of the run on the machine.
    fn measured_seconds(&self) -> Result<f64, String> {
        Ok(self.value(1.0)? / self.row.measured)
    }
}

/// A search for the number of cycles with which small pages cost as much as on the machine.
struct Fit<'a> {
    fxscope: &'a Path,
    small: Rate<'a>,
    /// Simulated seconds with large pages.
    without: f64,
    /// Measured cost of small pages, seconds.
    wanted: f64,
}

impl Fit<'_> {
    fn search(&mut self) -> Result<f64, String> {
        let search = Search { range: (0.0, 1000.0), step: 1.0, tries: TRIES, enough: 0.0 };
        let found = search.zero(|extra| self.excess(extra))?;
        found.value.ok_or_else(|| "no value from 0 to 1000 gives the measured difference".to_owned())
    }

    /// Returns the simulated minus the measured cost of small pages, seconds.
    fn excess(&mut self, extra: f64) -> Result<f64, String> {
        let run = self.small.run;
        let options = format!("{} --set {WALK_KEY}={extra}", run.options);
        let counts = kernel::count(self.fxscope, &run.program, &run.arguments, &options)?;
        let cost = counts.seconds - self.without;
        let walks = counts.event("L2D_TLB_REFILL")?;
        let cycles = cost / counts.seconds * counts.cycles / walks;
        println!("{extra:<15} {:>9.2} {cycles:>14.1} {walks:>9}", self.small.value(counts.seconds)?);
        Ok(cost - self.wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fit_of_walks_refuses_a_row_that_is_not_marked() {
        let mut suite = Suite::read(&root().join("validation")).expect("rows");
        assert!([SMALL_PAGES, LARGE_PAGES].iter().all(|name| Rate::of(&suite, name).is_ok()));
        for row in suite.families.iter_mut().flat_map(|family| &mut family.rows) {
            row.0.fitted.clear();
        }
        let message = Rate::of(&suite, SMALL_PAGES).err().expect("unmarked");
        assert!(message.contains("largepage-0031 is not marked with tlb.walk_extra"), "{message}");
    }
}
