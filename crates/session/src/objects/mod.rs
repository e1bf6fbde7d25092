//! Data objects: which variables, heap blocks, mappings and stacks the misses of a run are in, and which lines threads share.
//!
//! An observer looks at the refills of each block when it has run, so that it sees the objects that exist at that time. Hits cost
//! nothing: the memory system notes only what it brings into the caches.

pub(crate) mod allocations;
mod lines;
mod series;

use std::collections::{BTreeMap, BTreeSet};

use fxscope_calendar::Cycle;
use fxscope_guestmem::Segment;
use fxscope_linux::guest::PID;
use fxscope_linux::pages::Site;
use fxscope_linux::{Guest, ThreadLocal};
use fxscope_machine::Spec;
use fxscope_memory::{Cause, Refill, RefillKind};
use fxscope_record::{DataCounts, DataLine, DataObject, DataUser, ObjectKind, SourceLine};
use fxscope_sim::{BlockEvent, BlockObserver};

use crate::annotate::source_line;
use allocations::{Allocations, Block, Change};
use lines::{Lines, Use, range};
use series::Series;

pub use series::{DataSeries, ObjectTraffic};

/// Smallest mapping whose call is noted, bytes.
const LEAST_MAPPING: u64 = 64 << 10;
/// Variables that are known, the largest of a program.
const MOST_VARIABLES: usize = 1 << 13;
/// Heap blocks that are followed at the same time; accesses to further ones belong to the heap as a whole.
const MOST_BLOCKS: usize = 1 << 20;
/// Lines of a record: those that moved most often between threads.
const RECORDED_LINES: usize = 100;

/// An object as it is counted.
struct Object {
    kind: ObjectKind,
    name: String,
    /// Where it was allocated: the file of the calling code, as programs see it, and the offset of the call in it.
    site: Option<(Vec<u8>, u64)>,
    /// Blocks of it so far, and the bytes of those that exist and of the most that have existed at once.
    blocks: u64,
    live: u64,
    bytes: u64,
    counts: DataCounts,
}

/// A range of addresses that belongs to an object.
#[derive(Clone, Copy)]
struct Range {
    start: u64,
    end: u64,
    object: u32,
}

/// The data of a process.
#[derive(Default)]
struct Process {
    allocations: Allocations,
    /// Heap blocks by address.
    blocks: BTreeMap<u64, Range>,
    /// Variables by address, for the version of the symbols that they are from.
    variables: Vec<Range>,
    version: Option<u64>,
    /// Where threads have thread-local variables.
    thread_local: BTreeSet<u64>,
    /// Mappings that have been used: start and end.
    mappings: BTreeSet<(u64, u64)>,
}

/// Observes a run.
pub(crate) struct Observer {
    objects: Vec<Object>,
    by_name: BTreeMap<(ObjectKind, String), u32>,
    processes: BTreeMap<u32, Process>,
    /// Heap blocks of all processes.
    blocks: usize,
    lines: Lines,
    /// Traffic by intervals, if it is asked for.
    series: Option<Series>,
    line_bytes: u64,
    first_core: u32,
    cmg_cores: u32,
    core_hz: u64,
}

impl Observer {
    pub(crate) fn new(spec: &Spec) -> Observer {
        Observer {
            objects: Vec::new(),
            by_name: BTreeMap::new(),
            processes: BTreeMap::new(),
            blocks: 0,
            lines: Lines::default(),
            series: None,
            line_bytes: u64::from(spec.l1d.line_bytes),
            first_core: spec.topology.first_core,
            cmg_cores: spec.topology.cores_per_cmg,
            core_hz: spec.clock.core_hz,
        }
    }

    /// Also counts traffic by intervals of this many cycles.
    pub(crate) fn by_intervals(self, cycles: Cycle) -> Observer {
        Observer { series: Some(Series::new(cycles)), ..self }
    }

    /// Returns the traffic by intervals, if it was asked for.
    pub(crate) fn series(&self) -> Option<DataSeries> {
        let place = self.order().into_iter().zip(0..).map(|(index, place)| (index as u32, place)).collect();
        Some(self.series.as_ref()?.by_place(&place, self.core_hz))
    }

