//! A run beside the code it ran: from records and the files it ran to what `fxscope annotate` shows.

mod code;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fxscope_machine::Spec;
use fxscope_record::{ALL, HotSpot, Run};
use fxscope_report::annotate::{Annotation, Function, Instruction};

use code::FileCode;
pub use code::source_line;

/// Whose instructions are wanted.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// Those of this many functions, from the one with most cycles on.
    Hottest(usize),
    /// Those of the functions with these names.
    Named(Vec<String>),
}

/// Joins `run` with the code in the files it ran, as the machine `spec` executes it; `program`, when given, is where the
/// program's own file is now. When a file cannot be read or is not what it was, cycles and executions are there all the
/// same, and the notes say what is missing.
///
/// # Errors
/// When the run has no cycles by instruction, or never came to a function that is wanted, in words.
pub fn annotate(run: &Run, program: Option<&Path>, spec: &Spec, wanted: &Wanted) -> Result<Annotation, String> {
    if run.hot_spots.is_empty() {
        return Err("the run has no cycles by instruction, as it was made in functional mode or executed nothing; \
                    repeat it in timing mode"
            .to_owned());
    }
    let mut functions = functions(run);
    functions.sort_by_key(|f| (std::cmp::Reverse(f.function.cycles), f.function.address));
    let mut annotation = Annotation { cycles: cycles(run), ..Annotation::default() };
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

/// The files of a run, opened when they are needed.
struct Files<'a> {
    run: &'a Run,
    /// Where the program's own file is.
    program: Option<&'a Path>,
    spec: &'a Spec,
    open: BTreeMap<u32, Option<FileCode<'a>>>,
    /// What could not be opened.
    notes: Vec<String>,
}

impl<'a> Files<'a> {
    fn new(run: &'a Run, program: Option<&'a Path>, spec: &'a Spec) -> Files<'a> {
        let mut notes = Vec::new();
        if run.files.is_empty() {
            notes.push(
                "The record is from an older fxscope, which did not note the files that code is from: instructions are \
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

    /// The code of a file; none when it cannot be had, which the notes say then.
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

/// Cycles of the whole run.
fn cycles(run: &Run) -> u64 {
    let Some(region) = run.region(ALL) else { return 0 };
    (0..region.threads.len()).filter_map(|thread| region.count(thread, "CPU_CYCLES")).sum()
}

/// A function and where its cycles are.
struct Spots<'a> {
    function: Function,
    spots: Vec<&'a HotSpot>,
}

/// Puts the instructions of each function together.
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
    fn list(&mut self, files: &mut Files) {
        let instruction = |spot: &&HotSpot| Instruction {
            address: spot.address,
            offset: spot.offset,
            executions: spot.executions,
            cycles: spot.cycles,
            in_flight: spot.in_flight,
            stalls: spot.stalls.clone(),
            pipes: spot.pipes.clone(),
            source: None,
            code: None,
        };
        let mut list: Vec<Instruction> = self.spots.iter().map(instruction).collect();
        if let Some(code) = self.spots[0].file.and_then(|file| files.get(file)) {
            code.describe(&self.spots, &mut list);
        }
        self.function.instructions = Some(list);
    }
}

/// Says so when the machine is not the one that the program ran on.
fn changed_machine(run: &Run, spec: &Spec) -> Option<String> {
    (fxscope_machine::hash(spec) != run.machine_hash).then(|| {
        format!(
            "The description of {} ({}) is not the one that the run was made with: cycles are of that one, micro-operations \
             and pipes of this one. Repeat the run, or name the right description with --machine.",
            spec.name,
            spec.path.as_deref().unwrap_or("comes with fxscope")
        )
    })
}

/// What no file has an answer for.
fn made_while_running(functions: &[Function]) -> Option<String> {
    let function = functions.iter().find(|f| f.instructions.is_some() && f.file.is_none())?;
    let name = if function.name.is_empty() { "code without a name" } else { &function.name };
    Some(format!("Some instructions ({name}) are in no file known to the run: they are shown without their text."))
}
