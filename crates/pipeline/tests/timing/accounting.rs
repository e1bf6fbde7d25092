//! The account of cycles: every cycle is counted once, by what committed in it or by what was waited for.

use fxscope_base::{Signal, Signals};

use crate::common::*;

fn random_inst(r: &mut Random) -> Inst {
    let mut reg = || r.below(8) as u8;
    let (d, s, t) = (reg(), reg(), reg());
    let addr = DATA + (r.below(1 << 20) & !7);
    match r.below(16) {
        0..=2 => add(d, s),
        3 => adds(d, s),
        4 => csel(d, s),
        5 => mul(d, s),
        6 => ldr(d, s, addr),
        7 => ld1d(d, s, t, addr & !63),
        8 => st1d(d, s, t, addr & !63),
        9 => str(d, s, addr),
        10 => fadd(d, s),
        11 => fmla(d, s),
        12 => sequential(d, s),
        13 => cmpeq(d, s),
        14 => movprfx(d, s),
        _ => sel(d, s, t),
    }
}

const COMMITS: [Signal; 5] = [Signal::Commit0, Signal::Commit1, Signal::Commit2, Signal::Commit3, Signal::Commit4];

fn sum(counts: &Signals, signals: &[Signal]) -> u64 {
    signals.iter().map(|&s| counts.get(s)).sum()
}

#[test]
fn over_random_programs_every_cycle_and_every_instruction_is_accounted_for_exactly_once() {
    for seed in 1..=60 {
        let mut r = Random::new(seed);
        let mut spec = machine();
        spec.tables.prefetch.l1 = seed % 2 == 0;
        let mut rig = Rig::new(spec);
        let mut effective = 1024; // the rig's own first program
        for _ in 0..4 {
            let mut blocks: Vec<Block> = Vec::new();
            let mut sizes = Vec::new();
            for i in 0..4 {
                let mut insts: Vec<Inst> = (0..5 + r.below(40)).map(|_| random_inst(&mut r)).collect();
                insts.push(if r.below(2) == 0 { b_cond() } else { cbz(r.below(8) as u8) });
                sizes.push(insts.iter().filter(|i| i.info.kind != fxscope_uop::InstKind::MovPrfx).count() as u64);
                blocks.push(Block::new(CODE + 1024 * i, &insts, &rig.spec));
            }
            let order: Vec<usize> = (0..60).map(|_| r.below(4) as usize).collect();
            effective += order.iter().map(|&i| sizes[i]).sum::<u64>();
            rig.time_blocks(&mut blocks, &order);
        }
        rig.core.finish();
        let c = rig.core.counters();
        assert_eq!(c.get(Signal::CpuCycles), rig.core.now(), "seed {seed}: cycles");
        assert_eq!(sum(&c, &COMMITS), rig.core.now(), "seed {seed}: cycles by number of commits");
        let instructions: u64 = (0..).zip(COMMITS).map(|(n, s)| n * c.get(s)).sum();
        assert_eq!(instructions, effective, "seed {seed}: instructions");
        let waits = [
            Signal::LdCompWait,
            Signal::EuCompWait,
            Signal::BrCompWait,
            Signal::RobEmpty,
            Signal::UopOnlyCommit,
            Signal::SingleMovprfxCommit,
        ];
        assert_eq!(sum(&c, &waits), c.get(Signal::Commit0), "seed {seed}: parts of the cycles without commit");
        let parts = [Signal::LdCompWaitL1Miss, Signal::LdCompWaitL2Miss, Signal::LdCompWaitPfpBusy];
        assert!(sum(&c, &parts) <= c.get(Signal::LdCompWait), "seed {seed}: parts of the wait for memory accesses");
        assert!(c.get(Signal::FlCompWait) <= c.get(Signal::EuCompWait), "seed {seed}");
    }
}

#[test]
fn the_same_program_takes_the_same_cycles_again() {
    let run = || {
        let mut r = Random::new(42);
        let program: Vec<Inst> = (0..2000).map(|_| random_inst(&mut r)).collect();
        let mut rig = Rig::new(machine());
        (rig.time(&program), rig.core.counters())
    };
    assert_eq!(run(), run());
}

#[test]
fn a_chase_through_memory_waits_for_l2_misses_between_its_commits() {
    let mut rig = Rig::new(machine());
    let chase: Vec<Inst> = (0..10).map(|i| ldr(1, 1, DATA + i * LINE)).collect();
    let (cycles, counts) = rig.count(&chase);
    // From the first decode on, every cycle in which none of the ten commits.
    assert_eq!(counts.get(Signal::LdCompWaitL2Miss), cycles + 1 - 10);
    assert_eq!(counts.get(Signal::LdCompWaitL2MissEx), cycles + 1 - 10);
    assert_eq!(counts.get(Signal::LdCompWait), cycles + 1 - 10);
}

#[test]
fn a_chase_through_the_l2_cache_waits_for_l1_misses() {
    let mut rig = Rig::new(machine());
    // Five lines of one set do not fit the four ways of the L1D cache.
    let lines: Vec<u64> = (0..5).map(|i| DATA + i * 16 * 1024).collect();
    rig.warm(lines.clone());
    let chase: Vec<Inst> = lines.iter().cycle().take(10).map(|&a| ldr(1, 1, a)).collect();
    rig.time(&chase);
    let (cycles, counts) = rig.count(&chase);
    assert_eq!(counts.get(Signal::LdCompWaitL1Miss), cycles + 1 - 10);
    assert_eq!(counts.get(Signal::LdCompWaitL2Miss), 0);
}

#[test]
fn waiting_for_computation_is_split_into_vector_and_other_operations() {
    let mut rig = Rig::new(machine());
    let (cycles, counts) = rig.count(&vec![fadd(1, 1); 5]);
    assert_eq!(counts.get(Signal::EuCompWait), cycles + 1 - 5);
    assert_eq!(counts.get(Signal::FlCompWait), cycles + 1 - 5);
    let (cycles, counts) = rig.count(&vec![mul(1, 1); 5]);
    assert_eq!(counts.get(Signal::EuCompWait), cycles + 1 - 5);
    assert_eq!(counts.get(Signal::FlCompWait), 0);
}

#[test]
fn cycles_in_which_no_instruction_is_completed_count_as_micro_operations_only() {
    let mut rig = Rig::new(machine());
    let (_, counts) = rig.count(&[sequential(1, 2)]);
    assert_eq!(counts.get(Signal::UopOnlyCommit), 1);
}
