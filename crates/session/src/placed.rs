//! Data whose pages options put on a memory node.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use fxscope_linux::pages::SiteNode;
use fxscope_linux::{Guest, Symbols};
use fxscope_machine::settings::size;
use fxscope_sim::{BlockEvent, BlockObserver};
use serde::{Deserialize, Serialize};

use crate::call_sites::Calls;
use crate::mapping;
use crate::named_data::NamedData;
use crate::objects::allocations::{Allocations, Block};
use crate::sector_blocks::WHAT;

/// Data, and the node for their pages.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct PlaceOption {
    what: What,
    /// The node, as `--membind` names one.
    pub node: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
enum What {
    Data(NamedData),
    /// Heap blocks, by the calls that allocate them.
    Blocks {
        text: String,
        calls: Calls,
    },
    /// Mappings, by the calls that make them.
    Mappings {
        text: String,
        calls: Calls,
    },
}

impl PlaceOption {
    /// Parses `DATA=NODE`: data of the program are named as for a cache sector, heap blocks as `malloc@CALL`, mappings as
    /// `mmap@CALL`.
    ///
    /// # Errors
    /// If the text is malformed; the message says how to write it.
    pub fn parse(text: &str) -> Result<PlaceOption, String> {
        let how = || format!("'{text}': write DATA=NODE, such as table=cxl or {WHAT}@main+0x40=8");
        let (data, node) = text.rsplit_once('=').filter(|(_, node)| !node.is_empty()).ok_or_else(how)?;
        let text = data.to_owned();
        let what = match data.split_once('@') {
            Some((WHAT, calls)) => What::Blocks { text, calls: Calls::parse(calls, WHAT)? },
            Some((mapping::WHAT, calls)) => What::Mappings { text, calls: Calls::parse(calls, mapping::WHAT)? },
            _ => What::Data(NamedData::parse(data)?),
        };
        Ok(PlaceOption { what, node: node.to_owned() })
    }

    /// Returns whether it means heap blocks.
    #[must_use]
    pub fn is_of_blocks(&self) -> bool {
        matches!(self.what, What::Blocks { .. })
    }
}

/// What options have placed in a run.
#[derive(Default)]
pub(crate) struct Placed {
    /// For each option, its text, the node, and the bytes of its data and of the pages that were put there.
    data: Vec<(String, u32, u64, u64)>,
    /// For each option about mappings, its text, the node, and its rules among those of the guest.
    mappings: Vec<(String, u32, Range<usize>)>,
    blocks: Option<Observer>,
}

impl Placed {
    /// Puts the pages of data on their nodes, and prepares to do so for heap blocks. `path` is the file of the running program.
    ///
    /// # Errors
    /// Names data or calls that the program does not have, and data that fill no page.
    pub(crate) fn new(options: &[(PlaceOption, u32)], guest: &mut Guest, path: &Path) -> Result<Placed, String> {
        let mut placed = Placed::default();
        let (mut rules, mut nodes) = (Vec::new(), Vec::new());
        for (option, node) in options {
            match &option.what {
                What::Data(named) => {
                    let range = named.find(guest.running_symbols())?;
                    let bytes = range.end - range.start;
                    let pages = guest.place_pages(range.clone(), *node);
                    if pages == 0 {
                        return Err(fills_no_page(&named.text, range, guest));
                    }
                    placed.data.push((named.text.clone(), *node, bytes, pages));
                }
                What::Blocks { text, calls } => {
                    rules.push(Rule::new(text, calls, *node, guest.running_symbols(), path)?)
                }
                What::Mappings { text, calls } => {
                    let first = nodes.len();
                    let found = calls.find(path, guest.running_symbols(), mapping::WHAT)?;
                    nodes.extend(found.into_iter().map(|calls| SiteNode { calls, node: *node }));
                    placed.mappings.push((text.clone(), *node, first..nodes.len()));
                }
            }
        }
        guest.set_mapping_nodes(nodes);
        if !rules.is_empty() {
            let program = guest.program_file().to_vec();
            placed.blocks = Some(Observer { rules, program, allocations: BTreeMap::new() });
        }
        Ok(placed)
    }

    /// Returns the observer of heap blocks, if some are placed.
    pub(crate) fn observer(&mut self) -> Option<&mut dyn BlockObserver> {
        self.blocks.as_mut().map(|observer| observer as &mut dyn BlockObserver)
    }

