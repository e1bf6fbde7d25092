//! The host resources that a program uses are bounded by the memory of its machine, whatever it requests.

use crate::common;

use std::fs::File;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{FREESTANDING, HOSTED, Run, build, output, platform, run_here, run_to_end};
use fxscope_linux::{End, Guest, Setup, StartError};

const MIB: u64 = 1 << 20;

/// The machine's memory.
const MEMORY: u64 = 64 * MIB;

fn run<'a>(args: &'a [&'a str]) -> Run<'a> {
    Run { args, memory_bytes: Some(MEMORY), max_instructions: 3_000_000_000, ..Run::default() }
}

fn printed(what: &str) -> String {
    let outcome = run_here(&build("budget.c", HOSTED), &run(&[what]));
    assert_eq!((outcome.error.as_str(), outcome.status), ("", 0), "{}", outcome.output);
    outcome.output
}

/// Parses `what: COUNT, then ERROR`.
fn count_and_error(what: &str) -> (u64, String) {
    let output = printed(what);
    let line = output.lines().next().expect("a line");
    let (count, error) = line.split_once(": ").and_then(|(_, rest)| rest.split_once(", then ")).expect(line);
    (count.parse().expect("a number"), error.to_owned())
}

#[test]
fn memory_limits_processes_and_threads_until_others_end() {
    // Each process takes 2 MiB and its own pages.
    let output = printed("processes");
    let (count, error) = count_and_error("processes");
    assert!((15..32).contains(&count) && error == "ENOMEM", "{output}");
    assert!(output.ends_with("again: as many\n"), "{output}");
    // A thread takes 160 KiB, and a page of its stack once it runs. The C library turns `ENOMEM` into `EAGAIN`.
    let (count, error) = count_and_error("threads");
    assert!((150..400).contains(&count) && error == "EAGAIN", "{count} {error}");
}

#[test]
fn dev_shm_has_as_many_names_as_tmpfs_allows_for_this_memory() {
    // One for every other page of 64 KiB.
    assert_eq!(printed("names"), "names: 512, then ENOSPC\nagain: 0\n");
}

#[test]
fn page_tables_of_distant_pages_take_memory() {
    // Each page takes a table of 256 KiB in addition to its own 64 KiB.
    let (pages, error) = count_and_error("tables");
    assert!((150..220).contains(&pages) && error == "EFAULT", "{pages} {error}");
}

#[test]
fn arguments_and_variables_take_a_quarter_of_the_stack_at_most() {
    assert_eq!(printed("arguments"), "arguments: 0, then E2BIG\nstarted\n");
}

#[test]
fn running_out_of_memory_is_reported_with_the_use_of_memory() {
    let (end, ..) = run_to_end(&build("budget.c", HOSTED), &run(&["touch"]));
    let text = end.to_string();
    assert_eq!(end.status(), Some(128 + 7));
    for part in
        ["out of memory: of the machine's 64 MiB the program uses 6", " MiB for pages, 0 MiB for files", "--memory"]
    {
        assert!(text.contains(part), "{text}");
    }
    let End::Killed(killed) = end else { panic!("{text}") };
    let memory = killed.out_of_memory.expect("what memory is used for");
    assert!(memory.limit == MEMORY && memory.pages + 65536 > MEMORY - MIB, "{memory:?}");
}

/// Returns a modified copy of a program.
fn changed(folder: &Path, name: &str, change: impl FnOnce(&File, u64)) -> PathBuf {
    let path = folder.join(name);
    std::fs::copy(build("start.c", FREESTANDING), &path).expect("copy");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    let file = File::options().read(true).write(true).open(&path).expect("open");
    change(&file, file.metadata().expect("status").len());
    path
}

/// Returns programs in sparse files of 3 GB, with the part that is so large in each.
fn sparse(folder: &Path) -> [(&'static str, PathBuf); 3] {
    const LARGE: u64 = 3 << 30;
    let put = |file: &File, at: u64, bytes: &[u8]| file.write_all_at(bytes, at).expect("write");
    let word = |file: &File, at: u64| {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, at).expect("read");
        u64::from_le_bytes(bytes)
    };
    let tail = changed(folder, "tail", |file, _| file.set_len(LARGE).expect("length"));
    let table = changed(folder, "table", |file, end| {
        // `e_shnum` is 0: the first section's size is the number of sections.
        let sections = end.next_multiple_of(64);
        put(file, 40, &sections.to_le_bytes());
        put(file, 60, &[0, 0]);
        put(file, sections + 32, &(LARGE / 128).to_le_bytes());
        file.set_len(LARGE).expect("length");
    });
    let symbols = changed(folder, "symbols", |file, end| {
        let (sections, mut count) = (word(file, 40), [0; 2]);
        file.read_exact_at(&mut count, 60).expect("read");
        for section in 0..u64::from(u16::from_le_bytes(count)) {
            let at = sections + 64 * section;
            // `SHT_SYMTAB` and `SHT_STRTAB`.
            if matches!(word(file, at) >> 32, 2 | 3) {
                put(file, at + 24, &end.next_multiple_of(64).to_le_bytes());
                put(file, at + 32, &(LARGE / 2 / 24 * 24).to_le_bytes());
            }
        }
        file.set_len(LARGE).expect("length");
    });
    [("tail", tail), ("section table", table), ("symbol table", symbols)]
}

#[test]
fn only_the_mapped_parts_of_a_program_file_are_read() {
    let folder = tempfile::tempdir().expect("folder");
    for (what, program) in sparse(folder.path()) {
        let start = std::time::Instant::now();
        let outcome = run_here(&program, &run(&[]));
        assert_eq!(outcome.status, 7, "{what}: {}", outcome.error);
        assert!(start.elapsed().as_secs() < 5, "{what}: {:?}", start.elapsed());
    }
    let large = changed(folder.path(), "segment", |file, _| {
        let mut headers = [0; 8];
        file.read_exact_at(&mut headers, 32).expect("read");
        let first = u64::from_le_bytes(headers);
        for field in [32, 40] {
            file.write_all_at(&(3u64 << 30).to_le_bytes(), first + field).expect("write");
        }
        file.set_len(4 << 30).expect("length");
    });
    let mut setup = Setup::new(platform(64), "segment").expect("setup");
    setup.platform.memory_bytes = MEMORY;
    let error = Guest::open(&large, setup).err().expect("too large");
    assert!(matches!(error, StartError::Elf { .. }), "{error}");
    let mut setup = Setup::new(platform(64), "null").expect("setup");
    setup.platform.memory_bytes = MEMORY;
    let error = Guest::open(Path::new("/dev/zero"), setup).err().expect("no file");
    assert!(error.to_string().contains("/dev/zero: it is a device"), "{error}");
}

/// The child process of the next test.
#[test]
#[ignore = "run by peak_memory_of_the_host_stays_near_the_limit"]
fn flood() {
    let what = std::env::var("FXSCOPE_FLOOD").expect("what to do");
    let program = match what.as_str() {
        "file" => sparse(&std::env::temp_dir())[0].1.clone(),
        _ => build("budget.c", HOSTED),
    };
    let _ = run_to_end(&program, &run(&[&what]));
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM:")).expect("a line"));
}

/// Takes a minute of processor time.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn peak_memory_of_the_host_stays_near_the_limit() {
        let test = std::env::current_exe().expect("this test");
        let folder = tempfile::tempdir().expect("folder");
        let peak = |what: &str| -> u64 {
            let mut command = Command::new(&test);
            command.args(["budget::flood", "--exact", "--ignored", "--nocapture"]);
            let output = output(command.env("FXSCOPE_FLOOD", what).env("TMPDIR", folder.path())).expect("start");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let line =
                text.lines().find_map(|line| line.split_once("VmHWM:")).unwrap_or_else(|| panic!("{what}: {text}"));
            line.1.trim().trim_end_matches(" kB").trim().parse::<u64>().expect("a number") << 10
        };
        // The simulator's own peak.
        let least = peak("none");
        assert!(least < 64 * MIB, "{} MiB", least / MIB);
        for what in
            ["processes", "threads", "names", "pipes", "tables", "signals", "timers", "calls", "channels", "file"]
        {
            let peak = peak(what);
            assert!(peak < least + MEMORY + 16 * MIB, "{what}: {} MiB", peak / MIB);
        }
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn the_capacity_of_pipes_sockets_and_other_descriptors_takes_memory() {
        let (pipes, error) = count_and_error("pipes");
        assert!((40..64).contains(&pipes) && error == "ENOMEM", "{pipes} {error}");
        let (sockets, error) = count_and_error("sockets");
        assert!((20..400).contains(&sockets) && matches!(error.as_str(), "ENOMEM" | "EMFILE"), "{sockets} {error}");
        let (epolls, error) = count_and_error("epolls");
        assert!((200..256).contains(&epolls) && error == "ENOMEM", "{epolls} {error}");
        let (events, error) = count_and_error("events");
        assert!(events < 4096 && error == "EMFILE", "{events} {error}");
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn queued_signals_timers_and_regions_have_linuxs_limits() {
        assert_eq!(count_and_error("signals"), (4096, "EAGAIN".to_owned()));
        assert_eq!(count_and_error("timers"), (65536, "EAGAIN".to_owned()));
        let (regions, error) = count_and_error("regions");
        assert!((65_000..=65_530).contains(&regions) && error == "ENOMEM", "{regions} {error}");
    }
}
