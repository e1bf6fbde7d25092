//! The verdict on a region: how long it took, what limits it, where, and what to try.
//!
//! What limits it follows from rules (`data/rules/*.toml`). Renderers only print what is here.

use std::collections::{BTreeMap, BTreeSet};

use fxscope_pmu::{Evaluation, Finding, Judgement, Said, Values};
use fxscope_record::functions::omp_region_of;
use fxscope_record::{ALL, Mode, Origin, Region, Run};

use crate::render::quantity::{quantity, share};
use crate::{annotate, causes, loops};

/// Functions or lines that a verdict names.
pub const HOTTEST: usize = 5;
/// Remedies that a verdict names.
const REMEDIES: usize = 5;
/// What takes less of the cycles than this is not among the hottest.
const LEAST: f64 = 0.01;
/// What stands for the program in the commands of rules.
const PROGRAM: &str = "PROGRAM";

/// The verdict on a region.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// How long it took, on what, and at which rates, as a sentence.
    pub result: String,
    /// What limits it, the largest share of core time first.
    pub limits: Vec<Limit>,
    /// The functions where most cycles went; empty for parts of a run.
    pub hottest: Vec<Hot>,
    /// The loops where most cycles went; empty for parts of a run, and if they are not recorded.
    pub loops: Vec<Hot>,
    /// What to try next, for the largest limit first.
    pub remedies: Vec<Remedy>,
    /// What else there is to know.
    pub notes: Vec<String>,
    /// The names of rules that could not be judged, and the events that each of them lacks.
    pub unjudged: Vec<(String, Vec<String>)>,
}

/// Something that limits a region.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The rule's name.
    pub rule: String,
    /// What it is, in a few words.
    pub title: String,
    /// The share of core time that it explains, from 0 to 1; of a function or loop, of its own cycles.
    pub share: f64,
    /// The share of that time that a cure is expected to gain.
    pub gain: f64,
    /// What it is, as a sentence.
    pub says: String,
    /// Numbers that show it.
    pub evidence: Vec<Fact>,
}

/// A number with its title and unit, as in metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// What it is.
    pub title: String,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
}

/// Causes that are named beside a function or a loop.
const NAMED: usize = 2;

/// Returns the largest of these causes with their shares, in one line; empty without any.
#[must_use]
pub fn in_short(limits: &[Limit]) -> String {
    let named = limits.iter().take(NAMED).map(|limit| format!("{} {}", limit.title, share(limit.share)));
    named.collect::<Vec<_>>().join(", ")
}

impl std::fmt::Display for Fact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.title, quantity(self.value, &self.unit))
    }
}

/// Code that many cycles went to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hot {
    /// Its share of thread time, the cycles of all threads, from 0 to 1.
    pub share: f64,
    /// The function, or the name of the loop; empty if unknown.
    pub function: String,
    /// The source line, if the file's debug information has it.
    pub line: Option<SourceLine>,
    /// The first line of the function, if the file's debug information has it and the function is an OpenMP region.
    pub region_line: Option<u32>,
    /// What limits it, the largest share of its own cycles first.
    pub limits: Vec<Limit>,
}

impl Hot {
    /// Returns the name of the function for people: OpenMP regions are named by the function that they are in.
    #[must_use]
    pub fn name(&self) -> String {
        match (omp_region_of(&self.function), self.region_line) {
            (Some(function), Some(line)) => format!("{function} (OpenMP region, line {line})"),
            (Some(function), None) => format!("{function} (OpenMP region)"),
            (None, _) if self.function.is_empty() => "(no function)".to_owned(),
            (None, _) => self.function.clone(),
        }
    }
}

/// A line of a source file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLine {
    /// The file's path.
    pub file: String,
    /// The line's number, from 1 on.
    pub number: u32,
    /// Its text without the space around it; `None` if the file cannot be read.
    pub text: Option<String>,
}

impl SourceLine {
    /// Returns the file's name without its folder, and the number.
    #[must_use]
    pub fn short(&self) -> String {
        let name =
            std::path::Path::new(&self.file).file_name().map_or(self.file.as_str().into(), |n| n.to_string_lossy());
        format!("{name}:{}", self.number)
    }
}

/// Something to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// The rule that proposes it.
    pub rule: String,
    /// What to do, as a sentence.
    pub text: String,
    /// The command that shows whether it helps.
    pub command: Option<String>,
}

