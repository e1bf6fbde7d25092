//! Calls of a run for its record: the contexts of all threads as one tree, with the functions that the compiler has inlined.

use std::collections::BTreeMap;
use std::path::Path;

use addr2line::Loader;
use fxscope_linux::elf::{Image, Role};
use fxscope_record::{CallContext, CallCount, Calls, Run, SourceLine};
use fxscope_sim::Outcome;

use crate::MAX_PROGRAM_BYTES;
use crate::annotate::line_at;
use crate::loops::LoopsOfCalls;
use crate::numbering::Numbering;

/// A place in the code: a file by its number, and the offset in it, or an address.
type Place = (Option<u32>, u64);

/// Returns the calls of `outcome`; `run` is its record so far, with instructions and loops.
pub(crate) fn calls(outcome: &Outcome, numbering: &Numbering, run: &Run, in_loops: &LoopsOfCalls) -> Calls {
    let merged = Merged::of(outcome, numbering);
    let mut files = Files { run, open: BTreeMap::new() };
    let inlined = inlined(run, &mut files);
    let mut tree = Contexts::default();
    let mut numbers: Vec<u32> = Vec::new();
    for of in &merged.contexts {
        let function = &outcome.calls.functions[of.function as usize];
        let chain = of.site.map_or_else(Vec::new, |site| files.inlined_at(site));
        let caller = of.caller.map(|caller| tree.inside(numbers[caller as usize], &chain));
        let in_loop = of.site.and_then(|(file, place)| in_loops.get(&(file?, place)).copied());
        numbers.push(tree.contexts.len() as u32);
        tree.contexts.push(CallContext {
            caller,
            function: function.name.clone().unwrap_or_default(),
            file: function.file,
            is_inlined: false,
            site: of.site.and_then(|site| files.line_at(site)),
            in_loop,
        });
    }
    let mut counts = Vec::new();
    for count in &merged.counts {
        let of = &merged.contexts[count.context as usize];
        let function = &outcome.calls.functions[of.function as usize];
        let number = numbers[count.context as usize];
        let none = BTreeMap::new();
        let shares = inlined.get(&(function.file, function.start)).unwrap_or(&none);
        let all: u64 = shares.values().sum();
        let mut own = count.cycles;
        for (chain, &cycles) in shares.iter().filter(|(chain, _)| !chain.is_empty()) {
            let share = (u128::from(count.cycles) * u128::from(cycles) / u128::from(all.max(1))) as u64;
            own -= share;
            if share > 0 {
                counts.push(CallCount { context: tree.inside(number, chain), calls: 0, cycles: share, ..*count });
            }
        }
        counts.push(CallCount { context: number, cycles: own, ..*count });
    }
    counts.retain(|count| count.calls > 0 || count.cycles > 0);
    counts.sort_by_key(|count| (count.process, count.thread, count.context));
    Calls { contexts: tree.contexts, counts }
}

/// The contexts of all threads, without inlined functions.
#[derive(Default)]
struct Merged {
    contexts: Vec<MergedContext>,
    counts: Vec<CallCount>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MergedContext {
    caller: Option<u32>,
    function: u32,
    site: Option<Place>,
}

impl Merged {
    fn of(outcome: &Outcome, numbering: &Numbering) -> Merged {
        let mut merged = Merged::default();
        let mut known: BTreeMap<MergedContext, u32> = BTreeMap::new();
        for (&thread, contexts) in &outcome.calls.threads {
            let fxscope_record::Thread { process, thread, .. } = numbering.thread(thread, 0);
            let mut numbers: Vec<u32> = Vec::new();
            for of in contexts {
                let caller = of.caller.map(|caller| numbers[caller as usize]);
                let context = MergedContext { caller, function: of.function, site: of.site };
                let next = merged.contexts.len() as u32;
                let number = *known.entry(context).or_insert(next);
                if number == next {
                    merged.contexts.push(context);
                }
                numbers.push(number);
                let (calls, cycles) = (of.calls, of.cycles);
                merged.counts.push(CallCount { context: number, process, thread, calls, cycles });
            }
        }
        merged
    }
}

/// Contexts for the record.
#[derive(Default)]
struct Contexts {
    contexts: Vec<CallContext>,
    /// Inlined functions by the context around them and their name.
    inlined: BTreeMap<(u32, String), u32>,
}

impl Contexts {
    /// Returns the context of the last of some functions that were inlined into each other, the first one into context `number`.
    fn inside(&mut self, number: u32, chain: &[String]) -> u32 {
        chain.iter().fold(number, |around, name| {
            let next = self.contexts.len() as u32;
            let number = *self.inlined.entry((around, name.clone())).or_insert(next);
            if number == next {
                let file = self.contexts[around as usize].file;
                let (caller, function) = (Some(around), name.clone());
                self.contexts.push(CallContext { caller, function, file, is_inlined: true, ..CallContext::default() });
            }
            number
        })
    }
}

/// Cycles of a function by the functions that were inlined into each other there, the outermost first.
type Shares = BTreeMap<Vec<String>, u64>;

/// Returns the cycles of each function, by file and start, that has inlined ones.
fn inlined(run: &Run, files: &mut Files) -> BTreeMap<Place, Shares> {
    let mut functions: BTreeMap<Place, Shares> = BTreeMap::new();
    for spot in run.hot_spots.iter().filter(|spot| spot.cycles > 0 && !spot.function.is_empty()) {
        let chain = files.inlined_at((spot.file, spot.place));
        let function = functions.entry((spot.file, spot.place.wrapping_sub(spot.offset))).or_default();
        *function.entry(chain).or_default() += spot.cycles;
    }
    functions.retain(|_, shares| shares.keys().any(|chain| !chain.is_empty()));
    functions
}

/// The debug information of a run's files, opened on demand.
struct Files<'a> {
    run: &'a Run,
    open: BTreeMap<u32, Option<(Image, Loader)>>,
}

impl Files<'_> {
    fn get(&mut self, file: u32) -> Option<&(Image, Loader)> {
        let path = &self.run.files.get(file as usize)?.path;
        self.open.entry(file).or_insert_with(|| open(Path::new(path))).as_ref()
    }

    /// Returns the names of the functions that were inlined into each other at a place, the outermost first.
    fn inlined_at(&mut self, (file, place): Place) -> Vec<String> {
        let Some((image, lines)) = file.and_then(|file| self.get(file)) else { return Vec::new() };
        let address = image.code_at(place).and_then(|at| at.checked_sub(image.bias()));
        let Some(Ok(mut frames)) = address.map(|address| lines.find_frames(address)) else { return Vec::new() };
        let mut names = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.and_then(|name| name.raw_name().ok().map(|name| name.into_owned()));
            names.push(name.unwrap_or_default());
        }
        // The last one is the function itself.
        names.pop();
        names.reverse();
        names
    }

    /// Returns the line of the code at a place.
    fn line_at(&mut self, (file, place): Place) -> Option<SourceLine> {
        let (image, lines) = self.get(file?)?;
        let (file, line) = line_at(lines, image.code_at(place)?.checked_sub(image.bias())?)?;
        Some(SourceLine { file, line })
    }
}

/// Opens a file with code; `None` if it has no debug information that can be read.
fn open(path: &Path) -> Option<(Image, Loader)> {
    let image = Image::parse_as(&fxscope_host::read(path, MAX_PROGRAM_BYTES).ok()?, Role::Text).ok()?;
    Some((image, Loader::new(path).ok()?))
}
