//! Commands that every run has: numactl, taskset, perf, nproc and lscpu, in front of a program and inside one, without a sysroot.
//! Expectations are those of their manual pages, and of the machine: memory nodes 4 to 7 with twelve of the CPUs 12 to 59 each.

use crate::common;

use std::path::Path;

use common::{compile, json, kernel, output};

/// Prints its memory policy, the nodes of it, and its CPUs, or executes its arguments; `shell` does so in a child process.
const PROGRAM: &str = r#"
    #define _GNU_SOURCE
    #include <sched.h>
    #include <stdio.h>
    #include <string.h>
    #include <sys/syscall.h>
    #include <sys/wait.h>
    #include <unistd.h>
    int main(int argc, char **argv)
    {
        if (argc > 1 && !strcmp(argv[1], "shell")) {
            int status;
            if (fork() == 0) {
                execvp(argv[2], argv + 2);
                _exit(126);
            }
            wait(&status);
            printf("status %d\n", WEXITSTATUS(status));
            return 0;
        }
        if (argc > 1) {
            execvp(argv[1], argv + 1);
            return 126;
        }
        int mode = -1;
        unsigned long nodes = 0;
        syscall(SYS_get_mempolicy, &mode, &nodes, 65, 0, 0);
        cpu_set_t cpus;
        sched_getaffinity(0, sizeof cpus, &cpus);
        printf("mode %d nodes %lx cpus", mode, nodes);
        for (int first = 0; first < CPU_SETSIZE; first++) {
            int last = first;
            while (CPU_ISSET(last, &cpus))
                last++;
            if (last > first)
                printf(" %d-%d", first, last - 1);
            first = last;
        }
        printf("\n");
        return 7;
    }"#;

/// Modes of set_mempolicy(2).
const DEFAULT: &str = "mode 0 nodes 0 cpus 12-59\n";

fn program(folder: &Path) -> String {
    compile(folder, "program", &["-O1", "-static"], PROGRAM)
}

/// Returns standard output, standard error and status of a functional run, whose PATH has the folders of commands only.
fn run(folder: &Path, command: &[&str]) -> (String, String, i32) {
    let options = ["run", "--quiet", "--mode", "functional", "-e", "PATH=/usr/bin:/bin", "--"];
    let ran = output(folder, &[&options, command].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&ran.stdout), text(&ran.stderr), ran.status.code().expect("ended by itself"))
}

#[test]
fn numactl_sets_memory_policy_and_cpus_of_the_command_behind_it() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = program(folder.path());
    for (options, expected) in [
        ("--interleave=4-7", "mode 3 nodes f0 cpus 12-59\n"),
        ("-i all", "mode 3 nodes f0 cpus 12-59\n"),
        ("--interleave +0,2", "mode 3 nodes 50 cpus 12-59\n"),
        ("--membind=5,7", "mode 2 nodes a0 cpus 12-59\n"),
        ("-m !4", "mode 2 nodes e0 cpus 12-59\n"),
        ("--preferred=6", "mode 1 nodes 40 cpus 12-59\n"),
        ("--localalloc", "mode 4 nodes 0 cpus 12-59\n"),
        ("-l", "mode 4 nodes 0 cpus 12-59\n"),
        ("--cpunodebind=5", "mode 0 nodes 0 cpus 24-35\n"),
        ("-N 4,6 -m4", "mode 2 nodes 10 cpus 12-23 36-47\n"),
        ("-C 12-15,20", "mode 0 nodes 0 cpus 12-15 20-20\n"),
        ("--physcpubind=+0-1", "mode 0 nodes 0 cpus 12-13\n"),
        ("--", DEFAULT),
    ] {
        let command: Vec<&str> = std::iter::once("numactl").chain(options.split(' ')).chain([&program[..]]).collect();
        assert_eq!(run(folder.path(), &command), (expected.to_owned(), String::new(), 7), "{options}");
    }
}

