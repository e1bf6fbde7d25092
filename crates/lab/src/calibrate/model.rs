//! Benchmarks in the simulator.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use fxscope_session::{HostAccess, Scenario};

use super::PROGRAM;
use super::measurements::{Host, Measurements, Run};
use super::tables::Benchmark;
use crate::{Cache, Capture, Error, Progress, Runner};

/// Settings of a machine, by key.
pub(super) type Settings = Vec<(String, String)>;

/// Runs the measuring program in the simulator, on a machine with the pages and vectors of the measured one.
pub(super) struct Model<'a> {
    folder: tempfile::TempDir,
    machine: String,
    settings: Settings,
    cache: &'a Cache,
    jobs: Option<usize>,
    progress: StopOnly<'a>,
    files: AtomicU64,
}

/// Passes on requests to stop, and nothing else: a fit makes many short runs.
struct StopOnly<'a>(&'a dyn Progress);

impl Progress for StopOnly<'_> {
    fn stop_requested(&self) -> bool {
        self.0.stop_requested()
    }
}

impl<'a> Model<'a> {
    /// Returns a model of `machine` with pages and vectors as on `host`.
    pub(super) fn new(
        machine: &str,
        host: &Host,
        cache: &'a Cache,
        jobs: Option<usize>,
        progress: &'a dyn Progress,
    ) -> Result<Model<'a>, Error> {
        let folder = tempfile::tempdir().map_err(|e| format!("cannot make a temporary folder: {e}"))?;
        std::fs::write(folder.path().join("collect.elf"), PROGRAM)?;
        let number = |key: &str, value: u64| (key.to_owned(), value.to_string());
        let settings = vec![number("pages.normal", host.page_bytes), number("clock.vector_bits", host.vector_bits)];
        let (machine, progress, files) = (machine.to_owned(), StopOnly(progress), AtomicU64::new(0));
        Ok(Model { folder, machine, settings, cache, jobs, progress, files })
    }

    /// Returns the results of benchmarks on the machine with further settings, by name.
    pub(super) fn run(&self, benchmarks: &[&Benchmark], more: &Settings) -> Result<BTreeMap<String, Run>, Error> {
        let runner = Runner::new(self.jobs, &self.progress);
        let name = |benchmark: &&Benchmark| benchmark.name.clone();
        let runs = runner.batch(benchmarks, name, |benchmark| self.run_one(runner, benchmark, more))?;
        runs.into_iter().map(|run| run.map(|run| (run.benchmark.clone(), run))).collect()
    }

    fn run_one(&self, runner: Runner<'_>, benchmark: &Benchmark, more: &Settings) -> Result<Run, Error> {
        let settings: Settings = self.settings.iter().chain(more).cloned().collect();
        let key = || {
            let spec = fxscope_machine::load(&self.machine, &settings)?;
            let words = [&benchmark.name, &benchmark.loop_name, &benchmark.arguments, &benchmark.threads];
            let machine = fxscope_machine::hash(&spec).into_bytes();
            Ok(std::iter::once(machine).chain(words.map(|word| word.clone().into_bytes())).collect())
        };
        self.cache.get_or(key, || self.simulate(runner, benchmark, settings.clone()))
    }

    fn simulate(&self, runner: Runner<'_>, benchmark: &Benchmark, settings: Settings) -> Result<Run, Error> {
        let file = self.result_file();
        let name = &benchmark.name;
        let arguments = ["repeat=1".to_owned(), format!("only={name}"), format!("out={}", file.display())];
        let mut scenario = Scenario::new(self.folder.path().join("collect.elf")).with_arguments(arguments);
        scenario.machine.clone_from(&self.machine);
        scenario.settings = settings;
        // Pages as those of a program without the vendor's library, allocated on demand.
        scenario.variables = vec![("XOS_MMM_L_HPAGE_TYPE".into(), "none".into())];
        scenario.access =
            HostAccess { sandbox: true, write: vec![self.folder.path().to_owned()], ..HostAccess::default() };
        let made = runner.run_captured(&scenario, Capture::Error)?;
        let said = made.last_line.unwrap_or_default();
        let read = Measurements::read(&file).map_err(|e| format!("not simulated: {said}: {e}"))?;
        let _ = std::fs::remove_file(&file);
        read.of(benchmark).cloned().map_err(|why| format!("not simulated: {why}").into())
    }

    fn result_file(&self) -> PathBuf {
        self.folder.path().join(format!("{}.json", self.files.fetch_add(1, Ordering::Relaxed)))
    }
}
