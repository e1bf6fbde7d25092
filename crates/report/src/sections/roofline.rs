//! The rate of floating-point operations against what the machine can do.

use std::collections::{BTreeMap, BTreeSet};

use fxscope_record::{Region, Run};

use crate::document::{Body, Point, Roof, Roofline, Section, Slope};
use crate::evaluate::Evaluated;

/// Levels of memory: name, and the metric of operations for each byte that moves there.
const POINTS: &[(&str, &str)] = &[("L2", "l2_intensity"), ("memory", "intensity")];
/// How to read where a point lies.
const READING: &str = "A point near the slope of its level is limited by it, one near the roof by the pipes; far below both, threads \
                       wait for latency: cycle accounting says for which.";
/// How to read it where there is no point. What moves between the pipes and L1 is not counted in bytes.
const READING_WITHOUT: &str = "No slope limits it, since its data stay in L1 and bytes from there are not counted: the dashed line \
                               is what it reached. Near the roof the pipes limit it; below, busy rates tell whether L1 does, and cycle \
                               accounting what threads wait for.";

/// The region's rate by level of memory; `None` without operations, or when what moves for them or the machine's peaks are
/// not known.
pub(crate) fn section(run: &Run, region: &Region, evaluated: &Evaluated) -> Option<Section> {
    let values = evaluated.evaluation.total();
    let gflops = values.get("gflops").filter(|rate| *rate > 0.0)?;
    let (roof, slopes) = ceilings(run, region, evaluated)?;
    let (mut points, mut idle) = (Vec::new(), Vec::new());
    for (level, metric) in POINTS {
        let level = (*level).to_owned();
        match values.get(metric) {
            Some(intensity) if intensity > 0.0 => points.push(Point { level, intensity }),
            // Operations for each of no bytes.
            Some(_) => idle.push(level),
            None => {}
        }
    }
    if points.is_empty() && idle.len() < POINTS.len() {
        return None;
    }
    let reading = if points.is_empty() { READING_WITHOUT } else { READING };
    let reached = Roof { label: region.name.clone(), gflops };
    let roofline = Roofline { roofs: vec![roof], slopes, reached, points, idle, reading: reading.to_owned() };
    Some(Section { title: "Roofline".to_owned(), body: Body::Roofline(roofline) })
}

/// What the cores and CMGs that threads run on can do.
fn ceilings(run: &Run, region: &Region, evaluated: &Evaluated) -> Option<(Roof, Vec<Slope>)> {
    let cores = region.threads.iter().map(|t| (t.node, t.cpu)).collect::<BTreeSet<_>>().len() as f64;
    let cmgs = evaluated.evaluation.teams().iter().map(|team| team.cmg).collect::<BTreeSet<_>>().len().max(1) as f64;
    let peak = |name: &str, count: f64| peak(&run.constants, name, count);
    let roof = Roof {
        label: format!("double precision, {cores} core{}", if cores == 1.0 { "" } else { "s" }),
        gflops: peak("peak_flops_dp", cores)?,
    };
    let l2 = peak("l2_core_peak", cores)?.min(peak("l2_cmg_peak", cmgs)?);
    let slopes = [("L1", peak("l1_core_peak", cores)?), ("L2", l2), ("memory", peak("memory_peak", cmgs)?)];
    let slopes = slopes.map(|(label, gigabytes)| Slope { label: label.to_owned(), gigabytes });
    Some((roof, slopes.to_vec()))
}

/// What so many of a machine's parts can do, 1e9 each second.
fn peak(constants: &BTreeMap<String, f64>, name: &str, count: f64) -> Option<f64> {
    Some(constants.get(name)? * count / 1e9)
}
