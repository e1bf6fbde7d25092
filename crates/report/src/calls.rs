//! Calls of functions: their time with and without the functions that they call, and who calls whom.

use std::collections::BTreeMap;

use fxscope_record::{CallContext, Run};
use serde_json::{Value as Json, json};

use crate::document::{Document, Row, Section, Value};
use crate::render::csv;
use crate::sections::{plain, title};

/// Rows of each table; the functions and calls with least time are left out.
const SHOWN: usize = 20;
/// Contexts in the tree have at least this share of the cycles.
const LEAST_SHARE: f64 = 0.01;
const MOST_CONTEXTS: usize = 40;

/// Columns of the CSV form.
const COLUMNS: [&str; 8] = ["run", "function", "file", "inlined", "calls", "own_cycles", "cycles", "share"];

/// What was counted in a context or a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Calls.
    pub calls: u64,
    /// Cycles in the function itself.
    pub own_cycles: u64,
    /// Cycles with the functions that it calls.
    pub cycles: u64,
}

impl Cost {
    fn add(&mut self, other: &Cost) {
        self.calls += other.calls;
        self.own_cycles += other.own_cycles;
        self.cycles += other.cycles;
    }
}

/// Returns the cost of each context of a run, of all threads.
#[must_use]
pub fn costs(run: &Run) -> Vec<Cost> {
    let calls = &run.profile.calls;
    let mut costs = vec![Cost::default(); calls.contexts.len()];
    for count in &calls.counts {
        let cost = &mut costs[count.context as usize];
        cost.calls += count.calls;
        cost.own_cycles += count.cycles;
    }
    // Callers come before those they call.
    for (index, context) in calls.contexts.iter().enumerate().rev() {
        costs[index].cycles += costs[index].own_cycles;
        if let Some(caller) = context.caller {
            costs[caller as usize].cycles += costs[index].cycles;
        }
    }
    costs
}

/// A function: its file, its name, and whether it was inlined.
type Key<'a> = (Option<u32>, &'a str, bool);

fn key(context: &CallContext) -> Key<'_> {
    (context.file, &context.function, context.is_inlined)
}

/// A function with the cost of all its contexts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    /// Its name; empty for code that is in no function.
    pub name: &'a str,
    /// The file of its code, as an index into [`Run::files`].
    pub file: Option<u32>,
    /// Whether it is the inlined copies of a function.
    pub is_inlined: bool,
    /// Its cost. A context inside another one of the same function counts once.
    pub cost: Cost,
}

/// Returns the functions of a run, those with most cycles of their own first.
#[must_use]
pub fn functions(run: &Run) -> Vec<Function<'_>> {
    let contexts = &run.profile.calls.contexts;
    let mut functions: BTreeMap<Key, Cost> = BTreeMap::new();
    for (index, (context, cost)) in contexts.iter().zip(costs(run)).enumerate() {
        let is_inside = callers(contexts, index).any(|caller| key(caller) == key(context));
        let cycles = if is_inside { 0 } else { cost.cycles };
        functions.entry(key(context)).or_default().add(&Cost { cycles, ..cost });
    }
    let function = |((file, name, is_inlined), cost)| Function { name, file, is_inlined, cost };
    let mut list: Vec<Function> = functions.into_iter().map(function).collect();
    list.sort_by_key(|function| std::cmp::Reverse((function.cost.own_cycles, function.cost.cycles)));
    list
}

/// Iterates over the callers of a context, the innermost first.
fn callers(contexts: &[CallContext], index: usize) -> impl Iterator<Item = &CallContext> {
    let caller = |context: &CallContext| context.caller.map(|caller| caller as usize);
    let all = std::iter::successors(caller(&contexts[index]), move |&index| caller(&contexts[index]));
    all.map(|index| &contexts[index])
}

/// Returns the cycles of each loop with the functions that it calls; `None` without calls in the record.
#[must_use]
pub fn cycles_of_loops(run: &Run) -> Option<Vec<u64>> {
    let profile = &run.profile;
    if profile.calls.contexts.is_empty() {
        return None;
    }
    let mut cycles: Vec<u64> = profile.loops.iter().map(|of| of.cycles).collect();
    for (context, cost) in profile.calls.contexts.iter().zip(costs(run)) {
        let around = |&index: &u32| profile.loops[index as usize].parent;
        std::iter::successors(context.in_loop, around).for_each(|index| cycles[index as usize] += cost.cycles);
    }
    Some(cycles)
}

