//! Loops of a run: from the executions of each instruction, and the code in its files.

mod graph;
mod operands;

use std::collections::BTreeMap;
use std::path::Path;

use addr2line::Loader;
use fxscope_aarch64::table::{self, Ctx};
use fxscope_isa::{Access, Branch, MemOp, Shape, StaticInst};
use fxscope_linux::elf::{Image, Role};
use fxscope_machine::Spec;
use fxscope_record::{Accesses, Arithmetic, HotSpot, Loop, Run, SourceLines};

use crate::MAX_PROGRAM_BYTES;
use crate::annotate::line_at;
use graph::{Flow, NaturalLoop, Step, natural_loops};
use operands::producers;

/// The event of an instruction that counts inactive elements: 16 for each execution in which none is active.
pub(crate) const INACTIVE: &str = "INACTIVE_ELEMENTS";
/// What it counts for an execution without active elements.
const WHOLE: u64 = 16;

/// Whether files are what they were when the run executed them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// They are: the run has just ended.
    Unchanged,
    /// Their digests decide.
    Digest,
}

/// Returns the run with its loops, which records of older versions lack. They are found in the files that the run executed, as far as
/// these are where they were, and unchanged.
#[must_use]
pub fn with_loops(mut run: Run, spec: &Spec) -> Run {
    if run.profile.loops.is_empty() {
        run.profile.loops = loops(&run, spec, Trust::Digest).0;
    }
    run
}

/// The innermost loop of calls that are in one, by file and place, as an index into the loops.
pub(crate) type LoopsOfCalls = BTreeMap<(u32, u64), u32>;

/// Returns the loops of a run on the machine `spec`, function by function, and those of calls. Code without a name or without a file has
/// none.
pub(crate) fn loops(run: &Run, spec: &Spec, trust: Trust) -> (Vec<Loop>, LoopsOfCalls) {
    let (mut found, mut calls) = (Vec::new(), LoopsOfCalls::new());
    for (index, file) in (0u32..).zip(&run.files) {
        let functions = functions(run, index);
        if functions.is_empty() {
            continue;
        }
        let Some(code) = FileCode::open(Path::new(&file.path), &file.digest, trust, spec) else { continue };
        for function in functions.values() {
            let first = found.len() as u32;
            let (loops, in_loops) = code.loops(run, index, function);
            calls.extend(in_loops.into_iter().map(|(place, inner)| ((index, place), first + inner)));
            found.extend(loops.into_iter().map(|mut l| {
                l.parent = l.parent.map(|parent| first + parent);
                l
            }));
        }
    }
    (found, calls)
}

/// Returns the executed instructions of each named function of a file, by ascending place.
fn functions(run: &Run, file: u32) -> BTreeMap<(u64, &str), Vec<&HotSpot>> {
    let mut functions: BTreeMap<(u64, &str), Vec<&HotSpot>> = BTreeMap::new();
    for spot in run.hot_spots.iter().filter(|spot| spot.file == Some(file) && !spot.function.is_empty()) {
        functions.entry((spot.place.wrapping_sub(spot.offset), &spot.function)).or_default().push(spot);
    }
    functions
}

/// An instruction as loops need it.
#[derive(Clone, Copy)]
struct Instruction {
    flow: Flow,
    calls: bool,
    info: StaticInst,
}

/// Decodes the instruction `word` at an address, or a place in a file.
fn decode(word: u32, address: u64, vector_bytes: usize) -> Option<Instruction> {
    let decoded = table::decode(word, &Ctx { pc: address, vl: vector_bytes })?;
    let target = decoded.inst.imm as u64;
    let flow = match decoded.info.branch {
        Branch::None | Branch::Call | Branch::IndirectCall => Flow::Next,
        Branch::Direct => Flow::Jump(target),
        Branch::Conditional | Branch::Compare => Flow::Branch(target),
        Branch::Indirect => Flow::Indirect,
        Branch::Return => Flow::Return,
    };
    let calls = matches!(decoded.info.branch, Branch::Call | Branch::IndirectCall);
    Some(Instruction { flow, calls, info: decoded.info })
}

