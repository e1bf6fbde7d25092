//! `/proc` of the modelled machine and of the process itself.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fxscope_guestmem::Region;
use fxscope_guestmem::{Prot, Segment};

use super::sysfs::{list, mask};
use super::tree::{Entry, Make};
use crate::abi::stack::CLOCK_TICKS;
use crate::abi::uname;
use crate::ipc::shm;
use crate::kernel::Kernel;
use crate::mm::pages::Pages;
use crate::platform::Platform;
use crate::process::Limit;
use crate::thread::Thread;

/// Names of the bits of `AT_HWCAP`, in order (Linux `asm/hwcap.h`).
const FEATURES: [&str; 32] = [
    "fp", "asimd", "evtstrm", "aes", "pmull", "sha1", "sha2", "crc32", "atomics", "fphp", "asimdhp", "cpuid",
    "asimdrdm", "jscvt", "fcma", "lrcpc", "dcpop", "sha3", "sm3", "sm4", "asimddp", "sha512", "sve", "asimdfhm", "dit",
    "uscat", "ilrcpc", "flagm", "ssbs", "sb", "paca", "pacg",
];

/// Files of the process itself, in the table's folder for any process.
const OWN: &[(&str, Make)] = &[
    ("auxv", |k, _| k.process.files.program.auxv.clone()),
    ("cmdline", |k, _| joined(&k.process.files.program.args)),
    ("comm", |_, t| [comm(t), b"\n"].concat()),
    ("environ", |k, _| joined(&k.process.files.program.env)),
    ("limits", |k, _| limits(k)),
    ("maps", |k, _| maps(k, false)),
    ("mounts", |_, _| MOUNTS.to_vec()),
    ("numa_maps", numa_maps),
    ("smaps", |k, _| maps(k, true)),
    ("stat", stat),
    ("statm", |k, _| statm(k)),
    ("status", status),
    ("cgroup", |_, _| b"0::/\n".to_vec()),
    ("oom_score_adj", |_, _| b"0\n".to_vec()),
];

/// The mounts, as far as programs need them.
const MOUNTS: &[u8] =
    b"rootfs / ext4 rw 0 0\nproc /proc proc rw 0 0\nsysfs /sys sysfs ro 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n";

/// Settings below `/proc/sys`.
const SETTINGS: &[(&str, &str)] = &[
    ("kernel/cap_last_cap", "40"),
    ("kernel/core_pattern", "core"),
    ("kernel/hostname", "fxscope"),
    ("kernel/ngroups_max", "65536"),
    ("kernel/numa_balancing", "0"),
    ("kernel/pid_max", "4194304"),
    ("kernel/randomize_va_space", "0"),
    ("kernel/sched_rr_timeslice_ms", "100"),
    ("kernel/shm_rmid_forced", "0"),
    ("kernel/threads-max", "127000"),
    ("kernel/perf_event_paranoid", "2"),
    ("fs/file-max", "1048576"),
    ("fs/nr_open", "1048576"),
    ("fs/pipe-max-size", "1048576"),
    ("vm/max_map_count", "65530"),
    ("vm/mmap_min_addr", "65536"),
    ("vm/nr_hugepages", "0"),
    ("vm/nr_overcommit_hugepages", "0"),
    ("vm/overcommit_memory", "0"),
    ("vm/overcommit_ratio", "50"),
    ("vm/swappiness", "60"),
    ("abi/sve_default_vector_length", "64"),
];

/// Index of the limit of resident memory (`RLIMIT_RSS`).
const RESIDENT_LIMIT: usize = 5;

const KIB: u64 = 1 << 10;

