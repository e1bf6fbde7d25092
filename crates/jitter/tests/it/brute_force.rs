//! Runs of 1 to 64 nodes match a simulation that examines every core in every phase.

use fxscope_jitter::model::{self, Model};
use fxscope_jitter::network;
use fxscope_jitter::scale::{Detour, PhaseEnd, Setup, Streams, simulate};
use fxscope_osnoise::import::Imported;
use fxscope_osnoise::trace::{Cause, CoreSummary, Kind, Summary};

/// A mixture: overlaps, queues, detours longer than phases, correlations, traces.
const MIXED: &str = r#"
version = 1
title = "everything"
[[noise]]
cause = "tick"
arrival = { kind = "periodic", period = "333us", missing = 0.3 }
length = { kind = "uniform", at_least = "2us", at_most = "9us" }
source = "test"
evidence = "assumed"
[[noise]]
cause = "random"
arrival = { kind = "poisson", rate = 900.0 }
length = { kind = "pareto", shape = 1.2, at_least = "5us", at_most = "3ms" }
source = "test"
evidence = "assumed"
[[noise]]
cause = "node daemon"
arrival = { kind = "gaps", at_least = "1ms", mean = "2ms" }
length = { kind = "exponential", mean = "300us" }
on = "node"
source = "test"
evidence = "assumed"
[[noise]]
cause = "node-wide"
arrival = { kind = "gaps", at_least = "3ms", at_most = "9ms" }
length = { kind = "two-point", short = "1us", long = "700us", long_share = 0.1 }
correlation = "node"
lengths = "same"
source = "test"
evidence = "assumed"
[[noise]]
cause = "everywhere"
arrival = { kind = "poisson", rate = 50.0 }
length = { kind = "histogram", edges = ["1us", "10us", "1ms"], counts = [5.0, 2.0] }
correlation = "aligned"
source = "test"
evidence = "assumed"
[[noise]]
cause = "first core"
arrival = { kind = "periodic", period = "1ms", phase = "aligned" }
length = { kind = "fixed", value = "40us" }
on = [0]
source = "test"
evidence = "assumed"
"#;

pub fn mixed() -> Model {
    model::parse(MIXED, "mixed", None).unwrap()
}

/// When a core is occupied, in order.
pub type Taken = Vec<(u64, u64)>;

/// When a core is occupied: each detour waits for the previous one.
fn taken(mut detours: Vec<Detour>) -> Taken {
    detours.sort();
    let mut free = 0;
    let mut out = Vec::new();
    for detour in detours {
        let start = detour.start.max(free);
        free = start + u64::from(detour.length);
        out.push((start, free));
    }
    out
}

/// When work started at `now` ends, stepping through all detours of the core.
pub fn end(taken: &[(u64, u64)], now: u64, work: u64) -> u64 {
    let (mut at, mut left) = (now, work);
    for &(start, end) in taken {
        if end <= at {
            continue;
        }
        if start > at {
            let free = start - at;
            if free >= left {
                return at + left;
            }
            left -= free;
        }
        at = end;
    }
    at + left
}

/// When each core of each node is occupied by detours that start before `horizon`.
pub fn nodes_taken(model: &Model, nodes: u32, cores: u32, seed: u64, horizon: u64) -> Vec<Vec<Taken>> {
    let streams = Streams::new(model, cores, seed).unwrap();
    let of_node = |node: u32| {
        let mut all = Vec::new();
        streams.extend(node, &mut streams.position(node), 0, horizon, &mut all);
        let of = |core: u16| all.iter().copied().filter(|d| d.core == core).collect();
        (0..cores as u16).map(|core| taken(of(core))).collect()
    };
    (0..nodes).map(of_node).collect()
}