/// An executed instruction of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Executed {
    /// Its place in its file.
    pub place: u64,
    /// The instruction word, if it is known.
    pub word: Option<u32>,
    /// Number of executions.
    pub executions: u64,
    /// Total cycles from its issue to its commit.
    pub in_flight: u64,
}

/// What the code around an instruction says about it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Context {
    /// The places of the heads of the loops that it is in, the outermost first.
    pub heads: Vec<u64>,
    /// The instruction that makes its latest operand, as an index into the instructions of the function.
    pub producer: Option<usize>,
}

/// Returns the context of each executed instruction of a function, which are in ascending order. The function begins at `start`.
pub(crate) fn contexts(code: &[Executed], start: u64, vector_bytes: usize) -> Vec<Context> {
    let decoded: Vec<Option<Instruction>> =
        code.iter().map(|e| e.word.and_then(|word| decode(word, e.place, vector_bytes))).collect();
    let step = |(e, instruction): (&Executed, &Option<Instruction>)| Step {
        address: e.place,
        executions: e.executions,
        flow: instruction.map_or(Flow::Next, |instruction| instruction.flow),
    };
    let steps: Vec<Step> = code.iter().zip(&decoded).map(step).collect();
    let natural = natural_loops(&steps, start);
    let mut contexts = vec![Context::default(); code.len()];
    // Outer loops come first.
    for of in &natural {
        of.members.iter().for_each(|&member| contexts[member].heads.push(code[of.head].place));
    }
    let infos: Vec<Option<StaticInst>> = decoded.iter().map(|d| d.map(|instruction| instruction.info)).collect();
    for (context, producer) in contexts.iter_mut().zip(producers(code, &infos, &natural)) {
        context.producer = producer;
    }
    contexts
}

/// The code in a file.
struct FileCode {
    bytes: Vec<u8>,
    image: Image,
    lines: Option<Loader>,
    vector_bytes: usize,
}

impl FileCode {
    fn open(path: &Path, digest: &str, trust: Trust, spec: &Spec) -> Option<FileCode> {
        let bytes = fxscope_host::read(path, MAX_PROGRAM_BYTES).ok()?;
        if trust == Trust::Digest && fxscope_record::digest(&bytes) != digest {
            return None;
        }
        let image = Image::parse_as(&bytes, Role::Text).ok()?;
        let vector_bytes = spec.clock.vector_bits as usize / 8;
        Some(FileCode { bytes, image, lines: Loader::new(path).ok(), vector_bytes })
    }

    fn instruction(&self, place: u64) -> Option<Instruction> {
        let at = usize::try_from(place).ok()?;
        let word = self.bytes.get(at..)?.first_chunk()?;
        decode(u32::from_le_bytes(*word), place, self.vector_bytes)
    }

    /// Returns the loops of a function, and the innermost one of each call, by its place. Branches are relative, so that places in the
    /// file do for addresses.
    fn loops(&self, run: &Run, file: u32, spots: &[&HotSpot]) -> (Vec<Loop>, BTreeMap<u64, u32>) {
        let code: Vec<Option<Instruction>> = spots.iter().map(|spot| self.instruction(spot.place)).collect();
        let step = |(spot, instruction): (&&HotSpot, &Option<Instruction>)| Step {
            address: spot.place,
            executions: spot.executions,
            flow: instruction.map_or(Flow::Next, |instruction| instruction.flow),
        };
        let steps: Vec<Step> = spots.iter().zip(&code).map(step).collect();
        let start = spots[0].place.wrapping_sub(spots[0].offset);
        let natural = natural_loops(&steps, start);
        let sums = natural.iter().enumerate().map(|(index, of)| {
            let mut sum = sum(run, of, spots, &code, self.vector_bytes);
            let inside: Vec<&NaturalLoop> = natural.iter().filter(|l| l.parent == Some(index)).collect();
            let is_own = |member: &usize| !inside.iter().any(|l| l.members.binary_search(member).is_ok());
            sum.own_cycles = of.members.iter().filter(|member| is_own(member)).map(|&i| spots[i].cycles).sum();
            sum.source = self.source(of, spots);
            Loop { file, ..sum }
        });
        let calls = (0u32..).zip(&natural).flat_map(|(index, of)| {
            let calls = |&&member: &&usize| code[member].is_some_and(|instruction| instruction.calls);
            // Inner loops come behind outer ones.
            of.members.iter().filter(calls).map(move |&member| (spots[member].place, index))
        });
        (sums.collect(), calls.collect())
    }