/// What shares are of, where threads and cores make a difference. `docs/report.md` has the same.
const SHARES: &str = "Shares of causes are of core time: the time of all cores used, from the first start of a thread to the last end. \
                      Shares of functions and loops are of thread time: the cycles of all threads.";

/// Finds where most cycles of a run went, [`HOTTEST`] places at most.
pub type Hottest = fn(&Run) -> Vec<Hot>;

/// Returns the functions with most cycles, which needs nothing but the record.
#[must_use]
pub fn hottest_functions(run: &Run) -> Vec<Hot> {
    let mut cycles: BTreeMap<&str, u64> = BTreeMap::new();
    for spot in &run.hot_spots {
        *cycles.entry(&spot.function).or_default() += spot.cycles;
    }
    // Of the cycles of all threads, as the shares of loops.
    let total = annotate::cycles(run).max(cycles.values().sum()).max(1) as f64;
    let hot = |(function, cycles): (&str, u64)| Hot {
        share: cycles as f64 / total,
        function: function.to_owned(),
        ..Hot::default()
    };
    most(cycles.into_iter().map(hot).collect())
}

/// Returns the places with the largest shares.
#[must_use]
pub fn most(mut all: Vec<Hot>) -> Vec<Hot> {
    all.retain(|hot| hot.share >= LEAST);
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    all.truncate(HOTTEST);
    all
}

/// Returns the verdict on a region of a run; `None` if too little is known about its time.
#[must_use]
pub fn verdict(run: &Run, region: &Region, evaluation: &Evaluation, hottest: Hottest) -> Option<Verdict> {
    let values = evaluation.total();
    let nothing_timed = run.part.as_ref().is_some_and(|part| part.executions == 0);
    if run.mode == Mode::Functional || nothing_timed || values.get("thread_cycles").is_none() {
        return None;
    }
    let Judgement { findings, unjudged } = evaluation.judge();
    let mut notes = Vec::new();
    if findings.is_empty() {
        notes.extend(values.get("time_working").map(working));
    }
    notes.extend((region.threads.len() > 1).then(|| SHARES.to_owned()));
    if !unjudged.is_empty() {
        let titles: Vec<&str> = unjudged.iter().map(|unjudged| unjudged.rule.title.as_str()).collect();
        notes.push(format!("Not judged, since the events for it were not counted: {}.", titles.join(", ")));
    }
    let (hottest, loops) = if region.name == ALL { (limited(run, hottest), loops(run)) } else { Default::default() };
    Some(Verdict {
        result: result(&values),
        limits: findings.iter().map(limit).collect(),
        hottest,
        loops,
        remedies: remedies(run, &findings),
        notes,
        unjudged: unjudged.into_iter().map(|unjudged| (unjudged.rule.name.clone(), unjudged.missing)).collect(),
    })
}

/// The hottest functions, each with what limits it.
fn limited(run: &Run, hottest: Hottest) -> Vec<Hot> {
    let mut functions = hottest(run);
    functions.iter_mut().for_each(|hot| hot.limits = causes::of_function(run, &hot.function));
    functions
}

/// The hottest loops, each with what limits it.
fn loops(run: &Run) -> Vec<Hot> {
    let hot = loops::hottest(run).into_iter().filter(|hot| hot.own_share >= LEAST).take(HOTTEST);
    let limited = |hot: loops::HotLoop| Hot {
        share: hot.own_share,
        function: hot.name(),
        limits: causes::of_loop(run, hot.index),
        ..Hot::default()
    };
    hot.map(limited).collect()
}

/// What there is to say if nothing limits a region.
fn working(share: f64) -> String {
    format!(
        "No cause explains a considerable part of the time. Instructions commit in {} of core time: fewer instructions would be faster.",
        quantity(share, "ratio")
    )
}

