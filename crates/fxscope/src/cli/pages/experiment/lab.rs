//! Where experiments are made: a machine, the programs, and runs of them on all of the host's cores.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use fxscope::linux::Stdio;
use fxscope::machine::Spec;
use fxscope::machine::settings::size;
use fxscope::record::{Finish, Region, Run};
use fxscope::{Control, Request, Session, check_page_size, machine_memory};
use rayon::prelude::*;

use super::super::super::Failure;
use super::super::super::progress::bar;
use super::{Args, Measured};

/// What experiments are made with.
pub(super) struct Lab {
    /// The machine, with what is set for all runs.
    pub spec: Spec,
    /// Page sizes to compare, ascending.
    pub sizes: Vec<u64>,
    /// Memory that arrays lie in.
    pub span: u64,
    /// Draws or runs asked for.
    pub draws: Option<u32>,
    machine: String,
    set: Vec<(String, String)>,
    programs: PathBuf,
    jobs: usize,
}

/// A run to be made.
#[derive(Default)]
pub(super) struct Trial {
    /// The program, without its folder and `.elf`.
    pub program: &'static str,
    pub arguments: Vec<String>,
    /// The page size of its data.
    pub page: u64,
    /// The segments that have it.
    pub segments: &'static [&'static str],
    /// Variables of its environment.
    pub environment: Vec<(&'static str, &'static str)>,
}

/// What a part of a run counted.
#[derive(Clone, Copy)]
pub(super) struct Counted {
    pub cycles: f64,
    /// Of 100 loads and stores, those that miss all TLBs.
    pub rate: f64,
}

impl Lab {
    /// Checks what was asked for; the rest is as it was measured.
    pub fn new(args: &Args, measured: &Measured) -> Result<Lab, Failure> {
        let machine = args.machine.clone().unwrap_or_else(|| measured.machine.to_owned());
        let spec = fxscope::machine::load(&machine, &args.set)?;
        let mut sizes = if args.sizes.is_empty() { measured.sizes.to_vec() } else { args.sizes.clone() };
        sizes.sort_unstable();
        sizes.dedup();
        sizes.iter().try_for_each(|&bytes| check_page_size(&spec, bytes)).map_err(|e| format!("--sizes: {e}"))?;
        if !args.programs.is_dir() {
            let shown = args.programs.display();
            return Err(format!(
                "--programs {shown}: not a folder; run it in the folder of fxscope's sources, or name their kernels/prebuilt"
            )
            .into());
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Lab {
            spec,
            sizes,
            span: args.span,
            draws: args.draws,
            machine,
            set: args.set.clone(),
            programs: args.programs.clone(),
            jobs: args.jobs.map_or(cores, usize::from),
        })
    }

    /// The smallest and the largest page size.
    pub fn ends(&self) -> Result<(u64, u64), Failure> {
        match (self.sizes.first(), self.sizes.last()) {
            (Some(&first), Some(&last)) if first < last => Ok((first, last)),
            _ => Err("--sizes: give two at least: this experiment compares them".to_owned().into()),
        }
    }

    /// Checks that the machine has `bytes` of memory, for `what`; `option` is what asks for less.
    pub fn has_memory(&self, bytes: u64, what: &str, option: &str) -> Result<(), Failure> {
        let all = machine_memory(&self.spec);
        if bytes <= all {
            return Ok(());
        }
        Err(format!(
            "{what} takes {} of memory and {} has {}; ask for less with {option}, or give it more with --set \
             topology.node_bytes=SIZE",
            size(bytes),
            self.spec.name,
            size(all),
        )
        .into())
    }

    /// Makes all runs; the results are in their order.
    pub fn run(&self, trials: &[Trial]) -> Result<Vec<Run>, Failure> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.jobs).build()?;
        let bar = bar(trials.len() as u64);
        let each = |trial: &Trial| {
            let run = self.simulate(trial);
            bar.inc(1);
            run.map_err(|e| format!("{} {}: {e}", trial.program, trial.arguments.join(" ")))
        };
        let runs = pool.install(|| trials.par_iter().with_max_len(1).map(each).collect::<Result<Vec<Run>, String>>());
        bar.finish_and_clear();
        Ok(runs?)
    }

    fn simulate(&self, trial: &Trial) -> Result<Run, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let settings = self.settings(trial);
        let spec = fxscope::machine::load(&self.machine, &settings).map_err(|e| text(&e))?;
        let program = self.programs.join(format!("{}.elf", trial.program));
        let said = tempfile::NamedTempFile::new().map_err(|e| format!("no temporary file: {e}"))?;
        let stream = || said.reopen().map(Into::into).map_err(|e| text(&e));
        let input = File::open("/dev/null").map_err(|e| text(&e))?.into();
        let request = Request {
            settings,
            arguments: trial.arguments.iter().map(Into::into).collect(),
            environment: trial.environment.iter().map(|&(name, value)| (name.into(), value.into())).collect(),
            stdio: Some(Stdio { input, output: stream()?, error: stream()? }),
            ..Request::new(Arc::new(spec), program)
        };
        let run = Session::contained(request, |session| session.run(&mut |_| Control::Continue));
        let run = run.map_err(|e| text(&e))?;
        match run.finish {
            Finish::Exited(0) => Ok(run),
            _ => {
                let said = std::fs::read_to_string(said.path()).unwrap_or_default();
                Err(format!("the program failed: {}", said.lines().last().unwrap_or("it said nothing")))
            }
        }
    }

    /// The machine's settings for a run: those that were given count.
    fn settings(&self, trial: &Trial) -> Vec<(String, String)> {
        let page = size(trial.page);
        let pages = trial.segments.iter().map(|segment| (format!("pages.{segment}"), page.clone()));
        let served = (!self.spec.tlb.l2_beside.is_empty()).then(|| ("tlb.l2_beside".to_owned(), page.clone()));
        pages.chain(served).chain(self.set.iter().cloned()).collect()
    }

    /// What one region of a run with one thread counted.
    pub fn counted(&self, run: &Run, region: &str) -> Result<Counted, Failure> {
        let region = self::region(run, region)?;
        let event = |name: &str| region.count(0, name).map_or(f64::NAN, |count| count as f64);
        let rate = 100.0 * event("L2D_TLB_REFILL") / (event("LD_SPEC") + event("ST_SPEC"));
        Ok(Counted { cycles: event("CPU_CYCLES"), rate })
    }

    /// Seconds that a region took: those of the thread that took longest.
    pub fn seconds(&self, run: &Run, name: &str) -> Result<f64, Failure> {
        let region = region(run, name)?;
        let cycles = (0..region.threads.len()).filter_map(|thread| region.count(thread, "CPU_CYCLES")).max();
        Ok(cycles.unwrap_or(0) as f64 / self.spec.clock.core_hz as f64)
    }

    /// Milliseconds of so many cycles.
    pub fn milliseconds(&self, cycles: f64) -> f64 {
        1e3 * cycles / self.spec.clock.core_hz as f64
    }
}

fn region<'r>(run: &'r Run, name: &str) -> Result<&'r Region, Failure> {
    let region = run.regions.iter().find(|region| region.name == name);
    region.ok_or_else(|| format!("the program has not marked its region '{name}'").into())
}

/// What a region of a run with one thread counted of an event.
pub(super) fn event(run: &Run, name: &str, event: &str) -> Result<f64, Failure> {
    let count = region(run, name)?.count(0, event);
    count.map(|count| count as f64).ok_or_else(|| format!("the machine does not count {event}").into())
}
