//! Files as programs see them: the host's, as under QEMU, and those of the modelled machine.

use crate::common;

use fxscope_linux::Platform;
use std::path::{Path, PathBuf};

use common::platform::compute_node;
use common::{HOSTED, Run, build, here_and_under_qemu, platform, run_here};

#[test]
fn calls_on_files_return_what_linux_returns() {
    let program = build("file_calls.c", HOSTED);
    let [here, qemu] = here_and_under_qemu(|run| {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().canonicalize().expect("path");
        let outcome = run(&program, &Run { args: &[path.to_str().expect("UTF-8")], ..Run::default() });
        // The program leaves a change in a mapping that it never unmaps.
        (outcome, std::fs::read(path.join("s")).expect("file"))
    });
    for (ours, theirs) in here.0.output.lines().zip(qemu.0.output.lines()) {
        assert_eq!(ours, theirs);
    }
    assert!(here == qemu, "contents, status or the number of lines differ: {:?} {:?}", here.0, qemu.0);
}

#[test]
fn mappings_of_files_that_were_not_opened_for_writing_cannot_be_made_writable() {
    let program = build("mappings.c", HOSTED);
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().canonicalize().expect("path");
    let outcome = run_here(&program, &Run { args: &[path.to_str().expect("UTF-8")], ..Run::default() });
    // Linux's results (mm/mprotect.c, mm/msync.c).
    let expected = "\
        shared, writable, of O_RDONLY: EACCES\nshared, of O_WRONLY: EACCES\nprivate, of O_WRONLY: EACCES\n\
        private, of O_RDONLY: done\nmake it writable: done\nshared, of O_RDWR: done\nmake it writable: done\n\
        msync: done\nshared, of O_RDONLY: done\nmake it writable: EACCES\nmake its end writable: EACCES\n\
        make it executable: done\nmake it inaccessible: done\nmake it readable: done\nit has: written\n\
        msync: done\nmsync, both ways: EINVAL\nmsync, unknown flag: EINVAL\nmsync, no flag: done\n\
        msync, asynchronous: done\nmsync, unaligned: EINVAL\nmsync of nothing: done\nmsync with a gap: ENOMEM\n\
        mprotect with a gap: ENOMEM\nbehind the gap: behind a gap\nmsync of nothing mapped: ENOMEM\n";
    assert_eq!((outcome.output.as_str(), outcome.error.as_str(), outcome.status), (expected, "", 0));
}

/// Returns the umask of this process that is seen most often: programs of other tests make files meanwhile, and each has its own for that moment.
fn umask() -> String {
    let once = |_| {
        std::thread::sleep(std::time::Duration::from_millis(2));
        let status = std::fs::read_to_string("/proc/self/status").expect("status");
        status.lines().find(|line| line.starts_with("Umask:")).expect("a line").to_owned()
    };
    let seen: Vec<String> = (0..25).map(once).collect();
    seen.iter().max_by_key(|this| seen.iter().filter(|other| other == this).count()).expect("there are some").clone()
}

#[test]
fn a_programs_umask_does_not_change_the_hosts() {
    let (before, folder) = (umask(), tempfile::tempdir().expect("temporary folder"));
    let path = folder.path().canonicalize().expect("path");
    let run = Run { args: &[path.to_str().expect("UTF-8")], ..Run::default() };
    let output = run_here(&build("file_calls.c", HOSTED), &run).output;
    assert!(output.contains("mine: 448\nall: 438\n") && output.contains("still: 63\n"), "{output}");
    assert_eq!(umask(), before);
}

/// Returns what the program `show` prints for each path.
fn show(paths: &[&str]) -> Vec<String> {
    show_on(platform(64), paths)
}

/// The same on another machine.
fn show_on(machine: Platform, paths: &[&str]) -> Vec<String> {
    let run = Run { args: paths, platform: Some(machine), ..Run::default() };
    let outcome = run_here(&build("show.c", HOSTED), &run);
    assert_eq!(outcome.error, "");
    let text = format!("\n{}", outcome.output);
    let parts: Vec<&str> = text.split("\n== ").skip(1).collect();
    assert_eq!(parts.len(), paths.len());
    parts.iter().map(|part| part.split_once('\n').map_or("", |(_, text)| text).to_owned()).collect()
}

