//! The account of cycles: every cycle is counted once, by what committed in it or by what was waited for.

use fxscope_counts::{Signal, Signals, Stall};
use fxscope_machine::Spec;
use fxscope_pipeline::Measures;

use crate::common::*;

fn random_inst(r: &mut Random) -> Inst {
    let mut reg = || r.below(8) as u8;
    let (d, s, t) = (reg(), reg(), reg());
    let addr = DATA + (r.below(1 << 20) & !7);
    match r.below(19) {
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
        15 => wfe(),
        16 => gather(d, s, t, 0, std::array::from_fn(|i| Some(addr + 8 * 97 * i as u64))),
        17 => scatter(d, s, t, 0, std::array::from_fn(|i| Some(addr + 8 * 97 * i as u64))),
        _ => sel(d, s, t),
    }
}

const COMMITS: [Signal; 5] = [Signal::Commit0, Signal::Commit1, Signal::Commit2, Signal::Commit3, Signal::Commit4];

fn sum(counts: &Signals, signals: &[Signal]) -> u64 {
    signals.iter().map(|&s| counts.get(s)).sum()
}

/// What a random program did to a core, and what the program was.
struct Ran {
    rig: Rig,
    blocks: Vec<Block>,
    /// Instructions executed that count as such.
    effective: u64,
    /// Cycles that the core spent in the kernel and asleep, before and during the program.
    paused: u64,
    slept: u64,
}

/// Blocks of random instructions in random order, with calls of the kernel and sleep in between.
fn random_run(seed: u64) -> Ran {
    let mut r = Random::new(seed);
    let mut spec = machine();
    spec.tables.prefetch.l1 = seed.is_multiple_of(2);
    let mut rig = Rig::new(spec);
    let mut effective = 1024; // the rig's own first program
    let mut blocks = Vec::new();
    let mut sizes = Vec::new();
    for i in 0..4 {
        let mut insts: Vec<Inst> = (0..5 + r.below(40)).map(|_| random_inst(&mut r)).collect();
        insts.push(if r.below(2) == 0 { b_cond() } else { cbz(r.below(8) as u8) });
        sizes.push(insts.iter().filter(|i| i.info.kind != fxscope_isa::InstKind::MovPrfx).count() as u64);
        blocks.push(Block::new(CODE + 1024 * i, &insts, &rig.spec));
    }
    let before = rig.core.counters();
    let (mut paused, mut slept) = (before.get(Signal::RobEmpty), 0);
    for _ in 0..8 {
        let order: Vec<usize> = (0..30).map(|_| r.below(4) as usize).collect();
        effective += order.iter().map(|&i| sizes[i]).sum::<u64>();
        rig.run_blocks(&mut blocks, &order);
        let cycles = r.below(300);
        if r.below(2) == 0 {
            rig.core.pause(cycles);
            paused += cycles;
        } else {
            rig.core.sleep(cycles);
            slept += cycles;
        }
    }
    rig.core.finish();
    Ran { rig, blocks, effective, paused, slept }
}

#[test]
fn over_random_programs_every_cycle_and_every_instruction_is_accounted_for_exactly_once() {
    for seed in 1..=100 {
        let Ran { rig, blocks, effective, slept, .. } = random_run(seed);
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
        let instructions = blocks.iter().flat_map(|block| block.profile());
        let uncounted: u64 = instructions.map(|i| i.stalls[Stall::StoreData as usize]).sum();
        let parts = sum(&c, &waits) + uncounted;
        assert_eq!(parts, c.get(Signal::Commit0), "seed {seed}: parts of the cycles without commit");
        let parts = [Signal::LdCompWaitL1Miss, Signal::LdCompWaitL2Miss, Signal::LdCompWaitPfpBusy];
        assert!(sum(&c, &parts) <= c.get(Signal::LdCompWait), "seed {seed}: parts of the wait for memory accesses");
        assert!(c.get(Signal::FlCompWait) <= c.get(Signal::EuCompWait), "seed {seed}");
        assert_eq!(c.get(Signal::WfeWfiCycle), slept, "seed {seed}: asleep");
    }
}

