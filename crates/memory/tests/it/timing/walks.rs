//! Table walks: which descriptors are read, from where, and what that takes.

use fxscope_memory::{Bounds, PageRange, Placement};

use super::*;

/// Cycles in which the walker has a descriptor that L2 has: those of a load less what its own pipeline takes.
pub fn read_from_l2(spec: &Spec) -> Cycle {
    spec.l2_timing.hit_nearest - spec.load_store.move_in - spec.load_store.load_integer
}

/// The same for a descriptor in memory.
fn read_from_memory(spec: &Spec) -> Cycle {
    spec.memory.latency_nearest - spec.load_store.move_in - spec.load_store.load_integer
}

/// What a translation takes whose walk does these reads.
fn walk(spec: &Spec, from_memory: Cycle, from_l2: Cycle) -> Cycle {
    let reads = from_memory * read_from_memory(spec) + from_l2 * read_from_l2(spec);
    spec.tlb.l2_hit + reads + spec.tlb.walk_extra
}

/// A core all of whose memory has pages of `1 << shift` bytes.
fn core(spec: &Spec, shift: u32) -> Core {
    let mut core = Core::new(spec);
    core.set_pages(
        0,
        vec![PageRange {
            start: 0,
            end: 1 << 47,
            shift,
            placement: Placement::Node(0),
            moved: 0,
            shared: None,
            bounds: Bounds::ALL,
        }],
    );
    core
}

/// What the translation of `addr` takes at `t`.
fn translate(core: &mut Core, addr: u64, t: Cycle) -> Cycle {
    core.memory.run().translate(addr.into(), t, &mut core.signals).ready - t
}

#[test]
fn a_first_walk_reads_a_descriptor_of_each_level_from_memory() {
    // 64 KiB tables: three levels, blocks of 512 MiB in the second. 4 KiB tables: four, blocks of 2 MiB and 1 GiB.
    let levels = [(12, 4), (16, 3), (21, 3), (25, 3), (29, 2), (30, 2), (34, 2)];
    let spec = machine();
    assert!(levels.iter().map(|&(shift, _)| 1 << shift).eq(spec.pages.sizes.iter().copied()));
    for (shift, reads) in levels {
        let mut core = core(&spec, shift);
        assert_eq!(translate(&mut core, 0, 1_000), walk(&spec, reads, 0), "pages of {} bytes", 1u64 << shift);
    }
}

#[test]
fn a_walk_through_a_cached_table_descriptor_reads_the_page_s_descriptor_only() {
    let spec = machine();
    for shift in [12, 16] {
        let mut core = core(&spec, shift);
        translate(&mut core, 0, 1_000);
        assert_eq!(translate(&mut core, 1 << shift, 10_000), walk(&spec, 0, 1));
    }
}

#[test]
fn a_line_of_descriptors_is_read_from_memory_once_for_the_pages_it_has() {
    let spec = machine();
    let in_line = LINE / u64::from(spec.tlb.descriptor_bytes);
    assert_eq!(in_line, 32);
    let mut core = core(&spec, 16);
    translate(&mut core, 0, 1_000);
    for page in 1..in_line {
        assert_eq!(translate(&mut core, page << 16, 10_000 * page), walk(&spec, 0, 1), "page {page}");
    }
    assert_eq!(translate(&mut core, in_line << 16, 900_000), walk(&spec, 1, 0));
}

#[test]
fn each_contiguous_group_of_64_kib_pages_fills_a_line_of_descriptors() {
    let spec = machine();
    let mut core = core(&spec, 21);
    translate(&mut core, 0, 1_000);
    assert_eq!(translate(&mut core, 31 << 16, 10_000), 0, "the group has one entry in the TLB");
    assert_eq!(translate(&mut core, 1 << 21, 20_000), walk(&spec, 1, 0));
}

