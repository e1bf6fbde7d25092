//! The speed of LINPACK by problem size, with the share of noise.

use fxscope_jitter::linpack::{Basis, Estimate, Machine, Problem, Run, Size, memory};
use fxscope_jitter::model;
use fxscope_report::document::{Curve, Plot};
use fxscope_report::sheet::{Cell, Sheet, Table};

use crate::Error;

/// Points of the curve of efficiency by size.
const POINTS: i32 = 8;

/// Options of an estimate of LINPACK.
#[derive(Clone, Debug)]
pub struct LinpackOptions {
    /// The machine: a name, or the path of a file.
    pub machine: String,
    /// Numbers of nodes; empty: the runs of the machine's file.
    pub nodes: Vec<u32>,
    /// Bytes of memory of a node.
    pub memory: u64,
    /// Share of it that the matrix fills; `None`: that of the machine's largest problem.
    pub fill: Option<f64>,
    /// Rows of the matrix, instead of the share of memory.
    pub n: Option<f64>,
    /// Noise: a profile, or the path of a model's file; `None`: the machine's.
    pub model: Option<String>,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Estimates the efficiency of LINPACK by problem size: DGEMM, panels, communication, and the effect of noise.
///
/// # Errors
/// If the machine or the noise cannot be loaded, or a size cannot be estimated.
pub fn linpack(args: &LinpackOptions) -> Result<Sheet, Error> {
    let machine = Machine::load(&args.machine)?;
    let noise = args.model.as_deref().map_or_else(|| machine.noise_model(), model::load)?;
    let runs = runs(args, &machine)?;
    let mut shown = Vec::new();
    for run in runs {
        let (problem, size) = machine.problem(&run, args.seed)?;
        let basis = run.basis(args.model.is_none());
        shown.push(Shown { run, size, basis, estimate: machine.estimate(problem, &noise, args.seed)? });
    }
    let last = shown.iter().map(|one| one.estimate).max_by(|a, b| a.problem.n.total_cmp(&b.problem.n));
    let mut curve = Vec::new();
    if let Some(last) = last {
        for i in (0..POINTS).rev() {
            let problem = Problem { n: last.problem.n / 2f64.powf(f64::from(i) / 2.0), ..last.problem };
            if machine.check(problem).is_ok() {
                curve.push(machine.estimate(problem, &noise, args.seed)?);
            }
        }
    }
    Ok(sheet(&machine, &noise.title, &shown, &curve))
}

fn runs(args: &LinpackOptions, machine: &Machine) -> Result<Vec<Run>, Error> {
    if args.nodes.is_empty() {
        if machine.runs.is_empty() {
            return Err(format!("{} has no runs to show; give --nodes", args.machine).into());
        }
        return Ok(machine.runs.clone());
    }
    let run = |&nodes: &u32| {
        let memory = Some(format!("{}KiB", args.memory >> 10));
        Run { nodes, memory, fill: args.fill, n: args.n, solve: false, fit: false, published: None, row: String::new() }
    };
    Ok(args.nodes.iter().map(run).collect())
}

/// A run in the table.
struct Shown {
    run: Run,
    size: Size,
    basis: Basis,
    estimate: Estimate,
}

fn efficiencies(shown: &[Shown]) -> Table {
    let headings = ["nodes", "N", "N is", "of memory", "hours", "efficiency", "efficiency is", "published", "off by"];
    let mut table = Table::new("Efficiency", headings.iter().copied());
    for Shown { run, size, basis, estimate: e } in shown {
        let memory = run.memory.as_deref().and_then(|text| memory(text).ok());
        let published = run.published.map_or(Cell::none(), |p| Cell::number(p, 2));
        // No difference where N was solved for: it agrees by construction.
        let off = run.published.filter(|_| *size != Size::Solved).map_or(Cell::none(), |p| {
            let points = e.efficiency * 100.0 - p;
            // Avoids -0.00.
            let points = if points.abs() < 0.005 { 0.0 } else { points };
            Cell::new(points, format!("{points:+.2}"))
        });
        let cells = vec![
            Cell::number(e.problem.n, 0),
            Cell::word(size.word()),
            memory.map_or(Cell::none(), |bytes| Cell::share(e.problem.fill(bytes))),
            Cell::number(e.seconds / 3600.0, 2),
            Cell::share(e.efficiency),
            Cell::word(basis.word()),
            published,
            off,
        ];
        table.rows.push((e.problem.nodes.to_string(), cells));
    }
    table
}

fn shares(shown: &[Shown]) -> Table {
    let mut table = Table::new("Shares of the remaining time", ["nodes", "N", "DGEMM", "panels", "network", "noise"]);
    for Shown { estimate: e, .. } in shown {
        let mut cells = vec![Cell::number(e.problem.n, 0)];
        cells.extend([e.dgemm, e.panel, e.communication, e.noise].map(Cell::share));
        table.rows.push((e.problem.nodes.to_string(), cells));
    }
    table
}

fn sheet(machine: &Machine, noise: &str, shown: &[Shown], curve: &[Estimate]) -> Sheet {
    let line = |label: &str, of: &dyn Fn(&Estimate) -> f64| {
        let points = curve.iter().map(|e| (e.problem.n, of(e) * 100.0)).collect();
        Curve { label: label.to_owned(), points }
    };
    let nodes = curve.first().map_or(0, |e| e.problem.nodes);
    let plots = vec![
        Plot {
            title: format!("Efficiency by N on {nodes} nodes"),
            across: "N".to_owned(),
            logarithmic: true,
            up: "efficiency, %".to_owned(),
            logarithmic_up: false,
            curves: vec![line("efficiency", &|e| e.efficiency)],
        },
        Plot {
            title: format!("Shares of the remaining time on {nodes} nodes"),
            across: "N".to_owned(),
            logarithmic: true,
            up: "share of the time, %".to_owned(),
            logarithmic_up: false,
            curves: vec![
                line("DGEMM below peak", &|e| e.dgemm),
                line("panels", &|e| e.panel),
                line("network", &|e| e.communication),
                line("noise", &|e| e.noise),
            ],
        },
    ];
    let rows = shown.iter().map(|one| &one.run.row).filter(|row| !row.is_empty());
    let published: Vec<String> = rows.cloned().collect();
    let mut notes =
        vec![format!("Noise: {noise}."), format!("Machine ({}): {}.", machine.evidence.word(), machine.source)];
    notes.extend((!published.is_empty()).then(|| format!("Published: {}.", published.join(", "))));
    let any = |basis| shown.iter().any(|one| one.basis == basis);
    notes.extend(
        any(Basis::Fitted)
            .then(|| "Fitted: numbers of the machine were fitted to this run's published efficiency.".to_owned()),
    );
    notes.extend(
        any(Basis::Chosen).then(|| "Chosen: N was solved for, so that the efficiency is the published one.".to_owned()),
    );
    notes.extend(
        any(Basis::Predicted).then(|| "Predicted: nothing was adjusted to an efficiency of this run.".to_owned()),
    );
    Sheet {
        title: format!("LINPACK on {}", machine.title),
        tables: vec![efficiencies(shown), shares(shown)],
        notes: vec![("Assumed", notes)],
        plots,
        bars: Vec::new(),
    }
}