pub(super) fn entries(platform: &Platform, entries: &mut BTreeMap<Vec<u8>, Entry>) {
    let mut put = |path: String, entry: Entry| entries.insert(path.into_bytes(), entry);
    put("/proc/cpuinfo".into(), Entry::Text(cpuinfo(platform).into_bytes()));
    put("/proc/filesystems".into(), Entry::Text(b"nodev\tproc\nnodev\tsysfs\nnodev\ttmpfs\n\text4\n".to_vec()));
    put("/proc/loadavg".into(), Entry::Made(|k, _| format!("1.00 1.00 1.00 1/1 {}\n", k.process.pid).into_bytes()));
    put("/proc/meminfo".into(), Entry::Made(|k, _| meminfo(k).into_bytes()));
    put("/proc/stat".into(), Entry::Made(|k, _| machine_stat(k).into_bytes()));
    put("/proc/uptime".into(), Entry::Made(|k, _| uptime(k).into_bytes()));
    put("/proc/version".into(), Entry::Text(version().into_bytes()));
    put("/proc/mounts".into(), Entry::Link(|_, _| b"self/mounts".to_vec()));
    put("/proc/self".into(), Entry::Link(|k, _| k.process.pid.to_string().into_bytes()));
    put("/proc/thread-self".into(), Entry::Link(|k, t| format!("{}/task/{}", k.process.pid, t.tid).into_bytes()));
    for (name, make) in OWN {
        put(format!("/proc/@/{name}"), Entry::Made(*make));
    }
    put("/proc/sysvipc/shm".into(), Entry::Made(|k, _| shm::listing(k)));
    put("/proc/@/fd".into(), Entry::Directory);
    put("/proc/@/task".into(), Entry::Directory);
    put("/proc/@/exe".into(), Entry::Link(|k, _| k.process.files.program.path.clone()));
    put("/proc/@/cwd".into(), Entry::Link(|k, _| k.process.files.current_path().unwrap_or_default()));
    put("/proc/@/root".into(), Entry::Link(|_, _| b"/".to_vec()));
    for (name, value) in SETTINGS {
        put(format!("/proc/sys/{name}"), Entry::Text(format!("{value}\n").into_bytes()));
    }
    let [_, _, release, version, ..] = uname::FIELDS;
    put("/proc/sys/kernel/osrelease".into(), Entry::Text(format!("{release}\n").into_bytes()));
    put("/proc/sys/kernel/version".into(), Entry::Text(format!("{version}\n").into_bytes()));
    put("/proc/sys/kernel/ostype".into(), Entry::Text(b"Linux\n".to_vec()));
    for (name, value) in [("shmall", shm::MOST_BYTES), ("shmmax", shm::MOST_BYTES), ("shmmni", shm::MOST)] {
        put(format!("/proc/sys/kernel/{name}"), Entry::Text(format!("{value}\n").into_bytes()));
    }
    for name in ["boot_id", "uuid"] {
        let id = "6b1f0d3e-0a64-4f58-8a64-f00000000001\n";
        put(format!("/proc/sys/kernel/random/{name}"), Entry::Text(id.as_bytes().to_vec()));
    }
    put("/proc/sys/kernel/random/entropy_avail".into(), Entry::Text(b"256\n".to_vec()));
}

fn cpuinfo(platform: &Platform) -> String {
    let features = (0..FEATURES.len()).filter(|bit| platform.hwcap >> bit & 1 != 0).map(|bit| FEATURES[bit]);
    let features = features.collect::<Vec<_>>().join(" ");
    let midr = platform.id.midr;
    // Linux derives the delay loop's speed from the counter: two loops per tick.
    let centi_mips = platform.counter_hz / 5_000;
    let mut text = String::new();
    for place in platform.online() {
        let _ = write!(
            text,
            "processor\t: {}\nBogoMIPS\t: {}.{:02}\nFeatures\t: {features}\nCPU implementer\t: {:#04x}\n\
             CPU architecture: 8\nCPU variant\t: {:#x}\nCPU part\t: {:#05x}\nCPU revision\t: {}\n\n",
            place.cpu,
            centi_mips / 100,
            centi_mips % 100,
            midr >> 24 & 0xff,
            midr >> 20 & 0xf,
            midr >> 4 & 0xfff,
            midr & 0xf,
        );
    }
    text
}

