//! `fxscope resume`: continues a run from a snapshot.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use fxscope::lab::simulate;
use fxscope::record;
use fxscope::report::render::quantity::quantity;
use fxscope::snapshots::{Folder, Listed};
use fxscope::{Mode, Start};

use super::checkpoint::{Keeping, over};
use super::console::Console;
use super::output::{self, Target};
use super::run::{Outputs, finished};
use super::{Failure, Outcome, print, say};

/// Continue a run from a snapshot that fxscope run --checkpoint has saved.
///
/// The run continues as if it had not been interrupted: the same output from there on, the same record at its end. It runs in the
/// directory where it was started, with the same program, machine and options, and saves further snapshots. The
/// program must still be there, and files that it reads must not have changed; of files that it writes, what came after the snapshot
/// is cut off (docs/checkpoints.md). The folder says what is run and what it may access, as a script would: use no folder of
/// somebody whom you do not trust.
#[derive(clap::Args)]
pub struct Args {
    /// The folder of the run's snapshots.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Continue from this snapshot, instead of the newest whole one.
    #[arg(long, value_name = "N", conflicts_with = "list")]
    at: Option<u64>,
    /// List the snapshots, and change nothing.
    #[arg(long)]
    list: bool,
    /// Add the run to this record file, instead of that given to fxscope run.
    #[arg(short, long, value_name = "FILE.fxr", conflicts_with = "list")]
    output: Option<PathBuf>,
    /// Write the counts as JSON to this file or to standard output (-), instead of where fxscope run was told to.
    #[arg(long, value_name = "FILE|-", conflicts_with = "list")]
    json: Option<PathBuf>,
    /// Do not print the summary and the progress line.
    #[arg(long, short)]
    quiet: bool,
    /// Report each snapshot, and which protections of the host's kernel contained the program.
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
}

/// Continues the run; the exit status is the program's.
pub(super) fn resume(args: &Args) -> Outcome {
    let path = std::path::absolute(&args.folder)?;
    let folder = Folder::open(&path)?;
    let start = Start::read(&folder)?;
    if args.list {
        print(list(&folder, &start)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    folder.lock()?;
    let numbers = candidates(&folder, args)?;
    // Relative paths of options are those of the user, all others those of the run.
    let given = |path: &Option<PathBuf>| path.as_deref().map(absolute).transpose();
    let (output, json) = (given(&args.output)?.or(start.output.clone()), given(&args.json)?.or(start.json.clone()));
    std::env::set_current_dir(&start.directory)
        .map_err(|why| format!("{}: the run was started there: {why}", start.directory.display()))?;
    let record_target = output.as_deref().map(record::Target::check).transpose()?;
    let json_target = json.as_deref().map(Target::check).transpose()?;
    let console = Console::catching_signals(args.quiet)?;
    let (mut taking, kept) = {
        let (taking, kept) = Keeping::new(&args.folder, Folder::open(&path)?, start.snapshots)?.split(args.verbose);
        (Some(taking), kept)
    };
    let mut with = |session: fxscope::Session| {
        let protection = session.protection().clone();
        let ending = simulate(&console, session, |session, watch| match taking.take() {
            Some(taking) => taking.run(session, watch),
            None => fxscope::Ending::Run(Box::new(session.run(watch))),
        });
        (ending, protection)
    };
    let (last, others) = numbers.split_last().ok_or("no snapshot")?;
    let attempt = |number: &u64, with: &mut (dyn FnMut(fxscope::Session) -> _ + Send)| {
        let prepared = start.prepare()?.protecting(&path);
        let stdio = output::program_streams(json_target.as_ref()).map_err(fxscope::linux::StartError::Host)?;
        prepared.resumed(stdio, &folder.snapshot(*number)?, with)
    };
    let mut resumed = None;
    for number in others {
        match attempt(number, &mut with) {
            Err(error) if error.is_damage() => say(&format!("snapshot {number} is left out: {error}")),
            result => {
                resumed = Some(result?);
                break;
            }
        }
    }
    let (ending, protection) = match resumed {
        Some(resumed) => resumed,
        None => attempt(last, &mut with)?,
    };
    let run = match over(ending, Some(&kept)) {
        Ok(run) => run,
        Err(status) => return Ok(status),
    };
    let interval_region = start.scenario.options.interval_region.as_deref();
    let outputs = Outputs { quiet: args.quiet, protection: args.verbose.then_some(protection), interval_region };
    Ok(finished(&run, &outputs, (record_target, json_target, None), Some(&kept)))
}

/// Returns the numbers of the snapshots to continue from, the best first.
fn candidates(folder: &Folder, args: &Args) -> Result<Vec<u64>, Failure> {
    if let Some(number) = args.at {
        return Ok(vec![number]);
    }
    if folder.has_ended() {
        let why = "the run has ended; to go back to a snapshot, name it with --at N (--list shows them)";
        return Err(format!("{}: {why}", args.folder.display()).into());
    }
    let mut numbers = Vec::new();
    for Listed { number, about, .. } in folder.snapshots()?.into_iter().rev() {
        match about {
            Ok(_) => numbers.push(number),
            Err(why) => say(&format!("snapshot {number} is left out: {why}")),
        }
    }
    if numbers.is_empty() {
        let why = "has no whole snapshot; start the run again, with another folder";
        return Err(format!("{}: {why}", args.folder.display()).into());
    }
    Ok(numbers)
}

/// Returns a path that holds in any directory; a dash stays one.
fn absolute(path: &Path) -> std::io::Result<PathBuf> {
    if path == Path::new("-") { Ok(path.to_owned()) } else { std::path::absolute(path) }
}

/// Returns a table of the snapshots of a run.
fn list(folder: &Folder, start: &Start) -> Result<String, Failure> {
    let words = start.scenario.command();
    let command: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let mode = match (start.scenario.options.mode, &start.scenario.options.sample) {
        (Mode::Functional, _) => "functional",
        (Mode::Timing, Some(_)) => "sampled",
        (Mode::Timing, None) => "timing",
    };
    let ended = if folder.has_ended() { "; the run has ended" } else { "" };
    let mut text = format!("{} on {}, {mode}{ended}\n", command.join(" "), start.scenario.machine);
    let _ = writeln!(
        text,
        "{:>8}  {:>13}  {:>10}  {:20}  {:>10}",
        "snapshot", "instructions", "simulated", "taken", "added"
    );
    for Listed { number, about, bytes } in folder.snapshots()? {
        let _ = match about {
            Ok(about) => writeln!(
                text,
                "{number:>8}  {:>13}  {:>10}  {}  {:>6.1} MiB",
                about.instructions,
                quantity(about.now_ns as f64 / 1e9, "s"),
                humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(about.unix_seconds)),
                bytes as f64 / f64::from(1 << 20),
            ),
            Err(why) => writeln!(text, "{number:>8}  cannot be used: {why}"),
        };
    }
    Ok(fxscope::host::text::printable_lines(&text).into_owned())
}
