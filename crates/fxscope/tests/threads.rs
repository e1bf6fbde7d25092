//! The threaded kernels run to their end and find what they compute right.

mod common;

use common::{kernel, output};

/// Runs a kernel whose arguments are separated by blanks; what it prints.
fn run(options: &[&str], program: &str, arguments: &str) -> String {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel(&format!("{program}.elf"));
    let args = [&["run", "--quiet"], options, &["--", &program]].concat();
    let args: Vec<&str> = args.into_iter().chain(arguments.split_whitespace()).collect();
    let output = output(folder.path(), &args);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{arguments}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Small cases of every threaded kernel.
const CASES: [(&str, &str); 18] = [
    ("triad-threads", "n=8320 passes=2 form=wide"),
    ("triad-threads", "n=8320 passes=2 form=plain"),
    ("triad-threads", "n=8320 passes=2 form=swpf-l1"),
    ("triad-threads", "n=8320 passes=2 form=swpf threads=48 cpus=12-59"),
    ("triad-threads", "n=32768 passes=2 form=zfill init=one"),
    ("triad-threads", "n=32768 passes=2 form=zfill-swpf threads=5 cpus=12-14,24"),
    ("barrier", "kind=spin rounds=5"),
    ("barrier", "kind=futex rounds=5"),
    ("barrier", "kind=hardware rounds=5 cpus=24-35"),
    ("barrier", "kind=hardware rounds=5 waiting=poll threads=2 cpus=36,47"),
    ("sharing", "layout=one-line rounds=50"),
    ("sharing", "layout=own-lines rounds=50"),
    ("pingpong", "rounds=5 cpus=12,24"),
    ("atomics", "op=ldadd rounds=20"),
    ("atomics", "op=exclusive rounds=20"),
    ("atomics", "op=cas rounds=20"),
    ("lock", "waiting=wfe rounds=3"),
    ("sector-threads", "n=4096 m=1000 pointers=tagged l2-ways=10 cpus=12-23"),
];

#[test]
fn threaded_kernels_compute_what_they_should() {
    for (program, arguments) in CASES {
        let text = run(&["--mode", "functional"], program, arguments);
        assert!(text.starts_with(&format!("{program} ok ")), "{text}");
    }
}

#[test]
fn outcomes_that_the_memory_model_forbids_do_not_appear() {
    for test in ["mp", "sb", "lb", "s", "r", "2+2w", "iriw", "corr"] {
        for form in ["plain", "ordered", "dmb"] {
            let text = run(&["--mode", "functional"], "litmus", &format!("test={test} form={form} rounds=3"));
            let allowed = form == "plain" && test != "corr";
            assert!(text.contains(if allowed { "weak-is=allowed" } else { "weak=0 weak-is=forbidden" }), "{text}");
        }
    }
}

#[test]
fn kernels_with_threads_run_in_timing_mode() {
    for (program, arguments) in [
        ("triad-threads", "n=3072 passes=1 threads=3"),
        ("barrier", "kind=hardware rounds=2 threads=3"),
        ("atomics", "op=exclusive threads=2 rounds=5"),
        ("lock", "waiting=wfe threads=2 rounds=2"),
    ] {
        let text = run(&[], program, arguments);
        assert!(text.starts_with(&format!("{program} ok ")), "{text}");
    }
}
