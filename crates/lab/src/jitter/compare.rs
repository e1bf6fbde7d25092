//! Remedies against noise, side by side.

use fxscope_jitter::remedies::{Options as Settings, Remedy};
use fxscope_report::document::{Curve, Plot};
use fxscope_report::sheet::{Cell, Sheet, Table};

use super::plan::{Options, Plan, nodes, shortened, spared};
use crate::Error;

/// Loss to noise below which no remedy is needed.
const SMALL: f64 = 0.01;

/// Difference of efficiency that is more than chance.
const CLEAR: f64 = 0.01;

/// A remedy with its efficiency at each size; `None` where it does not apply.
struct Row {
    remedy: Remedy,
    efficiency: Vec<f64>,
    noise: Vec<f64>,
    /// Sizes at which detours without effect were not drawn.
    spared: Vec<u32>,
    refused: Option<&'static str>,
}

/// Simulates all remedies against noise at all sizes.
///
/// Efficiency is the share of the time of all cores that is useful work, so a core set aside for the system counts as lost.
///
/// # Errors
/// If the model or the network cannot be loaded, a parameter is out of range, or a size cannot be simulated.
pub fn compare(options: &Options, settings: &Settings) -> Result<Sheet, Error> {
    settings.check()?;
    let plan = options.plan()?;
    let mut ran = Vec::new();
    let mut rows = Vec::new();
    for remedy in Remedy::ALL {
        rows.push(row(remedy, &plan, settings, &mut ran)?);
    }
    Ok(sheet(&plan, settings, &rows, &ran))
}

fn row(remedy: Remedy, plan: &Plan, settings: &Settings, ran: &mut Vec<(u32, u64)>) -> Result<Row, Error> {
    let mut row = Row { remedy, efficiency: Vec::new(), noise: Vec::new(), spared: Vec::new(), refused: None };
    for &nodes in &plan.options.nodes {
        let setup = plan.setup(nodes);
        row.refused = remedy.refused(&plan.model, &setup);
        if row.refused.is_some() {
            break;
        }
        let (model, changed) = remedy.apply(&plan.model, &setup, settings, &plan.network);
        let (changed, outcome) = plan.run(&model, &changed)?;
        // All cores of a node count, including those that are set aside.
        let cores = f64::from(changed.cores) / f64::from(setup.cores);
        row.efficiency.push(outcome.efficiency() * cores);
        row.noise.push(outcome.noise());
        row.spared.extend(changed.needed(&model).map(|_| nodes));
        ran.push((nodes, changed.phases));
    }
    Ok(row)
}

fn sheet(plan: &Plan, settings: &Settings, rows: &[Row], ran: &[(u32, u64)]) -> Sheet {
    let names: Vec<String> = plan.options.nodes.iter().map(|&n| nodes(n)).collect();
    let headings: Vec<&str> = std::iter::once("remedy").chain(names.iter().map(String::as_str)).collect();
    let table = |title: &str, of: &dyn Fn(&Row) -> &[f64]| {
        let mut table = Table::new(title, headings.iter().copied());
        for row in rows.iter().filter(|row| row.refused.is_none()) {
            table.rows.push((row.remedy.name().to_owned(), of(row).iter().map(|&e| Cell::share(e)).collect()));
        }
        table
    };
    let able = || rows.iter().filter(|row| row.refused.is_none());
    let mut meaning: Vec<String> =
        able().skip(1).map(|row| format!("{}: {}.", row.remedy.name(), row.remedy.words(settings))).collect();
    let without = rows.iter().filter_map(|row| Some(format!("{}: left out, {}.", row.remedy.name(), row.refused?)));
    meaning.extend(without);
    let fewest = ran.iter().map(|&(nodes, _)| nodes).collect::<std::collections::BTreeSet<_>>();
    let fewest: Vec<(u32, u64)> =
        fewest.into_iter().map(|n| (n, ran.iter().filter(|r| r.0 == n).map(|r| r.1).min().unwrap_or(0))).collect();
    let some: std::collections::BTreeSet<u32> = rows.iter().flat_map(|row| row.spared.iter().copied()).collect();
    meaning.extend(spared(&some.into_iter().collect::<Vec<_>>()));
    meaning.extend(shortened(&fewest, plan.setup(1).phases));
    let curve = |row: &Row| {
        let points = plan.options.nodes.iter().zip(&row.efficiency).map(|(&n, &e)| (f64::from(n), e * 100.0)).collect();
        Curve { label: row.remedy.name().to_owned(), points }
    };
    let plot = Plot {
        title: "Efficiency by size and remedy".to_owned(),
        across: "nodes".to_owned(),
        logarithmic: true,
        up: "efficiency, %".to_owned(),
        logarithmic_up: false,
        curves: able().map(curve).collect(),
    };
    Sheet {
        title: format!("{} under {}: remedies", plan.words(), plan.model.name),
        tables: vec![
            table("Efficiency", &|row| &row.efficiency),
            table("Share of the time lost to noise", &|row| &row.noise),
        ],
        notes: vec![("Remedies", meaning), ("Advice", recommend(&plan.options.nodes, rows))],
        plots: vec![plot],
        bars: Vec::new(),
    }
}

