//! Record files: runs round-trip, damage is reported, nothing is lost.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use fxscope_record::{
    ALL, CodeFile, Counts, Description, Finish, Host, Interval, Intervals, Mode, MpiCall, MpiFunction, Names, Origin,
    Pages, Parallel, Part, Process, Profile, RecordError, Region, Replicates, Run, Sample, Target, Thread, Totals,
    append, append_all, load,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::profiles::{calls, data, hot_spots, loops, stacks};

/// A temporary folder, and a path in it that does not exist.
pub(crate) fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("a b?mode=ro.fxr");
    (folder, path)
}

/// Counts that SQLite can hold as an integer.
pub(crate) fn count() -> impl Strategy<Value = u64> {
    prop_oneof![0..=1000u64, 0..=i64::MAX as u64]
}

fn finish() -> impl Strategy<Value = Finish> {
    prop_oneof![
        (0..256).prop_map(Finish::Exited),
        (1..65, any::<String>()).prop_map(|(signal, message)| Finish::Killed { signal, message }),
        Just(Finish::Limit),
        Just(Finish::Unknown),
        Just(Finish::Stopped),
        any::<String>().prop_map(Finish::Failed),
        any::<String>().prop_map(Finish::NoProgress),
    ]
}

fn host() -> impl Strategy<Value = Host> {
    (any::<u32>(), 0.0..1e9, 0.0..1e6, count(), count()).prop_map(|(cpus, wall_seconds, mips, rss, guest)| Host {
        cpus,
        wall_seconds,
        mips,
        skipped_mips: mips / 2.0,
        peak_rss_bytes: rss,
        guest_bytes: guest,
    })
}

/// A table of counts for `threads` threads, some of them missing.
fn counts(threads: usize) -> impl Strategy<Value = Counts> {
    let number = proptest::option::of(prop_oneof![0..=1000u64, 0..u64::MAX]);
    btree_map(any::<String>(), vec(number, threads), 0..40).prop_map(move |columns| {
        let names: Names = columns.keys().cloned().collect();
        let mut counts = Counts::new(Arc::new(names), threads);
        for (column, numbers) in columns.into_values().enumerate() {
            for (thread, number) in numbers.into_iter().enumerate() {
                number.into_iter().for_each(|n| counts.set(thread, column, n));
            }
        }
        counts
    })
}

fn region() -> impl Strategy<Value = Region> {
    let threads = btree_map((any::<u32>(), any::<u32>()), (any::<u32>(), any::<u32>()), 0..4);
    (any::<String>(), count(), threads).prop_flat_map(|(name, calls, threads)| {
        let thread = |((process, thread), (node, cpu))| Thread { process, thread, node, cpu };
        let threads: Vec<_> = threads.into_iter().map(thread).collect();
        vec(counts(threads.len()), 0..3).prop_map(move |passes| Region {
            name: name.clone(),
            calls,
            threads: threads.clone(),
            passes,
        })
    })
}

fn origin() -> impl Strategy<Value = Origin> {
    let imported = (any::<String>(), vec(any::<String>(), 0..3));
    prop_oneof![Just(Origin::Simulated), imported.prop_map(|(format, files)| Origin::Imported { format, files })]
}

fn pages() -> impl Strategy<Value = Pages> {
    let place = (any::<String>(), count(), any::<u32>());
    (place, count(), count()).prop_map(|((segment, page_bytes, node), pages, bytes)| Pages {
        segment,
        page_bytes,
        node,
        pages,
        bytes,
    })
}

fn intervals() -> impl Strategy<Value = Intervals> {
    let rows = |names: Names| {
        let row = (count(), vec(count(), names.len())).prop_map(|(end_ns, counts)| Interval { end_ns, counts });
        (Just(names), vec(row, 0..20))
    };
    let names = vec(any::<String>(), 0..20).prop_map(|names| names.into_iter().collect::<Names>());
    let parts = (0..4usize, any::<String>(), names.prop_flat_map(rows));
    parts.prop_map(|(pass, region, (names, rows))| Intervals { pass, region, names, rows })
}

