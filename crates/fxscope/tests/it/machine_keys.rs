//! Every key of a machine's description affects some small program, or its definition says why not.

use crate::common;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fxscope::linux::Stdio;
use fxscope::linux::pages::MemoryPolicy;
use fxscope::machine::schema::{Key, Kind, Rule, Table, Value};
use fxscope::machine::spec::SCHEMA;
use fxscope::machine::{Spec, load};
use fxscope::record::{Finish, Pages, Region};
use fxscope::{Control, Request, RunOptions, SectorData, Session};

use common::{compile, kernel};

const FLAGS: &[&str] = &[
    "-O2",
    "-march=armv8.2-a+sve",
    "-nostdlib",
    "-static",
    "-ffreestanding",
    "-fno-stack-protector",
    "-fno-tree-vectorize",
];

/// A program on a machine.
#[derive(Clone, Copy)]
struct Case {
    machine: &'static str,
    settings: &'static [(&'static str, &'static str)],
    /// A prebuilt kernel, or a part of `programs/keys.c`.
    program: &'static str,
    arguments: &'static [&'static str],
    /// Settings of the large-page library.
    page_type: &'static str,
    /// Memory comes from this node only.
    node: Option<u32>,
    /// Memory on nodes with cores, bytes.
    fast_memory: Option<u64>,
    /// It runs on this CPU only.
    cpu: Option<u32>,
    /// A variable in sector 1 of the caches.
    sector_1: Option<&'static str>,
}

const fn case(machine: &'static str, part: &'static str) -> Case {
    Case {
        machine,
        settings: &[],
        program: part,
        arguments: &[],
        page_type: "",
        node: None,
        fast_memory: None,
        cpu: None,
        sector_1: None,
    }
}

/// An A64FX with small caches and tables.
const SMALL: &[(&str, &str)] =
    &[("l1d.bytes", "16KiB"), ("l1i.bytes", "16KiB"), ("l2.bytes", "256KiB"), ("tlb.l2_entries", "64")];
