//! The fastest build: for the processor of this host, with profile-guided optimisation from runs of the kernels.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::root;

/// Training runs: programs of `kernels/prebuilt` with their arguments, and options of `fxscope run`. Long enough that
/// startup does not matter; they use each cache and memory, one core and twelve, vectors and integers.
const TRAINING: &[(&[&str], &str, &[&str])] = &[
    (&[], "triad-l1", &["n=2048", "passes=1000"]),
    (&[], "triad-l2", &["n=29056", "passes=40"]),
    (&[], "triad-mem", &["n=1048512", "passes=2"]),
    (&["--pages", "bss=64KiB"], "triad-mem", &["n=1048512", "passes=1"]),
    (&["--cpus", "12-23"], "triad-threads", &["n=1048512", "passes=1", "threads=12"]),
    (&[], "dgemm-tile", &["5x4", "128", "400"]),
    (&[], "sort", &["n=5000", "passes=2"]),
    (&["--mode", "functional"], "triad-l1", &["n=2048", "passes=10000"]),
    (&["--mode", "functional"], "sort", &["n=20000", "passes=4"]),
];

/// Builds `target/pgo/release/fxscope`.
///
/// # Errors
/// If a build or a training run fails, or the toolchain has no `llvm-profdata`.
pub fn run() -> Result<(), String> {
    let profdata = llvm_profdata()?;
    let folder = root().join("target/pgo");
    let (raw, merged) = (folder.join("counted"), folder.join("fxscope.profdata"));
    if raw.exists() {
        std::fs::remove_dir_all(&raw).map_err(|e| format!("{}: {e}", raw.display()))?;
    }
    let first = folder.join("first");
    build(&first, &format!("-Cprofile-generate={}", raw.display()))?;
    for (options, program, arguments) in TRAINING {
        train(&first.join("release/fxscope"), options, program, arguments)?;
    }
    succeed(Command::new(profdata).arg("merge").arg("-o").arg(&merged).arg(&raw))?;
    build(&folder, &format!("-Cprofile-use={}", merged.display()))?;
    println!("{}", folder.join("release/fxscope").display());
    Ok(())
}

/// Returns the toolchain's tool that merges profiles.
fn llvm_profdata() -> Result<PathBuf, String> {
    let rustc = |arguments: &[&str]| -> Result<String, String> {
        let output = Command::new("rustc").args(arguments).output().map_err(|e| format!("rustc: {e}"))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let host = rustc(&["-vV"])?.lines().find_map(|line| line.strip_prefix("host: ").map(str::to_owned));
    let host = host.ok_or("rustc -vV names no host")?;
    let tool = Path::new(rustc(&["--print", "sysroot"])?.trim()).join(format!("lib/rustlib/{host}/bin/llvm-profdata"));
    if tool.exists() {
        return Ok(tool);
    }
    Err(format!("{} is missing: install it with `rustup component add llvm-tools`", tool.display()))
}

fn build(target: &Path, flags: &str) -> Result<(), String> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root()).env("RUSTFLAGS", format!("-Ctarget-cpu=native {flags}"));
    succeed(cargo.args(["build", "--release", "-p", "fxscope", "--target-dir"]).arg(target))
}

fn train(fxscope: &Path, options: &[&str], program: &str, arguments: &[&str]) -> Result<(), String> {
    let program = root().join(format!("kernels/prebuilt/{program}.elf"));
    let mut command = Command::new(fxscope);
    command.args(["run", "--quiet"]).args(options).arg("--").arg(program).args(arguments);
    succeed(command.stdout(Stdio::null()))
}

/// Runs a command that must succeed.
///
/// # Errors
/// If it cannot be run, or fails.
pub(crate) fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{}: {e}", command.get_program().to_string_lossy()))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}")) }
}