/// Processes, functions of MPI, and calls of these functions.
fn parallel() -> impl Strategy<Value = Parallel> {
    let process = (proptest::option::of(any::<u32>()), any::<String>());
    let processes = btree_map(any::<u32>(), process, 0..4).prop_map(|processes| {
        let process = |(number, (rank, program))| Process { number, rank, program };
        processes.into_iter().map(process).collect::<Vec<_>>()
    });
    let function = (any::<u32>(), any::<String>(), any::<String>(), count(), count(), count());
    let function = function.prop_map(|(process, name, kind, calls, ns, bytes)| MpiFunction {
        process,
        name,
        kind,
        calls,
        ns,
        bytes,
    });
    let calls = |functions: Vec<MpiFunction>| {
        let places = 0..functions.len().max(1) as u32;
        let optional = (proptest::option::of(count()), proptest::option::of(any::<u32>()));
        let call = (any::<u32>(), any::<u32>(), places, optional, count(), count());
        let call = call.prop_map(|(process, thread, function, (bytes, partner), begin_ns, end_ns)| MpiCall {
            process,
            thread,
            function,
            bytes,
            partner,
            begin_ns,
            end_ns,
        });
        let most = if functions.is_empty() { 0 } else { 6 };
        (Just(functions), vec(call, 0..=most))
    };
    (processes, vec(function, 0..4).prop_flat_map(calls), count()).prop_map(
        |(processes, (functions, calls), dropped_calls)| Parallel { processes, functions, calls, dropped_calls },
    )
}

fn description() -> impl Strategy<Value = Arc<Description>> {
    let parts = (proptest::option::of(any::<String>()), any::<String>(), any::<String>());
    parts.prop_map(|(path, pmu_csv, groups_csv)| Arc::new(Description { path, pmu_csv, groups_csv }))
}

/// The part of a run that was timed.
fn part() -> impl Strategy<Value = Part> {
    let number = || 0..=i64::MAX as u64;
    (any::<String>(), [number(), number(), number(), number()], number(), number(), any::<bool>()).prop_map(
        |(options, [skipped, followed, timed, behind], executions, begin_ns, ended)| Part {
            options,
            skipped,
            followed,
            timed,
            behind,
            executions,
            begin_ns,
            ended,
        },
    )
}

/// How a run with this number of regions was sampled, if it was.
fn sample(regions: usize) -> impl Strategy<Value = Option<Sample>> {
    let totals = (vec(any::<String>(), 0..5), 0..6usize).prop_flat_map(|(names, rows)| {
        let names: Arc<Names> = Arc::new(names.into_iter().collect());
        vec(vec(prop_oneof![0..=1000u64, 0..u64::MAX], names.len()), rows)
            .prop_map(move |rows| Totals::new(Arc::clone(&names), &rows))
    });
    let replicates = (0.0..=1.0, totals).prop_map(|(unseen, totals)| Replicates { unseen, totals });
    let numbers = (count(), count(), count(), count());
    let sample = (any::<String>(), numbers, vec(replicates, regions)).prop_map(
        |(plan, (windows, exact, timed, followed), regions)| Sample {
            plan,
            windows,
            exact,
            timed,
            followed,
            error: 0.02,
            confidence: 0.95,
            regions,
        },
    );
    proptest::option::of(sample)
}

/// Regions, and how they were sampled.
fn regions() -> impl Strategy<Value = (Vec<Region>, Option<Sample>)> {
    vec(region(), 0..4).prop_flat_map(|regions| {
        let sample = sample(regions.len());
        (Just(regions), sample)
    })
}

