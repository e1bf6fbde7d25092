//! Custom machines whose `instructions.csv` differs from the built-in one.

use crate::common;

use std::fs;
use std::path::Path;

use common::{LOAD, elf, exit, failure, json, mov, output, place};

const MOV_X0_SP: u32 = 0x9100_03e0;
/// `str x0, [sp]`
const STORE_X0: u32 = 0xf900_03e0;
/// `mov x1, #1000`
const MOV_X1_1000: u32 = mov(1, 1000);
/// `sub x1, x1, #1`
const SUB_X1_1: u32 = 0xd100_0421;
/// `cbnz x1, .-36`: back over itself, the subtraction and eight loads.
const LOOP: u32 = 0xb5ff_fee1;
/// A chain of dependent loads.
const LOADS: u64 = 8 * 1000;

/// A machine with other rows.
const ROWS_FROM_HERE: &str = r#"extends = "a64fx"

[instructions]
source = "chosen for this test"
evidence = "assumed"
would_close = "a loop of dependent loads on such a machine"
"#;

/// A machine in the folder `name`: A64FX with these pipes and this latency for loads of general registers.
fn machine(folder: &Path, name: &str, pipes: &str, latency: &str) {
    let rows = format!(
        "class,vl_bits,uops,pipes,latency,blocking,decode_notes,fetch_ports,store_ports\n\
         base:LDR (immediate) [Unsigned offset],,1,{pipes},{latency},,,1,\n"
    );
    fs::create_dir(folder.join(name)).expect("a new folder");
    place(&folder.join(name), "machine.toml", ROWS_FROM_HERE.as_bytes());
    place(&folder.join(name), "instructions.csv", rows.as_bytes());
}

#[test]
fn loads_of_a_machine_with_shorter_latencies_are_accesses_and_take_these_latencies() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let code = [&[MOV_X0_SP, STORE_X0, MOV_X1_1000][..], &[LOAD; 8], &[SUB_X1_1, LOOP], &exit(0)].concat();
    place(folder.path(), "program", &elf(&code));
    let counts = |latency: u64| {
        let name = format!("loads-{latency}");
        machine(folder.path(), &name, "EAG*", &latency.to_string());
        let check = output(folder.path(), &["machine", "check", &name]);
        assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
        let run = output(folder.path(), &["run", "--quiet", "-m", &name, "--json", "out.json", "--", "./program"]);
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let run = json(&fs::read(folder.path().join("out.json")).expect("written"));
        let event = |name: &str| run["regions"][0]["events"][name].as_u64().unwrap_or_else(|| panic!("{name}"));
        (event("L1D_CACHE"), event("CPU_CYCLES"))
    };
    let (accesses, cycles) = counts(5);
    assert!(accesses >= LOADS, "{accesses}");
    for (latency, faster) in [(4, 1), (3, 2)] {
        let (same, fewer) = counts(latency);
        assert_eq!(same, accesses, "loads of {latency} cycles");
        assert!((cycles - fewer).abs_diff(faster * LOADS) < LOADS / 100, "{cycles} and {fewer} cycles");
    }
}

#[test]
fn a_row_of_a_load_that_passes_no_address_pipe_is_refused_with_its_line() {
    let folder = tempfile::tempdir().expect("temporary folder");
    machine(folder.path(), "mine", "EX*", "5");
    let (status, message) = failure(folder.path(), &["machine", "check", "mine"]);
    assert_eq!(status, 125, "{message}");
    for part in ["instructions.csv:2: base:LDR (immediate) [Unsigned offset]", "address pipe", "EAG*"] {
        assert!(message.contains(part), "{message}");
    }
}
