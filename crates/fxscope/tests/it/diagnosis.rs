//! What a run of several processes says when something goes wrong.

use crate::common;

use common::{compile, json, output};

/// Runs the ranks; returns the exit status, the messages, and the JSON.
fn run(ranks: &str, how: &str, options: &[&str]) -> (i32, String, serde_json::Value) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = compile(folder.path(), "stuck", &["-g", "-O2", "-static"], include_str!("../programs/stuck.c"));
    let arguments = [&["run", "--quiet", "--json", "out.json"], options, &["--", &program, ranks, how]].concat();
    let run = output(folder.path(), &arguments);
    let text = std::fs::read(folder.path().join("out.json")).expect("written");
    (run.status.code().expect("ended"), String::from_utf8(run.stderr).expect("text"), json(&text))
}

/// Returns the number of the source line with this comment.
fn line(comment: &str) -> String {
    let lines = include_str!("../programs/stuck.c").lines();
    let found = lines.zip(1..).find(|(line, _)| line.contains(comment));
    format!("stuck.c:{}", found.expect("there").1)
}

const FUNCTIONAL: &[&str] = &["--mode", "functional", "--no-progress", "2ms"];
const TIMED: &[&str] = &["--no-progress", "500us"];

#[test]
fn ranks_that_all_sleep_are_a_deadlock_with_the_call_of_each() {
    for options in [FUNCTIONAL, TIMED] {
        let (status, messages, _) = run("2", "asleep", options);
        assert_eq!(status, 125, "{messages}");
        for expected in
            ["deadlock", "rank 0: MPI_Recv", "rank 1: MPI_Recv", &line("receives"), "waits for file descriptor 3"]
        {
            assert!(messages.contains(expected), "{expected}: {messages}");
        }
    }
}

#[test]
fn a_rank_that_dies_is_named_with_the_reason_and_the_place() {
    for how in ["fault", "handled"] {
        let (status, messages, json) = run("3", how, FUNCTIONAL);
        assert_eq!(status, 139, "{messages}");
        let first = json["failures"][0].as_str().expect("a failure");
        for expected in ["rank 1 (process 1002, stuck) was ended by SIGSEGV", "accessing 0x8", "stuck.c:", "run ("] {
            assert!(first.contains(expected) && messages.contains(expected), "{how}, {expected}: {first}");
        }
        let others = json["failures"].as_array().expect("a list");
        assert!(
            others[1..].iter().all(|other| other
                .as_str()
                .is_some_and(|text| text.contains("SIGTERM") && text.contains("sent by process 1000 (stuck)"))),
            "{json}"
        );
    }
    let (status, messages, _) = run("2", "mpi_abort", FUNCTIONAL);
    assert_eq!(status, 3);
    assert!(
        messages.contains("rank 1 (process 1002, stuck) ended with exit status 3") && messages.contains("MPI_Abort"),
        "{messages}"
    );
    let (_, messages, _) = run("2", "kill", FUNCTIONAL);
    assert!(
        messages.contains("rank 1 (process 1002, stuck) was ended by SIGTERM") && messages.contains("sent by rank 0"),
        "{messages}"
    );
}

/// Two threads that wait for each other's flag, by a loop of more blocks than are followed in order to skip iterations.
const LONG_LOOPS: &str = r"
#include <pthread.h>
static volatile int flags[2];
#define LOOK if (flags[other]) break;
#define LOOKS LOOK LOOK LOOK LOOK LOOK LOOK LOOK LOOK LOOK LOOK
static void *waits(void *arg)
{
    long other = 1 - (long)arg;
    for (;;) { LOOKS LOOKS LOOKS LOOKS }
    flags[1 - other] = 1;
    return arg;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, waits, (void *)1);
    waits(0);
    return pthread_join(thread, 0);
}
";

#[test]
fn threads_that_are_simulated_in_parallel_and_wait_for_one_another_end_the_run() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = compile(folder.path(), "loops", &["-O1", "-static", "-pthread"], LONG_LOOPS);
    for threads in ["1", "2"] {
        let options = ["run", "--quiet", "--cpus", "12,36", "--host-threads", threads, "--no-progress", "200us"];
        let run = output(folder.path(), &[&options[..], &["--", &program]].concat());
        let messages = String::from_utf8(run.stderr).expect("text");
        assert_eq!(run.status.code(), Some(124), "{messages}");
        assert_eq!(messages.matches("runs without effect").count(), 2, "{messages}");
    }
}

/// Three threads that work one after the other, and wait for their turn in a loop that only reads.
const TURNS: &str = r"
#include <pthread.h>
static volatile int turn;
static volatile double sum;
static void *works(void *arg)
{
    int me = (long)arg;
    for (int round = 0; round < 120; round++) {
        while (turn % 3 != me) ;
        for (int i = 0; i < 300; i++) sum += i;
        turn++;
    }
    return 0;
}
int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(threads + i, 0, works, (void *)(i + 1));
    works(0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return sum == 120. * 3 * 299 * 150 ? 0 : 1;
}
";

/// They take longest.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn ranks_that_wait_for_one_that_computes_or_sleeps_make_progress() {
        for (options, how) in [(FUNCTIONAL, "work"), (TIMED, "work"), (FUNCTIONAL, "time"), (TIMED, "time")] {
            let (status, messages, json) = run("3", how, options);
            assert_eq!((status, json["finish"].as_str()), (0, Some("exited")), "{how}: {messages}");
        }
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn threads_that_wait_for_their_turn_again_and_again_make_progress() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let program = compile(folder.path(), "turns", &["-O1", "-static", "-pthread"], TURNS);
        for options in [&["--spin", "fast"][..], &["--spin", "exact"], &["--sample", "auto,begin=100000"]] {
            let limit = ["run", "--quiet", "--cpus", "12-14", "--no-progress", "30us"];
            let run = output(folder.path(), &[&limit[..], options, &["--", &program]].concat());
            assert_eq!(run.status.code(), Some(0), "{options:?}: {}", String::from_utf8_lossy(&run.stderr));
        }
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn ranks_that_poll_for_messages_that_nobody_sends_end_the_run_with_the_call_of_each() {
        let call = "MPI_Recv (from rank 1, 32 bytes, tag 9), ";
        for (options, ranks) in [(FUNCTIONAL, "2"), (FUNCTIONAL, "4"), (TIMED, "2"), (TIMED, "4")] {
            let (status, messages, json) = run(ranks, "receive", options);
            assert_eq!(status, 124, "{messages}");
            let caller = format!("called from run ({})", line("receives"));
            assert!(messages.contains(&format!("rank 0: {call}{caller}")), "{messages}");
            assert_eq!(messages.matches(&caller).count().to_string(), ranks, "{messages}");
            assert!(
                json["finish"]
                    .as_str()
                    .is_some_and(|finish| finish.starts_with("no progress for ") && !finish.contains(" 0.0 ms")),
                "{json}"
            );
            assert_eq!(
                json["processes"]
                    .as_array()
                    .map(|list| list.iter().filter(|p| !p["rank"].is_null()).count().to_string())
                    .as_deref(),
                Some(ranks)
            );
        }
    }
}