    /// Returns the objects with counts, those with most refills of L1D first.
    fn order(&self) -> Vec<usize> {
        let counted = |&index: &usize| self.objects[index].counts != DataCounts::default();
        let mut order: Vec<usize> = (0..self.objects.len()).filter(counted).collect();
        order.sort_by_key(|&index| (std::cmp::Reverse(self.objects[index].counts.l1_refills), index));
        order
    }

    /// Returns the number of an object.
    fn object(&mut self, kind: ObjectKind, name: &str, site: Option<(Vec<u8>, u64)>) -> u32 {
        if let Some(&number) = self.by_name.get(&(kind, name.to_owned())) {
            return number;
        }
        let number = self.objects.len() as u32;
        let (name, counts) = (name.to_owned(), DataCounts::default());
        self.by_name.insert((kind, name.clone()), number);
        self.objects.push(Object { kind, name, site, blocks: 0, live: 0, bytes: 0, counts });
        number
    }

    /// The heap of the running process has changed.
    #[cold]
    fn changed(&mut self, guest: &Guest, change: Change) {
        let pid = guest.pid();
        if change.freed != 0 {
            self.freed(pid, change.freed);
        }
        let Some(Block { start, bytes, site }) = change.allocated else { return };
        let name = caller(guest, site);
        let object = self.object(ObjectKind::Heap, &name, guest.file_at(site));
        // A block that has not been freed as far as is known gives way.
        self.freed(pid, start);
        let end = start.saturating_add(bytes);
        if self.blocks >= MOST_BLOCKS {
            return;
        }
        self.blocks += 1;
        self.processes.entry(pid).or_default().blocks.insert(start, Range { start, end, object });
        let object = &mut self.objects[object as usize];
        object.blocks += 1;
        object.live += bytes;
        object.bytes = object.bytes.max(object.live);
    }

    fn freed(&mut self, pid: u32, start: u64) {
        let block = self.processes.get_mut(&pid).and_then(|process| process.blocks.remove(&start));
        if let Some(block) = block {
            self.blocks -= 1;
            let object = &mut self.objects[block.object as usize];
            object.live = object.live.saturating_sub(block.end - block.start);
        }
    }

    /// Returns the object at an address of the running process, and the offset of the address in its block.
    fn at(&mut self, guest: &Guest, address: u64) -> (u32, u64) {
        let process = self.processes.entry(guest.pid()).or_default();
        let block = process.blocks.range(..=address).next_back().map(|(_, block)| *block);
        if let Some(block) = block.filter(|block| address < block.end) {
            return (block.object, address - block.start);
        }
        if process.version != Some(guest.running_symbols().version()) {
            self.learn_variables(guest);
        }
        let variables = &self.processes.entry(guest.pid()).or_default().variables;
        let found = variables.get(variables.partition_point(|variable| variable.end <= address));
        if let Some(variable) = found.filter(|variable| variable.start <= address) {
            return (variable.object, address - variable.start);
        }
        self.thread_local(guest, address).unwrap_or_else(|| self.in_region(guest, address))
    }

    /// Returns the thread-local variable of the running thread at an address, and the offset of the address in it.
    fn thread_local(&mut self, guest: &Guest, address: u64) -> Option<(u32, u64)> {
        let ThreadLocal { name, place } = guest.thread_local_at(address)?;
        let number = self.object(ObjectKind::Variable, &format!("{name} (thread-local)"), None);
        if self.processes.entry(guest.pid()).or_default().thread_local.insert(place.start) {
            let object = &mut self.objects[number as usize];
            (object.blocks, object.bytes) = (object.blocks + 1, object.bytes + (place.end - place.start));
        }
        Some((number, address - place.start))
    }

