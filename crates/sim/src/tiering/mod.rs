//! Promotion and demotion of pages by heat, as Linux does it with `kernel.numa_balancing = 2` and `demotion_enabled`.
//!
//! A scan of a process makes pages in memory tiers inaccessible. The next access to one of them is a *hint fault*: if it comes soon
//! after the scan, the page is hot, and moves to the node of the core. If that leaves too little free memory there, nothing moves, and
//! a thread of the system moves pages from there to a tier that were not accessed since it looked last.
//!
//! A core whose TLBs have no translation of a page walks the tables, which is how accesses are seen: the scan and the reclaim remove
//! translations. Moves follow at the next update of the guest's clock, a few blocks later.

mod gate;
mod watermarks;

use std::collections::BTreeMap;
use std::ops::Range;

use fxscope_aarch64::Engine;
use fxscope_calendar::Cycle;
use fxscope_counts::Signal;
use fxscope_linux::Guest;
use fxscope_linux::pages::TieredPage;
use fxscope_machine::Spec;
use fxscope_memory::Walk;

use crate::core::Core;
use crate::machine::Machine;
use crate::timing::Driver;
use gate::Gate;
use watermarks::Watermarks;

/// What the system knows of the pages of all processes.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Tiering {
    /// By process number.
    processes: BTreeMap<u32, Process>,
    /// The walks of the active core, and room for its next ones.
    walks: Vec<Walk>,
}

/// What the system knows of the pages of a process.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
struct Process {
    /// When the next scan is due, and the address at which it begins.
    scan_at: Cycle,
    scan_from: u64,
    /// The address at which reclaim looks next.
    reclaim_from: u64,
    gate: Gate,
    /// By address of the page.
    pages: BTreeMap<u64, Heat>,
}

/// What the system knows of a page.
#[derive(Clone, Copy, Default, serde::Deserialize, serde::Serialize)]
struct Heat {
    /// The scan since which it is inaccessible.
    protected: Option<Cycle>,
    /// It was accessed since reclaim looked last.
    accessed: bool,
}

/// The parts of a run that moves of a process's pages change.
struct Work<'a> {
    pid: u32,
    process: &'a mut Process,
    guest: &'a mut Guest,
    machine: &'a mut Machine,
    spec: &'a Spec,
}

impl Tiering {
    /// Returns the state before the run, if the machine's system moves pages by heat.
    pub(crate) fn new(spec: &Spec) -> Option<Box<Tiering>> {
        spec.tiering.enabled.then(|| Box::new(Tiering { processes: BTreeMap::new(), walks: Vec::new() }))
    }

    /// Follows the accesses of the active core since the last call, and scans if that is due.
    fn follow(&mut self, guest: &mut Guest, machine: &mut Machine, spec: &Spec) {
        guest.note_touched_pages();
        let core = machine.core_mut();
        let now = core.pipeline.now();
        self.walks.clear();
        self.walks = core.pipeline.memory.take_walks(std::mem::take(&mut self.walks));
        for &walk in &self.walks {
            let pid = u32::from(walk.space());
            let process = self.processes.entry(pid).or_insert_with(|| Process::new(now, spec));
            Work { pid, process, guest, machine, spec }.accessed(walk);
        }
        let pid = guest.pid();
        let process = self.processes.entry(pid).or_insert_with(|| Process::new(now, spec));
        if now >= process.scan_at {
            let mut work = Work { pid, process, guest, machine, spec };
            work.keep_room();
            work.scan(now);
        }
    }
}

impl Process {
    /// Returns a process that begins at `now`.
    fn new(now: Cycle, spec: &Spec) -> Process {
        Process {
            scan_at: now + cycles(spec.tiering.scan_delay_ns, spec),
            scan_from: 0,
            reclaim_from: 0,
            gate: Gate::new(spec),
            pages: BTreeMap::new(),
        }
    }
}