    /// Returns what has been placed in `guest`, for the notes of the run.
    pub(crate) fn notes(&self, guest: &Guest) -> impl Iterator<Item = String> + '_ {
        let uses: Vec<u64> = guest.mapping_node_uses().collect();
        let of_data = |(text, node, bytes, pages): &(String, u32, u64, u64)| {
            format!("--place {text}: {} of pages for its {} are on node {node}.", size(*pages), size(*bytes))
        };
        let of_rule = |rule: &Rule| match rule.blocks {
            0 => format!("--place {}: no call there has allocated memory.", rule.text),
            n => format!(
                "--place {}: {} of pages for {} in heap blocks of these calls, {n} in number, are on node {}.",
                rule.text,
                size(rule.pages),
                size(rule.bytes),
                rule.node
            ),
        };
        // After exec, another program has no such rules.
        let of_calls = move |(text, node, rules): &(String, u32, Range<usize>)| match uses
            .get(rules.clone())
            .map_or(0, |uses| uses.iter().sum::<u64>())
        {
            0 => format!("--place {text}: no call there has mapped memory."),
            n => format!("--place {text}: mappings of these calls, {n} in number, are on node {node}."),
        };
        let of_mappings = self.mappings.iter().map(of_calls);
        self.data.iter().map(of_data).chain(of_mappings).chain(self.blocks.iter().flat_map(|of| &of.rules).map(of_rule))
    }
}

/// Explains why data cannot be placed.
fn fills_no_page(text: &str, range: Range<u64>, guest: &Guest) -> String {
    let page = guest.memory().region_at(range.start).map_or(0, |region| guest.page_bytes(region.segment));
    format!(
        "{text} has {} and fills more than half of no page of {}; choose smaller pages with --pages, or larger data",
        size(range.end - range.start),
        size(page)
    )
}

/// Calls whose heap blocks are placed.
struct Rule {
    text: String,
    calls: Vec<Range<u64>>,
    node: u32,
    /// Blocks that they have allocated, their bytes, and the bytes of pages that were put on the node for them.
    blocks: u64,
    bytes: u64,
    pages: u64,
}

impl Rule {
    fn new(text: &str, calls: &Calls, node: u32, symbols: &Symbols, path: &Path) -> Result<Rule, String> {
        let calls = calls.find(path, symbols, WHAT)?;
        Ok(Rule { text: text.to_owned(), calls, node, blocks: 0, bytes: 0, pages: 0 })
    }
}

/// Finds heap blocks while the program runs, and puts their pages on their nodes.
struct Observer {
    rules: Vec<Rule>,
    /// The program that has the calls.
    program: Vec<u8>,
    /// By process.
    allocations: BTreeMap<u32, Allocations>,
}

impl Observer {
    #[cold]
    fn allocated(&mut self, guest: &mut Guest, block: Block) {
        // The last rule takes precedence.
        let of_block = |rule: &&mut Rule| rule.calls.iter().any(|calls| calls.contains(&block.site));
        let Some(rule) = self.rules.iter_mut().rev().find(of_block) else { return };
        if guest.program_file() != self.program {
            return;
        }
        rule.blocks += 1;
        rule.bytes += block.bytes;
        rule.pages += guest.place_pages(block.start..block.start.saturating_add(block.bytes), rule.node);
    }
}

impl BlockObserver for Observer {
    /// A spin loop allocates nothing.
    fn may_skip_iterations(&self) -> bool {
        true
    }

    fn ran(&mut self, event: &mut BlockEvent<'_>) {
        let guest = &mut *event.guest;
        let change = self.allocations.entry(guest.pid()).or_default().ran(guest);
        if let Some(block) = change.and_then(|change| change.allocated) {
            self.allocated(guest, block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_and_heap_blocks_have_a_node_behind_the_last_equals_sign() {
        let data = PlaceOption::parse("table+0x100:64=cxl").expect("well-formed");
        assert_eq!((data.node.as_str(), data.is_of_blocks()), ("cxl", false));
        let blocks = PlaceOption::parse("malloc@main+0x40=8").expect("well-formed");
        assert_eq!((blocks.node.as_str(), blocks.is_of_blocks()), ("8", true));
        let mappings = PlaceOption::parse("mmap@main=cxl").expect("well-formed");
        assert!(matches!(mappings.what, What::Mappings { .. }) && !mappings.is_of_blocks());
        for text in ["table", "table=", "=cxl", "malloc@=cxl", "mmap@=cxl"] {
            assert!(PlaceOption::parse(text).is_err(), "{text}");
        }
    }
}