#[test]
fn numactl_shows_the_machine_and_its_own_policy() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let (text, _, status) = run(folder.path(), &["numactl", "--hardware"]);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    assert_eq!((status, lines[0]), (0, "available: 4 nodes (4-7)"), "{text}");
    assert_eq!(lines[4], "node 5 cpus: 24 25 26 27 28 29 30 31 32 33 34 35");
    assert_eq!(lines[5], "node 5 size: 8192 MB");
    assert_eq!(&lines[13..15], ["node distances:", "node   4   5   6   7"]);
    assert!(lines[15].starts_with("  4:  10 "), "{text}");

    let (text, _, status) = run(folder.path(), &["numactl", "-i", "5,6", "-C", "12-13", "numactl", "--show"]);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let expected = [
        "policy: interleave",
        "preferred node: 5 (interleave next)",
        "interleavemask: 5 6",
        "physcpubind: 12 13",
        "cpubind: 4",
        "nodebind: 4",
        "membind: 4 5 6 7",
    ];
    assert_eq!((status, &lines[..]), (0, &expected[..]));
    let (text, _, _) = run(folder.path(), &["numactl", "-m", "6", "numactl", "-s"]);
    assert!(text.starts_with("policy: bind\npreferred node: 6\n") && text.contains("\nmembind: 6 \n"), "{text}");
}

#[test]
fn taskset_sets_the_cpus_of_a_command_by_list_or_mask() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = program(folder.path());
    for (options, cpus) in [
        ("-c 12-23", "12-23"),
        ("--cpu-list 13,36-40:2", "13-13 36-36 38-38 40-40"),
        ("0xf000", "12-15"),
        ("1,00000000", "32-32"),
    ] {
        let command: Vec<&str> = std::iter::once("taskset").chain(options.split(' ')).chain([&program[..]]).collect();
        let expected = format!("mode 0 nodes 0 cpus {cpus}\n");
        assert_eq!(run(folder.path(), &command), (expected, String::new(), 7), "{options}");
    }
}

#[test]
fn taskset_shows_and_sets_the_cpus_of_a_running_process() {
    let folder = tempfile::tempdir().expect("temporary folder");
    // Its own number: the second shell is the third process.
    let show = |options: &[&str]| run(folder.path(), &[&["taskset"], options].concat());
    let (text, _, status) = show(&["-c", "14-15,18", "taskset", "-cp", "1000"]);
    assert_eq!((text.as_str(), status), ("pid 1000's current affinity list: 14,15,18\n", 0));
    let (text, _, _) = show(&["-c", "12-15", "taskset", "-p", "3000", "1000"]);
    assert_eq!(text, "pid 1000's current affinity mask: f000\npid 1000's new affinity mask: 3000\n");
    let (text, _, _) = show(&["-c", "12", "taskset", "-acp", "1000"]);
    assert_eq!(text, "pid 1000's current affinity list: 12\n");
    let (_, error, status) = show(&["-p", "99999"]);
    assert_eq!((error.as_str(), status), ("taskset: failed to get pid 99999's affinity: No such process\n", 1));
}

#[test]
fn nproc_counts_the_cpus_of_its_affinity() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let count = |command: &[&str]| run(folder.path(), command).0;
    assert_eq!(count(&["nproc"]), "48\n");
    assert_eq!(count(&["/usr/bin/nproc"]), "48\n");
    assert_eq!(count(&["taskset", "-c", "12-23", "nproc"]), "12\n");
    assert_eq!(count(&["taskset", "-c", "12-23", "nproc", "--ignore=20"]), "1\n");
    assert_eq!(count(&["taskset", "-c", "12", "nproc", "--all"]).trim().parse::<u32>().ok(), Some(50));
}

