//! The files of a process in `/proc/PID` and `/proc/PID/task/TID`.

use std::fmt::Write as _;

use fxscope_guestmem::{Region, Segment};

use super::super::sysfs::{list, mask};
use super::super::tree::{Entry, Make, MakeOfZombie};
use super::memory::{bytes_of, maps, numa_maps, smaps_rollup, statm};
use super::{KIB, mount_info, mounts, ticks};
use crate::abi::open::guest_open_flags;
use crate::fs::files::Files;
use crate::fs::objects::{Object, mask_of};
use crate::kernel::Kernel;
use crate::mm::address_space::AddressSpace;
use crate::process::{Limit, Process};
use crate::processes::Zombie;
use crate::signal::{SIG_DFL, SIG_IGN};
use crate::system::System;
use crate::thread::Thread;

/// Files of a process, in the table's folder for any process.
const FILES: &[(&str, Make)] = &[
    ("auxv", |k, t| Subject::new(k, t).files().program.auxv.clone()),
    ("cgroup", |_, _| [b"0::", CGROUP.as_bytes(), b"\n"].concat()),
    ("cmdline", |k, t| joined(&Subject::new(k, t).files().program.args)),
    ("comm", |_, t| [name(&t.name), b"\n"].concat()),
    ("environ", |k, t| joined(&Subject::new(k, t).files().program.env)),
    ("io", io),
    ("limits", |k, t| limits(Subject::new(k, t).process)),
    ("loginuid", |_, _| b"4294967295".to_vec()),
    ("maps", |k, t| maps(k, t, false)),
    ("mountinfo", |_, _| mount_info()),
    ("mounts", |_, _| mounts()),
    ("numa_maps", numa_maps),
    ("oom_adj", |_, _| b"0\n".to_vec()),
    ("oom_score", |_, _| b"0\n".to_vec()),
    ("oom_score_adj", |_, _| b"0\n".to_vec()),
    ("personality", |_, _| b"00000000\n".to_vec()),
    ("sched", sched),
    ("schedstat", |k, t| format!("{} 0 0\n", thread_ns(k, t)).into_bytes()),
    ("sessionid", |_, _| b"4294967295".to_vec()),
    ("smaps", |k, t| maps(k, t, true)),
    ("smaps_rollup", smaps_rollup),
    ("stat", stat),
    ("statm", statm),
    ("status", status),
    ("timerslack_ns", |_, t| format!("{}\n", t.timer_slack_ns).into_bytes()),
    ("wchan", |_, t| if t.blocked.is_some() { b"do_wait".to_vec() } else { b"0".to_vec() }),
];

/// Files of a process that has ended and that its parent has not waited for.
const OF_ZOMBIES: &[(&str, MakeOfZombie)] = &[
    ("cmdline", |_, _| Vec::new()),
    ("comm", |_, zombie| [name(&zombie.name), b"\n"].concat()),
    ("stat", zombie_stat),
    ("status", zombie_status),
];

/// The control group of all processes: that of a job.
pub(in super::super) const CGROUP: &str = "/job";

/// Index of the limit of resident memory (`RLIMIT_RSS`).
const RESIDENT_LIMIT: usize = 5;

pub(super) fn entries<T>(put: &mut impl FnMut(String, Entry) -> T) {
    for (name, make) in FILES {
        put(format!("/proc/@/{name}"), Entry::Made(*make));
    }
    for (name, make) in OF_ZOMBIES {
        put(format!("/proc/#/{name}"), Entry::OfZombie(*make));
    }
    for folder in ["fd", "fdinfo", "task"] {
        put(format!("/proc/@/{folder}"), Entry::Directory);
    }
    put("/proc/#/task".into(), Entry::Directory);
    put("/proc/@/mem".into(), Entry::Memory);
    put("/proc/@/pagemap".into(), Entry::PageMap);
    put("/proc/@/exe".into(), Entry::Link(|k, t| Subject::new(k, t).files().program.path.clone()));
    put("/proc/@/cwd".into(), Entry::Link(|k, t| Subject::new(k, t).files().current_path().unwrap_or_default()));
    put("/proc/@/root".into(), Entry::Link(|_, _| b"/".to_vec()));
}