/// Simulates every core in every phase; returns the final time.
fn brute_force(model: &Model, setup: &Setup, horizon: u64) -> u64 {
    let nodes = nodes_taken(model, setup.nodes, setup.cores, setup.seed, horizon);
    let works = setup.works();
    let mut starts = vec![0; nodes.len()];
    for phase in 0..setup.phases {
        let left = 1.0 - (phase as f64 + 0.5) / setup.phases as f64;
        let work = |node: usize| match setup.end {
            PhaseEnd::Panel { .. } => ((works[node] as f64 * (3.0 * left * left)).round() as u64).max(1),
            _ => works[node],
        };
        let last = |(n, cores): (usize, &Vec<Vec<(u64, u64)>>)| {
            cores.iter().map(|core| end(core, starts[n], work(n))).max().unwrap()
        };
        let ends: Vec<u64> = nodes.iter().enumerate().map(last).collect();
        assert!(ends.iter().all(|&end| end < horizon));
        for (node, start) in starts.iter_mut().enumerate() {
            let partners: Vec<usize> = match setup.end {
                PhaseEnd::All { .. } => (0..nodes.len()).collect(),
                PhaseEnd::Some { every, .. } if (phase + 1) % every == 0 => (0..nodes.len()).collect(),
                PhaseEnd::Neighbours { grid, .. } | PhaseEnd::Some { grid, .. } => {
                    around(node, grid.map(|n| n as usize))
                }
                PhaseEnd::Panel { grid: [rows, _], .. } => {
                    let rows = rows as usize;
                    (node / rows * rows..(node / rows + 1) * rows).collect()
                }
            };
            let met = partners.iter().map(|&p| ends[p]).max().unwrap();
            *start = match setup.end {
                PhaseEnd::All { cost } | PhaseEnd::Neighbours { cost, .. } => met + cost,
                PhaseEnd::Some { cost, halo, every, .. } => met + if (phase + 1) % every == 0 { cost } else { halo },
                PhaseEnd::Panel { cost, grid: [rows, columns] } => {
                    let owner = (phase % u64::from(columns)) as usize * rows as usize;
                    met.max(ends[owner..][..rows as usize].iter().max().unwrap() + cost)
                }
            };
        }
    }
    starts.into_iter().max().unwrap()
}

/// A node of a periodic grid and its six neighbours.
pub fn around(node: usize, [nx, ny, nz]: [usize; 3]) -> Vec<usize> {
    let (x, y, z) = (node % nx, node / nx % ny, node / nx / ny);
    let at = |x: usize, y: usize, z: usize| (z % nz * ny + y % ny) * nx + x % nx;
    vec![
        node,
        at(x + 1, y, z),
        at(x + nx - 1, y, z),
        at(x, y + 1, z),
        at(x, y + ny - 1, z),
        at(x, y, z + 1),
        at(x, y, z + nz - 1),
    ]
}

fn compare(model: &Model, nodes: u32, cores: u32, grain: u64, imbalance: f64, phases: u64) {
    let cost = 1700;
    let phase_ends = [
        PhaseEnd::All { cost },
        PhaseEnd::Neighbours { cost, grid: network::grid(nodes) },
        PhaseEnd::Panel { cost, grid: network::square(nodes) },
        PhaseEnd::Some { cost, halo: 900, grid: network::grid(nodes), every: 7 },
    ];
    for phase_end in phase_ends {
        let setup = Setup { nodes, cores, grain, imbalance, phases, end: phase_end, seed: u64::from(nodes) + 3 };
        let outcome = simulate(model, &setup).unwrap();
        let expected = brute_force(model, &setup, outcome.time * 2 + 10_000_000);
        assert_eq!(outcome.time, expected, "{setup:?}");
        assert!(outcome.slowdown() > 1.0 && outcome.efficiency() < 1.0, "{setup:?}");
        let lost: f64 = outcome.lost.iter().sum();
        let noise = (outcome.time - outcome.quiet) as f64;
        assert!((lost / noise - 1.0).abs() < 1e-9, "{setup:?}: {lost} {noise}");
    }
}

#[test]
fn short_grains_match_brute_force() {
    for nodes in [1, 2, 5, 12, 64] {
        compare(&mixed(), nodes, 4, 50_000, 0.0, 300);
    }
}

#[test]
fn long_grains_with_many_detours_match_brute_force() {
    for nodes in [1, 7, 24] {
        compare(&mixed(), nodes, 3, 5_000_000, 0.0, 12);
    }
}

#[test]
fn nodes_with_unequal_work_match_brute_force() {
    for nodes in [1, 8, 63] {
        compare(&mixed(), nodes, 2, 100_000, 0.2, 200);
    }
}