#[test]
fn the_processors_of_the_machine_are_in_proc_and_sys() {
    let cpu = "/sys/devices/system/cpu";
    let core = format!("{cpu}/cpu14");
    let names = [
        format!("{cpu}/online"),
        format!("{cpu}/kernel_max"),
        format!("{core}/topology/core_id"),
        format!("{core}/topology/package_cpus_list"),
        format!("{core}/topology/thread_siblings"),
        format!("{core}/cache/index2/size"),
        format!("{core}/cache/index2/shared_cpu_list"),
        format!("{core}/cache/index0/shared_cpu_map"),
        format!("{core}/cache/index1/type"),
        format!("{core}/cache/index0/number_of_sets"),
        format!("{core}/regs/identification/midr_el1"),
    ];
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // 64 KiB, 4 ways, lines of 256 bytes: 64 sets.
    let expected = [
        "12-23",
        "23",
        "2",
        "12-23",
        "00004000",
        "8192K",
        "12-23",
        "00004000",
        "Instruction",
        "64",
        "0x00000000461f0010",
    ];
    let shown = show(&names);
    let shown: Vec<&str> = shown.iter().map(|text| text.trim_end()).collect();
    assert_eq!(shown, expected);

    let [cpuinfo]: [String; 1] = show(&["/proc/cpuinfo"]).try_into().expect("one file");
    let first: Vec<&str> = cpuinfo.lines().take(8).collect();
    let expected = [
        "processor\t: 12",
        "BogoMIPS\t: 200.00",
        "Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm fcma dcpop sve",
        "CPU implementer\t: 0x46",
        "CPU architecture: 8",
        "CPU variant\t: 0x1",
        "CPU part\t: 0x001",
        "CPU revision\t: 0",
    ];
    assert_eq!(first, expected);
    assert_eq!(cpuinfo.lines().filter(|line| line.starts_with("processor")).count(), 12);
}

