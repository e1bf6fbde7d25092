//! A run combined with the code it ran: from records and code files to the annotation of `fxscope annotate`.

mod code;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fxscope_machine::Spec;
use fxscope_record::functions::meant;
use fxscope_record::{HotSpot, Run};
use fxscope_report::annotate::{Annotation, Function, Instruction, cycles};

use crate::loops::{Executed, contexts};
use code::FileCode;
pub(crate) use code::line_at;
pub use code::source_line;

/// The functions whose instructions are requested.
#[derive(Clone, Debug)]
pub enum FunctionSelection {
    /// This many functions, starting with the one that has most cycles.
    Hottest(usize),
    /// The functions with these names.
    Named(Vec<String>),
}

/// Combines `run` with the code files it ran, as executed by the machine `spec`; `program`, if given, is the current
/// path of the program's file. If a file cannot be read or has changed, cycles and executions are still complete, and
/// the notes say what is missing.
///
/// # Errors
/// A message if the run has no cycles by instruction, or never executed a requested function.
pub fn annotate(
    run: &Run,
    program: Option<&Path>,
    spec: &Spec,
    wanted: &FunctionSelection,
) -> Result<Annotation, String> {
    if run.hot_spots.is_empty() {
        return Err("the run has no cycles by instruction, as it was made in functional mode or executed nothing; \
                    repeat it in timing mode"
            .to_owned());
    }
    let mut functions = functions(run);
    functions.sort_by_key(|f| (std::cmp::Reverse(f.function.cycles), f.function.address));
    let commit_width = spec.window.commit_width;
    let mut annotation = Annotation { cycles: cycles(run), commit_width, ..Annotation::default() };
    let inside: u64 = functions.iter().map(|f| f.function.cycles).sum();
    annotation.outside = annotation.cycles.saturating_sub(inside);
    let chosen = choose(&functions, wanted)?;
    let mut files = Files::new(run, program, spec);
    if files.get(0).is_some() {
        annotation.code = Some(files.path(0).to_string_lossy().into_owned());
        annotation.notes.extend(changed_machine(run, spec));
    }
    for &i in &chosen {
        functions[i].list(&mut files);
    }
    annotation.functions = functions.into_iter().map(|f| f.function).collect();
    annotation.notes.extend(files.notes);
    annotation.notes.extend(made_while_running(&annotation.functions));
    Ok(annotation)
}

/// The files of a run, opened on demand.
struct Files<'a> {
    run: &'a Run,
    /// Path of the program's file.
    program: Option<&'a Path>,
    spec: &'a Spec,
    open: BTreeMap<u32, Option<FileCode<'a>>>,
    /// Files that could not be opened, and why.
    notes: Vec<String>,
}

impl<'a> Files<'a> {
    fn new(run: &'a Run, program: Option<&'a Path>, spec: &'a Spec) -> Files<'a> {
        let mut notes = Vec::new();
        if run.files.is_empty() {
            notes.push(
                "The record is from an older fxscope, which did not record code files: instructions are \
                 shown without their text. Repeat the run."
                    .to_owned(),
            );
        }
        Files { run, program, spec, open: BTreeMap::new(), notes }
    }

    fn path(&self, file: u32) -> PathBuf {
        match (file, self.program) {
            (0, Some(program)) => program.to_owned(),
            _ => PathBuf::from(&self.run.files[file as usize].path),
        }
    }

    /// Returns the code of a file; `None` if it is not available, which is then in the notes.
    fn get(&mut self, file: u32) -> Option<&mut FileCode<'a>> {
        if !self.open.contains_key(&file) {
            let code = self.read(file);
            self.open.insert(file, code);
        }
        self.open.get_mut(&file)?.as_mut()
    }

    fn read(&mut self, file: u32) -> Option<FileCode<'a>> {
        let digest = &self.run.files.get(file as usize)?.digest;
        let path = self.path(file);
        let (changed, remedy) = match file {
            0 => ("it is not the program that ran", " Name the program's file with --program PATH."),
            _ => ("it has changed since the run", " Repeat the run."),
        };
        match FileCode::open(&path, digest, changed, self.spec) {
            Ok(code) => Some(code),
            Err(why) => {
                self.notes.push(format!(
                    "Instructions are shown without their text, micro-operations and source lines: {}: {why}.{remedy}",
                    path.display()
                ));
                None
            }
        }
    }
}

/// A function and its instructions with cycles.
struct Spots<'a> {
    function: Function,
    spots: Vec<&'a HotSpot>,
}

