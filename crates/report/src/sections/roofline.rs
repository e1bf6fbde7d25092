//! The rate of floating-point operations compared with the machine's peaks.

use fxscope_pmu::Values;
use fxscope_record::{ALL, Region, Run};

use crate::document::{Body, LoopPoint, Point, Roof, Roofline, Section, Slope};
use crate::evaluate::Evaluated;
use crate::loops::{self, HotLoop};

/// Memory levels: name, and the metric of operations per byte.
const POINTS: &[(&str, &str)] = &[("L2", "l2_intensity"), ("memory", "intensity")];
/// How to interpret a point's position.
const READING: &str = "A point near the slope of its level is limited by that bandwidth, one near the roof by the pipes. Far below \
                       both, latency limits: cycle accounting shows which.";
/// What the points of loops are.
const READING_OF_LOOPS: &str = "Loops: the rate of a core while it executes the loop, times the number of cores, over bytes that it loads \
                                and stores (L1) or that come in for it (L2, memory).";
/// Loops that are shown, and the least share of the cycles of each.
const LOOPS: usize = 8;
const LEAST: f64 = 0.01;
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
    let mut reading = if points.is_empty() { READING_WITHOUT } else { READING }.to_owned();
    let loops = if region.name == ALL { loops(run, &values) } else { Vec::new() };
    if !loops.is_empty() {
        reading = format!("{reading} {READING_OF_LOOPS}");
    }
    let reached = Roof { label: region.name.clone(), gflops };
    let roofline = Roofline { roofs: vec![roof], slopes, reached, points, idle, loops, reading };
    Some(Section { title: "Roofline".to_owned(), body: Body::Roofline(roofline) })
}

/// The hottest loops with floating-point operations. The record has them for the whole run only.
fn loops(run: &Run, values: &Values) -> Vec<LoopPoint> {
    let Some(cores) = values.get("cores_used") else { return Vec::new() };
    let hot = loops::hottest(run).into_iter().filter(|hot| hot.own_share >= LEAST);
    hot.filter_map(|hot| point(run, &hot, cores)).take(LOOPS).collect()
}

fn point(run: &Run, hot: &HotLoop, cores: f64) -> Option<LoopPoint> {
    let of = loops::roofline(run, hot.of)?;
    let levels = [("L1", of.l1), ("L2", of.l2), ("memory", of.memory)];
    let points = levels.into_iter().filter_map(|(level, intensity)| {
        Some(Point { level: level.to_owned(), intensity: intensity.filter(|&intensity| intensity > 0.0)? })
    });
    Some(LoopPoint { name: hot.name(), share: hot.own_share, gflops: of.gflops * cores, points: points.collect() })
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
