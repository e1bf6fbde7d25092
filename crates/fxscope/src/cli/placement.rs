//! Options about where a program runs, where its memory is, and in pages of which size.

use std::ops::RangeInclusive;

use fxscope::CallPages;
use fxscope::linux::pages::{MappingPages, MemoryPolicy, parse_nodes};
use fxscope::machine::settings::{integer, size};
use fxscope::machine::spec;
use fxscope::machine::{LoadError, Spec};
use fxscope_memory::ring::Ring;

use super::Failure;

/// CPUs of the program, and pages of its memory.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Placement {
    /// Let the program run on these CPUs only, such as 12-23 or 12,24,36: a thread for each, and further ones take turns.
    /// Without it, all CPUs of the machine. The program sees them as its affinity and cannot leave them.
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Page sizes of the program's segments, such as bss=2MiB,heap=64KiB, or all=64KiB: short for --set pages.bss=2MiB.
    /// They hold whatever the variables of the large-page library (XOS_MMM_L_…) say. mmap@CALL=SIZE is about the mappings
    /// of single calls, named as FUNCTION, FUNCTION+OFFSET, FILE:LINE (with debug information) or 0xADDRESS;
    /// mmap@CALL=thp gives them transparent huge pages.
    #[arg(long, value_name = "SEGMENT=SIZE", value_delimiter = ',', value_parser = pages)]
    pages: Vec<Pages>,
    /// Take the program's memory from these nodes only, as numactl --membind does: 4, 4,5, 4-5, +0, !4 or all.
    #[arg(long, value_name = "NODES", conflicts_with = "interleave")]
    membind: Option<String>,
    /// Put the program's pages on these nodes in turn, as numactl --interleave does.
    #[arg(long, value_name = "NODES")]
    interleave: Option<String>,
}

/// A memory node other than the one of a program's cores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remote {
    pub node: u32,
    /// What its memory is slower by, nanoseconds.
    pub added_ns: f64,
}

/// What gets which pages.
#[derive(Clone, Debug)]
enum Pages {
    /// Segments, and bytes of a page.
    Segments(Vec<&'static str>, u64),
    /// The mappings of some calls.
    Calls(CallPages),
}

impl Pages {
    /// Bytes of a page, where a size is named.
    fn bytes(&self) -> Option<u64> {
        match self {
            Pages::Segments(_, bytes) => Some(*bytes),
            Pages::Calls(CallPages { pages: MappingPages::Size(bytes), .. }) => Some(*bytes),
            Pages::Calls(_) => None,
        }
    }
}

impl Placement {
    /// The settings of the machine that the options are short for.
    pub(super) fn settings(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let setting = |pages: &Pages| match pages {
            Pages::Segments(names, bytes) => {
                names.iter().map(|name| (format!("pages.{name}"), size(*bytes))).collect::<Vec<_>>()
            }
            Pages::Calls(_) => Vec::new(),
        };
        self.pages.iter().flat_map(setting)
    }

    /// The calls whose mappings have pages of their own.
    pub(super) fn call_pages(&self) -> Vec<CallPages> {
        let calls = self.pages.iter().filter_map(|pages| match pages {
            Pages::Calls(calls) => Some(calls.clone()),
            Pages::Segments(..) => None,
        });
        calls.collect()
    }

    /// Says nothing of pages any more.
    pub(super) fn forget_pages(&mut self) {
        self.pages.clear();
    }

    /// Gives the mappings of further calls pages of their own.
    pub(super) fn add_call_pages(&mut self, calls: impl IntoIterator<Item = CallPages>) {
        self.pages.extend(calls.into_iter().map(Pages::Calls));
    }

    /// Checks that the machine has the page sizes asked for; the first that it lacks is named.
    pub(super) fn check_pages(&self, machine: impl FnOnce() -> Result<Spec, LoadError>) -> Result<(), Failure> {
        if self.pages.is_empty() {
            return Ok(());
        }
        let machine = machine()?;
        self.pages
            .iter()
            .filter_map(Pages::bytes)
            .try_for_each(|bytes| is_page(&machine, bytes))
            .map_err(|e| format!("--pages: {e}").into())
    }
}

impl Placement {
    /// The CPUs that the program may run on, as they were asked for.
    pub(super) fn cpus_asked(&self) -> Option<&str> {
        self.cpus.as_deref()
    }

    /// Whether the options say where the program's memory is to be.
    pub(super) fn places_memory(&self) -> bool {
        self.membind.is_some() || self.interleave.is_some()
    }

    /// Puts the program's pages on all nodes in turn.
    pub(super) fn interleave_all(&mut self) {
        self.interleave = Some("all".to_owned());
    }

    /// Takes the program's memory from this node only.
    pub(super) fn bind_memory(&mut self, node: u32) {
        self.membind = Some(node.to_string());
    }

