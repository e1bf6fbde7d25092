//! `fxscope pages advise`: which page sizes a program is best given.

mod runs;
mod show;
mod weigh;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use fxscope::machine::Spec;
use fxscope::machine::settings::size;
use fxscope::record::{self, Origin, Run};
use fxscope::{Scenario, check_page_size};

use super::super::output::{Target, program_streams};
use super::super::scenario::{self, ScenarioArgs};
use super::super::{Failure, Outcome, print, say, style};
use runs::Runs;

/// Find the page sizes that a program runs best with, and what sets them.
///
/// The program runs once as it would under `fxscope run` with the same options, while TLB misses of every assignment of page
/// sizes to its segments are counted from that one stream of accesses. The best assignments are then simulated, each in a
/// run of its own, whose output goes nowhere: the program must be able to run again. It has standard input only when that is
/// a file, and reads it anew each time.
///
/// Exit status: 0 with an advice, also that to leave it; otherwise as for `fxscope run`.
#[derive(clap::Args)]
#[command(
    override_usage = "fxscope pages advise [OPTIONS] -- PROGRAM [ARGS]...\n       fxscope pages advise [OPTIONS] FILE.fxr"
)]
pub struct Args {
    /// Record file, as `fxscope run -o` writes it: the program that it names runs again, with the settings and variables
    /// recorded. Options that records do not keep, such as --cpus and --membind, can be given again.
    #[arg(value_name = "FILE.fxr", required_unless_present = "command", conflicts_with = "command")]
    file: Option<PathBuf>,
    /// Which run of the file, counted from 1; without it, the last.
    #[arg(long, value_name = "N", requires = "file", value_parser = clap::value_parser!(u32).range(1..))]
    run: Option<u32>,
    /// Page sizes to ask about, besides those that the program starts with; without it, the normal and the large pages of
    /// the machine's system.
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = scenario::size)]
    sizes: Vec<u64>,
    /// How many of the best assignments are simulated.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    simulate: u32,
    /// Advise to leave it when less than this share of the time is gained, percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    least: f64,
    /// Write everything as JSON to this file, which is replaced as a whole, or to standard output (-) in place of the text.
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Do not say which run is simulated.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// The program (AArch64 Linux) and its arguments.
    #[arg(last = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| "give a number from 0 to 100".to_owned())
}

/// Largest program that is compared with what was recorded, bytes.
const MOST_PROGRAM: u64 = 4 << 30;

/// Finds out, and tells.
pub(super) fn advise(args: &Args) -> Outcome {
    let target = args.json.as_deref().map(Target::check).transpose()?;
    let scenario = match &args.file {
        Some(path) => recorded(args, path)?,
        None => args.scenario.scenario(&args.command)?,
    };
    let spec = Arc::new(scenario.spec()?);
    let sizes = asked(args, &spec)?;
    let mut runs = Runs::new(args.quiet, program_streams(target.as_ref())?)?;
    let question = weigh::Question { sizes, simulate: args.simulate as usize, least: args.least / 100.0 };
    let findings = match weigh::weigh(&scenario, spec, &mut runs, &question) {
        Ok(findings) => findings,
        Err(weigh::Over::Failed(failure)) => return Err(failure),
        Err(weigh::Over::Ended(status, message)) => {
            say(&message);
            return Ok(ExitCode::from(status));
        }
    };
    let instead = matches!(target, Some(Target::StandardOutput));
    if let Some(target) = target {
        target.write(&show::json(&findings))?;
    }
    if !instead {
        print(show::text(&findings, style(&std::io::stdout())))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The page sizes to ask about.
fn asked(args: &Args, spec: &Spec) -> Result<Vec<u64>, Failure> {
    args.sizes.iter().try_for_each(|&bytes| check_page_size(spec, bytes)).map_err(|e| format!("--sizes: {e}"))?;
    let node = spec.topology.node_bytes;
    if let Some(&large) = args.sizes.iter().find(|&&bytes| bytes > node) {
        let (large, node, name) = (size(large), size(node), &spec.name);
        return Err(format!(
            "--sizes {large}: no such page fits on a memory node of {name}, which has {node}; ask about smaller ones"
        )
        .into());
    }
    Ok(if args.sizes.is_empty() { vec![spec.pages.normal, spec.pages.large] } else { args.sizes.clone() })
}

/// How to run again what a record holds.
fn recorded(args: &Args, path: &Path) -> Result<Scenario, Failure> {
    let mut runs = record::load(path)?;
    let (count, shown) = (runs.len(), path.display());
    let number = args.run.map_or(count, |n| n as usize);
    if number == 0 || number > count {
        return Err(format!(
            "{shown}: there is no run {number}, it holds {count}; add one with fxscope run -o {shown}"
        )
        .into());
    }
    let run = runs.swap_remove(number - 1);
    let instead = "name it instead: fxscope pages advise -- PROGRAM [ARGS]";
    if let Origin::Imported { format, .. } = &run.origin {
        return Err(
            format!("{shown}: run {number} was measured ({format}) and cannot be repeated here; {instead}").into()
        );
    }
    if run.program().is_empty() {
        return Err(format!("{shown}: run {number} does not name its program; {instead}").into());
    }
    if !Path::new(run.program()).exists() {
        let program = run.program();
        return Err(format!(
            "{shown}: the program of run {number}, {program}, is not there; go to the folder that it was run from, or {instead}"
        )
        .into());
    }
    changed(&run).iter().for_each(|message| say(message));
    Ok(args.scenario.repeating(&run))
}

/// Says so when the program is not the one that was recorded.
fn changed(run: &Run) -> Option<String> {
    let recorded = run.files.first().filter(|file| !file.digest.is_empty())?;
    let now = fxscope::host::read(Path::new(run.program()), MOST_PROGRAM).ok()?;
    (record::digest(&now) != recorded.digest)
        .then(|| format!("{} has changed since it was recorded; the advice is about what it is now", run.program()))
}
