//! `fapp` output becomes passes of a run; errors are reported with file and line.

use std::sync::LazyLock;

use fxscope_import::{FileError, Machine, Options, Source, fapp};
use fxscope_pmu::{Evaluation, constants};
use fxscope_record::{Finish, Origin, Run};
use proptest::prelude::*;

static MACHINE: LazyLock<Machine> = LazyLock::new(|| {
    let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
    Machine {
        name: "a64fx".to_owned(),
        path: None,
        pmu: spec.pmu.clone(),
        constants: constants(&spec),
        power_mode: None,
    }
});

const HEAD: &str = "FAPP-info,CSV version,2\n\
                    FAPP-info,Timer clock frequency,100000000\n\
                    FAPP-info,Vector length,512\n\
                    FAPP-core,0,0,0,0,0,12\n\
                    FAPP-core,0,0,1,0,0,13\n";
const HEADINGS: &str = "LABEL-FAPP-cpupa,Level,Spawn,Process,Thread,Region_name,Region_number,Call,CNTVCT,PMCCNTR,";

/// A file with loads and stores of two threads.
fn loads() -> String {
    format!(
        "{HEAD}{HEADINGS}0x0070,0x0071,-\n\
         FAPP-cpupa,Process,0,0,-,work,1,3,2000,40000,9,9,-\n\
         FAPP-cpupa,Thread,0,0,1,work,1,3,2000,41000,500,60,-\n\
         FAPP-cpupa,Thread,0,0,0,work,1,3,2000,40000,400,50,-\n"
    )
}

/// A file with effective instructions of the same program.
fn instructions() -> String {
    format!(
        "{HEAD}{HEADINGS}0x0121\n\
         FAPP-cpupa,Thread,0,0,0,work,1,3,2010,40100,90000\n\
         FAPP-cpupa,Thread,0,0,1,work,1,3,2010,41100,91000\n"
    )
}

fn options(strict: bool) -> Options {
    Options { command: vec!["work".to_owned()], strict, ..Options::default() }
}

fn read_all(files: &[(&str, &str)]) -> Result<Vec<Run>, FileError> {
    let sources: Vec<Source<'_>> = files.iter().map(|&(name, text)| Source { name, bytes: text.as_bytes() }).collect();
    fapp::read(&sources, &MACHINE, &options(false))
}

/// The only run in the files.
fn read(files: &[(&str, &str)]) -> Result<Run, FileError> {
    let mut runs = read_all(files)?;
    assert_eq!(runs.len(), 1);
    Ok(runs.remove(0))
}

#[test]
fn passes_keep_their_own_cycles_and_threads_their_order() {
    let run = read(&[("x.csv", &loads()), ("y.csv", &instructions())]).expect("well-formed");
    assert_eq!(run.passes, ["x", "y"]);
    assert_eq!(run.finish, Finish::Unknown);
    let files = vec!["x.csv".to_owned(), "y.csv".to_owned()];
    assert_eq!(run.origin, Origin::Imported { format: "fapp".to_owned(), files });
    let [region] = run.regions.as_slice() else { panic!("{} regions", run.regions.len()) };
    assert_eq!((region.name.as_str(), region.calls), ("work, 1", 3));
    assert_eq!(region.threads.iter().map(|t| (t.thread, t.cpu)).collect::<Vec<_>>(), [(0, 12), (1, 13)]);
    let cycles = |pass: usize| [0, 1].map(|thread| region.passes[pass].get(thread, "CPU_CYCLES"));
    assert_eq!([cycles(0), cycles(1)], [[Some(40_000), Some(41_000)], [Some(40_100), Some(41_100)]]);
    assert_eq!([region.count(0, "LD_SPEC"), region.count(1, "ST_SPEC")], [Some(400), Some(60)]);
}

#[test]
fn passes_are_identified_by_their_events_not_by_file_names() {
    let pass_13 = format!(
        "{HEAD}{HEADINGS}0x8095,0x8096,0x807c,0x800e,0x0109,0x010a,0x0077,-\n\
         FAPP-cpupa,Thread,0,0,0,work,1,3,2010,40200,1,2,3,4,5,6,7,-\n\
         FAPP-cpupa,Thread,0,0,1,work,1,3,2010,41200,1,2,3,4,5,6,7,-\n"
    );
    let run = read(&[("pa1.csv", &loads()), ("pa14.csv", &pass_13)]).expect("well-formed");
    assert_eq!(run.passes, ["pa13", "pa1"]);
    let values = Evaluation::new(&run, &run.regions[0]).threads();
    assert_eq!(values[0].get("movprfx_instructions"), Some(3.0));
}

