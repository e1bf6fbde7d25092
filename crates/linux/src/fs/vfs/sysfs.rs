//! `/sys` of the modelled machine: processors, caches, memory nodes, huge pages.

mod thp;

use std::collections::BTreeMap;

use super::procfs::CGROUP;
use super::tree::Entry;
use crate::ipc::barrier;
use crate::kernel::Kernel;
use crate::mm::pages::Pages;
use crate::perf::PMU_TYPE;
use crate::platform::{BarrierPlatform, Cache, CacheKind, CpuPlace, Platform};

const KIB: u64 = 1 << 10;

/// The folder of the kernel's memory management.
const MM: &str = "/sys/kernel/mm";

type Entries = BTreeMap<Vec<u8>, Entry>;

pub(super) fn entries(platform: &Platform, entries: &mut Entries) {
    let mut put = |path: String, text: String| {
        entries.insert(path.into_bytes(), Entry::Text(format!("{text}\n").into_bytes()));
    };
    processors(platform, &mut put);
    for place in platform.online() {
        processor(platform, place, &mut put);
        for (index, cache) in platform.caches.iter().enumerate() {
            let folder = format!("/sys/devices/system/cpu/cpu{}/cache/index{index}", place.cpu);
            self::cache(platform, place, cache, &folder, &mut put);
        }
    }
    nodes(platform, &mut put);
    huge_pages(platform, &mut put);
    thp::entries(platform, entries);
    for node in platform.nodes() {
        let path = format!("/sys/devices/system/node/node{node}/meminfo");
        entries.insert(path.into_bytes(), Entry::OfNode(node_memory, node));
    }
    // Links between processors and nodes, because programs look up either from the other.
    for place in &platform.cpus {
        let (cpu, node) = (place.cpu, place.node);
        let folder = "/sys/devices/system";
        let empty = || Entry::Directory;
        entries.insert(format!("{folder}/cpu/cpu{cpu}/node{node}").into_bytes(), empty());
        entries.insert(format!("{folder}/node/node{node}/cpu{cpu}").into_bytes(), empty());
    }
    control_groups(platform, entries);
    events(platform, entries);
    for folder in ["/sys/bus/pci/devices", "/sys/class/dmi/id", "/sys/class/block"] {
        entries.insert(folder.as_bytes().to_vec(), Entry::Directory);
    }
}

fn processors(platform: &Platform, put: &mut impl FnMut(String, String)) {
    let all = list(platform.online().map(|p| p.cpu));
    let last = platform.cpus.iter().map(|p| p.cpu).max().unwrap_or(0);
    for name in ["online", "possible", "present"] {
        put(format!("/sys/devices/system/cpu/{name}"), all.clone());
    }
    put("/sys/devices/system/cpu/offline".into(), String::new());
    put("/sys/devices/system/cpu/isolated".into(), String::new());
    put("/sys/devices/system/cpu/kernel_max".into(), last.to_string());
}

fn processor(platform: &Platform, place: CpuPlace, put: &mut impl FnMut(String, String)) {
    let folder = format!("/sys/devices/system/cpu/cpu{}", place.cpu);
    let topology = format!("{folder}/topology");
    let nodes = platform.nodes_with_cpus();
    // As on FX1000, the package of a CMG has the number of its memory node, and assistant cores are in packages before those
    // (LIKWID issues 447 and 565, pull request 374). No memory node lists the assistant cores, so each is a separate package: hwloc
    // refuses sets of processors that overlap unless one contains the other.
    let (package, members) = match platform.assistant(place.cpu) {
        Some(number) => (number as u32 + if nodes.contains(&0) { nodes.len() as u32 } else { 0 }, vec![place.cpu]),
        None => (place.node, platform.cpus_of(place.node)),
    };
    let core = members.iter().position(|&cpu| cpu == place.cpu).unwrap_or(0);
    let sets = [
        ("thread_siblings", vec![place.cpu]),
        ("core_cpus", vec![place.cpu]),
        ("core_siblings", members.clone()),
        ("package_cpus", members),
    ];
    for (name, cpus) in sets {
        put(format!("{topology}/{name}"), mask(platform, &cpus));
        put(format!("{topology}/{name}_list"), list(cpus.into_iter()));
    }
    put(format!("{topology}/core_id"), core.to_string());
    put(format!("{topology}/physical_package_id"), package.to_string());
    put(format!("{topology}/cluster_id"), "-1".to_owned());
    put(format!("{folder}/regs/identification/midr_el1"), format!("{:#018x}", platform.id.midr));
    put(format!("{folder}/online"), "1".to_owned());
    frequency(platform, place, put);
}

