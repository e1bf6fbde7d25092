//! Pages of a process: their sizes, when they are allocated, and on which memory nodes.
//!
//! `fxscope_guestmem::Memory` backs what a program touches in fixed units and knows nothing of this. This module does what the
//! modelled system would do: [`Plan`] determines the page size of each segment and which segments are *prepaged*, that is,
//! allocated as a whole when they are mapped; all others are allocated page by page on first touch. Which pages are resident, and
//! where, follows from that, from the memory policies, and from the first touches that `Memory` records.

mod bounds;
mod collapse;
mod folios;
mod khugepaged;
mod library;
mod malloc;
mod moves;
mod own;
mod placed;
mod policy;
mod process;
mod range_map;
mod shared;
mod site;
mod thp;
mod tiering;
mod usage;

use std::collections::BTreeMap;
use std::ops::Range;

use fxscope_guestmem::{Memory, Segment};
use fxscope_guestmem::{PAGE, Region, SharedBy};

pub use folios::FolioCounts;
pub use own::MappingPages;
pub use policy::{NodeMask, Placement, Weights, list, mask, parse_nodes};
pub use process::Backing;
pub use site::{Site, SiteNode, SitePages};
pub use thp::{KhugepagedSettings, Thp, When, WhenSize};
pub use tiering::TieredPage;
pub use usage::PageUse;

pub(crate) use khugepaged::Khugepaged;
pub(crate) use malloc::translated;
pub(crate) use placed::FastMemory;
pub(crate) use policy::{Policy, remapped};
pub(crate) use usage::add_up;

use serde::{Deserialize, Serialize};

use bounds::bounded;
use folios::Folios;
use library::{Library, PageType};
use own::{Kind, Own};
use range_map::RangeMap;
use shared::{apart, shared_by};
use site::Sites;
use usage::Usage;

/// Page sizes of segments in bytes: powers of two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSizes {
    /// Pages without the large-page library.
    pub normal: u64,
    /// Pages that the library allocates.
    pub large: u64,
    /// The size of each segment unless the program's environment sets another; `normal` for missing ones.
    pub segments: BTreeMap<Segment, u64>,
    /// Segments whose size the environment does not change.
    pub fixed: Vec<Segment>,
    /// Which transparent huge pages the system uses.
    pub thp: Thp,
}

impl PageSizes {
    /// Returns the same page size for everything.
    #[must_use]
    pub fn all(bytes: u64) -> PageSizes {
        PageSizes { normal: bytes, large: bytes, segments: BTreeMap::new(), fixed: Vec::new(), thp: Thp::default() }
    }

    /// Returns the size of a transparent huge page: the span of the first table level that can hold one.
    #[must_use]
    pub fn transparent(&self) -> u64 {
        self.normal * (self.normal / 8)
    }
}

/// The nodes for a program's memory, as set up by numactl(8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MemoryPolicy {
    /// On the node of the processor that touches it first.
    #[default]
    Local,
    /// On these nodes only.
    Bind(NodeMask),
    /// On these nodes in turn.
    Interleave(NodeMask, Weights),
}

impl From<MemoryPolicy> for Policy {
    fn from(policy: MemoryPolicy) -> Policy {
        match policy {
            MemoryPolicy::Local => Policy::default(),
            MemoryPolicy::Bind(nodes) => Policy::bind(nodes),
            MemoryPolicy::Interleave(nodes, weights) => Policy::interleave(nodes, weights),
        }
    }
}

/// A range of the address space with one page size and one placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageSpan {
    /// Its addresses.
    pub range: Range<u64>,
    /// The addresses that its pages translate at most: from the end of the range before it that has other pages to the start of the next
    /// one, since every segment has pages of its own.
    pub within: Range<u64>,
    /// What it holds.
    pub segment: Segment,
    /// Log2 of the page size.
    pub shift: u32,
    /// Where its pages are, or will be.
    pub placement: Placement,
    /// Increases whenever some of its pages are moved to another node.
    pub moved: u32,
    /// The object whose pages other ranges have, too.
    pub shared: Option<SharedBy>,
}

