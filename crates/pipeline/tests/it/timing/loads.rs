//! Loads of several flows: gathers and structures (manual 7.8), and the ports they take (manual 7.3).

use fxscope_counts::Signal;
use fxscope_isa::Access;

use crate::common::*;

fn flows(counts: &Counts) -> u64 {
    counts.get(Signal::L1Pipe0Val) + counts.get(Signal::L1Pipe1Val)
}

#[test]
fn the_second_flow_of_a_gather_pair_in_two_blocks_waits_for_the_end_of_the_first() {
    let mut rig = Rig::cached(machine());
    let together = std::array::from_fn(|i| Some(DATA + 8 * i as u64));
    let mut apart = together;
    // The last pair's addresses come in the second of two cycles, as the third's do.
    apart[7] = Some(DATA + 128);
    let base = rig.time(&[gather(1, 2, 3, 0, together)]);
    let (cycles, counts) = rig.count(&[gather(1, 2, 3, 0, apart)]);
    assert_eq!(cycles, base + rig.spec.stages.commit_long + rig.spec.load_store.resubmit);
    assert_eq!(flows(&counts), 5);
}

#[test]
fn structures_of_words_take_a_flow_for_each_register_and_block() {
    let load = |addr| structures("sve:LD3W (scalar plus immediate)", Access::Load, 3, 4, 3, 2, addr);
    // Each register's elements lie in all of the 192 bytes.
    let mut rig = Rig::cached(machine());
    let (aligned, counts) = rig.count(&[load(DATA)]);
    assert_eq!(flows(&counts), 3 * 2);
    let (across, counts) = rig.count(&[load(DATA + 96)]);
    assert_eq!(flows(&counts), 3 * 3);
    let after = rig.spec.stages.commit_long + rig.spec.load_store.resubmit;
    assert_eq!(across, aligned + after, "one flow after the other");
}

#[test]
fn structures_of_bytes_take_four_flows_for_each_register() {
    for (class, regs) in [
        ("sve:LD2B (scalar plus immediate)", 2),
        ("sve:LD3B (scalar plus immediate)", 3),
        ("sve:LD4B (scalar plus immediate)", 4),
    ] {
        let (_, counts) = Rig::cached(machine()).count(&[structures(class, Access::Load, regs, 1, 3, 2, DATA)]);
        assert_eq!(flows(&counts), 4 * u64::from(regs), "{class}");
    }
}

#[test]
fn a_store_of_structures_of_words_is_written_in_blocks_of_128_bytes() {
    let store = |addr| structures("sve:ST2D (scalar plus immediate)", Access::Store, 2, 8, 3, 2, addr);
    // Each of two registers: an access and a write.
    let (_, counts) = Rig::cached(machine()).count(&[store(DATA)]);
    assert_eq!(flows(&counts), 2 * 2);
    let (_, counts) = Rig::cached(machine()).count(&[store(DATA + 64)]);
    assert_eq!(flows(&counts), 2 * 4, "across a block");
}

#[test]
fn a_scatter_makes_an_access_for_each_element_and_writes_the_active_ones() {
    let lines: [_; 8] = std::array::from_fn(|i| (i < 5).then_some(DATA + LINE * i as u64));
    let (_, counts) = Rig::cached(machine()).count(&[scatter(1, 2, 3, 0, lines)]);
    assert_eq!(counts.get(Signal::Scatter1Flow), 8);
    assert_eq!(flows(&counts), 8 + 5);
}

#[test]
fn loads_behind_a_scatter_do_not_wait_for_what_it_writes() {
    let chain = |n: usize| vec![fadd(1, 1); n];
    let mut program = chain(10);
    program.push(scatter(1, 2, 3, 0, std::array::from_fn(|i| Some(DATA + LINE * i as u64))));
    let scattered = Rig::cached(machine()).time(&program);
    // More loads than fetch ports, and something long that needs the last one.
    program.extend(vec![ldr(9, 8, DATA + 16 * LINE); 40]);
    program.extend(vec![mul(9, 9); 15]);
    let all = Rig::cached(machine()).time(&program);
    assert!(all < scattered + 5 * 15, "{all} after {scattered}");
}

/// Cycles from the beginning of a gather of 8-byte elements to its commit: base and address computation (EXA, FLA), two
/// cycles of both address pipes, and the flow.
fn gathering(spec: &fxscope_machine::Spec) -> u64 {
    1 + 3 + 4 + 1 + spec.stages.commit_long
}

/// Cycles until the last of `n` gathers behind a load that misses has its ports, and until the load has its data.
fn gathers_behind_a_miss(spec: fxscope_machine::Spec, n: usize) -> (u64, u64) {
    let mut rig = Rig::cached(spec.clone());
    let miss = rig.time(&[ldr(9, 9, DATA + 80 * LINE)]);
    let mut rig = Rig::cached(spec);
    let mut program = vec![ldr(9, 9, DATA + 80 * LINE)];
    program.extend(vec![gather(1, 2, 3, 0, [Some(DATA); 8]); n]);
    (rig.time(&program), miss)
}

#[test]
fn a_gather_takes_four_fetch_ports() {
    // 39 ports behind the load's: nine gathers issue, the tenth waits for the load.
    let (nine, miss) = gathers_behind_a_miss(machine(), 9);
    let (ten, _) = gathers_behind_a_miss(machine(), 10);
    let spec = machine();
    let from_ports = spec.load_store.indexed_fetch_stages + gathering(&spec);
    assert!(nine < miss + from_ports, "{nine}");
    assert_eq!(ten, miss + from_ports, "it starts when the load has ended");
}

