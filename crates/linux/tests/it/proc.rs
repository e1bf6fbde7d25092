//! `/proc` and `/sys` show the processes of the run and the simulated machine.

use crate::common;

use common::platform::compute_node;
use common::{HOSTED, Run, build, run_here, same_as_qemu};

#[test]
fn processes_see_themselves_and_each_other_in_proc() {
    let outcome = run_here(&build("observer.c", HOSTED), &Run::default());
    let lines: Vec<&str> = outcome.output.lines().map(str::trim_end).collect();
    // Linux's formats: proc(5) and its pages about single files.
    let (checks, values): (Vec<&str>, Vec<&str>) =
        lines.iter().partition(|line| line.contains(": 1") && line.contains('('));
    assert_eq!(checks.len(), 15, "{}", lines.join("\n"));
    let expected = "\
        first\nsecond\nsecond\nState: S (sleeping)\nThreads: 2\nfield(child, 20): 2\n[stack]\n\
        before fork: 128 resident, 128 proportional, shared 0, alone 128\n\
        in the child: 128 resident, 64 proportional, shared 128, alone 0\n\
        after a store: 128 resident, 96 proportional, shared 64, alone 64\n\
        after the child: 128 resident, 128 proportional, shared 0, alone 128\n\
        access(\"/proc/999999\", F_OK): -1 ENOENT\nState: T (stopped)\nState: Z (zombie)\n(char)field(child, 3): 90\n\
        listed(\"/proc\", child): 0\nsscanf(file(0, \"/proc/stat\"), \"cpu %lld 0 0 %lld\", &user, &idle): 2\n\
        user >= 2 && user < 100: 1\n\
        sscanf(file(0, \"/proc/uptime\"), \"%lf %lf\", &up, &down): 2\nbtime 1577822400\n1.00 1.00 1.00 1/1 1003\n\
        flags: 02004002\nticks: 0\nreadlink(path, a, sizeof a): 20\nanon_inode:[timerfd]\npos: 3\n\
        pread(map, &entry, 8, at): 8\nentry >> 63: 0\npread(map, &entry, 8, at): 8\nentry >> 63: 1\n\
        pread(map, &entry, 7, at): -1 EINVAL\npwrite(mem, \"after\", 6, (uintptr_t)page): 6\n\
        pread(mem, a, 6, (uintptr_t)page): 6\nafter after\npread(mem, a, 6, 4096): -1 EIO\n\
        open(\"/proc/self/maps\", O_RDWR): -1 EACCES\nSigIgn: 0000000000000200\nSigCgt: 0000000000000800\n\
        Cpus_allowed_list: 12-23\n0::/job\ncgroup2 cgroup2 ro";
    assert_eq!(values.join("\n"), expected);
    assert_eq!((outcome.error.as_str(), outcome.status), ("", 0));
}

/// Returns what `show` prints for a file on a compute node.
fn shown(path: &str) -> String {
    let run = Run { args: &[path], platform: Some(compute_node()), ..Run::default() };
    let outcome = run_here(&build("show.c", HOSTED), &run);
    outcome.output.split_once('\n').expect("a heading").1.trim_end().to_owned()
}

#[test]
fn the_control_group_of_the_run_has_the_processors_for_programs_and_no_limits() {
    assert_eq!(shown("/proc/self/cgroup"), "0::/job");
    let group = |name: &str| shown(&format!("/sys/fs/cgroup/job/{name}"));
    assert_eq!(group("cpuset.cpus.effective"), "12-59");
    assert_eq!(group("cpuset.mems.effective"), "4-7");
    assert_eq!(group("memory.max"), "max");
    assert_eq!(group("cgroup.procs"), "1000");
    assert_eq!(shown("/sys/fs/cgroup/cpuset.cpus.effective"), "0-1,12-59");
    assert_eq!(shown("/sys/devices/system/cpu/cpu12/cpufreq/scaling_cur_freq"), "2000000");
}

#[test]
fn pseudoterminals_edit_lines_and_send_signals_as_under_linux() {
    same_as_qemu("terminals.c", HOSTED, &Run::default());
}

#[test]
fn processes_in_the_background_wait_for_their_terminal_and_those_that_lose_it_learn_of_it() {
    same_as_qemu("job_control.c", HOSTED, &Run::default());
}