fn meminfo(k: &Kernel<'_>) -> String {
    let total = k.system.platform.memory_bytes / KIB;
    let used = k.all_pages().map(Pages::resident_bytes).sum::<u64>() / KIB;
    let shared = k.mem.elsewhere_bytes() / KIB;
    let free = total.saturating_sub(used + shared);
    let huge_bytes = k.system.platform.huge_page_bytes.first().copied().unwrap_or(0);
    let huge_pages: u64 = k.all_pages().map(|pages| pages.resident_of_size(huge_bytes)).sum();
    let lines = [
        ("MemTotal", total),
        ("MemFree", free),
        ("MemAvailable", free),
        ("Buffers", 0),
        ("Cached", shared),
        ("SwapCached", 0),
        ("Active", used),
        ("Inactive", 0),
        ("SwapTotal", 0),
        ("SwapFree", 0),
        ("AnonPages", used),
        ("Mapped", 0),
        ("Shmem", shared),
        ("CommitLimit", total),
        ("Committed_AS", used),
    ];
    let mut text = String::new();
    for (name, kib) in lines {
        let _ = writeln!(text, "{:<15} {kib:>8} kB", format!("{name}:"));
    }
    // The pool is empty: all pages in use are surplus pages.
    for (name, pages) in [("Total", huge_pages), ("Free", 0), ("Rsvd", 0), ("Surp", huge_pages)] {
        let _ = writeln!(text, "{:<15} {pages:>8}", format!("HugePages_{name}:"));
    }
    let _ = writeln!(text, "{:<15} {:>8} kB", "Hugepagesize:", huge_bytes / KIB);
    let _ = writeln!(text, "{:<15} {:>8} kB", "Hugetlb:", huge_pages * huge_bytes / KIB);
    text
}

/// Returns the clock ticks since the start of the run during which the process ran, and was idle.
fn ticks(k: &Kernel<'_>) -> (u64, u64) {
    let ticks = |ns: u64| ns / (1_000_000_000 / CLOCK_TICKS);
    (ticks(k.cpu_ns()), ticks(k.system.now_ns - k.cpu_ns().min(k.system.now_ns)))
}

fn machine_stat(k: &Kernel<'_>) -> String {
    let (busy, idle) = ticks(k);
    let mut text = format!("cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\n");
    let first = k.system.platform.cpus.first().copied();
    for place in k.system.platform.online() {
        let (busy, idle) = if Some(place) == first { (busy, idle) } else { (0, busy + idle) };
        let _ = writeln!(text, "cpu{} {busy} 0 0 {idle} 0 0 0 0 0 0", place.cpu);
    }
    let start = k.system.boot_unix_ns() / 1_000_000_000;
    let _ = write!(text, "intr 0\nctxt 0\nbtime {start}\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n");
    text
}

fn uptime(k: &Kernel<'_>) -> String {
    let centi = k.system.monotonic_ns() / 10_000_000;
    format!("{}.{:02} 0.00\n", centi / 100, centi % 100)
}

fn version() -> String {
    let [system, _, release, version, ..] = uname::FIELDS;
    format!("{system} version {release} (fxscope) {version}\n")
}

/// Returns strings, each followed by a zero byte.
fn joined(strings: &[Vec<u8>]) -> Vec<u8> {
    strings.iter().flat_map(|s| [&s[..], b"\0"].concat()).collect()
}

fn comm(t: &Thread) -> &[u8] {
    t.name.split(|&b| b == 0).next().unwrap_or_default()
}

fn bytes_of(k: &Kernel<'_>, wanted: impl Fn(Segment) -> bool) -> u64 {
    k.mem.regions().filter(|r| wanted(r.segment)).map(|r| r.end - r.start).sum()
}

