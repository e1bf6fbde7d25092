//! The same core measured alternately by fxscope and by a program that shares no code with it (`tests/loop.c`): rates and
//! shares of injected noise and of the host's own. Requires real-time priorities, so it runs only on request:
//! `make jitter-test`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fxscope_osnoise::measure::{self, Control, Plan, native};
use fxscope_osnoise::trace::{Item, Method, Reader};

use crate::common::steal::steal;

/// Length of one measurement. The two take turns, so that both see the same changes of the host's load.
const TURN: Duration = Duration::from_millis(500);
const TURNS: usize = 40;
const PRIORITY: u8 = 20;
/// Longest detour that counts, ns: longer ones are the kernel's limit for real-time threads, which strikes whichever of
/// the two uses up its time, or a hypervisor that runs another machine.
const LONGEST: u64 = 10_000_000;
/// Largest accepted deviations of rates and shares.
const RATES: f64 = 0.10;
const SHARES: f64 = 0.05;

/// Detours of one measurement.
struct Turn {
    /// Measured time without detours that do not count, ns.
    span: u64,
    lengths: Vec<u64>,
}

impl Turn {
    fn new(span: u64, all: impl IntoIterator<Item = u64>) -> Turn {
        let (long, lengths): (Vec<u64>, Vec<u64>) = all.into_iter().partition(|&length| length > LONGEST);
        Turn { span: span.saturating_sub(long.iter().sum()), lengths }
    }
}

fn build(folder: &Path) -> PathBuf {
    let program = folder.join("loop");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/loop.c");
    let built = Command::new("cc").args(["-O2", "-Wall", "-Werror", "-o"]).arg(&program).arg(source).status();
    assert!(built.expect("a C compiler").success());
    program
}

/// One measurement by the independent loop.
fn by_loop(program: &Path, core: u32, shortest: u64) -> Turn {
    let arguments = [u64::from(core), TURN.as_millis() as u64, shortest, u64::from(PRIORITY)];
    let output = Command::new(program).args(arguments.map(|number| number.to_string())).output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let mut lines = text.lines().map(|line| line.rsplit_once(' ').expect("two words").1.parse().expect("a number"));
    Turn::new(lines.next().expect("a span"), lines)
}

/// One measurement by fxscope.
fn by_fxscope(method: Method, core: u32, shortest: u64) -> Turn {
    let plan = Plan {
        method,
        cores: vec![core],
        duration: TURN,
        quantum: None,
        threshold: Some(shortest),
        blocks: 1,
        priority: Some(PRIORITY),
        system_clock: false,
    };
    let mut file = Vec::new();
    let summary = measure::run(&plan, &mut file, Control::until(&AtomicBool::new(false))).expect("measurable as root");
    let mut reader = Reader::new(&file[..]).expect("a trace");
    let mut lengths = Vec::new();
    while let Some(item) = reader.next_item().expect("whole") {
        if let Item::Detours(_, some) = item {
            lengths.extend(some.into_iter().map(|detour| detour.length));
        }
    }
    Turn::new(summary.duration, lengths)
}

/// A figure of all turns, and its standard error from their spread.
fn mean(turns: &[Turn], of: impl Fn(&Turn) -> f64) -> (f64, f64) {
    let values: Vec<f64> = turns.iter().map(of).collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}

/// Compares rates and shares of detours for which `counts` says so. `steady`: whether the noise is known to be the same in
/// all turns; otherwise three standard errors of the difference are accepted as well, as the host's load changes.
fn compare(what: &str, both: [&[Turn]; 2], counts: impl Fn(u64) -> bool, steady: bool) {
    let rate =
        |turn: &Turn| turn.lengths.iter().filter(|&&length| counts(length)).count() as f64 * 1e9 / turn.span as f64;
    let share = |turn: &Turn| {
        turn.lengths.iter().filter(|&&length| counts(length)).sum::<u64>() as f64 * 100.0 / turn.span as f64
    };
    let [rates, shares] = [both.map(|turns| mean(turns, rate)), both.map(|turns| mean(turns, share))];
    println!(
        "{what}: {:.1} and {:.1} a second, {:.3} % and {:.3} % of the time (loop.c, fxscope); standard errors \
         {:.1}, {:.1}, {:.3}, {:.3}",
        rates[0].0, rates[1].0, shares[0].0, shares[1].0, rates[0].1, rates[1].1, shares[0].1, shares[1].1
    );
    for (of, [one, other], part) in [("rates", rates, RATES), ("shares", shares, SHARES)] {
        let chance = if steady { 0.0 } else { 3.0 * one.1.hypot(other.1) };
        let accepted = (part * one.0).max(chance);
        assert!((one.0 - other.0).abs() <= accepted, "{what}: {of} {} and {}, accepted {accepted}", one.0, other.0);
    }
}

/// Measures alternately.
fn alternate(method: Method, core: u32, shortest: u64, program: &Path) -> [Vec<Turn>; 2] {
    let mut both = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        both[0].push(by_loop(program, core, shortest));
        both[1].push(by_fxscope(method, core, shortest));
    }
    both
}

#[test]
#[ignore = "takes real-time priorities; make jitter-test runs it"]
fn an_independent_loop_sees_the_same_injected_noise() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(folder.path());
    let core = *native::allowed().expect("known").last().expect("a core");
    let length = Duration::from_millis(1);
    for method in [Method::Spin, Method::Fwq] {
        let stop = AtomicBool::new(false);
        let both = std::thread::scope(|scope| {
            let go_on = || !stop.load(Ordering::Relaxed);
            scope.spawn(move || steal(core, Duration::from_millis(20), length, go_on));
            let both = alternate(method, core, 100_000, &program);
            stop.store(true, Ordering::Relaxed);
            both
        });
        let near = |of: u64| (900_000..1_500_000).contains(&of);
        compare(&format!("injected, {}", method.name()), [&both[0], &both[1]], near, true);
    }
}

#[test]
#[ignore = "takes real-time priorities; make jitter-test runs it"]
fn an_independent_loop_sees_the_same_noise_of_the_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(folder.path());
    let core = *native::allowed().expect("known").last().expect("a core");
    let both = alternate(Method::Spin, core, 5_000, &program);
    compare("the host's own", [&both[0], &both[1]], |_| true, false);
}
