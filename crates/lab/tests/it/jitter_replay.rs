//! Recorded runs of several ranks, replayed on several nodes: hand-made records, compared with arithmetic.

use std::collections::BTreeMap;

use fxscope_jitter::Program;
use fxscope_jitter::program::{Call, Collective, Step};
use fxscope_jitter::random::Stream;
use fxscope_lab::jitter::{Recorded, ReplayOptions, program_of, replay};
use fxscope_record::{
    ALL, Finish, Host, Mode, MpiCall, MpiFunction, ONE_PASS, Origin, Parallel, Process, Region, Run, Thread,
};
use fxscope_report::sheet::Sheet;

const FUNCTIONS: [(&str, &str); 12] = [
    ("MPI_Init", "other"),
    ("MPI_Finalize", "other"),
    ("MPI_Send", "send"),
    ("MPI_Isend", "send"),
    ("MPI_Sendrecv", "send"),
    ("MPI_Recv", "receive"),
    ("MPI_Irecv", "receive"),
    ("MPI_Waitall", "wait"),
    ("MPI_Allreduce", "collective"),
    ("MPI_Barrier", "collective"),
    ("MPI_Put", "one-sided"),
    ("MPI_Comm_rank", "other"),
];

/// A call: rank, name, bytes, partner, begin, end.
type Made<'a> = (u32, &'a str, Option<u64>, Option<u32>, u64, u64);

/// A run of some ranks, each with two threads, on CPUs of its own.
fn run(ranks: u32, made: &[Made]) -> Run {
    let processes = |rank| Process { number: rank, rank: Some(rank), program: "app".to_owned() };
    let functions = (0..ranks).flat_map(|process| {
        FUNCTIONS.iter().map(move |(name, kind)| MpiFunction {
            process,
            name: (*name).to_owned(),
            kind: (*kind).to_owned(),
            ..MpiFunction::default()
        })
    });
    let place = |name: &str| FUNCTIONS.iter().position(|function| function.0 == name).expect("known") as u32;
    let call = |&(process, name, bytes, partner, begin_ns, end_ns): &Made| {
        let function = process * FUNCTIONS.len() as u32 + place(name);
        MpiCall { process, thread: 0, function, bytes, partner, begin_ns, end_ns }
    };
    let mut calls: Vec<MpiCall> = made.iter().map(call).collect();
    calls.sort_by_key(|call| call.end_ns);
    let threads = (0..2 * ranks).map(|i| Thread { process: i / 2, thread: i % 2, node: 0, cpu: 12 + i });
    Run {
        tool: "fxscope".to_owned(),
        command: vec!["app".to_owned(), "4".to_owned()],
        environment: Vec::new(),
        machine: "fugaku".to_owned(),
        settings: Vec::new(),
        machine_hash: String::new(),
        description: None,
        constants: BTreeMap::new(),
        mode: Mode::Timing,
        finish: Finish::Exited(0),
        host: Host::default(),
        notes: Vec::new(),
        failures: Vec::new(),
        origin: Origin::Simulated,
        passes: vec![ONE_PASS.to_owned()],
        regions: vec![Region::of_one_pass(ALL, 1, threads.map(|thread| (thread, BTreeMap::new())).collect())],
        part: None,
        intervals: Vec::new(),
        parallel: Parallel {
            processes: (0..ranks).map(processes).collect(),
            functions: functions.collect(),
            calls,
            dropped_calls: 0,
        },
        pages: Vec::new(),
        files: Vec::new(),
        stalls: Vec::new(),
        pipes: Vec::new(),
        sample: None,
        hot_spots: Vec::new(),
        profile: Default::default(),
    }
}

