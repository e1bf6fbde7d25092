//! Pages: from the machine's description to the kernel's view, from there to the timing model, and the cost of the
//! kernel's work on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use fxscope_calendar::Cycle;
use fxscope_guestmem::Segment;
use fxscope_linux::Guest;
use fxscope_linux::pages::{
    self, KhugepagedSettings, MemoryWork, NodeMask, PageSizes, PageView, Thp, Weights, When, WhenSize,
};
use fxscope_machine::spec::{FolioSetting, HugePageSetting};
use fxscope_machine::{Spec, spec};
use fxscope_memory::{Bounds, Hierarchy, PageRange, Placement, SharedPages, Turns};

/// Returns the page sizes of a machine. The environment of a program cannot change the sizes of segments that `settings`
/// names.
#[must_use]
pub fn page_sizes(spec: &Spec, settings: &[(String, String)]) -> PageSizes {
    let sizes = &spec.pages;
    let segments = spec::Pages::SEGMENTS.iter().filter_map(|(name, bytes)| Some((named(name)?, bytes(sizes))));
    let fixed = settings.iter().filter_map(|(key, _)| named(key.strip_prefix("pages.")?));
    PageSizes {
        normal: sizes.normal,
        large: sizes.large,
        // Files are mapped as code is.
        segments: segments.chain([(Segment::File, sizes.text)]).collect(),
        fixed: fixed.collect(),
        thp: transparent_huge_pages(spec),
    }
}

/// Returns which transparent huge pages the system of a machine uses.
fn transparent_huge_pages(spec: &Spec) -> Thp {
    let t = &spec.thp;
    let enabled = match t.enabled {
        HugePageSetting::Always => When::Always,
        HugePageSetting::Madvise => When::Advised,
        HugePageSetting::Never => When::Never,
    };
    let of_size = |setting| match setting {
        FolioSetting::Always => WhenSize::Always,
        FolioSetting::Inherit => WhenSize::Inherited,
        FolioSetting::Madvise => WhenSize::Advised,
        FolioSetting::Never => WhenSize::Never,
    };
    let granule = spec.tlb.granules.iter().position(|&bytes| bytes == spec.pages.normal);
    let khugepaged = t.khugepaged.then_some(KhugepagedSettings {
        scan_sleep_ns: t.scan_sleep_ns,
        alloc_sleep_ns: t.alloc_sleep_ns,
        pages_to_scan: t.pages_to_scan,
        max_ptes_none: t.max_ptes_none,
        max_ptes_shared: t.max_ptes_shared,
    });
    Thp {
        enabled,
        sizes: t.sizes().map(|(bytes, setting, _)| (bytes, of_size(setting))).collect(),
        group: granule.map_or(0, |granule| spec.pages.normal * spec.tlb.contiguous[granule]),
        khugepaged,
    }
}

fn named(name: &str) -> Option<Segment> {
    Segment::ALL.into_iter().find(|segment| segment.name() == name)
}

/// Returns the turns of nodes that the model numbers from `first_node`.
fn turns(nodes: NodeMask, weights: Weights, first_node: u32) -> Turns {
    let mut turns = Turns::equal(0);
    let places = (0..u64::BITS).filter(|node| nodes >> node & 1 != 0);
    for (index, node) in places.enumerate() {
        if let Some(pages) = node.checked_sub(first_node).and_then(|node| turns.pages.get_mut(node as usize)) {
            *pages = weights.of(index) as u8;
        }
    }
    turns
}

/// Returns the pages of the current process, lowest address first. The model numbers nodes from `first_node`.
#[must_use]
pub(crate) fn page_ranges(guest: &Guest, first_node: u32) -> Vec<PageRange> {
    let placement = |placement| match placement {
        pages::Placement::FirstTouch => Placement::FirstTouch,
        pages::Placement::Node(node) => Placement::Node((node - first_node) as u8),
        pages::Placement::Interleave(nodes, weights) => Placement::Interleave(turns(nodes, weights, first_node)),
    };
    let range = |span: pages::PageSpan| PageRange {
        start: span.range.start,
        end: span.range.end,
        shift: span.shift,
        placement: placement(span.placement),
        moved: span.moved,
        shared: span.shared.map(|shared| SharedPages { set: shared.serial, origin: shared.origin }),
        bounds: Bounds { segment: span.segment as u8, first: span.within.start, last: span.within.end - 1 },
    };
    guest.page_spans().into_iter().map(range).collect()
}

