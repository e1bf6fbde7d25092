//! Options about where a program's memory is, and in pages of which size.

use fxscope::machine::settings::{integer, size};
use fxscope::machine::spec::{self, PAGE_SIZES};

/// Pages of the program's memory.
#[derive(clap::Args)]
pub(super) struct Placement {
    /// Page sizes of the program's segments, such as bss=2MiB,heap=64KiB, or all=64KiB: short for --set pages.bss=2MiB.
    /// They hold whatever the variables of the large-page library (XOS_MMM_L_…) say.
    #[arg(long, value_name = "SEGMENT=SIZE", value_delimiter = ',', value_parser = pages)]
    pages: Vec<Pages>,
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
