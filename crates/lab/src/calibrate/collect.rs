//! Runs the measuring program on this computer, or writes it to a file for another one.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use fxscope_host::{Found, OutputFile};

use super::PROGRAM;
use super::tables::benchmarks;
use crate::{Error, Progress};

/// Measures this computer and writes the results to `output`, all of them or none. Each benchmark is measured `repeat` times; `only`
/// selects some by name, all if it is empty.
///
/// # Errors
/// If there is no such benchmark, this computer is not an AArch64 one, the program cannot run or cannot measure, or a stop was
/// requested.
pub fn collect(output: &Path, repeat: u32, only: &[String], progress: &dyn Progress) -> Result<(), Error> {
    if let Some(unknown) = only.iter().find(|name| benchmarks().iter().all(|benchmark| benchmark.name != **name)) {
        return Err(format!("no benchmark is called '{unknown}'; `fxscope calibrate list` shows all").into());
    }
    if std::env::consts::ARCH != "aarch64" {
        return Err("this computer is not an A64FX: its processor is not an AArch64 one. `fxscope calibrate collect --program collect.elf` \
             writes the measuring program, a static executable; copy it to an A64FX, run `./collect.elf out=a64fx.json` there, and \
             give the file to `fxscope calibrate fit`"
            .into());
    }
    let folder = tempfile::tempdir().map_err(|e| format!("cannot make a temporary folder: {e}"))?;
    let program = folder.path().join("collect.elf");
    write_program(&program)?;
    let mut command = Command::new(&program);
    command.arg(format!("repeat={repeat}")).arg(format!("out={}", output.display()));
    if !only.is_empty() {
        command.arg(format!("only={}", only.join(",")));
    }
    measure(command, progress)
}

/// Runs the measuring program, whose messages become messages of `progress`.
fn measure(mut command: Command, progress: &dyn Progress) -> Result<(), Error> {
    let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = started.map_err(|e| format!("cannot run the measuring program: {e}"))?;
    let mut last = String::new();
    for line in child.stderr.take().map(BufReader::new).into_iter().flat_map(BufReader::lines) {
        last = line?;
        progress.message(&last);
        if progress.stop_requested() {
            child.kill()?;
            child.wait()?;
            return Err(Error::Stopped);
        }
    }
    match child.wait()? {
        status if status.success() => Ok(()),
        status => Err(format!("the measuring program ended with {status}: {last}; nothing is written").into()),
    }
}

/// Writes the measuring program to a file, which is replaced as a whole and can be executed.
///
/// # Errors
/// If the file cannot be written.
pub fn write_program(path: &Path) -> Result<(), Error> {
    let failed = |e: std::io::Error| Error::Request(format!("{}: {}", path.display(), fxscope_host::write_error(&e)));
    let Found::File(file) = OutputFile::find(path).map_err(failed)? else {
        return Err(format!("{}: is not a file; give the path of one", path.display()).into());
    };
    let write = |file: &mut std::fs::File| {
        file.write_all(PROGRAM)?;
        file.set_permissions(std::fs::Permissions::from_mode(0o755))
    };
    file.replace(write).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Listener {
        heard: Mutex<Vec<String>>,
        stop: bool,
    }

    impl Progress for Listener {
        fn message(&self, text: &str) {
            self.heard.lock().expect("no test has panicked").push(text.to_owned());
        }

        fn stop_requested(&self) -> bool {
            self.stop
        }
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn messages_of_the_program_are_passed_on_and_its_failure_is_explained() {
        let listener = Listener::default();
        measure(shell("echo one >&2; echo two >&2"), &listener).expect("it succeeds");
        assert_eq!(*listener.heard.lock().expect("no panic"), ["one", "two"]);
        let error = measure(shell("echo no SVE >&2; exit 2"), &listener).expect_err("it fails");
        assert!(error.to_string().contains("no SVE; nothing is written"), "{error}");
    }

    #[test]
    fn a_stop_ends_the_program() {
        let listener = Listener { stop: true, ..Listener::default() };
        let stopped = measure(shell("echo one >&2; exec sleep 60"), &listener);
        assert!(matches!(stopped, Err(Error::Stopped)));
    }

    #[test]
    fn the_program_is_written_as_an_executable_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("collect.elf");
        write_program(&file).expect("writable");
        assert_eq!(std::fs::read(&file).expect("readable"), PROGRAM);
        assert_eq!(file.metadata().expect("a file").permissions().mode() & 0o111, 0o111);
        assert!(write_program(folder.path()).is_err(), "a folder");
    }
}
