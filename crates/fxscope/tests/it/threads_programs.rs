//! Threaded programs as users write them, timed: C++ threads, pthreads, OpenMP by both common libraries.

use crate::common;

use common::timed::{OPENMP, Run, THREADS, run};
use common::{compile, compile_cpp, failure, output};
use fxscope_testkit::skip;
use std::path::{Path, PathBuf};
use std::process::Command;

const DIES: &str = include_str!("../programs/dies.c");
const OPENMP_PROGRAM: &str = include_str!("../programs/openmp.c");
const PHASES: &str = include_str!("../programs/phases.c");
const PLACE: &str = include_str!("../programs/place.c");
const QUEUE: &str = include_str!("../programs/queue.cpp");

/// A program of `shares.c`; its regions are marked as in `kernels/fxscope_roi.h`.
fn shares(folder: &Path) -> String {
    let source = concat!(include_str!("../../../../kernels/fxscope_roi.h"), include_str!("../programs/shares.c"));
    compile(folder, "shares", &THREADS, source)
}

/// Runs a program twice; the runs must be identical.
fn run_twice(folder: &Path, options: &str, program: &str, arguments: &str) -> Run {
    let once = || run(folder, options, program, arguments).without_host();
    let (first, second) = (once(), once());
    assert!(first == second, "{program} {options}: {} and {} cycles", first.cycles(), second.cycles());
    first
}

// ---- C++ and pthreads -------------------------------------------------------------------------

#[test]
fn pthread_barriers_mutexes_and_read_write_locks_synchronise() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = compile(folder.path(), "phases", &THREADS, PHASES);
    // With one CPU each, on two CMGs, and with more threads than CPUs.
    for (cpus, threads) in [("12-23", 12), ("12-17,24-29", 12), ("12-14", 12)] {
        let seen = run_twice(folder.path(), &format!("--cpus {cpus}"), &program, &threads.to_string());
        assert_eq!(seen.text, format!("counted {}, last to come 4 times, wrong 0\n", 4 * threads), "{cpus}");
    }
}

/// Cycles of a share of `shares.c`: a chain of divisions (FDIV of doubles, manual 16.2).
const SHARE: f64 = 2000.0 * 43.0;

#[test]
fn threads_early_at_a_barrier_wait_for_the_last_one_as_their_cycles_show() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let seen = run(folder.path(), "--cpus 12-15", &shares(folder.path()), "unequal 4");
    let (cycles, asleep) = (seen.events("unequal", "CPU_CYCLES"), seen.events("unequal", "WFE_WFI_CYCLE"));
    let [first, second, third, last] = &asleep[..] else { panic!("four threads: {asleep:?}") };
    assert_eq!(*last, 0, "nobody is left to wait for");
    for (wait, shares) in [(first, 3.0), (second, 2.0), (third, 1.0)] {
        assert!((*wait as f64 / (shares * SHARE) - 1.0).abs() < 0.1, "{asleep:?} cycles asleep");
    }
    // All have been in their regions as long as the thread with four shares, up to a wake-up.
    for all in &cycles {
        assert!((*all as f64 / (4.0 * SHARE) - 1.0).abs() < 0.05, "{cycles:?} cycles");
    }
}

#[test]
fn threads_that_share_cpus_take_longer_by_the_number_of_turns() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = shares(folder.path());
    let ns = |cpus: &str| {
        let seen = run(folder.path(), &format!("--cpus {cpus}"), &program, "equal 8");
        seen.text.trim().parse::<f64>().expect("ns")
    };
    // Four shares each; a cycle is 0.5 ns.
    let work = 4.0 * SHARE * 0.5;
    for (cpus, turns) in [("12-19", 1.0), ("12-15", 2.0), ("12-13", 4.0), ("12", 8.0)] {
        let ns = ns(cpus);
        assert!((ns / (turns * work) - 1.0).abs() < 0.08, "CPUs {cpus}: {ns} ns, {turns} turns of {work} ns");
    }
}