/// Work of the system on memory, which takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MemoryWork {
    /// Pages allocated on touch.
    pub faults: u64,
    /// Bytes of pages cleared for the program.
    pub cleared_bytes: u64,
    /// Bytes of released pages.
    pub freed_bytes: u64,
    /// Whether pages were unmapped, not just released as by `madvise`: Linux locks the address space meanwhile.
    pub unmapped: bool,
    /// Pages moved to other nodes.
    pub moved: u64,
    /// Their bytes.
    pub moved_bytes: u64,
    /// Ranges of pages that became one huge page, whose bytes are among those moved and cleared.
    pub collapsed: u64,
    /// Bytes copied between the program and sockets, pipes and other processes.
    pub copied_bytes: u64,
}

/// How pages of a process are chosen: from the machine and the program's environment, once per program.
#[derive(Clone, Serialize, Deserialize)]
struct Plan {
    sizes: PageSizes,
    library: Library,
}

impl Plan {
    /// Returns the page size of a segment in bytes.
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
}

/// Allocated pages.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Resident {
    segment: Segment,
    shift: u32,
    placement: Placement,
    /// Whether they were placed other than by a first touch, so that the memory model cannot know where they are.
    placed: bool,
    /// Whether they are transparent huge pages.
    folio: bool,
    /// The number of the last move that included them, counted from 1; 0: none.
    moved: u32,
}

/// The policy of the thread that maps or touches memory, and the node of its processor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Toucher {
    pub policy: Policy,
    pub node: u32,
}

/// A state from which page spans follow: while it is equal, so are they.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PageView {
    generation: u64,
    version: u64,
    who: Toucher,
}

impl PageView {
    /// Returns whether the views differ at most in the thread's policy and node.
    #[must_use]
    pub fn is_of_the_same_time(&self, other: &PageView) -> bool {
        (self.generation, self.version) == (other.generation, other.version)
    }
}

/// The pages of a process.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Pages {
    plan: Plan,
    /// Ranges whose pages differ from those of their segments.
    own: RangeMap<Own>,
    folios: Folios,
    sites: Sites,
    /// Policies of ranges.
    policies: RangeMap<Policy>,
    resident: RangeMap<Resident>,
    usage: Usage,
    work: MemoryWork,
    /// Bytes that the program released but that are kept for it (`XOS_MMM_L_ARENA_FREE=2`).
    kept_bytes: u64,
    /// Memory of the machine in bytes.
    memory_bytes: u64,
    /// The part of it that is filled before memory tiers; `None`: what the nodes have.
    fast: Option<FastMemory>,
    /// How often the program has requested moves of pages.
    moves: u32,
    version: u64,
    /// How often a thread with another policy, or on a node where its policy has other effects, began to run.
    toucher_changes: u64,
}

impl Pages {
    /// Returns the pages of a process without memory, whose program has this environment.
    pub(crate) fn new(sizes: &PageSizes, environment: &[Vec<u8>], memory_bytes: u64) -> Pages {
        Pages {
            plan: Plan { sizes: sizes.clone(), library: Library::of(environment) },
            own: RangeMap::default(),
            folios: Folios::default(),
            sites: Sites::default(),
            policies: RangeMap::default(),
            resident: RangeMap::default(),
            usage: Usage::default(),
            work: MemoryWork::default(),
            kept_bytes: 0,
            memory_bytes,
            fast: None,
            moves: 0,
            version: 0,
            toucher_changes: 0,
        }
    }

    /// Limits the memory that is filled before memory tiers.
    pub(crate) fn limit_fast_memory(&mut self, fast: Option<FastMemory>) {
        self.fast = fast;
    }

    /// Starts the program just loaded into `mem`: allocates prepaged segments. What the system does before the program's first
    /// instruction is not counted as work.
    pub(crate) fn start(&mut self, mem: &mut Memory, who: Toucher) {
        let regions: Vec<Region> = mem.regions().copied().collect();
        for region in &regions {
            self.mapped(mem, region, who);
        }
        self.touched(mem, who);
        self.work = MemoryWork::default();
    }

    /// Replaces the running program by another one with this environment.
    pub(crate) fn restart(&mut self, sizes: &PageSizes, environment: &[Vec<u8>]) {
        self.note_use();
        let fresh = Pages::new(sizes, environment, self.memory_bytes);
        let (usage, version) = (std::mem::take(&mut self.usage), self.version + 1);
        let toucher_changes = self.toucher_changes;
        let sites = Sites { noted_from: self.sites.noted_from, ..Sites::default() };
        let (fast, folios) = (self.fast.take(), std::mem::take(&mut self.folios).restarted());
        *self =
            Pages { usage, version, toucher_changes, sites, fast, folios, work: self.work, moves: self.moves, ..fresh };
    }

