//! How far the core looks ahead: two long misses overlap until the instructions between them fill a resource.

use crate::common::*;

/// Far longer than everything else in these tests.
const MISS: u64 = 1_001;

fn rig() -> Rig {
    let mut spec = machine();
    spec.tables.memory.latency_nearest = MISS;
    spec.tables.memory.latency_farthest = MISS;
    let mut rig = Rig::new(spec);
    rig.warm((64..128).map(|i| DATA + i * LINE));
    rig
}

/// Whether a miss behind `fillers`, behind another miss, overlaps with that one.
fn overlap(first: Inst, fillers: &[Inst], second: Inst) -> bool {
    let program: Vec<Inst> = [first].into_iter().chain(fillers.iter().cloned()).chain([second]).collect();
    let cycles = rig().time(&program);
    assert!(!(MISS + 100..2 * MISS - 20).contains(&cycles), "{cycles} cycles are neither one miss nor two");
    cycles < 2 * MISS - 20
}

/// `capacity` fillers leave room for what follows them, one more does not.
fn fills_up_at(capacity: usize, first: &Inst, filler: &Inst, second: &Inst) {
    let fillers = |n| vec![filler.clone(); n];
    assert!(overlap(first.clone(), &fillers(capacity), second.clone()), "{capacity} fillers");
    assert!(!overlap(first.clone(), &fillers(capacity + 1), second.clone()), "{} fillers", capacity + 1);
}

fn integer_miss() -> Inst {
    ldr(1, 2, DATA)
}
fn vector_miss() -> Inst {
    ld1d(1, 2, 0, DATA)
}

#[test]
fn the_commit_stack_holds_128_micro_operations() {
    fills_up_at(128 - 2, &integer_miss(), &nop(), &ldr(3, 4, DATA + LINE));
}

#[test]
fn a_group_that_is_not_full_takes_four_entries_all_the_same() {
    // The first miss takes one group of the 32, each filler two, the second miss the last.
    fills_up_at((32 - 2) / 2, &integer_miss(), &sequential(5, 6), &ldr(3, 4, DATA + LINE));
}

#[test]
fn a_group_ends_with_a_taken_branch() {
    let run = |blocks_between: u64| {
        let mut rig = rig();
        let spec = rig.spec.clone();
        let jump = |i: u64, inst: Inst| Block::new(CODE + 32 * i, &[inst, b()], &spec);
        let mut blocks = vec![jump(0, integer_miss())];
        blocks.extend((1..=blocks_between).map(|i| jump(i, nop())));
        blocks.push(jump(blocks_between + 1, ldr(3, 4, DATA + LINE)));
        let order: Vec<usize> = (0..blocks.len()).collect();
        (0..=blocks_between).for_each(|i| rig.take(CODE + 32 * i + 4, &b(), CODE + 32 * i + 32));
        rig.time_blocks(&mut blocks, &order)
    };
    // Two micro-operations a block, each block a group of the 32.
    assert!(run(30) < MISS + 200);
    assert!(run(31) > 2 * MISS - 20);
}

#[test]
fn sixty_four_general_registers_can_be_renamed() {
    fills_up_at(64, &vector_miss(), &add(5, 6), &ld1d(3, 4, 0, DATA + LINE));
}

#[test]
fn ninety_six_vector_registers_can_be_renamed() {
    fills_up_at(96, &integer_miss(), &fadd(5, 6), &ldr(3, 4, DATA + LINE));
}

#[test]
fn thirty_two_predicate_registers_can_be_renamed() {
    fills_up_at(32, &integer_miss(), &ptrue(5), &ldr(3, 4, DATA + LINE));
}

#[test]
fn forty_loads_can_be_in_flight() {
    fills_up_at(40 - 2, &integer_miss(), &ldr(5, 6, DATA + 64 * LINE), &ldr(3, 4, DATA + LINE));
}