#[test]
fn over_random_programs_the_counters_of_parts_add_up_to_those_of_the_whole() {
    use Signal::*;
    let mut all = Signals::default();
    for seed in 1..=100 {
        let Ran { rig, blocks, .. } = random_run(seed);
        let mut c = rig.core.counters();
        blocks.iter().for_each(|block| block.add_mix(&mut c));
        let whole_and_parts: [(Signal, &[Signal]); 5] = [
            (L1dCacheRefill, &[L1dCacheRefillDm, L1dCacheRefillPrf]),
            (L2dCacheRefill, &[L2dCacheRefillDm, L2dCacheRefillPrf]),
            (BusReadTotalMem, &[ReadMemCmg0]),
            (L2dCacheWb, &[BusWriteTotalCmg0, BusWriteTotalCmg1, BusWriteTotalCmg2, BusWriteTotalCmg3]),
            (BusWriteTotalMem, &[BusWriteTotalCmg0]),
        ];
        for (whole, parts) in whole_and_parts {
            assert_eq!(c.get(whole), sum(&c, parts), "seed {seed}: {}", whole.name());
        }
        let within = [
            (L1dCacheRefillHwprf, L1dCacheRefillPrf),
            (L2dCacheRefillHwprf, L2dCacheRefillPrf),
            (L2dCacheRefill, L2dCache),
            (L1dCacheRefillDm, L1dCache),
            (L1iCacheRefill, L1iCache),
            (L2dTlbRefill, L2dTlb),
            (L1dTlbRefill, L1dCache),
            (BrMisPred, BrPred),
            (BusReadTotalMem, L2dCacheRefill),
        ];
        for (part, whole) in within {
            assert!(c.get(part) <= c.get(whole), "seed {seed}: {} of {}", part.name(), whole.name());
        }
        all.merge(&c);
    }
    // What was compared was there.
    for signal in [L1dCacheRefillDm, L2dCacheRefillDm, BusReadTotalMem, L2dTlbRefill, BrMisPred] {
        assert!(all.get(signal) > 0, "{}", signal.name());
    }
}

#[test]
fn every_count_of_a_core_is_a_measure_of_its_blocks_or_independent_of_time() {
    let every = Measures::rounded(&[1.0; Measures::COUNT]).signals();
    for seed in 1..=100 {
        let counters = random_run(seed).rig.core.counters();
        for (signal, count) in counters.iter().filter(|&(signal, _)| !signal.is_untimed()) {
            assert!(count == 0 || every.get(signal) > 0, "seed {seed}: {}", signal.name());
        }
    }
}

