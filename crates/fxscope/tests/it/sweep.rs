//! `fxscope sweep`: runs of a plan, kept, continued and judged.

use crate::common;

use std::collections::BTreeMap;
use std::path::Path;

use common::{elf, exit, failure, fxscope, kernel, output};

/// Two factors with an effect that is known: passes multiply the time, the size of a TLB that is large enough does not change it.
const PLAN: &str = r#"
    [run]
    program = "./triad-l1.elf"
    arguments = ["passes={passes}"]
    set = { "tlb.l1_entries" = "{entries}" }
    [[factor]]
    name = "passes"
    values = [20, 40, 80]
    [[factor]]
    name = "entries"
    values = [16, 32]
"#;

fn folder(plan: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::copy(kernel("triad-l1.elf"), folder.path().join("triad-l1.elf")).expect("copied");
    std::fs::write(folder.path().join("plan.toml"), plan).expect("written");
    folder
}

/// Runs the plan; returns what is printed.
fn sweep(folder: &Path, args: &[&str]) -> String {
    let output = output(folder, &[&["sweep", "--quiet", "plan.toml"], args].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The lines of the results for the whole run, by column.
fn results(folder: &Path) -> Vec<BTreeMap<String, String>> {
    let mut csv = csv::Reader::from_path(folder.join("plan/results.csv")).expect("results");
    let lines = csv.deserialize().collect::<Result<Vec<BTreeMap<String, String>>, _>>().expect("valid lines");
    lines.into_iter().filter(|line| line["region"] != "triad").collect()
}

fn number(line: &BTreeMap<String, String>, column: &str) -> f64 {
    line[column].parse().unwrap_or_else(|_| panic!("{column}: {}", line[column]))
}

/// Names and times of the records.
fn records(folder: &Path) -> BTreeMap<String, std::time::SystemTime> {
    let files = std::fs::read_dir(folder.join("plan/records")).expect("records").map(|file| file.expect("a file"));
    let named = |file: std::fs::DirEntry| {
        (file.file_name().to_string_lossy().into_owned(), file.metadata().expect("there").modified().expect("a time"))
    };
    files.map(named).filter(|(name, _)| name.ends_with(".fxr")).collect()
}

#[test]
fn every_combination_runs_and_the_factor_that_matters_comes_first() {
    let folder = folder(PLAN);
    let text = sweep(folder.path(), &[]);
    let lines = results(folder.path());
    assert_eq!(lines.len(), 6);
    let instructions = |passes: f64| {
        let of_passes: Vec<f64> = lines
            .iter()
            .filter(|line| number(line, "passes") == passes)
            .map(|line| number(line, "instructions"))
            .collect();
        assert!(of_passes.len() == 2 && of_passes[0] == of_passes[1], "{of_passes:?}");
        of_passes[0]
    };
    // What is added with the passes is the loop.
    assert_eq!(instructions(80.0) - instructions(40.0), 2.0 * (instructions(40.0) - instructions(20.0)));
    assert!(text.contains("passes matters most"), "{text}");
    let best = text.lines().position(|line| line.contains("best run")).expect("the best runs");
    assert!(text.lines().nth(best + 1).expect("a run").contains("20"), "{text}");
}

#[test]
fn the_database_has_the_same_values() {
    let folder = folder(PLAN);
    sweep(folder.path(), &[]);
    let db = rusqlite::Connection::open(folder.path().join("plan/results.sqlite")).expect("a database");
    let mut query =
        db.prepare("SELECT passes, seconds FROM result WHERE region = 'all' ORDER BY run").expect("columns");
    let rows = query.query_map([], |row| Ok((row.get::<_, f64>(0)?, row.get::<_, f64>(1)?))).expect("rows");
    let rows: Vec<(f64, f64)> = rows.collect::<Result<_, _>>().expect("numbers");
    let lines = results(folder.path());
    let expected: Vec<(f64, f64)> =
        lines.iter().map(|line| (number(line, "passes"), number(line, "seconds"))).collect();
    assert_eq!(rows, expected);
}

#[test]
fn runs_that_are_there_are_not_made_again() {
    let folder = folder(PLAN);
    let first = sweep(folder.path(), &[]);
    let before = records(folder.path());
    assert_eq!(sweep(folder.path(), &[]), first);
    assert_eq!(records(folder.path()), before);
    // A larger plan makes what is new, another program makes all.
    std::fs::write(folder.path().join("plan.toml"), PLAN.replace("[16, 32]", "[16, 32, 64]")).expect("written");
    sweep(folder.path(), &[]);
    let more = records(folder.path());
    assert!(more.len() == 9 && before.iter().all(|(name, time)| more[name] == *time));
    std::fs::copy(kernel("triad-l2.elf"), folder.path().join("triad-l1.elf")).expect("copied");
    std::fs::write(folder.path().join("plan.toml"), PLAN.replace("[20, 40, 80]", "[1]")).expect("written");
    sweep(folder.path(), &[]);
    assert_eq!(records(folder.path()).len(), 11);
}

#[test]
fn one_run_made_elsewhere_is_kept_by_the_sweep() {
    let (here, elsewhere) = (folder(PLAN), folder(PLAN));
    let listed = sweep(here.path(), &["--dry-run", "--format", "json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    let record = Path::new(listed[3]["record"].as_str().expect("a path")).file_name().expect("a name").to_owned();
    let record = record.to_str().expect("UTF-8");
    let home = here.path().canonicalize().expect("a folder");
    let only = ["--only", record, "--recorded-in", home.to_str().expect("UTF-8")];
    assert_eq!(sweep(elsewhere.path(), &only), "");
    let made: Vec<_> = std::fs::read_dir(elsewhere.path().join("plan")).expect("results").flatten().collect();
    assert!(made.len() == 1 && made[0].file_name() == "records", "no tables and no page: {made:?}");
    let content = std::fs::read(elsewhere.path().join("plan/records").join(record)).expect("a record");
    std::fs::create_dir_all(here.path().join("plan/records")).expect("a folder");
    let kept = here.path().join("plan/records").join(record);
    std::fs::write(&kept, &content).expect("written");
    sweep(here.path(), &[]);
    assert_eq!(std::fs::read(kept).expect("a record"), content, "made again, for its program has another path");
    let failed = output(elsewhere.path(), &["sweep", "plan.toml", "--only", "0.fxr"]);
    assert_eq!(failed.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("0.fxr: the plan has no run with this record here"));
}

#[test]
fn a_damaged_record_is_made_again() {
    let folder = folder(PLAN);
    let first = sweep(folder.path(), &[]);
    let name = records(folder.path()).into_keys().next().expect("a record");
    std::fs::write(folder.path().join("plan/records").join(name), "nothing").expect("written");
    assert_eq!(sweep(folder.path(), &[]), first);
}

#[test]
fn a_run_by_hand_counts_the_same() {
    let folder = folder(PLAN);
    let lines = sweep(folder.path(), &["--dry-run"]);
    assert!(!folder.path().join("plan").exists(), "a dry run makes nothing");
    sweep(folder.path(), &[]);
    let last = lines.lines().next_back().expect("a command");
    let words: Vec<&str> = last.split(' ').skip(1).collect();
    let run = [&["run", "--quiet", "--json", "run.json"], &words[1..]].concat();
    assert_eq!(words[0], "run");
    assert!(fxscope(folder.path(), &run).env_clear().status().expect("starts").success());
    let run = common::json(&std::fs::read(folder.path().join("run.json")).expect("written"));
    let results = results(folder.path());
    let kept = results.last().expect("a run");
    let seconds = run["simulated"]["seconds"].as_f64().or_else(|| run[0]["simulated"]["seconds"].as_f64());
    assert_eq!(seconds.expect("a time"), number(kept, "seconds"));
}

#[test]
fn failures_are_kept_beside_results_and_tried_again_when_asked() {
    let plan = "[run]\nprogram = './{name}'\n[[factor]]\nname = 'name'\nvalues = ['good', 'bad']\n";
    let folder = folder(plan);
    for (name, status) in [("good", 0), ("bad", 3)] {
        std::fs::write(folder.path().join(name), elf(&exit(status))).expect("written");
    }
    let args = ["sweep", "plan.toml"];
    let (status, error) = failure(folder.path(), &args);
    assert_eq!(status, 1, "{error}");
    let lines = results(folder.path());
    let states: Vec<&str> = lines.iter().map(|line| line["state"].as_str()).collect();
    assert_eq!(states, ["done", "failed"]);
    assert!(lines[1]["message"].contains("exit status 3") && lines[1]["seconds"].is_empty(), "{:?}", lines[1]);
    let error = failure(folder.path(), &args).1;
    assert!(error.contains("2 of 2 runs were made before"), "{error}");
    let error = failure(folder.path(), &["sweep", "--retry", "plan.toml"]).1;
    assert!(error.contains("1 of 2 runs were made before"), "{error}");
}

#[test]
fn threads_and_ranges_and_objectives_go_together() {
    let folder = folder(
        r#"
        design = "latin-hypercube"
        samples = 5
        region = "triad"
        [run]
        program = "./triad-l1.elf"
        arguments = ["passes={passes}"]
        options = { cpus = "{cpu}-13" }
        [[factor]]
        name = "passes"
        from = 10
        to = 100
        scale = "log"
        integer = true
        [[factor]]
        name = "cpu"
        values = [12, 13]
        [[objective]]
        metric = "seconds"
        [[objective]]
        metric = "CPU_CYCLES"
        goal = "most"
        "#,
    );
    let text = sweep(folder.path(), &[]);
    let lines = results(folder.path());
    let mut passes: Vec<f64> = lines.iter().map(|line| number(line, "passes")).collect();
    passes.sort_by(f64::total_cmp);
    assert_eq!(passes.len(), 5);
    // One run lies in each fifth of the range, by factors.
    for (part, passes) in passes.iter().enumerate() {
        let (from, to) = (10.0 * 10_f64.powf(part as f64 / 5.0), 10.0 * 10_f64.powf((part + 1) as f64 / 5.0));
        assert!((from.round()..=to.round()).contains(passes), "{passes} is not in {from} to {to}");
    }
    assert!(text.contains("on the front"), "{text}");
    let page = std::fs::read_to_string(folder.path().join("plan/index.html")).expect("a page");
    assert!(page.contains("Pareto front") && page.contains("data-chart="), "no plot");
}

#[test]
fn rates_are_best_when_large_and_reasons_are_those_of_the_command() {
    let folder = folder(
        "[run]\nprogram = './triad-l1.elf'\narguments = ['passes={passes}']\noptions = { power_mode = '{mode}' }\n\
         [[factor]]\nname = 'passes'\nvalues = [20, 80]\n[[factor]]\nname = 'mode'\nvalues = ['normal', 'sport']\n\
         [[objective]]\nmetric = 'gflops'\n",
    );
    let output = output(folder.path(), &["sweep", "--quiet", "plan.toml"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(1));
    // The program starts up once, whatever the passes.
    let best = text.lines().skip_while(|line| !line.contains("best run")).nth(1).expect("the best run");
    assert!(best.contains("80"), "{text}");
    assert!(text.contains("invalid value 'sport' for '--power-mode") && text.contains("Run 2:"), "{text}");
}

#[test]
fn a_wrong_plan_is_refused_with_what_to_do() {
    let folder = folder("");
    let run = "[run]\nprogram = './triad-l1.elf'\n";
    let factor = |text: &str| format!("{run}arguments = ['{{n}}']\n[[factor]]\nname = 'n'\n{text}\n");
    for (plan, expected) in [
        (String::new(), "missing field `run`"),
        (factor(""), "has no values"),
        (factor("from = 3\nto = 1\nsteps = 2"), "from must be smaller"),
        (factor("from = 0\nto = 1\nsteps = 2\nscale = 'log'"), "begins above 0"),
        (factor("from = 1\nto = 2"), "needs steps"),
        (factor("values = [1]\nfrom = 1\nto = 2"), "values and a range"),
        (factor("values = [1]").replace("{n}", "n"), "factor 'n' changes nothing"),
        (factor("values = [1]").replace("{n}", "{n}{m}"), "'{m}' is no factor"),
        (factor("values = [1]").replace("{n}", "{n"), "has no partner"),
        (factor("values = [1]").replace("'n'", "'seconds'"), "a column of this name"),
        (format!("design = 'list'\n{}", factor("values = [1]")), "[[point]]"),
        (format!("design = 'latin-hypercube'\n{}", factor("values = [1]")), "needs samples"),
        (format!("samples = 3\n{}", factor("values = [1]")), "latin-hypercube"),
        (format!("{run}options = {{ json = 'x' }}\n"), "not possible in a sweep"),
        (format!("{run}options = {{ e = 'A=1' }}\n"), "environment"),
        (factor("from = 0\nto = 1\nsteps = 1000000"), "more than 100000 runs"),
        ("[run]\nprogram = './missing'\n".to_owned(), "missing"),
        (format!("{run}inputs = ['nowhere']\n"), "nowhere"),
        (format!("{run}colour = 1\n"), "unknown field"),
        (format!("show = ['secnds']\n{run}"), "there is no metric 'secnds'"),
        (format!("{run}[[objective]]\nmetric = 'secnds'\n"), "there is no metric 'secnds'"),
        (format!("{run}[[objective]]\nmetric = 'l1_busy'\n"), "say which values are better"),
    ] {
        std::fs::write(folder.path().join("plan.toml"), &plan).expect("written");
        let (status, error) = failure(folder.path(), &["sweep", "plan.toml"]);
        assert!(status == 125 && error.contains(expected), "{plan}\n{status}: {error}");
        assert!(!folder.path().join("plan/results.csv").exists());
    }
}
