//! `fxscope jitter simulate`: phases under noise at several sizes.

use fxscope::jitter::closed;
use fxscope::jitter::scale::{Meet, Outcome, Setup};
use fxscope::report::document::{Curve, Plot};

use super::super::Outcome as Done;
use super::setup::{Options, Plan, nodes, shortened, spared};
use super::sheet::{Cell, Form, Sheet, Table};

/// Simulate a program of phases under noise, on one node up to a whole machine.
///
/// Each core works for the grain, then the cores meet; a detour holds up its core, and with it all that wait. Efficiency is the
/// share of the time that is work, `phase loss` what noise adds to a phase, `expected` the same by order statistics where they
/// hold. docs/jitter-scale.md has examples and what they cost.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    form: Form,
}

/// One size.
struct Size {
    nodes: u32,
    setup: Setup,
    outcome: Outcome,
}

/// Simulates all sizes.
pub(super) fn simulate(args: &Args) -> Done {
    let target = args.form.target()?;
    let plan = args.options.plan()?;
    let mut sizes = Vec::new();
    for &nodes in &args.options.nodes {
        let (setup, outcome) = plan.run(&plan.model, &plan.setup(nodes))?;
        sizes.push(Size { nodes, setup, outcome });
    }
    sheet(&plan, &sizes).write(&args.form, target)
}

fn sheet(plan: &Plan, sizes: &[Size]) -> Sheet {
    let ran: Vec<(u32, u64)> = sizes.iter().map(|size| (size.nodes, size.setup.phases)).collect();
    let asked = plan.setup(1).phases;
    let mut tables = vec![table(plan, sizes), phases(sizes)];
    tables.extend((!plan.model.sources.is_empty()).then(|| causes(plan, sizes)));
    let mut notes = vec![format!("Noise: {}.", plan.model.title), format!("Network: {}.", plan.network.title)];
    let some = sizes.iter().filter(|size| size.setup.needed(&plan.model).is_some());
    notes.extend(spared(&some.map(|size| size.nodes).collect::<Vec<_>>()));
    notes.extend(shortened(&ran, asked));
    Sheet {
        title: format!("{} under {}", plan.words(), plan.model.name),
        tables,
        notes: vec![("Assumed", notes)],
        plots: plots(sizes),
        bars: Vec::new(),
    }
}

fn table(plan: &Plan, sizes: &[Size]) -> Table {
    let headings =
        ["nodes", "cores", "meeting", "efficiency", "slowdown", "95 % bounds", "noise", "phase loss", "expected"];
    let mut table = Table::new("By size", &headings);
    for size in sizes {
        let (setup, outcome) = (&size.setup, &size.outcome);
        let bounds = outcome.sure.map_or(Cell::none(), |sure| Cell {
            value: serde_json::json!([sure.low, sure.high]),
            text: format!("{} to {}", Cell::factor(sure.low).text, Cell::factor(sure.high).text),
        });
        let loss = (outcome.time.saturating_sub(outcome.quiet)) as f64 / setup.phases as f64;
        let cells = vec![
            Cell::number(f64::from(size.nodes) * f64::from(setup.cores), 0),
            Cell::time(meeting(setup)),
            Cell::share(outcome.efficiency()),
            Cell::factor(outcome.slowdown()),
            bounds,
            Cell::share(outcome.noise()),
            Cell::about(loss),
            closed_form(plan, setup).map_or(Cell::none(), Cell::about),
        ];
        table.rows.push((size.nodes.to_string(), cells));
    }
    table
}

/// What meeting takes without noise, ns.
fn meeting(setup: &Setup) -> f64 {
    match setup.meet {
        Meet::All { cost } | Meet::Neighbours { cost, .. } | Meet::Panel { cost, .. } | Meet::Some { cost, .. } => {
            cost as f64
        }
    }
}

/// What a phase is expected to lose, where that is known.
fn closed_form(plan: &Plan, setup: &Setup) -> Option<f64> {
    let applies = matches!(setup.meet, Meet::All { .. }) && setup.imbalance == 0.0;
    let expected = closed::expected(&plan.model, setup.nodes, setup.cores, setup.grain as f64);
    (applies && expected.seldom).then_some(expected.delay)
}

fn phases(sizes: &[Size]) -> Table {
    let mut table = Table::new("Time of a phase", &["nodes", "half", "90 %", "99 %", "99.9 %", "longest", "phases"]);
    for size in sizes {
        let quantile = |q: f64| Cell::time(size.outcome.quantile(q) as f64);
        let mut cells: Vec<Cell> = [0.5, 0.9, 0.99, 0.999, 1.0].map(quantile).to_vec();
        cells.push(Cell::number(size.setup.phases as f64, 0));
        table.rows.push((size.nodes.to_string(), cells));
    }
    table
}

fn causes(plan: &Plan, sizes: &[Size]) -> Table {
    let names: Vec<String> = sizes.iter().map(|size| nodes(size.nodes)).collect();
    let headings: Vec<&str> = std::iter::once("cause").chain(names.iter().map(String::as_str)).collect();
    let mut table = Table::new("Share of the time lost to each cause", &headings);
    for (i, source) in plan.model.sources.iter().enumerate() {
        let cells = sizes.iter().map(|size| Cell::share(size.outcome.lost[i] / size.outcome.time as f64)).collect();
        table.rows.push((source.cause.clone(), cells));
    }
    table
}

fn plots(sizes: &[Size]) -> Vec<Plot> {
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
    let times = |size: &Size| {
        let point = |i: u32| {
            let share = f64::from(i) / 100.0;
            (size.outcome.quantile(share) as f64 / 1e3, share * 100.0)
        };
        Curve { label: nodes(size.nodes), points: (0..=100).map(point).collect() }
    };
    let phases = Plot {
        title: "Phases that end within a time".to_owned(),
        across: "time of a phase, us".to_owned(),
        logarithmic: true,
        up: "share of phases, %".to_owned(),
        logarithmic_up: false,
        curves: sizes.iter().map(times).collect(),
    };
    vec![efficiency, phases]
}
