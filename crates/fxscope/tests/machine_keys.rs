//! Every key of a machine's description has an effect on some small program, or says beside its definition why it has none.

mod common;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fxscope::linux::Stdio;
use fxscope::linux::pages::MemoryPolicy;
use fxscope::machine::schema::{EVIDENCE, Key, Kind, Rule, SOURCE, Value};
use fxscope::machine::spec::SCHEMA;
use fxscope::machine::{Spec, load};
use fxscope::record::{Finish, Pages, Region};
use fxscope::{Control, Request, Session};

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
    /// Memory is from this node only.
    node: Option<u32>,
}

const fn case(machine: &'static str, part: &'static str) -> Case {
    Case { machine, settings: &[], program: part, arguments: &[], node: None }
}

/// An A64FX whose caches and tables are soon full.
const SMALL: &[(&str, &str)] =
    &[("l1d.bytes", "16KiB"), ("l1i.bytes", "16KiB"), ("l2.bytes", "256KiB"), ("tlb.l2_entries", "64")];

const CASES: &[Case] = &[
    case("a64fx", "identity"),
    case("a64fx", "branches"),
    case("a64fx", "operations"),
    case("a64fx", "numbers"),
    case("a64fx", "accesses"),
    Case { settings: SMALL, ..case("a64fx", "streams") },
    Case { settings: SMALL, ..case("a64fx", "pages") },
    case("a64fx", "code"),
    case("a64fx", "threads"),
    case("knl-small", "streams"),
    case("k-computer", "pages"),
    Case { node: Some(6), ..case("a64fx", "streams") },
    Case {
        settings: SMALL,
        arguments: &["n=4096", "m=32768", "pointers=tagged", "l2-ways=4", "passes=1"],
        ..case("a64fx", "sector.elf")
    },
    Case { arguments: &["kind=hardware", "threads=2", "rounds=5"], ..case("a64fx", "barrier.elf") },
];

/// What a run shows: output, counts and times.
#[derive(PartialEq)]
struct Shown {
    finish: Finish,
    output: Vec<u8>,
    notes: Vec<String>,
    regions: Vec<Region>,
    pages: Vec<Pages>,
}

/// Where programs are and write.
struct Bench {
    folder: tempfile::TempDir,
    keys: PathBuf,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().expect("temporary folder");
        let keys = compile(folder.path(), "keys", FLAGS, include_str!("programs/keys.c"));
        Bench { folder, keys: keys.into() }
    }

    /// The machine of a case with one more setting; none when it cannot have it.
    fn machine(case: &Case, more: Option<(&str, &str)>) -> Option<(Spec, Vec<(String, String)>)> {
        let settings = case.settings.iter().copied().chain(more);
        let settings: Vec<_> = settings.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Some((load(case.machine, &settings).ok()?, settings))
    }

    /// Runs a case; none when the program cannot start on such a machine.
    fn run(&self, case: &Case, spec: Spec, settings: Vec<(String, String)>) -> Option<Shown> {
        let own = Path::new(case.program).extension().is_none();
        let program = if own { self.keys.clone() } else { kernel(case.program).into() };
        let output = self.folder.path().join("output");
        let stream = || File::create(&output).expect("writable").into();
        let nothing = || File::open("/dev/null").expect("there").into();
        let part = own.then_some(case.program);
        let request = Request {
            settings,
            arguments: part.into_iter().chain(case.arguments.iter().copied()).map(OsString::from).collect(),
            memory_policy: case.node.map_or_else(MemoryPolicy::default, |node| MemoryPolicy::Bind(1 << node)),
            stdio: Some(Stdio { input: nothing(), output: stream(), error: nothing() }),
            max_instructions: Some(2_000_000),
            ..Request::new(Arc::new(spec), program)
        };
        let run = Session::start(request).ok()?.run(&mut |_| Control::Continue);
        let output = fs::read(output).expect("written");
        Some(Shown { finish: run.finish, output, notes: run.notes, regions: run.regions, pages: run.pages })
    }
}

