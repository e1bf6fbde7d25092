//! `fxscope pages risks`: accesses under a false mask to pages that are not there.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::machine::Spec;
use fxscope::record::{Finish, Run};
use fxscope::report::document::{Body, Document, Line, Row, Section, Value};
use fxscope::report::render::terminal;
use fxscope::risks::{Kind, Places, Risk, RiskFinder, Risks};
use serde_json::json;

use super::super::foreground::simulate_with;
use super::super::output::{Target, program_streams};
use super::super::scenario::ScenarioArgs;
use super::super::{Outcome, print, say, style};

/// Find instructions that name pages under a false mask which are not there: memory that was never mapped, or of which
/// no page was ever taken.
///
/// Runs the program once, in timing mode. Elements that are not active touch nothing; but a machine that looks up their
/// pages all the same finds none, each time, and no page size helps. Source lines are read from the program's debug
/// information (-g). The report goes to standard output, behind what the program wrote. Exit status: 0 when it could be
/// made, whatever was found and however the program ended; otherwise as for `fxscope run`.
#[derive(clap::Args)]
#[command(override_usage = "fxscope pages risks [OPTIONS] -- PROGRAM [ARGS]...")]
pub struct Args {
    /// Write what was found as JSON to this file, which is replaced as a whole, or to standard output (-) in place of
    /// the text.
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// The program (AArch64 Linux) and its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

/// Most instructions that the text shows.
const LISTED: usize = 20;

/// Looks for risks in a run.
pub(super) fn risks(args: &Args) -> Outcome {
    let target = args.json.as_deref().map(Target::check).transpose()?;
    let prepared = args.scenario.scenario(&args.command)?.prepare()?;
    let spec = prepared.spec().clone();
    let stdio = program_streams(target.as_ref())?;
    let mut finder = RiskFinder::new(&spec);
    let run = prepared.contained(stdio, |session| {
        simulate_with(session, false, |session, watch| session.run_observed(watch, &mut finder))
    })??;
    if let Finish::Failed(message) = &run.finish {
        say(&format!("the program cannot go on: {message}"));
    }
    let risks = finder.finish(&run, &spec);
    let instead = matches!(target, Some(Target::StandardOutput));
    if let Some(target) = target {
        target.write(&json!({
            "tool": run.tool,
            "machine": run.machine,
            "program": run.program(),
            "arguments": run.command.get(1..).unwrap_or_default(),
            "page_bytes": spec.pages.normal,
            "cycles": risks.cycles,
            "first_fault_accesses": risks.by_design,
            "risks": risks.risks,
        }))?;
    }
    if !instead {
        print(terminal::render(&[document(&run, &spec, &risks)], style(&std::io::stdout())))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn document(run: &Run, spec: &Spec, risks: &Risks) -> Document {
    let mut sections = Vec::new();
    if risks.risks.is_empty() {
        sections.push(notes(
            "Found",
            vec!["None found: no access named pages under a false mask that are not there.".into()],
        ));
    } else {
        sections.push(listing(&risks.risks));
        sections.push(notes("Advice", risks.risks.iter().take(LISTED).map(advice).collect()));
    }
    sections.push(notes("Notes", remarks(spec, risks)));
    let title = format!("Accesses under a false mask: {} on {}", run.program(), run.machine);
    Document { title, columns: vec![String::new()], sections }
}

fn notes(title: &str, notes: Vec<String>) -> Section {
    Section { title: title.to_owned(), body: Body::Notes(notes) }
}

fn listing(risks: &[Risk]) -> Section {
    let headings = ["instruction", "executed", "no page", "none active", "unmapped", "untouched", "first", "cycles"];
    let lines = risks.iter().take(LISTED).flat_map(|risk| [Line::Caption(caption(risk)), Line::Row(row(risk))]);
    let body = Body::Listing { headings: headings.map(str::to_owned).to_vec(), lines: lines.collect() };
    Section { title: "Found".to_owned(), body }
}

/// Most characters of a caption and of a place: names may be long.
const CAPTION: usize = 94;
const PLACE: usize = 60;

fn cut(text: String, most: usize) -> String {
    if text.chars().count() <= most { text } else { text.chars().take(most - 1).chain(['~']).collect() }
}

/// Where it is, and what.
fn caption(risk: &Risk) -> String {
    let line = file_and_line(risk).map_or_else(String::new, |line| format!(" ({line})"));
    let place = cut(format!("{}{line}", place(risk)), PLACE);
    cut(format!("{place}: {}", risk.text.as_deref().unwrap_or("not readable")), CAPTION)
}

/// The line without the folders of its file.
fn file_and_line(risk: &Risk) -> Option<&str> {
    risk.line.as_deref().map(|line| line.rsplit('/').next().unwrap_or(line))
}

fn place(risk: &Risk) -> String {
    match risk.function.as_str() {
        "" => format!("{:#x}", risk.address),
        function => format!("{function}+{:#x}", risk.offset),
    }
}

fn row(risk: &Risk) -> Row {
    let number = |n: u64| Some(Value::number(n as f64, "count"));
    let pages = |places: &Places| Some(Value::Text(places.pages.to_string()));
    let first = risk.unmapped.first.or(risk.untouched.first).unwrap_or_default();
    let values = vec![
        number(risk.executions),
        number(risk.accesses),
        number(risk.none_active),
        pages(&risk.unmapped),
        pages(&risk.untouched),
        Some(Value::Text(format!("{first:#x}"))),
        Some(Value::number(risk.cycles as f64, "cycles")),
    ];
    Row { label: format!("{:#x}", risk.address), values }
}

/// What to do about an instruction.
fn advice(risk: &Risk) -> String {
    let access = match (risk.kind, risk.indexed) {
        (Kind::Load, false) => "load",
        (Kind::Store, false) => "store",
        (Kind::Load, true) => "gather",
        (Kind::Store, true) => "scatter",
    };
    let what = if risk.unmapped.accesses > 0 { "allocate" } else { "write once" };
    let place = file_and_line(risk).map_or_else(|| place(risk), str::to_owned);
    if risk.none_active == 0 {
        return format!(
            "{place}: some elements of each {access} are active. If it is the last one of a loop, it costs little; give \
             the array a vector more behind its end. Otherwise {what} what the others name."
        );
    }
    format!(
        "{place}: {what} what this {access} names before the loop; or move the condition out of the loop, with a loop \
         for each of its values; or compile this loop without turning conditions into masks."
    )
}

/// What a reader should know of the numbers.
fn remarks(spec: &Spec, risks: &Risks) -> Vec<String> {
    let mut remarks = vec![format!(
        "Pages are counted in units of {} KiB. 'no page': accesses that named pages which were not there; 'none active': \
         those of them without any active element; 'unmapped': pages that do not exist; 'untouched': pages that exist, \
         which the first touch would take.",
        spec.pages.normal >> 10
    )];
    if risks.risks.is_empty() {
        remarks.clear();
    } else if risks.risks.len() > LISTED {
        remarks.push(format!("{} more instructions are in --json.", risks.risks.len() - LISTED));
    }
    if risks.by_design > 0 {
        remarks.push(format!(
            "First-fault and non-fault loads named pages that are not there {} times: they are made for that, and left out.",
            risks.by_design
        ));
    }
    remarks
}
