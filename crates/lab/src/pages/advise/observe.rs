//! Observes the accesses of a run: TLB misses of every assignment of pages, core by core.

use std::ops::Range;
use std::path::{Path, PathBuf};

use fxscope_guestmem::Segment;
use fxscope_linux::Guest;
use fxscope_linux::pages::{MappingPages, Site};
use fxscope_machine::Spec;
use fxscope_session::source_line;
use fxscope_sim::{BlockEvent, BlockObserver};
use fxscope_tlbsweep::{Access, Analysis, Error, SweepOptions, SweepResults, TlbConfig};

use super::observation::{Missed, Observation, by_number};
use super::parts::{self, Assignment, Group, Kinds, NUMBERS, PARTS, SHARED};
use super::touched::Touched;
use super::work::{Gaps, Mapped as MappedWork};
use super::{Costs, part_of_call};

/// Bits of a program's addresses; the process number is stored above them.
const ADDRESS_BITS: u32 = 48;
/// Most equivalence classes of each analysis of a core. Few programs need that many.
const CLASSES: usize = 1024;
/// Instructions further apart than this may be in different pages of any size, log2 bytes.
const CODE_SHIFT: u32 = 12;

/// Initial page sizes of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    groups: [u64; Group::ALL.len()],
    shared: u64,
}

impl Start {
    /// Builds the start of a program whose segments have pages of the sizes that `bytes` says.
    ///
    /// # Errors
    /// Names the segments of a group that have different sizes.
    pub fn new(bytes: impl Fn(Segment) -> u64) -> Result<Start, String> {
        let mut groups = [0; Group::ALL.len()];
        for (size, group) in groups.iter_mut().zip(Group::ALL) {
            let segments = group.segments();
            *size = bytes(segments[0]);
            if let Some(other) = segments.iter().find(|&&segment| bytes(segment) != *size) {
                let (first, other) = (segments[0].name(), other.name());
                return Err(format!(
                    "{first} and {other} have pages of different sizes, but form one group here; give them one size with \
                     --pages {first}=SIZE,{other}=SIZE"
                ));
            }
        }
        Ok(Start { groups, shared: bytes(Segment::Shared) })
    }

    /// Returns the sizes of the groups, in their order.
    #[must_use]
    pub fn groups(&self) -> &[u64] {
        &self.groups
    }
}

fn sorted(mut sizes: Vec<u64>) -> Vec<u64> {
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// A call that maps large blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub(super) site: Site,
    /// Host path of the calling code's file.
    pub(super) path: Option<PathBuf>,
    /// The part of its mappings.
    pub part: usize,
    /// Largest total size of its mappings.
    pub bytes: u64,
}

impl Call {
    /// Returns its source file, without folders, and line, if debug information has them.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        let ((_, place), path) = (self.site.file.as_ref()?, self.path.as_ref()?);
        let (file, line) = source_line(path, *place)?;
        let name = Path::new(&file).file_name().map_or(file.clone(), |name| name.to_string_lossy().into_owned());
        Some(format!("{name}:{line}"))
    }

    /// Returns its function and, if debug information has it, its line.
    #[must_use]
    pub fn describe(&self) -> String {
        match (&self.site.function, self.line()) {
            (Some((function, _)), Some(line)) => format!("{function} ({line})"),
            (Some((function, _)), None) => function.clone(),
            (None, Some(line)) => line,
            (None, None) => format!("{:#x}", self.site.address),
        }
    }

    /// Returns its place in the program, which is unique even if its line is not.
    #[must_use]
    pub fn place(&self) -> String {
        let function = self.site.function.as_ref();
        function.map_or_else(|| format!("{:#x}", self.site.address), |(name, offset)| format!("{name}+{offset:#x}"))
    }
}

/// A part of an address space.
#[derive(Clone, Copy)]
struct Mapped {
    start: u64,
    end: u64,
    number: u8,
}

const NOWHERE: Mapped = Mapped { start: 0, end: 0, number: 0 };

