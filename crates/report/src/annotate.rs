//! Where a run's cycles went, by function and by instruction.
//!
//! An [`Annotation`] combines a run with its code. [`document`] formats it for display, [`json`] for programs.

mod listing;
pub(crate) mod nest;

use std::fmt::Write as _;

use fxscope_counts::Stall;
use fxscope_record::{ALL, Run};
use serde_json::{Value as Json, json};

use crate::document::{Body, Document, Line, Row, Section, Value};
use crate::sections::{plain, title};

/// Smallest share shown in a terminal column.
const LEAST: f64 = 0.01;
/// Functions listed on the terminal; the others are summed in one line.
pub(crate) const FUNCTIONS: usize = 20;

/// Note of sampled runs.
const SAMPLED: &str =
    "Sampled: numbers of executions are exact; cycles are estimated from the executions that were timed.";

/// A run's functions with their instructions.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Annotation {
    /// The file that the code was read from; `None` if it could not be read.
    pub code: Option<String>,
    /// Cycles of the run.
    pub cycles: u64,
    /// Cycles of the run outside any instruction: system calls, and waiting in them.
    pub outside: u64,
    /// Instructions that a core can commit in a cycle; 0: unknown.
    pub commit_width: u32,
    /// The executed functions, by descending cycles.
    pub functions: Vec<Function>,
    /// What is missing, and how to get it.
    pub notes: Vec<String>,
}

/// A function's share of a run.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Function {
    /// Name in the symbol table; empty for all code without a symbol.
    pub name: String,
    /// Its file; `None` for code that is not from a file.
    pub file: Option<String>,
    /// Its first address; 0 without a name.
    pub address: u64,
    /// Cycles of its instructions.
    pub cycles: u64,
    /// Instructions executed.
    pub executions: u64,
    /// Cycles without commit charged to its instructions, for each cause in [`Run::stalls`].
    pub stalls: Vec<u64>,
    /// Its executed instructions, by ascending address; `None` unless requested.
    pub instructions: Option<Vec<Instruction>>,
}

/// An instruction's share of a run, and its static properties.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Instruction {
    /// Address.
    pub address: u64,
    /// Offset from the start of the function, bytes.
    pub offset: u64,
    /// Number of executions.
    pub executions: u64,
    /// Total cycles between the previous commit and its own.
    pub cycles: u64,
    /// Total cycles from its issue to its commit.
    pub in_flight: u64,
    /// Cycles without commit charged to it, for each cause in [`Run::stalls`].
    pub stalls: Vec<u64>,
    /// Cycles that it occupied each of [`Run::pipes`].
    pub pipes: Vec<u64>,
    /// Its counts of [`fxscope_record::Profile::events`].
    pub events: Vec<u64>,
    /// The loops that it is in, as indices into [`fxscope_record::Profile::loops`], the outermost first.
    pub loops: Vec<u32>,
    /// The offset in the function of the instruction that makes its latest operand, as far as the code says which that is.
    pub producer: Option<u64>,
    /// Its source line; `None` without debug information.
    pub source: Option<Source>,
    /// The instruction itself; `None` without the program's file.
    pub code: Option<Code>,
}

/// A source line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file, as given to the compiler.
    pub file: String,
    /// Line number, counted from 1.
    pub line: u32,
    /// What it says; `None` if the file cannot be read.
    pub text: Option<String>,
}

/// Static properties of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// The instruction word.
    pub word: u32,
    /// Disassembly; `None` if the disassembler does not know it.
    pub text: Option<String>,
    /// Its micro-operations. A MOVPRFX that is packed with the next instruction has none.
    pub uops: Vec<MicroOp>,
}

/// A micro-operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MicroOp {
    /// Its flows.
    pub flows: Vec<Flow>,
    /// Whether the flows are independent (address and data of a store).
    pub independent: bool,
}