/// The process that a file describes.
pub(super) struct Subject<'a> {
    k: &'a Kernel<'a>,
    pub process: &'a Process,
}

impl<'a> Subject<'a> {
    /// Returns the process of a thread.
    pub(super) fn new(k: &'a Kernel<'_>, t: &Thread) -> Subject<'a> {
        Subject { k, process: k.all_processes().find(|process| process.pid == t.pid).unwrap_or(k.process) }
    }

    pub(super) fn files(&self) -> &'a Files {
        &self.process.files
    }

    pub(super) fn space(&self) -> &'a AddressSpace {
        &self.k.spaces[self.process.space]
    }

    /// Iterates over its mappings, lowest first.
    pub(super) fn regions(&self) -> impl Iterator<Item = &'a Region> {
        self.k.mem.regions_of(self.space().id)
    }

    /// Iterates over its threads.
    fn threads(&self) -> impl Iterator<Item = &'a Thread> {
        let pid = self.process.pid;
        self.k.all_threads().filter(move |thread| thread.pid == pid && !thread.ended)
    }

    /// Returns its CPU time in ns.
    fn cpu_ns(&self) -> u64 {
        let running = if self.process.pid == self.k.process.pid { self.k.system.running_ns() } else { 0 };
        self.process.cpu_ns + running
    }
}

/// Returns the CPU time of a thread in ns.
fn thread_ns(k: &Kernel<'_>, t: &Thread) -> u64 {
    t.cpu_ns + if t.tid == k.thread.tid { k.system.running_ns() } else { 0 }
}

/// Returns strings, each followed by a zero byte.
fn joined(strings: &[Vec<u8>]) -> Vec<u8> {
    strings.iter().flat_map(|s| [&s[..], b"\0"].concat()).collect()
}

fn name(name: &[u8; 16]) -> &[u8] {
    name.split(|&b| b == 0).next().unwrap_or_default()
}

/// Returns the state of a thread: its letter and its name.
fn state(t: &Thread) -> (char, &'static str) {
    match (t.stopped, &t.blocked) {
        (true, _) => ('T', "stopped"),
        (false, Some(_)) => ('S', "sleeping"),
        (false, None) => ('R', "running"),
    }
}

/// Returns a time of the run in ticks since the machine was started.
fn since_boot(system: &System, ns: u64) -> u64 {
    ticks(ns + (system.monotonic_ns() - system.now_ns))
}

/// Returns `/proc/PID/stat` from its first two fields, the state, and the others by their numbers (proc_pid_stat(5)); those not
/// given are 0.
fn stat_line(id: u32, name: &[u8], state: char, fields: &[(usize, u64)]) -> Vec<u8> {
    const LAST: usize = 52;
    /// The field of the terminal's foreground process group, of which there is none.
    const TPGID: usize = 8;
    let value = |number: usize| fields.iter().find(|(n, _)| *n == number).map_or(0, |(_, value)| *value);
    let text = |number| if number == TPGID { "-1".to_owned() } else { value(number).to_string() };
    let rest: Vec<String> = (4..=LAST).map(text).collect();
    format!("{id} ({}) {state} {}\n", String::from_utf8_lossy(name), rest.join(" ")).into_bytes()
}

