//! Phases under noise at several sizes.

use fxscope_jitter::closed;
use fxscope_jitter::model::Model;
use fxscope_jitter::scale::{Outcome, PhaseEnd, Setup};
use fxscope_report::document::{Curve, Plot};
use fxscope_report::sheet::{Cell, Sheet, Table};

use super::cells;
use super::plan::{Options, Plan, nodes, shortened, spared};
use crate::Error;

/// Results for one number of nodes.
pub(super) struct Size {
    pub nodes: u32,
    pub setup: Setup,
    pub outcome: Outcome,
}

/// Simulates a program of phases under noise at all sizes, from one node up to a whole machine.
///
/// Each core works for the grain, then all cores synchronise; a detour delays its core, and with it all that wait for it.
///
/// # Errors
/// If the model or the network cannot be loaded, or a size cannot be simulated.
pub fn simulate(options: &Options) -> Result<Sheet, Error> {
    let plan = options.plan()?;
    let mut sizes = Vec::new();
    for &nodes in &options.nodes {
        let (setup, outcome) = plan.run(&plan.model, &plan.setup(nodes))?;
        sizes.push(Size { nodes, setup, outcome });
    }
    Ok(sheet(&plan, &sizes))
}

fn sheet(plan: &Plan, sizes: &[Size]) -> Sheet {
    let ran: Vec<(u32, u64)> = sizes.iter().map(|size| (size.nodes, size.setup.phases)).collect();
    let asked = plan.setup(1).phases;
    let mut tables = vec![table(plan, sizes), times("phase", sizes)];
    tables.extend(causes(&plan.model, sizes));
    let mut notes = vec![format!("Noise: {}.", plan.model.title), format!("Network: {}.", plan.network.title)];
    let some = sizes.iter().filter(|size| size.setup.needed(&plan.model).is_some());
    notes.extend(spared(&some.map(|size| size.nodes).collect::<Vec<_>>()));
    notes.extend(shortened(&ran, asked));
    Sheet {
        title: format!("{} under {}", plan.words(), plan.model.name),
        tables,
        notes: vec![("Assumed", notes)],
        plots: plots("phase", sizes),
        bars: Vec::new(),
    }
}

fn table(plan: &Plan, sizes: &[Size]) -> Table {
    let headings =
        ["nodes", "cores", "sync", "efficiency", "slowdown", "95 % bounds", "noise", "phase loss", "expected"];
    let mut table = Table::new("By size", headings.iter().copied());
    for size in sizes {
        let (setup, outcome) = (&size.setup, &size.outcome);
        let loss = (outcome.time.saturating_sub(outcome.quiet)) as f64 / setup.phases as f64;
        let cells = vec![
            Cell::number(f64::from(size.nodes) * f64::from(setup.cores), 0),
            cells::time(sync_time(setup)),
            Cell::share(outcome.efficiency()),
            Cell::factor(outcome.slowdown()),
            bounds(outcome),
            Cell::share(outcome.noise()),
            cells::about(loss),
            closed_form(plan, setup).map_or(Cell::none(), cells::about),
        ];
        table.rows.push((size.nodes.to_string(), cells));
    }
    table
}

/// Returns the bounds of the slowdown.
pub(super) fn bounds(outcome: &Outcome) -> Cell {
    outcome.confidence.map_or(Cell::none(), |interval| {
        let [low, high] = [interval.low, interval.high].map(Cell::factor);
        Cell::new([interval.low, interval.high], format!("{} to {}", low.text(), high.text()))
    })
}

/// Returns the time of the synchronisation without noise, ns.
fn sync_time(setup: &Setup) -> f64 {
    match setup.end {
        PhaseEnd::All { cost }
        | PhaseEnd::Neighbours { cost, .. }
        | PhaseEnd::Panel { cost, .. }
        | PhaseEnd::Some { cost, .. } => cost as f64,
    }
}

/// Returns the expected loss of a phase, where a closed form exists.
fn closed_form(plan: &Plan, setup: &Setup) -> Option<f64> {
    let applies = matches!(setup.end, PhaseEnd::All { .. }) && setup.imbalance == 0.0;
    let expected = closed::expected(&plan.model, setup.nodes, setup.cores, setup.grain as f64);
    (applies && expected.seldom).then_some(expected.delay)
}

/// Returns the times of phases, or of runs of a program.
pub(super) fn times(what: &str, sizes: &[Size]) -> Table {
    let count = format!("{what}s");
    let headings = ["nodes", "half", "90 %", "99 %", "99.9 %", "longest", &count];
    let mut table = Table::new(format!("Time of a {what}"), headings);
    for size in sizes {
        let quantile = |q: f64| cells::time(size.outcome.quantile(q) as f64);
        let mut cells: Vec<Cell> = [0.5, 0.9, 0.99, 0.999, 1.0].map(quantile).to_vec();
        cells.push(Cell::number(size.setup.phases as f64, 0));
        table.rows.push((size.nodes.to_string(), cells));
    }
    table
}

/// Returns what each cause of noise costs, if there is any.
pub(super) fn causes(model: &Model, sizes: &[Size]) -> Option<Table> {
    let names: Vec<String> = sizes.iter().map(|size| nodes(size.nodes)).collect();
    let headings: Vec<&str> = std::iter::once("cause").chain(names.iter().map(String::as_str)).collect();
    let mut table = Table::new("Share of the time lost to each cause", headings.iter().copied());
    for (i, source) in model.sources.iter().enumerate() {
        let cells = sizes.iter().map(|size| Cell::share(size.outcome.lost[i] / size.outcome.time as f64)).collect();
        table.rows.push((source.cause.clone(), cells));
    }
    (!model.sources.is_empty()).then_some(table)
}

/// Returns the plots of phases, or of runs of a program.
pub(super) fn plots(what: &str, sizes: &[Size]) -> Vec<Plot> {
    let curve = |label: &str, of: &dyn Fn(&Size) -> f64| {
        let points = sizes.iter().map(|size| (f64::from(size.nodes), of(size))).collect();
        Curve { label: label.to_owned(), points }
    };
    let efficiency = Plot {
        title: "Efficiency by size".to_owned(),
        across: "nodes".to_owned(),
        logarithmic: true,
        up: "share of the time, %".to_owned(),
        logarithmic_up: false,
        curves: vec![
            curve("work", &|size| size.outcome.efficiency() * 100.0),
            curve("lost to noise", &|size| size.outcome.noise() * 100.0),
        ],
    };
    let distribution = |size: &Size| {
        let point = |i: u32| {
            let share = f64::from(i) / 100.0;
            (size.outcome.quantile(share) as f64 / 1e3, share * 100.0)
        };
        Curve { label: nodes(size.nodes), points: (0..=100).map(point).collect() }
    };
    let ended = Plot {
        title: format!("{}s that end within a time", what[..1].to_uppercase() + &what[1..]),
        across: format!("time of a {what}, us"),
        logarithmic: true,
        up: format!("share of {what}s, %"),
        logarithmic_up: false,
        curves: sizes.iter().map(distribution).collect(),
    };
    vec![efficiency, ended]
}
