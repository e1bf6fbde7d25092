//! Prefetch instructions, and what instructions wait for when prefetch ports are short.

use fxscope_counts::Signal;
use fxscope_isa::Access;
use fxscope_machine::Spec;
use fxscope_memory::PrefetchRegisters;

use crate::common::*;

/// One prefetch port, and no limit on requests to L2.
fn one_port() -> Spec {
    let mut spec = machine();
    spec.tables.prefetch.ports = 1;
    spec.tables.l2_timing.request_period = 1.0;
    spec
}

/// How long a prefetch of a line from memory holds its port: until L2 knows the miss.
fn held(spec: &Spec) -> u64 {
    spec.l2_timing.request + spec.l2_timing.miss_detect
}

/// `PRFM PLDL1KEEP` or `PRFM PLDL2KEEP`.
fn prfm(level: u8, addr: u64) -> Inst {
    op("base:PRFM (immediate)").access(Access::PrefetchLoad(level), 1, addr).based(&[x(1)])
}

const SWPF: Signal = Signal::LdCompWaitPfpBusySwpf;

#[test]
fn prefetch_instructions_into_l2_without_a_port_wait_for_one_and_are_charged_so() {
    let mut rig = Rig::new(one_port());
    let prefetches: Vec<Inst> = (0..3).map(|i| prfm(2, DATA + i * LINE)).collect();
    let (_, counts) = rig.count(&prefetches);
    // Each but the first has the port of the one before, and commits as much later.
    assert_eq!(counts.get(SWPF), 2 * (held(&rig.spec) - 1));
    assert_eq!(counts.get(Signal::LdCompWaitPfpBusy), counts.get(SWPF));
    assert_eq!(counts.get(Signal::LdCompWaitPfpBusyEx), 0);
    assert_eq!(counts.get(Signal::L2dCacheRefillPrf), 3);
}

#[test]
fn weak_prefetch_instructions_without_a_port_are_dropped_and_wait_for_nothing() {
    let mut rig = Rig::new(one_port());
    let prefetches: Vec<Inst> = (0..5).map(|i| prfm(2, DATA + i * LINE + (1 << 60))).collect();
    let (_, counts) = rig.count(&prefetches);
    assert_eq!((counts.get(Signal::LdCompWaitPfpBusy), counts.get(Signal::L2dCacheRefillPrf)), (0, 1));
}

#[test]
fn with_the_machines_ports_a_few_prefetch_instructions_wait_for_nothing() {
    let mut rig = Rig::new(machine());
    let prefetches: Vec<Inst> = (0..5).map(|i| prfm(2, DATA + i * LINE)).collect();
    let (_, counts) = rig.count(&prefetches);
    assert_eq!((counts.get(Signal::LdCompWaitPfpBusy), counts.get(Signal::L2dCacheRefillPrf)), (0, 5));
}

/// Two loads that hit L1D, each with a hardware prefetch into L2 behind it: the second has to wait for the port.
fn loads_that_prefetch(load: impl Fn(u8, u64) -> Inst) -> (u64, u64, Spec) {
    let mut spec = one_port();
    spec.tables.prefetch.l2 = true;
    let mut rig = Rig::cached(spec);
    let mut registers = PrefetchRegisters::default();
    registers.injection_ctrl[0] = 1 << 63;
    // Farther than the stream of the warm-up has prefetched.
    registers.injection_distance[0] = 200 * LINE;
    rig.core.memory.set_prefetch_registers(&registers);
    let first_pair = 8 << 60;
    let (_, counts) = rig.count(&[load(1, DATA + first_pair), load(2, DATA + LINE + first_pair)]);
    assert_eq!(counts.get(Signal::L2HwpfInjNoallocPf), 2);
    (counts.get(Signal::LdCompWaitPfpBusy), counts.get(Signal::LdCompWaitPfpBusyEx), rig.spec)
}

#[test]
fn a_load_whose_hardware_prefetch_waits_for_a_port_commits_when_it_has_it() {
    let (all, integer, spec) = loads_that_prefetch(|d, addr| ldr(d, d, addr));
    // Both pass the load/store pipes together; the first one commits as usual.
    assert_eq!(all, held(&spec) - spec.stages.commit_short - 1);
    assert_eq!(integer, all);
}

#[test]
fn such_a_wait_of_a_vector_load_is_not_one_of_an_integer_load() {
    let (all, integer, _) = loads_that_prefetch(|d, addr| ld1d(d, d, 0, addr));
    assert!(all > 0);
    assert_eq!(integer, 0);
}

#[test]
fn a_contiguous_prefetch_covers_both_lines_of_a_vector_and_none_without_active_elements() {
    let prfd = |addr, mask| op("sve:PRFD (scalar plus scalar)").masked(Access::PrefetchLoad(1), 8, addr, mask);
    for (addr, mask, lines) in [(DATA + LINE - 32, 0xff, 2), (DATA + LINE - 64, 0xff, 1), (DATA + LINE - 32, 0, 0)] {
        let mut rig = Rig::new(machine());
        let (_, counts) = rig.count(&[prfd(addr, mask)]);
        assert_eq!(counts.get(Signal::L1dCacheRefillPrf), lines, "{addr:#x} {mask:#x}");
        assert_eq!(counts.get(Signal::L1dCacheRefillDm), 0);
    }
}

#[test]
fn a_gather_prefetch_brings_the_lines_of_its_active_elements() {
    let mut rig = Rig::new(machine());
    let mut addrs = [None; 8];
    for (i, line) in [(0, 0), (1, 0), (3, 5), (6, 7), (7, 20)] {
        addrs[i] = Some(DATA + line * LINE + 8 * i as u64);
    }
    let prfd = op("sve:PRFD (scalar plus vector) [otherwise]").indexed(Access::PrefetchLoad(1), addrs);
    let (_, counts) = rig.count(&[prfd]);
    assert_eq!(counts.get(Signal::L1dCacheRefillPrf), 4);
}