/// Adds the files about a core's clock frequency, which never changes.
fn frequency(platform: &Platform, place: CpuPlace, put: &mut impl FnMut(String, String)) {
    let folder = format!("/sys/devices/system/cpu/cpu{}/cpufreq", place.cpu);
    let khz = (platform.core_hz / 1000).to_string();
    let names = [
        "cpuinfo_cur_freq",
        "cpuinfo_max_freq",
        "cpuinfo_min_freq",
        "scaling_available_frequencies",
        "scaling_cur_freq",
        "scaling_max_freq",
        "scaling_min_freq",
    ];
    for name in names {
        put(format!("{folder}/{name}"), khz.clone());
    }
    for name in ["affected_cpus", "related_cpus"] {
        put(format!("{folder}/{name}"), place.cpu.to_string());
    }
    put(format!("{folder}/cpuinfo_transition_latency"), "0".to_owned());
    put(format!("{folder}/scaling_available_governors"), "performance".to_owned());
    put(format!("{folder}/scaling_driver"), "fxscope".to_owned());
    put(format!("{folder}/scaling_governor"), "performance".to_owned());
    put(format!("{folder}/scaling_setspeed"), "<unsupported>".to_owned());
}

/// The folder of the PMU, and its type for `perf_event_open`.
const PMU: &str = "/sys/bus/event_source/devices/armv8_pmuv3_0";

/// Adds the sources of performance events (Linux `Documentation/ABI/testing/sysfs-bus-event_source-devices-*`).
fn events(platform: &Platform, entries: &mut Entries) {
    let mut put = |path: String, text: String| {
        entries.insert(path.into_bytes(), Entry::Text(format!("{text}\n").into_bytes()));
    };
    put("/sys/bus/event_source/devices/software/type".to_owned(), "1".to_owned());
    if platform.pmu.is_empty() {
        return;
    }
    put(format!("{PMU}/type"), PMU_TYPE.to_string());
    put(format!("{PMU}/cpus"), list(platform.online().map(|place| place.cpu)));
    put(format!("{PMU}/perf_event_mux_interval_ms"), "4".to_owned());
    put(format!("{PMU}/format/event"), "config:0-15".to_owned());
    put(format!("{PMU}/format/long"), "config1:0".to_owned());
    for name in ["bus_slots", "bus_width", "slots", "threshold_max"] {
        put(format!("{PMU}/caps/{name}"), "0x00000000".to_owned());
    }
    for event in &platform.pmu {
        put(format!("{PMU}/events/{}", event.name.to_lowercase()), format!("event=0x{:04x}", event.number));
    }
}

/// Controllers of the control groups (Linux `Documentation/admin-guide/cgroup-v2.rst`).
const CONTROLLERS: &str = "cpuset cpu memory pids";

/// Adds the control groups: the root, and the one of the run, as a batch system makes it for a job. It has all processors on which
/// programs may run, and no other limits.
fn control_groups(platform: &Platform, entries: &mut Entries) {
    let root = "/sys/fs/cgroup".to_owned();
    let job = format!("{root}{CGROUP}");
    let mut put = |path: String, text: &str| {
        entries.insert(
            path.into_bytes(),
            Entry::Text(if text.is_empty() { Vec::new() } else { format!("{text}\n").into_bytes() }),
        );
    };
    let all = list(platform.online().map(|place| place.cpu));
    let own = list(platform.cpus.iter().map(|place| place.cpu));
    let nodes = list(platform.nodes().into_iter());
    for (folder, cpus) in [(&root, &all), (&job, &own)] {
        put(format!("{folder}/cgroup.controllers"), CONTROLLERS);
        put(format!("{folder}/cgroup.subtree_control"), if folder == &root { CONTROLLERS } else { "" });
        put(format!("{folder}/cgroup.max.depth"), "max");
        put(format!("{folder}/cgroup.max.descendants"), "max");
        put(format!("{folder}/cpuset.cpus.effective"), cpus);
        put(format!("{folder}/cpuset.mems.effective"), &nodes);
    }
    put(format!("{root}/cgroup.stat"), "nr_descendants 1\nnr_dying_descendants 0");
    put(format!("{root}/cgroup.procs"), "");
    put(format!("{root}/cgroup.threads"), "");
    let limits = [
        ("cgroup.freeze", "0"),
        ("cgroup.stat", "nr_descendants 0\nnr_dying_descendants 0"),
        ("cgroup.type", "domain"),
        ("cpu.idle", "0"),
        ("cpu.max", "max 100000"),
        ("cpu.max.burst", "0"),
        ("cpu.weight", "100"),
        ("cpu.weight.nice", "0"),
        ("cpuset.cpus", own.as_str()),
        ("cpuset.cpus.partition", "member"),
        ("cpuset.mems", nodes.as_str()),
        ("memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0"),
        ("memory.high", "max"),
        ("memory.low", "0"),
        ("memory.max", "max"),
        ("memory.min", "0"),
        ("memory.swap.current", "0"),
        ("memory.swap.max", "max"),
        ("pids.max", "max"),
    ];
    for (name, text) in limits {
        put(format!("{job}/{name}"), text);
    }
    let made: [(&str, super::tree::Make); 6] = [
        ("cgroup.events", |_, _| b"populated 1\nfrozen 0\n".to_vec()),
        ("cgroup.procs", |k, _| numbers(k.all_processes().filter(|process| !process.ended).map(|process| process.pid))),
        ("cgroup.threads", |k, _| numbers(k.all_threads().filter(|thread| !thread.ended).map(|thread| thread.tid))),
        ("cpu.stat", |k, _| cpu_use(k)),
        ("memory.current", |k, _| numbers([memory_use(k)].into_iter())),
        ("pids.current", |k, _| numbers([k.all_threads().filter(|thread| !thread.ended).count()].into_iter())),
    ];
    for (name, make) in made {
        entries.insert(format!("{job}/{name}").into_bytes(), Entry::Made(make));
    }
    entries.insert(format!("{root}/cpu.stat").into_bytes(), Entry::Made(|k, _| cpu_use(k)));
}