/// Groups the instructions by function.
fn functions(run: &Run) -> Vec<Spots<'_>> {
    let mut by_start: BTreeMap<(Option<u32>, u64, &str), Spots> = BTreeMap::new();
    for spot in &run.hot_spots {
        let named = |place: u64| if spot.function.is_empty() { 0 } else { place.wrapping_sub(spot.offset) };
        let entry = by_start.entry((spot.file, named(spot.place), &spot.function)).or_insert_with(|| Spots {
            function: Function {
                name: spot.function.clone(),
                file: spot.file.and_then(|file| run.files.get(file as usize)).map(|file| file.path.clone()),
                address: named(spot.address),
                stalls: vec![0; run.stalls.len()],
                ..Function::default()
            },
            spots: Vec::new(),
        });
        entry.function.cycles += spot.cycles;
        entry.function.executions += spot.executions;
        entry.function.stalls.iter_mut().zip(&spot.stalls).for_each(|(sum, cycles)| *sum += cycles);
        entry.spots.push(spot);
    }
    by_start.into_values().collect()
}

/// Returns the indices of the requested functions.
fn choose(functions: &[Spots], wanted: &FunctionSelection) -> Result<Vec<usize>, String> {
    match wanted {
        FunctionSelection::Hottest(count) => Ok((0..functions.len().min(*count)).collect()),
        FunctionSelection::Named(names) => {
            let symbols = || functions.iter().map(|f| f.function.name.as_str());
            let found: Vec<Vec<&str>> = names.iter().map(|name| meant(name, symbols())).collect();
            if let Some((name, _)) = names.iter().zip(&found).find(|(_, found)| found.is_empty()) {
                let hottest: Vec<_> = functions.iter().take(5).map(|f| f.function.name.as_str()).collect();
                return Err(format!(
                    "--function {name}: the run executed no function of that name; most cycles are in {}",
                    hottest.join(", ")
                ));
            }
            let wanted = found.concat();
            Ok((0..functions.len()).filter(|&i| wanted.contains(&functions[i].function.name.as_str())).collect())
        }
    }
}

impl Spots<'_> {
    /// Lists the instructions, with their code.
    fn list(&mut self, files: &mut Files) {
        let instruction = |spot: &&HotSpot| Instruction {
            address: spot.address,
            offset: spot.offset,
            executions: spot.executions,
            cycles: spot.cycles,
            in_flight: spot.in_flight,
            stalls: spot.stalls.clone(),
            pipes: spot.pipes.clone(),
            events: spot.events.clone(),
            ..Instruction::default()
        };
        let mut list: Vec<Instruction> = self.spots.iter().map(instruction).collect();
        if let Some(code) = self.spots[0].file.and_then(|file| files.get(file)) {
            code.describe(&self.spots, &mut list);
            mark_loops(files.run, &self.spots, &mut list, files.spec.clock.vector_bits as usize / 8);
        }
        self.function.instructions = Some(list);
    }
}

/// Adds to each instruction of a function the loops that it is in, and the instruction that makes its operand.
fn mark_loops(run: &Run, spots: &[&HotSpot], list: &mut [Instruction], vector_bytes: usize) {
    let Some(file) = spots[0].file else { return };
    let executed = |(spot, instruction): (&&HotSpot, &Instruction)| Executed {
        place: spot.place,
        word: instruction.code.as_ref().map(|code| code.word),
        executions: spot.executions,
        in_flight: spot.in_flight,
    };
    let code: Vec<Executed> = spots.iter().zip(&*list).map(executed).collect();
    let start = spots[0].place.wrapping_sub(spots[0].offset);
    let known = |head: &u64| run.profile.loops.iter().position(|l| l.file == file && l.place == *head);
    for (instruction, context) in list.iter_mut().zip(contexts(&code, start, vector_bytes)) {
        instruction.loops = context.heads.iter().filter_map(known).map(|index| index as u32).collect();
        instruction.producer = context.producer.map(|producer| spots[producer].offset);
    }
}

/// Returns a note if the machine differs from the one that the program ran on.
fn changed_machine(run: &Run, spec: &Spec) -> Option<String> {
    (fxscope_machine::hash(spec) != run.machine_hash).then(|| {
        format!(
            "The description of {} ({}) has changed since the run: cycles are those of the old one, micro-operations \
             and pipes of this one. Repeat the run, or name the right description with --machine.",
            spec.name,
            spec.path.as_deref().unwrap_or("built in")
        )
    })
}

/// Returns a note about instructions without a file.
fn made_while_running(functions: &[Function]) -> Option<String> {
    let function = functions.iter().find(|f| f.instructions.is_some() && f.file.is_none())?;
    let name = if function.name.is_empty() { "code without a name" } else { &function.name };
    Some(format!("Some instructions ({name}) are in no file known to the run: they are shown without their text."))
}
