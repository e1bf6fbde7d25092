//! `/proc/sys`: settings of the kernel, all of which can only be read.

use crate::abi::uname;
use crate::ipc::shm;

use super::super::tree::Entry;

/// Settings and their values.
const SETTINGS: &[(&str, &str)] = &[
    ("kernel/cap_last_cap", "40"),
    ("kernel/core_pattern", "core"),
    ("kernel/core_uses_pid", "0"),
    ("kernel/domainname", "(none)"),
    ("kernel/dmesg_restrict", "1"),
    ("kernel/hostname", "fxscope"),
    ("kernel/kptr_restrict", "1"),
    ("kernel/ngroups_max", "65536"),
    ("kernel/nmi_watchdog", "0"),
    ("kernel/numa_balancing", "0"),
    ("kernel/panic", "0"),
    ("kernel/perf_event_max_sample_rate", "100000"),
    ("kernel/perf_event_mlock_kb", "516"),
    ("kernel/perf_event_paranoid", "2"),
    ("kernel/pid_max", "4194304"),
    ("kernel/randomize_va_space", "0"),
    ("kernel/sched_rr_timeslice_ms", "100"),
    ("kernel/shm_rmid_forced", "0"),
    ("kernel/tainted", "0"),
    ("kernel/threads-max", "127000"),
    ("fs/aio-max-nr", "0"),
    ("fs/epoll/max_user_watches", "1048576"),
    ("fs/file-max", "1048576"),
    ("fs/inotify/max_queued_events", "16384"),
    ("fs/inotify/max_user_instances", "128"),
    ("fs/inotify/max_user_watches", "8192"),
    ("fs/nr_open", "1048576"),
    ("fs/pipe-max-size", "1048576"),
    ("vm/max_map_count", "65530"),
    ("vm/mmap_min_addr", "65536"),
    ("vm/nr_hugepages", "0"),
    ("vm/nr_overcommit_hugepages", "0"),
    ("vm/overcommit_memory", "0"),
    ("vm/overcommit_ratio", "50"),
    ("vm/swappiness", "60"),
    ("vm/zone_reclaim_mode", "0"),
    ("abi/sve_default_vector_length", "64"),
];

pub(super) fn entries<T>(put: &mut impl FnMut(String, Entry) -> T) {
    let mut text = |name: &str, value: &str| {
        put(format!("/proc/sys/{name}"), Entry::Text(format!("{value}\n").into_bytes()));
    };
    for (name, value) in SETTINGS {
        text(name, value);
    }
    for (name, value) in [("shmall", shm::MOST_BYTES), ("shmmax", shm::MOST_BYTES), ("shmmni", shm::MOST)] {
        text(&format!("kernel/{name}"), &value.to_string());
    }
    let [_, _, release, version, ..] = uname::FIELDS;
    text("kernel/osrelease", release);
    text("kernel/version", version);
    text("kernel/ostype", "Linux");
    for name in ["boot_id", "uuid"] {
        text(&format!("kernel/random/{name}"), "6b1f0d3e-0a64-4f58-8a64-f00000000001");
    }
    text("kernel/random/entropy_avail", "256");
}