/// Returns the fields of `/proc/PID/stat` (proc(5)); those not modelled are 0.
fn stat(k: &Kernel<'_>, t: &Thread) -> Vec<u8> {
    let (busy, _) = ticks(k);
    let size = bytes_of(k, |_| true);
    let resident = k.space().pages.resident_bytes() / k.system.platform.page_bytes;
    let limit = k.process.limits[RESIDENT_LIMIT].soft;
    let mut fields = vec![0u64; 50];
    // Numbered from field 3, the state, which is a letter and comes before.
    let set = [(4, k.process.ppid), (5, k.process.pid), (6, k.process.pid), (20, k.threads().count() as u32)]
        .map(|(n, v)| (n, u64::from(v)));
    let more = [(14, busy), (18, 20), (23, size), (24, resident), (25, limit), (38, 17)];
    for (number, value) in set.into_iter().chain(more) {
        fields[number - 4] = value;
    }
    fields[39 - 4] = u64::from(t.cpu_number());
    let numbers: Vec<String> = fields[..49].iter().map(u64::to_string).collect();
    let name = String::from_utf8_lossy(comm(t)).into_owned();
    format!("{} ({name}) R {}\n", t.tid, numbers.join(" ")).into_bytes()
}

fn statm(k: &Kernel<'_>) -> Vec<u8> {
    let pages = |bytes: u64| bytes / k.system.platform.page_bytes;
    let text = pages(bytes_of(k, |s| s == Segment::Text));
    let data = pages(bytes_of(k, |s| !matches!(s, Segment::Text | Segment::File)));
    let (size, resident) = (pages(bytes_of(k, |_| true)), pages(k.space().pages.resident_bytes()));
    format!("{size} {resident} 0 {text} 0 {data} 0\n").into_bytes()
}

fn status(k: &Kernel<'_>, t: &Thread) -> Vec<u8> {
    let kib = |bytes: u64| bytes / KIB;
    let (size, resident) = (kib(bytes_of(k, |_| true)), kib(k.space().pages.resident_bytes()));
    let (data, stack) = (kib(bytes_of(k, |s| s != Segment::Text)), kib(bytes_of(k, |s| s == Segment::Stack)));
    let text = kib(bytes_of(k, |s| s == Segment::Text));
    let (uid, euid) = (rustix::process::getuid().as_raw(), rustix::process::geteuid().as_raw());
    let (gid, egid) = (rustix::process::getgid().as_raw(), rustix::process::getegid().as_raw());
    let cpus: Vec<u32> = k
        .system
        .platform
        .cpus
        .iter()
        .map(|p| p.cpu)
        .filter(|&c| t.affinity[c as usize / 64] >> (c % 64) & 1 != 0)
        .collect();
    let nodes = k.system.platform.nodes();
    let node_mask = nodes.iter().fold(0u64, |mask, &node| mask | 1 << (node % 64));
    let name = String::from_utf8_lossy(comm(t)).into_owned();
    let mut out = format!(
        "Name:\t{name}\nUmask:\t{:04o}\nState:\tR (running)\nTgid:\t{}\nNgid:\t0\nPid:\t{}\nPPid:\t{}\nTracerPid:\t0\n\
         Uid:\t{uid}\t{euid}\t{euid}\t{euid}\nGid:\t{gid}\t{egid}\t{egid}\t{egid}\nFDSize:\t{}\nGroups:\t\n",
        k.process.files.umask.bits(),
        k.process.pid,
        t.tid,
        k.process.ppid,
        k.process.files.end(),
    );
    let _ = write!(
        out,
        "VmPeak:\t{size:>8} kB\nVmSize:\t{size:>8} kB\nVmLck:\t       0 kB\nVmHWM:\t{resident:>8} kB\n\
         VmRSS:\t{resident:>8} kB\nVmData:\t{data:>8} kB\nVmStk:\t{stack:>8} kB\nVmExe:\t{text:>8} kB\n\
         VmSwap:\t       0 kB\nThreads:\t{}\nSigBlk:\t{:016x}\nCapEff:\t0000000000000000\nSeccomp:\t0\n",
        k.threads().count(),
        t.mask,
    );
    let _ = write!(
        out,
        "Cpus_allowed:\t{}\nCpus_allowed_list:\t{}\nMems_allowed:\t{:08x},{:08x}\nMems_allowed_list:\t{}\n\
         voluntary_ctxt_switches:\t0\nnonvoluntary_ctxt_switches:\t0\n",
        mask(&k.system.platform, &cpus),
        list(cpus.iter().copied()),
        node_mask >> 32,
        node_mask as u32,
        list(nodes.into_iter()),
    );
    out.into_bytes()
}

