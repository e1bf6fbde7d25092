//! `/proc/PID/smaps`.

use serde::Serialize;

use super::{Notes, Segment, quoted};

/// A mapping of a process. Sizes are in bytes; what the kernel does not report is 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// End address (exclusive).
    pub end: u64,
    /// `r`, `w`, `x` or `-` each, then `p` (private) or `s` (shared).
    pub permissions: String,
    /// File, or a kind in brackets, or empty.
    pub path: String,
    /// The segment it belongs to.
    pub segment: Segment,
    /// Page size that the kernel allocates.
    pub kernel_page: u64,
    /// Page size of the processor's translations, for hugetlbfs and base pages.
    pub mmu_page: u64,
    /// Resident memory, without hugetlbfs pages.
    pub rss: u64,
    /// Part of `rss`: anonymous memory in transparent huge pages.
    pub anon_huge: u64,
    /// Part of `rss`: shared memory in transparent huge pages.
    pub shmem_huge: u64,
    /// Part of `rss`: file pages in transparent huge pages.
    pub file_huge: u64,
    /// Memory in hugetlbfs pages shared with other processes.
    pub shared_hugetlb: u64,
    /// Memory in private hugetlbfs pages.
    pub private_hugetlb: u64,
    /// Swapped out.
    pub swap: u64,
    /// Whether the mapping is currently eligible for transparent huge pages.
    pub thp_eligible: Option<bool>,
    /// Whether the program requested transparent huge pages (`MADV_HUGEPAGE`).
    pub asked: bool,
    /// Whether the program declined them (`MADV_NOHUGEPAGE`).
    pub declined: bool,
    /// Bytes by node, from `numa_maps`.
    pub nodes: Vec<(u32, u64)>,
}

impl Mapping {
    /// Returns the virtual memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.end - self.start
    }

    /// Returns the memory in transparent huge pages.
    #[must_use]
    pub fn transparent(&self) -> u64 {
        self.anon_huge.saturating_add(self.shmem_huge).saturating_add(self.file_huge)
    }

    /// Returns the memory in hugetlbfs pages.
    #[must_use]
    pub fn hugetlb(&self) -> u64 {
        self.shared_hugetlb.saturating_add(self.private_hugetlb)
    }
}

/// Parses `smaps`. Malformed lines are skipped with a note; a malformed first line of a mapping skips the mapping.
#[must_use]
pub fn parse_smaps(text: &str, notes: &mut Notes) -> Vec<Mapping> {
    let mut mappings: Vec<Mapping> = Vec::new();
    // Whether lines belong to the last mapping.
    let mut within = false;
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let problem = if line.starts_with(|c: char| c.is_ascii_uppercase()) {
            let mapping = if within { mappings.last_mut() } else { None };
            mapping.and_then(|mapping| field(mapping, line).err().map(|what| (what, "left out")))
        } else {
            let found = header(line);
            within = found.is_some();
            let problem = if within { None } else { Some(("the first line of a mapping", "which is skipped")) };
            mappings.extend(found);
            problem
        };
        if let Some((wanted, what)) = problem {
            notes.add(format!("smaps line {}: '{}' is not {wanted}, {what}", i + 1, quoted(line)));
        }
    }
    mappings
}

/// Parses `7f00000000-7f00021000 rw-p 00000000 00:00 0    [heap]`.
fn header(line: &str) -> Option<Mapping> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let mut parts = rest.splitn(5, ' ');
    let permissions = parts.next().filter(|p| p.len() == 4 && p.is_ascii())?;
    let (_offset, _device, _inode) = (parts.next()?, parts.next()?, parts.next()?);
    let path = parts.next().unwrap_or_default().trim().to_owned();
    (start <= end).then(|| Mapping { start, end, permissions: permissions.to_owned(), path, ..Mapping::default() })
}

/// Parses `Rss:  8 kB`, or flags. Other fields are ignored.
fn field(mapping: &mut Mapping, line: &str) -> Result<(), &'static str> {
    let (key, value) = line.split_once(':').ok_or("a field with its value")?;
    let number = || {
        let digits = value.trim().trim_end_matches("kB").trim_end();
        let kib: Option<u64> = digits.parse().ok();
        kib.and_then(|kib| kib.checked_mul(1024)).ok_or("a number of KiB")
    };
    match key {
        "KernelPageSize" => mapping.kernel_page = number()?,
        "MMUPageSize" => mapping.mmu_page = number()?,
        "Rss" => mapping.rss = number()?,
        "AnonHugePages" => mapping.anon_huge = number()?,
        "ShmemPmdMapped" => mapping.shmem_huge = number()?,
        "FilePmdMapped" => mapping.file_huge = number()?,
        "Shared_Hugetlb" => mapping.shared_hugetlb = number()?,
        "Private_Hugetlb" => mapping.private_hugetlb = number()?,
        "Swap" => mapping.swap = number()?,
        "THPeligible" => mapping.thp_eligible = Some(value.trim() != "0"),
        "VmFlags" => {
            mapping.asked = value.split_whitespace().any(|flag| flag == "hg");
            mapping.declined = value.split_whitespace().any(|flag| flag == "nh");
        }
        _ => {}
    }
    Ok(())
}
