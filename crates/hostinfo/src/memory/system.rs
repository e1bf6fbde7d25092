//! `/sys/kernel/mm`, `/sys/devices/system/node`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Notes, quoted};

/// Texts of files by their paths below the root, without a slash at the beginning.
pub type Files = BTreeMap<String, String>;

/// What a host offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Host {
    /// Bytes of a normal page, where known.
    pub base_page: Option<u64>,
    /// Pages of hugetlbfs by size, smallest first.
    pub pools: Vec<Pool>,
    /// Memory nodes.
    pub nodes: Vec<Node>,
    /// Transparent huge pages, when the kernel has them.
    pub thp: Option<Thp>,
    /// What was not understood.
    pub notes: Vec<String>,
}

/// Pages of hugetlbfs of one size, of the host or of one node. A number that the kernel does not tell is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pool {
    /// Bytes of a page.
    pub page: u64,
    /// Pages there are (`nr_hugepages`).
    pub total: u64,
    /// Of these, pages in no use.
    pub free: Option<u64>,
    /// Of the free ones, those promised to mappings.
    pub reserved: Option<u64>,
    /// Pages beyond those set aside, which go back when they are free.
    pub surplus: Option<u64>,
    /// Most surplus pages.
    pub overcommit: Option<u64>,
}

/// A memory node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Its number.
    pub number: u32,
    /// Memory, bytes.
    pub memory: Option<u64>,
    /// Of this, free.
    pub free: Option<u64>,
    /// Its pages of hugetlbfs.
    pub pools: Vec<Pool>,
}

/// Transparent huge pages. Settings are the words of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Thp {
    /// Who gets them: `always`, `madvise`, `never`.
    pub enabled: Option<String>,
    /// How much a page fault does for one.
    pub defrag: Option<String>,
    /// The same for shared memory.
    pub shmem_enabled: Option<String>,
    /// Bytes of one.
    pub page: Option<u64>,
    /// Settings and counts of the thread that makes huge pages of small ones later.
    pub khugepaged: BTreeMap<String, u64>,
    /// Smaller sizes, where the kernel has them.
    pub sizes: Vec<MultiSize>,
}

/// One size of multi-size transparent huge pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MultiSize {
    /// Bytes of a page.
    pub page: u64,
    /// Who gets them: `always`, `inherit` (as of [`Thp::enabled`]), `madvise`, `never`.
    pub enabled: Option<String>,
    /// The same for shared memory.
    pub shmem_enabled: Option<String>,
}

const HUGE: &str = "sys/kernel/mm/hugepages";
const THP: &str = "sys/kernel/mm/transparent_hugepage";
const NODES: &str = "sys/devices/system/node";

impl Host {
    /// Understands a host's files.
    #[must_use]
    pub fn parse(base_page: Option<u64>, files: &Files) -> Host {
        let mut tree = Tree { files, notes: Notes::default() };
        let pools = tree.pools(HUGE);
        let nodes = tree.nodes();
        let thp = tree.thp();
        Host { base_page, pools, nodes, thp, notes: tree.notes.into_lines() }
    }
}

/// The files, and what is wrong with them.
struct Tree<'a> {
    files: &'a Files,
    notes: Notes,
}

impl Tree<'_> {
    /// Names of what is directly below a folder.
    fn names(&self, folder: &str) -> BTreeSet<String> {
        let within = |path: &String| Some(path.strip_prefix(folder)?.strip_prefix('/')?.split('/').next()?.to_owned());
        self.files.keys().filter_map(within).collect()
    }

    fn number(&mut self, path: &str) -> Option<u64> {
        let text = self.files.get(path)?.trim();
        let number = text.parse().ok();
        if number.is_none() {
            self.notes.add(format!("/{path}: '{}' is no number, left out", quoted(text)));
        }
        number
    }

    /// The word in brackets of a setting.
    fn setting(&mut self, path: &str) -> Option<String> {
        let text = self.files.get(path)?.trim();
        let chosen = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
        if chosen.is_none() {
            self.notes.add(format!("/{path}: '{}' has no choice in brackets, left out", quoted(text)));
        }
        chosen.map(str::to_owned)
    }

    /// Page sizes of the folders `hugepages-*kB` of a folder, with their paths, smallest first.
    fn sizes(&mut self, folder: &str) -> Vec<(u64, String)> {
        let mut sizes = Vec::new();
        for name in self.names(folder) {
            let Some(digits) = name.strip_prefix("hugepages-").and_then(|rest| rest.strip_suffix("kB")) else {
                continue;
            };
            match digits.parse().ok().and_then(|kib: u64| kib.checked_mul(1024)) {
                Some(bytes) => sizes.push((bytes, format!("{folder}/{name}"))),
                None => self.notes.add(format!("/{folder}/{}: no page size, left out", quoted(&name))),
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
