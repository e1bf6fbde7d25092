//! `fxscope pages experiment`: published experiments on page sizes, on a modelled machine.

use std::path::PathBuf;

use fxscope::lab::Programs;
use fxscope::lab::pages::experiment::{ALL, Experiment, Options, named};
use fxscope::machine::settings::{bytes, pair};
use fxscope::report::render::html;

use crate::terminal::{Answer, Console, Form, Outcome, print};

/// Measure the effect of page sizes; without a name, list the experiments.
///
/// Each experiment runs a program of kernels/prebuilt many times, prints the results beside published figures, and
/// summarises them. docs/pages-experiments.md has the recipes. Page sizes are those of the program's data. If the
/// machine has a separate set-associative TLB, it serves the page size under study, unless --set tlb.l2_only_sizes says
/// otherwise.
#[derive(clap::Args)]
pub struct Args {
    /// Name of the experiment.
    name: Option<String>,
    /// Machine: a name shown by `fxscope machine list`, or the path of a machine's folder. Default: the machine of the
    /// published figures.
    #[arg(short, long)]
    machine: Option<String>,
    /// Set a value of the machine's description, such as tlb.l2_only_sizes=32MiB.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    /// Page sizes to compare, ascending; the others are compared with the largest. Default: those of the publication:
    /// 4MiB,32MiB,256MiB or 64KiB,2MiB.
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = bytes)]
    sizes: Vec<u64>,
    /// Size of the memory range that holds the program's arrays.
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "12GiB")]
    span: u64,
    /// Number of random base addresses (draws) or of runs (steps); default: as in the publication.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    draws: Option<u32>,
    /// Runs at a time; default: all of the host's cores.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Folder of the programs; default: those that fxscope contains.
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
    #[command(flatten)]
    form: Form,
}

/// Lists the experiments, or runs one.
pub(super) fn experiment(args: &Args) -> Outcome {
    let Some(name) = &args.name else {
        let line = |e: &Experiment| format!("{:9} {}\n", e.name, e.title);
        return print(ALL.iter().map(line).collect::<String>());
    };
    let experiment = named(name)?;
    let outputs = args.form.check()?;
    let programs = Programs::new(args.programs.as_deref())?;
    let options = Options {
        machine: args.machine.clone(),
        settings: args.set.clone(),
        sizes: args.sizes.clone(),
        span: args.span,
        draws: args.draws,
        jobs: args.jobs.map(usize::from),
        programs: programs.folder().to_owned(),
    };
    let outcome = experiment.run(&options, &Console::new(false))?;
    outputs.write(&Answer {
        text: &[outcome.lines()],
        html: &|| html::experiment(&outcome.document(), &outcome.findings.plots),
        json: &|| outcome.json(),
    })
}
