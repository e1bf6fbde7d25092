//! Pages of a process: their sizes, when they are taken, and on which memory nodes they are.
//!
//! `fxscope_guestmem::Memory` backs what a program touches in units of its own and knows nothing of this. Here is what
//! the modelled system would do: [`Plan`] says which page size each segment has and which segments are *prepaged*,
//! taken as a whole when they are mapped; all others are taken page by page when they are touched first. Which pages
//! are resident, and where, follows from that, from the memory policies, and from the first touches that `Memory` records.

mod library;
mod malloc;
mod own;
mod policy;
mod process;
mod range_map;
mod site;
mod usage;

use std::collections::BTreeMap;
use std::ops::Range;

use fxscope_guestmem::{Memory, Segment};
use fxscope_guestmem::{PAGE, Region};

pub use own::MappingPages;
pub use policy::{NodeMask, Placement, list, mask, parse_nodes};
pub use process::Backing;
pub use site::{Site, SitePages};
pub use usage::PageUse;

pub(crate) use malloc::translated;
pub(crate) use policy::{Policy, remapped};

use serde::{Deserialize, Serialize};

use library::{Library, PageType};
use own::Own;
use range_map::RangeMap;
use site::Sites;
use usage::Usage;

/// Page sizes of segments in bytes: powers of two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSizes {
    /// Pages without the large-page library.
    pub normal: u64,
    /// Pages that the library takes.
    pub large: u64,
    /// The size of each segment when the program's environment says nothing; `normal` for those that are missing.
    pub segments: BTreeMap<Segment, u64>,
    /// Segments whose size holds whatever the environment says.
    pub fixed: Vec<Segment>,
}

impl PageSizes {
    /// Pages of one size for everything.
    #[must_use]
    pub fn all(bytes: u64) -> PageSizes {
        PageSizes { normal: bytes, large: bytes, segments: BTreeMap::new(), fixed: Vec::new() }
    }

    /// Bytes of a transparent huge page: what the first table level spans that can hold one.
    #[must_use]
    pub fn transparent(&self) -> u64 {
        self.normal * (self.normal / 8)
    }
}

/// On which nodes a program's memory is to be, as numactl(8) sets it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MemoryPolicy {
    /// On the node of the processor that touches it first.
    #[default]
    Local,
    /// On these nodes only.
    Bind(NodeMask),
    /// On these nodes in turn.
    Interleave(NodeMask),
}

impl From<MemoryPolicy> for Policy {
    fn from(policy: MemoryPolicy) -> Policy {
        match policy {
            MemoryPolicy::Local => Policy::default(),
            MemoryPolicy::Bind(nodes) => Policy::bind(nodes),
            MemoryPolicy::Interleave(nodes) => Policy::interleave(nodes),
        }
    }
}

/// A range of the address space with one page size and one placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageSpan {
    /// Its addresses.
    pub range: Range<u64>,
    /// Log2 of the page size.
    pub shift: u32,
    /// Where its pages come to be, or are.
    pub placement: Placement,
    /// Grows whenever pages of it are moved to another node.
    pub moved: u32,
}

/// Work of the system on pages, which costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MemoryWork {
    /// Pages taken because they were touched.
    pub faults: u64,
    /// Bytes of pages cleared for the program.
    pub cleared_bytes: u64,
    /// Bytes of pages given back.
    pub freed_bytes: u64,
    /// Pages moved to other nodes.
    pub moved: u64,
    /// Their bytes.
    pub moved_bytes: u64,
}

/// How pages of a process are chosen: from the machine and from the program's environment, once for each program.
#[derive(Clone, Serialize, Deserialize)]
struct Plan {
    sizes: PageSizes,
    library: Library,
}

impl Plan {
    /// Bytes of the pages of a segment.
    fn page_bytes(&self, segment: Segment) -> u64 {
        let sizes = &self.sizes;
        let default = sizes.segments.get(&segment).copied().unwrap_or(sizes.normal);
        if sizes.fixed.contains(&segment) {
            return default;
        }
        let library = &self.library;
        let large = match (segment, library.page_type) {
            (Segment::Text | Segment::File | Segment::Shared, _) => return default,
            (_, Some(PageType::Normal | PageType::Transparent)) => Some(false),
            (Segment::Stack | Segment::ThreadStack, page_type) => library.stack.or(page_type.map(|_| true)),
            (_, page_type) => page_type.map(|_| true),
        };
        large.map_or(default, |large| if large { sizes.large } else { sizes.normal })
    }