#[test]
fn lscpu_shows_the_processors_and_memory_nodes_of_the_machine() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let (text, _, status) = run(folder.path(), &["lscpu"]);
    assert_eq!(status, 0, "{text}");
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("no {name}: {text}")).trim()
    };
    for (name, expected) in [
        ("Architecture", "aarch64"),
        ("CPU(s)", "50"),
        ("Vendor ID", "FUJITSU"),
        ("Model name", "A64FX"),
        ("Thread(s) per core", "1"),
        ("CPU max MHz", "2000.0000"),
        ("NUMA node(s)", "4"),
        ("NUMA node4 CPU(s)", "12-23"),
        ("NUMA node7 CPU(s)", "48-59"),
    ] {
        assert_eq!(value(name), expected, "{name}: {text}");
    }
    assert!(value("Flags").split(' ').any(|flag| flag == "sve"), "{text}");
    let (text, _, _) = run(folder.path(), &["lscpu", "--help"]);
    assert!(text.starts_with("Usage: lscpu\n"), "{text}");
}

#[test]
fn programs_and_shells_find_the_commands_and_their_status() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = program(folder.path());
    let (text, _, status) = run(folder.path(), &[&program, "numactl", "-N", "7", "taskset", "-c", "50", &program]);
    assert_eq!((text.as_str(), status), ("mode 0 nodes 0 cpus 50-50\n", 7));
    let (text, _, _) = run(folder.path(), &[&program, "shell", "/usr/bin/numactl", "--membind=6", &program]);
    assert_eq!(text, "mode 2 nodes 40 cpus 12-59\nstatus 7\n");
    let (text, error, _) = run(folder.path(), &[&program, "shell", "taskset", "-c", "12", "no-such-command"]);
    assert_eq!(text, "status 127\n");
    assert_eq!(error, "taskset: failed to execute no-such-command: No such file or directory\n");
}

#[test]
fn wrong_options_are_refused_by_the_commands_with_their_usage() {
    let folder = tempfile::tempdir().expect("temporary folder");
    for (command, message, usage, status) in [
        ("numactl --bogus x", "numactl: unknown option --bogus\n", "usage: numactl ", 1),
        ("numactl --membind=8 x", "numactl: node argument <8> is invalid\n", "usage: numactl ", 1),
        ("numactl -i 4 -m 5 x", "numactl: only one of --interleave, --membind", "usage: numactl ", 1),
        ("numactl -C 11 x", "numactl: cpu argument <11> is invalid\n", "usage: numactl ", 1),
        ("numactl --membind=4", "numactl: no command given\n", "usage: numactl ", 1),
        ("taskset -x 1 x", "taskset: unknown option -x\n", "Usage: taskset ", 1),
        ("taskset -c 12-x x", "taskset: failed to parse CPU list: 12-x\n", "", 1),
        ("taskset 0 x", "taskset: failed to parse CPU mask: 0\n", "", 1),
        ("taskset -c 0 x", "taskset: failed to set pid 0's affinity: Invalid argument\n", "", 1),
        ("lscpu -p", "lscpu: unknown option -p\n", "Usage: lscpu", 1),
        ("lscpu x", "lscpu: bad usage: 'x'\n", "Usage: lscpu", 1),
        ("nproc --some", "nproc: unknown option --some\n", "Usage: nproc ", 1),
        ("perf record x", "perf: 'record' is not a command of this perf\n", "usage: perf stat ", 129),
        ("perf stat -e no_event x", "unknown event: 'no_event'; perf list shows", "Usage: perf stat ", 129),
        ("perf stat -e {cycles x", "unknown event: '{cycles'", "Usage: perf stat ", 129),
        ("perf stat -r 0 x", "perf: '0' is not a number from 1 to 100\n", "Usage: perf stat ", 129),
        (
            "perf stat -e 0x11 x",
            "'0x11'; the number of an event is hexadecimal behind an r: r11\n",
            "Usage: perf stat ",
            129,
        ),
        ("perf stat -p 1 x", "perf stat: -p: a running process cannot be counted here;", "Usage: perf stat ", 129),
        ("perf stat -a x", "perf stat: -a: whole CPUs cannot be counted here;", "Usage: perf stat ", 129),
        ("perf stat -j -x, x", "perf stat: -j and -x cannot be combined\n", "Usage: perf stat ", 129),
        ("perf stat -n no-such-command", "Workload failed: No such file or directory\n", "", 255),
    ] {
        let (text, error, ended) = run(folder.path(), &command.split(' ').collect::<Vec<_>>());
        let is_told = error.contains(message) && error.contains(usage);
        assert!(text.is_empty() && is_told && ended == status, "{command}: {ended} {error}");
    }
}

