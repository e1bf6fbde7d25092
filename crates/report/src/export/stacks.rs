//! Call stacks with weights: sampled ones, or functions and loops with their cycles.

use std::collections::BTreeMap;

use fxscope_record::{Run, StackSample};

use super::calls;
use crate::annotate;
use crate::loops;
use crate::sections::program;

/// What a weight counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Simulated time.
    Nanoseconds,
    /// Cycles of a core.
    Cycles,
}

/// A frame of a call stack, with those around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// The next frame outwards; always a smaller index than its own.
    pub caller: Option<usize>,
    pub name: String,
    pub file: Option<String>,
    pub line: Option<u32>,
}

/// Some stacks with their weights.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Sample {
    /// When it begins, ns since the start of the run; 0 for cycles.
    pub at: u64,
    /// The innermost frame, as an index into the nodes; `None`: the thread did not run.
    pub node: Option<usize>,
    pub weight: u64,
}

/// The stacks of a thread, in order of time, or those of a whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Series {
    pub name: String,
    pub process: u32,
    pub thread: u32,
    pub samples: Vec<Sample>,
}

/// The stacks of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stacks {
    pub unit: Unit,
    pub nodes: Vec<Node>,
    pub series: Vec<Series>,
}

impl Stacks {
    pub(super) fn of(run: &Run) -> Stacks {
        if !run.profile.stacks.samples.is_empty() {
            sampled(run)
        } else if !run.profile.calls.contexts.is_empty() {
            calls::of(run)
        } else {
            of_cycles(run)
        }
    }

    /// Returns the frames of a stack, the innermost first.
    pub(super) fn frames(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(node), |&node| self.nodes[node].caller)
    }
}

/// Returns the sampled stacks, thread by thread. Each stands for the time up to the next one.
fn sampled(run: &Run) -> Stacks {
    let stacks = &run.profile.stacks;
    let node = |frame: &fxscope_record::StackFrame| Node {
        caller: frame.caller.map(|caller| caller as usize),
        name: frame.function.clone(),
        file: frame.file.clone(),
        line: None,
    };
    let mut by_thread: BTreeMap<(u32, u32), Vec<&StackSample>> = BTreeMap::new();
    for sample in &stacks.samples {
        by_thread.entry((sample.process, sample.thread)).or_default().push(sample);
    }
    let series = by_thread.into_iter().map(|((process, thread), samples)| Series {
        name: name(run, process, thread),
        process,
        thread,
        samples: with_gaps(&samples, stacks.interval_ns),
    });
    Stacks { unit: Unit::Nanoseconds, nodes: stacks.frames.iter().map(node).collect(), series: series.collect() }
}

/// Adds samples without a stack where a thread did not run.
fn with_gaps(samples: &[&StackSample], interval_ns: u64) -> Vec<Sample> {
    let mut list: Vec<Sample> = Vec::new();
    let mut now = 0;
    for sample in samples {
        if sample.at_ns > now {
            list.push(Sample { at: now, node: None, weight: sample.at_ns - now });
        }
        list.push(Sample { at: sample.at_ns, node: Some(sample.frame as usize), weight: interval_ns });
        now = sample.at_ns + interval_ns;
    }
    list
}

/// Returns the name of a thread.
pub(super) fn name(run: &Run, process: u32, thread: u32) -> String {
    let of = crate::document::ProcessName::of(run, process);
    if of.is_plain() { format!("thread {thread}") } else { format!("{of} thread {thread}") }
}

/// Returns functions and their loops with the cycles of all threads.
fn of_cycles(run: &Run) -> Stacks {
    let mut nodes = vec![Node { caller: None, name: program(run), file: None, line: None }];
    let mut samples = Vec::new();
    let mut add = |node: usize, cycles: u64| {
        if cycles > 0 {
            samples.push(Sample { at: 0, node: Some(node), weight: cycles });
        }
    };
    let mut inside = 0;
    for ((file, start, function), cycles) in functions(run) {
        inside += cycles;
        let path = file.and_then(|file| run.files.get(file as usize)).map(|file| file.path.clone());
        let name = if function.is_empty() { "(code without a name)" } else { function };
        let of_function = nodes.len();
        nodes.push(Node { caller: Some(0), name: name.to_owned(), file: path, line: None });
        let mut in_loops = 0;
        let mut place: BTreeMap<usize, usize> = BTreeMap::new();
        let own = run.profile.loops.iter().enumerate().filter(|(_, l)| {
            Some(l.file) == file
                && l.function == function
                && l.place.wrapping_sub(l.offset) == start
                && !function.is_empty()
        });
        for (index, of) in own {
            let around = of.parent.and_then(|parent| place.get(&(parent as usize)).copied()).unwrap_or(of_function);
            place.insert(index, nodes.len());
            add(nodes.len(), of.own_cycles);
            in_loops += of.own_cycles;
            let source = of.source.as_ref();
            nodes.push(Node {
                caller: Some(around),
                name: format!("loop {}", loops::name(of)),
                file: source.map(|lines| lines.file.clone()),
                line: source.map(|lines| lines.first),
            });
        }
        add(of_function, cycles.saturating_sub(in_loops));
    }
    let outside = annotate::cycles(run).saturating_sub(inside);
    nodes.push(Node { caller: Some(0), name: "(system calls and waiting)".to_owned(), file: None, line: None });
    add(nodes.len() - 1, outside);
    let series = Series { name: "all threads".to_owned(), process: 0, thread: 0, samples };
    Stacks { unit: Unit::Cycles, nodes, series: vec![series] }
}

/// Returns the cycles of each function by file, start and name.
fn functions(run: &Run) -> BTreeMap<(Option<u32>, u64, &str), u64> {
    let mut functions: BTreeMap<(Option<u32>, u64, &str), u64> = BTreeMap::new();
    for spot in &run.hot_spots {
        let start = if spot.function.is_empty() { 0 } else { spot.place.wrapping_sub(spot.offset) };
        *functions.entry((spot.file, start, &spot.function)).or_default() += spot.cycles;
    }
    functions
}