/// The address space of a process.
struct Space {
    pid: u32,
    /// Version of the address space when `ranges` were read.
    generation: u64,
    /// By ascending address.
    ranges: Vec<Mapped>,
}

/// TLB analyses of a core: of data, and of instructions.
struct Core {
    cpu: u32,
    data: Analysis,
    code: Analysis,
    /// The instruction that was looked up last.
    instruction: u64,
    /// The pages of its data, and of its instructions.
    touched: [Touched; 2],
    /// What it had counted when the part of the run began.
    before: Option<[SweepResults; 2]>,
}

/// Observes a run.
pub struct Observer {
    tlbs: TlbConfig,
    options: SweepOptions,
    kinds: Kinds,
    base: Assignment,
    shared: usize,
    spaces: Vec<Space>,
    /// Index of the last process, and the range that it accessed last.
    here: usize,
    last: Mapped,
    calls: Vec<Call>,
    /// Largest total size of other mappings.
    others: u64,
    /// Whether the system uses transparent huge pages on request.
    uses_huge: bool,
    /// Parts with at least one aligned range that holds a transparent huge page.
    huge: [bool; PARTS],
    cores: Vec<Core>,
    /// The addresses of the current block.
    addresses: Vec<u64>,
    /// What the kernel does for the heap and mappings, by part.
    work: Vec<MappedWork>,
    /// The room for mappings in pages of others.
    gaps: Gaps,
    /// Whether the part of the run that is timed has begun.
    has_begun: bool,
}

impl Observer {
    /// Observes a program that starts with these pages, with further page sizes to try. The mappings of the calls `known`
    /// are parts of their own; without any, those of the first calls that map large blocks are.
    ///
    /// # Errors
    /// If the machine's TLBs or the sizes are outside what can be analysed.
    pub fn new(spec: &Spec, start: &Start, asked: &[u64], known: Vec<Call>) -> Result<Observer, Error> {
        let kinds = kinds(spec, start, asked);
        let [normal, huge] = kinds.transparent;
        let sizes = sorted(kinds.sizes.iter().copied().chain([start.shared, normal, huge]).collect());
        let place = |bytes: u64| sizes.iter().position(|&size| size == bytes).unwrap_or(0);
        let of_part = |part| start.groups[Group::of(part) as usize];
        let base = Assignment(std::array::from_fn(|part| kinds.place(MappingPages::Size(of_part(part))).unwrap_or(0)));
        let Costs { hit, walk } = Costs::of(spec);
        let mut options = SweepOptions {
            segments: NUMBERS,
            allowed: allowed(&kinds, place, place(start.shared)),
            max_classes: CLASSES,
            keep: Vec::new(),
            costs: [hit, walk],
            sizes: sizes.clone(),
        };
        let shared = place(start.shared);
        options.keep = kept(&base, &kinds).map(|one| by_number(&one, &kinds, &sizes, shared)).collect();
        let tlbs = TlbConfig::of(&spec.tlb);
        // Reports errors now, not when the first core runs.
        Analysis::new(&tlbs, &options)?;
        Ok(Observer {
            tlbs,
            options,
            kinds,
            base,
            shared,
            spaces: Vec::new(),
            here: 0,
            last: NOWHERE,
            calls: known.into_iter().enumerate().map(|(i, call)| Call { part: part_of_call(i), ..call }).collect(),
            others: 0,
            uses_huge: spec.has_huge_pages_on_request(),
            huge: [false; PARTS],
            cores: Vec::new(),
            addresses: Vec::new(),
            work: vec![MappedWork::new(sizes.len()); PARTS],
            gaps: Gaps::new(sizes.len()),
            has_begun: false,
        })
    }