/// The pages of each process when a core last requested them. All cores request the same ones soon after a change.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct KnownPages(BTreeMap<u32, Known>);

/// The pages of one process.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
struct Known {
    /// The current pages for each view that was requested: threads on other nodes or with other policies may see other
    /// placements.
    #[serde(skip)]
    views: Vec<(PageView, Arc<[PageRange]>)>,
    /// The pages that the model received last.
    told: Arc<[PageRange]>,
}

impl Known {
    /// Returns the pages in the view of the current thread. Equal lists are shared.
    fn ranges(&mut self, guest: &Guest, first_node: u32) -> Arc<[PageRange]> {
        let view = guest.page_view();
        if let Some((_, ranges)) = self.views.iter().find(|(known, _)| *known == view) {
            return Arc::clone(ranges);
        }
        self.views.retain(|(known, _)| known.is_of_the_same_time(&view));
        let ranges = page_ranges(guest, first_node);
        let known = self.views.iter().map(|(_, known)| known).chain([&self.told]).find(|known| ***known == ranges[..]);
        let ranges = known.map_or_else(|| ranges.into(), Arc::clone);
        self.views.push((view, Arc::clone(&ranges)));
        ranges
    }
}

impl KnownPages {
    /// Gives the core with `memory` the pages of the current process. The first core after a change frees the
    /// frames of pages that no longer exist. Returns what has changed.
    #[cold]
    pub(crate) fn tell(&mut self, guest: &Guest, spec: &Spec, memory: &mut Hierarchy<'_>) -> PagesChange {
        let pid = guest.pid();
        let known = self.0.entry(pid).or_default();
        let ranges = known.ranges(guest, spec.topology.first_node);
        let before =
            (!Arc::ptr_eq(&known.told, &ranges)).then(|| std::mem::replace(&mut known.told, Arc::clone(&ranges)));
        let gone = match before {
            Some(_) => memory.chip.shared_sets().filter(|&set| !guest.memory().has_object_of(set)).collect(),
            None => Vec::new(),
        };
        let change = PagesChange { pid, before, gone, ranges };
        change.apply(memory);
        change
    }
}

/// The pages of a process, as a core receives them.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct PagesChange {
    pid: u32,
    /// The pages before, if the core is the first one that receives them after a change.
    before: Option<Arc<[PageRange]>>,
    /// Sets of shared pages that no longer exist.
    gone: Vec<u64>,
    ranges: Arc<[PageRange]>,
}

impl PagesChange {
    /// Gives the pages to the core with `memory`, and frees the frames of those that no longer exist.
    pub(crate) fn apply(&self, memory: &mut Hierarchy<'_>) {
        if let Some(before) = &self.before {
            memory.chip.release_pages(self.pid as u16, before, &self.ranges);
            memory.chip.release_sets(|set| !self.gone.contains(&set));
        }
        memory.core.follow_pages(self.pid as u16, Arc::clone(&self.ranges));
    }
}

/// Until when the address space of each process is locked, by process number, on machines whose system locks it
/// (`page_costs.unmap_alone`).
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct AddressSpaceLocks(BTreeMap<u32, AddressSpaceLock>);

/// The lock of one address space (`mmap_lock` in Linux, before 5.8 `mmap_sem`). Threads that allocate pages share it. One
/// that unmaps memory has it alone until the pages are freed.
#[derive(Clone, Copy, Default, serde::Deserialize, serde::Serialize)]
struct AddressSpaceLock {
    /// The cycle in which the last thread that shares it is done.
    shared_until: Cycle,
    /// The cycle in which the last thread that had it alone is done.
    alone_until: Cycle,
}

impl AddressSpaceLocks {
    /// Takes the lock of process `pid` for `work`, which a thread begins at `now`. Returns the cycles until the work is
    /// done, those that the thread waits for others included.
    pub(crate) fn cycles(&mut self, pid: u32, work: MemoryWork, now: Cycle, spec: &Spec) -> Cycle {
        let worked = cycles(work, spec);
        if !spec.page_costs.unmap_alone {
            return worked;
        }
        let lock = self.0.entry(pid).or_default();
        let begin = if work.unmapped { lock.shared_until.max(lock.alone_until) } else { lock.alone_until }.max(now);
        let end = begin + worked;
        let until = if work.unmapped { &mut lock.alone_until } else { &mut lock.shared_until };
        *until = end.max(*until);
        end - now
    }
}