/// Two ranks: a send that waits for its receiver, an exchange by requests, one by `MPI_Sendrecv`, and a reduction.
const CALLS: &[Made] = &[
    (0, "MPI_Init", None, None, 0, 100),
    (1, "MPI_Init", None, None, 0, 120),
    (0, "MPI_Comm_rank", None, None, 130, 140),
    (0, "MPI_Send", Some(4096), Some(1), 200, 560),
    (1, "MPI_Recv", Some(4096), Some(0), 500, 570),
    (0, "MPI_Irecv", Some(64), Some(1), 600, 605),
    (0, "MPI_Isend", Some(64), Some(1), 605, 620),
    (0, "MPI_Waitall", None, None, 700, 830),
    (1, "MPI_Irecv", Some(64), None, 600, 610),
    (1, "MPI_Isend", Some(64), Some(0), 800, 815),
    (1, "MPI_Waitall", None, None, 816, 826),
    (0, "MPI_Sendrecv", Some(8), Some(1), 900, 1015),
    (1, "MPI_Sendrecv", Some(8), Some(0), 1000, 1020),
    (0, "MPI_Allreduce", Some(16), None, 1100, 1240),
    (1, "MPI_Allreduce", Some(8), None, 1200, 1250),
    (0, "MPI_Finalize", None, None, 1300, 1400),
    (1, "MPI_Finalize", None, None, 1290, 1400),
];

fn recorded(ranks: u32, calls: &[Made]) -> Recorded {
    program_of(&run(ranks, calls)).expect("a program")
}

fn refused(run: &Run) -> String {
    program_of(run).expect_err("no program").to_string()
}

fn number(sheet: &Sheet, row: usize, title: &str) -> f64 {
    let table = &sheet.tables[0];
    let column = table.columns.iter().position(|column| column.title == title).expect("a column") - 1;
    table.rows[row].1[column].value().as_f64().expect("a number")
}

#[test]
fn calls_become_steps_with_computation_waiting_and_copying_apart() {
    let program = recorded(2, CALLS).program;
    let step = |compute, call, copy| Step { compute, call, copy };
    let reduce = |bytes| Call::Collective { kind: Collective::Allreduce, bytes };
    let first = [
        step(100, Call::SynchronousSend { to: 1, bytes: 4096 }, 60),
        step(45, Call::Send { to: 1, bytes: 64 }, 15),
        step(80, Call::Receive { from: 1 }, 30),
        step(70, Call::Send { to: 1, bytes: 8 }, 0),
        step(0, Call::Receive { from: 1 }, 15),
        step(85, reduce(16), 40),
    ];
    let second = [
        step(400, Call::Receive { from: 0 }, 70),
        step(230, Call::Send { to: 0, bytes: 64 }, 15),
        step(1, Call::Receive { from: 0 }, 10),
        step(174, Call::Send { to: 0, bytes: 8 }, 0),
        step(0, Call::Receive { from: 0 }, 20),
        step(180, reduce(8), 50),
    ];
    assert_eq!(program.ranks[0].steps, first);
    assert_eq!(program.ranks[1].steps, second);
    assert_eq!((program.threads, program.ranks[0].rest, program.ranks[1].rest), (2, 60, 40));
    assert_eq!(Program::parse(&program.text()), Ok(program));
}

