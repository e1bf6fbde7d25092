//! `fxscope run`: a program on a modelled machine.

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fxscope::linux::{Access, ClockSource, StartError};
use fxscope::record::{self, Finish, Run};
use fxscope::report::render::{json, terminal};
use fxscope::{Control, Request, Session, guest_environment};

use super::output::JsonTarget;
use super::progress::ProgressLine;
use super::{FAILED, Failure, Outcome, say, style};

/// Exit status when the user stopped the run: 128 + SIGINT.
const STOPPED: u8 = 130;
/// Exit status when the program's file cannot be run, and when there is none, as shells have it.
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Run a program on a modelled machine, and show what its PMU would have counted.
///
/// The program's input, output and exit status pass through untouched; what fxscope says itself goes to
/// standard error. Exit status: the program's own; 128 + n when signal n ended it; 130 after Ctrl-C, which
/// ends the run and reports what was simulated (a second one ends fxscope at once); 0 at the instruction
/// limit; 127 when the program does not exist, 126 when it is no program that can run, 125 when anything else
/// is wrong: the machine, the outputs, or all threads waiting for ever.
///
/// The program's environment is HOME, PATH, LANG, USER, TERM and PWD, every variable whose name starts with
/// OMP_, GOMP_, KMP_, XOS_ or MALLOC_, and those given with -e.
///
/// The program may read files anywhere, write and delete below the current directory, /tmp and /dev/shm, and open no
/// network sockets. What it was refused is told at the end, with the switch that would have allowed it.
#[derive(clap::Args)]
pub struct Args {
    /// Machine: a name that `fxscope machine list` shows, or the path of a machine's folder.
    #[arg(short, long, default_value = "a64fx")]
    machine: String,
    /// Set a value of the machine's description, such as tlb.l1_entries=32.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    /// Vector length in bits: short for --set clock.vector_bits=N.
    #[arg(long, value_name = "N", value_parser = ["128", "256", "512"])]
    vector_bits: Option<String>,
    /// Add the run to a record file, which is made when it does not exist.
    #[arg(short, value_name = "FILE.fxr")]
    output: Option<PathBuf>,
    /// Write the counts as JSON to a file, or to standard output (-).
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// How much of the machine takes part: everything, or results and instruction counts only.
    #[arg(long, value_enum, default_value_t = Mode::Timing)]
    mode: Mode,
    /// Set a variable of the program's environment.
    #[arg(short, value_name = "VAR=VALUE", value_parser = variable)]
    environment: Vec<(OsString, OsString)>,
    /// Where the program's interpreter and libraries are: its absolute paths are looked up in this folder first.
    /// Without it, in the folder of the AArch64 cross compilers, if there is one.
    #[arg(long, value_name = "DIR")]
    sysroot: Option<PathBuf>,
    /// Let the program touch more of the host than it may: write=DIR, read=DIR (with --sandbox), or net.
    #[arg(long, value_name = "WHAT", value_parser = Allow::parse)]
    allow: Vec<Allow>,
    /// Let the program touch nothing of the host but its standard streams, and what --allow gives.
    #[arg(long)]
    sandbox: bool,
    /// Memory the program may use, such as 512MiB; it gets ENOMEM beyond. Without it, all that the machine has.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
    /// The program's clocks: simulated time, the same on every run, or the host's.
    #[arg(long, value_enum, default_value_t = Clock::Simulated)]
    clock: Clock,
    /// Stop after this many instructions; a basic block is not cut short.
    #[arg(long, value_name = "N")]
    max_instructions: Option<u64>,
    /// Do not print the summary and the progress line.
    #[arg(long, short)]
    quiet: bool,
    /// The program (AArch64 Linux) and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

/// Something that `--allow` gives.
#[derive(Clone)]
enum Allow {
    Read(PathBuf),
    Write(PathBuf),
    Network,
}

impl Allow {
    fn parse(text: &str) -> Result<Allow, String> {
        match text.split_once('=') {
            Some(("read", folder)) if !folder.is_empty() => Ok(Allow::Read(folder.into())),
            Some(("write", folder)) if !folder.is_empty() => Ok(Allow::Write(folder.into())),
            None if text == "net" => Ok(Allow::Network),
            _ => Err("write it as read=DIR, write=DIR or net".to_owned()),
        }
    }
}

/// What the program may touch.
fn access(args: &Args) -> Result<Access, Failure> {
    let mut access = if args.sandbox { Access::sandbox() } else { Access::standard() };
    for allow in &args.allow {
        match allow {
            Allow::Read(folder) | Allow::Write(folder) if !folder.is_dir() => {
                return Err(format!("--allow: {} is not a folder; name one that exists", folder.display()).into());
            }
            // Without --sandbox everything may be read anyway.
            Allow::Read(folder) => access.read.iter_mut().for_each(|list| list.push(folder.clone())),
            Allow::Write(folder) => access.write.push(folder.clone()),
            Allow::Network => access.network = true,
        }
    }
    Ok(access)
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Mode {
    Timing,
    Functional,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Clock {
    Simulated,
    Host,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("write it as KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn variable(text: &str) -> Result<(OsString, OsString), String> {
    let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("write it as VAR=VALUE")?;
    Ok((name.into(), value.into()))
}

/// A number of bytes.
fn size(text: &str) -> Result<u64, String> {
    fxscope::machine::settings::integer(text)
        .ok_or_else(|| "write it as a number of bytes, or as 512MiB or 8GiB".to_owned())
}

/// The memory asked for, if the machine has it.
fn memory_bytes(args: &Args, spec: &fxscope::machine::Spec) -> Result<Option<u64>, Failure> {
    let all = fxscope::machine_memory(spec);
    match args.memory {
        Some(bytes) if bytes > all => Err(format!(
            "--memory {bytes}: {} has {all} bytes; ask for less, or give it more with --set topology.node_bytes=SIZE",
            spec.name
        )
        .into()),
        memory => Ok(memory),
    }
}

/// Whether Ctrl-C has been pressed.
static STOP: AtomicBool = AtomicBool::new(false);
/// Whether results are being written, which takes a moment and is not to be cut short.
static SAVING: AtomicBool = AtomicBool::new(false);

/// Runs the program; the exit status is its own.
pub(super) fn run(args: &Args) -> Outcome {
    let mut settings = args.set.clone();
    settings.extend(args.vector_bits.iter().map(|bits| ("clock.vector_bits".to_owned(), bits.clone())));
    let spec = Arc::new(fxscope::machine::load(&args.machine, &settings)?);
    // What cannot be written is told now and not after an hour.
    if let Some(path) = &args.output {
        record::check_target(path)?;
    }
    let json_target = args.json.as_deref().map(JsonTarget::check).transpose()?;

    let (program, arguments) = args.command.split_first().ok_or("no program given")?;
    if let Some(sysroot) = args.sysroot.as_ref().filter(|dir| !dir.is_dir()) {
        return Err(format!("--sysroot {}: not a folder; name one that holds lib or usr/lib", sysroot.display()).into());
    }
    let session = Session::start(Request {
        settings,
        arguments: arguments.to_vec(),
        environment: guest_environment(std::env::vars_os(), &args.environment),
        record_variables: args.environment.iter().map(|(name, _)| name.clone()).collect(),
        mode: match args.mode {
            Mode::Timing => fxscope::Mode::Timing,
            Mode::Functional => fxscope::Mode::Functional,
        },
        sysroot: args.sysroot.clone(),
        access: access(args)?,
        memory_bytes: memory_bytes(args, &spec)?,
        clock: match args.clock {
            Clock::Simulated => ClockSource::Simulated,
            Clock::Host => ClockSource::Host,
        },
        max_instructions: args.max_instructions,
        ..Request::new(spec, program)
    });
    let session = session.map_err(|e| Failure { status: start_status(&e), message: e.to_string() })?;

    ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) && !SAVING.load(Ordering::Relaxed) {
            std::process::exit(i32::from(STOPPED));
        }
    })?;
    let mut progress = ProgressLine::new(!args.quiet);
    let run = session.run(&mut |p| {
        progress.show(&p);
        if STOP.load(Ordering::Relaxed) { Control::Stop } else { Control::Continue }
    });
    SAVING.store(true, Ordering::Relaxed);
    progress.clear();
    show(args, &run);
    let saved = save(args, json_target, &run);
    Ok(if saved { status(&run.finish) } else { ExitCode::from(FAILED) })
}

/// The exit status for a program that cannot start.
fn start_status(error: &StartError) -> u8 {
    match error {
        StartError::Read { source, .. } if source.kind() == ErrorKind::NotFound => NOT_FOUND,
        StartError::Read { .. } | StartError::Elf { .. } | StartError::Interpreter { .. } => CANNOT_RUN,
        _ => FAILED,
    }
}

/// The exit status after a run.
fn status(finish: &Finish) -> ExitCode {
    match finish {
        Finish::Exited(_) | Finish::Killed { .. } => {
            // Statuses have eight bits.
            ExitCode::from(finish.exit_code().map_or(FAILED, |code| code as u8))
        }
        Finish::Limit => ExitCode::SUCCESS,
        Finish::Stopped => ExitCode::from(STOPPED),
        Finish::Failed(_) => ExitCode::from(FAILED),
    }
}

/// Tells what must be told, and the summary unless it is not wanted.
fn show(args: &Args, run: &Run) {
    match &run.finish {
        Finish::Killed { message, .. } => say(&format!("the program was {message}")),
        Finish::Failed(message) => say(&format!("the program cannot go on: {message}")),
        Finish::Exited(_) | Finish::Limit | Finish::Stopped => {}
    }
    if !args.quiet {
        let text = terminal::render(&fxscope::report::summary(run), style(&std::io::stderr()));
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// Writes the outputs that were asked for, each whether or not the other can be. Whether all could be.
fn save(args: &Args, json_target: Option<JsonTarget>, run: &Run) -> bool {
    let json = json_target.map_or(Ok(()), |target| target.write(&json::run(run)));
    let record = args.output.as_ref().map_or(Ok(()), |path| Ok(record::append(path, run)?));
    let results: [Result<(), Failure>; 2] = [json, record];
    let mut saved = true;
    for failure in results.into_iter().filter_map(Result::err) {
        say(&failure.message);
        saved = false;
    }
    saved
}