prop_compose! {
    fn run_without_loops()(
        texts in vec(any::<String>(), 3),
        description in proptest::option::of(description()),
        command in vec(any::<String>(), 0..4),
        environment in vec((any::<String>(), any::<String>()), 0..4),
        settings in vec((any::<String>(), any::<String>()), 0..3),
        constants in btree_map(any::<String>(), -1e300..1e300, 0..5),
        functional in any::<bool>(),
        finish in finish(),
        host in host(),
        (notes, failures) in (vec(any::<String>(), 0..3), vec(any::<String>(), 0..3)),
        part in proptest::option::of(part()),
        (origin, passes) in (origin(), vec(any::<String>(), 0..4)),
        ((regions, sample), intervals, pages) in (regions(), vec(intervals(), 0..3), vec(pages(), 0..4)),
        parallel in parallel(),
        files in vec((any::<String>(), any::<String>()), 0..3),
        (stalls, pipes, events, hot_spots) in hot_spots(),
    ) -> Run {
        Run {
            tool: texts[0].clone(),
            command,
            environment,
            machine: texts[1].clone(),
            settings,
            machine_hash: texts[2].clone(),
            description,
            constants,
            mode: if functional { Mode::Functional } else { Mode::Timing },
            finish,
            host,
            notes,
            failures,
            origin,
            passes,
            regions,
            sample,
            part,
            intervals,
            parallel,
            pages,
            files: files.into_iter().map(|(path, digest)| CodeFile { path, digest }).collect(),
            stalls,
            pipes,
            hot_spots,
            profile: Profile { events, ..Profile::default() },
        }
    }
}

/// A run with loops, calls, call stacks and data objects.
fn run() -> impl Strategy<Value = Run> {
    let with = |run: Run| {
        let amounts = [run.stalls.len(), run.pipes.len(), run.profile.events.len()];
        (loops(amounts, run.files.len()), stacks(), data(), Just(run))
    };
    let with_loops = run_without_loops().prop_flat_map(with).prop_map(|(loops, stacks, data, run)| {
        let profile = Profile { loops, stacks, data, ..run.profile };
        Run { profile, ..run }
    });
    let with = |run: Run| (calls(run.files.len(), run.profile.loops.len()), Just(run));
    with_loops.prop_flat_map(with).prop_map(|(calls, run)| Run { profile: Profile { calls, ..run.profile }, ..run })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn runs_round_trip(runs in vec(run(), 1..4)) {
        let (_folder, path) = place();
        for run in &runs {
            append(&path, run).expect("saved");
        }
        prop_assert_eq!(load(&path).expect("loaded"), runs);
    }

    #[test]
    fn a_truncated_file_is_an_error(runs in vec(run(), 1..3), share in 0.0..1.0) {
        let (_folder, path) = place();
        for run in &runs {
            append(&path, run).expect("saved");
        }
        let bytes = fs::read(&path).expect("readable");
        fs::write(&path, &bytes[..(bytes.len() as f64 * share) as usize]).expect("writable");
        prop_assert!(load(&path).is_err());
    }

    #[test]
    fn a_file_without_its_last_bytes_is_an_error(runs in vec(run(), 1..3), missing in 1..600usize) {
        let (_folder, path) = place();
        for run in &runs {
            append(&path, run).expect("saved");
        }
        let bytes = fs::read(&path).expect("readable");
        fs::write(&path, &bytes[..bytes.len() - missing]).expect("writable");
        prop_assert!(load(&path).is_err());
    }

    #[test]
    fn a_corrupted_file_is_an_error_or_loads_unchanged(
        runs in vec(run(), 1..3),
        hits in vec((0.0..1.0, vec(any::<u8>(), 1..64)), 16),
    ) {
        let (_folder, path) = place();
        for run in &runs {
            append(&path, run).expect("saved");
        }
        let good = fs::read(&path).expect("readable");
        for (share, junk) in hits {
            let mut bytes = good.clone();
            let at = (bytes.len() as f64 * share) as usize;
            for (byte, junk) in bytes[at..].iter_mut().zip(junk) {
                *byte = junk;
            }
            fs::write(&path, &bytes).expect("writable");
            if let Ok(loaded) = load(&path) {
                prop_assert_eq!(&loaded, &runs);
            }
        }
    }

    #[test]
    fn foreign_files_are_refused_and_left_unchanged(bytes in vec(any::<u8>(), 0..4096), run in run()) {
        let (_folder, path) = place();
        fs::write(&path, &bytes).expect("writable");
        prop_assert!(matches!(append(&path, &run), Err(RecordError::NotARecord { .. })), "append");
        prop_assert!(matches!(Target::check(&path), Err(RecordError::NotARecord { .. })), "check");
        prop_assert!(matches!(load(&path), Err(RecordError::NotARecord { .. })), "load");
        prop_assert_eq!(fs::read(&path).expect("readable"), bytes);
    }
}