#[test]
fn a_thread_that_dies_leaves_a_record_with_all_threads_whatever_they_were_doing() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = compile(folder.path(), "dies", &THREADS, DIES);
    let (status, _) = failure(folder.path(), &["run", "--quiet", "-o", "died.fxr", "--", &program]);
    assert_eq!(status, 128 + 11);
    let report = output(folder.path(), &["report", "--format", "json", "died.fxr"]);
    assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
    let mut runs = common::json(&report.stdout);
    let died = Run { text: String::new(), json: runs[0].take() };
    let (cycles, instructions) = (died.events("all", "CPU_CYCLES"), died.events("all", "INST_RETIRED"));
    assert_eq!(instructions.len(), 6);
    assert!(instructions.iter().all(|&count| count > 0), "{instructions:?}");
    let asleep = died.events("all", "WFE_WFI_CYCLE");
    // The first thread, which waits for the one that dies, and those at the mutex and in the kernel slept to the end.
    for thread in [0, 4, 5] {
        assert!(asleep[thread] > cycles[thread] / 2, "thread {thread}: {asleep:?} of {cycles:?}");
    }
    // The thread that died, the one that computes and the one that spins did not.
    for thread in [1, 2, 3] {
        assert_eq!(asleep[thread], 0, "thread {thread}: {asleep:?}");
        assert!(instructions[thread] > 20_000, "thread {thread}: {instructions:?}");
    }
}

// ---- OpenMP -----------------------------------------------------------------------------------

/// An OpenMP library: how to link a program with it, and the options to run it.
struct Library {
    name: &'static str,
    options: String,
    programs: PathBuf,
}

/// Returns the folder into which `programs/debian.sh` unpacks Debian's arm64 libraries, including LLVM's OpenMP; `None`
/// if they are missing.
fn debian() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/programs/root");
    if root.join(".complete").exists() {
        return Some(root.canonicalize().expect("a folder"));
    }
    skip("LLVM's OpenMP library is missing; programs/debian.sh --fetch brings it");
    None
}

/// GNU's OpenMP library, and LLVM's if available; their programs go into folders in `folder`.
fn libraries(folder: &Path) -> Vec<Library> {
    let of = |name: &'static str, options: String| {
        let programs = folder.join(name);
        std::fs::create_dir(&programs).expect("writable");
        Library { name, options, programs }
    };
    let llvm = debian().map(|root| of("libomp", format!("--sysroot {}", root.display())));
    [of("libgomp", String::new())].into_iter().chain(llvm).collect()
}

impl Library {
    /// Compiles a program; returns its path. GCC's calls are those of libgomp, which LLVM's library has, too.
    fn compile(&self, name: &str, source: &str) -> String {
        let Some(root) = self.options.strip_prefix("--sysroot ") else {
            return compile(&self.programs, name, &OPENMP, source);
        };
        let object = compile(&self.programs, &format!("{name}.o"), &["-O2", "-mcpu=a64fx", "-fopenmp", "-c"], source);
        let libraries = format!("{root}/usr/lib/aarch64-linux-gnu");
        let program = self.programs.join(name);
        let mut command = Command::new("aarch64-linux-gnu-gcc");
        command.arg("-o").arg(&program).args([object, format!("{libraries}/libomp.so.5"), "-lm".to_owned()]);
        for folder in [&libraries, &format!("{root}/lib/aarch64-linux-gnu")] {
            command.arg(format!("-Wl,-rpath-link,{folder}"));
        }
        assert!(command.status().expect("the compiler starts").success());
        program.to_str().expect("UTF-8 path").to_owned()
    }

    /// Options of a run.
    fn with(&self, options: &str) -> String {
        format!("{options} {}", self.options)
    }
}

/// Returns the places that an OpenMP library reports, and where the threads run.
fn places(folder: &Path, library: &Library, program: &str, variable: &str) -> (String, String) {
    let options = library.with(&format!("run --quiet -e OMP_NUM_THREADS=3 -e {variable} -- {program}"));
    let (run, sysroot) = options.split_once(" -- ").expect("a program");
    let (program, sysroot) = sysroot.split_once(' ').expect("two parts");
    let arguments: Vec<&str> =
        run.split_whitespace().chain(sysroot.split_whitespace()).chain(["--", program]).collect();
    let output = output(folder, &arguments);
    assert!(output.status.success());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr))
}

