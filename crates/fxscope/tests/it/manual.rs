//! Man pages, completions and exit statuses, which are made from the definition of the command line.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use fxscope_testkit::skip;

use crate::common::{elf, exit, failure, kernel, output, place};

/// Returns what a command prints that must succeed.
fn printed(args: &[&str]) -> String {
    let output = output(Path::new("/"), args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the commands that help lists below a command.
fn commands(above: &[&str]) -> Vec<String> {
    let help = printed(&[above, &["--help"]].concat());
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return Vec::new() };
    let lines = list.lines().take_while(|line| !line.is_empty());
    let name = |line: &str| {
        line.strip_prefix("  ")
            .filter(|rest| !rest.starts_with(' '))
            .and_then(|rest| rest.split(' ').next().map(str::to_owned))
    };
    lines.filter_map(name).filter(|name| name != "help").collect()
}

#[test]
fn every_command_has_a_page_with_its_options_and_no_other_page_is_written() {
    let folder = tempfile::tempdir().expect("folder");
    printed(&["man", "--folder", folder.path().to_str().expect("text")]);
    let files = std::fs::read_dir(folder.path()).expect("readable");
    let written: BTreeSet<String> = files.map(|f| f.expect("entry").file_name().into_string().expect("text")).collect();
    let mut wanted: BTreeSet<String> = ["fxscope.1".to_owned()].into();
    for command in commands(&[]) {
        wanted.insert(format!("fxscope-{command}.1"));
        wanted.extend(commands(&[&command]).iter().map(|below| format!("fxscope-{command}-{below}.1")));
    }
    assert_eq!(written, wanted);
    let page = std::fs::read_to_string(folder.path().join("fxscope-jitter-measure.1")).expect("a page");
    assert_eq!(page, printed(&["man", "jitter", "measure"]));
    assert!(page.starts_with(".ie ") || page.contains(".TH FXSCOPE-JITTER-MEASURE 1"), "{page}");
    assert!(printed(&["man", "run"]).contains("\\-\\-no\\-progress"));
}

#[test]
fn pages_have_no_errors_by_man() {
    for words in [&["man"][..], &["man", "run"], &["man", "pages", "advise"]] {
        let mut man = Command::new("man");
        man.args(["--warnings", "-E", "UTF-8", "-l", "-"]).env("MANWIDTH", "80").env("LC_ALL", "C.UTF-8");
        let Ok(mut man) = man.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() else {
            skip("man does not start; it is in man-db");
            return;
        };
        man.stdin.take().expect("piped").write_all(printed(words).as_bytes()).expect("written");
        let shown = man.wait_with_output().expect("it ends");
        assert!(
            shown.status.success() && shown.stderr.is_empty(),
            "{words:?}: {}",
            String::from_utf8_lossy(&shown.stderr)
        );
        assert!(String::from_utf8_lossy(&shown.stdout).contains("SYNOPSIS"));
    }
}

#[test]
fn a_page_of_an_unknown_command_is_an_error_that_names_the_commands() {
    let (status, error) = failure(Path::new("/"), &["man", "jitter", "measures"]);
    assert_eq!(status, 125);
    assert!(error.contains("fxscope jitter has no command 'measures'; it has measure, "), "{error}");
    let (_, error) = failure(Path::new("/"), &["man", "run", "fast"]);
    assert!(error.contains("fxscope run has no command 'fast' below it"), "{error}");
}

/// A shell with a program that completes words after `fxscope`, and prints what it finds; `$1` is the script.
const COMPLETED: &[(&str, &str)] = &[
    (
        "bash",
        r#". "$1"; COMP_WORDS=(fxscope jitter me); COMP_CWORD=2; _fxscope fxscope me jitter; printf '%s\n' "${COMPREPLY[@]}""#,
    ),
    ("fish", r#"source $argv[1]; complete -C "fxscope jitter me""#),
    ("zsh", r#"autoload -U compinit; compinit -D; source "$1"; print ${_comps[fxscope]}"#),
];

#[test]
fn shells_load_their_completions_and_find_commands() {
    let folder = tempfile::tempdir().expect("folder");
    for (shell, program) in COMPLETED {
        let script = place(folder.path(), shell, printed(&["completions", shell]).as_bytes());
        let mut command = Command::new(shell);
        match *shell {
            "fish" => command.args(["--no-config", "-c", program]).arg(&script),
            "zsh" => command.args(["-f", "-c", program, "zsh"]).arg(&script),
            _ => command.args(["-c", program, shell]).arg(&script),
        };
        let Ok(output) = command.env("HOME", folder.path()).output() else {
            skip(format_args!("no completions for {shell}: it is not installed"));
            continue;
        };
        let (found, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let wanted = if *shell == "zsh" { "_fxscope" } else { "measure" };
        assert!(output.status.success() && found.contains(wanted), "{shell}: {found}{error}");
    }
}

#[test]
fn every_exit_status_is_as_help_says() {
    let folder = tempfile::tempdir().expect("folder");
    place(folder.path(), "three", &elf(&exit(3)));
    place(folder.path(), "text", b"text");
    let triad = kernel("triad-l1.elf");
    let status = |args: &[&str]| output(folder.path(), args).status.code();
    let run = |record: &str, passes: &str| status(&["run", "--quiet", "-o", record, "--", &triad, passes]);
    assert_eq!(status(&["run", "--quiet", "--", "./three"]), Some(3), "that of the program");
    assert_eq!((run("short.fxr", "passes=2"), run("long.fxr", "passes=9")), (Some(0), Some(0)));
    assert_eq!(status(&["compare", "short.fxr", "long.fxr", "--fail-above", "2%"]), Some(1), "a check failed");
    assert_eq!(status(&["run", "--no-such-option"]), Some(2), "a wrong command line");
    assert_eq!(status(&["report", "missing.fxr"]), Some(125), "a failure of fxscope");
    assert_eq!(status(&["run", "--", "./text"]), Some(126), "not a program");
    assert_eq!(status(&["run", "--", "./missing"]), Some(127), "no such program");
    let help = printed(&["--help"]);
    for status in ["0", "1", "2", "124", "125", "126", "127", "128+n"] {
        assert!(help.lines().any(|line| line.trim_start().starts_with(&format!("{status} "))), "{status}: {help}");
    }
}
