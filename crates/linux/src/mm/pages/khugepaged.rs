//! The thread of the system that looks for pages to collapse (khugepaged): from time to time, some pages of each process in turn.

use serde::{Deserialize, Serialize};

use super::collapse::Unchanged;
use super::own::whole;
use super::{FolioCounts, KhugepagedSettings, PageSizes};
use crate::guest::Guest;
use crate::mm::address_space::AddressSpace;
use crate::sched::wait::FOR_EVER;
use crate::table::Id;

/// Where it is, and what it has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Khugepaged {
    /// When its next pass begins, ns; [`FOR_EVER`]: it does not run.
    pub at_ns: u64,
    /// The process and the address at which it continues.
    pid: u32,
    address: u64,
    /// Ranges of pages that it has collapsed.
    pub collapsed: u64,
    /// How often it has looked at everything.
    pub full_scans: u64,
}

/// What is left of a pass.
struct Pass {
    settings: KhugepagedSettings,
    /// Normal pages that it may still look at.
    left: u64,
    no_memory: bool,
}

impl Khugepaged {
    /// Returns it before its first pass, which begins a pause after the run. It runs if huge pages of the largest size are enabled.
    pub(crate) fn new(sizes: &PageSizes) -> Khugepaged {
        let settings = sizes.thp.khugepaged.filter(|_| sizes.collapses());
        let at_ns = settings.map_or(FOR_EVER, |settings| settings.scan_sleep_ns);
        Khugepaged { at_ns, pid: 0, address: 0, collapsed: 0, full_scans: 0 }
    }
}

impl Guest {
    /// Makes the passes that are due. Passes that would find everything as the ones before them are left out.
    #[cold]
    pub(crate) fn run_khugepaged(&mut self) {
        let Some(settings) = self.system.platform.page_sizes.thp.khugepaged else { return };
        while self.system.khugepaged.at_ns <= self.system.now_ns {
            let Khugepaged { collapsed, full_scans, .. } = self.system.khugepaged;
            let mut pass = Pass { settings, left: settings.pages_to_scan, no_memory: false };
            self.make_pass(&mut pass);
            let sleep_ns = if pass.no_memory { settings.alloc_sleep_ns } else { settings.scan_sleep_ns }.max(1);
            let state = &mut self.system.khugepaged;
            let is_idle = state.collapsed == collapsed && state.full_scans > full_scans;
            let missed = self.system.now_ns.saturating_sub(state.at_ns) / sleep_ns;
            state.at_ns = state.at_ns.saturating_add(sleep_ns.saturating_mul(1 + if is_idle { missed } else { 0 }));
        }
    }

    /// Looks at pages from where the last pass ended, at most once at each.
    fn make_pass(&mut self, pass: &mut Pass) {
        let mut of_processes: Vec<(u32, Id<AddressSpace>)> = self
            .processes
            .values()
            .filter(|process| !process.ended)
            .map(|process| (process.pid, process.space))
            .collect();
        of_processes.sort_unstable_by_key(|&(pid, _)| pid);
        // After vfork, two processes have one address space.
        let mut spaces: Vec<Id<AddressSpace>> = Vec::new();
        of_processes.retain(|&(_, space)| {
            let is_new = !spaces.contains(&space);
            spaces.extend(is_new.then_some(space));
            is_new
        });
        let mut ends = 0;
        while pass.left > 0 && !pass.no_memory && ends < 2 {
            let state = self.system.khugepaged;
            match of_processes.iter().find(|&&(pid, _)| pid >= state.pid) {
                Some(&(pid, space)) => self.look_at(pid, space, pass),
                None => {
                    ends += 1;
                    let state = &mut self.system.khugepaged;
                    (state.pid, state.address, state.full_scans) = (0, 0, state.full_scans + 1);
                }
            }
        }
    }

    /// Looks at pages of one process, and collapses those that are fit.
    fn look_at(&mut self, pid: u32, space: Id<AddressSpace>, pass: &mut Pass) {
        let state = &mut self.system.khugepaged;
        let AddressSpace { id, pages, .. } = &mut self.spaces[space];
        let sizes = &pages.plan.sizes;
        let (shift, normal) = (sizes.largest_folio(), sizes.normal);
        let from = if state.pid == pid { state.address } else { 0 };
        let areas = pages.fault_areas(self.memory.regions_of(*id));
        for (range, area) in areas.within(from..u64::MAX).filter(|(_, area)| area.folios >> shift & 1 != 0) {
            let blocks = whole(&range, 1 << shift);
            for start in (blocks.start..blocks.end).step_by(1 << shift) {
                if pass.left == 0 || pass.no_memory {
                    (state.pid, state.address) = (pid, start);
                    return;
                }
                pass.left = pass.left.saturating_sub((1 << shift) / normal);
                let block = start..start + (1 << shift);
                match pages.collapse((&self.memory, *id), area.segment, block, Some(&pass.settings)) {
                    Ok(()) => state.collapsed += 1,
                    Err(Unchanged::NoMemory) => pass.no_memory = true,
                    Err(Unchanged::Huge | Unchanged::Unfit) => {}
                }
            }
        }
        (state.pid, state.address) = (pid + 1, 0);
    }

    /// Returns how many ranges khugepaged has collapsed to one huge page, of all processes, and how often it has looked at everything.
    #[must_use]
    pub fn khugepaged_progress(&self) -> (u64, u64) {
        (self.system.khugepaged.collapsed, self.system.khugepaged.full_scans)
    }

    /// Returns what happened to the folios of all processes.
    #[must_use]
    pub fn folio_counts(&self) -> FolioCounts {
        let running = self.spaces.values().map(|space| space.pages.folio_counts());
        running.fold(self.system.folio_counts.clone(), FolioCounts::plus)
    }
}
