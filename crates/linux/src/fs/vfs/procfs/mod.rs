//! `/proc` of the modelled machine and of the processes of the run.

mod memory;
mod process;
mod settings;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::tree::Entry;
use crate::abi::stack::CLOCK_TICKS;
use crate::abi::uname;
use crate::guest::PID;
use crate::ipc::shm;
use crate::kernel::Kernel;
use crate::mm::pages::Pages;
use crate::platform::Platform;

pub(super) use process::{CGROUP, descriptor};

/// Names of the bits of `AT_HWCAP`, in order (Linux `asm/hwcap.h`).
const FEATURES: [&str; 32] = [
    "fp", "asimd", "evtstrm", "aes", "pmull", "sha1", "sha2", "crc32", "atomics", "fphp", "asimdhp", "cpuid",
    "asimdrdm", "jscvt", "fcma", "lrcpc", "dcpop", "sha3", "sm3", "sm4", "asimddp", "sha512", "sve", "asimdfhm", "dit",
    "uscat", "ilrcpc", "flagm", "ssbs", "sb", "paca", "pacg",
];

/// The mounts, as far as programs need them: device, place, type, options.
const MOUNTS: [[&str; 4]; 6] = [
    ["rootfs", "/", "ext4", "rw"],
    ["proc", "/proc", "proc", "rw"],
    ["sysfs", "/sys", "sysfs", "ro"],
    ["tmpfs", "/dev/shm", "tmpfs", "rw"],
    ["devpts", "/dev/pts", "devpts", "rw"],
    ["cgroup2", "/sys/fs/cgroup", "cgroup2", "ro"],
];

/// File systems, as `/proc/filesystems` lists them.
const FILE_SYSTEMS: &[u8] =
    b"nodev\tproc\nnodev\tsysfs\nnodev\ttmpfs\nnodev\tdevpts\nnodev\tcgroup2\nnodev\tpipefs\nnodev\tsockfs\n\text4\n";

const KIB: u64 = 1 << 10;

