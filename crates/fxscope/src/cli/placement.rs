//! Options about where a program's memory is, and in pages of which size.

use fxscope::linux::pages::{MemoryPolicy, parse_nodes};
use fxscope::machine::Spec;
use fxscope::machine::settings::{integer, size};
use fxscope::machine::spec::{self, PAGE_SIZES};

use super::Failure;

/// Pages of the program's memory.
#[derive(clap::Args)]
pub(super) struct Placement {
    /// Page sizes of the program's segments, such as bss=2MiB,heap=64KiB, or all=64KiB: short for --set pages.bss=2MiB.
    /// They hold whatever the variables of the large-page library (XOS_MMM_L_…) say.
    #[arg(long, value_name = "SEGMENT=SIZE", value_delimiter = ',', value_parser = pages)]
    pages: Vec<Pages>,
    /// Take the program's memory from these nodes only, as numactl --membind does: 4, 4,5, 4-5, +0, !4 or all.
    #[arg(long, value_name = "NODES", conflicts_with = "interleave")]
    membind: Option<String>,
    /// Put the program's pages on these nodes in turn, as numactl --interleave does.
    #[arg(long, value_name = "NODES")]
    interleave: Option<String>,
}

/// Segments and the page size that they get.
#[derive(Clone)]
struct Pages {
    segments: Vec<&'static str>,
    bytes: u64,
}

impl Placement {
    /// The settings of the machine that the options are short for.
    pub(super) fn settings(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let setting = |pages: &Pages| {
            let bytes = size(pages.bytes);
            pages.segments.iter().map(|name| (format!("pages.{name}"), bytes.clone())).collect::<Vec<_>>()
        };
        self.pages.iter().flat_map(setting)
    }
}

impl Placement {
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

fn pages(text: &str) -> Result<Pages, String> {
    let (name, bytes) = text.split_once('=').ok_or("write it as SEGMENT=SIZE, such as bss=2MiB")?;
    let all = spec::Pages::SEGMENTS.map(|(segment, _)| segment);
    let segments: Vec<_> = all.into_iter().filter(|&segment| name == "all" || name == segment).collect();
    if segments.is_empty() {
        return Err(format!("there is no segment '{name}'; choose from {}, all", all.join(", ")));
    }
    let bytes = integer(bytes).filter(|bytes| PAGE_SIZES.contains(bytes)).ok_or_else(|| {
        let sizes: Vec<_> = PAGE_SIZES.iter().map(|&bytes| size(bytes)).collect();
        format!("no pages of size '{bytes}'; choose from {}", sizes.join(", "))
    })?;
    Ok(Pages { segments, bytes })
}
