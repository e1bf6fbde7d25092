//! Method 5 where cycles with outstanding misses are counted by what caused them, compared with arithmetic.

use fxscope_latency::methods::stalls::{self, Coefficients};
use fxscope_latency::{Counts, Quantity};

use crate::methods::{PLAIN, machine, near, of};

/// A thread of 4,000,000 cycles that waits for memory in 1,000,000 of them; misses of loads are outstanding in 2,000,000, served by main
/// memory in `main`. All misses of that memory take 200 cycles, and none overlaps with another.
fn served(main: f64) -> Counts {
    Counts::new(0.002, 1.0)
        .with(Quantity::Cycles, 4e6)
        .with(Quantity::MemoryWait, 1e6)
        .with(Quantity::Misses, 4e4)
        .with(Quantity::CacheMisses, 1e4)
        .with(Quantity::Prefetched, 0.0)
        .with(Quantity::InFlight, 16e6)
        .with(Quantity::Outstanding, 2e6)
        .with(Quantity::MainDemanded, 1e4)
        .with(Quantity::LoadCycles, 2e6)
        .with(Quantity::MainLoadCycles, main)
        .with(Quantity::MainLoadBursts, main / 200.0)
        .with(Quantity::MainCodeCycles, 0.0)
}

/// The slowdown of a program with memory that is 400 cycles slower.
fn slowed(whole: &Counts, phases: &[Counts]) -> f64 {
    let mut system = machine();
    system.details.as_mut().expect("described").cache_latency = Some(176.0);
    stalls::slowdown(&of(whole, phases, &system), 200e-9, PLAIN)
}

#[test]
fn cycles_with_misses_that_main_memory_serves_are_waits_for_it_whether_work_hides_them_or_not() {
    // 1,000,000 / 200 waits, each 400 cycles longer.
    near(slowed(&served(1e6), &[]), 1.5);
    near(slowed(&served(1e6).with(Quantity::MemoryWait, 0.0), &[]), 1.5);
    // Instruction fetches wait, too.
    near(slowed(&served(1e6).with(Quantity::MainCodeCycles, 2e5), &[]), 1.6);
    // Misses that wait for each other at the memory take longer, so there are fewer waits.
    near(slowed(&served(1e6).with(Quantity::Outstanding, 4e6), &[]), 1.25);
    near(slowed(&served(0.0), &[]), 1.0);
}

#[test]
fn a_program_waits_for_main_memory_at_least_as_long_as_its_oldest_instruction_does() {
    // It waits in 1,900,000 cycles. Half of the cycles with outstanding misses are main memory's, and so are the waits: 950,000.
    let all = served(1e6).with(Quantity::Misses, 1e5).with(Quantity::Prefetched, 1e5).with(Quantity::InFlight, 4e8);
    let slow = all.with(Quantity::CacheMisses, 1e5).with(Quantity::MemoryWait, 1.9e6);
    near(slowed(&slow.clone().with(Quantity::MainLoadBursts, 0.0), &[]), 1.475);
    // A hundred prefetches are outstanding. Their streams start together: ten times fewer waits than cycles show, if the program shows
    // no more waiting.
    let together = Coefficients { together: 1.0 / 11.0, distance: 1e9, ..PLAIN };
    let at = |counts: &Counts| stalls::slowdown(&of(counts, &[], &machine()), 200e-9, together);
    near(
        at(&slow.clone().with(Quantity::MemoryWait, 0.0)) - at(&slow.clone().with(Quantity::MainLoadCycles, 0.0)),
        0.05,
    );
}

#[test]
fn misses_that_overlap_are_waited_for_once_a_burst_and_in_part_beyond() {
    // 1,000 bursts of 1,000 cycles, without a visible wait.
    let counts = served(1e6).with(Quantity::MemoryWait, 0.0).with(Quantity::MainLoadBursts, 1e3);
    let system = machine();
    let at =
        |hidden| stalls::slowdown(&of(&counts, &[], &system), 200e-9, Coefficients { hidden, distance: 1e9, ..PLAIN });
    near(at(0.0), 1.1);
    near(at(0.5), 1.3);
    near(at(1.0), 1.5);
}

#[test]
fn stores_add_time_once_they_fill_the_write_buffer() {
    // 8 entries, 7 of which can wait for lines.
    let entries = machine().details.expect("described").store_buffers;
    assert_eq!(entries, 8.0);
    let stores = |misses: f64| served(0.0).with(Quantity::MainStores, misses);
    // 600 cycles for each line, 7 at a time: 40,000 take 3,428,571 cycles of the 4,000,000.
    near(slowed(&stores(4e4), &[]), 1.0);
    near(slowed(&stores(7e4), &[]), 1.5);
    // More than 7 were outstanding in the run: 160,000 lines of 200 cycles take all of it, 8 at a time.
    near(slowed(&stores(1.6e5), &[]), 3.0);
    // A phase has all of them.
    let phase = |misses: f64| served(0.0).with(Quantity::Cycles, 2e6).with(Quantity::MainStores, misses);
    near(slowed(&stores(3.5e4), &[phase(0.0), phase(3.5e4)]), 1.25);
}

#[test]
fn without_counts_of_causes_waits_are_estimated_as_before() {
    let counted = served(1e6);
    for missing in [Quantity::LoadCycles, Quantity::MainLoadCycles, Quantity::MainLoadBursts, Quantity::MainCodeCycles]
    {
        let mut counts = counted.clone().with(Quantity::MainStores, 1e6);
        counts.set(missing, None);
        let mut none = counts.clone();
        [
            Quantity::LoadCycles,
            Quantity::MainLoadCycles,
            Quantity::MainLoadBursts,
            Quantity::MainCodeCycles,
            Quantity::MainDemanded,
            Quantity::MainStores,
        ]
        .into_iter()
        .for_each(|quantity| none.set(quantity, None));
        near(slowed(&counts, &[]), slowed(&none, &[]));
    }
}
