//! What commands write as JSON has the form that `fxscope schema` publishes, and no member that the form does not name.

use std::path::Path;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::common::{failure, json as parsed, kernel, output};

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

/// Checks an answer against a published form.
pub fn check(name: &str, answer: &[u8]) {
    let mut schema = published(name);
    strict(&mut schema);
    let validator = jsonschema::draft202012::new(&schema).expect("a schema");
    let errors: Vec<String> =
        validator.iter_errors(&parsed(answer)).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}");
}

/// Runs a command in a folder that must succeed, and returns what it prints.
fn answer(folder: &Path, args: &[&str]) -> Vec<u8> {
    let output = output(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn runs_have_the_published_form() {
    let folder = tempfile::tempdir().expect("folder");
    let (triad, sharing) = (kernel("triad-l1.elf"), kernel("sharing.elf"));
    let cases: [&[&str]; 5] = [
        &["--", &triad, "passes=5"],
        &["--mode", "functional", "--", &triad, "passes=5"],
        &["--cpus", "12,24", "--interval", "100us", "--data", "--", &sharing],
        &["--region", "triad", "--", &triad, "passes=5"],
        &["--sample", "--set", "ring.hop=20", "--", &triad, "passes=2000"],
    ];
    for options in cases {
        let run = [&["run", "--quiet", "-o", "runs.fxr", "--json", "run.json"], options].concat();
        answer(folder.path(), &run);
        check("run", &std::fs::read(folder.path().join("run.json")).expect("written"));
    }
    check("report", &answer(folder.path(), &["report", "--format", "json", "--label", "some", "runs.fxr"]));
    check(
        "compare",
        &answer(folder.path(), &["compare", "--format", "json", "--per", "instruction", "runs.fxr", "runs.fxr"]),
    );
}

#[test]
fn imported_runs_have_the_published_form() {
    let folder = tempfile::tempdir().expect("folder");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/import");
    for (tool, file) in [("fapp", "axhelm.pa-0"), ("perf", "a64fx-cpus.csv"), ("likwid", "markers.csv")] {
        let file = data.join(tool).join(file);
        answer(folder.path(), &["import", tool, file.to_str().expect("text"), "-o", "all.fxr"]);
    }
    check("report", &answer(folder.path(), &["report", "--format", "json", "all.fxr"]));
}

#[test]
fn answers_of_laboratories_have_the_published_form() {
    let folder = tempfile::tempdir().expect("folder");
    let triad = kernel("triad-l1.elf");
    check("annotate", &answer(folder.path(), &["annotate", "--json", "-", "--", &triad, "passes=2"]));
    check("advise", &answer(folder.path(), &["advise", "--json", "-", "--", &triad, "passes=2"]));
    check("validate", &answer(folder.path(), &["validate", "access-0009", "--no-cache", "--format", "json"]));
    check("tasks", &answer(folder.path(), &["validate", "--dry-run", "--cache", "kept", "--format", "json"]));
    let plan =
        format!("[run]\nprogram = '{triad}'\narguments = ['passes={{n}}']\n[[factor]]\nname = 'n'\nvalues = [1, 2]\n");
    std::fs::write(folder.path().join("plan.toml"), plan).expect("written");
    check("sweep", &answer(folder.path(), &["sweep", "plan.toml", "--dry-run", "--format", "json"]));
    check(
        "sheet",
        &answer(
            folder.path(),
            &["jitter", "simulate", "--model", "fx1", "--nodes", "1", "--phases", "10", "--format", "json"],
        ),
    );
}

#[test]
fn answers_about_pages_have_the_published_form() {
    let folder = tempfile::tempdir().expect("folder");
    let answer = |args: &[&str]| answer(folder.path(), &[&["pages"], args].concat());
    let (triad, masked) = (kernel("triad-l1.elf"), kernel("masked.elf"));
    let plan = format!("[[program]]\nname = 'triad'\nrun = '{triad} passes=2'\n");
    std::fs::write(folder.path().join("plan.toml"), plan).expect("written");
    let advise = ["advise", "--pages", "all=64KiB", "--simulate", "1", "--format", "json", "--", &triad, "passes=2"];
    check("pages-advise", &answer(&advise));
    check("pages-check", &answer(&["check", "--plan", "plan.toml", "--no-cache", "--format", "json"]));
    check("pages-experiment", &answer(&["experiment", "cost", "--format", "json"]));
    check("pages-host", &answer(&["host", "--format", "json"]));
    check("pages-host", &answer(&["host", "--pid", &std::process::id().to_string(), "--format", "json"]));
    check("pages-risks", &answer(&["risks", "--format", "json", "--", &masked]));
}

#[test]
fn answers_about_slower_memory_have_the_published_form() {
    let folder = tempfile::tempdir().expect("folder");
    let chase = kernel("chase.elf");
    let program = ["--format", "json", "--", &chase, "10485760", "500", "warm"];
    let answer = |args: &[&str]| answer(folder.path(), &[&["latency"], args, &program].concat());
    check("latency", &answer(&["predict"]));
    check("latency-check", &answer(&["check", "--no-cache", "--latencies", "500", "--region", "chase"]));
}

#[test]
fn every_listed_form_is_a_schema_and_permits_new_members() {
    let list = String::from_utf8(answer(Path::new("/"), &["schema"])).expect("text");
    let names: Vec<&str> = list.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains(&"run") && names.ends_with(&["record"]), "{names:?}");
    for name in &names[..names.len() - 1] {
        let schema = published(name);
        assert!(jsonschema::meta::is_valid(&schema), "{name}");
        assert!(!schema.to_string().contains("\"additionalProperties\":false"), "{name}");
    }
    let validator: Validator = jsonschema::draft202012::new(&published("sheet")).expect("a schema");
    let sheet = json!({ "version": 1, "title": "a", "tables": [], "notes": {}, "plots": [], "added": 1 });
    assert!(validator.is_valid(&sheet));
    assert!(!validator.is_valid(&json!({ "version": 2, "title": "a", "tables": [], "notes": {}, "plots": [] })));
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