/// Returns numbers in ascending order, one on each line.
fn numbers<T: Ord + ToString>(numbers: impl Iterator<Item = T>) -> Vec<u8> {
    let mut numbers: Vec<T> = numbers.collect();
    numbers.sort();
    numbers.iter().flat_map(|number| (number.to_string() + "\n").into_bytes()).collect()
}

/// Returns the CPU time of the run so far.
fn cpu_use(k: &Kernel<'_>) -> Vec<u8> {
    let us = (k.system.busy_ns.iter().sum::<u64>() + k.system.running_ns()) / 1000;
    format!("usage_usec {us}\nuser_usec {us}\nsystem_usec 0\n").into_bytes()
}

/// Returns the bytes of memory of all processes, and of files in memory.
fn memory_use(k: &Kernel<'_>) -> u64 {
    k.all_pages().map(Pages::resident_bytes).sum::<u64>() + k.mem.elsewhere_bytes()
}

fn cache(platform: &Platform, place: CpuPlace, cache: &Cache, folder: &str, put: &mut impl FnMut(String, String)) {
    let is_assistant = platform.assistant(place.cpu).is_some();
    let cpus = if cache.shared_by_node && !is_assistant { platform.cpus_of(place.node) } else { vec![place.cpu] };
    let assisted = platform.assistants.iter().any(|assistant| assistant.node == place.node);
    let ways = match (is_assistant, assisted) {
        (true, _) if cache.kept_ways > 0 => cache.kept_ways,
        (false, true) => cache.ways.saturating_sub(cache.kept_ways),
        _ => cache.ways,
    };
    let bytes = cache.bytes / u64::from(cache.ways.max(1)) * u64::from(ways);
    let kind = match cache.kind {
        CacheKind::Data => "Data",
        CacheKind::Instruction => "Instruction",
        CacheKind::Unified => "Unified",
    };
    let sets = bytes / (u64::from(ways) * u64::from(cache.line_bytes)).max(1);
    put(format!("{folder}/level"), cache.level.to_string());
    put(format!("{folder}/type"), kind.to_owned());
    put(format!("{folder}/size"), format!("{}K", bytes / KIB));
    put(format!("{folder}/coherency_line_size"), cache.line_bytes.to_string());
    put(format!("{folder}/ways_of_associativity"), ways.to_string());
    put(format!("{folder}/number_of_sets"), sets.to_string());
    put(format!("{folder}/shared_cpu_map"), mask(platform, &cpus));
    put(format!("{folder}/shared_cpu_list"), list(cpus.into_iter()));
}

