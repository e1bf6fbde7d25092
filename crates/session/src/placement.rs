//! Placement of a program: its CPUs, its memory nodes, and its page sizes.

use std::ops::RangeInclusive;

use fxscope_linux::pages::{MappingPages, MemoryPolicy, NodeMask, Weights, parse_nodes};
use fxscope_machine::Spec;
use fxscope_machine::settings::{integer, size};
use fxscope_machine::spec;
use fxscope_memory::ring::Ring;
use serde::{Deserialize, Serialize};

use crate::tiers::{TierOption, numbered};
use crate::{CallPages, Error, PlaceOption};

/// CPUs of the program, nodes and page sizes of its memory. Lists are text, since their meaning depends on the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Placement {
    /// CPUs that the program may run on, such as `12-23` or `12,24,36`; `None`: all.
    pub cpus: Option<String>,
    /// Page sizes. Later ones override earlier ones.
    pub pages: Vec<PageOption>,
    /// Memory tiers that the machine has in addition to its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<TierOption>,
    /// Nodes that its memory comes from, in the syntax of `numactl --membind`: `4`, `4-5`, `+0`, `!4`, `all`. Tiers have names, too.
    pub membind: Option<String>,
    /// Nodes that its pages are interleaved over, in the same syntax. Nodes may have weights: `4=3,cxl=1`.
    pub interleave: Option<String>,
    /// Data and heap blocks whose pages are on a node of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceOption>,
    /// Bytes of pages that each process has on nodes with cores; what it touches later goes to the memory tiers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fast_memory: Option<u64>,
}

/// A memory node remote from a program's cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RemoteNode {
    /// Its number.
    pub node: u32,
    /// Additional latency of its memory, nanoseconds.
    pub added_ns: f64,
}

/// Page size of a part of the program's memory.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum PageOption {
    /// Segments, and bytes of a page.
    Segments(Vec<String>, u64),
    /// The mappings made by some calls.
    Calls(CallPages),
}

impl PageOption {
    /// Parses `SEGMENT=SIZE`, `all=SIZE` or `mmap@CALL=SIZE`; a call may have `thp` instead of a size.
    ///
    /// # Errors
    /// If the text is malformed; the message says how to write it.
    pub fn parse(text: &str) -> Result<PageOption, String> {
        let (name, pages) = text.split_once('=').ok_or("write it as SEGMENT=SIZE, such as bss=2MiB")?;
        let bytes = || integer(pages).ok_or_else(|| format!("'{pages}' is not a size; write it like 64KiB or 2MiB"));
        if let Some(calls) = name.strip_prefix("mmap@") {
            let pages = if pages == "thp" { MappingPages::Transparent } else { MappingPages::Size(bytes()?) };
            return CallPages::parse(calls, pages).map(PageOption::Calls);
        }
        let all = spec::Pages::SEGMENTS.map(|(segment, _)| segment);
        let segments: Vec<_> = all.into_iter().filter(|&segment| name == "all" || name == segment).collect();
        if segments.is_empty() {
            return Err(format!("unknown segment '{name}'; choose from {}, all, mmap@CALL", all.join(", ")));
        }
        if pages == "thp" {
            return Err(format!(
                "only mmap@CALL can have thp by itself; for {name}, and all that a transparent huge page fits, use \
                 -e XOS_MMM_L_HPAGE_TYPE=thp"
            ));
        }
        Ok(PageOption::Segments(segments.into_iter().map(str::to_owned).collect(), bytes()?))
    }

    /// Returns the bytes of a page, if a size is given.
    fn bytes(&self) -> Option<u64> {
        match self {
            PageOption::Segments(_, bytes) => Some(*bytes),
            PageOption::Calls(CallPages { pages: MappingPages::Size(bytes), .. }) => Some(*bytes),
            PageOption::Calls(_) => None,
        }
    }
}