#[test]
fn on_one_node_without_noise_the_run_takes_its_recorded_time() {
    let sheet = replay(&recorded(2, CALLS), &ReplayOptions::new("silent", [1, 64])).expect("it can be replayed");
    assert_eq!(number(&sheet, 0, "run"), 1200.0, "from the end of MPI_Init at 100 to MPI_Finalize at 1300");
    assert_eq!(
        (number(&sheet, 0, "noise"), number(&sheet, 0, "network"), number(&sheet, 0, "slowdown")),
        (0.0, 0.0, 1.0)
    );
    assert!(number(&sheet, 1, "network") > 0.5, "four exchanges and a reduction take microseconds");
    for row in 0..2 {
        let parts = ["efficiency", "noise", "network", "MPI"].map(|title| number(&sheet, row, title));
        assert!((parts.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{parts:?}");
    }
    assert!(sheet.title.starts_with("app: 2 ranks of 2 threads, "), "{}", sheet.title);
    let notes = sheet.notes.iter().flat_map(|(_, sentences)| sentences).cloned().collect::<String>();
    for part in ["Weak scaling", "MPI_COMM_WORLD", "six neighbouring nodes", "Network (documented)"] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
}

#[test]
fn noise_costs_more_on_more_nodes() {
    let calls: Vec<Made> = (0..2)
        .flat_map(|rank| {
            let call =
                move |i: u64| (rank, "MPI_Allreduce", Some(8), None, (i + 1) * 1_000_000, (i + 1) * 1_000_000 + 2000);
            (0..20).map(call)
        })
        .collect();
    let options = ReplayOptions { repetitions: 30, ..ReplayOptions::new("linux-1000hz", [1, 16, 256]) };
    let sheet = replay(&recorded(2, &calls), &options).expect("it can be replayed");
    let noise: Vec<f64> = (0..3).map(|row| number(&sheet, row, "noise")).collect();
    assert!(noise.is_sorted_by(|a, b| a < b), "{noise:?}");
    assert_eq!(sheet.tables.len(), 3, "with the causes of noise");
    let few = ReplayOptions { most_detours: 1e5, ..options };
    let sheet = replay(&recorded(2, &calls), &few).expect("it can be replayed");
    assert!(sheet.notes[0].1.iter().any(|note| note.contains("--most-detours allows: 256 nodes")), "{:?}", sheet.notes);
}

#[test]
fn runs_that_cannot_be_replayed_are_refused_with_what_to_do() {
    let whole = run(2, CALLS);
    let functional = Run { mode: Mode::Functional, ..whole.clone() };
    assert!(refused(&functional).contains("--mode timing"));
    let none = Run { parallel: Parallel::default(), ..whole.clone() };
    assert!(refused(&none).contains("no recorded calls of MPI"));
    let mut missing = whole.clone();
    missing.parallel.processes.remove(0);
    assert!(refused(&missing).contains("rank 0 is missing"));
    let one = run(1, &[(0, "MPI_Init", None, None, 0, 10), (0, "MPI_Send", Some(8), Some(1), 20, 30)]);
    assert!(refused(&one).contains("never wait for each other"));
    let apart = [(0, "MPI_Barrier", None, None, 0, 10), (1, "MPI_Allreduce", Some(8), None, 0, 10)];
    let message = refused(&run(2, &apart));
    assert!(message.contains("rank 1 is at allreduce, while rank 0 is at barrier"), "{message}");
}

#[test]
fn what_the_record_does_not_say_is_stated() {
    let mut partly = run(2, CALLS);
    partly.parallel.dropped_calls = 7;
    partly.parallel.functions.iter_mut().for_each(|function| function.calls = 1);
    partly.parallel.calls.retain(|call| call.begin_ns != 500);
    let notes = program_of(&partly).expect("a program").notes.join(" ");
    for part in ["1 sends and receives have no partner", "One-sided", "the first 16 calls", "7 later ones"] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    assert_eq!(recorded(2, CALLS).notes, Vec::<String>::new());
    let alone = recorded(1, &[(0, "MPI_Allreduce", Some(8), None, 50, 60)]);
    assert_eq!(alone.program.steps(), 1, "one rank a node waits for the other nodes");
}

#[test]
fn any_record_is_replayed_or_refused() {
    let mut replayed = 0;
    for seed in 0..300 {
        let stream = Stream::new(seed);
        let calls: Vec<Made> = (0..12)
            .map(|i| {
                let draw = |n: u64, below: u64| stream.below(i * 8 + n, below);
                let (name, _) = FUNCTIONS[draw(0, FUNCTIONS.len() as u64) as usize];
                let partner = Some(draw(2, 4) as u32).filter(|&partner| partner < 3);
                let bytes = Some(draw(3, 5)).filter(|&bytes| bytes > 0).map(|bytes| u64::MAX >> (15 * bytes));
                let begin = draw(4, 300);
                (draw(1, 2) as u32, name, bytes, partner, begin, begin + draw(5, 100))
            })
            .collect();
        let mut made = run(2, &calls);
        if seed % 3 == 0 {
            made.parallel.calls.iter_mut().take(1).for_each(|call| (call.function, call.end_ns) = (u32::MAX, 0));
        }
        if let Ok(program) = program_of(&made) {
            let sheet = replay(&program, &ReplayOptions { repetitions: 1, ..ReplayOptions::new("silent", [1, 8]) });
            replayed += usize::from(sheet.is_ok());
        }
    }
    assert!(replayed > 10, "{replayed}");
}
