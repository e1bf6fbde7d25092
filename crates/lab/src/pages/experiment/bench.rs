//! Environment of experiments: a machine, the programs, and runs of them on all of the host's cores.

use fxscope_machine::Spec;
use fxscope_machine::settings::size;
use fxscope_record::{Finish, Region, Run};
use fxscope_session::{Scenario, check_page_size, machine_memory};

use super::{Measured, Options};
use crate::{Capture, Error, Progress, Runner};

/// Environment of an experiment.
pub struct Bench<'a> {
    /// The machine, with the settings of all runs.
    pub spec: Spec,
    /// Page sizes to compare, ascending.
    pub sizes: Vec<u64>,
    /// Size of the memory range of the arrays.
    pub span: u64,
    /// Number of draws or runs, if given.
    pub draws: Option<u32>,
    /// Settings of the machine.
    pub set: Vec<(String, String)>,
    measured: &'static Measured,
    machine: String,
    programs: std::path::PathBuf,
    runner: Runner<'a>,
}

/// A run to make.
#[derive(Default)]
pub struct Trial {
    /// The program, without its folder and `.elf`.
    pub program: &'static str,
    pub arguments: Vec<String>,
    /// The page size of its data.
    pub page: u64,
    /// The segments that have this page size.
    pub segments: &'static [&'static str],
    /// Variables of its environment.
    pub environment: Vec<(&'static str, &'static str)>,
}

/// Counts of a region of a run.
#[derive(Clone, Copy)]
pub struct Counted {
    pub cycles: f64,
    /// Loads and stores that miss all TLBs, per 100.
    pub rate: f64,
}