/// The same with sectors.
const SECTORS: &[(&str, &str)] = &[
    ("l1d.bytes", "16KiB"),
    ("l2.bytes", "256KiB"),
    ("sector_cache.l1_ways", "1,3,0,0"),
    ("sector_cache.l2_ways", "3,9"),
];
/// The same where pointers do not choose sectors.
const UNTAGGED: &[(&str, &str)] = &[
    ("l1d.bytes", "16KiB"),
    ("l2.bytes", "256KiB"),
    ("sector_cache.tagged_pointers", "false"),
    ("sector_cache.l1_ways", "1,3,0,0"),
    ("sector_cache.l2_ways", "3,9"),
];
/// An A64FX with pages of one size that are groups of descriptors in its translation tables.
const GROUPS: &[(&str, &str)] = &[
    ("pages.sizes", "64KiB"),
    ("pages.large", "64KiB"),
    ("pages.data", "64KiB"),
    ("pages.bss", "64KiB"),
    ("pages.heap", "64KiB"),
    ("pages.stack", "64KiB"),
    ("pages.thread_stack", "64KiB"),
    ("pages.mmap", "64KiB"),
    ("tlb.granules", "4096,65536"),
    ("tlb.contiguous", "16,32"),
    ("tlb.l2_entries", "64"),
];
/// An A64FX with small caches and a memory tier.
const TIER: &[(&str, &str)] = &[
    ("l1d.bytes", "16KiB"),
    ("l2.bytes", "256KiB"),
    ("memory_tiers.names", "cxl"),
    ("memory_tiers.latency_ns", "250"),
    ("memory_tiers.read_bytes_per_second", "4_000_000_000"),
    ("memory_tiers.write_bytes_per_second", "2_000_000_000"),
    ("memory_tiers.total_bytes_per_second", "4_000_000_000"),
    ("memory_tiers.bytes", "64GiB"),
    ("memory_tiers.distances", "20"),
];
/// An A64FX with a memory tier, whose system moves pages by heat, some ten thousand times faster than Linux.
const HEAT: &[(&str, &str)] = &[
    ("l1d.bytes", "16KiB"),
    ("l2.bytes", "256KiB"),
    ("pages.data", "64KiB"),
    ("pages.bss", "64KiB"),
    ("pages.stack", "64KiB"),
    ("pages.mmap", "64KiB"),
    ("memory_tiers.names", "cxl"),
    ("memory_tiers.latency_ns", "250"),
    ("memory_tiers.read_bytes_per_second", "4_000_000_000"),
    ("memory_tiers.write_bytes_per_second", "2_000_000_000"),
    ("memory_tiers.total_bytes_per_second", "4_000_000_000"),
    ("memory_tiers.bytes", "64GiB"),
    ("memory_tiers.distances", "20"),
    ("tiering.enabled", "true"),
    ("tiering.scan_delay_ns", "400_000"),
    ("tiering.scan_period_ns", "20_000"),
    ("tiering.scan_bytes", "1MiB"),
    ("tiering.hot_threshold_ns", "4_000"),
    ("tiering.adjust_period_ns", "50_000"),
    ("tiering.promote_bytes_per_second", "400_000_000"),
    ("tiering.promote_window_ns", "100_000"),
    ("tiering.ample_bytes", "64KiB"),
    ("tiering.ample_share", "0.0625"),
    ("tiering.watermark_share", "0.04"),
];
/// An A64FX with base pages of 4 KiB.
macro_rules! small_pages {
    ($($more:tt)*) => {
        &[
            ("pages.normal", "4KiB"),
            ("pages.text", "4KiB"),
            ("pages.data", "4KiB"),
            ("pages.bss", "4KiB"),
            ("pages.heap", "4KiB"),
            ("pages.stack", "4KiB"),
            ("pages.thread_stack", "4KiB"),
            ("pages.mmap", "4KiB"),
            ("pages.shared", "4KiB"),
            $($more)*
        ]
    };
}
/// Transparent huge pages of several sizes.
const FOLIOS: &[(&str, &str)] = small_pages! {
    ("thp.enabled", "always"),
    ("thp.always", "[65536]"),
    ("thp.madvise", "[524288]"),
    ("thp.inherit", "[131072]"),
    ("thp.never", "[2097152]")
};
/// khugepaged, which looks half a million times as often as under Linux, with limits that a range just keeps.
const COLLAPSE: &[(&str, &str)] = small_pages! {
    ("thp.khugepaged", "true"),
    ("thp.scan_sleep_ns", "20_000"),
    ("thp.pages_to_scan", "512"),
    ("thp.max_ptes_none", "256"),
    ("thp.max_ptes_shared", "32")
};
/// The same on a machine whose memory is nearly full.
const FULL: &[(&str, &str)] = small_pages! {
    ("topology.node_bytes", "64MiB"),
    ("thp.khugepaged", "true"),
    ("thp.scan_sleep_ns", "20_000"),
    ("thp.alloc_sleep_ns", "40_000"),
    ("thp.max_ptes_none", "256")
};
/// An A64FX with another predictor, whose table is small.
const GSHARE: &[(&str, &str)] = &[("frontend.predictor", "gshare"), ("frontend.pattern_entries", "16")];
/// An A64FX at its higher clock with one floating-point pipe.
const BOOST_ECO: &[(&str, &str)] = &[("power.mode", "boost-eco")];
/// Keys that must be equal and change together: lines have one size in all caches.
const EQUAL: [&str; 3] = ["l1i.line_bytes", "l1d.line_bytes", "l2.line_bytes"];

const CASES: &[Case] = &[
    case("a64fx", "identity"),
    case("a64fx", "branches"),
    Case { settings: GSHARE, ..case("a64fx", "branches") },
    case("a64fx", "operations"),
    Case { settings: BOOST_ECO, ..case("a64fx", "operations") },
    case("a64fx", "numbers"),
    case("a64fx", "accesses"),
    Case { settings: SMALL, ..case("a64fx", "streams") },
    Case { settings: SMALL, ..case("a64fx", "pages") },
    Case { settings: GROUPS, ..case("a64fx", "pages") },
    Case { page_type: "none", ..case("a64fx", "pages") },
    Case { page_type: "hugetlbfs", ..case("a64fx", "pages") },
    Case { settings: SMALL, ..case("a64fx", "code") },
    Case { settings: SECTORS, ..case("a64fx", "x-sectors") },
    Case { settings: UNTAGGED, sector_1: Some("area"), ..case("a64fx", "x-sectors") },
    Case { arguments: &["n=512", "m=512", "l2-ways=4", "passes=1"], ..case("a64fx", "sector.elf") },
    case("a64fx", "threads"),
    Case { cpu: Some(5), ..case("knl-small", "streams") },
    case("k-computer", "pages"),
    Case { node: Some(5), ..case("a64fx", "streams") },
    Case { node: Some(6), ..case("a64fx", "streams") },
    Case { settings: TIER, node: Some(8), ..case("a64fx", "streams") },
    Case { settings: TIER, ..case("a64fx", "identity") },
    Case { settings: HEAT, fast_memory: Some(1 << 20), ..case("a64fx", "heat") },
    Case { settings: FOLIOS, page_type: "none", ..case("a64fx", "folios") },
    Case { settings: COLLAPSE, page_type: "none", ..case("a64fx", "folios") },
    Case { settings: FULL, page_type: "none", ..case("a64fx", "g-folios") },
    // Cores of two CMGs on the memory of a third.
    Case {
        node: Some(4),
        arguments: &["cpus=24,36", "threads=2", "n=32768", "passes=1"],
        ..case("a64fx", "triad-threads.elf")
    },
    Case { arguments: &["kind=hardware", "threads=2", "rounds=5"], ..case("a64fx", "barrier.elf") },
];