fn stat(k: &Kernel<'_>, t: &Thread) -> Vec<u8> {
    const SIGCHLD: u64 = 17;
    let of = Subject::new(k, t);
    let process = of.process;
    let busy_ns = if t.tid == process.pid { of.cpu_ns() } else { thread_ns(k, t) };
    let nice = t.scheduling.nice;
    let fields = [
        (4, process.ppid.into()),
        (5, process.group.into()),
        (6, process.session.into()),
        (10, if t.tid == process.pid { k.used_by(process).faults } else { t.uses.faults }),
        (11, process.children_used.faults),
        (14, ticks(busy_ns)),
        (16, ticks(process.children_cpu_ns)),
        (18, (20 + nice) as u64),
        (20, of.threads().count() as u64),
        (22, since_boot(k.system, process.attributes.start_ns)),
        (23, bytes_of(&of, |_| true)),
        (24, of.space().pages.resident_bytes() / k.system.platform.page_bytes),
        (25, process.limits[RESIDENT_LIMIT].soft),
        (38, SIGCHLD),
        (39, t.cpu_number().into()),
        (40, t.scheduling.priority.into()),
        (41, t.scheduling.policy.into()),
    ];
    let line = stat_line(t.tid, name(&t.name), state(t).0, &fields);
    if nice == 0 {
        return line;
    }
    // The only other field with a sign.
    let text = String::from_utf8_lossy(&line).into_owned();
    let head = text.rfind(") ").map_or(0, |at| at + 2);
    let mut words: Vec<String> = text[head..].split_whitespace().map(str::to_owned).collect();
    words[19 - 3] = nice.to_string();
    format!("{}{}\n", &text[..head], words.join(" ")).into_bytes()
}

fn zombie_stat(k: &Kernel<'_>, zombie: &Zombie) -> Vec<u8> {
    let fields = [
        (4, zombie.ppid.into()),
        (5, zombie.group.into()),
        (6, zombie.session.into()),
        (14, ticks(zombie.cpu_ns)),
        (18, 20),
        (20, 1),
        (22, since_boot(k.system, 0)),
        (52, zombie.end.status().into()),
    ];
    stat_line(zombie.pid, name(&zombie.name), 'Z', &fields)
}

fn zombie_status(_: &Kernel<'_>, zombie: &Zombie) -> Vec<u8> {
    let Zombie { pid, ppid, uid, .. } = *zombie;
    let name = String::from_utf8_lossy(name(&zombie.name)).into_owned();
    format!(
        "Name:\t{name}\nState:\tZ (zombie)\nTgid:\t{pid}\nNgid:\t0\nPid:\t{pid}\nPPid:\t{ppid}\nTracerPid:\t0\n\
         Uid:\t{uid}\t{uid}\t{uid}\t{uid}\nFDSize:\t0\nThreads:\t1\n"
    )
    .into_bytes()
}

fn status(k: &Kernel<'_>, t: &Thread) -> Vec<u8> {
    let of = Subject::new(k, t);
    let process = of.process;
    let name = String::from_utf8_lossy(name(&t.name)).into_owned();
    let ids = |ids: crate::attributes::Ids| format!("{}\t{}\t{}\t{}", ids.real, ids.effective, ids.saved, ids.files);
    let groups: String = process.attributes.others.iter().map(|group| format!("{group} ")).collect();
    let (letter, word) = state(t);
    let mut out = format!(
        "Name:\t{name}\nUmask:\t{:04o}\nState:\t{letter} ({word})\nTgid:\t{}\nNgid:\t0\nPid:\t{}\nPPid:\t{}\nTracerPid:\t0\n\
         Uid:\t{}\nGid:\t{}\nFDSize:\t{}\nGroups:\t{groups}\nNStgid:\t{}\nNSpid:\t{}\nNSpgid:\t{}\nNSsid:\t{}\n",
        process.files.umask.bits(),
        process.pid,
        t.tid,
        process.ppid,
        ids(process.attributes.users),
        ids(process.attributes.groups),
        process.files.end(),
        process.pid,
        t.tid,
        process.group,
        process.session,
    );
    out += &memory_lines(&of);
    out += &signal_lines(&of, t);
    out += &placement_lines(k, t);
    out.into_bytes()
}