    /// Returns the results.
    #[must_use]
    pub fn finish(self) -> Observation {
        let Observer { options, kinds, base, shared, calls, others, huge, cores, work, .. } = self;
        let sizes = options.sizes;
        let mut touched = Touched::new(sizes[0]);
        cores.iter().for_each(|core| touched.merge(&core.touched[0]));
        let missed = |core: Core| Missed {
            touched: core.touched.each_ref().map(|touched| touched.counts(&sizes)),
            before: core.before,
            data: core.data.finish(),
            code: core.code.finish(),
        };
        let cores = cores.into_iter().map(missed).collect();
        let touched = touched.counts(&sizes);
        Observation { sizes, kinds, base, shared, calls, others, huge, cores, touched, work }
    }

    /// Updates the address space of the running process.
    fn follow(&mut self, process: &Guest) {
        let (pid, generation) = (process.pid(), process.memory().generation());
        if self.spaces.get(self.here).is_some_and(|space| space.pid == pid && space.generation == generation) {
            return;
        }
        self.last = NOWHERE;
        self.here = self.spaces.iter().position(|space| space.pid == pid).unwrap_or_else(|| {
            self.spaces.push(Space { pid, generation: u64::MAX, ranges: Vec::new() });
            self.spaces.len() - 1
        });
        if self.spaces[self.here].generation != generation {
            self.read_ranges(process);
        }
    }

    #[cold]
    fn read_ranges(&mut self, process: &Guest) {
        let calls: Vec<usize> = process.mapping_sites().iter().map(|site| self.call(process, site)).collect();
        let mut ranges = Vec::new();
        let (mut live, mut others) = (vec![0; self.calls.len()], 0);
        for region in process.memory().regions() {
            if region.segment != Segment::Mmap {
                let part = Group::with(region.segment).map_or(SHARED, Group::part);
                self.add(part, region.start..region.end, &mut ranges);
                continue;
            }
            let mut at = region.start;
            for (Range { start, end }, site) in process.mappings(region.start..region.end) {
                self.add(Group::Mmap.part(), at..start, &mut ranges);
                others += start - at;
                let call = calls[site];
                live[call] += end - start;
                self.add(self.calls[call].part, start..end, &mut ranges);
                at = end;
            }
            self.add(Group::Mmap.part(), at..region.end, &mut ranges);
            others += region.end - at;
        }
        self.calls.iter_mut().zip(live).for_each(|(call, live)| call.bytes = call.bytes.max(live));
        self.others = self.others.max(others);
        self.note_work(&ranges);
        let space = &mut self.spaces[self.here];
        (space.ranges, space.generation) = (ranges, process.memory().generation());
    }

    /// Notes what the kernel does for the heap and mappings that are new or gone: `ranges` are those of the running process now. What a
    /// process begins with takes no time.
    fn note_work(&mut self, ranges: &[Mapped]) {
        let before = &self.spaces[self.here];
        if before.generation == u64::MAX {
            return;
        }
        let is_dynamic = |range: &&Mapped| {
            let part = parts::part(usize::from(range.number));
            part != SHARED && [Group::Heap, Group::Mmap].contains(&Group::of(part))
        };
        let all = |ranges: &[Mapped]| ranges.iter().filter(is_dynamic).copied().collect::<Vec<Mapped>>();
        let (old, new) = (all(&before.ranges), all(ranges));
        let sizes = &self.options.sizes;
        for piece in without(&new, &old) {
            let part = parts::part(usize::from(piece.number));
            let heap = new.iter().find(|range| range.number == piece.number && part == Group::Heap.part());
            let bytes = piece.end - piece.start;
            match heap {
                Some(heap) => self.work[part].grow(bytes, piece.start - heap.start, sizes),
                None => self.work[part].map(bytes, sizes, &mut self.gaps),
            }
        }
        for piece in without(&old, &new) {
            self.work[parts::part(usize::from(piece.number))].unmap(piece.end - piece.start, sizes, &mut self.gaps);
        }
    }

