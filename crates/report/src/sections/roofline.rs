//! The rate of floating-point operations compared with the machine's peaks.

use fxscope_pmu::Values;
use fxscope_record::{Region, Run};

use crate::document::{Body, Point, Roof, Roofline, Section, Slope};
use crate::evaluate::Evaluated;

/// Memory levels: name, and the metric of operations per byte.
const POINTS: &[(&str, &str)] = &[("L2", "l2_intensity"), ("memory", "intensity")];
/// How to interpret a point's position.
const READING: &str = "A point near the slope of its level is limited by that bandwidth, one near the roof by the pipes. Far below \
                       both, latency limits: cycle accounting shows which.";
/// How to interpret a roofline without points. Traffic between pipes and L1 is not counted in bytes.
const READING_WITHOUT: &str = "There is no slope, since the data stay in L1, whose traffic is not counted: the dashed line is the rate \
                               reached. Near the roof the pipes limit it; below, busy rates show whether L1 does, and cycle \
                               accounting what threads wait for.";

/// Returns the region's rate by memory level; `None` without operations, or if their traffic or the machine's peaks are
/// unknown.
pub(crate) fn section(run: &Run, region: &Region, evaluated: &Evaluated) -> Option<Section> {
    let values = evaluated.evaluation.total();
    let gflops = values.get("gflops").filter(|rate| *rate > 0.0)?;
    let (roof, slopes) = ceilings(run, &values)?;
    let (mut points, mut idle) = (Vec::new(), Vec::new());
    for (level, metric) in POINTS {
        let level = (*level).to_owned();
        match values.get(metric) {
            Some(intensity) if intensity > 0.0 => points.push(Point { level, intensity }),
            // Operations without traffic.
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

/// Peaks of the cores and CMGs that threads ran on: those that shares of peak refer to, and those of the caches.
fn ceilings(run: &Run, values: &Values) -> Option<(Roof, Vec<Slope>)> {
    let (cores, cmgs) = (values.get("cores_used")?, values.get("cmgs_used")?);
    let cache = |name: &str, count: f64| Some(run.constants.get(name)? * count / 1e9);
    let roof = Roof {
        label: format!("double precision, {cores} core{}", if cores == 1.0 { "" } else { "s" }),
        gflops: values.get("gflops_peak")?,
    };
    let l2 = cache("l2_core_peak", cores)?.min(cache("l2_cmg_peak", cmgs)?);
    let slopes = [("L1", cache("l1_core_peak", cores)?), ("L2", l2), ("memory", values.get("memory_peak_gbs")?)];
    let slopes = slopes.map(|(label, gigabytes)| Slope { label: label.to_owned(), gigabytes });
    Some((roof, slopes.to_vec()))
}
