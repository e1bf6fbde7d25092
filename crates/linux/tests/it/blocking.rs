//! A blocking call lets the program's other threads and processes continue, and those of the host, too.

use crate::common;

use std::io::{Read as _, Write as _};
use std::path::Path;

use common::{HOSTED, Run, build, here_and_under_qemu, run_here, run_to_end, run_with};
use fxscope_linux::{Access, End};
use tempfile::TempDir;

fn folder() -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().canonicalize().expect("path").to_str().expect("UTF-8").to_owned();
    (folder, path)
}

/// Compares what the program prints here and under QEMU, which leaves the calls to the host.
fn same_as_under_qemu(what: &str) {
    let program = build("blocking.c", HOSTED);
    let [here, qemu] = here_and_under_qemu(|run| {
        let (_folder, path) = folder();
        let outcome = run(&program, &Run { args: &[what, &path], ..Run::default() });
        (outcome.output, outcome.error, outcome.status)
    });
    assert_eq!(here, qemu);
    assert_eq!((here.1.as_str(), here.2), ("", 0));
}

#[test]
fn large_transfers_arrive_completely_while_another_thread_reads() {
    same_as_under_qemu("transfers");
}

#[test]
fn opening_a_fifo_waits_for_the_other_end_and_is_interrupted_by_signals() {
    same_as_under_qemu("fifos");
}

#[test]
fn a_thread_waits_for_a_lock_while_its_owner_continues() {
    same_as_under_qemu("locks");
}

#[test]
fn connecting_waits_for_room_in_the_listeners_queue() {
    let (_folder, path) = folder();
    let access = Access { network: true, ..Access::standard() };
    let run = Run { args: &["connections", &path], ..Run::default() };
    let (outcome, _) = run_with(&build("blocking.c", HOSTED), &run, &access);
    assert_eq!((outcome.output.as_str(), outcome.error.as_str()), ("connections: 8\n", ""));
}

#[test]
fn fifos_connect_to_programs_on_the_host() {
    let (_folder, path) = folder();
    for name in ["request", "answer"] {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, Path::new(&path).join(name), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }
    let outside = {
        let (request, answer) = (Path::new(&path).join("request"), Path::new(&path).join("answer"));
        std::thread::spawn(move || {
            // Long enough for the program to wait for the reader.
            std::thread::sleep(std::time::Duration::from_millis(30));
            let mut text = [0; 7];
            let mut request = std::fs::File::open(request).expect("open");
            let mut answer = std::fs::File::create(answer).expect("create");
            // Nothing is written before the program has opened both FIFOs and sent its request.
            request.read_exact(&mut text).expect("read");
            answer.write_all(if &text == b"request" { b"answer" } else { b"error" }).expect("write");
        })
    };
    let outcome = run_here(&build("blocking.c", HOSTED), &Run { args: &["outside", &path], ..Run::default() });
    outside.join().expect("the program outside");
    assert_eq!(outcome.output, "answer: 6\ntext: answer\n");
}

#[test]
fn sending_to_a_socket_that_nobody_reads_is_a_deadlock() {
    let (_folder, path) = folder();
    let (end, ..) = run_to_end(&build("blocking.c", HOSTED), &Run { args: &["for ever", &path], ..Run::default() });
    let End::Deadlock { threads } = end else { panic!("{end}") };
    assert_eq!((threads.len(), threads[0].waits_for.as_deref()), (1, Some("file descriptor 3")));
}