/// Returns the name of a function for people.
pub(crate) fn name(run: &Run, function: &str, file: Option<u32>, is_inlined: bool) -> String {
    let code_of = || {
        let file = file.and_then(|file| run.files.get(file as usize));
        let last = file.map_or("code without a file", |file| file.path.rsplit('/').next().unwrap_or_default());
        format!("[{last}]")
    };
    let name = if function.is_empty() { code_of() } else { function.to_owned() };
    plain(&if is_inlined { format!("{name} (inlined)") } else { name })
}

fn context_name(run: &Run, context: &CallContext) -> String {
    name(run, &context.function, context.file, context.is_inlined)
}

/// Returns the calls of a run as tables; `None` if the record has none.
#[must_use]
pub fn document(run: &Run) -> Option<Document> {
    (!run.profile.calls.contexts.is_empty()).then(|| Document {
        title: title(run),
        columns: Vec::new(),
        sections: sections(run),
    })
}

/// Returns the tables of functions and calls, and how to read them; none without calls in the record.
pub(crate) fn sections(run: &Run) -> Vec<Section> {
    if run.profile.calls.contexts.is_empty() {
        return Vec::new();
    }
    let shares = Shares::of(run);
    vec![
        Section::table("Functions", ["Function", "own", "total", "calls"], shares.functions()),
        Section::table("Call tree", ["Call tree", "total", "own", "calls"], shares.tree()),
        Section::table("Callers and callees", ["Call", "total", "calls"], shares.edges()),
        Section::notes("Notes", vec![READING.to_owned()]),
    ]
}

/// How to read the tables.
const READING: &str = "Shares are of the cycles in which threads ran: own in the function itself, total with the functions that it calls. \
                       Recursive calls continue the outermost one. Waits of threads that sleep count for no function.";

/// A run with the costs of its contexts as shares.
struct Shares<'a> {
    run: &'a Run,
    costs: Vec<Cost>,
    all: u64,
}