impl Placement {
    /// Returns the settings of the machine that the options stand for.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let setting = |pages: &PageOption| match pages {
            PageOption::Segments(names, bytes) => {
                names.iter().map(|name| (format!("pages.{name}"), size(*bytes))).collect::<Vec<_>>()
            }
            PageOption::Calls(_) => Vec::new(),
        };
        self.pages.iter().flat_map(setting)
    }

    /// Returns the calls whose mappings have their own page size.
    pub(crate) fn call_pages(&self) -> Vec<CallPages> {
        let calls = self.pages.iter().filter_map(|pages| match pages {
            PageOption::Calls(calls) => Some(calls.clone()),
            PageOption::Segments(..) => None,
        });
        calls.collect()
    }

    /// Adds page sizes for the mappings of further calls.
    pub(crate) fn add_call_pages(&mut self, calls: impl IntoIterator<Item = CallPages>) {
        self.pages.extend(calls.into_iter().map(PageOption::Calls));
    }

    /// Checks that the machine supports the requested page sizes; the error names the first that it does not.
    pub(crate) fn check_pages(&self, machine: &Spec) -> Result<(), Error> {
        let mut sizes = self.pages.iter().filter_map(PageOption::bytes);
        sizes.try_for_each(|bytes| check_page_size(machine, bytes)).map_err(|why| Error::option("pages", why))
    }
}

impl Placement {
    /// Returns whether it places the program's memory.
    #[must_use]
    pub fn places_memory(&self) -> bool {
        self.membind.is_some() || self.interleave.is_some() || !self.places.is_empty() || self.fast_memory.is_some()
    }

    /// Returns the node farthest from that of the cores that the program may run on, the first of equals; or why there
    /// is none.
    pub(crate) fn farthest_node(&self, spec: &Spec) -> Result<RemoteNode, Error> {
        let t = &spec.topology;
        let cpus = self.cpus(spec)?.unwrap_or_else(|| vec![t.first_core]);
        let mut groups = cpus.iter().map(|cpu| (cpu - t.first_core) / t.cores_per_cmg);
        let first = groups.next().unwrap_or(0);
        if groups.any(|group| group != first) {
            return Err(Error::NoRemoteNode("its cores are on several nodes, so no node is remote from all"));
        }
        let (other, cycles) = Ring::new(spec)
            .farthest(first as usize)
            .ok_or(Error::NoRemoteNode("the machine has only one memory node"))?;
        let added_ns = cycles as f64 * 1e9 / spec.clock.core_hz as f64;
        Ok(RemoteNode { node: t.first_node + other as u32, added_ns })
    }

    /// Returns the CPUs that the program may run on, if not all.
    pub fn cpus(&self, spec: &Spec) -> Result<Option<Vec<u32>>, Error> {
        let t = &spec.topology;
        let all = t.first_core..=t.first_core + t.cmgs * t.cores_per_cmg - 1;
        let list = self.cpus.as_deref().map(|text| cpu_list(text, &all));
        list.transpose().map_err(|why| Error::option(format!("cpus {}", self.cpus.as_deref().unwrap_or_default()), why))
    }

    /// Returns the CMGs of these CPUs, counted from 0.
    pub(crate) fn cmgs(&self, spec: &Spec) -> Result<Vec<u32>, Error> {
        let t = &spec.topology;
        let Some(cpus) = self.cpus(spec)? else { return Ok((0..t.cmgs).collect()) };
        let mut cmgs: Vec<u32> = cpus.iter().map(|cpu| (cpu - t.first_core) / t.cores_per_cmg).collect();
        cmgs.dedup();
        Ok(cmgs)
    }