/// A pass through a pipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Names of the pipes.
    pub pipes: Vec<&'static str>,
    /// Whether it uses all of them at once instead of one of them.
    pub all: bool,
    /// Cycles until the next flow or the result.
    pub latency: u16,
    /// Cycles that the pipe is occupied.
    pub busy: u16,
}

/// Returns the cycles of all threads of a whole run.
#[must_use]
pub fn cycles(run: &Run) -> u64 {
    let Some(region) = run.region(ALL) else { return 0 };
    (0..region.threads.len()).filter_map(|thread| region.count(thread, "CPU_CYCLES")).sum()
}

/// `part` as a fraction of `whole`; 0 of nothing.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Returns the terminal form: the functions, then the instructions of those that have them.
#[must_use]
pub fn document(run: &Run, annotation: &Annotation) -> Document {
    let mut sections = vec![functions(run, annotation)];
    for function in &annotation.functions {
        let Some(list) = &function.instructions else { continue };
        sections.push(listing::instructions(run, annotation, function, list));
        sections.extend(waits(run, function));
    }
    let sampled = run.sample.is_some().then(|| SAMPLED.to_owned());
    let notes = annotation.notes.iter().map(|note| plain(note)).chain(sampled).collect::<Vec<_>>();
    if !notes.is_empty() {
        sections.push(Section { title: "Notes".to_owned(), body: Body::Notes(notes) });
    }
    Document { title: title(run), columns: vec![plain(run.program())], sections }
}

/// What is added to titles of sampled runs.
pub(crate) fn mark(run: &Run) -> &'static str {
    if run.sample.is_some() { " (sampled)" } else { "" }
}

/// Display name of a function, with its file unless that is the program.
pub(crate) fn name(run: &Run, function: &Function) -> String {
    let name = if function.name.is_empty() { "(code without a name)" } else { &function.name };
    let foreign = function.file.as_ref().filter(|file| run.files.first().is_some_and(|program| program.path != **file));
    match foreign {
        Some(file) => plain(&format!("{name} in {}", file.rsplit('/').next().unwrap_or_default())),
        None => plain(name),
    }
}

fn functions(run: &Run, annotation: &Annotation) -> Section {
    let line = |label: String, cycles: u64, executions: Option<u64>| {
        let fraction = share(cycles, annotation.cycles);
        let values = vec![
            Some(Value::number(cycles as f64, "cycles")),
            Some(Value::number(fraction, "ratio")),
            executions.map(|n| Value::number(n as f64, "instructions")),
            Some(Value::Share(fraction)),
        ];
        Line::Row(Row { label, values })
    };
    let (shown, others) = annotation.functions.split_at(annotation.functions.len().min(FUNCTIONS));
    let mut lines: Vec<Line> = shown.iter().map(|f| line(name(run, f), f.cycles, Some(f.executions))).collect();
    if !others.is_empty() {
        let label = format!("({} other functions)", others.len());
        let sum = |of: fn(&Function) -> u64| others.iter().map(of).sum();
        lines.push(line(label, sum(|f| f.cycles), Some(sum(|f| f.executions))));
    }
    if annotation.outside > 0 {
        lines.push(line("(system calls and waiting)".to_owned(), annotation.outside, None));
    }
    let headings = ["Function", "cycles", "share", "instructions", ""].map(str::to_owned).to_vec();
    Section { title: format!("Functions{}", mark(run)), body: Body::Listing { headings, lines } }
}

/// Mean cycles from issue to commit; `None` if not counted.
pub(crate) fn in_flight(run: &Run, instruction: &Instruction) -> Option<f64> {
    (!run.pipes.is_empty()).then(|| share(instruction.in_flight, instruction.executions))
}

/// The stall cause with most cycles of an instruction, and its share of the instruction's cycles in percent; empty if
/// negligible.
pub(crate) fn longest_wait(run: &Run, instruction: &Instruction) -> String {
    longest(run, instruction)
        .map_or_else(String::new, |(name, n)| format!("{} {:.0}", short(name), 100.0 * share(n, instruction.cycles)))
}

