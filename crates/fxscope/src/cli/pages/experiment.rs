//! `fxscope pages experiment`: what page sizes do, measured on a modelled machine.

use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::lab::pages::experiment::{ALL, Experiment, Options, named};
use fxscope::report::render::{html, terminal};

use super::super::console::Console;
use super::super::output::Target;
use super::super::{Outcome, print, style};

/// Measure what page sizes do: without a name, list the experiments.
///
/// Each runs a program of kernels/prebuilt many times, prints what it took beside published figures, and says what is seen.
/// docs/pages-experiments.md has the recipes. Page sizes are those of the program's data; where the machine's set-associative
/// TLB stands beside the other one, it serves the size that is looked at, unless --set tlb.l2_only_sizes says otherwise.
#[derive(clap::Args)]
pub struct Args {
    /// Which one.
    name: Option<String>,
    /// Machine: a name that `fxscope machine list` shows, or the path of a machine's folder. Without it, the one whose
    /// figures are shown beside.
    #[arg(short, long)]
    machine: Option<String>,
    /// Set a value of the machine's description, such as tlb.l2_only_sizes=32MiB.
    #[arg(long, value_name = "KEY=VALUE", value_parser = super::super::scenario::pair)]
    set: Vec<(String, String)>,
    /// Page sizes to compare, ascending; the largest is what the others are held against. Without it, those that were
    /// measured: 4MiB,32MiB,256MiB or 64KiB,2MiB.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::super::scenario::size)]
    sizes: Vec<u64>,
    /// Memory that the program's arrays lie in.
    #[arg(long, value_name = "SIZE", value_parser = super::super::scenario::size, default_value = "12GiB")]
    span: u64,
    /// Draws of base addresses (draws), or runs (steps); as many as were measured without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    draws: Option<u32>,
    /// Runs at a time; all of the host's cores without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// The folder of the programs.
    #[arg(long, value_name = "FOLDER", default_value = "kernels/prebuilt")]
    programs: PathBuf,
    /// Write a page with plots to this file.
    #[arg(long, value_name = "FILE|-")]
    html: Option<PathBuf>,
    /// Write all figures as JSON to this file (- for standard output, in place of the tables).
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

/// Lists the experiments, or makes one.
pub(super) fn experiment(args: &Args) -> Outcome {
    let Some(name) = &args.name else {
        let line = |e: &Experiment| format!("{:9} {}\n", e.name, e.title);
        print(ALL.iter().map(line).collect::<String>())?;
        return Ok(ExitCode::SUCCESS);
    };
    let experiment = named(name)?;
    let [json, page] = [&args.json, &args.html].map(|path| path.as_deref().map(Target::check).transpose());
    let (json, page) = (json?, page?);
    let instead = [&args.json, &args.html].into_iter().flatten().any(|path| path.as_os_str() == "-");
    let options = Options {
        machine: args.machine.clone(),
        settings: args.set.clone(),
        sizes: args.sizes.clone(),
        span: args.span,
        draws: args.draws,
        jobs: args.jobs.map(usize::from),
        programs: args.programs.clone(),
    };
    let outcome = experiment.run(&options, &Console::new(false))?;
    if let Some(target) = json {
        target.write(&outcome.json())?;
    }
    if let Some(target) = page {
        target.write_bytes(html::experiment(&outcome.document(), &outcome.findings.plots).as_bytes())?;
    }
    if !instead {
        print(terminal::render(&[outcome.lines()], style(&std::io::stdout())))?;
    }
    Ok(ExitCode::SUCCESS)
}
