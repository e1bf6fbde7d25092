//! Engines are interchangeable: one that executes instructions one at a time, and one that translates them, give what the interpreter
//! gives.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use fxscope_aarch64::{Engine, Interpreter};
use fxscope_linux::{Code, Step};
use fxscope_sim::{Control, Mode, SpinLoops};
use fxscope_translate::Translator;

use crate::common::single_step::SingleStep;
use crate::common::{Run, build, kernel, streams, text};

/// Programs with partial predicates, subnormal numbers, signals, traps, other vector lengths, gathers and atomics.
fn one_thread() -> Vec<Run> {
    let mut runs = vec![
        Run::new(kernel("sort.elf"), "n=2000 passes=1"),
        Run::new(kernel("masked.elf"), "rows=20"),
        Run::new(kernel("gather.elf"), "n=1000 passes=1"),
        Run::new(kernel("dgemm-tile.elf"), ""),
        Run::new(build("signals.c", &[]), ""),
        Run::new(build("sve.c", &[]), ""),
        Run::new(build("vectors.c", &[]), "state"),
        Run::new(build("hosted.c", &[]), "x last"),
    ];
    runs.iter_mut().for_each(|run| run.max_instructions = Some(400_000));
    runs
}

/// Programs of several threads and processes.
fn several_threads() -> Vec<Run> {
    let mut runs = vec![
        Run::new(kernel("triad-threads.elf"), "n=3072 passes=2 threads=4"),
        Run::new(kernel("lock.elf"), "threads=3"),
        Run::new(kernel("atomics.elf"), "threads=3"),
        Run::new(build("threads.c", &["-pthread"]), ""),
        Run::new(build("snapshot.c", &["-pthread"]), "/etc/hostname"),
    ];
    runs.iter_mut().for_each(|run| run.max_instructions = Some(400_000));
    runs
}

/// Everything that a run gives, in words, and its output.
fn given<E: Engine>(run: &Run) -> String {
    let output = tempfile::tempfile().expect("temporary file");
    let mut simulation = run.simulation::<E>(&output);
    let outcome = simulation.run(&mut |_| Control::Continue);
    let instructions = simulation.guest().instructions();
    format!(
        "{:?} after {instructions} instructions, {} ns\n{:?}\n{:?}\n{:?}\n{:?}\n{}",
        outcome.finish,
        outcome.now_ns,
        outcome.regions,
        outcome.sample,
        outcome.intervals,
        outcome.hot,
        text(output)
    )
}

/// Compares what two engines give, line by line.
fn same(run: &Run, [one, other]: [String; 2]) {
    let named = format!("{} {} ({:?})", run.program.display(), run.arguments, run.mode);
    assert!(one.contains("Ended") || one.contains("Limit"), "{named}: {one}");
    for (one, other) in one.lines().zip(other.lines()) {
        assert_eq!(one, other, "{named}");
    }
    assert_eq!(one.lines().count(), other.lines().count(), "{named}");
}

#[test]
fn translated_code_gives_the_output_and_the_instructions_of_the_interpreter() {
    for run in one_thread().into_iter().chain(several_threads()) {
        let run = Run { mode: Mode::Functional, ..run };
        same(&run, [given::<Interpreter>(&run), given::<Translator<500>>(&run)]);
    }
}

#[test]
fn spin_loops_are_skipped_with_any_engine() {
    let run = Run::new(kernel("triad-threads.elf"), "n=3072 passes=4 threads=4");
    let exact = Run { spin: SpinLoops::Exact, ..run.clone() };
    let [skipped, all] = [&run, &exact].map(given::<SingleStep<64>>);
    same(&run, [given::<Interpreter>(&run), skipped]);
    same(&exact, [given::<Interpreter>(&exact), all]);
}

/// What a guest executes: digests of the addresses of all instructions and of all words in the dynamic stream, in order, and
/// the number of instructions; then its output.
fn executed<E: Engine>(run: &Run) -> ([u64; 3], String) {
    let output = tempfile::tempfile().expect("temporary file");
    let mut guest = run.guest(streams(&output));
    let mut code: Code<E> = Code::of(&guest);
    let (mut addresses, mut words) = (DefaultHasher::new(), DefaultHasher::new());
    while guest.end().is_none() {
        assert!(guest.instructions() < 50_000_000, "{} does not end", run.program.display());
        match guest.step(&mut code) {
            Step::Ran { block, executed } => {
                code.block(block).infos[..executed].iter().for_each(|info| info.addr.hash(&mut addresses));
                guest.cpu().stream().iter().for_each(|word| word.hash(&mut words));
            }
            Step::Sleep { until_ns } => guest.set_now_ns(until_ns),
            _ => {}
        }
    }
    ([addresses.finish(), words.finish(), guest.instructions()], text(output))
}

/// Takes a minute of processor time.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn blocks_of_one_instruction_execute_the_same_instructions_with_the_same_accesses() {
        for run in one_thread() {
            let (whole, single) = (executed::<Interpreter>(&run), executed::<SingleStep<1>>(&run));
            assert_eq!(whole, single, "{} {}", run.program.display(), run.arguments);
        }
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn an_engine_that_steps_through_blocks_gives_the_output_and_all_counts_of_the_interpreter() {
        for run in one_thread().into_iter().chain(several_threads()) {
            for mode in [Mode::Timing, Mode::Functional] {
                let run = Run { mode, ..run.clone() };
                same(&run, [given::<Interpreter>(&run), given::<SingleStep<64>>(&run)]);
            }
        }
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn translated_code_is_timed_and_sampled_as_interpreted_code_is() {
        for run in one_thread().into_iter().chain(several_threads()) {
            let follow = "begin=20000,window=500,warm=200,period=4000,keep=100000";
            let skip = "begin=20000,window=500,warm=200,period=60000,keep=100000,follow=1000";
            for sample in [None, Some(follow), Some(skip)] {
                let run = Run { sample, max_instructions: Some(150_000), ..run.clone() };
                same(&run, [given::<Interpreter>(&run), given::<Translator<50>>(&run)]);
            }
        }
    }
}