/// Returns the core cycles of the kernel's work on memory.
pub(crate) fn cycles(work: MemoryWork, spec: &Spec) -> Cycle {
    const NS_PER_SECOND: u128 = 1_000_000_000;
    let costs = &spec.page_costs;
    let ns = |bytes: u64, rate: u64| u128::from(bytes) * NS_PER_SECOND / u128::from(rate);
    let ns = u128::from(work.faults + work.moved) * u128::from(costs.fault_ns)
        + u128::from(work.collapsed) * u128::from(costs.shootdown_ns)
        + ns(work.moved_bytes, costs.move_bytes_per_second)
        + ns(work.copied_bytes, spec.assumptions.call_copy_bytes_per_second)
        + ns(work.cleared_bytes, costs.clear_bytes_per_second)
        + ns(work.freed_bytes, costs.free_bytes_per_second);
    (ns * u128::from(spec.clock.core_hz) / NS_PER_SECOND) as Cycle
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_segment_of_the_machine_s_description_is_one_of_an_address_space() {
        for (name, _) in spec::Pages::SEGMENTS {
            assert!(named(name).is_some(), "{name}");
        }
    }

    #[test]
    fn taking_and_giving_back_8_gib_of_large_pages_takes_as_long_as_measured() {
        let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        let bytes = 1024 * (8 << 20);
        let seconds = |work| cycles(work, &spec) as f64 / spec.clock.core_hz as f64;
        let malloc = seconds(MemoryWork { cleared_bytes: bytes, ..MemoryWork::default() });
        let free = seconds(MemoryWork { freed_bytes: bytes, ..MemoryWork::default() });
        // largepage-0058 to 0061.
        assert!((malloc / 0.5018 - 1.0).abs() < 0.01, "{malloc}");
        assert!((free / 0.2602 - 1.0).abs() < 0.01, "{free}");
    }

    #[test]
    fn threads_of_a_process_allocate_pages_at_the_same_time_but_unmap_them_one_after_another() {
        let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        let clear = MemoryWork { cleared_bytes: 8 << 20, ..MemoryWork::default() };
        let discard = MemoryWork { freed_bytes: 8 << 20, ..MemoryWork::default() };
        let unmap = MemoryWork { unmapped: true, ..discard };
        let (clearing, freeing) = (cycles(clear, &spec), cycles(discard, &spec));
        let mut locks = AddressSpaceLocks::default();
        let mut end_of = |pid, work, now| now + locks.cycles(pid, work, now, &spec);
        assert_eq!(
            [end_of(1, clear, 0), end_of(1, clear, 5), end_of(1, discard, 5)],
            [clearing, clearing + 5, freeing + 5]
        );
        // The first waits for those that allocate, the second for the first; allocating waits for both.
        let first = clearing + 5 + freeing;
        assert_eq!([end_of(1, unmap, 10), end_of(1, unmap, 20)], [first, first + freeing]);
        assert_eq!(end_of(1, clear, 30), first + freeing + clearing);
        assert_eq!(end_of(2, unmap, 30), 30 + freeing, "another process");
        let mut spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        spec.tables.page_costs.unmap_alone = false;
        let mut locks = AddressSpaceLocks::default();
        assert_eq!([locks.cycles(1, unmap, 10, &spec), locks.cycles(1, unmap, 20, &spec)], [freeing; 2], "no lock");
    }

    #[test]
    fn a_collapse_copies_the_pages_there_are_clears_the_others_and_removes_translations_once() {
        let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        let (moved_bytes, cleared_bytes) = (300 << 20, 212 << 20);
        let work = MemoryWork { collapsed: 1, moved_bytes, cleared_bytes, ..MemoryWork::default() };
        let costs = &spec.page_costs;
        let [copy_ns, clear_ns] =
            [(moved_bytes, costs.move_bytes_per_second), (cleared_bytes, costs.clear_bytes_per_second)]
                .map(|(bytes, rate)| bytes * 1_000_000_000 / rate);
        let expected = (costs.shootdown_ns + copy_ns + clear_ns) * spec.clock.core_hz / 1_000_000_000;
        assert_eq!(cycles(work, &spec), expected);
    }

    #[test]
    fn a_page_that_is_moved_costs_a_fault_and_a_copy() {
        let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        let work = MemoryWork { moved: 1, moved_bytes: 2 << 20, ..MemoryWork::default() };
        let copy_ns = (2 << 20) * 1_000_000_000 / spec.page_costs.move_bytes_per_second;
        assert_eq!(cycles(work, &spec), (spec.page_costs.fault_ns + copy_ns) * spec.clock.core_hz / 1_000_000_000);
    }
}