pub(crate) fn small_run() -> Run {
    Run {
        tool: "test".to_owned(),
        command: vec!["program".to_owned()],
        environment: Vec::new(),
        machine: "machine".to_owned(),
        settings: Vec::new(),
        machine_hash: String::new(),
        description: None,
        constants: Default::default(),
        mode: Mode::Timing,
        finish: Finish::Exited(0),
        host: Host::default(),
        notes: Vec::new(),
        failures: Vec::new(),
        origin: Origin::Simulated,
        passes: vec!["run".to_owned()],
        regions: vec![Region::of_one_pass(fxscope_record::ALL, 1, vec![(Thread::default(), Default::default())])],
        sample: None,
        part: None,
        intervals: Vec::new(),
        pages: Vec::new(),
        files: Vec::new(),
        stalls: Vec::new(),
        pipes: Vec::new(),
        hot_spots: Vec::new(),
        profile: Default::default(),
        parallel: Default::default(),
    }
}

pub(crate) fn names(folder: &tempfile::TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).expect("readable folder");
    entries.map(|e| e.expect("entry").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_failed_first_save_leaves_no_file() {
    let (folder, path) = place();
    let mut run = small_run();
    run.regions[0].calls = u64::MAX; // more than SQLite's integers hold
    assert!(matches!(append(&path, &run), Err(RecordError::Run { .. })));
    assert_eq!(names(&folder), [""; 0]);
}

#[test]
fn a_failed_later_save_leaves_the_file_unchanged() {
    let (folder, path) = place();
    append(&path, &small_run()).expect("saved");
    let before = fs::read(&path).expect("readable");
    let mut run = small_run();
    run.regions[0].threads.push(Thread::default()); // a second thread 0
    assert!(matches!(append(&path, &run), Err(RecordError::Run { .. })));
    assert_eq!(fs::read(&path).expect("readable"), before);
    assert_eq!(names(&folder).len(), 1);
}

#[test]
fn several_runs_are_added_atomically() {
    let (_folder, path) = place();
    append_all(&path, &[small_run(), small_run()]).expect("saved");
    let mut wrong = small_run();
    wrong.regions[0].calls = u64::MAX; // more than SQLite's integers hold
    assert!(matches!(append_all(&path, &[small_run(), wrong]), Err(RecordError::Run { .. })));
    assert_eq!(load(&path).expect("loaded"), [small_run(), small_run()]);
}

#[test]
fn a_record_with_a_changed_count_is_not_appended_to() {
    let (folder, path) = place();
    append(&path, &small_run()).expect("saved");
    let db = rusqlite::Connection::open(&path).expect("opened");
    db.execute("UPDATE region SET calls = 2", []).expect("changed");
    drop(db);
    let before = fs::read(&path).expect("readable");
    assert!(matches!(append(&path, &small_run()), Err(RecordError::Damaged { .. })));
    assert!(matches!(Target::check(&path), Err(RecordError::Damaged { .. })));
    assert_eq!(fs::read(&path).expect("readable"), before);
    assert_eq!(names(&folder).len(), 1);
}

#[test]
fn a_full_device_leaves_the_file_unchanged() {
    // /dev/full cannot hold a database; SQLite's own limit takes the same path.
    let (_folder, path) = place();
    append(&path, &small_run()).expect("saved");
    let before = load(&path).expect("loaded");
    let db = rusqlite::Connection::open(&path).expect("opened");
    let pages: u32 = db.query_row("PRAGMA page_count", [], |r| r.get(0)).expect("page count");
    db.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).expect("limit");
    let text = "x".repeat(100_000);
    let error = db.execute("INSERT INTO note VALUES (1, 0, ?1)", [&text]).expect_err("no room");
    assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DiskFull));
    drop(db);
    assert_eq!(load(&path).expect("loaded"), before);
}

