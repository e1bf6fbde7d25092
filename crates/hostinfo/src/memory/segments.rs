//! Assigns mappings to the segments of a program.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Mapping;

/// A kind of process memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Segment {
    /// Code and read-only data of the program file.
    Text,
    /// Writable data of the program file.
    Data,
    /// Memory without a file directly after the data.
    Bss,
    /// Memory from `brk`.
    Heap,
    /// Stack of the first thread; stacks of other threads are anonymous mappings.
    Stack,
    /// Mapped files, including libraries.
    Files,
    /// Private memory from `mmap`: large `malloc` blocks, thread stacks.
    #[default]
    Anonymous,
    /// Shared memory without a file of its own.
    Shared,
    /// Mappings of the kernel.
    Kernel,
}

impl Segment {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Segment::Text => "text",
            Segment::Data => "data",
            Segment::Bss => "bss",
            Segment::Heap => "heap",
            Segment::Stack => "stack",
            Segment::Files => "files",
            Segment::Anonymous => "anonymous",
            Segment::Shared => "shared",
            Segment::Kernel => "kernel",
        }
    }

    /// Returns the segment of a mapping. `before` is the segment of the mapping that ends where this one begins, or `None` after
    /// a gap.
    fn of(mapping: &Mapping, program: Option<&str>, before: Option<Segment>) -> Segment {
        let path = mapping.path.trim_end_matches(" (deleted)");
        let writable = mapping.permissions.as_bytes().get(1) == Some(&b'w');
        match path {
            "[heap]" => Segment::Heap,
            "[stack]" => Segment::Stack,
            _ if path.starts_with("[anon_shmem") => Segment::Shared,
            _ if path.starts_with("[stack:") => Segment::Stack,
            _ if path.is_empty() || path.starts_with("[anon") || path.starts_with("/anon_hugepage") => match before {
                Some(Segment::Data | Segment::Bss) if writable => Segment::Bss,
                _ if mapping.permissions.ends_with('s') => Segment::Shared,
                _ => Segment::Anonymous,
            },
            _ if path.starts_with('[') => Segment::Kernel,
            _ if Some(path) == program && writable => Segment::Data,
            _ if Some(path) == program => Segment::Text,
            _ if ["/SYSV", "/memfd:", "/dev/zero", "/dev/shm/"].iter().any(|p| path.starts_with(p)) => Segment::Shared,
            _ => Segment::Files,
        }
    }
}

/// Memory of a segment, in bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SegmentUse {
    /// The segment.
    pub segment: Segment,
    /// Number of mappings.
    pub mappings: usize,
    /// Virtual memory.
    pub mapped: u64,
    /// Resident memory, without hugetlbfs pages.
    pub rss: u64,
    /// Part of `rss` in transparent huge pages.
    pub transparent: u64,
    /// Memory in hugetlbfs pages, by page size.
    pub hugetlb: Vec<(u64, u64)>,
    /// Resident memory in base pages, in mappings for which the program requested transparent huge pages.
    pub asked_in_vain: u64,
    /// Resident memory in base pages, in mappings for which the program declined them.
    pub declined: u64,
    /// Memory by node, including hugetlbfs; empty if unknown.
    pub nodes: Vec<(u32, u64)>,
}

impl SegmentUse {
    /// Returns the resident memory in base pages.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.rss.saturating_sub(self.transparent)
    }
}

/// Assigns each mapping its segment, and sums them. `program` is the executed file; if unknown, the file of the first mapping
/// with a file.
pub(super) fn sum(mappings: &mut [Mapping], program: Option<&str>) -> Vec<SegmentUse> {
    let first = mappings.iter().map(|m| m.path.trim_end_matches(" (deleted)")).find(|path| path.starts_with('/'));
    let program = program.or(first).map(str::to_owned);
    let mut before: Option<(u64, Segment)> = None;
    let mut sums: BTreeMap<Segment, Sum> = BTreeMap::new();
    for mapping in mappings {
        let follows = before.filter(|(end, _)| *end == mapping.start).map(|(_, segment)| segment);
        mapping.segment = Segment::of(mapping, program.as_deref(), follows);
        before = Some((mapping.end, mapping.segment));
        sums.entry(mapping.segment).or_default().add(mapping);
    }
    sums.into_iter().map(|(segment, sum)| sum.finish(segment)).collect()
}

#[derive(Default)]
struct Sum {
    mappings: usize,
    mapped: u64,
    rss: u64,
    transparent: u64,
    hugetlb: BTreeMap<u64, u64>,
    asked_in_vain: u64,
    declined: u64,
    nodes: BTreeMap<u32, u64>,
}

impl Sum {
    fn add(&mut self, mapping: &Mapping) {
        // Damaged texts may contain any number.
        let add = |sum: &mut u64, bytes: u64| *sum = sum.saturating_add(bytes);
        let base = mapping.rss.saturating_sub(mapping.transparent());
        self.mappings += 1;
        add(&mut self.mapped, mapping.bytes());
        add(&mut self.rss, mapping.rss);
        add(&mut self.transparent, mapping.transparent());
        add(&mut self.asked_in_vain, if mapping.asked { base } else { 0 });
        add(&mut self.declined, if mapping.declined { base } else { 0 });
        if mapping.hugetlb() > 0 {
            add(self.hugetlb.entry(mapping.kernel_page).or_default(), mapping.hugetlb());
        }
        mapping.nodes.iter().for_each(|&(node, bytes)| add(self.nodes.entry(node).or_default(), bytes));
    }

    fn finish(self, segment: Segment) -> SegmentUse {
        let Sum { mappings, mapped, rss, transparent, hugetlb, asked_in_vain, declined, nodes } = self;
        let (hugetlb, nodes) = (hugetlb.into_iter().collect(), nodes.into_iter().collect());
        SegmentUse { segment, mappings, mapped, rss, transparent, hugetlb, asked_in_vain, declined, nodes }
    }
}
