//! A program of ranks under noise, on several numbers of nodes.

use std::path::Path;

use fxscope_jitter::Time;
use fxscope_jitter::model::{self, Evidence, Model};
use fxscope_jitter::network::Network;
use fxscope_jitter::program::{Program, Schedule};
use fxscope_jitter::scale::{Replay, replay_affordable};
use fxscope_report::sheet::{Cell, Sheet, Table};

use super::cells;
use super::plan::nodes;
use super::recorded::{Recorded, program_of};
use super::simulate::{Size, bounds, causes, plots, times};
use crate::Error;
use crate::recorded::run_of;

/// Options of a replay.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// Noise: a profile, or the path of a model's file.
    pub model: String,
    /// Numbers of nodes.
    pub nodes: Vec<u32>,
    /// Network: a name, or the path of a file.
    pub network: String,
    /// How often the program runs.
    pub repetitions: u64,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Largest number of detours to draw; a replay that needs more runs the program less often.
    pub most_detours: f64,
}

impl ReplayOptions {
    /// A hundred runs on a machine with TofuD under this noise model.
    #[must_use]
    pub fn new(model: impl Into<String>, nodes: impl Into<Vec<u32>>) -> ReplayOptions {
        ReplayOptions {
            model: model.into(),
            nodes: nodes.into(),
            network: "tofud".to_owned(),
            repetitions: 100,
            seed: 1,
            most_detours: 1e9,
        }
    }
}

impl Recorded {
    /// Loads a program from a record, of which `run` is the number of a run (`None`: the last), or from its text form.
    ///
    /// # Errors
    /// If there is no such run, it cannot be replayed, or the text is no program.
    pub fn of_file(path: &Path, run: Option<u32>) -> Result<Recorded, Error> {
        let shown = path.display();
        if path.extension().is_some_and(|suffix| suffix == fxscope_record::SUFFIX) {
            let (_, run) = run_of(path, run)?;
            return program_of(&run).map_err(|error| format!("{shown}: {error}").into());
        }
        match run {
            Some(_) => Err(format!("{shown} is no record, so it has no runs; leave out --run").into()),
            None => Recorded::load(path),
        }
    }

    /// Loads a program from its text form.
    ///
    /// # Errors
    /// The file, the line, what is wrong, and what to do.
    pub fn load(path: &Path) -> Result<Recorded, Error> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| Error::Request(format!("{shown}: {error}")))?;
        let program = Program::parse(&text).map_err(|error| Error::Request(format!("{shown}: {error}")))?;
        Ok(Recorded { program, name: file_name(path), notes: Vec::new() })
    }
}

/// Replays a program on all numbers of nodes: each runs a copy of its ranks under noise, and they wait for each other.
///
/// # Errors
/// If the model or the network cannot be loaded, or a size cannot be simulated.
pub fn replay(recorded: &Recorded, options: &ReplayOptions) -> Result<Sheet, Error> {
    let program = &recorded.program;
    let model = model::load(&options.model)?;
    model.check(program.ranks.len() as u32 * program.threads)?;
    let network = Network::load(&options.network)?;
    let schedule = Schedule::new(program).map_err(String::from)?;
    let on = |nodes: u32| Replay {
        schedule: &schedule,
        costs: schedule.costs(&network, nodes),
        nodes,
        cores: program.threads,
        repetitions: options.repetitions,
        work: program.compute(),
        seed: options.seed,
    };
    let size = |&nodes: &u32| -> Result<Size, Error> {
        let (ran, outcome) = replay_affordable(&model, &on(nodes), options.most_detours)?;
        Ok(Size { nodes, setup: ran.setup(), outcome })
    };
    let sizes = options.nodes.iter().map(size).collect::<Result<Vec<_>, _>>()?;
    let alone = on(1).quiet();
    let mut tables = vec![table(&sizes, alone), times("run", &sizes)];
    tables.extend(causes(&model, &sizes));
    Ok(Sheet {
        title: format!("{}, under {}", words(recorded, &schedule, alone), model.name),
        tables,
        notes: vec![("Assumed", assumed(recorded, &schedule, &model, &network, &sizes, options))],
        plots: plots("run", &sizes),
        bars: Vec::new(),
    })
}

/// Returns the name of a file without its folders.
pub(super) fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Describes a program in words.
fn words(recorded: &Recorded, schedule: &Schedule, alone: u64) -> String {
    let plural = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let program = &recorded.program;
    let (exchanges, collectives) = schedule.counts();
    format!(
        "{}: {} of {}, {}, {}, {} on one node",
        recorded.name,
        plural(program.ranks.len(), "rank"),
        plural(program.threads as usize, "thread"),
        plural(exchanges, "exchange"),
        plural(collectives, "collective"),
        Time(alone as f64),
    )
}

/// Shares of the time by size; `alone` is the time of a run on one node without noise, ns.
fn table(sizes: &[Size], alone: u64) -> Table {
    let headings = ["nodes", "cores", "run", "efficiency", "slowdown", "95 % bounds", "noise", "network", "MPI"];
    let mut table = Table::new("By size", headings);
    for size in sizes {
        let (setup, outcome) = (&size.setup, &size.outcome);
        let time = outcome.time as f64;
        let on_one = alone as f64 * setup.phases as f64;
        let cells = vec![
            Cell::number(f64::from(size.nodes) * f64::from(setup.cores), 0),
            cells::about(time / setup.phases as f64),
            Cell::share(outcome.efficiency()),
            Cell::factor(outcome.slowdown()),
            bounds(outcome),
            Cell::share(outcome.noise()),
            Cell::share((outcome.quiet as f64 - on_one) / time),
            Cell::share((on_one - outcome.work) / time),
        ];
        table.rows.push((size.nodes.to_string(), cells));
    }
    table
}

fn assumed(
    recorded: &Recorded,
    schedule: &Schedule,
    model: &Model,
    network: &Network,
    sizes: &[Size],
    options: &ReplayOptions,
) -> Vec<String> {
    let evidence = match network.evidence {
        Evidence::Documented => "documented",
        Evidence::Measured => "measured",
        Evidence::Fitted => "fitted",
        Evidence::Assumed => "assumed",
    };
    let mut notes = vec![
        "Weak scaling: each node runs a copy of the ranks, with the same work. Noise delays all cores of a rank, which \
         work until its next call."
            .to_owned(),
        "Ranks in calls are those of MPI_COMM_WORLD. Collectives wait for all ranks of all nodes.".to_owned(),
    ];
    if schedule.counts().0 > 0 {
        notes.push(
            "A rank that receives a message also waits for the same message of six neighbouring nodes, to which a \
             node sends as many bytes as its ranks send to each other."
                .to_owned(),
        );
    }
    notes.extend(recorded.notes.iter().cloned());
    notes.push(format!("Noise: {}.", model.title));
    notes.push(format!("Network ({evidence}): {}.", network.title));
    let asked = options.repetitions;
    let few = sizes.iter().filter(|size| size.setup.phases < asked);
    let few: Vec<String> = few.map(|size| format!("{} {}", nodes(size.nodes), size.setup.phases)).collect();
    if !few.is_empty() {
        notes.push(format!(
            "Of {asked} runs, only as many took place as --most-detours allows: {}; the bounds show the uncertainty.",
            few.join(", ")
        ));
    }
    notes
}