    /// The parts of a region that have pages of one size, with its log2: transparent huge pages lie where they fit.
    fn parts(&self, region: &Region) -> Vec<(Range<u64>, u32)> {
        let shift = self.page_bytes(region.segment).trailing_zeros();
        let whole = region.start..region.end;
        let huge = self.sizes.transparent();
        let transparent = self.library.page_type == Some(PageType::Transparent)
            && !self.sizes.fixed.contains(&region.segment)
            && region.segment.is_anonymous();
        let (first, last) = (region.start.next_multiple_of(huge), region.end / huge * huge);
        if !transparent || first >= last {
            return vec![(whole, shift)];
        }
        let parts = [(whole.start..first, shift), (first..last, huge.trailing_zeros()), (last..whole.end, shift)];
        parts.into_iter().filter(|(range, _)| !range.is_empty()).collect()
    }
}

/// Pages that have been taken.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Resident {
    segment: Segment,
    shift: u32,
    placement: Placement,
    /// They were not placed by a first touch, so the memory model cannot know where they are.
    placed: bool,
    /// The number of the last move that they took part in, counted from 1; 0: none.
    moved: u32,
}

/// Who maps or touches memory: the policy of the thread, and the node of its processor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Toucher {
    pub policy: Policy,
    pub node: u32,
}

/// What the page spans of a process follow from: they are the same while it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PageView {
    generation: u64,
    version: u64,
    who: Toucher,
}

impl PageView {
    /// Whether the views differ at most in who looks: in the policy and the node of the thread.
    #[must_use]
    pub fn is_of_the_same_time(&self, other: &PageView) -> bool {
        (self.generation, self.version) == (other.generation, other.version)
    }
}

/// The pages of a process.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Pages {
    plan: Plan,
    /// Ranges with other pages than their segments.
    own: RangeMap<Own>,
    sites: Sites,
    /// Policies of ranges.
    policies: RangeMap<Policy>,
    resident: RangeMap<Resident>,
    usage: Usage,
    work: MemoryWork,
    /// Bytes given back by the program and kept for it (`XOS_MMM_L_ARENA_FREE=2`).
    kept_bytes: u64,
    /// Bytes of memory that the machine has.
    memory_bytes: u64,
    /// How often the program has asked for pages to be moved.
    moves: u32,
    version: u64,
    /// How often another thread came to run, with another policy or where its policy has other effects.
    toucher_changes: u64,
}

impl Pages {
    /// Of a process without memory, whose program has this environment.
    pub(crate) fn new(sizes: &PageSizes, environment: &[Vec<u8>], memory_bytes: u64) -> Pages {
        Pages {
            plan: Plan { sizes: sizes.clone(), library: Library::of(environment) },
            own: RangeMap::default(),
            sites: Sites::default(),
            policies: RangeMap::default(),
            resident: RangeMap::default(),
            usage: Usage::default(),
            work: MemoryWork::default(),
            kept_bytes: 0,
            memory_bytes,
            moves: 0,
            version: 0,
            toucher_changes: 0,
        }
    }

    /// The program that has just been loaded into `mem` starts: segments to be prepaged are taken. What the system
    /// does until the program's first instruction is not counted as work.
    pub(crate) fn start(&mut self, mem: &mut Memory, who: Toucher) {
        let regions: Vec<Region> = mem.regions().copied().collect();
        for region in &regions {
            self.mapped(region, who);
        }
        self.touched(mem, who);
        self.work = MemoryWork::default();
    }

    /// Another program, with this environment, takes the place of the one that ran.
    pub(crate) fn restart(&mut self, sizes: &PageSizes, environment: &[Vec<u8>]) {
        self.note_use();
        let fresh = Pages::new(sizes, environment, self.memory_bytes);
        let (usage, version) = (std::mem::take(&mut self.usage), self.version + 1);
        let toucher_changes = self.toucher_changes;
        let sites = Sites { noted_from: self.sites.noted_from, ..Sites::default() };
        *self = Pages { usage, version, toucher_changes, sites, work: self.work, moves: self.moves, ..fresh };
    }

    /// What a child starts with: the same pages (`shares`), or none yet.
    pub(crate) fn fork(&self, shares: bool) -> Pages {
        let fork = Pages { work: MemoryWork::default(), usage: Usage::default(), kept_bytes: 0, ..self.clone() };
        let (policies, resident, own) = (RangeMap::default(), RangeMap::default(), RangeMap::default());
        if shares { fork } else { Pages { policies, resident, own, ..fork } }
    }

