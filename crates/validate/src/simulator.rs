//! Runs of programs through `fxscope run`, each in a separate process.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fxscope_host::Helper;

use crate::{Counts, Libraries, Run};

/// Largest program, bytes.
const MAX_PROGRAM_BYTES: u64 = 4 << 30;

/// For each run, its counts, or why there are none.
pub type Results = BTreeMap<String, Result<Counts, String>>;

/// Makes the runs of a suite, each in a separate process: the working folder and the program's path, which belong to the
/// process, affect the contents of the program's stack; options are those of the command line; and a run that exceeds the
/// host's memory ends alone.
#[derive(Clone, Debug)]
pub struct Simulator {
    /// The `fxscope` executable.
    pub program: PathBuf,
    /// The folder of the prebuilt kernels.
    pub kernels: PathBuf,
    /// A program that calls libraries; runs that need it fail without.
    pub libraries: Option<Libraries>,
}

/// A program, and the folder of its libraries if it has any.
struct Executable {
    path: PathBuf,
    sysroot: Option<PathBuf>,
}

impl Executable {
    /// Returns its folder and its name there.
    fn parts(&self) -> (&Path, &OsStr) {
        (self.path.parent().unwrap_or(Path::new(".")), self.path.file_name().unwrap_or_default())
    }
}

impl Simulator {
    /// Makes a run and returns its counts. The run ends early if `stopped` returns true.
    ///
    /// # Errors
    /// If the program cannot be run, fails, or was stopped.
    pub fn counts(&self, run: &Run, stopped: &dyn Fn() -> bool) -> Result<Counts, String> {
        let counts = self.executable(run).and_then(|program| self.simulate(run, &program, stopped));
        counts.map_err(|e| format!("run '{}': {e}", run.run))
    }

    /// Returns everything that a run's counts depend on, apart from the simulator.
    ///
    /// # Errors
    /// If the program or the folder of its libraries cannot be read.
    pub fn key(&self, run: &Run) -> Result<Vec<Vec<u8>>, String> {
        let failed = |e: String| format!("run '{}': {e}", run.run);
        let program = self.executable(run).map_err(failed)?.path;
        let program = fxscope_host::read(&program, MAX_PROGRAM_BYTES).map_err(|e| failed(e.to_string()))?;
        let mut key = vec![program, run.arguments.clone().into_bytes(), run.options.clone().into_bytes()];
        if let Some(libraries) = self.libraries_of(run) {
            key.push(libraries.versions().map_err(failed)?);
        }
        Ok(key)
    }

    /// Returns what a run executes.
    fn executable(&self, run: &Run) -> Result<Executable, String> {
        match self.libraries_of(run) {
            Some(libraries) => {
                let (path, sysroot) = (libraries.program().to_owned(), Some(libraries.root().to_owned()));
                Ok(Executable { path, sysroot })
            }
            None if run.needs_libraries() => {
                Err("its libraries are missing; programs/libraries.sh fetches them".to_owned())
            }
            None => Ok(Executable { path: self.kernels.join(format!("{}.elf", run.program)), sysroot: None }),
        }
    }

    /// Returns the libraries that a run calls.
    fn libraries_of(&self, run: &Run) -> Option<&Libraries> {
        self.libraries.as_ref().filter(|libraries| libraries.is_for(run))
    }

    fn simulate(&self, run: &Run, program: &Executable, stopped: &dyn Fn() -> bool) -> Result<Counts, String> {
        let json = tempfile::NamedTempFile::new().map_err(|e| format!("cannot make a temporary file: {e}"))?;
        let mut command = Command::new(&self.program);
        command.args(["run", "--quiet", "--json"]).arg(json.path()).args(run.options.split_whitespace());
        if let Some(sysroot) = &program.sysroot {
            command.arg("--sysroot").arg(std::path::absolute(sysroot).map_err(|e| e.to_string())?);
        }
        let (folder, name) = program.parts();
        // The end of the program's stack must not depend on the caller's environment or the folder's name.
        command.env_clear().current_dir(folder);
        command
            .arg("--")
            .arg(Path::new(".").join(name))
            .args(run.arguments.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let failed = |e| format!("{}: {e}", self.program.display());
        let mut simulation = Helper::start_apart(command).map_err(failed)?;
        let status = simulation.wait_unless(stopped).map_err(failed)?;
        let status = status.ok_or("was not run: a signal ended the validation")?;
        if !status.success() {
            let said = simulation.last_words();
            let last = said.lines().rfind(|line| !line.is_empty()).unwrap_or("it printed nothing");
            return Err(format!("{} ended with {status}: {last}", program.path.display()));
        }
        let text = std::fs::read_to_string(json.path()).map_err(|e| format!("{}: {e}", json.path().display()))?;
        Counts::parse(&text)
    }
}