    /// The node farthest from the one of the cores that the program may run on, without a choice the first; or why there is none.
    pub(super) fn farthest(&self, spec: &Spec) -> Result<Remote, Failure> {
        let t = &spec.topology;
        let cpus = self.cpus(spec)?.unwrap_or_else(|| vec![t.first_core]);
        let mut groups = cpus.iter().map(|cpu| (cpu - t.first_core) / t.cores_per_cmg);
        let first = groups.next().unwrap_or(0);
        if groups.any(|group| group != first) {
            return Err("its cores are of several nodes, none of which is far from all".into());
        }
        let (other, cycles) = Ring::new(spec).farthest(first as usize).ok_or("the machine has only one memory node")?;
        let added_ns = cycles as f64 * 1e9 / spec.clock.core_hz as f64;
        Ok(Remote { node: t.first_node + other as u32, added_ns })
    }

    /// The CPUs that the program may run on, if not all.
    pub(super) fn cpus(&self, spec: &Spec) -> Result<Option<Vec<u32>>, Failure> {
        let t = &spec.topology;
        let all = t.first_core..=t.first_core + t.cmgs * t.cores_per_cmg - 1;
        let list = self.cpus.as_deref().map(|text| cpu_list(text, &all));
        list.transpose().map_err(|e| Failure::from(format!("--cpus {}: {e}", self.cpus.as_deref().unwrap_or_default())))
    }

    /// The CMGs of these CPUs, counted from 0.
    pub(super) fn cmgs(&self, spec: &Spec) -> Result<Vec<u32>, Failure> {
        let t = &spec.topology;
        let Some(cpus) = self.cpus(spec)? else { return Ok((0..t.cmgs).collect()) };
        let mut cmgs: Vec<u32> = cpus.iter().map(|cpu| (cpu - t.first_core) / t.cores_per_cmg).collect();
        cmgs.dedup();
        Ok(cmgs)
    }

    /// On which nodes the program's memory is to be.
    pub(super) fn policy(&self, spec: &Spec) -> Result<MemoryPolicy, Failure> {
        let t = &spec.topology;
        let machine: Vec<u32> = (t.first_node..t.first_node + t.cmgs).collect();
        let nodes = |option: &str, text: &str| {
            parse_nodes(text, &machine).map_err(|e| Failure::from(format!("--{option} {text}: {e}")))
        };
        Ok(match (&self.membind, &self.interleave) {
            (Some(text), _) => MemoryPolicy::Bind(nodes("membind", text)?),
            (None, Some(text)) => MemoryPolicy::Interleave(nodes("interleave", text)?),
            (None, None) => MemoryPolicy::Local,
        })
    }
}

/// Numbers and ranges of CPUs, with commas between them.
fn cpu_list(text: &str, all: &RangeInclusive<u32>) -> Result<Vec<u32>, String> {
    let valid = || format!("the machine's CPUs are {}-{}", all.start(), all.end());
    let number = |text: &str| {
        let number = text.parse::<u32>();
        number.map_err(|_| format!("'{text}' is no CPU number; write numbers and ranges such as 12-23,36; {}", valid()))
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

/// Checks that a machine has pages of so many bytes.
pub(super) fn is_page(machine: &Spec, bytes: u64) -> Result<(), String> {
    let sizes = &machine.pages.sizes;
    if sizes.contains(&bytes) {
        return Ok(());
    }
    let known: Vec<_> = sizes.iter().map(|&bytes| size(bytes)).collect();
    Err(format!("{} has no pages of size '{}'; choose from {}", machine.name, size(bytes), known.join(", ")))
}

fn pages(text: &str) -> Result<Pages, String> {
    let (name, pages) = text.split_once('=').ok_or("write it as SEGMENT=SIZE, such as bss=2MiB")?;
    let bytes = || integer(pages).ok_or_else(|| format!("'{pages}' is no size; write it as in 64KiB or 2MiB"));
    if let Some(calls) = name.strip_prefix("mmap@") {
        let pages = if pages == "thp" { MappingPages::Transparent } else { MappingPages::Size(bytes()?) };
        return CallPages::parse(calls, pages).map(Pages::Calls);
    }
    let all = spec::Pages::SEGMENTS.map(|(segment, _)| segment);
    let segments: Vec<_> = all.into_iter().filter(|&segment| name == "all" || name == segment).collect();
    if segments.is_empty() {
        return Err(format!("there is no segment '{name}'; choose from {}, all, mmap@CALL", all.join(", ")));
    }
    if pages == "thp" {
        return Err(format!(
            "only mmap@CALL can have thp by itself; for {name}, and all that a transparent huge page fits, use \
             -e XOS_MMM_L_HPAGE_TYPE=thp"
        ));
    }
    Ok(Pages::Segments(segments, bytes()?))
}