#[test]
fn a_gather_takes_four_fetch_ports() {
    let hits = std::array::from_fn(|i| Some(DATA + 64 * LINE + 8 * i as u64));
    // One for each miss and 36 for nine gathers; ten would need 42.
    fills_up_at(9, &integer_miss(), &gather(5, 6, 7, 0, hits), &ldr(3, 4, DATA + LINE));
}

#[test]
fn stores_take_fetch_ports_too() {
    let stores: Vec<Inst> = (0..19).map(|i| str(5, 6, DATA + (64 + i) * LINE)).collect();
    let with_loads = |n: usize| -> Vec<Inst> {
        let mut fillers = stores.clone();
        fillers.extend(vec![ldr(5, 6, DATA + 100 * LINE); n]);
        fillers
    };
    assert!(overlap(integer_miss(), &with_loads(19), ldr(3, 4, DATA + LINE)));
    assert!(!overlap(integer_miss(), &with_loads(20), ldr(3, 4, DATA + LINE)));
}

#[test]
fn a_full_station_stops_dispatch() {
    // Both RSE fill up with operations that wait for the miss; RSA would have room for the second one.
    let waiting = op("base:CSEL").reads(&[x(1)]).writes(&[x(5)]);
    fills_up_at(40, &integer_miss(), &waiting, &ldr(3, 4, DATA + LINE));
}

#[test]
fn a_vector_operation_gives_its_station_entry_back_before_it_starts() {
    let mut rig = rig();
    let s = rig.spec.clone();
    // Twenty operations fill RSE0 and wait for a division. What follows, a chain in another pipe of that station,
    // begins with the entry that the first of them leaves.
    let mut program = vec![op("sve:FDIV [T=S]").reads(&[z(2)]).writes(&[z(1)])];
    program.extend(vec![vector_and(5, 1); 20]);
    program.push(ptrue(1));
    program.extend(vec![pand(1, 1); 12]);
    let left = s.stages.vector + 98 - s.stations.release_vector;
    assert_eq!(rig.time(&program), left + s.stages.predicate + 13 * 3);
}

#[test]
fn a_load_gives_its_station_entry_back_when_its_address_is_made() {
    let mut rig = rig();
    let s = rig.spec.clone();
    // Twenty loads fill RSA0 and RSA1 and wait for multiplications. One more has the entry that the first of them
    // leaves, and what is decoded with it begins then.
    let mut program = vec![mul(1, 1); 16];
    program.extend(vec![ldr(5, 1, DATA + 64 * LINE); 20 + 1]);
    program.push(ptrue(1));
    program.extend(vec![pand(1, 1); 7]);
    let left = s.stages.integer + 16 * 5 + s.bypass.integer_other_pipe - s.stations.release_address;
    assert_eq!(rig.time(&program), left + s.stages.predicate + 8 * 3);
}

#[test]
fn a_micro_operation_behind_a_full_commit_stack_enters_when_the_oldest_group_has_left() {
    let mut rig = rig();
    let mut program = vec![integer_miss()];
    program.extend(vec![nop(); 127]);
    // The miss and three others commit together, then four a cycle.
    let first = rig.time(&program[..1]);
    let mut rig = self::rig();
    assert_eq!(rig.time(&program), first + 124 / 4);
    // One more micro-operation finds the first group free the cycle after, and is not the last to commit.
    program.push(nop());
    let mut rig = self::rig();
    assert_eq!(rig.time(&program), first + 128 / 4);
}

#[test]
fn commit_takes_four_a_cycle_and_never_two_groups_together() {
    let groups = |n: usize| vec![sequential(5, 6); n];
    let mut program = vec![integer_miss()];
    program.extend(groups(7));
    let mut rig = rig();
    let alone = rig.time(&program[..1]);
    let mut rig = self::rig();
    assert_eq!(rig.time(&program), alone + 14, "fourteen groups of one");
}

#[test]
fn a_young_operation_commits_after_its_elders_though_it_finished_long_before() {
    let mut rig = rig();
    let alone = rig.time(&[integer_miss()]);
    let mut rig = self::rig();
    assert_eq!(rig.time(&[integer_miss(), add(5, 6)]), alone);
}
