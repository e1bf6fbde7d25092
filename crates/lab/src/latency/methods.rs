//! Descriptions of the methods, and of the processors whose events are known.

use fxscope_latency::Method;
use fxscope_latency::inputs::{Pmu, pmus};
use fxscope_latency::methods::METHODS;
use fxscope_report::document::{Document, Section};

/// Lists the methods with their formulas and assumptions, and the processors whose events are known.
#[must_use]
pub fn methods() -> Document {
    let line = |method: &Method| {
        let Method { id, title, formula, assumptions, .. } = method;
        format!("{id}: {title}. {formula}. Assumes: {assumptions}. Needs: {}.", needs(method))
    };
    let known = |pmu: &Pmu| (pmu.id.clone(), pmu.title.clone());
    let sections = vec![
        Section::notes("Methods", METHODS.iter().map(line).collect()),
        Section::facts("Known", pmus().iter().map(known)),
    ];
    Document::of("Slower memory: a is added latency, T run time, threads the cores that work at a time", sections)
}

/// Lists the events that a method needs.
fn needs(method: &Method) -> String {
    let of = method.needs.iter().map(|of| of.iter().map(|q| q.title()).collect::<Vec<_>>().join(" or "));
    let mut needs: Vec<String> = of.collect();
    needs.extend(method.by_interval.then(|| "intervals".to_owned()));
    needs.extend(method.second.then(|| "a second run".to_owned()));
    needs.extend(method.machine.then(|| "a described machine".to_owned()));
    needs.join("; ")
}

/// Returns the methods as a Markdown table, as in docs/latency-lab.md.
#[must_use]
pub fn methods_markdown() -> String {
    let line = |method: &Method| {
        let Method { id, title, formula, assumptions, .. } = method;
        format!("| {id} | {title} | `{formula}` | {assumptions} | {} |\n", needs(method))
    };
    let head = "| | Method | Slowdown, or what it gives | Assumes | Needs |\n|---|---|---|---|---|\n";
    head.to_owned() + &METHODS.iter().map(line).collect::<String>()
}
