//! The contexts of a run's functions as stacks: each function with its loops, and the cycles of each thread.

use std::collections::{BTreeMap, BTreeSet};

use fxscope_record::{ALL, CallContext, CallCount, Run};

use super::stacks::{Node, Sample, Series, Stacks, Unit, name};
use crate::loops;
use crate::sections::program;

/// Returns the contexts with the cycles of each thread. What a thread has waited is in a frame of its own, so that all its cycles are
/// there.
pub(super) fn of(run: &Run) -> Stacks {
    let contexts = &run.profile.calls.contexts;
    let root = Node { caller: None, name: program(run), file: None, line: None };
    let waits = Node { caller: Some(0), name: "(waiting)".to_owned(), file: None, line: None };
    let mut nodes = Nodes { run, list: vec![root, waits], of_contexts: Vec::new(), of_loops: BTreeMap::new() };
    contexts.iter().for_each(|context| nodes.add(context));
    let loops = LoopShares::of(run);
    let mut by_thread: BTreeMap<(u32, u32), Vec<Sample>> = BTreeMap::new();
    for count in &run.profile.calls.counts {
        let samples = by_thread.entry((count.process, count.thread)).or_default();
        samples.extend(nodes.samples(count, &loops));
    }
    let series = by_thread.into_iter().map(|((process, thread), mut samples)| {
        let inside: u64 = samples.iter().map(|sample| sample.weight).sum();
        let weight = cycles(run, process, thread).saturating_sub(inside);
        samples.extend((weight > 0).then_some(Sample { at: 0, node: Some(1), weight }));
        Series { name: name(run, process, thread), process, thread, samples }
    });
    let series = series.collect();
    Stacks { unit: Unit::Cycles, nodes: nodes.list, series }
}

/// Returns the cycles of a thread.
fn cycles(run: &Run, process: u32, thread: u32) -> u64 {
    let Some(region) = run.region(ALL) else { return 0 };
    let row = region.threads.iter().position(|row| (row.process, row.thread) == (process, thread));
    row.and_then(|row| region.count(row, "CPU_CYCLES")).unwrap_or(0)
}

/// The frames of stacks.
struct Nodes<'a> {
    run: &'a Run,
    list: Vec<Node>,
    /// Those of contexts.
    of_contexts: Vec<usize>,
    /// Those of loops in contexts.
    of_loops: BTreeMap<(u32, u32), usize>,
}

impl Nodes<'_> {
    /// Adds the next context.
    fn add(&mut self, context: &CallContext) {
        let caller = match (context.caller, context.in_loop) {
            (None, _) => 0,
            (Some(caller), Some(index)) if !self.run.profile.calls.contexts[caller as usize].is_inlined => {
                self.in_loop(caller, index)
            }
            (Some(caller), _) => self.of_contexts[caller as usize],
        };
        self.of_contexts.push(self.list.len());
        self.list.push(Node {
            caller: Some(caller),
            name: crate::calls::name(self.run, &context.function, context.file, context.is_inlined),
            file: context.file.and_then(|file| self.run.files.get(file as usize)).map(|file| file.path.clone()),
            line: None,
        });
    }

    /// Returns the frame of a loop in a context.
    fn in_loop(&mut self, context: u32, index: u32) -> usize {
        if let Some(&known) = self.of_loops.get(&(context, index)) {
            return known;
        }
        let of = &self.run.profile.loops[index as usize];
        let around = match of.parent {
            Some(parent) => self.in_loop(context, parent),
            None => self.of_contexts[context as usize],
        };
        let (file, line) = of.source.as_ref().map(|lines| (lines.file.clone(), lines.first)).unzip();
        let number = self.list.len();
        self.list.push(Node { caller: Some(around), name: format!("loop {}", loops::name(of)), file, line });
        self.of_loops.insert((context, index), number);
        number
    }

    /// Returns what a thread has counted in a context, by its loops as in the whole run.
    fn samples(&mut self, count: &CallCount, loops: &LoopShares) -> Vec<Sample> {
        let mut own = count.cycles;
        let mut samples = Vec::new();
        for (index, cycles, all) in loops.in_context(self.run, count.context) {
            let weight = (u128::from(count.cycles) * u128::from(cycles) / u128::from(all.max(1))) as u64;
            let weight = weight.min(own);
            own -= weight;
            samples.push(Sample { at: 0, node: Some(self.in_loop(count.context, index)), weight });
        }
        samples.push(Sample { at: 0, node: Some(self.of_contexts[count.context as usize]), weight: own });
        samples.retain(|sample| sample.weight > 0);
        samples
    }
}

/// A function: its file and its name.
type Function<'a> = (Option<u32>, &'a str);

/// How the cycles of functions are divided among their loops.
struct LoopShares<'a> {
    /// The cycles of each function.
    functions: BTreeMap<Function<'a>, u64>,
    /// Its loops with their own cycles.
    loops: BTreeMap<Function<'a>, Vec<(u32, u64)>>,
    /// Contexts with inlined functions: their cycles are divided already.
    divided: BTreeSet<u32>,
}

impl<'a> LoopShares<'a> {
    fn of(run: &'a Run) -> LoopShares<'a> {
        let (mut functions, mut loops) = (BTreeMap::new(), BTreeMap::<_, Vec<_>>::new());
        for spot in &run.hot_spots {
            *functions.entry((spot.file, spot.function.as_str())).or_default() += spot.cycles;
        }
        for (index, of) in (0u32..).zip(&run.profile.loops) {
            loops.entry((Some(of.file), of.function.as_str())).or_default().push((index, of.own_cycles));
        }
        let inlined = run.profile.calls.contexts.iter().filter(|context| context.is_inlined);
        LoopShares { functions, loops, divided: inlined.filter_map(|context| context.caller).collect() }
    }

    /// Returns the loops of a context's function with their own cycles and those of the function.
    fn in_context(&self, run: &Run, context: u32) -> Vec<(u32, u64, u64)> {
        let of = &run.profile.calls.contexts[context as usize];
        if of.is_inlined || of.function.is_empty() || self.divided.contains(&context) {
            return Vec::new();
        }
        let key = (of.file, of.function.as_str());
        let all = self.functions.get(&key).copied().unwrap_or(0);
        self.loops.get(&key).into_iter().flatten().map(|&(index, cycles)| (index, cycles, all)).collect()
    }
}
