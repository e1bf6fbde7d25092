//! Shared by the tests: a machine to run on, the cross compilers, and runs under fxscope and under QEMU.

// Each test file uses a different part of this.
#![allow(dead_code)]

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio as Stream};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use fxscope_linux::{Access, Code, End, Guest, Platform, Refusal, Setup, Stdio};

pub mod kept;
mod once;
pub mod platform;
use once::once;
pub use platform::platform;

/// How a program is run.
pub struct Run<'a> {
    pub args: &'a [&'a str],
    pub env: &'a [&'a str],
    pub input: &'a [u8],
    pub vector_bytes: usize,
    pub max_instructions: u64,
    /// `None`: the default sysroot.
    pub sysroot: Option<PathBuf>,
    /// The machine; `None`: that of [`platform`].
    pub platform: Option<Platform>,
    /// Bytes of memory; `None`: all memory of the machine.
    pub memory_bytes: Option<u64>,
}

impl Default for Run<'_> {
    fn default() -> Self {
        Run {
            args: &[],
            env: &[],
            input: b"",
            vector_bytes: 64,
            max_instructions: 300_000_000,
            sysroot: None,
            platform: None,
            memory_bytes: None,
        }
    }
}

/// The results of a run.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub status: i32,
    pub output: String,
    pub error: String,
}

/// Runs `program` under fxscope. Panics when it does not end by itself.
pub fn run_here(program: &Path, run: &Run) -> Outcome {
    let (end, output, error) = run_to_end(program, run);
    let status = end.status().unwrap_or_else(|| panic!("{}: {end}\nstderr so far: {error}", program.display()));
    Outcome { status, output, error }
}

/// Runs `program` under fxscope with this access to the host; returns the outcome and the refusals.
pub fn run_with(program: &Path, run: &Run, access: &Access) -> (Outcome, Vec<Refusal>) {
    let (end, output, error, refusals) = run_process(program, run, access);
    let status = end.status().unwrap_or_else(|| panic!("{}: {end}", program.display()));
    (Outcome { status, output, error }, refusals)
}

/// Runs `program` under fxscope; returns how it ended, standard output, and standard error.
pub fn run_to_end(program: &Path, run: &Run) -> (End, String, String) {
    let (end, output, error, _) = run_process(program, run, &Access::standard());
    (end, output, error)
}

fn run_process(program: &Path, run: &Run, access: &Access) -> (End, String, String, Vec<Refusal>) {
    let mut input = tempfile::tempfile().expect("temporary file");
    input.write_all(run.input).expect("write input");
    input.rewind().expect("rewind input");
    let output = tempfile::tempfile().expect("temporary file");
    let error = tempfile::tempfile().expect("temporary file");
    let handle = |f: &File| f.try_clone().expect("duplicate handle").into();
    let name = program.to_str().expect("UTF-8 path");
    let mut platform = run.platform.clone().unwrap_or_else(|| platform(run.vector_bytes));
    platform.memory_bytes = run.memory_bytes.unwrap_or(platform.memory_bytes);
    let mut setup = Setup::new(platform, name).expect("setup");
    setup.args.extend(run.args.iter().map(|a| a.as_bytes().to_vec()));
    setup.env = run.env.iter().map(|a| a.as_bytes().to_vec()).collect();
    setup.stdio = Stdio { input: handle(&input), output: handle(&output), error: handle(&error) };
    setup.access = access.clone();
    setup.sysroot = run.sysroot.clone().or(setup.sysroot);
    let _running = running();
    let mut process = Guest::open(program, setup).unwrap_or_else(|e| panic!("{e}"));
    let mut code: Code = Code::of(&process);
    // While it waits for the host, step it again.
    while process.end().is_none() && process.instructions() < run.max_instructions {
        process.run_functional(&mut code, run.max_instructions - process.instructions());
    }
    let end = process.end().cloned();
    let end = end.unwrap_or_else(|| panic!("{name} did not end within {} instructions", run.max_instructions));
    (end, text(output), text(error), process.refusals())
}