    /// Returns the nodes that the program's memory comes from.
    pub(crate) fn policy(&self, spec: &Spec) -> Result<MemoryPolicy, Error> {
        let wrong = |option: &str, text: &str, why| Error::option(format!("{option} {text}"), why);
        Ok(match (&self.membind, &self.interleave) {
            (Some(text), _) => MemoryPolicy::Bind(nodes(text, spec).map_err(|why| wrong("membind", text, why))?),
            (None, Some(text)) => turns(text, spec).map_err(|why| wrong("interleave", text, why))?,
            (None, None) => MemoryPolicy::Local,
        })
    }
}

impl Placement {
    /// Returns the placed data with their nodes.
    pub(crate) fn places(&self, spec: &Spec) -> Result<Vec<(PlaceOption, u32)>, Error> {
        let placed = |option: &PlaceOption| {
            let mask = nodes(&option.node, spec)?;
            if mask.is_power_of_two() {
                Ok((option.clone(), mask.trailing_zeros()))
            } else {
                Err(format!("{} are several nodes; name one", option.node))
            }
        };
        self.places.iter().map(|option| placed(option).map_err(|why| Error::option("place", why))).collect()
    }

    /// Checks that there is somewhere to go for pages beyond the fast memory.
    pub(crate) fn check_fast_memory(&self, spec: &Spec) -> Result<(), Error> {
        if self.fast_memory.is_none() || spec.memory_tiers.names().next().is_some() {
            return Ok(());
        }
        let why = "the machine has no memory tier for the pages beyond it; add one with --memory-tier";
        Err(Error::option("fast-memory", why))
    }
}

/// Parses nodes of a machine, by numbers or names of tiers.
pub(crate) fn nodes(text: &str, spec: &Spec) -> Result<NodeMask, String> {
    let first = spec.topology.first_node;
    let machine: Vec<u32> = (first..first + spec.nodes()).collect();
    parse_nodes(&numbered(text, spec), &machine)
}

/// Parses nodes in turn, which may have weights.
fn turns(text: &str, spec: &Spec) -> Result<MemoryPolicy, String> {
    if !text.contains('=') {
        return Ok(MemoryPolicy::Interleave(nodes(text, spec)?, Weights::default()));
    }
    let (mut all, mut weights) = (0, Vec::new());
    for part in text.split(',') {
        let (part, weight) = part.split_once('=').unwrap_or((part, "1"));
        let wrong = || format!("'{weight}' is not a weight; write 1 to 255 pages, such as 4=3,5=1");
        let weight: u8 = weight.parse().ok().filter(|&weight| weight > 0).ok_or_else(wrong)?;
        let mask = nodes(part, spec)?;
        all |= mask;
        weights.extend((0..u64::BITS).filter(|node| mask >> node & 1 != 0).map(|node| (node, weight)));
    }
    Ok(MemoryPolicy::Interleave(all, Weights::new(all, &weights)))
}

/// Parses a comma-separated list of CPU numbers and ranges.
fn cpu_list(text: &str, all: &RangeInclusive<u32>) -> Result<Vec<u32>, String> {
    let valid = || format!("the machine's CPUs are {}-{}", all.start(), all.end());
    let number = |text: &str| {
        let number = text.parse::<u32>();
        number.map_err(|_| {
            format!("'{text}' is not a CPU number; write numbers and ranges such as 12-23,36; {}", valid())
        })
    };
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("the range {part} is empty: write {last}-{first}; {}", valid()));
        }
        if let Some(missing) = [first, last].into_iter().find(|cpu| !all.contains(cpu)) {
            return Err(format!("there is no CPU {missing}; {}", valid()));
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// Checks that a machine supports this page size.
///
/// # Errors
/// Lists the sizes that it supports.
pub fn check_page_size(machine: &Spec, bytes: u64) -> Result<(), String> {
    let sizes = &machine.pages.sizes;
    if sizes.contains(&bytes) {
        return Ok(());
    }
    let known: Vec<_> = sizes.iter().map(|&bytes| size(bytes)).collect();
    Err(format!("{} has no pages of size '{}'; choose from {}", machine.name, size(bytes), known.join(", ")))
}
