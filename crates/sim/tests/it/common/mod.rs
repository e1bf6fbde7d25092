//! What the tests share: programs, and runs of them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use fxscope_aarch64::{Engine, Interpreter};
use fxscope_counts::Signals;
use fxscope_linux::{Access, Guest, Setup, Stdio};
use fxscope_sim::part::PartPlan;
use fxscope_sim::{Control, Follow, Mode, Options, Outcome, QUANTUM, Simulation, SpinLoops, page_sizes, platform};

#[path = "../../../../linux/tests/it/common/kept.rs"]
pub mod kept;
#[path = "../../../../linux/tests/it/common/once.rs"]
mod once;
pub mod single_step;

use once::once;

/// A prebuilt program.
pub fn kernel(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/prebuilt").join(name)
}

/// A program among those that the guest is tested with, built.
pub fn build(source: &str, flags: &[&str]) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(source).with_extension("elf");
    once(&format!("{source} {flags:?}"), || compile(&target, source, flags))
}

fn compile(target: &Path, source: &str, flags: &[&str]) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../linux/tests/programs").join(source);
    // Tests that run at the same time may build the same program: each into a file of its own, then a rename.
    let own = target.with_extension(std::process::id().to_string());
    let compiler = "aarch64-linux-gnu-gcc";
    let mut command = Command::new(compiler);
    command.args(["-mcpu=a64fx", "-static", "-O3"]).args(flags).arg("-o").args([&own, &path]).arg("-lm");
    let output = command.output().unwrap_or_else(|error| {
        let packages = "gcc-aarch64-linux-gnu libc6-dev-arm64-cross";
        panic!("cannot start {compiler} ({error}): run `apt-get install {packages}`, then the test again")
    });
    assert!(output.status.success(), "{compiler} {source}: {}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(&own, target).expect("rename program");
    target.to_owned()
}

/// A run: a program with its arguments and environment, on the machine that the tests use.
#[derive(Clone)]
pub struct Run {
    pub program: PathBuf,
    pub arguments: &'static str,
    /// Settings of the environment, with spaces between them.
    pub environment: &'static str,
    pub mode: Mode,
    pub spin: SpinLoops,
    pub max_instructions: Option<u64>,
    /// The plan of a sampled run.
    pub sample: Option<&'static str>,
    /// The part that is timed.
    pub part: Option<PartPlan>,
    /// Keys of the machine with values of their own.
    pub settings: &'static [(&'static str, &'static str)],
}

impl Run {
    /// A timed run.
    pub fn new(program: PathBuf, arguments: &'static str) -> Run {
        let (mode, spin) = (Mode::Timing, SpinLoops::Fast);
        let (sample, part) = (None, None);
        Run { program, arguments, environment: "", mode, spin, max_instructions: None, sample, part, settings: &[] }
    }

    pub fn options(&self) -> Options {
        let settings: Vec<_> = self.settings.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        Options {
            spec: Arc::new(fxscope_machine::load("a64fx", &settings).expect("built in")),
            mode: self.mode,
            max_instructions: self.max_instructions,
            quantum: QUANTUM,
            host_threads: None,
            follow: Follow::All,
            spin: self.spin,
            interval_ns: Some(20_000),
            stack_ns: None,
            interval_region: None,
            sample: self.sample.map(|plan| plan.parse().expect("a plan")),
            precision: fxscope_sampling::Precision::default(),
            part: self.part.clone(),
            no_progress_ns: None,
        }
    }

    /// The guest, before it runs.
    pub fn guest(&self, stdio: Stdio) -> Guest {
        let spec = self.options().spec;
        let words = |text: &str| text.split_whitespace().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
        let mut machine = platform(&spec, 1 << 32);
        machine.page_sizes = page_sizes(&spec, &[]);
        let name = self.program.file_name().and_then(OsStr::to_str).expect("UTF-8 name");
        let mut setup = Setup::new(machine, name).expect("descriptors");
        setup.args.extend(words(self.arguments));
        setup.env = words(self.environment);
        setup.access = Access { write: Vec::new(), ..Access::standard() };
        setup.stdio = stdio;
        Guest::open(&self.program, setup).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The simulation, before it runs, with standard output in `output`.
    pub fn simulation<E: Engine>(&self, output: &File) -> Simulation<E> {
        Simulation::new(self.guest(streams(output)), self.options())
    }
}

/// Standard streams of which the output goes to `output`.
pub fn streams(output: &File) -> Stdio {
    let null = || File::options().read(true).write(true).open("/dev/null").expect("null device");
    Stdio { input: null().into(), output: output.try_clone().expect("duplicate").into(), error: null().into() }
}

/// What is in a file.
pub fn text(mut file: File) -> String {
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("read");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What a run gives, and its output.
pub fn given(run: &Run) -> (Outcome, String) {
    let output = tempfile::tempfile().expect("temporary file");
    let outcome = run.simulation::<Interpreter>(&output).run(&mut |_| Control::Continue);
    (outcome, text(output))
}

/// The counts of all threads of a region.
pub fn counts(outcome: &Outcome, region: usize) -> Signals {
    let mut all = Signals::default();
    outcome.regions[region].threads.values().for_each(|counted| all.merge(counted.signals()));
    all
}