fn text(mut file: File) -> String {
    let mut bytes = Vec::new();
    file.rewind().expect("rewind");
    file.read_to_end(&mut bytes).expect("read");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Runs `program` under `qemu-aarch64 -cpu a64fx`. It starts as the program of a run here does: with the default action for every
/// signal, also for those that the tests were started to ignore (`nohup`, a script's `&`). QEMU would pass those on.
pub fn run_qemu(program: &Path, run: &Run) -> Outcome {
    let mut command = Command::new(installed("env", "coreutils"));
    command.arg("--default-signal").arg(installed("qemu-aarch64", "qemu-user"));
    command.args(["-cpu", &format!("a64fx,sve-default-vector-length={}", run.vector_bytes)]);
    // Dynamic programs find their libraries there, as they do under fxscope.
    command.args(["-L", "/usr/aarch64-linux-gnu"]);
    command.arg(program).args(run.args).env_clear();
    for entry in run.env {
        let (name, value) = entry.split_once('=').expect("NAME=value");
        command.env(name, value);
    }
    command.stdin(Stream::piped()).stdout(Stream::piped()).stderr(Stream::piped());
    let mut child = start(&mut command).unwrap_or_else(|e| missing("env", "coreutils", &e));
    child.stdin.take().expect("piped").write_all(run.input).expect("write input");
    let Output { status, stdout, stderr } = child.wait_with_output().expect("wait for QEMU");
    use std::os::unix::process::ExitStatusExt as _;
    let status = status.code().unwrap_or_else(|| 128 + status.signal().expect("code or signal"));
    // QEMU adds a line when a signal ends the program.
    let error = String::from_utf8_lossy(&stderr);
    let error = error.lines().filter(|l| !l.starts_with("qemu: ")).map(|l| format!("{l}\n")).collect();
    Outcome { status, output: String::from_utf8_lossy(&stdout).into_owned(), error }
}

/// Tests that start a process lock this alone, those that run programs here share it: until a process executes its own program, it
/// keeps the pipes and sockets of programs that run here open.
static STARTS: RwLock<()> = RwLock::new(());

/// No process is started while the result lives. The caller must start none either.
pub fn running() -> RwLockReadGuard<'static, ()> {
    STARTS.read().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a process while no program runs here.
fn start(command: &mut Command) -> std::io::Result<Child> {
    let _alone = STARTS.write().unwrap_or_else(PoisonError::into_inner);
    command.spawn()
}

/// Runs a process to its end, without input.
pub fn output(command: &mut Command) -> std::io::Result<Output> {
    start(command.stdin(Stream::null()).stdout(Stream::piped()).stderr(Stream::piped()))?.wait_with_output()
}

/// The path of an installed program, which is in the Debian package `package`.
fn installed(program: &str, package: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let file = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file());
    file.unwrap_or_else(|| missing(program, package, &std::io::ErrorKind::NotFound.into()))
}

/// What `outcome` is with a program run here, and with one run under QEMU.
pub fn here_and_under_qemu<T: PartialEq>(outcome: impl Fn(fn(&Path, &Run) -> Outcome) -> T) -> [T; 2] {
    let here = outcome(run_here);
    let qemu = oracle(&here, || outcome(run_qemu));
    [here, qemu]
}

/// The outcome under QEMU, where the host schedules the program's processes and threads. A program that sleeps until
/// "the other one waits by now" may sleep too short on a busy host, so a difference counts when it comes each time.
pub fn oracle<T: PartialEq>(here: &T, under_qemu: impl Fn() -> T) -> T {
    const ATTEMPTS: usize = 4;
    let mut outcome = under_qemu();
    for _ in 1..ATTEMPTS {
        if outcome == *here {
            break;
        }
        outcome = under_qemu();
    }
    outcome
}

/// Runs a program here and under QEMU, and compares the outcomes.
pub fn same_as_qemu(source: &str, flags: &[&str], run: &Run) {
    same_outcome(&build(source, flags), run);
}

/// The same for a program that is already built.
pub fn same_outcome(program: &Path, run: &Run) {
    let source = program.display();
    let [here, qemu] = here_and_under_qemu(|under| under(program, run));
    assert_eq!(here.output, qemu.output, "{source}: standard output");
    assert_eq!(here.error, qemu.error, "{source}: standard error");
    assert_eq!(here.status, qemu.status, "{source}: exit status");
}

/// Compiles a program of `tests/programs` with the cross compiler for its language, `-mcpu=a64fx -static`.
pub fn build(source: &str, flags: &[&str]) -> PathBuf {
    compile(source, &[&["-static"], flags].concat())
}

/// As [`build`], with shared libraries.
pub fn build_dynamic(source: &str, flags: &[&str]) -> PathBuf {
    compile(source, flags)
}

fn compile(source: &str, flags: &[&str]) -> PathBuf {
    let name = format!("{source}{}.elf", flags.concat().replace(['/', '='], "_"));
    once(&name, || compile_to(&Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name), source, flags))
}

fn compile_to(target: &Path, source: &str, flags: &[&str]) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let (compiler, package) = match path.extension().and_then(|e| e.to_str()) {
        Some("cpp") => ("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu"),
        Some("f90") => ("aarch64-linux-gnu-gfortran", "gfortran-aarch64-linux-gnu"),
        _ => ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"),
    };
    // Tests that run at the same time may build the same program: each builds to a separate file, then renames it.
    let own = target.with_extension(std::process::id().to_string());
    // gfortran writes module files to the current folder, which is not shared with another test that builds the same program.
    let modules = tempfile::tempdir().expect("temporary folder");
    let mut command = Command::new(compiler);
    command
        .current_dir(modules.path())
        .arg("-mcpu=a64fx")
        .args(flags)
        .arg("-o")
        .args([&own, &path])
        .args(if path.extension().is_some_and(|e| e == "c") { &["-lm"][..] } else { &[] });
    let output = output(&mut command).unwrap_or_else(|e| missing(compiler, package, &e));
    assert!(output.status.success(), "{compiler} {source}: {}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(&own, target).expect("rename program");
    target.to_owned()
}

fn missing<T>(tool: &str, package: &str, error: &std::io::Error) -> T {
    panic!("cannot start {tool} ({error}): run `apt-get install {package}`, then the test again");
}

/// Flags for programs without a C library.
pub const FREESTANDING: &[&str] = &["-nostdlib", "-O1", "-ffreestanding", "-mgeneral-regs-only"];

/// Flags for programs with a C library.
pub const HOSTED: &[&str] = &["-O3"];
