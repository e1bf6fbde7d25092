//! Hostile programs, run as root. They have their own `/dev` and kernel file systems in the folder that they may write
//! to, in a mount namespace that ends with the test, so the host is unaffected if a check fails.

use crate::common;

use std::path::Path;
use std::process::{Command, Output};

use common::compile;
use fxscope_testkit::skip;

/// Prepares the namespace in the folder `$1`, runs fxscope (`$2`) with the remaining arguments, and prints the state of
/// devices and nodes before and after.
const NAMESPACE: &str = r#"
    set -eu
    base=$1 fxscope=$2
    shift 2
    mount -t tmpfs -o mode=755 none "$base"
    mkdir -p "$base/dev/shm" "$base/work/jail/proc" "$base/work/jail/sys" /tmp
    cd "$base/dev"
    mknod -m 666 null c 1 3; mknod -m 666 zero c 1 5; mknod -m 666 full c 1 7; mknod -m 666 tty c 5 0
    ln null "$base/work/hard-link"
    cd "$base/work"
    mknod -m 666 memory c 1 1; mknod -m 666 null c 1 3; mknod -m 666 disk b 1 0
    mount -t proc none jail/proc
    mount -t sysfs none jail/sys
    : > environment
    mount --bind "/proc/$$/environ" environment
    cp "$base.elf" hostile.elf
    mount --bind "$base/dev" /dev
    state() {
        stat -c '%n %f %u %g %t:%T %i %h %Y' /dev/null /dev/zero /dev/full /dev/tty memory disk null hard-link
    }
    state > "$base/before"
    sleep 1.1
    status=0
    "$fxscope" run --quiet --mode functional "$@" -- ./hostile.elf < /dev/null > "$base/output" 2> "$base/error" || status=$?
    state > "$base/after"
    cat "$base/output"
    echo "status: $status"
    cat "$base/error"
    if cmp -s "$base/before" "$base/after"; then echo "state: same"; else cat "$base/before" "$base/after"; fi
"#;

/// Runs a shell script in a new mount namespace; `None` if that is not permitted.
fn in_namespace(script: &str, arguments: &[&str]) -> Option<Output> {
    let unshare = |script: &str, arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"]).args(arguments).output()
    };
    let permitted = "d=$(mktemp -d); mount -t tmpfs none $d && mknod $d/null c 1 3 && : > $d/null; s=$?; umount $d; rmdir $d; exit $s";
    match unshare(permitted, &[]) {
        Ok(output) if output.status.success() => Some(unshare(script, arguments).expect("unshare starts")),
        Ok(output) => {
            let error = String::from_utf8_lossy(&output.stderr);
            skip(format_args!("no namespace for hostile programs: {}", error.trim()));
            None
        }
        Err(error) => {
            skip(format_args!("unshare does not start ({error}); it is in util-linux"));
            None
        }
    }
}

/// What it may do to a symbolic link that it has made, wherever that leads.
const OWN_LINK: [&str; 2] = ["lstat to-memory", "link text to-memory"];

/// Runs the hostile program. Attempts about `its_own` may have any result.
fn hostile(switches: &[&str], its_own: &[&str]) {
    // Programs may write to /tmp.
    let folder = tempfile::tempdir_in("/var/tmp").expect("folder");
    let base = folder.path().join("base");
    std::fs::create_dir(&base).expect("folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/hostile.c");
    let source = std::fs::read_to_string(source).expect("source");
    compile(folder.path(), "base.elf", &["-static"], &source);
    let base = base.to_str().expect("UTF-8");
    let arguments = [&[base, env!("CARGO_BIN_EXE_fxscope")], switches].concat();
    let Some(output) = in_namespace(NAMESPACE, &arguments) else { return };
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.contains("status: 0\n") && told.contains("state: same\n"), "{told}");
    let may_be_done = ["open /dev/null", "open /dev/zero", "open /dev/full"];
    let attempts: Vec<_> = told.lines().filter(|line| !line.contains("status") && !line.contains("state")).collect();
    assert!(attempts.len() > 300, "{told}");
    for attempt in attempts {
        let (what, result) = attempt.rsplit_once(": ").expect("what: result");
        let free = its_own.iter().chain(&OWN_LINK).any(|name| what.ends_with(name));
        assert!(free || (result == "done") == may_be_done.contains(&what), "{attempt}");
    }
}

#[test]
fn as_root_a_program_changes_no_device_and_reaches_the_kernel_through_no_file_system() {
    hostile(&[], &[]);
}

#[test]
fn in_a_sandbox_a_hostile_program_changes_and_reaches_nothing() {
    hostile(&["--sandbox"], &[]);
}

#[test]
fn a_hostile_program_that_may_write_everywhere_changes_no_device() {
    // Its targets are among the files that it may write.
    hostile(&["--allow", "write=/"], &["standard output", "standard error"]);
}