/// The observable results of a run: output, counts and times.
#[derive(PartialEq)]
struct Shown {
    finish: Finish,
    output: Vec<u8>,
    notes: Vec<String>,
    regions: Vec<Region>,
    pages: Vec<Pages>,
}

/// Runs cases, those of `programs/keys.c` with the program `keys`.
struct Bench {
    keys: PathBuf,
}

impl Bench {
    /// Returns the machine of a case with one more setting; `None` if the setting does not fit it.
    fn machine(case: &Case, more: Option<(&str, &str)>) -> Option<(Spec, Vec<(String, String)>)> {
        let equal = more.filter(|(key, _)| EQUAL.contains(key)).map(|(_, value)| EQUAL.map(|key| (key, value)));
        let settings = case.settings.iter().copied().chain(more).chain(equal.into_iter().flatten());
        let settings: Vec<_> = settings.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Some((load(case.machine, &settings).ok()?, settings))
    }

    /// Runs a case; `None` if the program cannot start on such a machine.
    fn run(&self, case: &Case, spec: Spec, settings: Vec<(String, String)>) -> Option<Shown> {
        let own = Path::new(case.program).extension().is_none();
        let program = if own { self.keys.clone() } else { kernel(case.program).into() };
        let mut output = tempfile::tempfile().expect("temporary file");
        let stream = output.try_clone().expect("a descriptor").into();
        let nothing = || File::open("/dev/null").expect("there").into();
        let part = own.then_some(case.program);
        let request = Request {
            settings,
            arguments: part.into_iter().chain(case.arguments.iter().copied()).map(OsString::from).collect(),
            environment: vec![("XOS_MMM_L_HPAGE_TYPE".into(), case.page_type.into())],
            cpus: case.cpu.map(|cpu| vec![cpu]),
            fast_memory: case.fast_memory,
            memory_policy: case.node.map_or_else(MemoryPolicy::default, |node| MemoryPolicy::Bind(1 << node)),
            stdio: Some(Stdio { input: nothing(), output: stream, error: nothing() }),
            options: RunOptions { max_instructions: Some(2_000_000), ..RunOptions::default() },
            ..Request::new(Arc::new(spec), program)
        };
        let data = case.sector_1.map(|name| SectorData::parse(name, 1).expect("a variable"));
        let run = Session::contained(request, |mut session| {
            session.assign_sectors(data.as_slice(), &[]).expect("the program has it");
            session.run(&mut |_| Control::Continue)
        });
        let run = run.ok()?;
        let mut text = Vec::new();
        output.rewind().and_then(|()| output.read_to_end(&mut text)).expect("readable");
        Some(Shown { finish: run.finish, output: text, notes: run.notes, regions: run.regions, pages: run.pages })
    }
}

/// Returns other values of a key, the nearest first.
fn others(key: &Key, value: &Value) -> Vec<String> {
    let numbers = |n: u64| -> Vec<u64> {
        let near = [n + 1, n.saturating_sub(1), 2 * n, n / 2, n + 10, n + 100, 16 * n, n / 16, n + 5_000];
        match key.rule {
            Rule::Range(low, high) => near.into_iter().chain([low, high.min(4096)]).collect(),
            Rule::OneOf(list) => list.to_vec(),
            Rule::Register => vec![n ^ 0x10],
            _ => near.to_vec(),
        }
    };
    let text = |list: &[u64]| format!("{list:?}");
    match value {
        Value::Integer(n) => numbers(*n).iter().map(u64::to_string).collect(),
        Value::Real(x) => [2.0 * x, x / 2.0, x * 0.9, x + 100.0].iter().map(f64::to_string).collect(),
        Value::Switch(on) => vec![(!on).to_string()],
        Value::Text(now) => match key.kind {
            Kind::Choice(names) => names.iter().filter(|name| *name != now).map(|&name| name.to_owned()).collect(),
            _ => vec!["another".to_owned()],
        },
        Value::List(row) => {
            let each = |f: &dyn Fn(u64) -> u64| row.iter().map(|&n| f(n)).collect::<Vec<_>>();
            let mut rows = vec![each(&|n| n + 3), each(&|n| 2 * n), each(&|n| n / 2), each(&|n| n + 20)];
            rows.push(row.iter().rev().copied().collect());
            if let Rule::OneOf(list) = key.rule {
                rows.extend(list.iter().map(|&n| vec![n; row.len()]));
            }
            if let (Kind::UpTo(_), [_, rest @ ..]) = (key.kind, &row[..]) {
                rows.extend([rest.to_vec(), row[..rest.len()].to_vec()]);
            }
            rows.iter().map(|row| text(row)).collect()
        }
    }
}

