//! CMGs on several threads of the host: runs that are as repeatable as those on one, and hardly differ from them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use fxscope_counts::{Signal, Signals};
use fxscope_linux::{Guest, Setup, Stdio};
use fxscope_machine::Spec;
use fxscope_sim::{
    Control, Follow, HostThreads, Mode, Options, Outcome, QUANTUM, Simulation, SpinLoops, page_sizes, platform,
};

/// Runs Triad's threads with these arguments on `host_threads` threads of the host.
fn triad(arguments: &str, host_threads: usize) -> Outcome {
    run_of_triad(arguments, host_threads).0.run(&mut |_| Control::Continue)
}

/// The same, before it runs, and its options.
pub(crate) fn run_of_triad(arguments: &str, host_threads: usize) -> (Simulation, Options) {
    run_with(arguments, host_threads, &[ON_DEMAND])
}

/// Pages are on the CMG of the thread that touches them first.
const ON_DEMAND: &str = "XOS_MMM_L_PAGING_POLICY=demand:demand:demand";
/// Pages of 64 KiB, as much as each thread has of an array here. Threads of two CMGs share larger ones.
const SMALL_PAGES: &str = "XOS_MMM_L_HPAGE_TYPE=none";

/// The same with these variables.
fn run_with(arguments: &str, host_threads: usize, variables: &[&str]) -> (Simulation, Options) {
    let spec = Arc::new(fxscope_machine::load("a64fx", &[]).expect("built in"));
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/prebuilt/triad-threads.elf");
    let mut setup = Setup::new(machine(&spec), "triad").expect("descriptors");
    setup.args.extend(arguments.split(' ').map(|argument| argument.as_bytes().to_vec()));
    setup.env = variables.iter().map(|variable| variable.as_bytes().to_vec()).collect();
    let quiet = || std::fs::File::options().read(true).write(true).open("/dev/null").expect("/dev/null").into();
    setup.stdio = Stdio { input: quiet(), output: quiet(), error: quiet() };
    let guest = Guest::open(&program, setup).expect("a prebuilt program");
    let several = || (host_threads > 1).then(|| HostThreads::new(host_threads, &spec.topology).expect("threads"));
    let options = || Options {
        spec: Arc::clone(&spec),
        mode: Mode::Timing,
        max_instructions: None,
        quantum: QUANTUM,
        host_threads: several(),
        follow: Follow::All,
        spin: SpinLoops::Fast,
        interval_ns: None,
        stack_ns: None,
        interval_region: None,
        sample: None,
        precision: fxscope_sampling::Precision::default(),
        part: None,
        no_progress_ns: None,
    };
    (Simulation::new(guest, options()), options())
}

fn machine(spec: &Spec) -> fxscope_linux::Platform {
    let mut platform = platform(spec, 1 << 35);
    platform.page_sizes = page_sizes(spec, &[]);
    platform
}

/// What all threads have counted in the marked loop.
fn counted(outcome: &Outcome) -> Signals {
    let region = outcome.regions.iter().find(|region| region.name == "triad").expect("the program marks its loop");
    let mut all = Signals::default();
    region.threads.values().for_each(|counted| all.merge(counted.signals()));
    all
}

const FROM_L2: &str = "n=393216 passes=8 threads=48 form=wide";
const FROM_MEMORY: &str = "n=393216 passes=2 threads=48";

/// Returns the outcome of a run that several tests look at.
fn shared(arguments: &'static str, host_threads: usize) -> Arc<Outcome> {
    type Runs = BTreeMap<(&'static str, usize), Arc<OnceLock<Arc<Outcome>>>>;
    static RUNS: Mutex<Runs> = Mutex::new(Runs::new());
    let run = Arc::clone(RUNS.lock().expect("not poisoned").entry((arguments, host_threads)).or_default());
    Arc::clone(run.get_or_init(|| Arc::new(triad(arguments, host_threads))))
}

#[test]
fn threads_on_one_cmg_are_simulated_as_with_one_host_thread() {
    let arguments = "n=49152 passes=2 threads=12 form=wide";
    let [one, several] = [1, 4].map(|host_threads| triad(arguments, host_threads));
    assert_eq!(several.parallel_instructions, 0);
    assert_eq!((one.now_ns, one.regions), (several.now_ns, several.regions));
}

/// Takes a minute of processor time.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn time_and_misses_differ_by_a_percent_at_most_from_those_of_one_host_thread() {
        for arguments in [FROM_L2, FROM_MEMORY] {
            let one = shared(arguments, 1);
            assert_eq!(one.parallel_instructions, 0);
            for host_threads in [2, 4] {
                let several = shared(arguments, host_threads);
                let [a, b] = [&one, &several].map(|outcome| outcome.now_ns as f64);
                assert!((b / a - 1.0).abs() < 0.01, "{arguments}, {host_threads} host threads: {b} ns for {a}");
                for signal in [Signal::L1dCacheRefill, Signal::FpFmaSpec] {
                    let [a, b] = [&one, &several].map(|outcome| counted(outcome).get(signal) as f64);
                    assert!(
                        (b / a - 1.0).abs() < 0.01,
                        "{arguments}, {host_threads} host threads: {signal:?} {b} for {a}"
                    );
                }
            }
        }
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn runs_on_as_many_host_threads_give_the_same_to_the_last_count() {
        for host_threads in [2, 4] {
            let (a, b) = (shared(FROM_L2, host_threads), triad(FROM_L2, host_threads));
            assert_eq!((a.now_ns, &a.regions), (b.now_ns, &b.regions), "{host_threads} host threads");
            assert_eq!(a.hot.len(), b.hot.len());
        }
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn most_of_a_loop_without_synchronisation_is_simulated_side_by_side() {
        for arguments in [FROM_L2, "n=393216 passes=4 threads=48"] {
            // Each part of the arrays is on the CMG of its thread: threads that finish early would wait for the others, and while some
            // wait all are simulated in turns.
            let (mut run, _) = run_with(arguments, 2, &[ON_DEMAND, SMALL_PAGES]);
            let outcome = run.run(&mut |_| Control::Continue);
            let instructions = counted(&outcome).get(Signal::InstRetired);
            let share = outcome.parallel_instructions as f64 / instructions as f64;
            assert!(share > 0.6, "{arguments}: {} of {instructions}", outcome.parallel_instructions);
        }
    }
}
