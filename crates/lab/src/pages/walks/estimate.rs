//! What large pages would save, from counts of page walks.

use serde::Serialize;

use super::events::{Counts, Processor, Role};
use crate::Error;

/// perf's event of page faults, of all processors.
pub const PAGE_FAULTS: &str = "page-faults";

/// Where the cycles of a walk are from, on processors that count walks only.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Given by the user.
    Given,
    /// Measured on this host.
    Measured,
    /// Assumed in `data/pages/walk-events.toml`.
    Assumed,
}

/// What the counts of a program say about its page walks. Shares are of its cycles.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Id of the processor.
    pub processor: String,
    /// Core cycles.
    pub cycles: f64,
    /// Share of the cycles in which walks for data are active: an upper bound, since walks of loads and of stores coincide.
    pub data_walks: f64,
    /// The same for instructions, if counted.
    pub code_walks: Option<f64>,
    /// Walks for data, if counted.
    pub walks: Option<f64>,
    /// Page faults, if counted: large pages save most of them, which the estimate leaves out.
    pub faults: Option<u64>,
    /// Share of the walks that ended at a page of the base size; `None` if page sizes were not counted.
    pub small: Option<f64>,
    /// Cycles of a walk, least and most, where they had to be known.
    pub walk_cycles: Option<([f64; 2], Basis)>,
    /// What large pages would save, least and most.
    pub saving: [f64; 2],
    /// Why not less.
    pub least: String,
    /// Why not more.
    pub most: String,
}

/// Active cycles of walks for data: least and most, and the reason for each.
struct Active {
    least: f64,
    most: f64,
    bounded: &'static str,
    per_walk: Option<([f64; 2], Basis)>,
}

/// Estimates what large pages would save a program with these counts. `per_walk` is the cycles of a walk, least and most, if known; only
/// processors without events of cycles need it.
///
/// # Errors
/// If cycles, or walks, were not counted.
pub fn estimate(
    processor: &Processor,
    counts: &Counts,
    per_walk: Option<([f64; 2], Basis)>,
) -> Result<Estimate, Error> {
    let cycles = processor.counted(Role::Cycles, counts).first().copied().filter(|&cycles| cycles > 0.0);
    let cycles = cycles.ok_or_else(|| missing(processor, Role::Cycles))?;
    let [small, large] = [Role::SmallWalks, Role::LargeWalks].map(|role| processor.sum(role, counts));
    let walks = processor.sum(Role::Walks, counts).or_else(|| Some(small? + large.unwrap_or(0.0)));
    let active = active(processor, counts, walks, per_walk)?;
    let share = match (small, large) {
        (Some(small), Some(large)) if small + large > 0.0 => Some(small / (small + large)),
        (Some(small), None) => walks.filter(|&all| all > 0.0).map(|all| (small / all).min(1.0)),
        _ => None,
    };
    let of_small = share.unwrap_or(1.0);
    let most = (active.most * of_small / cycles).min(1.0);
    let stalled = processor.sum(Role::Stalled, counts);
    let exposed = stalled.map_or(0.0, |stalled| (active.least * of_small + stalled - cycles).max(0.0) / cycles);
    let sizes = if share.is_some() { " that end at pages of the base size" } else { ", whatever their page sizes" };
    Ok(Estimate {
        processor: processor.id.clone(),
        cycles,
        data_walks: (active.most / cycles).min(1.0),
        code_walks: processor.sum(Role::CodeWalkCycles, counts).map(|code| (code / cycles).min(1.0)),
        walks,
        faults: counts.get(PAGE_FAULTS).copied(),
        small: share,
        walk_cycles: active.per_walk,
        saving: [exposed.min(most), most],
        least: least_reason(stalled.is_some(), exposed),
        most: format!(
            "{} of walks for data{sizes}: walks overlap with execution, so that no more than this can be saved",
            active.bounded
        ),
    })
}

fn least_reason(stalled: bool, exposed: f64) -> String {
    match (stalled, exposed > 0.0) {
        (true, true) => "as many cycles of walks must coincide with cycles in which the core waits, since both together exceed all cycles".to_owned(),
        (true, false) => "all walks may fall into cycles in which the core works on something else".to_owned(),
        (false, _) => "cycles in which the core waits were not counted, so that all walks may be hidden behind other work".to_owned(),
    }
}

fn active(
    processor: &Processor,
    counts: &Counts,
    walks: Option<f64>,
    per_walk: Option<([f64; 2], Basis)>,
) -> Result<Active, Error> {
    let events = processor.counted(Role::WalkCycles, counts);
    if !events.is_empty() {
        // Walks of loads and of stores may be active in the same cycles.
        let least = events.iter().copied().fold(0.0, f64::max);
        return Ok(Active { least, most: events.iter().sum(), bounded: "all cycles", per_walk: None });
    }
    if let Some(pending) = processor.sum(Role::WalkPending, counts) {
        return Ok(Active { least: 0.0, most: pending, bounded: "the cycles, one after the other,", per_walk: None });
    }
    let walks = walks.ok_or_else(|| missing(processor, Role::Walks))?;
    let assumed = || Some((processor.assumed_walk_cycles?, Basis::Assumed));
    let per_walk = per_walk.or_else(assumed).ok_or_else(|| missing(processor, Role::WalkCycles))?;
    let bounded = "the longest time, one after the other,";
    Ok(Active { least: 0.0, most: walks * per_walk.0[1], bounded, per_walk: Some(per_walk) })
}