fn longest<'a>(run: &'a Run, instruction: &Instruction) -> Option<(&'a str, u64)> {
    let longest = sorted(&run.stalls, &instruction.stalls).into_iter().next();
    longest.filter(|&(_, n)| share(n, instruction.cycles) >= LEAST)
}

/// The offset in the function of the instruction that makes the operand of an instruction which waits mainly for a result.
pub(crate) fn waits_on(run: &Run, instruction: &Instruction) -> Option<u64> {
    const RESULTS: [Stall; 4] = [Stall::BaseL1, Stall::VectorL1, Stall::BaseOperation, Stall::VectorOperation];
    let (name, _) = longest(run, instruction)?;
    instruction.producer.filter(|_| known(name).is_some_and(|stall| RESULTS.contains(&stall)))
}

/// The pipes that an instruction used, with their shares in percent if several matter; `None` if it used none.
pub(crate) fn used(run: &Run, instruction: &Instruction) -> Option<String> {
    let all: u64 = instruction.pipes.iter().sum();
    let mut pipes = sorted(&run.pipes, &instruction.pipes);
    pipes.retain(|&(_, n)| share(n, all) >= LEAST);
    let several = pipes.len() > 1;
    let texts = pipes.iter().map(|&(name, n)| match several {
        true => format!("{} {:.0}", plain(name), 100.0 * share(n, all)),
        false => plain(name),
    });
    (!pipes.is_empty()).then(|| texts.collect::<Vec<_>>().join(" "))
}

/// The nonzero `counts`, in descending order.
fn sorted<'a>(names: &'a [String], counts: &[u64]) -> Vec<(&'a str, u64)> {
    let named = names.iter().map(String::as_str).zip(counts.iter().copied());
    let mut list: Vec<_> = named.filter(|&(_, n)| n > 0).collect();
    list.sort_by_key(|&(_, n)| std::cmp::Reverse(n));
    list
}

fn known(name: &str) -> Option<Stall> {
    Stall::ALL.iter().copied().find(|stall| stall.name() == name)
}

/// Abbreviated name of a stall cause.
pub(crate) fn short(name: &str) -> String {
    known(name).map_or_else(|| plain(name), |stall| stall.short().to_owned())
}

/// The causes of a function's cycles without commit, with the abbreviations used for its instructions.
fn waits(run: &Run, function: &Function) -> Option<Section> {
    let row = |(name, cycles): (&str, u64)| Row {
        label: short(name),
        values: vec![
            Some(Value::number(cycles as f64, "cycles")),
            Some(Value::number(share(cycles, function.cycles), "ratio")),
            Some(Value::Text(known(name).map_or(String::new(), |stall| format!("{}: ", stall.title())) + &plain(name))),
        ],
    };
    let rows: Vec<Row> = sorted(&run.stalls, &function.stalls).into_iter().map(row).collect();
    let headings = ["Waits for", "cycles", "share", "counted as"].map(str::to_owned).to_vec();
    (!rows.is_empty()).then(|| Section { title: "Waits".to_owned(), body: Body::Table { headings, rows } })
}

/// Pipes of micro-operations in the manual's notation: `/` between micro-operations, `+` between dependent flows and
/// `,` between independent ones, `|` between alternatives, `&` for pipes used together.
#[must_use]
pub fn pipes(uops: &[MicroOp]) -> String {
    let texts: Vec<String> = uops.iter().map(flows).collect();
    let mut out = String::new();
    for run in texts.chunk_by(|a, b| a == b).filter(|run| !run[0].is_empty()) {
        let gap = if out.is_empty() { "" } else { "/" };
        let _ = match run.len() {
            1 => write!(out, "{gap}{}", run[0]),
            times => write!(out, "{gap}({})x{times}", run[0]),
        };
    }
    out
}

