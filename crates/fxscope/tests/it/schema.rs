//! What commands write as JSON has the form that `fxscope schema` publishes, and no member that the form does not name.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use fxscope_testkit::skip;
use serde_json::{Value, json};

use crate::common::{failure, json as parsed, kernel, output};

/// Reads a list of schemas, each with answers, and prints what is wrong with them: a list for each answer, one of the schema itself before.
const VALIDATE: &str = r"
import json, sys
from jsonschema import Draft202012Validator as Draft
from jsonschema.exceptions import SchemaError

def of_schema(schema):
    try:
        Draft.check_schema(schema)
    except SchemaError as error:
        return [error.message]
    return []

def of_answer(schema, answer):
    return [f'{error.json_path}: {error.message}' for error in Draft(schema).iter_errors(answer)]

forms = json.load(sys.stdin)
json.dump([[of_schema(schema)] + [of_answer(schema, answer) for answer in answers] for schema, answers in forms], sys.stdout)
";

/// Returns a Python that has the reference implementation of JSON Schema, if there is one.
fn python() -> Option<&'static str> {
    let has = |python: &&str| {
        let import = Command::new(python).args(["-B", "-c", "import jsonschema"]).stderr(Stdio::null()).status();
        import.is_ok_and(|status| status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(has);
    if found.is_none() {
        skip("Python has no jsonschema; make test installs python3-jsonschema");
    }
    found
}

/// Returns what is wrong with each schema, and with each answer that is to have its form.
fn mistakes(python: &str, forms: &[(Value, Vec<Value>)]) -> Vec<Vec<Vec<String>>> {
    let mut child = Command::new(python);
    let child = child.args(["-B", "-c", VALIDATE]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.spawn().expect("Python starts");
    let forms = serde_json::to_vec(forms).expect("JSON");
    child.stdin.take().expect("a pipe").write_all(&forms).expect("read");
    let output = child.wait_with_output().expect("ended");
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).expect("lists")
}

/// Returns a published schema.
fn published(name: &str) -> Value {
    parsed(&output(Path::new("/"), &["schema", name]).stdout)
}

/// Forbids members that a schema does not name. Published schemas permit them, since new members may be added.
fn strict(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("properties").is_some_and(Value::is_object) {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
            members.values_mut().for_each(strict);
        }
        Value::Array(list) => list.iter_mut().for_each(strict),
        _ => {}
    }
}

/// Answers, and the names of the forms that they are to have.
#[derive(Default)]
pub struct Answers {
    forms: Vec<String>,
    answers: Vec<Value>,
}

impl Answers {
    /// Adds an answer.
    pub fn add(&mut self, form: &str, answer: &[u8]) {
        self.forms.push(form.to_owned());
        self.answers.push(parsed(answer));
    }

    /// Checks all of them.
    pub fn check(self) {
        let Some(python) = python() else { return };
        let strictly = |name: &String| {
            let mut schema = published(name);
            strict(&mut schema);
            schema
        };
        let schemas = self.forms.iter().map(strictly);
        let forms: Vec<_> = schemas.zip(self.answers).map(|(schema, answer)| (schema, vec![answer])).collect();
        for (name, mistakes) in self.forms.iter().zip(mistakes(python, &forms)) {
            assert_eq!(mistakes, [[], []] as [[&str; 0]; 2], "{name}");
        }
    }
}

