//! `fxscope resume`: continues a run from a snapshot.

use std::path::{Path, PathBuf};

use fxscope::Start;
use fxscope::lab::simulate;
use fxscope::snapshots::Folder;

use crate::foreground::{Keeping, Results, over};
use crate::terminal::{Console, Outcome, output, print, say};

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
        return print(start.table(&folder)?);
    }
    folder.lock()?;
    let mut left_out = |why: String| say(&why);
    let numbers = Start::candidates(&folder, args.at, &args.folder, &mut left_out)?;
    // Relative paths of options are those of the user, all others those of the run.
    let given = |path: &Option<PathBuf>| path.as_deref().map(absolute).transpose();
    let (output, json) = (given(&args.output)?.or(start.output.clone()), given(&args.json)?.or(start.json.clone()));
    std::env::set_current_dir(&start.directory)
        .map_err(|why| format!("{}: the run was started there: {why}", start.directory.display()))?;
    let interval_region = start.scenario.options.interval_region.as_deref();
    let results = Results::check((output.as_deref(), json.as_deref()), args.quiet, interval_region)?;
    let console = Console::catching_signals(args.quiet)?;
    let keeping = Keeping::new(&args.folder, Folder::open(&path)?, start.snapshots)?;
    let (taking, kept) = keeping.split(args.verbose);
    let mut taking = Some(taking);
    let with = |session: fxscope::Session| {
        let protection = session.protection().clone();
        let ending = simulate(&console, session, |session, watch| match taking.take() {
            Some(taking) => taking.run(session, watch),
            None => fxscope::Ending::Run(Box::new(session.run(watch))),
        });
        (ending, protection)
    };
    let stdio = || output::program_streams(results.json());
    let (ending, protection) = start.resume((&folder, &path), &numbers, &stdio, &mut left_out, with)?;
    match over(ending, Some(&kept)) {
        Ok(run) => Ok(results.finish(&run, args.verbose.then_some(&protection), Some(&kept))),
        Err(status) => Ok(status),
    }
}

/// Returns a path that holds in any directory; a dash stays one.
fn absolute(path: &Path) -> std::io::Result<PathBuf> {
    if path == Path::new("-") { Ok(path.to_owned()) } else { std::path::absolute(path) }
}
