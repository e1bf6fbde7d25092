//! Blades and windows as specified, and the rules of the driver.

use proptest::prelude::*;

use super::*;

const MACHINE: BarrierPlatform = BarrierPlatform { blades: 6, cores: 13, latency_ns: LATENCY };
const LATENCY: u64 = 60;
const FILE: Owner = (1, 1);
const OTHER_FILE: Owner = (1, 2);

/// Returns core `core` of CMG 1 of a machine with CPUs 24 to 35 there.
fn place(core: u32) -> Place {
    Place { cpu: 24 + core, cmg: 1, core }
}

fn places(cores: &[u32]) -> Vec<Place> {
    cores.iter().map(|&core| place(core)).collect()
}

/// Returns a blade for these cores, with window 0 of each assigned to it.
fn ready(cores: &[u32]) -> Barriers {
    let mut barriers = Barriers::default();
    let (_, number) = barriers.allocate(&MACHINE, FILE, places(cores)).expect("free");
    for &core in cores {
        assert_eq!(barriers.assign(FILE, place(core), number, 0), Ok(0));
    }
    barriers
}

fn write(barriers: &mut Barriers, core: u32, value: bool, now_ns: u64) {
    barriers.write(place(core).cpu, 0, value, now_ns, LATENCY).expect("assigned");
}

fn read(barriers: &mut Barriers, core: u32, now_ns: u64) -> bool {
    barriers.read(place(core).cpu, 0, now_ns).expect("assigned")
}

#[test]
fn lbsy_changes_exactly_one_latency_after_the_last_core_has_written() {
    let mut barriers = ready(&[0, 3, 11]);
    for (core, now_ns) in [(3, 100), (11, 150), (0, 200)] {
        assert!(!read(&mut barriers, core, now_ns));
        write(&mut barriers, core, true, now_ns);
    }
    for core in [0, 3, 11] {
        assert!(!read(&mut barriers, core, 200 + LATENCY - 1));
        assert!(read(&mut barriers, core, 200 + LATENCY));
    }
}

#[test]
fn only_participating_cores_receive_one_event_when_lbsy_changes() {
    let mut barriers = ready(&[0, 3]);
    write(&mut barriers, 0, true, 100);
    assert_eq!(barriers.event_ns(place(0).cpu), None);
    write(&mut barriers, 3, true, 110);
    for core in [0, 3] {
        let cpu = place(core).cpu;
        assert_eq!(barriers.event_ns(cpu), Some(110 + LATENCY));
        assert!(!barriers.take_event(cpu, 110 + LATENCY - 1));
        assert!(barriers.take_event(cpu, 110 + LATENCY));
        assert_eq!(barriers.event_ns(cpu), None);
    }
    assert_eq!(barriers.event_ns(place(1).cpu), None);
}

#[test]
fn writing_the_same_value_again_completes_nothing() {
    let mut barriers = ready(&[0, 1]);
    write(&mut barriers, 0, true, 100);
    write(&mut barriers, 0, true, 101);
    write(&mut barriers, 1, false, 102);
    assert!(!read(&mut barriers, 0, u64::MAX));
    assert_eq!(barriers.event_ns(place(0).cpu), None);
}

#[test]
fn blades_do_not_disturb_each_other() {
    let mut barriers = ready(&[0, 1]);
    let (_, second) = barriers.allocate(&MACHINE, FILE, places(&[1, 2])).expect("free");
    assert_eq!(barriers.assign(FILE, place(1), second, -1), Ok(1));
    assert_eq!(barriers.assign(FILE, place(2), second, 3), Ok(3));
    barriers.write(place(1).cpu, 1, true, 0, LATENCY).expect("assigned");
    barriers.write(place(2).cpu, 3, true, 0, LATENCY).expect("assigned");
    assert_eq!(barriers.read(place(2).cpu, 3, LATENCY), Some(true));
    assert!(!read(&mut barriers, 1, LATENCY));
}

#[test]
fn an_unassigned_window_can_be_neither_read_nor_written() {
    let mut barriers = ready(&[0, 1]);
    assert_eq!(barriers.read(place(0).cpu, 1, 0), None);
    assert_eq!(barriers.write(place(0).cpu, 1, true, 0, LATENCY), None);
    assert_eq!(barriers.read(place(2).cpu, 0, 0), None);
    barriers.unassign(FILE, place(0), 0).expect("assigned");
    assert_eq!(barriers.read(place(0).cpu, 0, 0), None);
}

#[test]
fn a_blade_needs_at_least_two_cores_all_of_one_cmg() {
    let mut barriers = Barriers::default();
    let elsewhere = Place { cpu: 12, cmg: 0, core: 0 };
    let beyond = Place { cpu: 99, cmg: 1, core: MACHINE.cores };
    for members in [vec![], places(&[4]), vec![place(0), elsewhere], vec![place(0), beyond]] {
        assert_eq!(barriers.allocate(&MACHINE, FILE, members), Err(Errno::INVAL));
    }
}