/// Returns the index of the case in which some other value of the key has an effect.
fn effect(bench: &Bench, table: &Table, key: usize, cases: &[(Case, Shown)], order: &VecDeque<usize>) -> Option<usize> {
    let k = &table.keys[key];
    let name = format!("{}.{}", table.name, k.name);
    let t = SCHEMA.iter().position(|other| other.name == table.name)?;
    // If a key has no effect, all cases run for few values only.
    let most = if table.inert(k).is_some() { 3 } else { usize::MAX };
    order.iter().copied().find(|&place| {
        let (case, before) = &cases[place];
        let (plain, _) = Bench::machine(case, None).expect("a machine");
        let value = plain.tables.values()[t][key].clone();
        others(k, &value).iter().take(most).any(|other| {
            let Some((spec, settings)) = Bench::machine(case, Some((&name, other))) else { return false };
            if spec.tables == plain.tables {
                return false;
            }
            // A program that cannot start is an effect, too.
            bench.run(case, spec, settings).is_none_or(|after| after != *before)
        })
    })
}

/// Returns the cycles of a chase through L1, and its number of loads.
fn chase(setting: (&str, &str)) -> (u64, u64) {
    const HOPS: u64 = 4_000;
    let bench = Bench { keys: PathBuf::new() };
    let arguments = &["footprint=8192", "hops=4000", "state=warm"];
    let case = Case { arguments, ..case("a64fx", "chase.elf") };
    let (spec, settings) = Bench::machine(&case, Some(setting)).expect("a machine");
    let shown = bench.run(&case, spec, settings).expect("it starts");
    let marked = shown.regions.iter().find(|region| region.name != fxscope::record::ALL).expect("a marked region");
    (marked.count(0, "CPU_CYCLES").expect("counted"), HOPS)
}

#[test]
fn a_chase_through_l1_takes_the_load_to_use_latency_of_its_key() {
    for cycles in [5, 10, 20] {
        let (all, hops) = chase(("load_store.load_integer", &cycles.to_string()));
        let each = all as f64 / hops as f64;
        assert!((each - f64::from(cycles)).abs() < 0.05 * f64::from(cycles), "{cycles}: {each}");
    }
}

/// Takes minutes of processor time.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn every_key_of_a_machine_has_an_effect_or_a_reason_not_to() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let bench = Bench { keys: compile(folder.path(), "keys", FLAGS, include_str!("../programs/keys.c")).into() };
        let plain = |case: &Case| {
            let (spec, settings) = Bench::machine(case, None).expect("a machine");
            let shown = bench.run(case, spec, settings).expect("it starts");
            assert!(matches!(shown.finish, Finish::Exited(0)), "{}: {:?}", case.program, shown.finish);
            (*case, shown)
        };
        let cases: Vec<(Case, Shown)> = CASES.iter().map(plain).collect();
        let next = AtomicUsize::new(0);
        let wrong = Mutex::new(Vec::new());
        let work = || {
            // The case that showed the previous key is most likely to show this one.
            let mut order: VecDeque<usize> = (0..cases.len()).collect();
            while let Some(table) = SCHEMA.get(next.fetch_add(1, Ordering::Relaxed)) {
                for (k, key) in table.keys.iter().enumerate() {
                    let name = format!("{}.{}", table.name, key.name);
                    let what = match (effect(&bench, table, k, &cases, &order), table.inert(key)) {
                        (Some(place), None) => {
                            order.retain(|&other| other != place);
                            order.push_front(place);
                            continue;
                        }
                        (None, Some(_)) => continue,
                        (None, None) => format!("{name} changes nothing"),
                        (Some(_), Some(reason)) => format!("{name} changes something, though: {reason}"),
                    };
                    wrong.lock().expect("nobody panics with it").push(what);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(work);
            }
        });
        let wrong = wrong.into_inner().expect("nobody panics with it");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