    /// Returns the initial pages of a child: the same pages (`shares`), or none.
    pub(crate) fn fork(&self, shares: bool) -> Pages {
        let folios = self.folios.fork(shares);
        let fork =
            Pages { work: MemoryWork::default(), usage: Usage::default(), kept_bytes: 0, folios, ..self.clone() };
        let (policies, resident, own) = (RangeMap::default(), RangeMap::default(), RangeMap::default());
        if shares { fork } else { Pages { policies, resident, own, ..fork } }
    }

    /// Returns a number that changes whenever [`Pages::spans`] may have changed.
    pub(crate) fn version(&self) -> u64 {
        self.version + self.toucher_changes
    }

    /// Returns the state from which [`Pages::spans`] of `mem` follow for `who`.
    pub(crate) fn view(&self, mem: &Memory, who: Toucher) -> PageView {
        PageView { generation: mem.generation(), version: self.version, who }
    }

    /// Records that `who` runs now instead of `before`, with another policy or elsewhere.
    pub(crate) fn toucher_changed(&mut self, before: Toucher, who: Toucher) {
        let mut policies = self.policies.iter().map(|(_, policy)| policy).chain([who.policy]);
        let matters = before.policy != who.policy || policies.any(Policy::depends_on_node);
        self.toucher_changes += u64::from(matters);
    }

    /// Returns the page size of a segment in bytes.
    pub(crate) fn page_bytes(&self, segment: Segment) -> u64 {
        self.plan.page_bytes(segment)
    }

    /// Returns the start of the heap of a program that ends at `end`: a separate page.
    pub(crate) fn heap_start(&self, end: u64) -> u64 {
        end.next_multiple_of(self.page_bytes(Segment::Heap).max(PAGE))
    }

    /// Returns the alignment of a mapping of `len` bytes, with its own pages or those of its segment: a page, if it fills one.
    /// Transparent huge pages are used where they fit.
    pub(crate) fn alignment(&self, segment: Segment, own: Option<MappingPages>, len: u64) -> u64 {
        let bytes = match own {
            None => self.page_bytes(segment),
            Some(MappingPages::Size(bytes)) => bytes,
            Some(MappingPages::Transparent) => self.plan.sizes.normal,
        };
        if len >= bytes { bytes.max(PAGE) } else { PAGE }
    }

    /// Returns what a reader of results should know about the environment.
    pub(crate) fn notes(&self) -> &[String] {
        &self.plan.library.notes
    }

    /// Records that the system has copied bytes for the process.
    pub(crate) fn copied(&mut self, bytes: u64) {
        self.work.copied_bytes += bytes;
    }

    /// Takes the work done since the last call.
    pub(crate) fn take_work(&mut self) -> MemoryWork {
        std::mem::take(&mut self.work)
    }

    /// Returns whether there is any.
    pub(crate) fn has_work(&self) -> bool {
        self.work != MemoryWork::default()
    }

    // ---- changes of memory -----------------------------------------------------------------------

    /// Records that a region was mapped, or that a reserved one became writable: if its segment is prepaged, its pages are
    /// allocated now.
    pub(crate) fn mapped(&mut self, mem: &Memory, region: &Region, who: Toucher) {
        self.version += 1;
        if !self.plan.library.prepages(region.segment) || !region.prot.write {
            return;
        }
        let tiles = self.tiles(mem.regions());
        for (range, kind) in self.parts(region, &tiles).into_iter().filter(|(_, kind)| !kind.on_demand) {
            let shift = kind.shift;
            // A folio may extend over several regions of the mapping.
            let whole = (range.start >> shift << shift)..range.end.next_multiple_of(1 << shift);
            for (range, policy) in self.by_policy(if kind.folio { whole } else { range }, who) {
                // What does not fit is left to be allocated on demand.
                if self.resident_bytes() + (range.end - range.start) > self.memory_bytes {
                    return;
                }
                for (part, placement) in self.prepaged(&range, shift, policy, who) {
                    let (segment, folio) = (region.segment, kind.folio);
                    let taken = self.take(part, Resident { segment, shift, placement, placed: true, folio, moved: 0 });
                    self.allocated(kind, taken);
                }
            }
        }
    }

    /// Records that `[start, end)` has been unmapped.
    pub(crate) fn unmapped(&mut self, range: Range<u64>) {
        let freed = self.work.freed_bytes;
        self.discarded(range.clone());
        self.work.unmapped |= self.work.freed_bytes > freed;
        self.own.remove(range.clone());
        self.folios.advice.remove(range.clone());
        self.sites.of.remove(range.clone());
        self.policies.remove(range);
    }