/// Takes a minute of processor time.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn openmp_programs_compute_the_same_with_a_cpu_for_each_thread_and_with_fewer() {
        let folder = tempfile::tempdir().expect("temporary folder");
        for library in libraries(folder.path()) {
            let program = library.compile("openmp", OPENMP_PROGRAM);
            // Waiting threads sleep at once where CPUs are shared, as such a program should be configured.
            for (cpus, threads, waiting) in [("12-23", 12, ""), ("12-13", 4, "-e OMP_WAIT_POLICY=passive")] {
                let options = library.with(&format!("--cpus {cpus} -e OMP_NUM_THREADS={threads} {waiting}"));
                let seen = run_twice(folder.path(), &options, &program, "");
                let counted = 3 * threads;
                let expected =
                    format!("threads {threads}, sum 179700, counted {counted}, single 1, tasks 21, inner 4, wrong 0\n");
                assert_eq!(seen.text, expected, "{} {cpus}", library.name);
                assert!(seen.cpus().len() >= threads, "{} {cpus}: {:?}", library.name, seen.cpus());
            }
        }
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn openmp_variables_place_threads_with_both_libraries() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let both = [
            ("OMP_PLACES={24},{36},{12}", "24 36 12\n"),
            ("OMP_PLACES={24}:3:12", "24 36 48\n"),
            ("OMP_PROC_BIND=close", "12 13 14\n"),
            ("OMP_PROC_BIND=spread", "12 28 44\n"),
            ("OMP_PROC_BIND=master", "12 12 12\n"),
            ("GOMP_CPU_AFFINITY=16-20:2", "16 18 20\n"),
        ];
        let llvm = [
            ("KMP_AFFINITY=compact", "12 13 14\n"),
            ("KMP_AFFINITY=scatter", "12 24 36\n"),
            ("KMP_AFFINITY=explicit,proclist=[24,36,12]", "24 36 12\n"),
        ];
        for library in libraries(folder.path()) {
            let program = library.compile("place", PLACE);
            let own = if library.name == "libomp" { &llvm[..] } else { &[] };
            for (variable, cpus) in both.iter().chain(own) {
                let options = library.with(&format!("-e OMP_NUM_THREADS=3 -e {variable}"));
                let seen = run(folder.path(), &options, &program, "");
                assert_eq!(seen.text, *cpus, "{} {variable}", library.name);
            }
        }
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn threads_that_share_a_cpu_wait_for_each_others_slices_of_three_milliseconds() {
        let folder = tempfile::tempdir().expect("temporary folder");
        for (cpus, threads, others) in [("12", 2, 1.0), ("12", 3, 2.0), ("12-13", 2, 0.0)] {
            let seen =
                run(folder.path(), &format!("--cpus {cpus}"), &shares(folder.path()), &format!("slices {threads}"));
            for line in seen.text.lines() {
                let us: f64 = line.parse().expect("µs");
                // There is a share of work between two reads of the clock, too.
                let least = others * 3000.0;
                assert!((least..least + 60.0).contains(&us), "{threads} threads on {cpus}: {us} µs without a CPU");
            }
        }
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn cpp_threads_that_take_work_from_a_queue_do_it_once_each_and_sleep_while_it_is_empty() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let program = compile_cpp(folder.path(), "queue", &THREADS, QUEUE);
        for cpus in ["12-23", "12-14"] {
            let seen = run_twice(folder.path(), &format!("--cpus {cpus}"), &program, "");
            assert_eq!(seen.text, "200 numbers, as alone\n", "{cpus}");
            let asleep = seen.events("all", "WFE_WFI_CYCLE");
            assert_eq!(asleep.len(), 12, "{cpus}");
        }
        let alone = run(folder.path(), "--cpus 12-23", &program, "");
        let asleep = alone.events("all", "WFE_WFI_CYCLE");
        assert!(asleep.iter().all(|&cycles| cycles > 0), "each with a CPU of its own has slept: {asleep:?}");
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn places_that_the_machine_does_not_have_are_reported_by_the_library_and_the_program_continues() {
        let folder = tempfile::tempdir().expect("temporary folder");
        for library in libraries(folder.path()) {
            let program = library.compile("place", PLACE);
            let named = if library.name == "libomp" { "invalid OS proc ID 60" } else { "usable logical CPUs" };
            // Four places, the last of which is outside; and none inside: threads run as without places.
            for (variable, cpus) in [("OMP_PLACES={24}:4:12", "24 36 48\n"), ("OMP_PLACES={60},{61}", "12 13 14\n")] {
                let (text, error) = places(folder.path(), &library, &program, variable);
                assert_eq!(text, cpus, "{} {variable}", library.name);
                assert!(error.contains(named), "{} {variable}: {error}", library.name);
            }
        }
    }
}