/// Runs a command in a folder that must succeed, and returns what it prints.
fn answer(folder: &Path, args: &[&str]) -> Vec<u8> {
    let output = output(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Checks the form of runs with these options, of their report, and of a comparison.
fn runs(cases: &[&[&str]]) {
    let mut forms = Answers::default();
    let folder = tempfile::tempdir().expect("folder");
    for options in cases {
        let run = [&["run", "--quiet", "-o", "runs.fxr", "--json", "run.json"], *options].concat();
        answer(folder.path(), &run);
        forms.add("run", &std::fs::read(folder.path().join("run.json")).expect("written"));
    }
    forms.add("report", &answer(folder.path(), &["report", "--format", "json", "--label", "some", "runs.fxr"]));
    forms.add(
        "compare",
        &answer(folder.path(), &["compare", "--format", "json", "--per", "instruction", "runs.fxr", "runs.fxr"]),
    );
    forms.check();
}

#[test]
fn runs_have_the_published_form() {
    let (triad, sharing) = (kernel("triad-l1.elf"), kernel("sharing.elf"));
    runs(&[
        &["--", &triad, "passes=5"],
        &["--mode", "functional", "--", &triad, "passes=5"],
        &["--cpus", "12,24", "--interval", "100us", "--data", "--", &sharing],
        &["--region", "triad", "--", &triad, "passes=5"],
    ]);
}

#[test]
fn imported_runs_have_the_published_form() {
    let mut forms = Answers::default();
    let folder = tempfile::tempdir().expect("folder");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/import");
    for (tool, file) in [("fapp", "axhelm.pa-0"), ("perf", "a64fx-cpus.csv"), ("likwid", "markers.csv")] {
        let file = data.join(tool).join(file);
        answer(folder.path(), &["import", tool, file.to_str().expect("text"), "-o", "all.fxr"]);
    }
    forms.add("report", &answer(folder.path(), &["report", "--format", "json", "all.fxr"]));
    forms.check();
}

#[test]
fn answers_of_laboratories_have_the_published_form() {
    let mut forms = Answers::default();
    let folder = tempfile::tempdir().expect("folder");
    let triad = kernel("triad-l1.elf");
    forms.add("annotate", &answer(folder.path(), &["annotate", "--json", "-", "--", &triad, "passes=2"]));
    forms.add("advise", &answer(folder.path(), &["advise", "--json", "-", "--", &triad, "passes=2"]));
    forms.add("validate", &answer(folder.path(), &["validate", "access-0009", "--no-cache", "--format", "json"]));
    forms.add("tasks", &answer(folder.path(), &["validate", "--dry-run", "--cache", "kept", "--format", "json"]));
    let plan =
        format!("[run]\nprogram = '{triad}'\narguments = ['passes={{n}}']\n[[factor]]\nname = 'n'\nvalues = [1, 2]\n");
    std::fs::write(folder.path().join("plan.toml"), plan).expect("written");
    forms.add("sweep", &answer(folder.path(), &["sweep", "plan.toml", "--dry-run", "--format", "json"]));
    forms.add(
        "sheet",
        &answer(
            folder.path(),
            &["jitter", "simulate", "--model", "fx1", "--nodes", "1", "--phases", "10", "--format", "json"],
        ),
    );
    forms.check();
}

#[test]
fn every_listed_form_is_a_schema_and_permits_new_members() {
    let list = String::from_utf8(answer(Path::new("/"), &["schema"])).expect("text");
    let names: Vec<&str> = list.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains(&"run") && names.ends_with(&["record"]), "{names:?}");
    let mut forms: Vec<_> = names[..names.len() - 1].iter().map(|name| (published(name), Vec::new())).collect();
    for (schema, _) in &forms {
        assert!(!schema.to_string().contains("\"additionalProperties\":false"), "{}", schema["title"]);
    }
    let sheet =
        |version| json!({ "version": version, "title": "a", "tables": [], "notes": {}, "plots": [], "added": 1 });
    forms.push((published("sheet"), vec![sheet(1), sheet(2)]));
    forms.push((json!({ "type": "objekt" }), Vec::new()));
    let Some(python) = python() else { return };
    let mut mistakes = mistakes(python, &forms);
    let no_schema = mistakes.pop().expect("a list");
    assert!(no_schema[0][0].contains("objekt"), "{no_schema:?}");
    let sheets = mistakes.pop().expect("a list");
    assert_eq!(sheets, [vec![], vec![], vec!["$.version: 1 was expected".to_owned()]]);
    for (name, mistakes) in names.iter().zip(mistakes) {
        assert_eq!(mistakes, [[""; 0]], "{name}");
    }
}

#[test]
fn the_form_of_records_is_their_tables() {
    let sql = String::from_utf8(answer(Path::new("/"), &["schema", "record"])).expect("text");
    let database = rusqlite::Connection::open_in_memory().expect("memory");
    database.execute_batch(&sql).expect("SQL");
    let tables: i64 = database
        .query_row("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('run', 'count')", [], |row| {
            row.get(0)
        })
        .expect("a number");
    assert_eq!(tables, 2);
}

#[test]
fn an_unknown_form_is_an_error_that_lists_the_forms() {
    let (status, error) = failure(Path::new("/"), &["schema", "runs"]);
    assert_eq!(status, 125);
    assert!(error.contains("unknown form 'runs'") && error.contains("record"), "{error}");
}

/// Answers that take simulations of seconds.
mod slow {
    use super::{Answers, answer, kernel, runs};

    #[test]
    #[ignore = "a sampled run: seconds"]
    fn sampled_runs_have_the_published_form() {
        let triad = kernel("triad-l1.elf");
        runs(&[&["--sample", "--set", "ring.hop=20", "--", &triad, "passes=2000"]]);
    }

    #[test]
    #[ignore = "simulates pages: seconds"]
    fn answers_about_pages_have_the_published_form() {
        let mut forms = Answers::default();
        let folder = tempfile::tempdir().expect("folder");
        let answer = |args: &[&str]| answer(folder.path(), &[&["pages"], args].concat());
        let (triad, masked) = (kernel("triad-l1.elf"), kernel("masked.elf"));
        let plan = format!("[[program]]\nname = 'triad'\nrun = '{triad} passes=2'\n");
        std::fs::write(folder.path().join("plan.toml"), plan).expect("written");
        let advise =
            ["advise", "--pages", "all=64KiB", "--simulate", "1", "--format", "json", "--", &triad, "passes=2"];
        forms.add("pages-advise", &answer(&advise));
        forms.add("pages-check", &answer(&["check", "--plan", "plan.toml", "--no-cache", "--format", "json"]));
        forms.add("pages-experiment", &answer(&["experiment", "cost", "--format", "json"]));
        forms.add("pages-host", &answer(&["host", "--format", "json"]));
        forms.add("pages-host", &answer(&["host", "--pid", &std::process::id().to_string(), "--format", "json"]));
        forms.add("pages-risks", &answer(&["risks", "--format", "json", "--", &masked]));
        forms.check();
    }

    #[test]
    #[ignore = "simulates slower memory: seconds"]
    fn answers_about_slower_memory_have_the_published_form() {
        let mut forms = Answers::default();
        let folder = tempfile::tempdir().expect("folder");
        let chase = kernel("chase.elf");
        let program = ["--format", "json", "--", &chase, "10485760", "500", "warm"];
        let answer = |args: &[&str]| answer(folder.path(), &[&["latency"], args, &program].concat());
        forms.add("latency", &answer(&["predict"]));
        forms.add("latency-check", &answer(&["check", "--no-cache", "--latencies", "500", "--region", "chase"]));
        forms.check();
    }
}