#[test]
fn all_profiles_match_brute_force_on_64_nodes() {
    for name in model::names().filter(|name| *name != "silent") {
        let model = model::load(name).unwrap();
        let cost = 1000;
        let phase_end = PhaseEnd::All { cost };
        let setup = Setup { nodes: 64, cores: 4, grain: 400_000, imbalance: 0.0, phases: 600, end: phase_end, seed: 9 };
        let outcome = simulate(&model, &setup).unwrap();
        assert_eq!(outcome.time, brute_force(&model, &setup, outcome.time * 2), "{name}");
    }
}

/// Many short detours on each core, and a few long ones that determine when phases end.
fn mostly_short(nodes: u32) -> Model {
    let text = format!(
        r#"
version = 1
title = "mostly short"
[[noise]]
cause = "tick"
arrival = {{ kind = "periodic", period = "500us", missing = 0.2 }}
length = {{ kind = "uniform", at_least = "500ns", at_most = "2us" }}
source = "test"
evidence = "assumed"
[[noise]]
cause = "interrupts"
arrival = {{ kind = "poisson", rate = {} }}
length = {{ kind = "exponential", mean = "1us", at_most = "100us" }}
source = "test"
evidence = "assumed"
[[noise]]
cause = "daemons"
arrival = {{ kind = "poisson", rate = {} }}
length = {{ kind = "pareto", shape = 1.1, at_least = "300us", at_most = "3ms" }}
on = "node"
source = "test"
evidence = "assumed"
"#,
        256_000.0 / f64::from(nodes),
        1000.0 / f64::from(nodes),
    );
    model::parse(&text, "mostly short", None).unwrap()
}

#[test]
fn replayed_traces_match_brute_force() {
    let folder = tempfile::tempdir().unwrap();
    let trace =
        "duration_ns,5000000\ncore,start_ns,length_ns\n0,0,1000\n0,700000,90000\n3,1000000,250000\n3,4990000,10000\n";
    std::fs::write(folder.path().join("trace.csv"), trace).unwrap();
    for correlation in ["independent", "node", "aligned"] {
        let text = format!(
            "version = 1\ntitle = \"t\"\n[[noise]]\ncause = \"trace\"\narrival = {{ kind = \"trace\", file = \"trace.csv\" }}\n\
             correlation = \"{correlation}\"\nsource = \"test\"\nevidence = \"measured\"\n"
        );
        let model = model::parse(&text, "replay", Some(folder.path())).unwrap();
        for nodes in [1, 9] {
            compare(&model, nodes, 4, 300_000, 0.0, 200);
        }
    }
}

/// Duration of the recording, ns.
const RECORDED: u64 = 5_000_000;

/// A recording of three cores, the last one quiet: start, length and cause.
fn recording() -> [Vec<(u64, u64, Cause)>; 3] {
    let (tick, task) = (Cause::new(Kind::Interrupt, "tick"), Cause::new(Kind::Task, "daemon"));
    let own = Cause::new(Kind::Own, "writing the trace");
    let first = vec![
        (0, 1_000, tick.clone()),
        (700_000, 90_000, task.clone()),
        (1_000_000, 1_500, tick.clone()),
        (2_000_000, 400_000, own),
        (3_000_000, 1_200, tick.clone()),
    ];
    [first, vec![(1_000_000, 250_000, task), (4_990_000, 10_000, tick)], Vec::new()]
}

/// The model that replays it, from its file.
fn replay(folder: &std::path::Path) -> Model {
    let mut imported =
        Imported { summary: Summary { duration: RECORDED, ..Summary::default() }, ..Imported::default() };
    for (core, detours) in (4u32..).zip(recording()) {
        imported.cores.insert(core, detours);
        imported.summary.cores.push(CoreSummary { core, ..CoreSummary::default() });
    }
    let path = folder.join("recording.fxn");
    std::fs::write(&path, imported.write(Vec::new()).unwrap()).unwrap();
    model::load(&path.display().to_string()).unwrap()
}