    /// Records that the pages of a range have been released; it stays mapped.
    pub(crate) fn discarded(&mut self, range: Range<u64>) {
        self.note_use();
        self.version += 1;
        self.split_folio(range.start);
        self.split_folio(range.end);
        let keeps = self.plan.library.keeps_memory;
        for (range, resident) in self.resident.within(range.clone()).filter(|(_, of)| of.segment.is_anonymous()) {
            let bytes = pages(&range, resident.shift) << resident.shift;
            if keeps {
                self.kept_bytes += bytes;
            } else {
                self.work.freed_bytes += bytes;
            }
        }
        self.resident.remove(range);
    }

    /// Records that memory was moved to other addresses, with its pages.
    pub(crate) fn moved(&mut self, from: u64, len: u64, to: u64) {
        self.version += 1;
        self.split_before_move(from, len, to);
        self.policies.move_range(from, len, to);
        self.own.move_range(from, len, to);
        self.folios.advice.move_range(from, len, to);
        self.sites.of.move_range(from, len, to);
        self.resident.move_range(from, len, to);
    }

    /// Records the pages that were touched first since the last call, all by `who`. Returns how many page faults that took.
    pub(crate) fn touched(&mut self, mem: &mut Memory, who: Toucher) -> u64 {
        let (mut faults, tiles) = (0, self.tiles(mem.regions()));
        for page in mem.take_fresh() {
            let Some(&region) = mem.region_at(page) else { continue };
            let parts = self.parts(&region, &tiles);
            let part = parts.into_iter().find(|(part, _)| part.contains(&page));
            let Some((part, kind)) = part else { continue };
            let Kind { shift, folio, .. } = kind;
            let bytes = (1u64 << shift).max(PAGE);
            let start = page / bytes * bytes;
            let inside = start.max(part.start)..(start + bytes).min(part.end);
            let range = if folio { start..start + bytes } else { inside };
            let policy = self.policies.at(page).unwrap_or(who.policy);
            let is_new = self.resident.at(page).is_none();
            let spilt = if is_new { self.spills(policy, bytes) } else { None };
            let in_turn = policy.placement(who.node);
            let touched = Placement::Node(in_turn.node(page, shift, who.node));
            // A folio of several entries is placed as a whole by the first touch of one of them.
            let has_entries = folio && self.entry_shift(kind) < shift;
            let placed = spilt.is_some() || has_entries;
            let elsewhere = spilt.is_some() || has_entries && matches!(in_turn, Placement::Interleave(..));
            // The memory model may have taken a first touch for the place of the page, and learns of another one as of a move.
            let moved = if elsewhere { self.moves.max(1) } else { 0 };
            self.version += u64::from(placed);
            let placement = spilt.unwrap_or(touched);
            let taken = self.take(range, Resident { segment: region.segment, shift, placement, placed, folio, moved });
            self.allocated(kind, taken);
            faults += taken;
        }
        self.work.faults += faults;
        faults
    }