fn memory_lines(of: &Subject<'_>) -> String {
    let kib = |bytes: u64| bytes / KIB;
    let (size, resident) = (kib(bytes_of(of, |_| true)), kib(of.space().pages.resident_bytes()));
    let (data, stack) = (kib(bytes_of(of, |s| s != Segment::Text)), kib(bytes_of(of, |s| s == Segment::Stack)));
    let text = kib(bytes_of(of, |s| s == Segment::Text));
    let peak = kib(of.space().pages.peak_bytes());
    format!(
        "VmPeak:\t{size:>8} kB\nVmSize:\t{size:>8} kB\nVmLck:\t       0 kB\nVmHWM:\t{peak:>8} kB\n\
         VmRSS:\t{resident:>8} kB\nRssAnon:\t{resident:>8} kB\nRssFile:\t       0 kB\nRssShmem:\t       0 kB\n\
         VmData:\t{data:>8} kB\nVmStk:\t{stack:>8} kB\nVmExe:\t{text:>8} kB\nVmSwap:\t       0 kB\nHugetlbPages:\t       0 kB\n\
         Threads:\t{}\n",
        of.threads().count(),
    )
}

fn signal_lines(of: &Subject<'_>, t: &Thread) -> String {
    let process = of.process;
    let with = |wanted: &dyn Fn(u64) -> bool| {
        let actions = process.actions.iter().enumerate().skip(1);
        actions.filter(|(_, action)| wanted(action.handler)).fold(0u64, |mask, (n, _)| mask | 1 << (n - 1))
    };
    let all = of.threads().map(|thread| thread.pending.len()).sum::<usize>() + process.pending.len();
    let caps = process.attributes.capabilities;
    // Every capability up to the last one may be inherited by a program.
    let bounding = (1u64 << (crate::attributes::LAST_CAPABILITY + 1)) - 1;
    format!(
        "SigQ:\t{all}/{}\nSigPnd:\t{:016x}\nShdPnd:\t{:016x}\nSigBlk:\t{:016x}\nSigIgn:\t{:016x}\nSigCgt:\t{:016x}\n\
         CapInh:\t{:016x}\nCapPrm:\t{:016x}\nCapEff:\t{:016x}\nCapBnd:\t{bounding:016x}\nCapAmb:\t{:016x}\n\
         NoNewPrivs:\t{}\nSeccomp:\t0\n",
        process.limits[Limit::SIGNALS].soft,
        mask_of(&t.pending),
        mask_of(&process.pending),
        t.mask,
        with(&|handler| handler == SIG_IGN),
        with(&|handler| handler != SIG_IGN && handler != SIG_DFL),
        caps.inheritable,
        caps.permitted,
        caps.effective,
        0,
        u32::from(process.attributes.no_new_privileges),
    )
}

/// Returns where the thread may run and have memory.
fn placement_lines(k: &Kernel<'_>, t: &Thread) -> String {
    let allowed = |cpu: u32| t.affinity.get(cpu as usize / 64).is_some_and(|word| word >> (cpu % 64) & 1 != 0);
    let cpus: Vec<u32> = k.system.platform.cpus.iter().map(|p| p.cpu).filter(|&cpu| allowed(cpu)).collect();
    let nodes = k.system.platform.nodes();
    let node_mask = nodes.iter().fold(0u64, |mask, &node| mask | 1 << (node % 64));
    format!(
        "Cpus_allowed:\t{}\nCpus_allowed_list:\t{}\nMems_allowed:\t{:08x},{:08x}\nMems_allowed_list:\t{}\n\
         voluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t{}\n",
        mask(&k.system.platform, &cpus),
        list(cpus.iter().copied()),
        node_mask >> 32,
        node_mask as u32,
        list(nodes.into_iter()),
        t.uses.waits,
        t.uses.preemptions,
    )
}

/// Returns `/proc/PID/io`. Nothing is known of the host's devices.
fn io(k: &Kernel<'_>, t: &Thread) -> Vec<u8> {
    let of = Subject::new(k, t);
    let transfers = of.process.attributes.transfers;
    format!(
        "rchar: {}\nwchar: {}\nsyscr: {}\nsyscw: {}\nread_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n",
        transfers.read_bytes, transfers.written_bytes, transfers.reads, transfers.writes,
    )
    .into_bytes()
}