    /// Adds the ranges of a part: those in transparent huge pages separately, if it can have them.
    fn add(&mut self, part: usize, range: Range<u64>, ranges: &mut Vec<Mapped>) {
        let [_, page] = self.kinds.transparent;
        let (first, last) = (range.start.next_multiple_of(page), range.end / page * page);
        let inner = parts::huge(part).filter(|_| self.uses_huge && first < last);
        let pieces = match inner {
            None => vec![(range, part)],
            Some(huge) => {
                self.huge[part] = true;
                vec![(range.start..first, part), (first..last, huge), (last..range.end, part)]
            }
        };
        let piece =
            |(range, number): (Range<u64>, usize)| Mapped { start: range.start, end: range.end, number: number as u8 };
        ranges.extend(pieces.into_iter().filter(|(range, _)| !range.is_empty()).map(piece));
    }

    /// Returns the index of a call.
    fn call(&mut self, process: &Guest, site: &Site) -> usize {
        self.calls.iter().position(|known| known.site.is_at(site)).unwrap_or_else(|| {
            let taken = self.calls.iter().filter(|call| call.part != Group::Mmap.part()).count();
            // Only calls in the program's own file can be named in another run.
            let part = if site.is_own { part_of_call(taken) } else { Group::Mmap.part() };
            let path = site.file.as_ref().map(|(path, _)| process.host_path(path));
            self.calls.push(Call { site: site.clone(), path, part, bytes: 0 });
            self.calls.len() - 1
        })
    }

    /// Returns the range that holds an address.
    fn look_up(&self, address: u64) -> Mapped {
        let ranges = &self.spaces[self.here].ranges;
        let found = ranges.get(ranges.partition_point(|range| range.end <= address));
        found.copied().filter(|range| range.start <= address).unwrap_or(NOWHERE)
    }

    /// Returns the analysis number of the range that holds a datum.
    #[inline]
    fn number_at(&mut self, address: u64) -> u8 {
        if !(self.last.start <= address && address < self.last.end) {
            self.last = self.look_up(address);
        }
        self.last.number
    }

    /// Returns the index of a core.
    fn core(&mut self, cpu: u32) -> usize {
        self.cores.iter().position(|core| core.cpu == cpu).unwrap_or_else(|| {
            let analysis = || Analysis::new(&self.tlbs, &self.options).expect("checked at the beginning");
            let touched = std::array::from_fn(|_| Touched::new(self.options.sizes[0]));
            let (data, code) = (analysis(), analysis());
            self.cores.push(Core { cpu, data, code, instruction: u64::MAX, touched, before: None });
            self.cores.len() - 1
        })
    }

    /// The part of the run that is timed begins: what was followed before is not counted.
    #[cold]
    fn begin(&mut self) {
        self.has_begun = true;
        for core in &mut self.cores {
            core.before = Some([core.data.so_far(), core.code.so_far()]);
            core.touched.iter_mut().for_each(Touched::begin);
        }
        self.work.iter_mut().for_each(MappedWork::begin);
    }

    /// Looks up the addresses of a block.
    fn look_up_all(&mut self, ran: &mut BlockEvent<'_>) {
        let BlockEvent { guest, pipeline, block, executed } = ran;
        self.follow(guest);
        let core = self.core(guest.cpu_number());
        if let Some(last) = executed.checked_sub(1) {
            self.fetch(core, [block.start, block.start + 4 * last as u64]);
        }
        let mut addresses = std::mem::take(&mut self.addresses);
        addresses.clear();
        pipeline.data_lookups(block, *executed, guest.cpu().stream(), &mut addresses);
        let space = (self.here as u64) << ADDRESS_BITS;
        for &address in &addresses {
            let segment = self.number_at(address);
            let core = &mut self.cores[core];
            core.data.access(Access { addr: address | space, segment });
            core.touched[0].touch(segment, address | space);
        }
        self.addresses = addresses;
    }