#[test]
fn each_core_replays_a_recorded_core_from_a_random_moment() {
    let folder = tempfile::tempdir().unwrap();
    let model = replay(folder.path());
    let causes: Vec<&str> = model.sources.iter().map(|source| source.cause.as_str()).collect();
    assert_eq!(causes, ["task daemon", "interrupt tick"], "the measurement itself is no noise");
    let streams = Streams::new(&model, 16, 1).unwrap();
    // The detours of one recorded core from a moment on, for more than two repetitions.
    let end = 12_000_000;
    let of = |core: usize, offset: u64| -> Vec<(u64, u32, u8)> {
        let kept: Vec<_> = recording()[core].iter().filter(|(_, _, cause)| cause.kind != Kind::Own).cloned().collect();
        let rounds = (0..4).flat_map(|round| kept.clone().into_iter().map(move |d| (round * RECORDED + d.0, d.1, d.2)));
        let source = |cause: Cause| u8::from(cause.kind == Kind::Interrupt);
        let shifted = rounds.filter(|d| d.0 >= offset && d.0 - offset < end);
        shifted.map(|(start, length, cause)| (start - offset, length as u32, source(cause))).collect()
    };
    let mut met = std::collections::BTreeSet::new();
    for node in 0..8 {
        let (mut position, mut all) = (streams.position(node), Vec::new());
        // Drawn in windows, as in a simulation.
        for from in (0..end).step_by(750_000) {
            streams.extend(node, &mut position, from, from + 750_000, &mut all);
        }
        all.sort_unstable();
        for core in 0..16 {
            let found: Vec<_> = all.iter().filter(|d| d.core == core).map(|d| (d.start, d.length, d.source)).collect();
            let Some(&(start, length, _)) = found.first() else {
                met.insert(2);
                continue;
            };
            let fits = |lane: &usize| {
                let firsts = recording()[*lane].clone().into_iter().filter(|d| d.1 == u64::from(length));
                firsts.map(|d| (d.0 + RECORDED - start) % RECORDED).any(|offset| of(*lane, offset) == found)
            };
            met.insert((0..3).find(fits).unwrap_or_else(|| panic!("node {node} core {core}: {found:?}")));
        }
    }
    assert_eq!(met.len(), 3, "every recorded core is drawn");
}

/// The detours of a core of a node, in order.
fn of_core(streams: &Streams, node: u32, core: u16, end: u64) -> Vec<(u64, u32)> {
    let mut all = Vec::new();
    streams.extend(node, &mut streams.position(node), 0, end, &mut all);
    let mut own: Vec<_> = all.iter().filter(|d| d.core == core).map(|d| (d.start, d.length)).collect();
    own.sort_unstable();
    own
}

#[test]
fn simultaneous_recorded_detours_stay_simultaneous_within_a_node() {
    // Two cores with simultaneous detours, twice as long on the second.
    let starts = [0, 310_000, 1_000_000, 2_600_000, 4_100_000];
    let folder = tempfile::tempdir().unwrap();
    let cause = || Cause::new(Kind::Task, "gang");
    let mut imported =
        Imported { summary: Summary { duration: RECORDED, ..Summary::default() }, ..Imported::default() };
    for core in 0..2 {
        imported.cores.insert(core, starts.map(|start| (start, 1000 * (u64::from(core) + 1), cause())).to_vec());
    }
    let path = folder.path().join("gang.fxn");
    std::fs::write(&path, imported.write(Vec::new()).unwrap()).unwrap();
    let model = model::load(&path.display().to_string()).unwrap();
    let streams = Streams::new(&model, 5, 1).unwrap();
    let begins = |node, core| of_core(&streams, node, core, 3 * RECORDED).iter().map(|d| d.0).collect::<Vec<_>>();
    let mut moments = std::collections::BTreeSet::new();
    for node in 0..20 {
        // Pairs of cores start at their own moments; the fifth core has no partner.
        for first in [0, 2] {
            assert_eq!(begins(node, first), begins(node, first + 1), "node {node}");
            let lengths = [first, first + 1].map(|core| of_core(&streams, node, core, RECORDED)[0].1);
            assert!(lengths == [1000, 2000] || lengths == [2000, 1000], "node {node}: {lengths:?}");
        }
        moments.extend([0, 2, 4].map(|core| begins(node, core)));
    }
    assert_eq!(moments.len(), 60, "all moments differ");
    for nodes in [1, 2, 64] {
        compare(&model, nodes, 5, 300_000, 0.0, 100);
    }
}