#[test]
fn a_compute_node_shows_distances_assistant_cores_and_their_ways_of_l2_as_fx1000_does() {
    let shown = |paths: &[&str]| -> Vec<String> {
        let paths: Vec<String> = paths.iter().map(|path| format!("/sys/devices/system/{path}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        show_on(compute_node(), &paths).iter().map(|text| text.trim_end().to_owned()).collect()
    };
    let distances =
        shown(&["node/node4/distance", "node/node5/distance", "node/node6/distance", "node/node7/distance"]);
    assert_eq!(distances, ["10 20 30 30", "20 10 30 30", "30 30 10 20", "30 30 20 10"]);

    let sizes: Vec<String> = [0, 1, 12, 24, 36, 59].map(|cpu| format!("cpu/cpu{cpu}/cache/index2/size")).to_vec();
    let sizes: Vec<&str> = sizes.iter().map(String::as_str).collect();
    assert_eq!(shown(&sizes), ["1024K", "1024K", "7168K", "7168K", "8192K", "8192K"]);
    let others = [
        "cpu/online",
        "cpu/cpu0/cache/index0/size",
        "cpu/cpu0/cache/index2/ways_of_associativity",
        "cpu/cpu59/cache/index2/ways_of_associativity",
        "cpu/cpu12/cache/index2/number_of_sets",
        "cpu/cpu59/cache/index2/number_of_sets",
        "cpu/cpu12/cache/index2/shared_cpu_list",
        "cpu/cpu0/topology/core_id",
        "cpu/cpu12/topology/core_id",
        "node/node4/cpulist",
    ];
    assert_eq!(shown(&others), ["0-1,12-59", "64K", "2", "16", "2048", "2048", "12-23", "0", "0", "12-23"]);
    // hwloc: if two sets of processors overlap, one contains the other.
    let sets = ["cpu/cpu0/topology/package_cpus_list", "cpu/cpu0/cache/index2/shared_cpu_list"];
    assert_eq!(shown(&sets), ["0", "0"], "no memory node has this core");
    // Programs must not run there.
    let [status]: [String; 1] = show_on(compute_node(), &["/proc/self/status"]).try_into().expect("one file");
    assert!(status.contains("Cpus_allowed_list:\t12-59\n"), "{status}");
}

#[test]
fn memory_nodes_and_huge_pages_are_those_of_the_machine() {
    let node = "/sys/devices/system/node";
    let names = [
        format!("{node}/online"),
        format!("{node}/node4/cpulist"),
        format!("{node}/node4/distance"),
        "/sys/kernel/mm/hugepages".to_owned(),
        "/sys/kernel/mm/transparent_hugepage/enabled".to_owned(),
    ];
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let expected = ["4\n", "12-23\n", "10\n", "hugepages-2048kB\n", "always [madvise] never"];
    let shown = show(&names);
    for (shown, expected) in shown.iter().zip(expected) {
        assert_eq!(shown.trim_end(), expected.trim_end());
    }
    let [meminfo]: [String; 1] = show(&["/proc/meminfo"]).try_into().expect("one file");
    assert!(meminfo.starts_with("MemTotal:        1048576 kB\n"), "{meminfo}");
    assert!(meminfo.contains("Hugepagesize:       2048 kB"), "{meminfo}");
}

#[test]
fn proc_shows_the_program_itself() {
    let [comm, cmdline, status, maps, fd, task] = show(&[
        "/proc/self/comm",
        "/proc/self/cmdline",
        "/proc/self/status",
        "/proc/self/maps",
        "/proc/self/fd",
        "/proc/thread-self/task",
    ])
    .try_into()
    .expect("six files");
    assert_eq!(comm.trim_end(), "show.c-static-O");
    assert!(cmdline.contains("\n/proc/self/comm\n/proc/self/cmdline\n"), "{cmdline}");
    assert!(status.contains("Cpus_allowed_list:\t12-23\n") && status.contains("Mems_allowed_list:\t4\n"), "{status}");
    let program = build("show.c", HOSTED);
    let line = maps.lines().next().expect("a line");
    assert!(line.starts_with("00400000-") && line.contains(" r-xp 00000000 "), "{line}");
    assert!(line.ends_with(program.to_str().expect("UTF-8")), "{line}");
    assert!(maps.contains("[heap]") && maps.contains("[stack]"), "{maps}");
    assert!(fd.starts_with("0\n1\n2\n"), "{fd}");
    assert_eq!(task.trim_end(), "1000");
}

#[test]
fn proc_and_sys_show_nothing_of_the_host() {
    let [proc, sys, device] = show(&["/proc", "/sys", "/dev"]).try_into().expect("three folders");
    assert_eq!(proc.lines().filter(|name| name.parse::<u32>().is_ok()).collect::<Vec<_>>(), ["1000"]);
    assert_eq!(sys.split_whitespace().collect::<Vec<_>>(), ["bus", "class", "devices", "fs", "kernel"]);
    let devices = "fd fujitsu_hwb full null ptmx pts random shm stderr stdin stdout tty urandom zero";
    assert_eq!(device.split_whitespace().collect::<Vec<_>>().join(" "), devices);
}

#[test]
fn random_devices_give_the_same_bytes_on_every_run() {
    let program = build("hosted_random.c", HOSTED);
    let outcome = run_here(&program, &Run::default());
    assert_eq!(outcome.status, 0, "{}", outcome.output);
    assert_eq!(outcome, run_here(&program, &Run::default()));
}

/// Returns a folder tree as a sysroot: `/etc/name` is a link to an absolute path.
fn sysroot(folder: &Path) -> PathBuf {
    let root = folder.join("root");
    std::fs::create_dir_all(root.join("etc")).expect("folder");
    std::fs::create_dir_all(root.join("usr/share")).expect("folder");
    std::fs::write(root.join("usr/share/target"), "from the sysroot\n").expect("file");
    std::os::unix::fs::symlink("/usr/share/target", root.join("etc/name")).expect("link");
    root
}

#[test]
fn absolute_links_of_a_sysroot_stay_in_it_and_other_paths_are_the_hosts() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = folder.path().canonicalize().expect("path").join("host");
    std::fs::write(&file, "from the host\n").expect("file");
    let run = Run {
        args: &["/etc/name", "/usr/share/../../../etc/name", file.to_str().expect("UTF-8")],
        sysroot: Some(sysroot(folder.path())),
        ..Run::default()
    };
    let outcome = run_here(&build("show.c", HOSTED), &run);
    let lines: Vec<&str> = outcome.output.lines().filter(|line| !line.starts_with("==")).collect();
    assert_eq!(lines, ["from the sysroot", "from the sysroot", "from the host"], "{}", outcome.error);
}

#[test]
fn processes_of_a_run_share_memory_objects_and_runs_do_not() {
    let program = build("shared_memory.c", HOSTED);
    for _ in 0..2 {
        let outcome = run_here(&program, &Run::default());
        assert_eq!((outcome.output.as_str(), outcome.error.as_str()), ("42 /dev/shm/fxscope-test-object -1\n", ""));
    }
    assert!(!Path::new("/dev/shm/fxscope-test-object").exists());
}