impl Work<'_> {
    /// A core translates an address.
    fn accessed(&mut self, walk: Walk) {
        let Some(page) = self.guest.tiered_page(self.pid, walk.virtual_address()) else { return };
        let heat = self.process.pages.entry(page.range.start).or_default();
        heat.accessed = true;
        if let Some(scanned) = heat.protected.take()
            && page.in_tier
        {
            self.hint_fault(&page, walk.at.saturating_sub(scanned), walk.at);
        }
    }

    /// An access at `now` finds a page that a scan made inaccessible `since` cycles ago.
    fn hint_fault(&mut self, page: &TieredPage, since: Cycle, now: Cycle) {
        self.count(Signal::TierHintFault, 1);
        let mut took = cycles(self.spec.page_costs.fault_ns, self.spec);
        if self.is_promoted(page, since, now) {
            let node = self.guest.node_of_active();
            self.guest.move_tiered_page(self.pid, page, node);
            took += self.copy_cycles(page, page.node);
            self.count(Signal::TierPromote, 1);
            self.count(Signal::TierPromoteBytes, page.bytes());
        }
        self.wait(took);
    }

    /// Returns whether a page is hot and has room in fast memory. If there is no room, reclaim begins.
    fn is_promoted(&mut self, page: &TieredPage, since: Cycle, now: Cycle) -> bool {
        let Some((used, all)) = self.guest.fast_memory(self.pid) else { return false };
        let (free, marks) = (all.saturating_sub(used), Watermarks::of(all, self.spec));
        if free > marks.ample {
            self.process.gate.reset();
        } else if !self.process.gate.admits(page.bytes(), since, now) {
            return false;
        }
        if free >= marks.high + page.bytes() {
            return true;
        }
        self.reclaim((marks.promote + page.bytes()).saturating_sub(free));
        false
    }

    /// Begins reclaim if too little fast memory is free.
    fn keep_room(&mut self) {
        let Some((used, all)) = self.guest.fast_memory(self.pid) else { return };
        let (free, marks) = (all.saturating_sub(used), Watermarks::of(all, self.spec));
        if free < marks.low {
            self.reclaim(marks.promote - free);
        }
    }

    /// Moves pages from fast memory to a tier until `wanted` bytes more are free, or all of them were looked at twice. Pages that were
    /// accessed since the last look stay until the next one.
    fn reclaim(&mut self, wanted: u64) {
        let from = self.process.reclaim_from;
        let pages: Vec<_> = self.guest.tiered_pages(self.pid, 0).filter(|page| !page.in_tier).collect();
        let next = pages.partition_point(|page| page.range.start < from);
        let (before, after) = pages.split_at(next);
        let (mut freed, mut young) = (0, Vec::new());
        for page in after.iter().chain(before).chain(after).chain(before) {
            if freed >= wanted {
                break;
            }
            self.process.reclaim_from = page.range.end;
            let heat = self.process.pages.entry(page.range.start).or_default();
            if std::mem::take(&mut heat.accessed) {
                extend(&mut young, page.range.clone());
            } else if self.demote(page) {
                freed += page.bytes();
            }
        }
        self.drop_translations(young);
        if freed > 0 {
            let took = cycles(self.spec.page_costs.shootdown_ns, self.spec);
            self.count(Signal::TieringReclaimCycles, took);
        }
    }

    /// Moves a page to a tier. Returns whether it was in fast memory and a tier had room.
    fn demote(&mut self, page: &TieredPage) -> bool {
        let Some(tier) = self.guest.tier_with_room(self.pid, page.bytes()) else { return false };
        if self.guest.tiered_page(self.pid, page.range.start).is_none_or(|page| page.in_tier) {
            return false;
        }
        self.guest.move_tiered_page(self.pid, page, tier);
        self.count(Signal::TierDemote, 1);
        self.count(Signal::TierDemoteBytes, page.bytes());
        let took = self.copy_cycles(page, tier);
        self.count(Signal::TieringReclaimCycles, took);
        true
    }

    /// Makes pages in tiers inaccessible, as many as a scan may, beginning where the last scan ended.
    fn scan(&mut self, now: Cycle) {
        let t = &self.spec.tiering;
        self.process.scan_at = now + cycles(t.scan_period_ns, self.spec);
        let (mut left, mut pages, mut last, mut ranges) = (t.scan_bytes, 0, None, Vec::new());
        let in_tiers = self.guest.tiered_pages(self.pid, self.process.scan_from).filter(|page| page.in_tier);
        for page in in_tiers {
            if left == 0 {
                break;
            }
            last = Some(page.range.end);
            let heat = self.process.pages.entry(page.range.start).or_default();
            if heat.protected.is_none() {
                (heat.protected, left, pages) = (Some(now), left.saturating_sub(page.bytes()), pages + 1);
                extend(&mut ranges, page.range);
            }
        }
        self.drop_translations(ranges);
        // After the last page the first one follows.
        let more = last.filter(|&end| self.guest.tiered_pages(self.pid, end).any(|page| page.in_tier));
        self.process.scan_from = more.unwrap_or(0);
        if pages > 0 {
            let costs = &self.spec.page_costs;
            self.wait(cycles(pages * costs.protect_page_ns + costs.shootdown_ns, self.spec));
        }
    }

    /// Removes the translations of ranges of the process from the TLBs of all cores.
    fn drop_translations(&mut self, ranges: Vec<Range<u64>>) {
        for range in ranges {
            let of_core = |core: &mut Core| core.pipeline.memory.drop_translations(self.pid as u16, range.clone());
            self.machine.iter_mut().for_each(of_core);
        }
    }

    /// Returns the cycles of a copy between fast memory and a tier, the slower of the system's loop and the tier.
    fn copy_cycles(&self, page: &TieredPage, tier: u32) -> Cycle {
        let tiers = self.spec.memory_tiers.tiers();
        let first = self.spec.topology.first_node + self.spec.topology.cmgs;
        let tier_rate = tier.checked_sub(first).and_then(|index| tiers.get(index as usize)).map_or(u64::MAX, |tier| {
            let direction = if page.in_tier { tier.read_bytes_per_second } else { tier.write_bytes_per_second };
            direction.min(tier.total_bytes_per_second)
        });
        let rate = self.spec.page_costs.move_bytes_per_second.min(tier_rate);
        (u128::from(page.bytes()) * u128::from(self.spec.clock.core_hz) / u128::from(rate)) as Cycle
    }

    /// The thread on the active core waits for the system.
    fn wait(&mut self, cycles: Cycle) {
        self.machine.core_mut().pipeline.pause(cycles);
        self.count(Signal::TieringCycles, cycles);
    }

    fn count(&mut self, signal: Signal, n: u64) {
        self.machine.core_mut().pipeline.count(signal, n);
    }
}

/// Adds a range to ranges in order. Those without a gap between them become one.
fn extend(ranges: &mut Vec<Range<u64>>, next: Range<u64>) {
    match ranges.last_mut().filter(|last| last.end == next.start) {
        Some(last) => last.end = next.end,
        None => ranges.push(next),
    }
}

/// Returns the cycles of a time in ns.
fn cycles(ns: u64, spec: &Spec) -> Cycle {
    (u128::from(ns) * u128::from(spec.clock.core_hz) / 1_000_000_000) as Cycle
}

impl<E: Engine> Driver<'_, E> {
    /// Promotes and demotes pages, if the system does that.
    #[cold]
    pub(crate) fn follow_heat(&mut self) {
        let timing = &mut *self.timing;
        if let Some(tiering) = timing.tiering.as_deref_mut().filter(|_| !timing.machine.core().untimed) {
            tiering.follow(self.guest, &mut timing.machine, &self.options.spec);
        }
    }
}
