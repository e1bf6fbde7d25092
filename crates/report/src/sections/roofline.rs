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

/// The region's rate by level of memory; `None` without operations or what moves for them, or when the
/// machine's peaks are not known.
pub(crate) fn section(run: &Run, region: &Region, evaluated: &Evaluated) -> Option<Section> {
    let values = evaluated.evaluation.total();
    let gflops = values.get("gflops").filter(|rate| *rate > 0.0)?;
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
    let points = POINTS.iter().filter_map(|(level, metric)| {
        let intensity = values.get(metric).filter(|n| *n > 0.0)?;
        Some(Point { level: (*level).to_owned(), label: region.name.clone(), intensity, gflops })
    });
    let points: Vec<Point> = points.collect();
    if points.is_empty() {
        return None;
    }
    let roofline = Roofline { roofs: vec![roof], slopes: slopes.to_vec(), points, reading: READING.to_owned() };
    Some(Section { title: "Roofline".to_owned(), body: Body::Roofline(roofline) })
}

/// What so many of a machine's parts can do, 1e9 each second.
fn peak(constants: &BTreeMap<String, f64>, name: &str, count: f64) -> Option<f64> {
    Some(constants.get(name)? * count / 1e9)
}
