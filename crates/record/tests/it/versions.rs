//! Records of earlier versions: they are read, and upgraded when a run is added.

use std::fs;

use fxscope_record::{
    ALL, CallContext, CallCount, Calls, Finish, Interval, Intervals, Names, Origin, Pages, Parallel, Part, Profile,
    RecordError, Run, append, load,
};

use crate::file::{described, names, place, small_run, with_calls};
use crate::samples::sampled;

/// Written by an fxscope with record version 1.
const VERSION_1: &[u8] = include_bytes!("../version1.fxr");

#[test]
fn records_of_version_1_are_read_without_later_additions() {
    let (_folder, path) = place();
    fs::write(&path, VERSION_1).expect("written");
    let runs = load(&path).expect("loaded");
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].finish, Finish::Exited(3));
    let spots: Vec<_> = runs[0].hot_spots.iter().map(|s| (s.address, s.function.as_str(), s.executions)).collect();
    let expected = [("_start", 1), ("work", 5), ("work", 5), ("work", 1), ("work", 1), ("work", 1)];
    let addresses = (0x40_00d4..).step_by(4);
    assert_eq!(spots, addresses.zip(expected).map(|(a, (f, n))| (a, f, n)).collect::<Vec<_>>());
    assert!(runs[0].files.is_empty() && runs[0].stalls.is_empty() && runs[0].pipes.is_empty());
    assert_eq!(fs::read(&path).expect("readable"), VERSION_1, "reading changes nothing");
}

#[test]
fn appending_to_a_record_of_version_1_upgrades_it() {
    let (folder, path) = place();
    fs::write(&path, VERSION_1).expect("written");
    let mut runs = load(&path).expect("loaded");
    append(&path, &small_run()).expect("saved");
    runs.push(small_run());
    assert_eq!(load(&path).expect("loaded"), runs);
    assert_eq!(names(&folder).len(), 1);
}

#[test]
fn a_damaged_record_of_version_1_is_an_error() {
    let (_folder, path) = place();
    fs::write(&path, VERSION_1).expect("written");
    rusqlite::Connection::open(&path)
        .and_then(|db| db.execute("UPDATE hot_spot SET executions = 6 WHERE function = 'work' AND offset = 0", []))
        .expect("changed");
    assert!(matches!(load(&path), Err(RecordError::Damaged { .. })));
}

/// Written by an fxscope with record version 2.
const VERSION_2: &[u8] = include_bytes!("../version2.fxr");

#[test]
fn records_of_version_2_are_read_without_pages_and_upgraded_by_a_further_run() {
    let (_folder, path) = place();
    fs::write(&path, VERSION_2).expect("written");
    let mut runs = load(&path).expect("loaded");
    assert_eq!(runs.len(), 1);
    assert_eq!((runs[0].files[0].path.as_str(), runs[0].hot_spots[0].stalls.as_slice()), ("work.elf", &[7][..]));
    assert!(runs[0].pages.is_empty());
    assert_eq!(fs::read(&path).expect("readable"), VERSION_2, "reading changes nothing");
    runs.push(Run { pages: vec![Pages { segment: "bss".to_owned(), ..Pages::default() }], ..small_run() });
    append(&path, &runs[1]).expect("saved");
    assert_eq!(load(&path).expect("loaded"), runs);
}

/// Written by an fxscope with record version 3, with one row per count.
const VERSION_3: &[u8] = include_bytes!("../version3.fxr");

#[test]
fn records_of_version_3_have_a_single_pass() {
    let (_folder, path) = place();
    fs::write(&path, VERSION_3).expect("written");
    let mut runs = load(&path).expect("loaded");
    assert_eq!((runs.len(), runs[0].passes.as_slice()), (1, &[fxscope_record::ONE_PASS.to_owned()][..]));
    assert_eq!(runs[0].origin, Origin::Simulated);
    let all = runs[0].region(fxscope_record::ALL).expect("every run has it");
    assert_eq!((all.threads.len(), all.threads[0].cpu), (1, 12));
    assert_eq!(all.counts(0), [("CPU_CYCLES", 4004), ("INST_RETIRED", 2002), ("INST_SPEC", 2002)].into());
    assert_eq!(fs::read(&path).expect("readable"), VERSION_3, "reading changes nothing");
    runs.push(small_run());
    append(&path, &runs[1]).expect("saved");
    assert_eq!(load(&path).expect("loaded"), runs);
}

/// Written by an fxscope with record version 4.
const VERSION_4: &[u8] = include_bytes!("../version4.fxr");

