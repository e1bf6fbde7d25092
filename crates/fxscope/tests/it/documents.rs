//! Commands that documents show, run in a folder of their own. What a document shows of their output has the same beginning, the same end
//! and the same first cause as what they print. `make examples` puts what they print into the documents.

use crate::common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{json, output};
use fxscope_testkit::{markdown, skip};
use serde_json::Value;

/// The variable that has documents show what their commands print today.
const ACCEPT: &str = "FXSCOPE_ACCEPT";
/// The language of blocks of commands, and of what the last of them prints.
pub(crate) const COMMANDS: &str = "console";
pub(crate) const SHOWN: &str = "text";
/// A line that stands for lines left out.
const LEFT_OUT: &str = "…";

/// Pages of `docs` whose commands run here.
pub(crate) const FOLLOWED: [&str; 5] =
    [QUICK_PAGES[0], QUICK_PAGES[1], QUICK_PAGES[2], "tutorials/mpi", "tutorials/openmp"];
/// Those that need no compiler.
const QUICK_PAGES: [&str; 3] = ["architects", "speed", "tutorials/counters"];

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates are two folders down").to_path_buf()
}

/// A folder that has what documents name at its place: examples to change, the rest as links.
pub(crate) struct Sandbox {
    folder: tempfile::TempDir,
}