    #[cold]
    fn learn_variables(&mut self, guest: &Guest) {
        let symbols = guest.running_symbols();
        let names: BTreeSet<&str> = symbols.largest_variables(MOST_VARIABLES).into_iter().collect();
        let mut ranges: Vec<Range> = Vec::new();
        for name in names {
            let object = self.object(ObjectKind::Variable, name, None);
            ranges.extend(symbols.variables(name).map(|range| Range { start: range.start, end: range.end, object }));
        }
        ranges.sort_by_key(|range| (range.start, range.end));
        // Aliases have the same addresses.
        ranges.dedup_by(|b, a| b.start < a.end);
        for range in &ranges {
            let object = &mut self.objects[range.object as usize];
            (object.blocks, object.bytes) = (object.blocks + 1, object.bytes + (range.end - range.start));
        }
        let process = self.processes.entry(guest.pid()).or_default();
        (process.variables, process.version) = (ranges, Some(guest.running_symbols().version()));
    }

    /// Returns the object of an address that is in no variable and in no heap block: the mapping with the call that made it, a stack,
    /// or a part of the address space.
    fn in_region(&mut self, guest: &Guest, address: u64) -> (u32, u64) {
        let Some(region) = guest.memory().region_at(address) else {
            return (self.object(ObjectKind::Other, "unmapped", None), address);
        };
        let (start, segment) = (region.start, region.segment);
        match segment {
            Segment::Stack => (self.object(ObjectKind::Stack, "stack of the first thread", None), address - start),
            Segment::ThreadStack => (self.object(ObjectKind::Stack, "stacks of other threads", None), address - start),
            Segment::Mmap => match guest.mapping_at(address) {
                Some((range, site)) => (self.mapping(guest, &range, site), address - range.start),
                None => (self.object(ObjectKind::Other, "small mappings", None), address - start),
            },
            Segment::File => {
                let path = guest.file_at(address).map(|(path, _)| String::from_utf8_lossy(&path).into_owned());
                let name = path.as_deref().and_then(|path| path.rsplit('/').next()).unwrap_or("files");
                (self.object(ObjectKind::Other, name, None), address - start)
            }
            _ => (self.object(ObjectKind::Other, segment.name(), None), address - start),
        }
    }

    /// Returns the object of a mapping that a call has made, whose bytes are those of all mappings that the call has at the time.
    fn mapping(&mut self, guest: &Guest, range: &std::ops::Range<u64>, site: usize) -> u32 {
        let call = &guest.mapping_sites()[site];
        let number = self.object(ObjectKind::Mapping, &describe(call), call.file.clone());
        if self.processes.entry(guest.pid()).or_default().mappings.insert((range.start, range.end)) {
            let of_call = guest.mappings(0..u64::MAX).filter(|&(_, of)| of == site);
            let bytes = of_call.map(|(range, _)| range.end - range.start).sum();
            let object = &mut self.objects[number as usize];
            (object.blocks, object.bytes) = (object.blocks + 1, object.bytes.max(bytes));
        }
        number
    }

    /// Counts a refill that an instruction of `bytes` bytes has caused.
    fn count(&mut self, guest: &Guest, refill: &Refill, bytes: u64) {
        let (object, offset) = self.at(guest, refill.address);
        if let Some(series) = &mut self.series {
            series.count(object, refill);
        }
        let counts = &mut self.objects[object as usize].counts;
        let demand = u64::from(refill.cause == Cause::Demand);
        match refill.kind {
            RefillKind::Walk => counts.walks += 1,
            RefillKind::Permission => counts.upgrades += 1,
            RefillKind::Written | RefillKind::Zeroed => {}
            RefillKind::IntoL2 => counts.l2_refills += 1,
            RefillKind::FromL2 | RefillKind::FromMemory => {
                let memory = u64::from(refill.kind == RefillKind::FromMemory);
                counts.l1_refills += 1;
                counts.l1_misses += demand;
                counts.l2_refills += memory;
                counts.l2_misses += memory * demand;
            }
        }
        let is_access = refill.cause == Cause::Demand
            && matches!(refill.kind, RefillKind::FromL2 | RefillKind::FromMemory | RefillKind::Permission);
        if is_access {
            let first = refill.address % self.line_bytes;
            let by = Use {
                thread: guest.thread().tid - PID,
                cmg: guest.cpu_number().saturating_sub(self.first_core) / self.cmg_cores.max(1),
                first,
                bytes: bytes.clamp(1, self.line_bytes - first),
                write: refill.write,
            };
            let place = (object, offset.saturating_sub(first));
            let moved = self.lines.used(guest.pid(), refill.address / self.line_bytes, place, by);
            self.objects[object as usize].counts.transfers += u64::from(moved);
        }
    }

