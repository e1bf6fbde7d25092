//! `fxscope latency methods`: what methods are, and what they need.

use std::process::ExitCode;

use fxscope::latency::Method;
use fxscope::latency::inputs::{Pmu, pmus};
use fxscope::latency::methods::METHODS;
use fxscope::report::document::{Body, Document, Row, Section, Value};
use fxscope::report::render::terminal;

use super::super::{Outcome, print, style};

/// List the methods with their formulas and what they assume, and the processors whose events are known.
#[derive(clap::Args)]
pub struct Args {
    /// Write the methods as a table of Markdown, as in docs/latency-lab.md.
    #[arg(long)]
    markdown: bool,
}

/// Lists them.
pub(super) fn methods(args: &Args) -> Outcome {
    if args.markdown {
        print(markdown())?;
        return Ok(ExitCode::SUCCESS);
    }
    let line = |method: &Method| {
        let Method { id, title, formula, assumptions, .. } = method;
        format!("{id}: {title}. {formula}. Assumes: {assumptions}. Needs: {}.", needs(method))
    };
    let row = |pmu: &Pmu| Row { label: pmu.id.clone(), values: vec![Some(Value::Text(pmu.title.clone()))] };
    let sections = vec![
        Section { title: "Methods".to_owned(), body: Body::Notes(METHODS.iter().map(line).collect()) },
        Section { title: "Known".to_owned(), body: Body::Facts(pmus().iter().map(row).collect()) },
    ];
    let title = "Slower memory: a is added latency, T run time, threads the cores that work at a time".to_owned();
    let document = Document { title, columns: vec![String::new()], sections };
    print(terminal::render(&[document], style(&std::io::stdout())))?;
    Ok(ExitCode::SUCCESS)
}

/// What a method needs, in words.
fn needs(method: &Method) -> String {
    let of = method.needs.iter().map(|of| of.iter().map(|q| q.title()).collect::<Vec<_>>().join(" or "));
    let mut needs: Vec<String> = of.collect();
    needs.extend(method.by_interval.then(|| "intervals".to_owned()));
    needs.extend(method.second.then(|| "a second run".to_owned()));
    needs.extend(method.machine.then(|| "a described machine".to_owned()));
    needs.join("; ")
}

/// The table of the document.
fn markdown() -> String {
    let line = |method: &Method| {
        let Method { id, title, formula, assumptions, .. } = method;
        format!("| {id} | {title} | `{formula}` | {assumptions} | {} |\n", needs(method))
    };
    let head = "| | Method | Slowdown, or what it gives | Assumes | Needs |\n|---|---|---|---|---|\n";
    head.to_owned() + &METHODS.iter().map(line).collect::<String>()
}