/// Returns sentences about the largest size.
fn recommend(sizes: &[u32], rows: &[Row]) -> Vec<String> {
    let Some((last, &most)) = sizes.iter().enumerate().max_by_key(|(_, n)| **n) else { return Vec::new() };
    let share = |value: f64| Cell::share(value).text().to_owned();
    let now = &rows[0];
    let mut out = vec![format!("On {} noise takes {} of the time.", nodes(most), share(now.noise[last]))];
    if now.noise[last] < SMALL {
        out.push("That is less than 1 %: no remedy is needed.".to_owned());
        return out;
    }
    // More work per phase makes it a different program, so it is judged separately.
    let mut able: Vec<&Row> =
        rows[1..].iter().filter(|r| r.refused.is_none() && r.remedy != Remedy::LargerGrain).collect();
    able.sort_by(|a, b| b.efficiency[last].total_cmp(&a.efficiency[last]));
    let gain = |row: &Row| row.efficiency[last] - now.efficiency[last];
    match able.first() {
        Some(best) if gain(best) > 0.0 => {
            let from = share(now.efficiency[last]);
            out.push(format!(
                "Best there: {}, efficiency {} for {from}.",
                best.remedy.name(),
                share(best.efficiency[last])
            ));
            let near = able[1..].iter().filter(|row| gain(row) > 0.9 * gain(best)).map(|row| row.remedy.name());
            let near: Vec<_> = near.collect();
            if !near.is_empty() {
                out.push(format!("Nearly as good: {}.", near.join(", ")));
            }
        }
        _ => out.push("No remedy helps there except more work per phase.".to_owned()),
    }
    for row in able.iter().filter(|row| gain(row) <= 0.0) {
        let (here, there) = (share(row.efficiency[last]), share(now.efficiency[last]));
        out.push(format!("No gain from: {}, efficiency {here} for {there}.", row.remedy.name()));
    }
    out.extend(able.iter().filter(|row| gain(row) > 0.0).filter_map(|row| pays(sizes, now, row)));
    if let Some(grain) = rows.iter().find(|row| row.remedy == Remedy::LargerGrain && row.refused.is_none()) {
        out.push(format!("With a larger grain it would be {}.", share(grain.efficiency[last])));
    }
    out
}

/// Returns a sentence if a remedy gains on many nodes but not on few.
fn pays(sizes: &[u32], now: &Row, row: &Row) -> Option<String> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&i| sizes[i]);
    let loses = order.iter().rev().find(|&&i| row.efficiency[i] < now.efficiency[i] - CLEAR)?;
    let first = order.iter().find(|&&i| sizes[i] > sizes[*loses])?;
    Some(format!("Gains on {}, not on {}: {}.", nodes(sizes[*first]), sizes[*loses], row.remedy.name()))
}
