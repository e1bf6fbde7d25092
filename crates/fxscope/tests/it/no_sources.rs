//! The command alone, where its sources are not: programs, machines, experiments and rows are inside it.

use std::path::Path;
use std::process::{Command, Output};

use fxscope_testkit::skip;

use crate::common::kernel;

/// Hides the sources (`$1`) behind an empty folder, then runs the commands of `$3` in the folder `$2`, which has fxscope.
const HIDDEN: &str = r#"
    set -eu
    sources=$1 folder=$2 commands=$3
    mount -t tmpfs none "$sources"
    [ -z "$(ls -A "$sources")" ]
    cd "$folder"
    export HOME="$folder"
    PATH="$folder:$PATH"
    eval "$commands"
"#;

/// Every command, with what it can do in seconds.
const COMMANDS: &str = r#"
    fxscope guide --programs programs
    fxscope run --quiet -o one.fxr --json one.json -- programs/triad-l1.elf passes=2 > /dev/null
    fxscope run --quiet -o two.fxr -- programs/triad-l1.elf passes=4 > /dev/null
    fxscope run --quiet --mode functional --checkpoint kept -- programs/triad-l1.elf passes=2 > /dev/null
    fxscope report --format html -o one.html one.fxr
    fxscope compare one.fxr two.fxr > /dev/null
    fxscope advise one.fxr > /dev/null
    fxscope annotate -- programs/triad-l1.elf passes=2 > /dev/null
    fxscope run --quiet --stacks 1us -o stacked.fxr -- programs/triad-l1.elf passes=20 > /dev/null
    fxscope export --format perfetto -o one.trace stacked.fxr
    fxscope machine list > /dev/null
    fxscope machine show fugaku > /dev/null
    fxscope machine check k-computer > /dev/null
    fxscope events > /dev/null
    fxscope guide > /dev/null
    fxscope guide --all --commands > /dev/null
    fxscope validate access-0009 --no-cache > /dev/null
    fxscope calibrate list > /dev/null
    fxscope pages risks -- programs/triad-l1.elf passes=2 > /dev/null
    fxscope latency predict one.fxr > /dev/null
    fxscope jitter profiles > /dev/null
    fxscope man --folder man
    for shell in bash zsh fish; do fxscope completions $shell > /dev/null; done
    ls man | wc -l
"#;

/// Runs `COMMANDS` without the sources; `None` if namespaces are not permitted.
fn without_sources(folder: &Path) -> Option<Output> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates are two folders down");
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"]);
        command.args([sources, folder]).arg(COMMANDS).output()
    };
    match unshare("mount -t tmpfs none \"$2\"") {
        Ok(output) if output.status.success() => Some(unshare(HIDDEN).expect("unshare starts")),
        Ok(output) => {
            skip(format_args!("no namespace to hide the sources: {}", String::from_utf8_lossy(&output.stderr).trim()));
            None
        }
        Err(error) => {
            skip(format_args!("unshare does not start ({error}); it is in util-linux"));
            None
        }
    }
}

#[test]
fn every_command_works_without_the_sources() {
    let folder = tempfile::tempdir_in("/var/tmp").expect("folder");
    std::fs::copy(env!("CARGO_BIN_EXE_fxscope"), folder.path().join("fxscope")).expect("copied");
    let Some(output) = without_sources(folder.path()) else { return };
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let written = std::fs::read(folder.path().join("programs/triad-l1.elf")).expect("written");
    assert_eq!(
        written,
        std::fs::read(kernel("triad-l1.elf")).expect("a kernel"),
        "the programs are those of the sources"
    );
    assert!(std::fs::metadata(folder.path().join("one.html")).expect("a page").len() > 100_000);
    let pages: usize = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number of pages");
    assert!(pages > 40, "{pages}");
}