#[test]
fn replayed_measurements_match_brute_force() {
    let folder = tempfile::tempdir().unwrap();
    let model = replay(folder.path());
    for nodes in [1, 9, 64] {
        compare(&model, nodes, 4, 300_000, 0.0, 200);
    }
}

#[test]
fn causes_of_a_recording_may_strike_different_cores() {
    // One cause takes 60 % of one core, another 60 % of the other: each core has at least 40 % left.
    let folder = tempfile::tempdir().unwrap();
    let mut imported = Imported { summary: Summary { duration: 1000, ..Summary::default() }, ..Imported::default() };
    imported.cores.insert(0, vec![(0, 600, Cause::new(Kind::Task, "a"))]);
    imported.cores.insert(1, vec![(0, 600, Cause::new(Kind::Task, "b"))]);
    let path = folder.path().join("t.fxn");
    std::fs::write(&path, imported.write(Vec::new()).unwrap()).unwrap();
    let model = model::load(&path.display().to_string()).unwrap();
    model.check(4).unwrap();
    assert!((model.fraction(4) - 0.6).abs() < 1e-12);
    // All of a core is too much.
    imported.cores.insert(1, vec![(0, 600, Cause::new(Kind::Task, "b")), (600, 400, Cause::new(Kind::Task, "c"))]);
    std::fs::write(&path, imported.write(Vec::new()).unwrap()).unwrap();
    let model = model::load(&path.display().to_string()).unwrap();
    assert!(model.check(4).unwrap_err().contains("noise of 100 % or more"));
}

#[test]
fn traces_without_detours_have_nothing_to_replay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.fxn");
    std::fs::write(&path, Imported::default().write(Vec::new()).unwrap()).unwrap();
    let message = model::load(&path.display().to_string()).unwrap_err();
    assert!(message.contains("t.fxn: has no individual detours to replay; measure longer"), "{message}");
}

/// Takes a minute of processor time.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn more_nodes_never_finish_earlier_and_share_the_noise_of_fewer() {
        let time = |nodes| {
            let phase_end = PhaseEnd::All { cost: 1000 };
            let setup = Setup { nodes, cores: 4, grain: 200_000, imbalance: 0.1, phases: 100, end: phase_end, seed: 2 };
            simulate(&mixed(), &setup).unwrap().time
        };
        let times: Vec<u64> = [1, 2, 3, 10, 64, 200, 1000, 3000].map(time).to_vec();
        assert!(times.is_sorted(), "{times:?}");
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn the_number_of_threads_does_not_change_results() {
        let phase_ends =
            |nodes| [PhaseEnd::All { cost: 900 }, PhaseEnd::Neighbours { cost: 900, grid: network::grid(nodes) }];
        for phase_end in phase_ends(5000) {
            let setup =
                Setup { nodes: 5000, cores: 2, grain: 100_000, imbalance: 0.0, phases: 40, end: phase_end, seed: 5 };
            let run = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| simulate(&mixed(), &setup).unwrap())
            };
            assert_eq!(run(1), run(3));
        }
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn sparse_phases_match_brute_force() {
        for (nodes, grain, phases) in [(32, 20_000_000, 100), (64, 10_000_000, 200)] {
            let model = mostly_short(nodes);
            for seed in 0..3 {
                let phase_end = PhaseEnd::All { cost: 1000 };
                let setup = Setup { nodes, cores: 4, grain, imbalance: 0.0, phases, end: phase_end, seed };
                let needed = setup.needed(&model).unwrap_or_else(|| panic!("{nodes} nodes: all are drawn"));
                assert!(needed < setup.detours(&model) / 4.0);
                let outcome = simulate(&model, &setup).unwrap();
                assert_eq!(outcome.time, brute_force(&model, &setup, outcome.time * 2), "{setup:?}");
                let lost: f64 = outcome.lost.iter().sum();
                let noise = (outcome.time - outcome.quiet) as f64;
                assert!((lost / noise - 1.0).abs() < 1e-9, "{setup:?}: {lost} {noise}");
            }
        }
    }
}
