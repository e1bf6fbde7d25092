//! Heap blocks that options assign to a cache sector by the calls that allocate them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use fxscope_linux::{Guest, Symbols};
use fxscope_pipeline::Pipeline;
use fxscope_sim::{BlockEvent, BlockObserver};
use serde::{Deserialize, Serialize};

use crate::call_sites::Calls;
use crate::objects::allocations::{Allocations, Change};

/// How calls are named in front of their place: `malloc` stands for all allocation functions.
pub(crate) const WHAT: &str = "malloc";

/// Most blocks of a process in sectors at the same time. Each change of them is passed on to the cores as a whole.
const MOST_BLOCKS: usize = 1 << 12;

/// Calls whose heap blocks belong to a sector.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SectorBlocks {
    /// The user's name for the calls.
    text: String,
    calls: Calls,
    /// The sector, 0 to 3.
    pub sector: u8,
}

impl SectorBlocks {
    /// Parses which calls of allocation functions are meant, as for page sizes of mappings: `FUNCTION`, `FUNCTION+OFFSET`, `FILE:LINE` or
    /// `0xADDRESS`.
    ///
    /// # Errors
    /// If the text is malformed; the message says how to write it.
    pub fn parse(text: &str, sector: u8) -> Result<SectorBlocks, String> {
        Ok(SectorBlocks { text: text.to_owned(), calls: Calls::parse(text, WHAT)?, sector })
    }
}

/// Calls of the program, found by their names.
struct Rule {
    named: SectorBlocks,
    calls: Vec<Range<u64>>,
    /// Blocks that they have allocated.
    blocks: u64,
    bytes: u64,
}

/// The blocks of a process that are in sectors.
#[derive(Default)]
struct Process {
    allocations: Allocations,
    blocks: BTreeMap<u64, (u64, u8)>,
    /// Number of changes of the blocks.
    version: u64,
}

/// Finds the heap blocks while the program runs, and assigns them to their sectors on each core.
pub(crate) struct Observer {
    rules: Vec<Rule>,
    /// Other data in sectors.
    data: Vec<(Range<u64>, u8)>,
    /// The program that has the calls.
    program: Vec<u8>,
    processes: BTreeMap<u32, Process>,
    /// For each core: the process whose blocks it knows, and the version of them.
    known: BTreeMap<u32, (u32, u64)>,
    /// Whether blocks were left out because there were too many.
    is_full: bool,
}

impl Observer {
    /// Returns the observer for these calls of the running program, whose file is at `path`; `data` are in sectors as well.
    ///
    /// # Errors
    /// Names calls that the program does not have.
    pub(crate) fn new(
        named: &[SectorBlocks],
        data: &[(Range<u64>, u8)],
        guest: &Guest,
        path: &Path,
    ) -> Result<Observer, String> {
        let rule = |named: &SectorBlocks, symbols: &Symbols| {
            let calls = named.calls.find(path, symbols, WHAT)?;
            Ok(Rule { named: named.clone(), calls, blocks: 0, bytes: 0 })
        };
        let rules = named.iter().map(|named| rule(named, guest.running_symbols()));
        Ok(Observer {
            rules: rules.collect::<Result<_, String>>()?,
            data: data.to_vec(),
            program: guest.program_file().to_vec(),
            processes: BTreeMap::new(),
            known: BTreeMap::new(),
            is_full: false,
        })
    }

    /// Returns the process of the guest, which begins with the blocks of the process that it is a copy of.
    fn process(&mut self, guest: &Guest) -> &mut Process {
        let pid = guest.pid();
        if !self.processes.contains_key(&pid) {
            let parent = guest.family().iter().find(|member| member.pid == pid).map_or(0, |member| member.parent);
            let blocks = self.processes.get(&parent).map(|process| process.blocks.clone()).unwrap_or_default();
            self.processes.insert(pid, Process { blocks, ..Process::default() });
        }
        self.processes.entry(pid).or_default()
    }

    /// The heap of the running process has changed.
    #[cold]
    fn changed(&mut self, guest: &Guest, change: Change) {
        let rule = change.allocated.and_then(|block| {
            // The last rule takes precedence.
            self.rules.iter().rposition(|rule| rule.calls.iter().any(|calls| calls.contains(&block.site)))
        });
        let sector = rule.map(|rule| self.rules[rule].named.sector);
        let process = self.process(guest);
        let before = process.blocks.len();
        process.blocks.remove(&change.freed);
        let mut has_changed = process.blocks.len() < before;
        let is_full = sector.is_some() && process.blocks.len() >= MOST_BLOCKS;
        if let (Some(block), Some(sector), false) = (change.allocated, sector, is_full) {
            process.blocks.insert(block.start, (block.start.saturating_add(block.bytes), sector));
            has_changed = true;
        }
        process.version += u64::from(has_changed);
        self.is_full |= is_full;
        if let (Some(block), Some(rule)) = (change.allocated, rule) {
            self.rules[rule].blocks += 1;
            self.rules[rule].bytes += block.bytes;
        }
    }

    /// Assigns the blocks of the running process to their sectors on the core that runs it.
    #[cold]
    fn assign(&mut self, guest: &Guest, pipeline: &mut Pipeline) {
        let is_same = guest.program_file() == self.program;
        let blocks = self.process(guest).blocks.iter().filter(|_| is_same);
        let blocks: Vec<_> = blocks.map(|(&start, &(end, sector))| (start..end, sector)).collect();
        let data = self.data.iter().cloned().chain(blocks).collect();
        let sectors = pipeline.memory.sectors().clone().by_address(data);
        pipeline.memory.assign_sectors(sectors);
    }

    /// Returns what has been assigned, for the notes of the run.
    pub(crate) fn notes(&self) -> Vec<String> {
        let note = |rule: &Rule| {
            let (text, sector) = (&rule.named.text, rule.named.sector);
            match rule.blocks {
                0 => format!("--sector assign{sector}={WHAT}@{text}: no call there has allocated memory."),
                n => format!(
                    "--sector assign{sector}={WHAT}@{text}: heap blocks of these calls were put into sector {sector} of the caches: {n}, \
                     with {} bytes.",
                    rule.bytes
                ),
            }
        };
        let full = self.is_full.then(|| {
            format!("--sector: further blocks are in the usual sector while a process has {MOST_BLOCKS} in sectors of their own.")
        });
        self.rules.iter().map(note).chain(full).collect()
    }
}

impl BlockObserver for Observer {
    /// A spin loop allocates nothing.
    fn may_skip_iterations(&self) -> bool {
        true
    }

    fn ran(&mut self, event: &mut BlockEvent<'_>) {
        let BlockEvent { guest, pipeline, .. } = event;
        let process = self.process(guest);
        if let Some(change) = process.allocations.ran(guest) {
            self.changed(guest, change);
        }
        let (core, now) = (guest.cpu_number(), (guest.pid(), self.process(guest).version));
        if self.known.insert(core, now) != Some(now) {
            self.assign(guest, pipeline);
        }
    }
}
