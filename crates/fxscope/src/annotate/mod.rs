//! A run beside the code it ran: from records and the program's file to what `fxscope annotate` shows.

mod code;

use std::collections::BTreeMap;
use std::path::Path;

use fxscope_machine::Spec;
use fxscope_record::{ALL, HotSpot, Run};
use fxscope_report::annotate::{Annotation, Function, Instruction};

use code::ProgramCode;

/// Whose instructions are wanted.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// Those of this many functions, from the one with most cycles on.
    Hottest(usize),
    /// Those of the functions with these names.
    Named(Vec<String>),
}

/// Joins `run` with the code in `program`, its file, as the machine `spec` executes it. When the file cannot be
/// read or is another program's, cycles and executions are there all the same, and the notes say what is missing.
///
/// # Errors
/// When the run has no cycles by instruction, or never came to a function that is wanted, in words.
pub fn annotate(run: &Run, program: &Path, spec: &Spec, wanted: &Wanted) -> Result<Annotation, String> {
    if run.hot_spots.is_empty() {
        return Err("the run has no cycles by instruction, as it was made in functional mode or executed nothing; \
                    repeat it in timing mode"
            .to_owned());
    }
    let mut functions = functions(&run.hot_spots);
    functions.sort_by_key(|f| (std::cmp::Reverse(f.function.cycles), f.function.address));
    let mut annotation = Annotation { cycles: cycles(run), ..Annotation::default() };
    let inside: u64 = functions.iter().map(|f| f.function.cycles).sum();
    annotation.outside = annotation.cycles.saturating_sub(inside);
    let chosen = choose(&functions, wanted)?;
    let mut code = match ProgramCode::open(program, spec, &run.hot_spots) {
        Ok(code) => Some(code),
        Err(why) => {
            annotation.notes.push(format!(
                "Instructions are shown without their text, micro-operations and source lines: {}: {why}. Name the \
                 program's file with --program PATH.",
                program.display()
            ));
            None
        }
    };
    if code.is_some() {
        annotation.code = Some(program.to_string_lossy().into_owned());
        annotation.notes.extend(changed_machine(run, spec));
    }
    for &i in &chosen {
        functions[i].list(code.as_mut());
    }
    annotation.functions = functions.into_iter().map(|f| f.function).collect();
    annotation.notes.extend(code.and_then(|_| missing(&annotation.functions)));
    Ok(annotation)
}

/// Cycles of the whole run.
fn cycles(run: &Run) -> u64 {
    let threads = run.region(ALL).into_iter().flat_map(|region| &region.threads);
    threads.filter_map(|thread| thread.events.get("CPU_CYCLES")).sum()
}

/// A function and where its cycles are.
struct Spots<'a> {
    function: Function,
    spots: Vec<&'a HotSpot>,
}

/// Puts the instructions of each function together.
fn functions(spots: &[HotSpot]) -> Vec<Spots<'_>> {
    let mut by_start: BTreeMap<(u64, &str), Spots> = BTreeMap::new();
    for spot in spots {
        let start = if spot.function.is_empty() { 0 } else { spot.address.saturating_sub(spot.offset) };
        let entry = by_start.entry((start, &spot.function)).or_insert_with(|| Spots {
            function: Function { name: spot.function.clone(), address: start, ..Function::default() },
            spots: Vec::new(),
        });
        entry.function.cycles += spot.cycles;
        entry.function.executions += spot.executions;
        entry.spots.push(spot);
    }
    by_start.into_values().collect()
}

/// The positions of the functions whose instructions are wanted.
fn choose(functions: &[Spots], wanted: &Wanted) -> Result<Vec<usize>, String> {
    match wanted {
        Wanted::Hottest(count) => Ok((0..functions.len().min(*count)).collect()),
        Wanted::Named(names) => {
            let known = |name: &String| functions.iter().any(|f| f.function.name == *name);
            if let Some(name) = names.iter().find(|name| !known(name)) {
                let hottest: Vec<_> = functions.iter().take(5).map(|f| f.function.name.as_str()).collect();
                return Err(format!(
                    "--function {name}: the run executed no function of that name; most cycles are in {}",
                    hottest.join(", ")
                ));
            }
            Ok((0..functions.len()).filter(|&i| names.contains(&functions[i].function.name)).collect())
        }
    }
}

impl Spots<'_> {
    /// Lists the instructions, with what the code says about each.
    fn list(&mut self, code: Option<&mut ProgramCode>) {
        let instruction = |spot: &&HotSpot| Instruction {
            address: spot.address,
            offset: spot.offset,
            executions: spot.executions,
            cycles: spot.cycles,
            source: None,
            code: None,
        };
        let mut list: Vec<Instruction> = self.spots.iter().map(instruction).collect();
        if let Some(code) = code {
            code.describe(&mut list);
        }
        self.function.instructions = Some(list);
    }
}

/// Says so when the machine is not what it was when the program ran.
fn changed_machine(run: &Run, spec: &Spec) -> Option<String> {
    (fxscope_machine::hash(spec) != run.machine_hash).then(|| {
        format!(
            "The description of {} has changed since the run: cycles are of then, micro-operations and pipes of now. \
             Repeat the run to have both of one machine.",
            run.machine
        )
    })
}

/// What the file had no answer for.
fn missing(functions: &[Function]) -> Option<String> {
    let mut listed = functions.iter().filter_map(|f| Some((f, f.instructions.as_ref()?)));
    let (function, _) = listed.find(|(_, list)| list.iter().any(|i| i.code.is_none()))?;
    let name = if function.name.is_empty() { "code without a name" } else { &function.name };
    Some(format!(
        "Some instructions ({name}) are not in the program's file but in a library, or were made while it ran: they \
         are shown without their text. Link the program with -static to see those of libraries."
    ))
}