#[test]
fn an_interrupted_save_leaves_the_earlier_contents() {
    let (folder, path) = place();
    append(&path, &small_run()).expect("saved");
    // A program that dies while writing leaves the file partly overwritten, with the journal next to it.
    let db = rusqlite::Connection::open(&path).expect("opened");
    db.execute_batch("PRAGMA cache_size = 1; BEGIN IMMEDIATE; UPDATE run SET machine = 'x';").expect("begun");
    for i in 0..2000 {
        db.execute("INSERT INTO note VALUES (1, ?1, hex(randomblob(500)))", [i]).expect("inserted");
    }
    let copy = folder.path().join("copy.fxr");
    let journal = |p: &PathBuf| PathBuf::from(format!("{}-journal", p.display()));
    fs::copy(&path, &copy).expect("copied");
    fs::copy(journal(&path), journal(&copy)).expect("a journal");
    drop(db);
    assert_eq!(load(&copy).expect("rolled back"), [small_run()]);
}

#[test]
fn records_of_a_newer_version_are_refused() {
    let (_folder, path) = place();
    append(&path, &small_run()).expect("saved");
    rusqlite::Connection::open(&path).and_then(|db| db.pragma_update(None, "user_version", 1000)).expect("updated");
    assert!(matches!(load(&path), Err(RecordError::Newer { found: 1000, .. })));
    assert!(matches!(append(&path, &small_run()), Err(RecordError::Newer { .. })));
}

#[test]
fn unmapped_parts_of_pages_count_as_lost() {
    let pages = Pages { page_bytes: 2 << 20, pages: 3, bytes: 5 << 20, ..Pages::default() };
    assert_eq!(pages.lost(), 1 << 20);
}

#[test]
fn databases_of_other_programs_are_refused_and_left_unchanged() {
    let (_folder, path) = place();
    rusqlite::Connection::open(&path).and_then(|db| db.execute_batch("CREATE TABLE t (x)")).expect("made");
    let before = fs::read(&path).expect("readable");
    assert!(matches!(append(&path, &small_run()), Err(RecordError::NotARecord { .. })));
    assert_eq!(fs::read(&path).expect("readable"), before);
}

#[test]
fn targets_are_checked_without_creating_them() {
    let (folder, path) = place();
    Target::check(&path).expect("writable");
    assert_eq!(names(&folder), [""; 0]);
    append(&path, &small_run()).expect("saved");
    Target::check(&path).expect("writable");
    assert_eq!(names(&folder).len(), 1);
    assert!(matches!(Target::check(folder.path()), Err(RecordError::NotAFile { .. })));
    assert!(matches!(Target::check(&folder.path().join("no/such.fxr")), Err(RecordError::Io { .. })));
}

#[test]
fn two_programs_may_append_to_one_file_concurrently() {
    let (_folder, path) = place();
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| append(&path, &small_run()).expect("saved"));
        }
    });
    assert_eq!(load(&path).expect("loaded").len(), 4);
}

#[test]
fn large_runs_with_large_pages_round_trip() {
    let (_folder, path) = place();
    let (threads, columns) = (1 << 10, 1 << 10);
    let names: Arc<Names> = Arc::new((0..columns).map(|i| format!("event {i}")).collect());
    let values = (0..threads * columns).map(|i| i as u64 * 0x1_0001).collect();
    let counts = Counts::from_values(names, threads, values).expect("it is full");
    let mut run = small_run();
    run.regions[0].threads = (0..threads as u32).map(|i| Thread { process: i, thread: i, node: 0, cpu: i }).collect();
    run.regions[0].passes = vec![counts];
    append(&path, &run).expect("saved");
    let header = fs::read(&path).expect("readable");
    // In the header, 1 stands for 65,536 bytes.
    assert_eq!(header[16..18], [0, 1]);
    append(&path, &small_run()).expect("saved");
    assert!(load(&path).expect("loaded") == [run, small_run()]);
}