    /// A number that changes when [`Pages::spans`] may.
    pub(crate) fn version(&self) -> u64 {
        self.version + self.toucher_changes
    }

    /// What [`Pages::spans`] of `mem` follow from for `who`.
    pub(crate) fn view(&self, mem: &Memory, who: Toucher) -> PageView {
        PageView { generation: mem.generation(), version: self.version, who }
    }

    /// `who` runs now, with another policy or elsewhere than `before`.
    pub(crate) fn toucher_changed(&mut self, before: Toucher, who: Toucher) {
        let mut policies = self.policies.iter().map(|(_, policy)| policy).chain([who.policy]);
        let matters = before.policy != who.policy || policies.any(Policy::depends_on_node);
        self.toucher_changes += u64::from(matters);
    }

    /// Bytes of the pages of a segment.
    pub(crate) fn page_bytes(&self, segment: Segment) -> u64 {
        self.plan.page_bytes(segment)
    }

    /// Where the heap starts behind a program that ends at `end`: on a page of its own.
    pub(crate) fn heap_start(&self, end: u64) -> u64 {
        end.next_multiple_of(self.page_bytes(Segment::Heap).max(PAGE))
    }

    /// On what a mapping of `len` bytes, with pages of its own or those of its segment, starts: on a page, if it fills
    /// one. Transparent huge pages lie where they fit.
    pub(crate) fn alignment(&self, segment: Segment, own: Option<MappingPages>, len: u64) -> u64 {
        let bytes = match own {
            None => self.page_bytes(segment),
            Some(MappingPages::Size(bytes)) => bytes,
            Some(MappingPages::Transparent) => self.plan.sizes.normal,
        };
        if len >= bytes { bytes.max(PAGE) } else { PAGE }
    }

    /// What a reader of results should know of the environment.
    pub(crate) fn notes(&self) -> &[String] {
        &self.plan.library.notes
    }

    /// Takes what was done since the last call.
    pub(crate) fn take_work(&mut self) -> MemoryWork {
        std::mem::take(&mut self.work)
    }

    /// Whether anything was done since then.
    pub(crate) fn has_work(&self) -> bool {
        self.work != MemoryWork::default()
    }

    // ---- what happens to memory -----------------------------------------------------------------

    /// A region was mapped, or a reserved one became writable: if its segment is prepaged, its pages are taken now.
    pub(crate) fn mapped(&mut self, region: &Region, who: Toucher) {
        self.version += 1;
        if !self.plan.library.prepages(region.segment) || !region.prot.write {
            return;
        }
        for (range, Own { shift, .. }) in self.parts(region).into_iter().filter(|(_, own)| !own.on_demand) {
            for (range, policy) in self.by_policy(range, who) {
                // What does not fit is left to be taken on demand.
                if self.resident_bytes() + (range.end - range.start) > self.memory_bytes {
                    return;
                }
                let placement = match policy.placement(who.node) {
                    Placement::FirstTouch => Placement::Node(who.node),
                    other => other,
                };
                let resident = Resident { segment: region.segment, shift, placement, placed: true, moved: 0 };
                self.take(range, resident);
            }
        }
    }

    /// Pages of `[start, end)` have been given back.
    pub(crate) fn unmapped(&mut self, range: Range<u64>) {
        self.discarded(range.clone());
        self.own.remove(range.clone());
        self.sites.of.remove(range.clone());
        self.policies.remove(range);
    }

    /// Pages of a range have been given back, which stays mapped.
    pub(crate) fn discarded(&mut self, range: Range<u64>) {
        self.note_use();
        self.version += 1;
        let keeps = self.plan.library.keeps_memory;
        for (range, resident) in self.resident.within(range.clone()) {
            let bytes = pages(&range, resident.shift) << resident.shift;
            if !resident.segment.is_anonymous() {
                continue;
            }
            if keeps {
                self.kept_bytes += bytes;
            } else {
                self.work.freed_bytes += bytes;
            }
        }
        self.resident.remove(range);
    }

    /// Memory was moved to other addresses, with its pages.
    pub(crate) fn moved(&mut self, from: u64, len: u64, to: u64) {
        self.version += 1;
        self.policies.move_range(from, len, to);
        self.own.move_range(from, len, to);
        self.sites.of.move_range(from, len, to);
        self.resident.move_range(from, len, to);
    }