impl<'a> Bench<'a> {
    /// Checks the options; defaults are those of the publication.
    pub fn new(options: &Options, measured: &'static Measured, progress: &'a dyn Progress) -> Result<Bench<'a>, Error> {
        let machine = options.machine.clone().unwrap_or_else(|| measured.machine.to_owned());
        let spec = fxscope_machine::load(&machine, &options.settings)?;
        let mut sizes = if options.sizes.is_empty() { measured.sizes.to_vec() } else { options.sizes.clone() };
        sizes.sort_unstable();
        sizes.dedup();
        sizes.iter().try_for_each(|&bytes| check_page_size(&spec, bytes)).map_err(|e| format!("--sizes: {e}"))?;
        if !options.programs.is_dir() {
            let shown = options.programs.display();
            return Err(format!(
                "--programs {shown}: not a folder; name the sources' kernels/prebuilt, or none for the programs of fxscope"
            )
            .into());
        }
        Ok(Bench {
            spec,
            sizes,
            span: options.span,
            draws: options.draws,
            set: options.settings.clone(),
            measured,
            machine,
            programs: options.programs.clone(),
            runner: Runner::new(options.jobs, progress),
        })
    }

    /// Returns whether machine and page sizes are those of the published figures.
    pub fn is_as_measured(&self) -> bool {
        let ends = |sizes: &[u64]| (sizes.first().copied(), sizes.last().copied());
        self.spec.name == self.measured.machine && ends(&self.sizes) == ends(self.measured.sizes)
    }

    /// Returns the smallest and the largest page size.
    pub fn ends(&self) -> Result<(u64, u64), Error> {
        match (self.sizes.first(), self.sizes.last()) {
            (Some(&first), Some(&last)) if first < last => Ok((first, last)),
            _ => Err("--sizes: give at least two: this experiment compares them".into()),
        }
    }

    /// Fails if the machine does not have `bytes` of memory, for `what`; `option` is the option that reduces it.
    pub fn has_memory(&self, bytes: u64, what: &str, option: &str) -> Result<(), Error> {
        let all = machine_memory(&self.spec);
        if bytes <= all {
            return Ok(());
        }
        Err(format!(
            "{what} takes {} of memory and {} has {}; reduce it with {option}, or increase the memory with --set \
             topology.node_bytes=SIZE",
            size(bytes),
            self.spec.name,
            size(all),
        )
        .into())
    }

    /// Makes all runs; results are in their order.
    pub fn run(&self, trials: &[Trial]) -> Result<Vec<Run>, Error> {
        let name = |trial: &Trial| format!("{} {}", trial.program, trial.arguments.join(" "));
        let each = |trial: &Trial| self.simulate(trial).map_err(|e| format!("{}: {e}", name(trial)).into());
        self.runner.batch(trials, name, each)?.into_iter().collect()
    }

    fn simulate(&self, trial: &Trial) -> Result<Run, Error> {
        let scenario = Scenario {
            settings: self.settings(trial),
            ..Scenario::new(self.programs.join(format!("{}.elf", trial.program)))
                .with_machine(&self.machine)
                .with_arguments(&trial.arguments)
                .with_variables(&trial.environment)
        };
        let made = self.runner.run_captured(&scenario, Capture::OutputAndError)?;
        match made.run.finish {
            Finish::Exited(0) => Ok(made.run),
            _ => {
                let said = made.last_line.unwrap_or_else(|| "it printed nothing".to_owned());
                Err(format!("the program failed: {said}").into())
            }
        }
    }

    /// Returns the machine's settings for a run; those given by the user override the experiment's.
    fn settings(&self, trial: &Trial) -> Vec<(String, String)> {
        let page = size(trial.page);
        let pages = trial.segments.iter().map(|segment| (format!("pages.{segment}"), page.clone()));
        let served = (!self.spec.tlb.l2_only_sizes.is_empty()).then(|| ("tlb.l2_only_sizes".to_owned(), page.clone()));
        pages.chain(served).chain(self.set.iter().cloned()).collect()
    }

    /// Returns the counts of a region of a run with one thread.
    pub fn counted(&self, run: &Run, region: &str) -> Result<Counted, Error> {
        let region = self::region(run, region)?;
        let event = |name: &str| region.count(0, name).map_or(f64::NAN, |count| count as f64);
        let rate = 100.0 * event("L2D_TLB_REFILL") / (event("LD_SPEC") + event("ST_SPEC"));
        Ok(Counted { cycles: event("CPU_CYCLES"), rate })
    }

    /// Returns the seconds of a region: those of the slowest thread.
    pub fn seconds(&self, run: &Run, name: &str) -> Result<f64, Error> {
        let region = region(run, name)?;
        let cycles = (0..region.threads.len()).filter_map(|thread| region.count(thread, "CPU_CYCLES")).max();
        Ok(cycles.unwrap_or(0) as f64 / self.spec.clock.core_hz as f64)
    }

    /// Converts cycles to milliseconds.
    pub fn milliseconds(&self, cycles: f64) -> f64 {
        1e3 * cycles / self.spec.clock.core_hz as f64
    }
}

fn region<'r>(run: &'r Run, name: &str) -> Result<&'r Region, Error> {
    let region = run.regions.iter().find(|region| region.name == name);
    region.ok_or_else(|| format!("the program has not marked its region '{name}'").into())
}

/// Returns the count of an event in a region of a run with one thread.
pub fn event(run: &Run, name: &str, event: &str) -> Result<f64, Error> {
    let count = region(run, name)?.count(0, event);
    count.map(|count| count as f64).ok_or_else(|| format!("the machine does not count {event}").into())
}

#[cfg(test)]
mod tests {
    use super::super::A64FX;
    use super::*;
    use crate::Silent;

    #[test]
    fn published_figures_are_those_of_one_machine_and_its_page_sizes() {
        let as_measured = |machine: Option<&str>, sizes: &[u64]| {
            let mut options = Options::new(".");
            (options.machine, options.sizes) = (machine.map(str::to_owned), sizes.to_vec());
            Bench::new(&options, &A64FX, &Silent).expect("it has these pages").is_as_measured()
        };
        assert!(as_measured(None, &[]));
        assert!(as_measured(Some("a64fx"), &[2 << 20, 64 << 10]));
        assert!(!as_measured(None, &[64 << 10, 512 << 20]));
        assert!(!as_measured(Some("k-computer"), &[4 << 20, 32 << 20]));
    }
}