#[test]
fn records_of_version_4_are_read_without_intervals_and_upgraded_by_a_further_run() {
    let (_folder, path) = place();
    fs::write(&path, VERSION_4).expect("written");
    let mut runs = load(&path).expect("loaded");
    assert_eq!((runs.len(), runs[0].program(), runs[0].finish.clone()), (1, "steps.elf", Finish::Limit));
    // Functional mode: an instruction takes one nanosecond, two cycles.
    let counts = runs[0].regions[0].counts(0);
    assert_eq!(counts["CPU_CYCLES"], 2 * counts["INST_RETIRED"]);
    assert!(runs[0].intervals.is_empty());
    assert_eq!(fs::read(&path).expect("readable"), VERSION_4, "reading changes nothing");
    let names: Names = ["CPU_CYCLES".to_owned()].into_iter().collect();
    let rows = vec![Interval { end_ns: 1_000, counts: vec![2_000] }, Interval { end_ns: 1_500, counts: vec![1_000] }];
    runs.push(Run { intervals: vec![Intervals { pass: 0, region: ALL.to_owned(), names, rows }], ..small_run() });
    append(&path, &runs[1]).expect("saved");
    assert_eq!(load(&path).expect("loaded"), runs);
}

/// Written by an fxscope with record version 5.
const VERSION_5: &[u8] = include_bytes!("../version5.fxr");

#[test]
fn intervals_in_records_of_version_5_cover_the_whole_run() {
    let (_folder, path) = place();
    fs::write(&path, VERSION_5).expect("written");
    let mut runs = load(&path).expect("loaded");
    let [series] = &runs[0].intervals[..] else { panic!("one series") };
    assert_eq!((series.region.as_str(), series.names.len() > 100), (ALL, true));
    let cycles = series.names.iter().position(|name| name == "CPU_CYCLES").expect("counted");
    let sum: u64 = series.rows.iter().map(|row| row.counts[cycles]).sum();
    assert_eq!(sum, runs[0].regions[0].counts(0)["CPU_CYCLES"]);
    runs.push(Run { intervals: runs[0].intervals.clone(), ..small_run() });
    runs[1].intervals[0].region = "loop".to_owned();
    append(&path, &runs[1]).expect("saved");
    assert_eq!(load(&path).expect("loaded"), runs);
}

/// Written by an fxscope with record version 6.
const VERSION_6: &[u8] = include_bytes!("../version6.fxr");

#[test]
fn records_of_version_6_are_read_without_machine_tables() {
    let (_folder, path) = place();
    fs::write(&path, VERSION_6).expect("written");
    let mut runs = load(&path).expect("loaded");
    assert_eq!((runs.len(), runs[0].machine.as_str()), (1, "a64fx"));
    assert_eq!(runs[0].description, None);
    assert_eq!(fs::read(&path).expect("readable"), VERSION_6, "reading changes nothing");
    runs.push(described("a,b\n"));
    append(&path, &runs[1]).expect("saved");
    assert_eq!(load(&path).expect("loaded"), runs);
}

/// Written by an fxscope with record version 7.
const VERSION_7: &[u8] = include_bytes!("../version7.fxr");

#[test]
fn records_of_version_7_are_read_without_processes() {
    let (_folder, path) = place();
    fs::write(&path, VERSION_7).expect("written");
    let mut runs = load(&path).expect("loaded");
    assert_eq!((runs.len(), runs[0].machine.as_str(), runs[0].description.is_some()), (1, "a64fx", true));
    assert_eq!(runs[0].parallel, Parallel::default());
    assert_eq!(fs::read(&path).expect("readable"), VERSION_7, "reading changes nothing");
    runs.push(with_calls());
    append(&path, &runs[1]).expect("saved");
    assert_eq!(load(&path).expect("loaded"), runs);
}

/// Written by an fxscope with record version 8.
const VERSION_8: &[u8] = include_bytes!("../version8.fxr");

#[test]
fn records_of_version_8_are_read_without_failures() {
    let (_folder, path) = place();
    fs::write(&path, VERSION_8).expect("written");
    let mut runs = load(&path).expect("loaded");
    assert_eq!((runs.len(), runs[0].machine.as_str(), runs[0].parallel.processes.len()), (1, "a64fx", 1));
    assert_eq!((runs[0].failures.len(), runs[0].host.skipped_mips), (0, 0.0));
    assert_eq!(fs::read(&path).expect("readable"), VERSION_8, "reading changes nothing");
    runs.push(Run { failures: vec!["rank 1 was ended by SIGSEGV".to_owned()], ..with_calls() });
    append(&path, &runs[1]).expect("saved");
    assert_eq!(load(&path).expect("loaded"), runs);
}

/// Written by an fxscope with record version 9.
const VERSION_9: &[u8] = include_bytes!("../version9.fxr");