    /// Takes over which pages were touched first since the last call, all by `who`.
    pub(crate) fn touched(&mut self, mem: &mut Memory, who: Toucher) {
        for page in mem.take_fresh() {
            let Some(&region) = mem.region_at(page) else { continue };
            let parts = self.parts(&region);
            let part = parts.into_iter().find(|(part, _)| part.contains(&page));
            let Some((part, Own { shift, .. })) = part else { continue };
            let bytes = (1u64 << shift).max(PAGE);
            let start = page / bytes * bytes;
            let range = start.max(part.start)..(start + bytes).min(part.end);
            let policy = self.policies.at(page).unwrap_or(who.policy);
            let placement = Placement::Node(policy.placement(who.node).node(page, shift, who.node));
            let taken =
                self.take(range, Resident { segment: region.segment, shift, placement, placed: false, moved: 0 });
            self.work.faults += taken;
        }
    }

    /// Makes what is not yet resident of a range resident; the number of pages that had to be cleared for it.
    fn take(&mut self, range: Range<u64>, resident: Resident) -> u64 {
        let mut taken = 0;
        for gap in self.resident.gaps(range) {
            taken += self.new_pages(&gap, resident.shift);
            self.resident.set(gap, resident);
        }
        self.usage.grown();
        if !resident.segment.is_anonymous() {
            return 0;
        }
        let bytes = taken << resident.shift;
        let kept = bytes.min(self.kept_bytes);
        self.kept_bytes -= kept;
        self.work.cleared_bytes += bytes - kept;
        taken
    }

    /// The pages of a range of which no other part is resident.
    fn new_pages(&self, range: &Range<u64>, shift: u32) -> u64 {
        let (start, end) = (range.start >> shift << shift, range.end.next_multiple_of(1 << shift));
        let is_there = |range: Range<u64>| self.resident.within(range).any(|(_, r)| r.shift == shift);
        let first = is_there(start..range.start);
        let last = is_there(range.end..end) && !(first && end - start == 1 << shift);
        pages(range, shift) - u64::from(first) - u64::from(last)
    }

    // ---- policies ---------------------------------------------------------------------------------

    /// The policy of an address, if it has one of its own.
    pub(crate) fn policy_at(&self, address: u64) -> Option<Policy> {
        self.policies.at(address)
    }

    /// Gives a range a policy; [`Policy::default`] takes it away.
    pub(crate) fn set_policy(&mut self, range: Range<u64>, policy: Policy) {
        self.version += 1;
        if policy == Policy::default() {
            self.policies.remove(range);
        } else {
            self.policies.set(range, policy);
        }
    }

    /// Whether all resident pages of a range are on nodes that the policy permits.
    pub(crate) fn obeys(&self, range: Range<u64>, policy: Policy) -> bool {
        let nodes =
            |(range, resident): (Range<u64>, Resident)| usage::nodes(&range, resident.shift, resident.placement);
        self.resident.within(range).flat_map(nodes).all(|(node, _)| policy.permits(node))
    }

    /// The program asks for pages to be moved: all that follow belong to one move.
    pub(crate) fn begin_move(&mut self) {
        self.moves += 1;
    }

    /// Moves the resident pages that a range reaches into: `to` says where, from a page's address, log2 of its size and
    /// its node.
    pub(crate) fn migrate(&mut self, range: Range<u64>, to: impl Fn(u64, u32, u32) -> u32) {
        let shift = |address| self.resident.at(address).map_or(0, |resident| resident.shift);
        let (first, last) = (shift(range.start), shift(range.end - 1));
        let whole = range.start >> first << first..range.end.next_multiple_of(1 << last);
        let runs: Vec<_> = self.resident.within(whole).collect();
        let (moved, mut last) = (self.moves, None);
        for (run, resident) in runs {
            let bytes = (1u64 << resident.shift).max(PAGE);
            let mut at = run.start;
            while at < run.end {
                let end = (at / bytes * bytes + bytes).min(run.end);
                let node = resident.placement.node(at, resident.shift, 0);
                let new = to(at, resident.shift, node);
                if new != node {
                    self.version += 1;
                    let placement = Placement::Node(new);
                    self.resident.set(at..end, Resident { placement, placed: true, moved, ..resident });
                    // Two runs may share a page.
                    if last.replace(at / bytes) != Some(at / bytes) {
                        self.work.moved += 1;
                        self.work.moved_bytes += bytes;
                    }
                }
                at = end;
            }
        }
    }

