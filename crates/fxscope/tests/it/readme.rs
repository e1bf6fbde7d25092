//! README.md shows what a new user sees.

use crate::common;

use std::path::Path;

use common::{fxscope, output};

/// Returns the text of README.md, and its folder.
fn readme() -> (String, &'static Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates are two folders down");
    (std::fs::read_to_string(root.join("README.md")).expect("README.md is there"), root)
}

#[test]
fn the_session_of_the_readme_is_what_its_command_prints() {
    let (text, root) = readme();
    let (_, session) = text.split_once("    $ fxscope ").expect("a session");
    let (command, rest) = session.split_once('\n').expect("a command alone on its line");
    let shown = rest.split("```\n").nth(1).expect("a block with what it prints");
    let printed = output(root, &command.split(' ').collect::<Vec<_>>());
    assert!(printed.status.success());
    let printed = format!("{}{}", String::from_utf8_lossy(&printed.stdout), String::from_utf8_lossy(&printed.stderr));
    let (program, region) = shown.split_once('\n').expect("the program's output, then the region");
    assert!(printed.contains(program), "{program:?} is not in\n{printed}");
    assert!(printed.contains(region), "README.md shows\n{region}\nprinted is\n{printed}");
}

#[test]
fn every_command_that_the_readme_names_exists() {
    let (text, root) = readme();
    let code = text.replace("$ fxscope ", "`fxscope ");
    let named: Vec<Vec<&str>> = code
        .split("`fxscope ")
        .skip(1)
        .map(|rest| rest.split([' ', '`', '\n']).take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase())))
        .map(|words| words.take(2).collect())
        .collect();
    let groups = ["pages", "latency", "jitter", "machine", "calibrate"];
    for words in &named {
        let many = if groups.contains(&words[0]) { 2 } else { 1 };
        let status = fxscope(root, &[]).args(&words[..many]).arg("--help").output().expect("it runs").status;
        assert!(status.success(), "fxscope {} --help", words.join(" "));
    }
    assert!(named.len() > 15, "commands are found: {named:?}");
}

/// Returns the rows of `validation` with the errors that were last accepted, as Markdown.
fn accepted(root: &Path) -> String {
    let suite = fxscope::validate::Suite::read(&root.join("validation")).expect("rows");
    fxscope::report::validation::markdown(&fxscope::validate::accepted(&suite))
}

#[test]
fn the_accuracy_that_documents_state_is_that_of_the_accepted_errors() {
    let (text, root) = readme();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let markdown = accepted(root);
    let (answer, tables) = markdown.split_once("\n\n").expect("a sentence, then tables");
    assert!(words(&text).contains(&words(answer)), "README.md does not say: {answer}");
    let page = std::fs::read_to_string(root.join("docs/validation.md")).expect("docs/validation.md is there");
    assert!(words(&page).contains(&words(answer)), "docs/validation.md does not say: {answer}");
    let (summaries, _) = tables.split_once("| row |").expect("summaries, then rows");
    let lacks = summaries.lines().filter(|line| !page.contains(line)).collect::<Vec<_>>();
    assert!(lacks.is_empty(), "docs/validation.md lacks these lines:\n{}", lacks.join("\n"));
}