#[test]
fn a_fourth_scatter_waits_for_store_ports_until_some_stages_before_it_begins() {
    let scatters = |n: usize, stages: u64| {
        let mut spec = machine();
        spec.tables.load_store.indexed_store_stages = stages;
        Rig::cached(spec).time(&vec![scatter(1, 2, 3, 0, [Some(DATA); 8]); n])
    };
    // Eight of 24 ports each.
    assert_eq!(scatters(3, 20), scatters(3, 8));
    assert_eq!(scatters(4, 20), scatters(4, 8) + 12);
}

#[test]
fn virtual_ports_limit_dispatch() {
    // Behind a load that misses the virtual ports are taken by gathers; an addition after them is not dispatched.
    let after = |virtual_ports: u32| {
        let mut spec = machine();
        spec.tables.load_store.virtual_fetch_ports = virtual_ports;
        let mut rig = Rig::cached(spec);
        let mut program = vec![ldr(9, 9, DATA + 80 * LINE)];
        program.extend(vec![gather(1, 2, 3, 0, [Some(DATA); 8]); 12]);
        // The last load, and what is behind it, is dispatched when it has a port.
        program.push(ldr(5, 10, DATA));
        program.extend(vec![mul(6, 6); 60]);
        rig.time(&program)
    };
    // 1 + 12 × 4 + 1 ports: with one less the multiplications wait for the first load's data.
    assert_eq!(after(50), after(160));
    assert!(after(49) > after(50) + 100);
}

#[test]
fn a_gather_takes_a_store_port_too() {
    let behind_stores = |stores: u64| {
        let mut rig = Rig::cached(machine());
        let mut program = vec![ldr(9, 9, DATA + 80 * LINE)];
        program.extend((0..stores).map(|i| str(1, 2, DATA + 64 * (i % 128))));
        program.push(gather(1, 2, 3, 0, [Some(DATA + 48 * LINE); 8]));
        rig.time(&program)
    };
    // The stores commit behind the load. With 24 of them the gather has to wait for the first one's port.
    assert!(behind_stores(24) > behind_stores(23) + 10);
}

#[test]
fn a_transfer_to_a_general_register_takes_a_store_port() {
    let behind_stores = |stores: u64| {
        let mut program = vec![ldr(9, 9, DATA + 80 * LINE)];
        program.extend((0..stores).map(|i| str(1, 2, DATA + 64 * (i % 128))));
        // Manual, table 16-2: one store port and one fetch port.
        program.push(op("fp:FCVTZS (scalar, integer)").reads(&[z(1)]).writes(&[x(5)]));
        program.extend(vec![mul(5, 5); 40]);
        Rig::cached(machine()).time(&program)
    };
    // The stores commit behind the load. With 24 of them the transfer has to wait for the first one's port.
    assert!(behind_stores(24) > behind_stores(23) + 10);
}

#[test]
fn a_gather_gives_its_store_port_back_as_a_committed_store_does() {
    let mut rig = Rig::cached(machine());
    let miss = rig.time(&[ldr(9, 9, DATA + 80 * LINE)]);
    let mut rig = Rig::cached(machine());
    let gather = || gather(1, 2, 3, 0, [Some(DATA + 56 * LINE); 8]);
    let mut program = vec![ldr(9, 9, DATA + 80 * LINE), gather()];
    // Stores without active elements write nothing that would be in the way of the gather's flows.
    program.extend(vec![st1w(1, 2, 0, DATA, 0); 23]);
    program.push(gather());
    // The first gather has its data early, but commits behind the load, in the next group; the second needs its port.
    let back = miss + 1 + rig.spec.load_store.store_write;
    assert_eq!(rig.time(&program), back + rig.spec.load_store.indexed_store_stages + gathering(&rig.spec));
}

#[test]
fn requests_are_counted_in_the_pipe_beside_their_address_pipe() {
    let counts = |insts: &[Inst]| {
        let (_, counts) = Rig::cached(machine()).count(insts);
        (counts.get(Signal::L1Pipe0Comp), counts.get(Signal::L1Pipe1Comp))
    };
    assert_eq!(counts(&[ldr_z(1, 2, DATA)]), (1, 0), "its address comes from EAGA");
    assert_eq!(counts(&[ldr(1, 2, DATA), ldr(3, 2, DATA + 64)]), (1, 1), "both address pipes");
}

#[test]
fn loads_and_stores_without_active_elements_ask_for_no_line_and_take_one_flow() {
    let missing = DATA + 80 * LINE;
    let load = |mask| {
        op("sve:LD1D (scalar plus immediate)").based(&[x(2), p(0)]).writes(&[z(1)]).masked(
            Access::Load,
            8,
            missing,
            mask,
        )
    };
    let store = |mask| {
        op("sve:ST1D (scalar plus immediate)").based(&[x(2), p(0)]).reads(&[z(1)]).masked(
            Access::Store,
            8,
            missing,
            mask,
        )
    };
    for (inst, mask) in [(load(0), 0), (store(0), 0), (load(1), 1), (store(1), 1)] {
        let (_, counts) = Rig::cached(machine()).count(&[inst]);
        assert_eq!(counts.get(Signal::L1dCacheRefill), mask);
        assert!(mask == 1 || flows(&counts) == 1);
    }
}