impl<'a> Shares<'a> {
    fn of(run: &'a Run) -> Shares<'a> {
        let costs = costs(run);
        let all = costs.iter().map(|cost| cost.own_cycles).sum();
        Shares { run, costs, all }
    }

    fn share(&self, cycles: u64) -> f64 {
        if self.all == 0 { 0.0 } else { cycles as f64 / self.all as f64 }
    }

    fn ratio(&self, cycles: u64) -> Option<Value> {
        Some(Value::number(self.share(cycles), "ratio"))
    }

    /// Sampled runs do not see every call, and inlined functions have none.
    fn calls(&self, calls: u64) -> Option<Value> {
        (calls > 0 && self.run.sample.is_none()).then(|| Value::number(calls as f64, "count"))
    }

    fn functions(&self) -> Vec<Row> {
        let row = |function: Function| {
            let Function { name: of, file, is_inlined, cost } = function;
            let values = vec![self.ratio(cost.own_cycles), self.ratio(cost.cycles), self.calls(cost.calls)];
            Row { label: name(self.run, of, file, is_inlined), values }
        };
        functions(self.run).into_iter().take(SHOWN).map(row).collect()
    }

    /// Returns the contexts from the outermost inwards, those with most cycles first.
    fn tree(&self) -> Vec<Row> {
        let contexts = &self.run.profile.calls.contexts;
        let mut called: BTreeMap<Option<u32>, Vec<usize>> = BTreeMap::new();
        for (index, context) in contexts.iter().enumerate() {
            called.entry(context.caller).or_default().push(index);
        }
        for list in called.values_mut() {
            list.retain(|&index| self.share(self.costs[index].cycles) >= LEAST_SHARE);
            list.sort_by_key(|&index| (self.costs[index].cycles, std::cmp::Reverse(index)));
        }
        let mut rows = Vec::new();
        let next = |called: &BTreeMap<_, Vec<usize>>, caller, depth| -> Vec<(usize, usize)> {
            called.get(&caller).map_or_else(Vec::new, |list| list.iter().map(|&index| (index, depth)).collect())
        };
        let mut open = next(&called, None, 0);
        while let Some((index, depth)) = open.pop().filter(|_| rows.len() < MOST_CONTEXTS) {
            let cost = &self.costs[index];
            let values = vec![self.ratio(cost.cycles), self.ratio(cost.own_cycles), self.calls(cost.calls)];
            rows.push(Row { label: format!("{}{}", "  ".repeat(depth), self.label(&contexts[index])), values });
            open.extend(next(&called, Some(index as u32), depth + 1));
        }
        rows
    }

    /// Returns the name of a context with the line of the call.
    fn label(&self, context: &CallContext) -> String {
        let name = context_name(self.run, context);
        match &context.site {
            Some(site) => {
                plain(&format!("{name} ({}:{})", site.file.rsplit('/').next().unwrap_or_default(), site.line))
            }
            None => name,
        }
    }

    /// Returns pairs of functions of which one calls the other, those with most cycles first.
    fn edges(&self) -> Vec<Row> {
        let contexts = &self.run.profile.calls.contexts;
        let mut edges: BTreeMap<(Key, Key), Cost> = BTreeMap::new();
        for (index, context) in contexts.iter().enumerate() {
            let Some(caller) = context.caller else { continue };
            let pair = (key(&contexts[caller as usize]), key(context));
            let outer = callers(contexts, index).any(|inside| {
                let around = inside.caller.map(|caller| key(&contexts[caller as usize]));
                around.is_some_and(|around| (around, key(inside)) == pair)
            });
            let cycles = if outer { 0 } else { self.costs[index].cycles };
            edges.entry(pair).or_default().add(&Cost { cycles, ..self.costs[index] });
        }
        let mut list: Vec<((Key, Key), Cost)> = edges.into_iter().collect();
        list.sort_by_key(|(_, cost)| std::cmp::Reverse(cost.cycles));
        let named = |(file, function, is_inlined): Key| name(self.run, function, file, is_inlined);
        let row = |((caller, called), cost): ((Key, Key), Cost)| Row {
            label: format!("{} → {}", named(caller), named(called)),
            values: vec![self.ratio(cost.cycles), self.calls(cost.calls)],
        };
        list.into_iter().take(SHOWN).map(row).collect()
    }
}

/// Returns the contexts of a run in the order of the record, for programs.
#[must_use]
pub fn json(run: &Run) -> Vec<Json> {
    let one = |(context, cost): (&CallContext, Cost)| {
        json!({
            "caller": context.caller,
            "function": context.function,
            "file": context.file.and_then(|file| run.files.get(file as usize)).map(|file| &file.path),
            "inlined": context.is_inlined,
            "site": context.site.as_ref().map(|site| json!({"file": site.file, "line": site.line})),
            "loop": context.in_loop,
            "calls": cost.calls,
            "own_cycles": cost.own_cycles,
            "cycles": cost.cycles,
        })
    };
    run.profile.calls.contexts.iter().zip(costs(run)).map(one).collect()
}

/// Returns the functions of runs as CSV, one per line after a header line, with the number of the run counted from 1.
#[must_use]
pub fn to_csv(runs: &[Run]) -> Vec<u8> {
    let mut out = String::new();
    csv::line(&mut out, &COLUMNS);
    for (number, run) in (1..).zip(runs) {
        let shares = Shares::of(run);
        for Function { name, file, is_inlined, cost } in functions(run) {
            let file = file.and_then(|file| run.files.get(file as usize));
            let fields = [
                number.to_string(),
                name.to_owned(),
                file.map_or_else(String::new, |file| file.path.clone()),
                is_inlined.to_string(),
                shares.calls(cost.calls).map_or_else(String::new, |_| cost.calls.to_string()),
                cost.own_cycles.to_string(),
                cost.cycles.to_string(),
                shares.share(cost.cycles).to_string(),
            ];
            csv::line(&mut out, &fields.each_ref().map(String::as_str));
        }
    }
    out.into_bytes()
}
