//! Parses `/sys/kernel/mm` and `/sys/devices/system/node`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Notes, quoted};

/// Contents of files by path below the root, without a leading slash.
pub type Files = BTreeMap<String, String>;

/// Memory configuration of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Host {
    /// Base page size in bytes, if known.
    pub base_page: Option<u64>,
    /// Pools of hugetlbfs pages, by ascending page size.
    pub pools: Vec<Pool>,
    /// Memory nodes.
    pub nodes: Vec<Node>,
    /// Transparent huge pages, if the kernel has them.
    pub thp: Option<Thp>,
    /// What could not be parsed.
    pub notes: Vec<String>,
}

/// Pool of hugetlbfs pages of one size, of the host or of one node. Numbers that the kernel does not report are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pool {
    /// Page size in bytes.
    pub page: u64,
    /// Pages in the pool (`nr_hugepages`).
    pub total: u64,
    /// Free pages.
    pub free: Option<u64>,
    /// Free pages reserved for mappings.
    pub reserved: Option<u64>,
    /// Pages beyond the pool, which are released when free.
    pub surplus: Option<u64>,
    /// Maximum number of surplus pages.
    pub overcommit: Option<u64>,
}

/// A memory node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Its number.
    pub number: u32,
    /// Memory in bytes.
    pub memory: Option<u64>,
    /// Free memory in bytes.
    pub free: Option<u64>,
    /// Its pools of hugetlbfs pages.
    pub pools: Vec<Pool>,
}

/// Transparent huge pages. Settings are the kernel's words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Thp {
    /// Who gets them: `always`, `madvise`, `never`.
    pub enabled: Option<String>,
    /// How much a page fault does to get one.
    pub defrag: Option<String>,
    /// The same for shared memory.
    pub shmem_enabled: Option<String>,
    /// Page size in bytes.
    pub page: Option<u64>,
    /// Settings and counters of khugepaged, the kernel thread that merges base pages into huge ones.
    pub khugepaged: BTreeMap<String, u64>,
    /// Smaller sizes, if the kernel has them.
    pub sizes: Vec<MultiSize>,
}

/// One size of multi-size transparent huge pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MultiSize {
    /// Page size in bytes.
    pub page: u64,
    /// Who gets them: `always`, `inherit` (as in [`Thp::enabled`]), `madvise`, `never`.
    pub enabled: Option<String>,
    /// The same for shared memory.
    pub shmem_enabled: Option<String>,
}

const HUGE: &str = "sys/kernel/mm/hugepages";
const THP: &str = "sys/kernel/mm/transparent_hugepage";
const NODES: &str = "sys/devices/system/node";

impl Host {
    /// Parses a host's files.
    #[must_use]
    pub fn parse(base_page: Option<u64>, files: &Files) -> Host {
        let mut tree = Tree { files, notes: Notes::default() };
        let pools = tree.pools(HUGE);
        let nodes = tree.nodes();
        let thp = tree.thp();
        Host { base_page, pools, nodes, thp, notes: tree.notes.into_lines() }
    }
}

/// The files, and notes about errors in them.
struct Tree<'a> {
    files: &'a Files,
    notes: Notes,
}

impl Tree<'_> {
    /// Names directly below a directory.
    fn names(&self, folder: &str) -> BTreeSet<String> {
        let within = |path: &String| Some(path.strip_prefix(folder)?.strip_prefix('/')?.split('/').next()?.to_owned());
        self.files.keys().filter_map(within).collect()
    }

    fn number(&mut self, path: &str) -> Option<u64> {
        let text = self.files.get(path)?.trim();
        let number = text.parse().ok();
        if number.is_none() {
            self.notes.add(format!("/{path}: '{}' is not a number; skipped", quoted(text)));
        }
        number
    }

    /// Returns the word in brackets in a setting.
    fn setting(&mut self, path: &str) -> Option<String> {
        let text = self.files.get(path)?.trim();
        let chosen = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
        if chosen.is_none() {
            self.notes.add(format!("/{path}: '{}' has no selected value in brackets; skipped", quoted(text)));
        }
        chosen.map(str::to_owned)
    }

    /// Page sizes and paths of the directories `hugepages-*kB`, by ascending size.
    fn sizes(&mut self, folder: &str) -> Vec<(u64, String)> {
        let mut sizes = Vec::new();
        for name in self.names(folder) {
            let Some(digits) = name.strip_prefix("hugepages-").and_then(|rest| rest.strip_suffix("kB")) else {
                continue;
            };
            match digits.parse().ok().and_then(|kib: u64| kib.checked_mul(1024)) {
                Some(bytes) => sizes.push((bytes, format!("{folder}/{name}"))),
                None => self.notes.add(format!("/{folder}/{}: not a page size; skipped", quoted(&name))),
            }
        }
        sizes.sort_unstable();
        sizes
    }

    fn pools(&mut self, folder: &str) -> Vec<Pool> {
        let sizes = self.sizes(folder);
        let pool = |(page, path): (u64, String)| Pool {
            page,
            total: self.number(&format!("{path}/nr_hugepages")).unwrap_or(0),
            free: self.number(&format!("{path}/free_hugepages")),
            reserved: self.number(&format!("{path}/resv_hugepages")),
            surplus: self.number(&format!("{path}/surplus_hugepages")),
            overcommit: self.number(&format!("{path}/nr_overcommit_hugepages")),
        };
        sizes.into_iter().map(pool).collect()
    }

    fn nodes(&mut self) -> Vec<Node> {
        let number = |name: String| name.strip_prefix("node")?.parse().ok();
        let mut numbers: Vec<u32> = self.names(NODES).into_iter().filter_map(number).collect();
        numbers.sort_unstable();
        let node = |number: u32| {
            let folder = format!("{NODES}/node{number}");
            let memory = |key: &str| {
                let text = self.files.get(&format!("{folder}/meminfo"))?;
                let line = text.lines().find_map(|line| line.split_once(key)?.1.trim().strip_suffix("kB"));
                line?.trim().parse::<u64>().ok()?.checked_mul(1024)
            };
            let (total, free) = (memory(" MemTotal:"), memory(" MemFree:"));
            Node { number, memory: total, free, pools: self.pools(&format!("{folder}/hugepages")) }
        };
        numbers.into_iter().map(node).collect()
    }

    fn thp(&mut self) -> Option<Thp> {
        if self.names(THP).is_empty() {
            return None;
        }
        let names = self.names(&format!("{THP}/khugepaged"));
        let khugepaged = names.into_iter().filter_map(|name| {
            let number = self.number(&format!("{THP}/khugepaged/{name}"))?;
            Some((name, number))
        });
        let khugepaged = khugepaged.collect();
        let sizes = self.sizes(THP).into_iter().map(|(page, path)| MultiSize {
            page,
            enabled: self.setting(&format!("{path}/enabled")),
            shmem_enabled: self.setting(&format!("{path}/shmem_enabled")),
        });
        let sizes = sizes.collect();
        Some(Thp {
            enabled: self.setting(&format!("{THP}/enabled")),
            defrag: self.setting(&format!("{THP}/defrag")),
            shmem_enabled: self.setting(&format!("{THP}/shmem_enabled")),
            page: self.number(&format!("{THP}/hpage_pmd_size")),
            khugepaged,
            sizes,
        })
    }
}