/// Other values of a key, those nearest to what it is first.
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
    let list = |list: Vec<u64>| format!("{list:?}");
    let all: Vec<String> = match value {
        Value::Integer(n) => numbers(*n).iter().map(u64::to_string).collect(),
        Value::Real(x) => [2.0 * x, x / 2.0, x * 0.9, x + 100.0].iter().map(f64::to_string).collect(),
        Value::Switch(on) => vec![(!on).to_string()],
        Value::Text(_) => vec!["another".to_owned()],
        Value::List(row) => {
            let each = |f: &dyn Fn(u64) -> u64| list(row.iter().map(|&n| f(n)).collect());
            let mut rows = vec![each(&|n| n + 3), each(&|n| 2 * n), each(&|n| n / 2), each(&|n| n + 20)];
            rows.push(list(row.iter().rev().copied().collect()));
            if matches!(key.kind, Kind::UpTo(_)) {
                rows.push(list(row.iter().skip(1).copied().collect()));
                rows.push(list(row.iter().take(row.len().saturating_sub(1)).copied().collect()));
            }
            rows
        }
    };
    all
}

/// The case on which some other value of the key shows something else, by its place.
fn effect(bench: &Bench, table: usize, key: usize, cases: &[(Case, Shown)], order: &VecDeque<usize>) -> Option<usize> {
    let (table, k) = (&SCHEMA[table], &SCHEMA[table].keys[key]);
    let name = format!("{}.{}", table.name, k.name);
    let t = SCHEMA.iter().position(|other| other.name == table.name)?;
    order.iter().copied().find(|&place| {
        let (case, before) = &cases[place];
        let (plain, _) = Bench::machine(case, None).expect("a machine");
        let value = plain.tables.values()[t][key].clone();
        others(k, &value).iter().any(|other| {
            let Some((spec, settings)) = Bench::machine(case, Some((&name, other))) else { return false };
            if spec.tables == plain.tables {
                return false;
            }
            // That a program cannot start is an effect, too.
            bench.run(case, spec, settings).is_none_or(|after| after != *before)
        })
    })
}

/// Cycles of a chase through L1, and how many loads it has.
fn chase(setting: (&str, &str)) -> (u64, u64) {
    const HOPS: u64 = 4_000;
    let folder = tempfile::tempdir().expect("temporary folder");
    let bench = Bench { keys: PathBuf::new(), folder };
    let arguments = &["footprint=8192", "hops=4000", "state=warm"];
    let case = Case { arguments, ..case("a64fx", "chase.elf") };
    let (spec, settings) = Bench::machine(&case, Some(setting)).expect("a machine");
    let shown = bench.run(&case, spec, settings).expect("it starts");
    let marked = shown.regions.iter().find(|region| region.name != fxscope::record::ALL).expect("a marked region");
    (marked.count(0, "CPU_CYCLES").expect("counted"), HOPS)
}

#[test]
fn a_chase_through_l1_takes_the_cycles_that_the_key_of_the_load_to_use_latency_has() {
    for cycles in [5, 10, 20] {
        let (all, hops) = chase(("load_store.load_integer", &cycles.to_string()));
        let each = all as f64 / hops as f64;
        assert!((each - f64::from(cycles)).abs() < 0.05 * f64::from(cycles), "{cycles}: {each}");
    }
}

#[test]
fn every_key_of_a_machine_has_an_effect_or_a_reason_for_having_none() {
    let bench = Bench::new();
    let plain = |case: &Case| {
        let (spec, settings) = Bench::machine(case, None).expect("a machine");
        let shown = bench.run(case, spec, settings).expect("it starts");
        assert!(matches!(shown.finish, Finish::Exited(0)), "{}: {:?}", case.program, shown.finish);
        (*case, shown)
    };
    let cases: Vec<(Case, Shown)> = CASES.iter().map(plain).collect();
    // What showed the key before is most likely to show this one.
    let mut order: VecDeque<usize> = (0..cases.len()).collect();
    let mut wrong = Vec::new();
    for (t, table) in SCHEMA.iter().enumerate() {
        for (k, key) in table.keys.iter().enumerate().filter(|(_, key)| ![SOURCE, EVIDENCE].contains(&key.name)) {
            let begin = std::time::Instant::now();
            let found = effect(&bench, t, k, &cases, &order);
            eprintln!("{}.{}: {:?} {:?}", table.name, key.name, found.map(|i| cases[i].0.program), begin.elapsed());
            match (found, key.inert) {
                (Some(place), None) => {
                    order.retain(|&other| other != place);
                    order.push_front(place);
                }
                (None, Some(_)) => {}
                (None, None) => wrong.push(format!("{}.{} changes nothing", table.name, key.name)),
                (Some(_), Some(reason)) => {
                    wrong.push(format!("{}.{} changes something, though: {reason}", table.name, key.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