pub(super) fn entries(platform: &Platform, entries: &mut BTreeMap<Vec<u8>, Entry>) {
    let mut put = |path: String, entry: Entry| entries.insert(path.into_bytes(), entry);
    put("/proc/cmdline".into(), Entry::Text(b"root=/dev/vda1 ro\n".to_vec()));
    put("/proc/cpuinfo".into(), Entry::Text(cpuinfo(platform).into_bytes()));
    put("/proc/filesystems".into(), Entry::Text(FILE_SYSTEMS.to_vec()));
    put("/proc/loadavg".into(), Entry::Made(|k, _| load(k).into_bytes()));
    put("/proc/meminfo".into(), Entry::Made(|k, _| meminfo(k).into_bytes()));
    put("/proc/stat".into(), Entry::Made(|k, _| machine_stat(k).into_bytes()));
    put("/proc/sysvipc/shm".into(), Entry::Made(|k, _| shm::listing(k)));
    put("/proc/swaps".into(), Entry::Text(b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n".to_vec()));
    put("/proc/uptime".into(), Entry::Made(|k, _| uptime(k).into_bytes()));
    put("/proc/version".into(), Entry::Text(version().into_bytes()));
    put("/proc/vmstat".into(), Entry::Made(|k, _| vmstat(k).into_bytes()));
    put("/proc/mounts".into(), Entry::Link(|_, _| b"self/mounts".to_vec()));
    put("/proc/self".into(), Entry::Link(|k, _| k.process.pid.to_string().into_bytes()));
    put("/proc/thread-self".into(), Entry::Link(|k, t| format!("{}/task/{}", k.process.pid, t.tid).into_bytes()));
    put("/proc/sysvipc/shm".into(), Entry::Made(|k, _| shm::listing(k)));
    process::entries(&mut put);
    settings::entries(&mut put);
}

/// Returns `/proc/mounts`.
fn mounts() -> Vec<u8> {
    let line = |[device, place, kind, options]: &[&str; 4]| format!("{device} {place} {kind} {options} 0 0\n");
    MOUNTS.iter().map(line).collect::<String>().into_bytes()
}

/// Returns `/proc/PID/mountinfo` (proc_pid_mountinfo(5)).
fn mount_info() -> Vec<u8> {
    let line = |(number, [device, place, kind, options]): (usize, &[&str; 4])| {
        let (id, parent) = (number + 20, if number == 0 { 1 } else { 20 });
        format!("{id} {parent} 0:{id} / {place} {options},relatime - {kind} {device} {options}\n")
    };
    MOUNTS.iter().enumerate().map(line).collect::<String>().into_bytes()
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
        ("AnonHugePages", k.all_pages().map(|pages| pages.huge_bytes_in(0..u64::MAX)).sum::<u64>() / KIB),
        ("ShmemHugePages", 0),
        ("ShmemPmdMapped", 0),
        ("FileHugePages", 0),
        ("FilePmdMapped", 0),
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

/// Returns the counters of `/proc/vmstat` that the simulator knows, in pages.
fn vmstat(k: &Kernel<'_>) -> String {
    let page = k.system.platform.page_bytes;
    let used = k.all_pages().map(Pages::resident_bytes).sum::<u64>() / page;
    let shared = k.mem.elsewhere_bytes() / page;
    let free = (k.system.platform.memory_bytes / page).saturating_sub(used + shared);
    let largest = k.system.platform.page_sizes.largest_folio();
    let (folios, split) = (k.folio_counts(), |splits: &BTreeMap<u32, u64>| splits.values().sum::<u64>());
    let of_largest = |counts: &BTreeMap<u32, u64>| counts.get(&largest).copied().unwrap_or(0);
    format!(
        "nr_free_pages {free}\nnr_active_anon {used}\nnr_anon_pages {used}\nnr_mapped 0\nnr_file_pages {shared}\nnr_dirty 0\n\
         nr_writeback 0\nnr_shmem {shared}\nnuma_hit {used}\nnuma_miss 0\nnuma_foreign 0\nnuma_interleave 0\n\
         numa_local {used}\nnuma_other 0\npgpgin 0\npgpgout 0\npswpin 0\npswpout 0\npgfault {used}\npgmajfault 0\n\
         thp_fault_alloc {}\nthp_fault_fallback 0\nthp_collapse_alloc {}\nthp_collapse_alloc_failed {}\nthp_split_page 0\n\
         thp_deferred_split_page {}\nthp_split_pmd {}\nthp_zero_page_alloc 0\n",
        of_largest(&folios.faults),
        folios.collapsed,
        folios.collapse_failed,
        split(&folios.splits),
        of_largest(&folios.splits),
    )
}

/// Converts ns to the ticks in which `/proc` counts time.
fn ticks(ns: u64) -> u64 {
    ns / (1_000_000_000 / CLOCK_TICKS)
}

/// Returns how many threads run or could run, and how many exist.
fn thread_counts(k: &Kernel<'_>) -> (usize, usize) {
    let all = || k.all_threads().filter(|thread| !thread.ended);
    (all().filter(|thread| thread.can_run()).count(), all().count())
}

/// Returns `/proc/loadavg`. The averages are the number of threads that can run now.
fn load(k: &Kernel<'_>) -> String {
    let (running, all) = thread_counts(k);
    format!("{running}.00 {running}.00 {running}.00 {running}/{all} {}\n", k.system.last_id)
}

fn machine_stat(k: &Kernel<'_>) -> String {
    let up_ns = k.system.monotonic_ns();
    let busy_ns = |cpu: u32| {
        let running = if k.thread.cpu_number() == cpu { k.system.running_ns() } else { 0 };
        k.system.busy_ns.get(cpu as usize).copied().unwrap_or(0) + running
    };
    let line = |name: String, busy: u64, up: u64| {
        format!("{name} {} 0 0 {} 0 0 0 0 0 0\n", ticks(busy), ticks(up.saturating_sub(busy)))
    };
    let cpus: Vec<u32> = k.system.platform.online().map(|place| place.cpu).collect();
    let all_busy_ns = cpus.iter().map(|&cpu| busy_ns(cpu)).sum();
    let mut text = line("cpu ".into(), all_busy_ns, up_ns.saturating_mul(cpus.len() as u64));
    text.extend(cpus.iter().map(|&cpu| line(format!("cpu{cpu}"), busy_ns(cpu), up_ns)));
    let start = k.system.boot_unix_ns() / 1_000_000_000;
    let (running, all) = thread_counts(k);
    let started = k.system.last_id - PID + 1;
    let _ = write!(
        text,
        "intr 0\nctxt {}\nbtime {start}\nprocesses {started}\nprocs_running {running}\nprocs_blocked {}\n",
        k.system.turns,
        all - running,
    );
    text
}

fn uptime(k: &Kernel<'_>) -> String {
    let up_ns = k.system.monotonic_ns();
    let cpus = k.system.platform.online().count() as u64;
    let busy_ns = k.system.busy_ns.iter().sum::<u64>() + k.system.running_ns();
    let idle_ns = up_ns.saturating_mul(cpus).saturating_sub(busy_ns);
    let [up, idle] = [up_ns, idle_ns].map(|ns| ns / 10_000_000);
    format!("{}.{:02} {}.{:02}\n", up / 100, up % 100, idle / 100, idle % 100)
}

fn version() -> String {
    let [system, _, release, version, ..] = uname::FIELDS;
    format!("{system} version {release} (fxscope) {version}\n")
}
