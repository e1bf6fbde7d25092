//! Programs with MPI: ranks, and their time inside and outside of MPI.

use crate::common;

use common::timed::run;
use common::{compile, fxscope, json, output};
use serde_json::Value;

const ROUNDS: u64 = 6;
const MESSAGE: u64 = 64 * 8;

/// Returns the member of a list whose `key` is `value`.
fn with<'a>(list: &'a Value, key: &str, value: impl Into<Value>) -> Vec<&'a Value> {
    let value = value.into();
    list.as_array().expect("a list").iter().filter(|member| member[key] == value).collect()
}

#[test]
fn each_rank_has_its_time_outside_and_inside_of_mpi_and_the_bytes_that_it_sends() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = compile(folder.path(), "ranks", &["-O2", "-static"], include_str!("../programs/ranks.c"));
    let json = run(folder.path(), "-o r.fxr", &program, "").json;

    let processes = json["processes"].as_array().expect("several processes");
    let ranks: Vec<(Option<u64>, Option<u64>)> =
        processes.iter().map(|process| (process["process"].as_u64(), process["rank"].as_u64())).collect();
    assert_eq!(ranks, [(Some(0), Some(0)), (Some(1), Some(1)), (Some(2), None)], "ranks first, then the launcher");

    let mpi = &json["mpi"];
    // Rank 0 sends once more, to rank 0 of a communicator in which the order is reversed.
    for (rank, other, sends, receives) in [(0, 1, ROUNDS + 1, ROUNDS), (1, 0, ROUNDS, ROUNDS + 1)] {
        let of_rank = |name: &str| {
            let functions = with(&mpi["functions"], "process", rank);
            functions.into_iter().find(|function| function["function"] == name).cloned().expect("called")
        };
        // Nested calls count once: Fortran's function calls that of C, which calls that of the profiling interface.
        let (send, receive) = (of_rank("MPI_Send"), of_rank("MPI_Recv"));
        let bytes = |messages: u64| messages * MESSAGE;
        assert_eq!(
            (&send["calls"], &send["bytes"], &send["kind"]),
            (&sends.into(), &bytes(sends).into(), &"send".into())
        );
        assert_eq!((&receive["calls"], &receive["bytes"]), (&receives.into(), &bytes(receives).into()));
        assert_eq!((&of_rank("MPI_Init")["calls"], &of_rank("other functions")["calls"]), (&1.into(), &1.into()));
        let [messages] = with(&mpi["messages"], "from", rank)[..] else { panic!("one receiver") };
        assert_eq!(
            *messages,
            serde_json::json!({ "from": rank, "to": other, "messages": sends, "bytes": bytes(sends) })
        );
    }

    // Rank 0 computes a tenth of the time of rank 1, and waits for it.
    let time = |rank: usize, what: &str| mpi["ranks"][rank][what].as_f64().expect("a time");
    let share = |rank| time(rank, "compute_seconds") / time(rank, "seconds");
    assert!((0.08..0.15).contains(&share(0)) && share(1) > 0.95, "{} {}", share(0), share(1));
    let balance = mpi["efficiency"]["load_balance"].as_f64().expect("two ranks");
    let mean = (time(0, "compute_seconds") + time(1, "compute_seconds")) / 2.0;
    assert!((balance - mean / time(1, "compute_seconds")).abs() < 1e-12);

    let mut report = fxscope(folder.path(), &["report", "r.fxr", "--by", "rank"]);
    let report = report.env("COLUMNS", "100").output().expect("fxscope starts");
    let text = String::from_utf8(report.stdout).expect("text");
    for expected in ["load balance", "MPI_Recv", "rank 1 ", "process 2", "bytes sent between ranks"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn a_functional_run_follows_calls_in_every_process_and_program_whatever_code_runs_there() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let source = include_str!("../../../linux/tests/programs/mpi_calls.c");
    let program = compile(folder.path(), "calls", &["-O2", "-static", "-pthread"], source);
    let run = output(folder.path(), &["run", "--quiet", "--json", "-", "--mode", "functional", "--", &program]);
    let json = json(&run.stdout);
    let functions = json["mpi"]["functions"].as_array().expect("a list");
    let calls = |name: &str| -> u64 {
        functions.iter().filter(|f| f["function"] == name).map(|f| f["calls"].as_u64().expect("counted")).sum()
    };
    // Of two processes, one of which executes the program again, each with four threads that call at the same time.
    assert_eq!(calls("MPI_Test"), 2 * 4 * 100);
    // A call that longjmp leaves, and one in which the process ends.
    assert_eq!((calls("MPI_Wait"), calls("MPI_Barrier")), (2, 1), "{functions:?}");
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
}

/// They take longest.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn calls_of_mpi_are_recorded_one_by_one_and_do_not_depend_on_the_form_of_the_run() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let program = compile(folder.path(), "ranks", &["-O2", "-static"], include_str!("../programs/ranks.c"));
        let mpi = |options: &str| run(folder.path(), options, &program, "").json["mpi"].clone();
        let plain = mpi("");
        assert_eq!(mpi(""), plain, "the same run");
        let count = |mpi: &Value| {
            let functions = mpi["functions"].as_array().expect("a list").iter();
            functions.map(|f| (f["process"].clone(), f["function"].clone(), f["calls"].clone())).collect::<Vec<_>>()
        };
        for options in ["--host-threads 2", "--cpus 12,24"] {
            assert_eq!(count(&mpi(options)), count(&plain), "{options}");
        }
        // Functional mode has the same calls, bytes and partners. Its times are instructions of the process.
        let functional = mpi("--mode functional -o f.fxr");
        assert_eq!(mpi("--mode functional"), functional, "the same run");
        assert_eq!((count(&functional), &functional["messages"]), (count(&plain), &plain["messages"]));
        assert_eq!(
            (&functional["efficiency"]["parallel"], &functional["efficiency"]["communication"]),
            (&Value::Null, &Value::Null)
        );
        let balance = functional["efficiency"]["load_balance"].as_f64().expect("two ranks");
        assert!((0.5..0.6).contains(&balance), "a tenth of the work of the other rank: {balance}");
        let report = output(folder.path(), &["report", "f.fxr", "--by", "rank"]);
        let text = String::from_utf8(report.stdout).expect("text");
        for expected in ["instructions  compute", "MPI_Recv", "mean instructions", "bytes sent between ranks"] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }
}