#[test]
fn records_of_version_9_are_read_as_not_sampled() {
    let (_folder, path) = place();
    fs::write(&path, VERSION_9).expect("written");
    let mut runs = load(&path).expect("loaded");
    assert_eq!((runs.len(), runs[0].program(), runs[0].finish.clone()), (1, "./steps.elf", Finish::Exited(3)));
    assert_eq!(runs[0].sample, None);
    assert_eq!(fs::read(&path).expect("readable"), VERSION_9, "reading changes nothing");
    runs.push(sampled());
    append(&path, &runs[1]).expect("saved");
    assert_eq!(load(&path).expect("loaded"), runs);
}

/// Written by an fxscope with record version 10.
const VERSION_10: &[u8] = include_bytes!("../version10.fxr");

#[test]
fn records_of_version_10_are_read_as_runs_that_were_timed_as_a_whole() {
    let (_folder, path) = place();
    fs::write(&path, VERSION_10).expect("written");
    let mut runs = load(&path).expect("loaded");
    assert_eq!((runs.len(), runs[0].program(), runs[0].finish.clone()), (1, "./steps.elf", Finish::Exited(0)));
    assert!(runs[0].part.is_none() && runs[0].sample.is_some());
    assert_eq!(fs::read(&path).expect("readable"), VERSION_10, "reading changes nothing");
    let part = Part { options: "--region work".to_owned(), timed: 7, executions: 2, ..Part::default() };
    runs.push(Run { part: Some(part), ..sampled() });
    append(&path, &runs[1]).expect("saved");
    assert_eq!(load(&path).expect("loaded"), runs);
}

/// Written by an fxscope with record version 11.
const VERSION_11: &[u8] = include_bytes!("../version11.fxr");

#[test]
fn records_of_version_11_are_read_without_loops_and_call_stacks() {
    let (_folder, path) = place();
    fs::write(&path, VERSION_11).expect("written");
    let mut runs = load(&path).expect("loaded");
    assert_eq!((runs.len(), runs[0].program(), runs[0].finish.clone()), (1, "./steps.elf", Finish::Exited(0)));
    assert!(!runs[0].hot_spots.is_empty() && runs[0].hot_spots.iter().all(|spot| spot.events.is_empty()));
    assert_eq!(runs[0].profile, Profile::default());
    assert_eq!(fs::read(&path).expect("readable"), VERSION_11, "reading changes nothing");
    runs.push(sampled());
    append(&path, &runs[1]).expect("saved");
    assert_eq!(load(&path).expect("loaded"), runs);
}

/// Written by an fxscope with record version 12.
const VERSION_12: &[u8] = include_bytes!("../version12.fxr");

#[test]
fn records_of_version_12_are_read_without_calls_of_functions() {
    let (_folder, path) = place();
    fs::write(&path, VERSION_12).expect("written");
    let mut runs = load(&path).expect("loaded");
    assert_eq!((runs.len(), runs[0].program(), runs[0].finish.clone()), (1, "./steps.elf", Finish::Exited(0)));
    assert!(!runs[0].profile.loops.is_empty());
    assert_eq!(runs[0].profile.calls, Calls::default());
    assert_eq!(fs::read(&path).expect("readable"), VERSION_12, "reading changes nothing");
    let contexts = vec![CallContext { function: "main".to_owned(), ..CallContext::default() }];
    let calls = Calls { contexts, counts: vec![CallCount { cycles: 7, ..CallCount::default() }] };
    runs.push(Run { profile: Profile { calls, ..Profile::default() }, ..sampled() });
    append(&path, &runs[1]).expect("saved");
    assert_eq!(load(&path).expect("loaded"), runs);
}

/// Written by an fxscope with record version 13.
const VERSION_13: &[u8] = include_bytes!("../version13.fxr");

#[test]
fn records_of_version_13_are_read_with_calls_and_grow() {
    let (_folder, path) = place();
    fs::write(&path, VERSION_13).expect("written");
    let mut runs = load(&path).expect("loaded");
    assert_eq!((runs.len(), runs[0].program(), runs[0].finish.clone()), (1, "./steps.elf", Finish::Exited(0)));
    assert!(runs[0].profile.calls.contexts.iter().any(|context| context.function == "steps_fma_kernel"));
    assert_eq!(fs::read(&path).expect("readable"), VERSION_13, "reading changes nothing");
    runs.push(sampled());
    append(&path, &runs[1]).expect("saved");
    assert_eq!(load(&path).expect("loaded"), runs);
}

/// A new version keeps a file of the one before: an fxscope that still writes it can make that file, later ones cannot.
#[test]
fn there_is_a_file_of_every_version() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for version in 1..=fxscope_record::VERSION {
        let file = folder.join(format!("version{version}.fxr"));
        let database = rusqlite::Connection::open_with_flags(&file, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY);
        let stored = database.and_then(|db| db.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0)));
        assert_eq!(stored.ok(), Some(version), "{}", file.display());
    }
}