/// Time, cores and rates.
fn result(values: &Values) -> String {
    let known = |name: &str, unit: &str| values.get(name).map(|value| quantity(value, unit));
    let cores = match (values.get("cores_used"), values.get("cmgs_used")) {
        (Some(cores), Some(cmgs)) if cmgs > 1.0 => format!(" on {cores} cores of {cmgs} CMGs"),
        (Some(cores), _) if cores > 1.0 => format!(" on {cores} cores"),
        _ => String::new(),
    };
    let time = known("seconds", "s").or_else(|| Some(known("cycles", "cycles")? + " cycles")).unwrap_or_default();
    let of_peak = |rate: String, peak: &str| match known(peak, "%") {
        Some(share) => format!("{rate} ({share} of peak)"),
        None => rate,
    };
    let rates = [
        known("gflops", "GFLOPS").map(|rate| of_peak(rate, "gflops_percent_of_peak")),
        known("memory_gbs", "GB/s").map(|rate| format!("memory {}", of_peak(rate, "memory_percent_of_peak"))),
        known("ipc", "instructions/cycle").map(|ipc| format!("IPC {ipc}")),
    ];
    let rates: Vec<String> = rates.into_iter().flatten().collect();
    let colon = if rates.is_empty() { "" } else { ": " };
    format!("{time}{cores}{colon}{}", rates.join(", "))
}

/// Returns what limits a region or a piece of code, the largest share of its time first.
pub(crate) fn limits_of(judgement: &Judgement) -> Vec<Limit> {
    judgement.findings.iter().map(limit).collect()
}

fn limit(finding: &Finding) -> Limit {
    let fact =
        |fact: &fxscope_pmu::Fact| Fact { title: fact.title.to_owned(), value: fact.value, unit: fact.unit.to_owned() };
    Limit {
        rule: finding.rule.name.clone(),
        title: finding.rule.title.clone(),
        share: finding.share,
        gain: finding.gain,
        says: sentence(&finding.says),
        evidence: finding.evidence.iter().map(fact).collect(),
    }
}

/// A sentence with its numbers.
fn sentence(pieces: &[Said]) -> String {
    let text = |said: &Said| match said {
        Said::Text(text) => (*text).to_owned(),
        Said::Number(value, unit) => quantity(*value, unit),
    };
    pieces.iter().map(text).collect()
}

/// The first remedy of each limit, then the second one of each, and so on.
fn remedies(run: &Run, findings: &[Finding]) -> Vec<Remedy> {
    let (command, options) = (shown_command(run), shown_options(run));
    let longest = findings.iter().map(|finding| finding.tries.len()).max().unwrap_or(0);
    let mut remedies: Vec<Remedy> = Vec::new();
    for place in 0..longest {
        for finding in findings {
            let Some(attempt) = finding.tries.get(place) else { continue };
            let text = sentence(&attempt.says);
            if remedies.len() < REMEDIES && remedies.iter().all(|known| known.text != text) {
                remedies.push(Remedy {
                    rule: finding.rule.name.clone(),
                    text,
                    command: attempt.command.as_ref().map(|text| repeated(text, &options, &command)),
                });
            }
        }
    }
    remedies
}

/// A command of a rule for the program that ran, with the options that it ran with in front of the command's own.
fn repeated(text: &str, options: &str, command: &str) -> String {
    const RUN: &str = "fxscope run ";
    let with_options = match text.strip_prefix(RUN) {
        Some(own) => format!("{RUN}{options}{own}"),
        None => text.to_owned(),
    };
    with_options.replace(PROGRAM, command)
}

/// The program and its arguments, as a shell reads them; what stands for them if they are not known.
fn shown_command(run: &Run) -> String {
    match &run.command[..] {
        [] => PROGRAM.to_owned(),
        words => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
    }
}

/// The machine, settings, variables and CPUs of a run as options with a blank behind each, as far as a record has them.
fn shown_options(run: &Run) -> String {
    let mut words = Vec::new();
    for (key, value) in &run.settings {
        words.extend(["--set".to_owned(), format!("{key}={value}")]);
    }
    for (name, value) in &run.environment {
        words.extend(["-e".to_owned(), format!("{name}={value}")]);
    }
    let threads = run.region(ALL).map_or(&[][..], |all| &all.threads);
    if threads.len() > 1 && run.origin == Origin::Simulated {
        let cpus = threads.iter().map(|thread| thread.cpu).collect();
        words.extend(["--cpus".to_owned(), list(&cpus)]);
    }
    words.iter().map(|word| quoted(word) + " ").collect()
}

/// Numbers as a list of ranges, such as 12-23,30.
fn list(numbers: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let range = |&(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

/// A word as a shell reads it.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match word.chars().all(plain) && !word.is_empty() {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