    /// Returns the lines of most of the instructions of a loop; code from other files was inlined.
    fn source(&self, of: &NaturalLoop, spots: &[&HotSpot]) -> Option<SourceLines> {
        let lines = self.lines.as_ref()?;
        let mut files: BTreeMap<String, (usize, u32, u32)> = BTreeMap::new();
        for &member in &of.members {
            let address = self.image.code_at(spots[member].place)?.checked_sub(self.image.bias())?;
            let Some((file, line)) = line_at(lines, address) else { continue };
            let (count, first, last) = files.entry(file).or_insert((0, line, line));
            (*count, *first, *last) = (*count + 1, line.min(*first), line.max(*last));
        }
        let most = files.into_iter().max_by(|a, b| a.1.0.cmp(&b.1.0).then_with(|| b.0.cmp(&a.0)));
        most.map(|(file, (_, first, last))| SourceLines { file, first, last })
    }
}

/// Adds up what the instructions of a loop count.
fn sum(run: &Run, of: &NaturalLoop, spots: &[&HotSpot], code: &[Option<Instruction>], vector_bytes: usize) -> Loop {
    let head = spots[of.head];
    let mut sum = Loop {
        parent: of.parent.map(|parent| parent as u32),
        function: head.function.clone(),
        place: head.place,
        address: head.address,
        offset: head.offset,
        size: of.members.len() as u64,
        iterations: head.executions,
        entries: of.entries,
        stalls: vec![0; run.stalls.len()],
        pipes: vec![0; run.pipes.len()],
        events: vec![0; run.profile.events.len()],
        ..Loop::default()
    };
    let inactive = run.profile.events.iter().position(|event| event == INACTIVE);
    for &member in &of.members {
        let spot = spots[member];
        sum.instructions += spot.executions;
        sum.cycles += spot.cycles;
        for (sums, counts) in
            [(&mut sum.stalls, &spot.stalls), (&mut sum.pipes, &spot.pipes), (&mut sum.events, &spot.events)]
        {
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        let Some(instruction) = code[member] else { continue };
        let missing = inactive.and_then(|place| spot.events.get(place)).copied().unwrap_or(0);
        let work = (&mut sum.arithmetic, &mut sum.accesses);
        add_work(&instruction, spot.executions, missing, vector_bytes, work);
    }
    sum
}

/// Adds the work of an instruction, of which `missing` sixteenths were inactive.
fn add_work(
    of: &Instruction,
    executions: u64,
    missing: u64,
    vector_bytes: usize,
    (arithmetic, accesses): (&mut Arithmetic, &mut Accesses),
) {
    let on_active = |all: u64| {
        let whole = u128::from(executions) * u128::from(WHOLE);
        let active = whole.saturating_sub(u128::from(missing));
        (u128::from(all) * active).checked_div(whole).unwrap_or(0) as u64
    };
    let fp = of.info.fp;
    if fp.per_element > 0 {
        let all = executions * u64::from(fp.per_element) * u64::from(fp.elements);
        arithmetic.of_all_elements += all;
        arithmetic.operations += on_active(all);
        arithmetic.instructions += executions;
        arithmetic.bits += executions * 8 * u64::from(fp.esize) * u64::from(fp.elements);
    }
    let Some(op) = of.info.mem else { return };
    let bytes = on_active(executions * bytes_of(&op, vector_bytes));
    match op.access {
        Access::Load => accesses.loaded += bytes,
        Access::Store | Access::ZeroLine => accesses.stored += bytes,
        Access::Atomic => (accesses.loaded, accesses.stored) = (accesses.loaded + bytes, accesses.stored + bytes),
        Access::PrefetchLoad(_) | Access::PrefetchStore(_) => {}
    }
}

/// Returns the bytes of an access with all elements active.
fn bytes_of(op: &MemOp, vector_bytes: usize) -> u64 {
    match op.shape {
        Shape::Indexed => (vector_bytes / usize::from(op.reg_esize.max(1)) * usize::from(op.mem_esize)) as u64,
        _ => op.bytes.into(),
    }
}