/// Runs a timed program behind `perf stat` with options; returns what perf writes to a file, and the record.
fn counted(folder: &Path, fxscope: &[&str], perf: &[&str], program: &[&str]) -> (String, serde_json::Value) {
    let fxscope = [&["run", "--quiet", "--json", "run.json"], fxscope].concat();
    let perf = [&["--", "perf", "stat", "-o", "counts.txt"], perf, &["--"]].concat();
    let ran = output(folder, &[&fxscope, &perf, program].concat());
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("written");
    (read("counts.txt"), json(read("run.json").as_bytes()))
}

/// Returns the counts of a file of perf as `fxscope import` reads them.
fn imported(folder: &Path) -> serde_json::Value {
    // Otherwise the run would be added to one that is there.
    let _ = std::fs::remove_file(folder.join("counts.fxr"));
    let ran = output(folder, &["import", "perf", "counts.txt", "-o", "counts.fxr"]);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let ran = output(folder, &["report", "--format", "json", "counts.fxr"]);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    json(&ran.stdout)
}

/// Returns the first value of a member anywhere in a document.
fn find(value: &serde_json::Value, name: &str) -> Option<u64> {
    match value {
        serde_json::Value::Object(members) => members
            .get(name)
            .and_then(serde_json::Value::as_u64)
            .or_else(|| members.values().find_map(|member| find(member, name))),
        serde_json::Value::Array(items) => items.iter().find_map(|item| find(item, name)),
        _ => None,
    }
}

/// Returns the number in a line of values separated by commas that names an event.
fn value(text: &str, event: &str) -> u64 {
    let line = text.lines().find(|line| line.split(',').any(|field| field == event));
    let line = line.unwrap_or_else(|| panic!("no {event} in {text}"));
    line.split(',').next().and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no number: {line}"))
}

const EVENTS: &str = "cycles,r8,{l1d_cache_refill,L2D_CACHE_REFILL},armv8_pmuv3_0/fp_fixed_ops_spec/,instructions:u";

#[test]
fn perf_stat_counts_what_the_program_alone_counts_and_imports_to_the_same_counts() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-l1.elf");
    let program = [&program[..], "n=512", "passes=20"];
    let (text, _) = counted(folder.path(), &[], &["-x,", "-e", EVENTS], &program);
    let instructions = value(&text, "instructions:u");
    assert_eq!(value(&text, "r8:u"), instructions, "{text}");

    let alone = [&["run", "--quiet", "--json", "alone.json", "--"], &program[..]].concat();
    assert!(output(folder.path(), &alone).status.success());
    let alone = json(&std::fs::read(folder.path().join("alone.json")).expect("written"));
    let events = &alone["regions"][0]["events"];
    assert_eq!(events["INST_RETIRED"], instructions);
    assert_eq!(events["FP_FIXED_OPS_SPEC"], value(&text, "armv8_pmuv3_0/fp_fixed_ops_spec/u"));

    std::fs::write(folder.path().join("counts.txt"), text.replace(&format!("{instructions},,r8:u"), "# "))
        .expect("written");
    let imported = imported(folder.path());
    for (name, event) in [
        ("CPU_CYCLES", "cycles:u"),
        ("INST_RETIRED", "instructions:u"),
        ("L1D_CACHE_REFILL", "l1d_cache_refill:u"),
        ("L2D_CACHE_REFILL", "L2D_CACHE_REFILL:u"),
    ] {
        assert_eq!(find(&imported, name), Some(value(&text, event)), "{name}: {text}\n{imported}");
    }
}