    /// Makes the rest of a range resident; returns the number of pages that had to be cleared.
    fn take(&mut self, range: Range<u64>, resident: Resident) -> u64 {
        let mut taken = 0;
        for gap in self.resident.gaps(range) {
            taken += self.new_pages(&gap, resident);
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

    /// Returns the number of pages of a range of which no part is resident. Each segment has pages of its own.
    fn new_pages(&self, range: &Range<u64>, Resident { segment, shift, .. }: Resident) -> u64 {
        let (start, end) = (range.start >> shift << shift, range.end.next_multiple_of(1 << shift));
        let is_there =
            |range: Range<u64>| self.resident.within(range).any(|(_, r)| (r.segment, r.shift) == (segment, shift));
        let first = is_there(start..range.start);
        let last = is_there(range.end..end) && !(first && end - start == 1 << shift);
        pages(range, shift) - u64::from(first) - u64::from(last)
    }

    // ---- policies ---------------------------------------------------------------------------------

    /// Returns the policy of an address, if it has one.
    pub(crate) fn policy_at(&self, address: u64) -> Option<Policy> {
        self.policies.at(address)
    }

    /// Sets the policy of a range; [`Policy::default`] removes it.
    pub(crate) fn set_policy(&mut self, range: Range<u64>, policy: Policy) {
        self.version += 1;
        if policy == Policy::default() {
            self.policies.remove(range);
        } else {
            self.policies.set(range, policy);
        }
    }

    /// Returns the parts of a range with one policy each; the thread's if there is no other.
    fn by_policy(&self, range: Range<u64>, who: Toucher) -> Vec<(Range<u64>, Policy)> {
        let mut parts: Vec<_> = self.policies.within(range.clone()).collect();
        parts.extend(self.policies.gaps(range).into_iter().map(|gap| (gap, who.policy)));
        parts.sort_unstable_by_key(|(range, _)| range.start);
        parts
    }

    // ---- queries ----------------------------------------------------------------------------------

    /// Returns the address space as pages, lowest address first: where those are that a first touch did not place, and where all
    /// others will be when `who` touches them.
    pub(crate) fn spans(&self, mem: &Memory, who: Toucher) -> Vec<PageSpan> {
        let (mut spans, tiles): (Vec<PageSpan>, _) = (Vec::new(), self.tiles(mem.regions()));
        for region in mem.regions() {
            let shared = shared_by(mem, region);
            for (part, kind) in self.parts(region, &tiles) {
                let shift = self.entry_shift(kind);
                let mut placed = RangeMap::default();
                for (range, policy) in self.by_policy(part.clone(), who) {
                    placed.set(range, (policy.placement(who.node), 0));
                }
                for (range, resident) in self.resident.within(part).filter(|(_, resident)| resident.placed) {
                    placed.set(range, (resident.placement, resident.moved));
                }
                let span = |(range, (placement, moved))| {
                    let (within, segment) = (0..u64::MAX, region.segment);
                    PageSpan { range, within, segment, shift, placement, moved, shared }
                };
                spans.extend(placed.iter().map(span));
            }
        }
        let shared: Vec<_> =
            mem.regions().filter(|region| region.shared).map(|region| region.start..region.end).collect();
        bounded(apart(spans, &shared, self.plan.sizes.normal.trailing_zeros()))
    }

    /// Returns the bytes of resident pages.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.resident.iter().map(|(range, r)| pages(&range, r.shift) << r.shift).sum()
    }

    /// Returns the resident part of a range: pages by node, of which transparent huge ones have several, and bytes.
    pub(crate) fn resident_in(&self, range: Range<u64>) -> (BTreeMap<u32, u64>, u64) {
        let (mut counts, mut bytes) = (BTreeMap::new(), 0);
        let normal = self.plan.sizes.normal_shift();
        for (run, resident) in self.resident.within(range) {
            bytes += run.end - run.start;
            let shift = if resident.folio { normal } else { resident.shift };
            for (node, pages) in usage::nodes(&run, shift, resident.placement) {
                *counts.entry(node).or_default() += pages;
            }
        }
        (counts, bytes)
    }

    /// Returns the bytes of resident pages on a node, and how many of the pages that are not transparent have `size` bytes.
    pub(crate) fn on_node(&self, node: u32, size: u64) -> (u64, u64) {
        let (mut bytes, mut of_size) = (0, 0);
        for (range, resident) in self.resident.iter() {
            let nodes = usage::nodes(&range, resident.shift, resident.placement);
            let pages: u64 = nodes.iter().filter(|(n, _)| *n == node).map(|(_, pages)| pages).sum();
            bytes += pages << resident.shift;
            of_size += if 1 << resident.shift == size && !resident.folio { pages } else { 0 };
        }
        (bytes, of_size)
    }

    /// Returns the number of resident pages of one size, without transparent ones.
    pub(crate) fn resident_of_size(&self, bytes: u64) -> u64 {
        let of_size = |&(_, resident): &(Range<u64>, Resident)| 1u64 << resident.shift == bytes && !resident.folio;
        self.resident.iter().filter(of_size).map(|(range, resident)| pages(&range, resident.shift)).sum()
    }

    /// Records how much memory is in use, before some of it is released.
    pub(crate) fn note_use(&mut self) {
        let runs = self.resident.iter().map(|(range, r)| (range, r.segment, r.shift, r.placement));
        self.usage.note(runs);
    }

    /// Returns the maximum number of pages in use, by segment, size and node.
    pub(crate) fn page_use(&mut self) -> Vec<PageUse> {
        self.note_use();
        self.usage.list()
    }
}

/// Returns the number of pages that overlap a range.
fn pages(range: &Range<u64>, shift: u32) -> u64 {
    if range.is_empty() { 0 } else { ((range.end - 1) >> shift) - (range.start >> shift) + 1 }
}
