//! The progress line and the program share a terminal: neither breaks the other, and nothing of the line remains.

use crate::common;

use std::process::Command;

use common::compile;

/// Start of the progress line.
const LINE: &str = "fxscope: simulated";

/// A program that pauses before each of these pieces of output (text of a C string), so that the line is shown.
fn program(pieces: &[&str]) -> String {
    let steps: String = pieces.iter().map(|piece| format!("step(\"{piece}\");")).collect();
    format!(
        "#include <string.h>\n#include <time.h>\n#include <unistd.h>\n\
         static void step(const char *text) {{\n\
           struct timespec pause = {{1, 600000000}};\n\
           nanosleep(&pause, 0);\n\
           write(1, text, strlen(text));\n\
         }}\n\
         int main(void) {{ {steps} return 0; }}\n"
    )
}

/// Returns the bytes sent to a terminal by a run of a program whose standard streams are all that terminal.
fn on_a_terminal(options: &str, pieces: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = compile(folder.path(), "slow", &["-O1", "-static"], &program(pieces));
    let fxscope = env!("CARGO_BIN_EXE_fxscope");
    let command = format!("'{fxscope}' run --mode functional --clock host {options} -- '{program}'");
    // script of util-linux: runs a command on a pseudo terminal, and copies its output.
    let output = Command::new("script").args(["-qec", &command, "/dev/null"]).env("TERM", "xterm").output();
    let output = output.unwrap_or_else(|e| panic!("cannot start script ({e}): apt-get install bsdutils"));
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the final lines of a terminal.
fn screen(sent: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let (mut row, mut column) = (0, 0);
    let mut rest = sent;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\r' => column = 0,
            '\n' => row += 1,
            '\u{1b}' => {
                let end = rest.find(|c: char| c.is_ascii_alphabetic()).expect("a control sequence");
                match &rest[..=end] {
                    "[2K" => lines[row].clear(),
                    "[1A" => row -= 1,
                    sequence if sequence.ends_with('m') => {}
                    other => panic!("the test's terminal does not know {other:?}"),
                }
                rest = &rest[end + 1..];
            }
            c => {
                let mut line: Vec<char> = lines[row].chars().collect();
                line.resize(line.len().max(column + 1), ' ');
                line[column] = c;
                lines[row] = line.into_iter().collect();
                column += 1;
            }
        }
        lines.resize(lines.len().max(row + 1), String::new());
    }
    lines
}

/// Returns how often the progress line was drawn.
fn drawn(sent: &str) -> usize {
    sent.matches(LINE).count()
}

#[test]
fn the_line_is_removed_before_the_program_writes_and_leaves_nothing_behind() {
    let sent = on_a_terminal("", &[r"first\n", r"second\n"]);
    assert!(drawn(&sent) >= 2, "the line is there before each: {sent:?}");
    let lines = screen(&sent);
    assert_eq!(lines[..2], ["first", "second"]);
    assert!(!lines.iter().any(|line| line.contains(LINE)), "{lines:#?}");
}

#[test]
fn the_program_s_bytes_reach_the_terminal_unbroken() {
    let sent = on_a_terminal("", &[r"\33[1mfirst\33[0m\tline\nand second", r" line\n"]);
    assert!(sent.contains("\u{1b}[1mfirst\u{1b}[0m\tline\r\nand second line\r\n"), "{sent:?}");
}

#[test]
fn the_line_is_not_drawn_while_a_line_of_the_program_is_unfinished() {
    let sent = on_a_terminal("", &["name? ", r"nobody\n"]);
    let (before, after) = sent.split_once("name? ").expect("the program's output");
    assert!(drawn(before) > 0, "{sent:?}");
    assert!(after.starts_with("nobody"), "{sent:?}");
}

#[test]
fn the_summary_starts_on_a_new_line() {
    let lines = screen(&on_a_terminal("", &["unfinished"]));
    assert_eq!(lines[0], "unfinished");
    assert!(lines.len() > 5, "{lines:#?}");
}

#[test]
fn a_quiet_run_sends_the_program_s_bytes_and_nothing_else() {
    assert_eq!(on_a_terminal("--quiet", &[r"first\n", "second"]), "first\r\nsecond");
}
