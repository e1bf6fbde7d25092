//! Results on standard output: the program's own output then goes to standard error.

use crate::common;

use common::{compile, failure, fxscope, json, output};

/// Several threads or processes write lines to standard output, and one to standard error in between.
const WRITES: &str = r#"
    #include <pthread.h>
    #include <string.h>
    #include <sys/wait.h>
    #include <unistd.h>
    static void say(int to, const char *text) { write(to, text, strlen(text)); }
    static void *other(void *unused) { say(1, "three\n"); return unused; }
    int main(int count, char **arguments) {
        say(1, "one\n");
        say(2, "two\n");
        if (count > 1 && !strcmp(arguments[1], "threads")) {
            pthread_t thread;
            pthread_create(&thread, 0, other, 0);
            pthread_join(thread, 0);
        } else if (count > 1) {
            if (fork() == 0) { other(0); _exit(0); }
            wait(0);
        } else {
            other(0);
        }
        say(1, "four\n");
        return 3;
    }"#;

#[test]
fn json_on_standard_output_is_json_alone_and_the_programs_output_keeps_its_order_on_standard_error() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = compile(folder.path(), "writes", &["-O1", "-static", "-pthread"], WRITES);
    for how in [&[][..], &["threads"], &["processes"]] {
        for name in ["-", "/dev/stdout"] {
            let run = output(folder.path(), &[&["run", "--json", name, "--", &program], how].concat());
            assert_eq!(run.status.code(), Some(3), "{how:?}: {run:?}");
            assert_eq!(json(&run.stdout)["exit_code"], 3);
            let said = String::from_utf8_lossy(&run.stderr);
            assert!(said.starts_with("one\ntwo\nthree\nfour\n"), "{how:?}: {said}");
            assert!(said.contains("exit status 3"), "the summary is there as ever: {said}");
        }
    }
    // Without it, nothing is redirected.
    let run = output(folder.path(), &["run", "-q", "--json", "out.json", "--", &program]);
    assert_eq!(String::from_utf8_lossy(&run.stdout), "one\nthree\nfour\n");
    assert_eq!(String::from_utf8_lossy(&run.stderr), "two\n");
}

#[test]
fn other_commands_that_write_results_to_standard_output_redirect_the_programs_output_too() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = compile(folder.path(), "writes", &["-O1", "-static", "-pthread"], WRITES);
    for command in [&["annotate", "--json", "-"][..], &["pages", "risks", "--json", "-"]] {
        let run = output(folder.path(), &[command, &["--", &program]].concat());
        assert!(run.status.success(), "{command:?}: {run:?}");
        json(&run.stdout);
        assert!(String::from_utf8_lossy(&run.stderr).contains("one\ntwo\nthree\nfour\n"), "{command:?}: {run:?}");
    }
}

#[test]
fn results_that_need_a_file_are_not_written_to_standard_output_nor_to_a_file_of_that_name() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = compile(folder.path(), "writes", &["-O1", "-static", "-pthread"], WRITES);
    for args in [&["run", "-o", "-"][..], &["run", "--konata", "-"]] {
        let (status, error) = failure(folder.path(), &[args, &["--", &program]].concat());
        assert_eq!(status, 125, "{args:?}");
        assert!(error.contains("standard output cannot hold") && error.contains("give the path of a file"), "{error}");
    }
    assert!(!folder.path().join("-").exists());
}

#[test]
fn control_characters_in_file_names_do_not_reach_a_terminal() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let name = "evil\u{1b}[31m\u{7}\u{202e}.fxr";
    let (_, error) = failure(folder.path(), &["report", name]);
    assert!(error.contains("evil") && !error.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{error:?}");
    let (_, error) = failure(folder.path(), &["report", "--level", "\u{1b}[31m\u{7}red", "r.fxr"]);
    assert!(error.contains("red") && !error.contains(['\u{1b}', '\u{7}']), "{error:?}");
    // A region's name, in a report.
    let source = r#"
        #include "fxscope.h"
        int main(void) {
            FXSCOPE_BEGIN("=cmd|'\x1b[31mred");
            FXSCOPE_END("=cmd|'\x1b[31mred");
            return 0;
        }"#;
    let include = format!("-I{}/../../include", env!("CARGO_MANIFEST_DIR"));
    let program = compile(folder.path(), "region", &["-O1", "-static", &include], source);
    let run = fxscope(folder.path(), &["run", "-o", "r.fxr", "--", &program]).output().expect("starts");
    assert!(run.status.success(), "{run:?}");
    for args in [&["report", "r.fxr", "--by", "process"][..], &["report", "r.fxr"], &["annotate", "r.fxr"]] {
        let shown = String::from_utf8(output(folder.path(), args).stdout).expect("text");
        assert!(!shown.contains('\u{1b}'), "{args:?}: {shown:?}");
    }
    let csv = String::from_utf8(output(folder.path(), &["report", "r.fxr", "--format", "csv"]).stdout).expect("text");
    assert!(csv.contains(",\"'=cmd|'\u{fffd}[31mred\","), "{csv}");
}