#[test]
fn a_table_descriptor_that_left_the_cache_is_read_again() {
    let spec = machine();
    let mut core = core(&spec, 16);
    let reach = 1 << 29;
    // The descriptor of the second level's table is used each time and stays; those of fifteen last tables do beside
    // it.
    for table in 0..=15 {
        translate(&mut core, table * reach, 10_000 * (table + 1));
    }
    assert_eq!(translate(&mut core, 15 * reach + (1 << 16), 500_000), walk(&spec, 0, 1));
    assert_eq!(translate(&mut core, 1 << 16, 600_000), walk(&spec, 0, 2));
}

#[test]
fn data_and_instructions_share_the_table_cache_and_the_walker() {
    let spec = machine();
    assert_eq!(spec.tlb.walkers, 1);
    let mut core = core(&spec, 16);
    let line = |core: &mut Core, page: u64, t| core.memory.run().fetch(page << 16, t, &mut core.signals) - t;
    translate(&mut core, 0, 1_000);
    let after_walk = line(&mut core, 1, 10_000);
    let data = translate(&mut core, 2 << 16, 30_000);
    let behind = line(&mut core, 3, 30_000);
    assert_eq!(data, walk(&spec, 0, 1));
    assert_eq!(behind, after_walk + read_from_l2(&spec) + spec.tlb.walk_extra);
}

#[test]
fn walks_at_the_same_time_wait_for_a_walker() {
    let mut spec = machine();
    let one = read_from_l2(&spec) + spec.tlb.walk_extra;
    // Two walkers ask L2 one cycle after the other.
    for (walkers, second) in [(1, 2 * one), (2, one + 1)] {
        spec.tables.tlb.walkers = walkers;
        let mut core = core(&spec, 16);
        translate(&mut core, 0, 1_000);
        assert_eq!(translate(&mut core, 1 << 16, 10_000), spec.tlb.l2_hit + one);
        assert_eq!(translate(&mut core, 2 << 16, 10_000), spec.tlb.l2_hit + second, "{walkers} walkers");
    }
}

#[test]
fn reads_of_tables_are_demand_accesses_of_l2_and_leave_l1_alone() {
    let mut core = core(&machine(), 16);
    translate(&mut core, 0, 1_000);
    translate(&mut core, 1 << 16, 10_000);
    assert_eq!(core.get(Signal::L2dCache), 4);
    assert_eq!(core.get(Signal::L2dCacheRefillDm), 3);
    assert_eq!(core.get(Signal::L1dCacheRefill), 0);
}

#[test]
fn each_address_space_has_tables_of_its_own() {
    let spec = machine();
    let mut core = core(&spec, 16);
    translate(&mut core, 0, 1_000);
    let pages = vec![PageRange {
        start: 0,
        end: 1 << 47,
        shift: 16,
        placement: Placement::Node(0),
        moved: 0,
        shared: None,
        bounds: Bounds::ALL,
    }];
    core.set_pages(1, pages);
    assert_eq!(translate(&mut core, 0, 10_000), walk(&spec, 3, 0));
}

#[test]
fn a_weak_prefetch_finds_no_translation_while_its_page_is_walked_for() {
    let spec = machine();
    let weak = 1 << 60;
    // This number of cycles before the walk ends: at the end the second level would have answered.
    for (early, prefetched) in [(spec.tlb.l2_hit + 1, 0), (spec.tlb.l2_hit, 1)] {
        let mut core = core(&spec, 16);
        let ready = 1_000 + translate(&mut core, 0, 1_000);
        core.memory.run().prefetch_instruction(weak.into(), 1, 2, ready - early, &mut core.signals);
        assert_eq!(core.get(Signal::L2dCacheRefillPrf), prefetched, "{early} cycles early");
    }
}

#[test]
fn free_misses_are_counted_and_take_no_time() {
    let mut spec = machine();
    spec.tables.tlb.free_misses = true;
    let mut core = core(&spec, 16);
    for page in 0..100 {
        assert_eq!(translate(&mut core, page << 16, 1_000 * page), 0, "page {page}");
    }
    assert_eq!(translate(&mut core, 0, 900_000), 0, "the second level has it");
    assert_eq!((core.get(Signal::L1dTlbRefill), core.get(Signal::L2dTlbRefill)), (101, 100));
    assert_eq!(core.get(Signal::BusReadTotalMem), 0, "no table is read");
}