    /// The node of a resident page.
    pub(crate) fn node_at(&self, address: u64) -> Option<u32> {
        let resident = self.resident.at(address)?;
        Some(resident.placement.node(address, resident.shift, 0))
    }

    /// The parts of a range with one policy each, that of the thread where there is no other.
    fn by_policy(&self, range: Range<u64>, who: Toucher) -> Vec<(Range<u64>, Policy)> {
        let mut parts: Vec<_> = self.policies.within(range.clone()).collect();
        parts.extend(self.policies.gaps(range).into_iter().map(|gap| (gap, who.policy)));
        parts.sort_unstable_by_key(|(range, _)| range.start);
        parts
    }

    // ---- what others want to know -----------------------------------------------------------------

    /// The address space as pages, lowest address first: where those are that a first touch did not place, and where
    /// all others come to be when `who` touches them.
    pub(crate) fn spans(&self, mem: &Memory, who: Toucher) -> Vec<PageSpan> {
        let mut spans: Vec<PageSpan> = Vec::new();
        for region in mem.regions() {
            for (part, Own { shift, .. }) in self.parts(region) {
                let mut placed = RangeMap::default();
                for (range, policy) in self.by_policy(part.clone(), who) {
                    placed.set(range, (policy.placement(who.node), 0));
                }
                for (range, resident) in self.resident.within(part).filter(|(_, resident)| resident.placed) {
                    placed.set(range, (resident.placement, resident.moved));
                }
                let span = |(range, (placement, moved))| PageSpan { range, shift, placement, moved };
                spans.extend(placed.iter().map(span));
            }
        }
        spans
    }

    /// Bytes of resident pages.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.resident.iter().map(|(range, r)| pages(&range, r.shift) << r.shift).sum()
    }

    /// What of a range is resident: pages by node, and bytes.
    pub(crate) fn resident_in(&self, range: Range<u64>) -> (BTreeMap<u32, u64>, u64) {
        let (mut counts, mut bytes) = (BTreeMap::new(), 0);
        for (run, resident) in self.resident.within(range) {
            bytes += run.end - run.start;
            for (node, pages) in usage::nodes(&run, resident.shift, resident.placement) {
                *counts.entry(node).or_default() += pages;
            }
        }
        (counts, bytes)
    }

    /// Bytes of the resident pages on a node, and how many of them have `size` bytes.
    pub(crate) fn on_node(&self, node: u32, size: u64) -> (u64, u64) {
        let (mut bytes, mut of_size) = (0, 0);
        for (range, resident) in self.resident.iter() {
            let nodes = usage::nodes(&range, resident.shift, resident.placement);
            let pages: u64 = nodes.iter().filter(|(n, _)| *n == node).map(|(_, pages)| pages).sum();
            bytes += pages << resident.shift;
            of_size += if 1 << resident.shift == size { pages } else { 0 };
        }
        (bytes, of_size)
    }

    /// Resident pages of one size.
    pub(crate) fn resident_of_size(&self, bytes: u64) -> u64 {
        let of_size = |&(_, resident): &(Range<u64>, Resident)| 1u64 << resident.shift == bytes;
        self.resident.iter().filter(of_size).map(|(range, resident)| pages(&range, resident.shift)).sum()
    }

    /// Takes over how much memory is in use, before some of it is given back.
    pub(crate) fn note_use(&mut self) {
        let runs = self.resident.iter().map(|(range, r)| (range, r.segment, r.shift, r.placement));
        self.usage.note(runs);
    }

    /// The most pages that were in use, by segment, size and node.
    pub(crate) fn page_use(&mut self) -> Vec<PageUse> {
        self.note_use();
        self.usage.list()
    }
}

/// One entry for each segment, size and node.
pub(crate) fn add_up(all: Vec<PageUse>) -> Vec<PageUse> {
    let mut sums: BTreeMap<(Segment, u64, u32), PageUse> = BTreeMap::new();
    for part in all {
        let key = (part.segment, part.page_bytes, part.node);
        let sum = sums.entry(key).or_insert(PageUse { pages: 0, bytes: 0, ..part });
        sum.pages += part.pages;
        sum.bytes += part.bytes;
    }
    sums.into_values().collect()
}

/// The number of pages that a range reaches into.
fn pages(range: &Range<u64>, shift: u32) -> u64 {
    if range.is_empty() { 0 } else { ((range.end - 1) >> shift) - (range.start >> shift) + 1 }
}