#[test]
fn unmeasured_metrics_are_missing_and_name_their_events() {
    let run = read(&[("x.csv", &loads())]).expect("well-formed");
    let evaluation = Evaluation::new(&run, &run.regions[0]);
    assert_eq!(evaluation.total().get("l1d_miss_rate"), None);
    assert_eq!(evaluation.missing("l1d_miss_rate"), ["L1D_CACHE_REFILL"]);
    assert!(evaluation.missing("load_store_instructions").is_empty());
    // 2000 ticks of 10 ns.
    assert_eq!(evaluation.total().get("seconds"), Some(2e-5));
}

#[test]
fn errors_name_file_and_line() {
    let swap = |from: &str, to: &str| loads().replacen(from, to, 1);
    let cases = [
        (swap("FAPP-info,CSV version,2", "time,region"), "a: line 1: 'time' starts no line of fapp's CSV"),
        (swap("version,2", "version,3"), "a: line 1: CSV version 3; this reads version 2"),
        (swap("13\n", "-\n"), "a: line 5: a thread that is bound to no core"),
        (swap("PMCCNTR,", ""), "a: line 6: column 10 is '0x0070' where PMCCNTR belongs"),
        (swap("0x0071", "0x0070"), "a: line 6: LD_SPEC has two columns"),
        (swap("500,60,-", "500"), "a: line 8: 11 columns where the headings have 13"),
        (swap("400,50", "-400,50"), "a: line 9: count '-400' is negative"),
        (swap("400,50", "4x2,50"), "a: line 9: count '4x2' is not an integer"),
        (swap("400,50", "-,50"), "a: line 9: count '-' is not an integer"),
        (swap("400,50", "99999999999999999,50"), "a: line 9: count is 99999999999999999, more than a counter"),
        (swap("2000,41000", "2000,41000000"), "a: line 8: 41000000 cycles in 2000 timer ticks are impossible"),
        (swap("Thread,0,0,1", "Thread,0,0,7"), "a: line 8: thread 7 of process 0 has no line FAPP-core"),
        (swap("Thread,0,0,1", "Thread,0,0,0"), "a: thread 0 of process 0 has two lines for region 'work, 1'"),
        (swap("FAPP-info,Vector length,512\n", ""), "a: has no line FAPP-info,Vector length"),
        (swap("0,0,0,12", "0,0,2,12"), "a: its cores are not in the CMGs that a64fx has them in"),
        (String::new(), "a: has no line LABEL-FAPP-cpupa"),
    ];
    for (text, message) in cases {
        let problem = read(&[("a", &text)]).expect_err(message).to_string();
        assert!(problem.starts_with(message), "{problem}\nexpected {message}");
    }
}

#[test]
fn files_of_different_programs_are_not_joined() {
    let other = |from: &str, to: &str| instructions().replace(from, to);
    let cases = [
        (other("work", "play"), "b: the region 'play, 1' is in b only, not in a: they are of different programs"),
        (other("frequency,100000000", "frequency,25000000"), "b: timer_hz is 25000000, in a 100000000"),
        (
            other("FAPP-core,0,0,1,0,0,13\n", "FAPP-core,0,0,1,0,1,24\n"),
            "b: has counted other threads, or threads on other CPUs or CMGs, than a: measure all passes alike",
        ),
    ];
    for (text, message) in cases {
        let problem = read(&[("a", &loads()), ("b", &text)]).expect_err(message).to_string();
        assert!(problem.starts_with(message), "{problem}\nexpected {message}");
    }
}

#[test]
fn repeated_measurements_are_separate_runs() {
    let files = [("a/1", &*loads()), ("a/2", &*instructions()), ("b/1", &*loads()), ("b/2", &*instructions())];
    let runs = read_all(&files).expect("measured twice");
    let named = |name: &str| vec![format!("{name}/1"), format!("{name}/2")];
    let files_of = |run: &Run| match &run.origin {
        Origin::Imported { files, .. } => files.clone(),
        Origin::Simulated => Vec::new(),
    };
    assert_eq!(runs.iter().map(files_of).collect::<Vec<_>>(), [named("a"), named("b")]);
    let problem = read_all(&files[..3]).expect_err("the second pass is there once").to_string();
    let expected = "b/1: has the same events as a/1, but not all passes were measured equally often: give one of the two, or \
                    equally many files of each pass";
    assert_eq!(problem, expected);
}

proptest! {
    #[test]
    fn no_file_causes_a_panic(at in 0usize..400, junk in "[-,\"\n0-9a-fx]{0,12}") {
        let mut text = loads();
        let at = at.min(text.len());
        text.replace_range(at..(at + junk.len()).min(text.len()), &junk);
        let _ = read(&[("a", &text)]);
    }
}