impl Sandbox {
    pub(crate) fn new() -> Sandbox {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["crates", "include", "kernels", "data", "testdata", "programs", "target"] {
            symlink(root().join(name), folder.path().join(name)).expect("linked");
        }
        for example in examples() {
            let to = folder.path().join("examples").join(&example);
            fs::create_dir_all(&to).expect("a folder");
            for file in fs::read_dir(root().join("examples").join(&example)).expect("an example") {
                let file = file.expect("a file").path();
                fs::copy(&file, to.join(file.file_name().expect("a name"))).expect("copied");
            }
        }
        fs::create_dir(folder.path().join(".bin")).expect("a folder");
        symlink(env!("CARGO_BIN_EXE_fxscope"), folder.path().join(".bin/fxscope")).expect("linked");
        Sandbox { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a command as a shell does; returns all that it prints.
    pub(crate) fn shell(&self, folder: &Path, command: &str) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", self.folder.path().join(".bin").display());
        let all = format!("exec 2>&1\nset -e\n{command}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &all]).current_dir(folder).env("PATH", path).stdin(Stdio::null());
        shell.env("HOME", self.path()).env("XDG_CACHE_HOME", self.path().join(".cache"));
        let output = shell.output().expect("a shell");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{command}: {}\n{printed}", output.status);
        printed
    }

    /// Runs the commands of a document, block by block, in a folder of the sandbox, which `cd` changes; checks what it shows.
    fn follow(&self, document: &str, folder: &str) {
        let path = root().join(document);
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{document}: {e}"));
        let mut folder = self.folder.path().join(folder);
        let (mut printed, mut accepted) = (None, text.clone());
        for block in markdown::blocks(&text) {
            match block.language.as_str() {
                COMMANDS => {
                    for command in block.commands("fxscope") {
                        match command.text.strip_prefix("cd ") {
                            Some(to) => folder = folder.join(to),
                            None => printed = Some(self.shell(&folder, &command.text)),
                        }
                    }
                }
                SHOWN => {
                    let printed = printed.take().unwrap_or_else(|| panic!("{document}:{}: shown twice", block.line));
                    let now = excerpt(&printed, &block.text)
                        .unwrap_or_else(|line| panic!("{document}:{}: no '{line}' in\n{printed}", block.line));
                    let (shown, today) = (first_cause(&block.text), first_cause(&now));
                    let same = shown == today || std::env::var_os(ACCEPT).is_some();
                    assert!(same, "{document}:{}: {shown:?} limits, now {today:?}", block.line);
                    accepted = accepted.replacen(&block.text, &now, 1);
                }
                _ => {}
            }
        }
        if std::env::var_os(ACCEPT).is_some() && accepted != text {
            fs::write(&path, accepted).expect("a document can be written");
        }
    }
}

/// Returns the words of a line by which it is found again: the first two without digits.
fn name(line: &str) -> Vec<&str> {
    let words = line.split_whitespace().filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
    words.take(2).collect()
}

/// Returns the lines of `printed` from the one that begins like the first shown line to the one that begins like the last; the same of each
/// part between lines left out.
///
/// # Errors
/// A shown line that is not printed.
fn excerpt(printed: &str, shown: &str) -> Result<String, String> {
    let printed: Vec<&str> = printed.lines().collect();
    let shown: Vec<&str> = shown.lines().collect();
    let mut at = 0;
    let mut find = |line: &str| {
        let found = printed[at..].iter().position(|printed| name(printed).starts_with(&name(line)));
        at += found.ok_or_else(|| line.to_owned())?;
        Ok::<usize, String>(at)
    };
    let mut parts = Vec::new();
    for part in shown.split(|line| *line == LEFT_OUT) {
        let (Some(first), Some(last)) = (part.first(), part.last()) else { continue };
        let (from, to) = (find(first)?, find(last)?);
        parts.push(printed[from..=to].join("\n"));
    }
    Ok(parts.join(&format!("\n{LEFT_OUT}\n")) + "\n")
}

/// Returns the first cause that a verdict names.
fn first_cause(text: &str) -> Option<&str> {
    let (_, causes) = text.split_once("What limits it")?;
    let (_, cause) = causes.lines().nth(1)?.split_once("% ")?;
    Some(cause.trim())
}

fn examples() -> Vec<String> {
    let folders = fs::read_dir(root().join("examples")).expect("examples");
    let folders = folders.map(|entry| entry.expect("an entry")).filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = folders.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

/// An example, the rule that finds what is ill, and how many times as fast the cured program is at least. What is ill with MPI shows in
/// the balance of its ranks, for which there is no rule.
struct Example {
    name: &'static str,
    rule: Option<&'static str>,
    gain: f64,
}

const fn example(name: &'static str, rule: &'static str, gain: f64) -> Example {
    Example { name, rule: Some(rule), gain }
}

/// Those that `make test` runs: one of one thread, and one of several.
const QUICK: [Example; 1] = [example("branches", "mispredictions", 4.0)];
const SLOW: [Example; 9] = [
    example("critical", "locks", 50.0),
    example("dependent-sum", "fp_latency", 3.0),
    example("false-sharing", "line_sharing", 10.0),
    example("first-touch", "one_memory", 1.8),
    example("imbalance", "imbalance", 1.5),
    example("loop-order", "sparse_lines", 10.0),
    example("small-pages", "tlb_misses", 2.0),
    example("structures", "scalar_code", 5.0),
    example("subnormals", "subnormals", 5.0),
];
/// Those that need more than compilers.
const FETCHED: [Example; 2] =
    [Example { name: "mpi-imbalance", rule: None, gain: 1.5 }, example("threads-in-python", "barriers", 1.5)];

/// Returns the run of an example's record.
fn run(folder: &Path, record: &str) -> Value {
    let printed = output(folder, &["report", record, "--format", "json"]);
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    json(&printed.stdout)[0].clone()
}

/// Returns the time of a run's region, which comes behind the whole run.
fn seconds(run: &Value) -> f64 {
    run["regions"][1]["metrics"]["seconds"].as_f64().expect("a time")
}

/// Returns the load balance of a run's ranks.
fn balance(run: &Value) -> f64 {
    run["mpi"]["efficiency"]["load_balance"].as_f64().expect("a balance")
}

fn check(example: &Example) {
    let sandbox = Sandbox::new();
    let folder = format!("examples/{}", example.name);
    sandbox.follow(&format!("{folder}/README.md"), &folder);
    let folder = sandbox.folder.path().join(folder);
    let (ill, cured) = (run(&folder, "ill.fxr"), run(&folder, "cured.fxr"));
    if let Some(rule) = example.rule {
        assert_eq!(ill["regions"][1]["verdict"]["limits"][0]["rule"], rule, "{}", example.name);
    } else {
        let (ill, cured) = (balance(&ill), balance(&cured));
        assert!(ill < 0.7 && cured > 0.9, "{}: load balance {ill}, cured {cured}", example.name);
    }
    let gain = seconds(&ill) / seconds(&cured);
    assert!(gain >= example.gain, "{}: cured is {gain:.2} times as fast", example.name);
}

#[test]
fn examples_are_ill_as_their_pages_say() {
    QUICK.iter().for_each(check);
}

#[test]
fn pages_whose_commands_need_no_compiler_show_what_they_print() {
    for page in QUICK_PAGES {
        Sandbox::new().follow(&format!("docs/{page}.md"), "");
    }
}

#[test]
fn every_example_is_checked_and_short() {
    let mut checked: Vec<&str> = QUICK.iter().chain(&SLOW).chain(&FETCHED).map(|of| of.name).collect();
    checked.sort_unstable();
    assert_eq!(examples(), checked);
    let list = fs::read_to_string(root().join("examples/README.md")).expect("a list");
    for name in checked {
        assert!(list.contains(&format!("({name}/README.md)")), "examples/README.md does not list {name}");
        for file in fs::read_dir(root().join("examples").join(name)).expect("an example") {
            let path = file.expect("a file").path();
            let text = fs::read_to_string(&path).expect("text");
            assert!(path.ends_with("README.md") || text.lines().count() <= 80, "{} is long", path.display());
        }
    }
}

mod slow {
    use super::{FETCHED, SLOW, Sandbox, check, root, skip};

    /// Folders that these examples need, and what makes them.
    const NEEDED: [(&str, &str, &str); 2] = [
        ("mpi-imbalance", "target/mpi/mpich/.complete", "programs/mpi.sh --fetch"),
        ("threads-in-python", "target/programs/root/.complete", "programs/debian.sh --fetch"),
    ];

    #[test]
    #[ignore = "simulates remedies and MPI: a minute"]
    fn the_tutorials_of_openmp_and_mpi_work() {
        Sandbox::new().follow("docs/tutorials/openmp.md", "");
        if root().join(NEEDED[0].1).exists() {
            Sandbox::new().follow("docs/tutorials/mpi.md", "");
        } else {
            skip("docs/tutorials/mpi.md: MPICH is missing: programs/mpi.sh --fetch unpacks it");
        }
    }

    #[test]
    #[ignore = "runs eight programs twice: half a minute"]
    fn all_examples_are_ill_as_their_pages_say() {
        SLOW.iter().for_each(check);
    }

    #[test]
    #[ignore = "starts an interpreter and MPI: a minute"]
    fn examples_of_python_and_mpi_are_ill_as_their_pages_say() {
        for example in &FETCHED {
            let (_, file, command) = NEEDED.iter().find(|needed| needed.0 == example.name).expect("listed");
            if root().join(file).exists() {
                check(example);
            } else {
                skip(format!("{}: {file} is missing: {command} makes it", example.name));
            }
        }
    }
}

/// Returns the documents of the tree, without what packages and tools put into it.
fn documents() -> Vec<PathBuf> {
    let files = ignore::WalkBuilder::new(root()).build().map(|entry| entry.expect("a readable tree").into_path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

#[test]
fn links_between_documents_name_headings_that_exist() {
    let mut dead = Vec::new();
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a document");
        for link in markdown::links(&text) {
            let Some((file, anchor)) = link.to.split_once('#').filter(|_| !link.to.contains("://")) else { continue };
            let to = if file.is_empty() { path.clone() } else { path.with_file_name(file) };
            let is_document = to.extension().is_some_and(|extension| extension == "md");
            let known = fs::read_to_string(&to).is_ok_and(|text| markdown::anchors(&text).iter().any(|a| a == anchor));
            if is_document && !known {
                dead.push(format!("{}:{}: {}", path.display(), link.line, link.to));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}