#[test]
fn perf_stat_shows_the_usual_events_to_people_and_counts_all_threads() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-threads.elf");
    let command = [&program[..], "threads=2", "n=6400", "passes=1"];
    let (text, _) = counted(folder.path(), &["--cpus", "12-14"], &[], &command);
    let title = format!(" Performance counter stats for '{}':", command.join(" "));
    for line in [
        &title[..],
        " seconds time elapsed",
        " seconds user",
        " seconds sys",
        " CPUs utilized",
        " insn per cycle",
        " GHz",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    // This machine's PMU does not count them.
    assert!(text.contains("<not supported>      branches:u\n"), "{text}");
    let instructions = |options: &[&str]| {
        counted(folder.path(), &["--cpus", "12-14"], &[&["-e", "cycles,instructions"], options].concat(), &command);
        find(&imported(folder.path()), "INST_RETIRED").expect("counted")
    };
    let (all, first) = (instructions(&[]), instructions(&["--no-inherit"]));
    assert!(all > first + first / 4, "{all} by two threads, {first} by the first");
}

#[test]
fn perf_stat_repeats_a_command_and_writes_counts_by_interval() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-l1.elf");
    let command = [&program[..], "n=512", "passes=20"];
    let (text, _) = counted(folder.path(), &[], &["-x,", "-r", "3", "-e", "instructions"], &command);
    let once = value(&text, "instructions:u");
    assert!(text.contains(&format!("{once},,instructions:u,0.00%,")), "each run counts the same: {text}");
    let (text, _) = counted(folder.path(), &[], &["-r", "2", "-e", "instructions"], &command);
    assert!(text.contains("' (2 runs):") && text.contains("( +-  0.00% )") && text.contains(" +- "), "{text}");

    const SLEEPS: &str = "#include <unistd.h>\nint main(void) { usleep(1500); volatile int i = 0; while (i < 100) i++; usleep(900); return 0; }";
    let program = compile(folder.path(), "sleeps", &["-O1", "-static"], SLEEPS);
    let (text, _) = counted(folder.path(), &[], &["-x,", "-I", "1", "-e", "instructions"], &[&program]);
    let rows: Vec<Vec<&str>> =
        text.lines().filter(|line| line.contains("instructions")).map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 3, "after 1 and 2 ms, and at the end: {text}");
    let times: Vec<f64> = rows.iter().map(|row| row[0].trim().parse().expect("a time")).collect();
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]) && times[0] >= 0.001, "{times:?}");
    let sum: u64 = rows.iter().map(|row| row[1].parse::<u64>().expect("a count")).sum();
    let imported = imported(folder.path());
    assert_eq!(find(&imported, "INST_RETIRED"), Some(sum), "{text}");
}

#[test]
fn perf_stat_writes_json_and_counts_more_in_detail() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-l1.elf");
    let command = [&program[..], "n=512", "passes=20"];
    let events = ["-e", "task-clock,cycles,instructions"];
    let (text, _) = counted(folder.path(), &[], &[&["-x,"], &events[..]].concat(), &command);
    let instructions = value(&text, "instructions:u");
    let (text, _) = counted(folder.path(), &[], &[&["-j"], &events[..]].concat(), &command);
    let lines: Vec<_> = text.lines().filter(|line| line.starts_with('{')).map(|line| json(line.as_bytes())).collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert_eq!((&lines[0]["unit"], &lines[0]["metric-unit"]), (&"msec".into(), &"CPUs utilized".into()));
    assert_eq!(lines[1]["event"], "cycles:u", "{text}");
    assert_eq!(lines[2]["counter-value"], format!("{instructions}.000000"), "{text}");
    assert_eq!(find(&imported(folder.path()), "INST_RETIRED"), Some(instructions), "{text}");

    let (text, _) = counted(folder.path(), &[], &["-x,", "-dd"], &command);
    for event in ["instructions:u", "L1-dcache-load-misses:u", "dTLB-loads:u"] {
        assert!(text.lines().any(|line| line.split(',').nth(2) == Some(event)), "{event}: {text}");
    }
}

#[test]
fn perf_list_names_the_events_of_the_machine() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let (text, _, status) = run(folder.path(), &["perf", "list"]);
    assert_eq!(status, 0);
    for name in ["  cycles\n", "  armv8_pmuv3_0/l2d_cache_refill/\n"] {
        assert!(text.contains(name), "{name}: {text}");
    }
}