#[test]
fn a_cmg_has_the_machines_number_of_blades_and_a_core_four_windows() {
    let mut barriers = Barriers::default();
    for number in 0..MACHINE.blades {
        assert_eq!(barriers.allocate(&MACHINE, FILE, places(&[0, 1])), Ok((1, number)));
    }
    assert_eq!(barriers.allocate(&MACHINE, FILE, places(&[0, 1])), Err(Errno::BUSY));
    for window in 0..4 {
        assert_eq!(barriers.assign(FILE, place(0), u32::from(window), -1), Ok(window));
    }
    assert_eq!(barriers.assign(FILE, place(0), 4, -1), Err(Errno::BUSY));
    assert_eq!(barriers.used_blades(1), 0x3f);
    assert_eq!((barriers.used_windows(place(0).cpu), barriers.used_windows(place(1).cpu)), (0xf, 0));
}

#[test]
fn window_requests_fail_with_the_drivers_errors() {
    let mut barriers = ready(&[0, 1]);
    let (_, second) = barriers.allocate(&MACHINE, FILE, places(&[0, 1])).expect("free");
    for (what, core, number, window, error) in [
        ("no such blade", 0, 2, 1, Errno::INVAL),
        ("core does not participate", 2, second, 1, Errno::INVAL),
        ("core has a window to the blade", 0, 0, 1, Errno::INVAL),
        ("no such window", 0, second, 4, Errno::INVAL),
        ("no such window", 0, second, -2, Errno::INVAL),
        ("window in use", 0, second, 0, Errno::BUSY),
    ] {
        assert_eq!(barriers.assign(FILE, place(core), number, window), Err(error), "{what}");
    }
    assert_eq!(barriers.unassign(FILE, place(0), second), Err(Errno::INVAL), "not assigned");
}

#[test]
fn a_blade_belongs_to_the_open_file_that_allocated_it_and_is_freed_with_it() {
    let mut barriers = ready(&[0, 1]);
    assert_eq!(barriers.free(OTHER_FILE, (1, 0)), Err(Errno::INVAL));
    assert_eq!(barriers.assign(OTHER_FILE, place(0), 0, 1), Err(Errno::INVAL));
    assert_eq!(barriers.unassign(OTHER_FILE, place(0), 0), Err(Errno::INVAL));
    barriers.keep(&[FILE].into());
    assert_eq!(barriers.used_blades(1), 1);
    barriers.keep(&[OTHER_FILE].into());
    assert_eq!((barriers.used_blades(1), barriers.used_windows(place(0).cpu)), (0, 0));
    assert_eq!(barriers.read(place(0).cpu, 0, 0), None);
}

#[test]
fn freeing_a_blade_frees_its_windows_and_it_can_be_allocated_again() {
    let mut barriers = ready(&[0, 1]);
    barriers.free(FILE, (1, 0)).expect("owned");
    assert_eq!(barriers.free(FILE, (1, 0)), Err(Errno::INVAL));
    assert_eq!(barriers.used_windows(place(1).cpu), 0);
    assert_eq!(barriers.allocate(&MACHINE, OTHER_FILE, places(&[5, 6])), Ok((1, 0)));
}

proptest! {
    /// Threads that follow the specification's usage example leave a barrier only when all have reached it.
    #[test]
    fn no_core_leaves_a_barrier_before_all_have_reached_it(
        cores in prop::collection::btree_set(0u32..12, 2..12),
        steps in prop::collection::vec((0usize..12, 1u64..100), 50..400),
    ) {
        let cores: Vec<u32> = cores.into_iter().collect();
        let mut barriers = ready(&cores);
        // Barriers that each core has reached and has left, and when the last core reached each.
        let (mut came, mut left) = (vec![0u64; cores.len()], vec![0u64; cores.len()]);
        let mut complete_ns = Vec::new();
        let mut now_ns = 0;
        for (who, wait_ns) in steps {
            now_ns += wait_ns;
            let who = who % cores.len();
            let lbsy = read(&mut barriers, cores[who], now_ns);
            if came[who] == left[who] {
                came[who] += 1;
                write(&mut barriers, cores[who], !lbsy, now_ns);
                if came.iter().all(|&rounds| rounds >= came[who]) {
                    complete_ns.push(now_ns);
                }
            }
            // Barrier n is complete when LBSY is the value written in it: 1 in odd ones.
            let lbsy = read(&mut barriers, cores[who], now_ns);
            let over = complete_ns.get(left[who] as usize).is_some_and(|at_ns| at_ns + LATENCY <= now_ns);
            prop_assert_eq!(lbsy == (came[who] % 2 == 1), over);
            if over {
                left[who] += 1;
            }
        }
    }

    /// `LBSY` is the last value that all cores agreed on.
    #[test]
    fn lbsy_is_the_last_value_that_all_cores_agreed_on(
        cores in prop::collection::btree_set(0u32..13, 2..13),
        writes in prop::collection::vec((0usize..13, any::<bool>()), 1..300),
    ) {
        let cores: Vec<u32> = cores.into_iter().collect();
        let mut barriers = ready(&cores);
        let (mut values, mut agreed) = (vec![false; cores.len()], false);
        for ((who, value), turn) in writes.into_iter().zip(0..) {
            let (who, now_ns) = (who % cores.len(), turn * 2 * LATENCY);
            values[who] = value;
            if values.iter().all(|&other| other == value) {
                agreed = value;
            }
            write(&mut barriers, cores[who], value, now_ns);
            prop_assert_eq!(read(&mut barriers, cores[0], now_ns + LATENCY), agreed);
        }
    }
}