#[test]
fn over_random_programs_the_instructions_cycles_and_causes_add_up_to_those_of_the_core() {
    for seed in 1..=100u64 {
        let before = {
            let mut spec = machine();
            spec.tables.prefetch.l1 = seed.is_multiple_of(2);
            Rig::new(spec).core.counters()
        };
        let Ran { rig, blocks, paused, slept, .. } = random_run(seed);
        let since = rig.core.counters().since(&before);
        let instructions = || blocks.iter().flat_map(|block| block.profile());
        let mut by_cause = Signals::default();
        instructions().for_each(|i| by_cause.add_stalls(&i.stalls));
        let outside = paused - before.get(Signal::RobEmpty) + slept;
        for stall in Stall::ALL {
            for &event in stall.events() {
                let idle = match event {
                    Signal::RobEmpty => outside,
                    Signal::WfeWfiCycle => slept,
                    Signal::KernelCycles => outside - slept,
                    _ => 0,
                };
                assert_eq!(by_cause.get(event) + idle, since.get(event), "seed {seed}: {}", event.name());
            }
        }
        for i in instructions() {
            let uncommitted: u64 = i.stalls.iter().sum();
            assert!(uncommitted <= i.cycles, "seed {seed}: {i:?}");
        }
        // The cycle of the last commit before the programs counts as theirs.
        let cycles: u64 = instructions().map(|i| i.cycles).sum();
        assert_eq!(cycles + outside, since.get(Signal::CpuCycles) - 1, "seed {seed}: cycles");
        let pipes = [
            Signal::ExaVal,
            Signal::ExbVal,
            Signal::EagaVal,
            Signal::EagbVal,
            Signal::FlaVal,
            Signal::FlbVal,
            Signal::PrxVal,
        ];
        for (pipe, event) in pipes.into_iter().enumerate() {
            let taken: u64 = instructions().map(|i| i.pipes[pipe]).sum();
            assert_eq!(taken, since.get(event), "seed {seed}: {}", event.name());
        }
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

/// Of a chase of `n` loads that miss: cycles in which the oldest is not known to miss. The first is waited for from its
/// decode; each other from the cycle after the commit of the one before, whose data it needed at stage R.
fn until_misses_are_known(spec: &Spec, n: u64) -> u64 {
    let known = spec.load_store.load_integer;
    let committed_behind_data = spec.stages.commit_short - spec.load_store.load_integer;
    spec.stages.address + known + (n - 1) * (known - committed_behind_data - 1)
}

#[test]
fn a_chase_through_memory_waits_for_each_level_until_it_is_known_to_miss() {
    let mut rig = Rig::new(machine());
    let chase: Vec<Inst> = (0..10).map(|i| ldr(1, 1, DATA + i * LINE)).collect();
    let (cycles, counts) = rig.count(&chase);
    // From the first decode on, every cycle in which none of the ten commits.
    assert_eq!(counts.get(Signal::LdCompWait), cycles + 1 - 10);
    let l1 = until_misses_are_known(&rig.spec, 10);
    let timing = &rig.spec.l2_timing;
    let l2 = 10 * (timing.request + timing.miss_detect - rig.spec.load_store.load_integer);
    assert_eq!(counts.get(Signal::LdCompWaitL1Miss), l2);
    assert_eq!(counts.get(Signal::LdCompWaitL2Miss), cycles + 1 - 10 - l1 - l2);
    for (all, integer) in [
        (Signal::LdCompWait, Signal::LdCompWaitEx),
        (Signal::LdCompWaitL1Miss, Signal::LdCompWaitL1MissEx),
        (Signal::LdCompWaitL2Miss, Signal::LdCompWaitL2MissEx),
    ] {
        assert_eq!(counts.get(all), counts.get(integer), "integer loads");
    }
}

#[test]
fn a_load_of_a_line_that_a_prefetch_has_asked_memory_for_waits_for_memory_once_its_miss_is_known() {
    let mut rig = Rig::new(machine());
    let early = ldr(1, 1, DATA);
    let (alone, _) = rig.count(std::slice::from_ref(&early));
    let mut rig = Rig::new(machine());
    // The second load is independent: when the first has its data, so has the second, whose miss has long been known.
    let (cycles, counts) = rig.count(&[early, ldr(2, 2, DATA + 8)]);
    assert!(cycles <= alone + 1, "{cycles} after {alone}");
    let timing = &rig.spec.l2_timing;
    let l2 = timing.request + timing.miss_detect - rig.spec.load_store.load_integer;
    assert_eq!(counts.get(Signal::LdCompWaitL1Miss), l2);
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
    assert_eq!(counts.get(Signal::LdCompWaitL1Miss), cycles + 1 - 10 - until_misses_are_known(&rig.spec, 10));
    assert_eq!(counts.get(Signal::LdCompWaitL2Miss), 0);
}

#[test]
fn memory_accesses_of_sve_and_simd_instructions_are_not_charged_as_those_of_base_instructions() {
    for (inst, base) in [
        (ldr(1, 1, DATA), true),
        (str(1, 2, DATA), true),
        (ldr_d(1, 1, DATA), false),
        (ldr_p(1, 1, DATA), false),
        (ld1d(1, 1, 0, DATA), false),
        (st1d(1, 1, 0, DATA), false),
    ] {
        let mut rig = Rig::new(machine());
        let (_, counts) = rig.count(&[inst]);
        let all = counts.get(Signal::LdCompWait);
        assert!(all > 0);
        assert_eq!(counts.get(Signal::LdCompWaitEx), if base { all } else { 0 });
    }
}

#[test]
fn what_an_instruction_waits_for_is_charged_to_it_and_its_time_in_flight_is_from_issue_to_commit() {
    let mut rig = Rig::new(machine());
    let mut blocks = [Block::new(CODE, &[mul(1, 1), fadd(2, 2), add(3, 3)], &rig.spec)];
    rig.time_blocks(&mut blocks, &[0]);
    let [mul, fadd, add] = blocks[0].profile() else { panic!("three instructions") };
    let stages = &rig.spec.stages;
    // From the cycle in which it is dispatched to the one before its commit.
    assert_eq!(mul.stalls[Stall::BaseOperation as usize], stages.integer + 5 + stages.commit_integer);
    assert_eq!(mul.in_flight, 5 + stages.commit_integer);
    assert_eq!(mul.pipes, [1, 0, 0, 0, 0, 0, 0, 0]);
    // It commits nine cycles after its start in stage X, which comes later than that of integer operations.
    assert_eq!(fadd.in_flight, 9 + stages.commit_vector);
    let later = (stages.vector + 9 + stages.commit_vector) - (stages.integer + 5 + stages.commit_integer);
    assert_eq!(fadd.stalls[Stall::VectorOperation as usize], later - 1);
    assert_eq!(add.stalls.iter().sum::<u64>(), 0, "it commits with the one before it");
}

#[test]
fn a_movprfx_that_commits_alone_has_the_cycle() {
    let mut rig = Rig::new(machine());
    // Not packed: a load is not destructive. The load commits later.
    let mut blocks = [Block::new(CODE, &[nop(), movprfx(1, 2), ld1d(3, 3, 0, DATA)], &rig.spec)];
    let before = rig.core.counters().get(Signal::SingleMovprfxCommit);
    rig.time_blocks(&mut blocks, &[0]);
    assert_eq!(rig.core.counters().get(Signal::SingleMovprfxCommit) - before, 1);
    assert_eq!(blocks[0].profile()[1].stalls[Stall::Movprfx as usize], 1);
}

#[test]
fn time_asleep_counts_as_such_and_time_in_the_kernel_does_not() {
    let mut rig = Rig::new(machine());
    let before = rig.core.counters();
    rig.core.sleep(100);
    rig.core.pause(50);
    let since = rig.core.counters().since(&before);
    assert_eq!(since.get(Signal::WfeWfiCycle), 100);
    assert_eq!(since.get(Signal::KernelCycles), 50);
    assert_eq!(since.get(Signal::RobEmpty), 150);
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
    // Four cycles in a vector pipe.
    let (cycles, counts) = rig.count(&vec![sel(1, 1, 1); 5]);
    assert_eq!(counts.get(Signal::EuCompWait), cycles + 1 - 5);
    assert_eq!(counts.get(Signal::FlCompWait), 0);
}

#[test]
fn addresses_of_a_scatter_commit_before_its_data_which_are_waited_for_by_no_cause_that_is_counted() {
    let late = vec![fadd(1, 1); 20];
    let scatter = scatter(1, 2, 3, 0, std::array::from_fn(|i| Some(DATA + LINE * i as u64)));
    let (alone, _) = Rig::cached(machine()).count(&late);
    let program: Vec<_> = late.into_iter().chain([scatter]).collect();
    let mut rig = Rig::cached(machine());
    let (cycles, counts) = rig.count(&program);
    // Data pass EXA, a bypass and FLA (table 16-3), as addresses have done before, and commit as those of stores do;
    // the second half follows in the next cycle. The last addition commits when it has been judged.
    let stages = &rig.spec.stages;
    let first_half = 1 + 3 + stages.commit_long - stages.commit_vector;
    assert_eq!(cycles, alone + first_half + 1);
    assert_eq!(counts.get(Signal::UopOnlyCommit), 2, "addresses, and half of the data");
    let counted = [Signal::LdCompWait, Signal::EuCompWait, Signal::RobEmpty, Signal::UopOnlyCommit];
    let counted: u64 = counted.map(|cause| counts.get(cause)).iter().sum();
    assert_eq!(counts.get(Signal::Commit0) - counted, first_half - 2);
}

#[test]
fn cycles_in_which_no_instruction_is_completed_count_as_micro_operations_only() {
    let mut rig = Rig::new(machine());
    let (_, counts) = rig.count(&[sequential(1, 2)]);
    assert_eq!(counts.get(Signal::UopOnlyCommit), 1);
}
