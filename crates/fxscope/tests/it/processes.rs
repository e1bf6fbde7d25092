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
fn functional_runs_count_the_instructions_of_each_process() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = compile(folder.path(), "parent", &["-O1", "-static"], PARENT);
    let run = output(folder.path(), &["run", "--quiet", "--json", "-", "--mode", "functional", "--", &program]);
    let json = json(&run.stdout);
    let all = &json["regions"][0];
    let instructions = |process: usize| {
        let thread = &all["threads"][process];
        assert_eq!(thread["process"], process);
        thread["events"]["INST_RETIRED"].as_u64().expect("counted")
    };
    let (parent, child) = (instructions(0), instructions(1));
    assert!(parent < 1_000_000 && child > 3_000_000, "{parent} {child}");
    assert_eq!(json["simulated"]["instructions"], parent + child);
    // An instruction takes a nanosecond, two cycles, whichever process executes it.
    assert_eq!(json["simulated"]["cycles"], 2 * (parent + child));
    // All processes share the clock: its cycles are those of each of them, not their sum.
    for thread in all["threads"].as_array().expect("a list") {
        assert_eq!(thread["events"]["CPU_CYCLES"], json["simulated"]["cycles"]);
    }
}

/// They take seconds each.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
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
}
