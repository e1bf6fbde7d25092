//! Kernel time is a separate component of cycle accounting.

use crate::common;

use common::{compile, json, output};
use serde_json::Value;

const PAGE: u64 = 2 << 20;
const PAGES: u64 = 8;

/// Maps 16 MiB and writes them page by page, in a marked region.
const PROGRAM: &str = r#"
#include <string.h>
#include <sys/mman.h>
int main(void)
{
    unsigned long bytes = 16UL << 20;
    char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 1, bytes);
    return memory[bytes - 1] - 1;
}
"#;

fn run(source: &str) -> Value {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = compile(folder.path(), "program", &["-O2", "-static"], source);
    let run = output(folder.path(), &["run", "--quiet", "--json", "out.json", "--", &program]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    json(&std::fs::read(folder.path().join("out.json")).expect("written"))
}

#[test]
fn kernel_time_is_the_cost_of_system_calls_and_pages_and_fetch_waits_are_few() {
    let run = run(PROGRAM);
    let event = |name: &str| run["regions"][0]["events"][name].as_u64().unwrap_or_else(|| panic!("{name}"));
    let (cycles, kernel) = (event("CPU_CYCLES"), event("KERNEL_CYCLES"));
    let spec = fxscope::machine::load("a64fx", &[]).expect("built in");
    let clearing = PAGES * PAGE * spec.clock.core_hz / spec.page_costs.clear_bytes_per_second;
    let faults = PAGES * spec.page_costs.fault_ns * spec.clock.core_hz / 1_000_000_000;
    // The start and end of the C library need a few pages and about twenty system calls in addition.
    let others = clearing / 4 + 50 * spec.assumptions.system_call;
    assert!(
        (clearing..clearing + faults + others).contains(&kernel),
        "{kernel} of {cycles}, {clearing} of them to clear"
    );
    let fetch = event("ROB_EMPTY") - event("ROB_EMPTY_STQ_BUSY") - event("WFE_WFI_CYCLE") - kernel;
    assert!(20 * fetch < cycles, "{fetch} of {cycles}");
}

#[test]
fn the_components_including_kernel_time_add_up_to_the_cycles() {
    let run = run(PROGRAM);
    let cycles = run["regions"][0]["events"]["CPU_CYCLES"].as_f64().expect("counted");
    let metrics = run["regions"][0]["metrics"].as_object().expect("metrics");
    let parts = fxscope::pmu::Metrics::built_in().group("cycle_accounting").expect("there").metrics.iter();
    let values: Vec<f64> = parts.filter_map(|part| metrics.get(&part.name)?.as_f64()).collect();
    assert_eq!(values.len(), 21);
    assert!((values.iter().sum::<f64>() - cycles).abs() < 1.0, "{values:?} of {cycles}");
    assert!(metrics["kernel"].as_f64() > metrics["fetch_wait"].as_f64());
}

/// Sends itself 32 MiB in blocks of 64 KiB.
const SOCKETS: &str = r#"
#include <sys/socket.h>
#include <unistd.h>
static char block[65536];
int main(void) {
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    for (int i = 0; i < 512; i++)
        if (write(pair[0], block, sizeof block) != sizeof block || read(pair[1], block, sizeof block) != sizeof block)
            return 1;
    return 0;
}
"#;

#[test]
fn data_that_pass_through_a_socket_are_copied_twice() {
    let run = run(SOCKETS);
    let kernel = run["regions"][0]["events"]["KERNEL_CYCLES"].as_u64().expect("counted");
    let spec = fxscope::machine::load("a64fx", &[]).expect("built in");
    let copies = 2 * (32 << 20) * spec.clock.core_hz / spec.assumptions.call_copy_bytes_per_second;
    let calls = 1024 * spec.assumptions.system_call;
    // The start of the program takes a few pages in addition.
    assert!((copies + calls..(copies + calls) / 4 * 5).contains(&kernel), "{kernel}, of them {copies} to copy");
}