fn nodes(platform: &Platform, put: &mut impl FnMut(String, String)) {
    let nodes = platform.nodes();
    let all = list(nodes.iter().copied());
    for name in ["online", "possible", "has_memory", "has_normal_memory"] {
        put(format!("/sys/devices/system/node/{name}"), all.clone());
    }
    put("/sys/devices/system/node/has_cpu".to_owned(), list(platform.nodes_with_cpus().into_iter()));
    for (place, &node) in nodes.iter().enumerate() {
        let folder = format!("/sys/devices/system/node/node{node}");
        let cpus = platform.cpus_of(node);
        put(format!("{folder}/cpumap"), mask(platform, &cpus));
        put(format!("{folder}/cpulist"), list(cpus.into_iter()));
        let distances: Vec<String> =
            (0..nodes.len()).map(|other| platform.distance(place, other).to_string()).collect();
        put(format!("{folder}/distance"), distances.join(" "));
        put(format!("{folder}/numastat"), "numa_hit 0\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit 0".to_owned());
        for kib in huge_page_kib(platform) {
            for name in ["nr_hugepages", "free_hugepages", "surplus_hugepages"] {
                put(format!("{folder}/hugepages/hugepages-{kib}kB/{name}"), "0".to_owned());
            }
        }
    }
}

/// Returns `meminfo` of a memory node.
fn node_memory(k: &Kernel<'_>, node: u32) -> Vec<u8> {
    let total = k.system.platform.bytes_of(node);
    let huge_bytes = k.system.platform.huge_page_bytes.first().copied().unwrap_or(0);
    let (used, huge) =
        k.all_pages().map(|pages| pages.on_node(node, huge_bytes)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    let lines = [("MemTotal", total), ("MemFree", total.saturating_sub(used)), ("MemUsed", used), ("AnonPages", used)];
    let line = |&(name, bytes): &(&str, u64)| format!("Node {node} {:<15} {:>8} kB\n", format!("{name}:"), bytes / KIB);
    let mut text: String = lines.iter().map(line).collect();
    for (name, pages) in [("Total", huge), ("Free", 0), ("Surp", huge)] {
        text += &format!("Node {node} HugePages_{name}: {pages:>5}\n");
    }
    text.into_bytes()
}

/// Returns the files of the hardware barrier's driver.
pub(super) fn hardware_barrier(platform: &Platform, barrier: &BarrierPlatform, entries: &mut Entries) {
    let mut put =
        |name: String, entry| entries.insert(format!("{}/{name}", barrier::sysfs::FOLDER).into_bytes(), entry);
    put("hwinfo".to_owned(), Entry::Text(barrier::sysfs::hardware(platform, barrier).into_bytes()));
    for (node, cmg) in platform.nodes_with_cpus().into_iter().zip(0..) {
        put(format!("CMG{cmg}/core_map"), Entry::Text(barrier::sysfs::core_map(platform, node).into_bytes()));
        put(format!("CMG{cmg}/used_bb_bmap"), Entry::OfNode(barrier::sysfs::used_blades, node));
        put(format!("CMG{cmg}/used_bw_bmap"), Entry::OfNode(barrier::sysfs::used_windows, node));
        for number in 0..barrier.blades {
            put(format!("CMG{cmg}/init_sync_bb{number}"), Entry::OfBlade(node, number));
        }
    }
}

fn huge_pages(platform: &Platform, put: &mut impl FnMut(String, String)) {
    for kib in huge_page_kib(platform) {
        let names =
            ["nr_hugepages", "free_hugepages", "resv_hugepages", "surplus_hugepages", "nr_overcommit_hugepages"];
        for name in names {
            put(format!("{MM}/hugepages/hugepages-{kib}kB/{name}"), "0".to_owned());
        }
    }
}

/// Iterates over the sizes of the huge pages in KiB.
fn huge_page_kib(platform: &Platform) -> impl Iterator<Item = u64> + '_ {
    platform.huge_page_bytes.iter().map(|bytes| bytes / KIB)
}

/// Formats ascending numbers as Linux does: `12-23,36`.
pub(crate) fn list(numbers: impl Iterator<Item = u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for n in numbers {
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 == n => *end = n,
            _ => ranges.push((n, n)),
        }
    }
    let range = |&(start, end): &(u32, u32)| if start == end { start.to_string() } else { format!("{start}-{end}") };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

/// Formats processors as Linux's masks: 32-bit words in hexadecimal, the highest first.
pub(super) fn mask(platform: &Platform, cpus: &[u32]) -> String {
    let last = platform.cpus.iter().map(|p| p.cpu).max().unwrap_or(0);
    let mut words = vec![0u32; last as usize / 32 + 1];
    for &cpu in cpus {
        words[cpu as usize / 32] |= 1 << (cpu % 32);
    }
    words.iter().rev().map(|word| format!("{word:08x}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_ranges() {
        assert_eq!(list([12, 13, 14, 20, 22, 23].into_iter()), "12-14,20,22-23");
        assert_eq!(list([].into_iter()), "");
    }
}