    /// Fetches the instructions at these addresses.
    fn fetch(&mut self, core: usize, instructions: [u64; 2]) {
        let space = (self.here as u64) << ADDRESS_BITS;
        for address in instructions {
            let addr = address | space;
            if addr >> CODE_SHIFT != self.cores[core].instruction >> CODE_SHIFT {
                let segment = self.look_up(address).number;
                let core = &mut self.cores[core];
                core.instruction = addr;
                core.code.access(Access { addr, segment });
                core.touched[1].touch(segment, addr);
            }
        }
    }
}

impl BlockObserver for Observer {
    /// Skipped iterations access the pages of the one before.
    fn may_skip_iterations(&self) -> bool {
        true
    }

    fn ran(&mut self, ran: &mut BlockEvent<'_>) {
        if !self.has_begun {
            self.begin();
        }
        self.look_up_all(ran);
    }

    /// What is before the part fills the TLBs. What is between its executions is not seen.
    fn followed(&mut self, followed: &mut BlockEvent<'_>) {
        if !self.has_begun {
            self.look_up_all(followed);
        }
    }
}

/// Returns the kinds of pages to try, including those that the program starts with.
fn kinds(spec: &Spec, start: &Start, asked: &[u64]) -> Kinds {
    let normal = spec.pages.normal;
    let sizes = sorted(asked.iter().chain(&start.groups).copied().collect());
    Kinds { sizes, transparent: [normal, spec.pages.transparent()] }
}

/// Returns the sizes that each number may have, as masks over all.
fn allowed(kinds: &Kinds, place: impl Fn(u64) -> usize, shared: usize) -> Vec<u8> {
    let [normal, huge] = kinds.transparent.map(|bytes| 1u8 << place(bytes));
    let asked = kinds.sizes.iter().fold(0, |mask, &bytes| mask | 1 << place(bytes));
    let of = |number: usize| match parts::huge(number) {
        _ if number == SHARED => 1 << shared,
        _ if number > SHARED => asked | huge,
        Some(_) => asked | normal,
        None => asked,
    };
    (0..NUMBERS).map(of).collect()
}

/// Assignments whose misses must be known: the program's own, one kind for all parts, and all that differ from one of these
/// in one part.
fn kept<'a>(base: &Assignment, kinds: &'a Kinds) -> impl Iterator<Item = Assignment> + 'a {
    let uniform = (0..kinds.len()).map(|kind| Assignment(std::array::from_fn(|part| fitting(part, kind, kinds))));
    let whole: Vec<Assignment> = std::iter::once(base.clone()).chain(uniform).collect();
    let changed = |one: &Assignment| -> Vec<Assignment> {
        let each = (0..PARTS).flat_map(|part| (0..kinds.len()).map(move |kind| (part, kind)));
        let change = each.filter(|&(part, kind)| fitting(part, kind, kinds) == kind).map(|(part, kind)| {
            let mut other = one.clone();
            other.0[part] = kind;
            other
        });
        change.collect()
    };
    let others: Vec<Assignment> = whole.iter().flat_map(changed).collect();
    whole.into_iter().chain(others)
}

/// Returns the kind for a part: a part without transparent huge pages gets normal ones, or else the smallest to try.
fn fitting(part: usize, kind: usize, kinds: &Kinds) -> usize {
    if kind != kinds.thp() || parts::huge(part).is_some() {
        return kind;
    }
    kinds.place(MappingPages::Size(kinds.transparent[0])).unwrap_or(0)
}

/// Returns the parts of `ranges` that none of `others` covers. Both are in address order.
fn without(ranges: &[Mapped], others: &[Mapped]) -> Vec<Mapped> {
    let mut rest = Vec::new();
    for range in ranges {
        let mut at = range.start;
        let first = others.partition_point(|other| other.end <= range.start);
        for other in others[first..].iter().take_while(|other| other.start < range.end) {
            if other.start > at {
                rest.push(Mapped { start: at, end: other.start, ..*range });
            }
            at = at.max(other.end);
        }
        if at < range.end {
            rest.push(Mapped { start: at, ..*range });
        }
    }
    rest
}
