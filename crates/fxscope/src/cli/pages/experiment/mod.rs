//! `fxscope pages experiment`: what page sizes do, measured on a modelled machine. One file for each experiment, and an entry
//! in [`ALL`].

mod blocks;
mod cost;
mod draws;
mod findings;
mod lab;
mod largepage;
mod masked;
mod steps;
mod stride;

use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::machine::settings::size;
use fxscope::report::render::{html, terminal};

use super::super::output::Target;
use super::super::{Failure, Outcome, print, style};
use findings::Findings;
use lab::Lab;

/// Measure what page sizes do: without a name, list the experiments.
///
/// Each runs a program of kernels/prebuilt many times, prints what it took beside published figures, and says what is seen.
/// docs/pages-experiments.md has the recipes. Page sizes are those of the program's data; where the machine's set-associative
/// TLB stands beside the other one, it serves the size that is looked at, unless --set tlb.l2_beside says otherwise.
#[derive(clap::Args)]
pub struct Args {
    /// Which one.
    name: Option<String>,
    /// Machine: a name that `fxscope machine list` shows, or the path of a machine's folder. Without it, the one whose
    /// figures are shown beside.
    #[arg(short, long)]
    machine: Option<String>,
    /// Set a value of the machine's description, such as tlb.l2_beside=32MiB.
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

/// An experiment.
struct Experiment {
    name: &'static str,
    /// What it shows, in a line.
    title: &'static str,
    /// Where it was measured.
    on: &'static Measured,
    run: fn(&Lab) -> Result<Findings, Failure>,
}

/// A machine whose figures are known.
struct Measured {
    machine: &'static str,
    /// Its page sizes.
    sizes: &'static [u64],
}

const K_COMPUTER: Measured = Measured { machine: "k-computer", sizes: &[4 << 20, 32 << 20, 256 << 20] };
const A64FX: Measured = Measured { machine: "a64fx", sizes: &[64 << 10, 2 << 20] };

/// All experiments, in the order in which they are listed.
const ALL: &[Experiment] = &[
    stride::EXPERIMENT,
    draws::EXPERIMENT,
    steps::EXPERIMENT,
    cost::EXPERIMENT,
    masked::EXPERIMENT,
    blocks::EXPERIMENT,
    largepage::EXPERIMENT,
];

/// Lists the experiments, or makes one.
pub(super) fn experiment(args: &Args) -> Outcome {
    let Some(name) = &args.name else {
        let line = |e: &Experiment| format!("{:9} {}\n", e.name, e.title);
        print(ALL.iter().map(line).collect::<String>())?;
        return Ok(ExitCode::SUCCESS);
    };
    let experiment = ALL.iter().find(|e| e.name == name).ok_or_else(|| {
        let names: Vec<_> = ALL.iter().map(|e| e.name).collect();
        format!("there is no experiment '{name}'; choose from {}", names.join(", "))
    })?;
    let [json, page] = [&args.json, &args.html].map(|path| path.as_deref().map(Target::check).transpose());
    let (json, page) = (json?, page?);
    let instead = [&args.json, &args.html].into_iter().flatten().any(|path| path.as_os_str() == "-");
    let lab = Lab::new(args, experiment.on)?;
    let findings = (experiment.run)(&lab)?;

    let title = format!("{} on {}", experiment.title, lab.spec.name);
    let document = findings.document(&title, &lab.spec.identity.note);
    if let Some(target) = json {
        let sizes: Vec<_> = lab.sizes.iter().map(|&bytes| size(bytes)).collect();
        target.write(&findings.json(experiment.name, &lab.spec, &args.set, &sizes))?;
    }
    if let Some(target) = page {
        target.write_bytes(html::experiment(&document, &findings.plots).as_bytes())?;
    }
    if !instead {
        let lines = findings.lines(&title, &lab.spec.identity.note);
        print(terminal::render(&[lines], style(&std::io::stdout())))?;
    }
    Ok(ExitCode::SUCCESS)
}
