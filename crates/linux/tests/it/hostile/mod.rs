//! Programs that make random system calls in a sandbox: none panics, changes the host or runs forever.
//!
//! As root, they run in a mount namespace with a separate `/dev`, which protects the host from any defects found.
//! `FXSCOPE_HOSTILE_PROGRAMS` (default 300) sets their number; `fuzz` runs the same kind of programs, guided by coverage.

mod calls;

use std::env;
use std::process::Command;

use calls::{Call, Host};
use fxscope_testkit::skip;

use crate::common::output;

/// Set inside the namespace.
const INSIDE: &str = "FXSCOPE_HOSTILE_INSIDE";

/// Runs the program `$2` with the remaining arguments where `/dev`, which is in the folder `$1`, has no host devices.
const NAMESPACE: &str = r#"
    set -eu
    dev=$1
    shift
    mount -t tmpfs -o mode=755 none "$dev"
    mknod -m 666 "$dev/null" c 1 3; mknod -m 666 "$dev/zero" c 1 5; mknod -m 666 "$dev/full" c 1 7
    mknod -m 666 "$dev/tty" c 5 0; mknod -m 666 "$dev/urandom" c 1 9
    mkdir "$dev/shm"
    : > "$dev/null"
    mount --bind "$dev" /dev
    echo ready >&2
    exec "$@"
"#;

/// A fixed sequence of numbers (`SplitMix64`).
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
    fn call(&mut self) -> Call {
        Call { which: self.next() as u16, arguments: std::array::from_fn(|_| (self.next() as u8, self.next())) }
    }
}

fn programs() -> u64 {
    env::var("FXSCOPE_HOSTILE_PROGRAMS").map_or(300, |text| text.parse().expect("FXSCOPE_HOSTILE_PROGRAMS: a number"))
}

#[test]
fn random_system_calls_neither_panic_nor_change_the_host_nor_run_forever() {
    const NAME: &str = "hostile::random_system_calls_neither_panic_nor_change_the_host_nor_run_forever";
    // Only root can change a device.
    if env::var_os(INSIDE).is_some() || !rustix::process::geteuid().is_root() {
        let (mut rng, host) = (Rng(1), Host::default());
        for _ in 0..programs() {
            let calls: Vec<Call> = (0..=rng.next() % 60).map(|_| rng.call()).collect();
            host.run(&calls);
        }
        return;
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", NAMESPACE, "sh"]);
    let test = env::current_exe().expect("this test");
    let dev = tempfile::tempdir().expect("folder");
    command.arg(dev.path()).arg(test).args(["--exact", NAME, "--nocapture"]).env(INSIDE, "1");
    match output(&mut command) {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("1 passed"), "the test inside did not run: {text}");
        }
        Ok(output) => {
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(!error.contains("ready"), "{error}{}", String::from_utf8_lossy(&output.stdout));
            skip(format_args!("no namespace for hostile programs: {}", error.trim()));
        }
        Err(error) => skip(format_args!("unshare does not start ({error}); it is in util-linux")),
    }
}