    /// Returns the objects with counts, those with most refills first, and the lines that moved most often between threads. `numbered`
    /// has the process and the number in it for each thread.
    pub(crate) fn finish(
        mut self,
        guest: &Guest,
        numbered: impl Fn(u32) -> (u32, u32),
    ) -> (Vec<DataObject>, Vec<DataLine>) {
        let lines = std::mem::take(&mut self.lines).in_order();
        for line in lines.iter().filter(|line| line.users.len() > 1) {
            let counts = &mut self.objects[line.object as usize].counts;
            counts.shared_lines += 1;
            counts.lines_across_cmgs += u64::from(line.crosses_cmgs());
            if line.is_falsely_shared() {
                counts.falsely_shared_lines += 1;
                counts.false_transfers += line.transfers;
            }
        }
        let order = self.order();
        let place: BTreeMap<u32, u32> = order.iter().zip(0..).map(|(&index, place)| (index as u32, place)).collect();
        let objects = order.iter().map(|&index| recorded(&self.objects[index], guest)).collect();
        let mut moved: Vec<_> = lines.iter().filter(|line| line.transfers > 0).collect();
        moved.sort_by_key(|line| std::cmp::Reverse(line.transfers));
        let of_line = |line: &&lines::Line| DataLine {
            object: place[&line.object],
            offset: line.offset,
            transfers: line.transfers,
            is_falsely_shared: line.is_falsely_shared(),
            users: line.users.iter().map(|user| of_user(user, &numbered)).collect(),
        };
        (objects, moved.iter().take(RECORDED_LINES).map(of_line).collect())
    }
}

fn of_user(user: &lines::User, numbered: &impl Fn(u32) -> (u32, u32)) -> DataUser {
    let (process, thread) = numbered(user.thread);
    DataUser { process, thread, cmg: user.cmg, touched: range(&user.touched), written: range(&user.written) }
}

/// Returns an object as it is recorded.
fn recorded(object: &Object, guest: &Guest) -> DataObject {
    let line = object.site.as_ref().and_then(|(path, place)| source_line(&guest.host_path(path), *place));
    DataObject {
        kind: object.kind,
        name: object.name.clone(),
        source: line.map(|(file, line)| SourceLine { file, line }),
        blocks: object.blocks,
        bytes: object.bytes,
        counts: object.counts,
    }
}

/// Names a call by its function and the offset in it or, without a symbol, by its address.
fn caller(guest: &Guest, site: u64) -> String {
    let place = guest.running_symbols().at(site);
    place.map_or_else(|| format!("{site:#x}"), |place| place.to_string())
}

fn describe(site: &Site) -> String {
    let function = site.function.as_ref();
    function.map_or_else(|| format!("{:#x}", site.address), |(name, offset)| format!("{name}+{offset:#x}"))
}

impl BlockObserver for Observer {
    /// A skipped iteration requests no line.
    fn may_skip_iterations(&self) -> bool {
        true
    }

    fn ran(&mut self, event: &mut BlockEvent<'_>) {
        let BlockEvent { guest, pipeline, block, .. } = event;
        let refills = &mut pipeline.memory.refills;
        if !refills.is_observed() {
            refills.observe();
        }
        let pid = guest.pid();
        if !self.processes.contains_key(&pid) {
            guest.note_mappings(LEAST_MAPPING);
        }
        for refill in refills.observed() {
            let access = block.tables.mem.get(usize::from(refill.inst)).and_then(Option::as_ref);
            self.count(guest, &refill, access.map_or(1, |access| access.op.bytes.into()));
        }
        let change = self.processes.entry(pid).or_default().allocations.ran(guest);
        if let Some(change) = change {
            self.changed(guest, change);
        }
    }
}