/// Returns what the simulator knows of `/proc/PID/sched`.
fn sched(k: &Kernel<'_>, t: &Thread) -> Vec<u8> {
    let of = Subject::new(k, t);
    let ms = |ns: u64| format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000);
    let head = format!("{} ({}, #threads: {})", String::from_utf8_lossy(name(&t.name)), t.tid, of.threads().count());
    let lines = [
        ("se.exec_start", ms(k.system.monotonic_ns())),
        ("se.sum_exec_runtime", ms(thread_ns(k, t))),
        ("policy", t.scheduling.policy.to_string()),
        ("prio", (120 + t.scheduling.nice).to_string()),
    ];
    let mut text = format!("{head}\n{}\n", "-".repeat(head.len()));
    for (name, value) in lines {
        let _ = writeln!(text, "{name:<45}:{value:>21}");
    }
    text.into_bytes()
}

/// Returns `/proc/PID/fdinfo/FD` for a descriptor of the process of a thread.
pub(in super::super) fn descriptor(k: &Kernel<'_>, t: &Thread, fd: i32) -> Vec<u8> {
    const CLOEXEC: u64 = 0o2_000_000;
    let files = Subject::new(k, t).files();
    let Ok(host) = files.host(fd) else { return Vec::new() };
    let flags = rustix::fs::fcntl_getfl(host).map(guest_open_flags).unwrap_or(0);
    let flags = flags | if files.close_on_exec(fd) == Ok(true) { CLOEXEC } else { 0 };
    let inode = rustix::fs::fstat(host).map_or(0, |stat| stat.st_ino);
    let position = rustix::fs::tell(host).unwrap_or(0);
    let mut text = format!("pos:\t{position}\nflags:\t0{flags:o}\nmnt_id:\t20\nino:\t{inode}\n");
    match files.object(fd) {
        Some(Object::Timer(file)) => {
            let (timer, now_ns) = (file.timer.get(), k.system.now_ns);
            let time = |ns: u64| format!("({}, {})", ns / 1_000_000_000, ns % 1_000_000_000);
            let (value, interval) = (time(timer.left(now_ns)), time(timer.interval_ns));
            let ticks = file.expirations.get();
            let _ = write!(text, "ticks: {ticks}\nit_value: {value}\nit_interval: {interval}\n");
        }
        Some(Object::Signals(signals)) => {
            let _ = writeln!(text, "sigmask:\t{:016x}", signals.mask.get());
        }
        Some(Object::Process(process)) => {
            let ended = !k.all_processes().any(|other| other.pid == process.pid && !other.ended);
            let pid = if ended { -1 } else { i64::from(process.pid) };
            let _ = write!(text, "Pid:\t{pid}\nNSpid:\t{pid}\n");
        }
        _ => {}
    }
    text.into_bytes()
}

fn limits(process: &Process) -> Vec<u8> {
    const NAMES: [(&str, &str); Limit::COUNT] = [
        ("Max cpu time", "seconds"),
        ("Max file size", "bytes"),
        ("Max data size", "bytes"),
        ("Max stack size", "bytes"),
        ("Max core file size", "bytes"),
        ("Max resident set", "bytes"),
        ("Max processes", "processes"),
        ("Max open files", "files"),
        ("Max locked memory", "bytes"),
        ("Max address space", "bytes"),
        ("Max file locks", "locks"),
        ("Max pending signals", "signals"),
        ("Max msgqueue size", "bytes"),
        ("Max nice priority", ""),
        ("Max realtime priority", ""),
        ("Max realtime timeout", "us"),
    ];
    let value = |v: u64| if v == Limit::INFINITY { "unlimited".to_owned() } else { v.to_string() };
    let mut text = format!("{:<26}{:<21}{:<21}Units     \n", "Limit", "Soft Limit", "Hard Limit");
    for ((name, unit), limit) in NAMES.iter().zip(process.limits) {
        let _ = writeln!(text, "{name:<26}{:<21}{:<21}{unit:<10}", value(limit.soft), value(limit.hard));
    }
    text.into_bytes()
}