/// A run of two ranks that have called a function of MPI.
pub(crate) fn with_calls() -> Run {
    let process = |rank| Process { number: rank, rank: Some(rank), program: "/app".to_owned() };
    let function = |process| MpiFunction { process, name: "MPI_Send".to_owned(), calls: 2, ..MpiFunction::default() };
    let call = MpiCall { partner: Some(1), bytes: Some(8), ..MpiCall::default() };
    let (processes, functions) = (vec![process(0), process(1)], vec![function(0), function(1)]);
    Run { parallel: Parallel { processes, functions, calls: vec![call], dropped_calls: 1 }, ..small_run() }
}

#[test]
fn a_changed_call_of_mpi_is_damage() {
    for change in [
        "UPDATE mpi_call SET bytes = 9",
        "UPDATE mpi_call SET function = 7",
        "UPDATE mpi_function SET calls = 3",
        "UPDATE process SET rank = NULL",
        "DELETE FROM mpi_dropped",
    ] {
        let (_folder, path) = place();
        append(&path, &with_calls()).expect("saved");
        rusqlite::Connection::open(&path).and_then(|db| db.execute(change, [])).expect("changed");
        assert!(matches!(load(&path), Err(RecordError::Damaged { .. })), "{change}");
    }
}

/// A run of a machine with this table of events.
pub(crate) fn described(pmu_csv: &str) -> Run {
    let (pmu_csv, groups_csv) = (pmu_csv.to_owned(), "group\n".to_owned());
    Run { description: Some(Arc::new(Description { path: None, pmu_csv, groups_csv })), ..small_run() }
}

#[test]
fn runs_of_one_machine_share_its_tables() {
    let (_folder, path) = place();
    let table = "number,name\n".repeat(1_000);
    append_all(&path, &[described(&table), described(&table), described("another")]).expect("saved");
    append(&path, &described(&table)).expect("saved");
    let runs = load(&path).expect("loaded");
    let of = |i: usize| runs[i].description.as_ref().expect("kept");
    assert_eq!(of(0).pmu_csv, table);
    assert!(Arc::ptr_eq(of(0), of(1)) && Arc::ptr_eq(of(0), of(3)) && !Arc::ptr_eq(of(0), of(2)));
    let db = rusqlite::Connection::open(&path).expect("a database");
    let texts: u32 = db.query_row("SELECT count(*) FROM text", [], |r| r.get(0)).expect("a number");
    assert_eq!(texts, 3);
}

#[test]
fn a_changed_machine_table_is_damage() {
    for change in [
        "UPDATE text SET content = 'x'",
        "DELETE FROM text",
        "UPDATE description SET path = '/x'",
        "DELETE FROM description",
    ] {
        let (_folder, path) = place();
        append(&path, &described("table")).expect("saved");
        rusqlite::Connection::open(&path).and_then(|db| db.execute(change, [])).expect("changed");
        assert!(matches!(load(&path), Err(RecordError::Damaged { .. })), "{change}");
    }
}

#[test]
fn a_changed_interval_is_damage() {
    for change in ["UPDATE interval SET end_ns = 8", "UPDATE series SET pass = 1", "DELETE FROM interval"] {
        let (_folder, path) = place();
        let names: Names = ["CPU_CYCLES".to_owned()].into_iter().collect();
        let rows = vec![Interval { end_ns: 7, counts: vec![14] }];
        append(
            &path,
            &Run { intervals: vec![Intervals { pass: 0, region: ALL.to_owned(), names, rows }], ..small_run() },
        )
        .expect("saved");
        rusqlite::Connection::open(&path).and_then(|db| db.execute(change, [])).expect("changed");
        assert!(matches!(load(&path), Err(RecordError::Damaged { .. })), "{change}");
    }
}
