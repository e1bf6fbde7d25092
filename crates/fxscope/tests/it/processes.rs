//! Programs with several processes, at the command line.

use crate::common;

use common::{compile, json, output};

/// The child executes more than three million instructions; its parent waits for it.
const PARENT: &str = r#"
    #include <sys/wait.h>
    #include <unistd.h>
    int main(void) {
        if (fork() == 0) {
            for (volatile int i = 0; i < 1000000; i++) {}
            _exit(0);
        }
        int status;
        wait(&status);
        return status;
    }"#;

#[test]
fn all_processes_of_a_program_are_timed_or_only_the_first() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = compile(folder.path(), "parent", &["-O1", "-static"], PARENT);
    let simulated = |follow: &str| {
        let run = output(folder.path(), &["run", "--quiet", "--json", "-", "--follow", follow, "--", &program]);
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let value = json(&run.stdout)["simulated"].clone();
        let number = |key: &str| value[key].as_u64().unwrap_or_else(|| panic!("{key} in {value}"));
        (number("instructions"), number("cycles"))
    };
    let (all, _) = simulated("all");
    let (first, cycles) = simulated("first");
    assert!(all > 3_000_000, "{all}");
    assert!(first < all / 2, "{first} of {all}");
    // The child's instructions still take one nominal nanosecond each, two cycles.
    assert!(cycles > 2 * 3_000_000, "{cycles}");
}