fn missing(processor: &Processor, role: Role) -> Error {
    let wanted = |event: &&super::events::Event| match role {
        Role::Walks => matches!(event.role, Role::Walks | Role::SmallWalks | Role::WalkPending),
        role => event.role == role,
    };
    let names: Vec<&str> = processor.events.iter().filter(wanted).map(|event| event.perf.as_str()).collect();
    let what = if role == Role::Cycles { "cycles" } else { "page walks" };
    format!("has no count of {what} of {} ({}): count one of {}", processor.id, processor.name, names.join(", ")).into()
}

#[cfg(test)]
mod tests {
    use super::super::events::{named, of_counts, of_host, plain_name};
    use super::*;

    fn counts(all: &[(&str, u64)]) -> Counts {
        all.iter().map(|&(name, count)| (plain_name(name), count)).collect()
    }

    fn close(found: [f64; 2], expected: [f64; 2]) {
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?} instead of {expected:?}");
    }

    fn intel() -> Vec<(&'static str, u64)> {
        vec![
            ("cycles", 1000),
            ("dtlb_load_misses.walk_active", 300),
            ("dtlb_store_misses.walk_active", 50),
            ("dtlb_load_misses.walk_completed_4k", 8),
            ("dtlb_store_misses.walk_completed_4k", 1),
            ("dtlb_load_misses.walk_completed_2m_4m", 1),
        ]
    }

    #[test]
    fn cycles_of_walks_to_base_pages_are_the_most_and_those_that_must_meet_stalls_the_least() {
        let mut all = intel();
        let found =
            |all: &[(&str, u64)]| estimate(named("intel").expect("known"), &counts(all), None).expect("complete");
        // (300 + 50) * 9 / 10.
        close(found(&all).saving, [0.0, 0.315]);
        // 300 * 9 / 10 + 800 - 1000: walks of stores may coincide with those of loads.
        all.push(("cycle_activity.stalls_total", 800));
        close(found(&all).saving, [0.07, 0.315]);
        assert_eq!(found(&all).small, Some(0.9));
    }

    #[test]
    fn walks_times_their_cycles_are_the_most_where_cycles_are_not_counted() {
        let zen = named("amd-zen").expect("known");
        let mut all = counts(&[
            ("cycles", 1000),
            ("ls_l1_d_tlb_miss.tlb_reload_4k_l2_miss", 2),
            ("ls_l1_d_tlb_miss.tlb_reload_coalesced_page_miss", 1),
            ("ls_l1_d_tlb_miss.tlb_reload_2m_l2_miss", 1),
        ]);
        // 3 of 4 walks are at base pages: 4 * 100 * 3 / 4.
        let found = estimate(zen, &all, Some(([20.0, 100.0], Basis::Given))).expect("complete");
        close(found.saving, [0.0, 0.3]);
        assert!(matches!(estimate(zen, &all, None).expect("complete").walk_cycles, Some((_, Basis::Assumed))));
        let arm = named("arm-neoverse").expect("known");
        all = counts(&[("cycles", 1000), ("dtlb_walk", 4), ("stall_backend", 900)]);
        close(estimate(arm, &all, Some(([20.0, 50.0], Basis::Given))).expect("complete").saving, [0.0, 0.2]);
        let arm = named("arm-neoverse-v3").expect("known");
        let all =
            counts(&[("cpu_cycles", 1000), ("dtlb_walk_percyc", 400), ("dtlb_walk_small", 3), ("dtlb_walk_large", 1)]);
        close(estimate(arm, &all, None).expect("complete").saving, [0.0, 0.3]);
    }

    #[test]
    fn processors_are_told_by_their_events_or_by_what_linux_shows() {
        let by_events = |names: &[&str]| of_counts(&names.iter().map(|&name| (plain_name(name), 1)).collect());
        let id = |names: &[&str]| by_events(names).expect("known").id.clone();
        assert_eq!(id(&["cpu/dtlb_load_misses.walk_active/u", "cycles"]), "intel");
        assert_eq!(id(&["DTLB_LOAD_MISSES.WALK_DURATION", "dtlb_load_misses.walk_completed_4k"]), "intel-haswell");
        assert_eq!(id(&["ls_l1_d_tlb_miss.tlb_reload_4k_l2_miss:u"]), "amd-zen");
        assert_eq!(id(&["armv8_pmuv3_0/dtlb_walk/"]), "arm-neoverse");
        assert_eq!(id(&["dtlb_walk_percyc"]), "arm-neoverse-v3");
        assert!(by_events(&["cycles", "instructions"]).is_err());
        let host = |text: &str| of_host(text).map(|one| one.id.clone());
        assert_eq!(host("vendor_id : GenuineIntel\ncpu family : 6\nmodel : 143\n").expect("known"), "intel");
        assert_eq!(host("vendor_id : GenuineIntel\ncpu family : 6\nmodel : 79\n").expect("known"), "intel-haswell");
        assert_eq!(host("vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 17\n").expect("known"), "amd-zen");
        assert_eq!(host("CPU implementer : 0x41\nCPU part : 0xd4f\n").expect("known"), "arm-neoverse");
        let why = host("CPU implementer : 0x46\nCPU part : 0x001\n").expect_err("no server of these").to_string();
        assert!(why.contains("arm/0x46/0x001") && why.contains("--check"), "{why}");
    }

    #[test]
    fn what_was_not_counted_is_named() {
        let why = |all: &[(&str, u64)]| {
            estimate(named("intel").expect("known"), &counts(all), None).expect_err("incomplete").to_string()
        };
        assert!(why(&intel()[1..]).contains("no count of cycles"));
        assert!(why(&intel()[..1]).contains("dtlb_load_misses.walk_completed_4k"));
    }
}
