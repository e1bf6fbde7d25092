//! Runs of programs, several at a time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use fxscope_host::Helper;
use rayon::prelude::*;

use crate::{Cache, Counts, Run, Suite};

/// How often a run is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// How runs are made.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The `fxscope` executable.
    pub simulator: PathBuf,
    /// The folder of the prebuilt kernels.
    pub programs: PathBuf,
    /// Where counts are kept.
    pub cache: Cache,
    /// Runs at a time.
    pub jobs: usize,
    /// Whether to end now; runs that go on are ended then.
    pub stopped: fn() -> bool,
}

/// By the name of a run: what it counted, or why it did not.
pub type Results = BTreeMap<String, Result<Counts, String>>;

/// Makes the runs that a suite's rows need; long ones come first. `done` is told the name of each that is there.
///
/// # Errors
/// When so many threads cannot be had.
pub fn execute(suite: &Suite, execution: &Execution, done: &(dyn Fn(&str) + Sync)) -> Result<Results, String> {
    let mut runs = suite.needed();
    runs.sort_by_key(|run| std::cmp::Reverse(run.suite));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(execution.jobs).build().map_err(|e| e.to_string())?;
    // One by one from the head of the list, so that no thread has a share of its own that lasts longer than all others.
    let each = |run: &Run| {
        let counts = execution.counts(run).map_err(|e| format!("run '{}': {e}", run.run));
        done(&run.run);
        (run.run.clone(), counts)
    };
    Ok(pool.install(|| runs.par_iter().with_max_len(1).map(|run| each(run)).collect()))
}

impl Execution {
    /// What a run counts: kept, or counted now.
    fn counts(&self, run: &Run) -> Result<Counts, String> {
        let program = self.programs.join(format!("{}.elf", run.program));
        let file = self.cache.file(run, &program)?;
        if let Some(counts) = file.as_deref().and_then(Cache::load) {
            return Ok(counts);
        }
        let counts = self.simulate(run, &program)?;
        if let Some(file) = file {
            Cache::store(&file, &counts)?;
        }
        Ok(counts)
    }

    fn simulate(&self, run: &Run, program: &Path) -> Result<Counts, String> {
        let json = tempfile::NamedTempFile::new().map_err(|e| format!("no temporary file: {e}"))?;
        let mut command = Command::new(&self.simulator);
        command.args(["run", "--quiet", "--json"]).arg(json.path()).args(run.options.split_whitespace());
        // What a program finds on its stack decides where that ends: neither the caller's environment nor the folder's
        // name may.
        command.env_clear().current_dir(&self.programs);
        command
            .arg("--")
            .arg(format!("./{}.elf", run.program))
            .args(run.arguments.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let failed = |e| format!("{}: {e}", self.simulator.display());
        let mut simulation = Helper::start_apart(command).map_err(failed)?;
        let status = loop {
            if (self.stopped)() {
                return Err("was not made: a signal ended the validation".to_owned());
            }
            if let Some(status) = simulation.ended_within(LOOK).map_err(failed)? {
                break status;
            }
        };
        if !status.success() {
            let said = simulation.last_words();
            let last = said.lines().rfind(|line| !line.is_empty()).unwrap_or("it said nothing");
            return Err(format!("{} ended with {status}: {last}", program.display()));
        }
        let text = std::fs::read_to_string(json.path()).map_err(|e| format!("{}: {e}", json.path().display()))?;
        Counts::parse(&text)
    }
}