fn flows(uop: &MicroOp) -> String {
    let flow = |f: &Flow| if f.all { f.pipes.join("&") } else { alternatives(&f.pipes) };
    uop.flows.iter().map(flow).collect::<Vec<_>>().join(if uop.independent { "," } else { "+" })
}

/// Alternative pipes. `EX*` is either of EXA and EXB: in most rows the two pipes of a kind are alternatives.
fn alternatives(pipes: &[&str]) -> String {
    let kind = |pipe: &str| pipe.strip_suffix(['A', 'B']).map(str::to_owned);
    let same_kind = |a: &&str, b: &&str| kind(a).is_some() && kind(a) == kind(b);
    let names = pipes.chunk_by(same_kind).map(|group| match (group, kind(group[0])) {
        ([_, _], Some(kind)) => format!("{kind}*"),
        _ => group.join("|"),
    });
    names.collect::<Vec<_>>().join("|")
}

/// Returns the annotation as JSON, with stable keys. Unknown values are `null`; functions whose instructions were not
/// requested lack `instructions`.
#[must_use]
pub fn json(run: &Run, annotation: &Annotation) -> Json {
    json!({
        "tool": run.tool,
        "machine": run.machine,
        "program": run.program(),
        "arguments": run.command.get(1..).unwrap_or_default(),
        "code": annotation.code,
        "sampled": run.sample.is_some(),
        "cycles": annotation.cycles,
        "cycles_outside": annotation.outside,
        "notes": annotation.notes,
        "loops": crate::loops::json(run),
        "functions": annotation.functions.iter().map(|f| json_function(run, f, annotation.cycles)).collect::<Vec<_>>(),
    })
}

fn json_function(run: &Run, function: &Function, cycles: u64) -> Json {
    let mut object = json!({
        "name": function.name,
        "file": function.file,
        "address": function.address,
        "cycles": function.cycles,
        "share": share(function.cycles, cycles),
        "executions": function.executions,
        "stalls": json_counts(&run.stalls, &function.stalls),
    });
    if let Some(list) = &function.instructions {
        object["instructions"] = list.iter().map(|i| json_instruction(run, i, function.cycles)).collect();
    }
    object
}

/// Nonzero counts by name, in descending order; `null` if not counted.
pub(crate) fn json_counts(names: &[String], counts: &[u64]) -> Json {
    if names.is_empty() {
        return Json::Null;
    }
    sorted(names, counts)
        .into_iter()
        .map(|(name, n)| (name.to_owned(), n.into()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn json_instruction(run: &Run, instruction: &Instruction, cycles: u64) -> Json {
    let code = instruction.code.as_ref();
    json!({
        "address": instruction.address,
        "offset": instruction.offset,
        "executions": instruction.executions,
        "cycles": instruction.cycles,
        "share": share(instruction.cycles, cycles),
        "cycles_per_execution": share(instruction.cycles, instruction.executions),
        "issue_to_commit": in_flight(run, instruction),
        "stalls": json_counts(&run.stalls, &instruction.stalls),
        "pipes": json_counts(&run.pipes, &instruction.pipes),
        "events": json_counts(&run.profile.events, &instruction.events),
        "loops": instruction.loops,
        "producer": instruction.producer,
        "file": instruction.source.as_ref().map(|s| &s.file),
        "line": instruction.source.as_ref().map(|s| s.line),
        "source": instruction.source.as_ref().and_then(|s| s.text.as_ref()),
        "word": code.map(|c| c.word),
        "text": code.and_then(|c| c.text.as_ref()),
        "uops": code.map(|c| c.uops.iter().map(json_uop).collect::<Vec<_>>()),
    })
}

fn json_uop(uop: &MicroOp) -> Json {
    let flow = |f: &Flow| json!({"pipes": f.pipes, "all_pipes": f.all, "latency": f.latency, "pipe_cycles": f.busy});
    json!({"flows": uop.flows.iter().map(flow).collect::<Vec<_>>(), "independent": uop.independent})
}