fn limits(k: &Kernel<'_>) -> Vec<u8> {
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
    for ((name, unit), limit) in NAMES.iter().zip(k.process.limits) {
        let _ = writeln!(text, "{name:<26}{:<21}{:<21}{unit:<10}", value(limit.soft), value(limit.hard));
    }
    text.into_bytes()
}

/// Returns one line of `maps` per mapping; with `sizes`, also the sizes that `smaps` has below each.
fn maps(k: &Kernel<'_>, sizes: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for region in k.mem.regions() {
        let file = k.space().mapped.at(region.start);
        let (offset, inode) = file.as_ref().map_or((0, 0), |f| (f.offset, f.inode));
        let line = format!(
            "{:08x}-{:08x} {}{} {offset:08x} {} {inode}",
            region.start,
            region.end,
            rights(region.prot),
            if region.shared { 's' } else { 'p' },
            if file.is_some() { "fe:01" } else { "00:00" },
        );
        let name = match file {
            Some(file) => file.path.clone(),
            None => special_name(region).to_vec(),
        };
        out.extend(if name.is_empty() { format!("{line} ").into_bytes() } else { format!("{line:<73}").into_bytes() });
        out.extend(name);
        out.push(b'\n');
        if sizes {
            let (kib, page) =
                ((region.end - region.start) / KIB, k.space().pages.page_bytes_at(region, region.start) / KIB);
            let resident = k.space().pages.resident_in(region.start..region.end).1 / KIB;
            let text = format!(
                "Size:           {kib:>8} kB\nKernelPageSize: {page:>8} kB\nMMUPageSize:    {page:>8} kB\n\
                 Rss:            {resident:>8} kB\nPss:            {resident:>8} kB\n"
            );
            out.extend(text.into_bytes());
        }
    }
    out
}

fn rights(prot: Prot) -> String {
    [(prot.read, 'r'), (prot.write, 'w'), (prot.exec, 'x')].map(|(has, c)| if has { c } else { '-' }).iter().collect()
}

fn special_name(region: &Region) -> &'static [u8] {
    match region.segment {
        Segment::Heap => b"[heap]",
        Segment::Stack => b"[stack]",
        _ => b"",
    }
}

/// Returns the placement of memory: one line per mapping, as described in numa(7). The policy is that of the range, or of the
/// calling thread.
fn numa_maps(k: &Kernel<'_>, t: &Thread) -> Vec<u8> {
    k.mem.regions().flat_map(|region| numa_line(k, t, region)).collect()
}

fn numa_line(k: &Kernel<'_>, t: &Thread, region: &Region) -> Vec<u8> {
    let policy = k.space().pages.policy_at(region.start).unwrap_or(t.policy);
    let mut line = format!("{:08x} {policy}", region.start).into_bytes();
    let file = k.space().mapped.at(region.start).map(|file| file.path);
    match (&file, region.segment) {
        (Some(path), _) => line.extend([b" file=", &path[..]].concat()),
        (None, Segment::Heap) => line.extend(b" heap"),
        (None, Segment::Stack) => line.extend(b" stack"),
        _ => {}
    }
    let page = k.space().pages.page_bytes_at(region, region.start);
    if page > k.system.platform.page_bytes {
        line.extend(b" huge");
    }
    let (nodes, _) = k.space().pages.resident_in(region.start..region.end);
    let pages: u64 = nodes.values().sum();
    if pages > 0 {
        let kind = if file.is_some() { "mapped" } else { "anon" };
        let nodes: String = nodes.iter().map(|(node, pages)| format!(" N{node}={pages}")).collect();
        line.extend(format!(" {kind}={pages}{nodes} kernelpagesize_kB={}", page / KIB).into_bytes());
    }
    line.push(b'\n');
    line
}
