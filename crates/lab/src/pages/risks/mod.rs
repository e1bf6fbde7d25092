//! Finds accesses with a false mask to pages that do not exist, while a program runs.
//!
//! Inactive elements access no memory and cause no fault. If their addresses have no page, machines differ in the cost: some
//! translate the addresses of every access, and walk the tables in vain each time, whatever the page size.

mod show;

use std::collections::{BTreeMap, BTreeSet};

use fxscope_aarch64::table::{Ctx, decode};
use fxscope_isa::{Access, Reg, Shape};
use fxscope_linux::disasm::disassemble;
use fxscope_linux::pages::Backing;
use fxscope_linux::{Guest, Stdio};
use fxscope_machine::Spec;
use fxscope_record::{ALL, HotSpot, Run};
use fxscope_report::annotate::Source;
use fxscope_report::document::Document;
use fxscope_session::{FunctionSelection, Scenario, annotate};
use fxscope_sim::{BlockEvent, BlockObserver, MemoryAccess};
use serde::Serialize;
use serde_json::json;

use crate::{Error, Progress, runner};

/// The risks of a program, and the run that showed them.
pub struct Findings {
    /// The run.
    pub run: Run,
    /// Its machine.
    pub spec: Spec,
    /// What was found.
    pub risks: Risks,
}

/// Runs a program once and finds the instructions that address non-existent pages with a false mask. `stdio` are its
/// standard streams; `None`: those of this process.
///
/// # Errors
/// If the program is sampled, or cannot start.
pub fn risks(scenario: &Scenario, stdio: Option<Stdio>, progress: &dyn Progress) -> Result<Findings, Error> {
    scenario.refuse_sampling("pages risks")?;
    let prepared = scenario.prepare()?;
    let spec = prepared.spec().as_ref().clone();
    let mut finder = RiskFinder::new(&spec);
    let run = prepared.contained(stdio, |session| {
        runner::simulate(progress, session, |session, watch| session.run_observed(watch, &mut finder))
    })?;
    let risks = finder.finish(&run, &spec);
    Ok(Findings { run, spec, risks })
}

impl Findings {
    /// Returns the findings for people.
    #[must_use]
    pub fn document(&self) -> Document {
        show::document(&self.run, &self.spec, &self.risks)
    }

    /// Returns the findings for programs.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        json!({
            "tool": self.run.tool,
            "machine": self.run.machine,
            "program": self.run.program(),
            "arguments": self.run.command.get(1..).unwrap_or_default(),
            "page_bytes": self.spec.pages.normal,
            "cycles": self.risks.cycles,
            "first_fault_accesses": self.risks.by_design,
            "risks": self.risks.risks,
        })
    }
}

/// Whether an instruction reads or writes its active elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Inactive elements read as zero.
    Load,
    /// Inactive elements are not written.
    Store,
}

/// Missing pages of one kind that an instruction addressed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Places {
    /// Accesses that addressed any.
    pub accesses: u64,
    /// Number of different pages, in units of the machine's normal page.
    pub pages: u64,
    /// The first such address; `None` without accesses.
    pub first: Option<u64>,
}

/// An instruction that addressed non-existent pages with a false mask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Risk {
    /// Its address.
    pub address: u64,
    /// The function it is in, empty when unknown.
    pub function: String,
    /// Its distance from the function's start, bytes.
    pub offset: u64,
    /// Its disassembly; `None` if it could not be read.
    pub text: Option<String>,
    /// Its source line; `None` without debug information.
    pub line: Option<String>,
    /// What it does.
    pub kind: Kind,
    /// Whether it is a gather or a scatter: each element has its own address.
    pub indexed: bool,
    /// Times it was executed.
    pub executions: u64,
    /// Accesses that addressed missing pages.
    pub accesses: u64,
    /// … of which no element was active.
    pub none_active: u64,
    /// Memory that was never mapped, or must not be accessed at all.
    pub unmapped: Places,
    /// Memory that is mapped but has no page yet.
    pub untouched: Places,
    /// Cycles between its commits and the commit before each.
    pub cycles: u64,
}

/// Risks found in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Risks {
    /// The instructions, in descending order of such accesses.
    pub risks: Vec<Risk>,
    /// Accesses of first-fault and non-fault loads to missing pages: their purpose, so not a risk.
    pub by_design: u64,
    /// Cycles of the run.
    pub cycles: u64,
}

/// Missing pages of one instruction.
struct Found {
    function: String,
    offset: u64,
    text: Option<String>,
    by_design: bool,
    kind: Kind,
    indexed: bool,
    accesses: u64,
    none_active: u64,
    unmapped: Named,
    untouched: Named,
}

#[derive(Default)]
struct Named {
    accesses: u64,
    pages: BTreeSet<u64>,
    first: Option<u64>,
}

impl Named {
    fn note(&mut self, addresses: &[u64], page_bytes: u64) {
        let Some(&first) = addresses.first() else { return };
        self.accesses += 1;
        self.first.get_or_insert(first);
        self.pages.extend(addresses.iter().map(|address| address / page_bytes));
    }

    fn places(&self) -> Places {
        Places { accesses: self.accesses, pages: self.pages.len() as u64, first: self.first }
    }
}

/// Finds accesses with a false mask while a program runs ([`fxscope_session::Session::run_observed`]).
pub struct RiskFinder {
    page_bytes: u64,
    vector_bytes: usize,
    /// By process and address.
    found: BTreeMap<(u32, u64), Found>,
    /// Addresses of the current access: in unmapped memory, and in untouched memory.
    unmapped: Vec<u64>,
    untouched: Vec<u64>,
    /// Instructions found for the first time in the current block.
    fresh: Vec<(u32, u64)>,
}

impl RiskFinder {
    /// Returns a finder for programs on the machine `spec`.
    #[must_use]
    pub fn new(spec: &Spec) -> RiskFinder {
        RiskFinder {
            page_bytes: spec.pages.normal,
            vector_bytes: spec.clock.vector_bits as usize / 8,
            found: BTreeMap::new(),
            unmapped: Vec::new(),
            untouched: Vec::new(),
            fresh: Vec::new(),
        }
    }

    /// Checks a masked access. The pages of active elements exist by now, so a missing page was addressed by inactive
    /// elements.
    fn look(&mut self, process: &Guest, access: &MemoryAccess<'_>) {
        let (op, words) = (access.op, access.words);
        let kind = match op.access {
            Access::Load => Kind::Load,
            Access::Store => Kind::Store,
            _ => return,
        };
        self.unmapped.clear();
        self.untouched.clear();
        let mask = match op.shape {
            Shape::Single => return,
            Shape::Masked => {
                let first = place(words[0]);
                let last = first + u64::from(op.bytes).max(1) - 1;
                self.name(process, first);
                if first / self.page_bytes != last / self.page_bytes {
                    self.name(process, last / self.page_bytes * self.page_bytes);
                }
                words[1]
            }
            Shape::Indexed => {
                let step = usize::from(op.reg_esize);
                let inactive = words[1..].iter().enumerate().filter(|(i, _)| words[0] >> (i * step) & 1 == 0);
                inactive.for_each(|(_, &address)| self.name(process, place(address)));
                words[0]
            }
        };
        if !self.unmapped.is_empty() || !self.untouched.is_empty() {
            self.note(process, access, kind, mask == 0);
        }
    }

    fn name(&mut self, process: &Guest, address: u64) {
        match process.backing(address) {
            Backing::Page => {}
            Backing::Untouched => self.untouched.push(address),
            Backing::Nothing => self.unmapped.push(address),
        }
    }
}

impl RiskFinder {
    fn note(&mut self, process: &Guest, access: &MemoryAccess<'_>, kind: Kind, none_active: bool) {
        let key = (process.pid(), access.pc);
        let fresh = &mut self.fresh;
        let found = self.found.entry(key).or_insert_with(|| {
            fresh.push(key);
            let place = process.running_symbols().at(access.pc);
            Found {
                function: place.as_ref().map_or_else(String::new, |place| place.function.to_owned()),
                offset: place.map_or(0, |place| place.offset),
                text: None,
                by_design: false,
                kind,
                indexed: access.op.shape == Shape::Indexed,
                accesses: 0,
                none_active: 0,
                unmapped: Named::default(),
                untouched: Named::default(),
            }
        });
        found.accesses += 1;
        found.none_active += u64::from(none_active);
        found.unmapped.note(&self.unmapped, self.page_bytes);
        found.untouched.note(&self.untouched, self.page_bytes);
    }

    /// Reads an instruction that was found. Loads that write the first-fault register are excluded.
    fn read(&mut self, process: &mut Guest, key: (u32, u64)) {
        let mut bytes = [0; 4];
        for (byte, address) in bytes.iter_mut().zip(key.1..) {
            let Some(read) = process.read_byte(address) else { return };
            *byte = read;
        }
        let word = u32::from_le_bytes(bytes);
        let Some(found) = self.found.get_mut(&key) else { return };
        found.text = disassemble(word, key.1);
        let decoded = decode(word, &Ctx { pc: key.1, vl: self.vector_bytes });
        found.by_design = decoded.is_some_and(|decoded| decoded.info.dsts.iter().any(|dst| dst == Reg::FFR));
    }

    /// Returns the findings of the `run`; source lines are read from its files.
    #[must_use]
    pub fn finish(self, run: &Run, spec: &Spec) -> Risks {
        let designed = self.found.values().filter(|found| found.by_design);
        let by_design = designed.map(|found| found.accesses).sum();
        let found: Vec<_> = self.found.iter().filter(|(_, found)| !found.by_design).collect();
        let lines = lines(run, spec, found.iter().map(|(_, found)| found.function.as_str()));
        let mut risks: Vec<Risk> = found
            .into_iter()
            .map(|(&(_, address), found)| {
                let spot = spot(run, address, &found.function);
                Risk {
                    address,
                    function: found.function.clone(),
                    offset: found.offset,
                    text: found.text.clone(),
                    line: lines.get(&address).map(|source| format!("{}:{}", source.file, source.line)),
                    kind: found.kind,
                    indexed: found.indexed,
                    executions: spot.map_or(found.accesses, |spot| spot.executions),
                    accesses: found.accesses,
                    none_active: found.none_active,
                    unmapped: found.unmapped.places(),
                    untouched: found.untouched.places(),
                    cycles: spot.map_or(0, |spot| spot.cycles),
                }
            })
            .collect();
        risks.sort_by_key(|risk| (std::cmp::Reverse(risk.accesses), risk.address));
        Risks { risks, by_design, cycles: cycles(run) }
    }
}

impl BlockObserver for RiskFinder {
    /// Spin loops are not expected to store with a mask, but nothing guarantees it.
    fn may_skip_iterations(&self) -> bool {
        false
    }

    fn ran(&mut self, ran: &mut BlockEvent<'_>) {
        ran.accesses().for_each(|access| self.look(ran.guest, &access));
        while let Some(key) = self.fresh.pop() {
            self.read(ran.guest, key);
        }
    }
}

/// Strips the top byte of an address, which is ignored in translation.
fn place(address: u64) -> u64 {
    address & ((1 << 56) - 1)
}

/// Returns the cycles of the whole run.
fn cycles(run: &Run) -> u64 {
    let Some(region) = run.region(ALL) else { return 0 };
    (0..region.threads.len()).filter_map(|thread| region.count(thread, "CPU_CYCLES")).sum()
}

fn spot<'r>(run: &'r Run, address: u64, function: &str) -> Option<&'r HotSpot> {
    run.hot_spots.iter().find(|spot| spot.address == address && spot.function == function)
}

/// Returns the source lines of the instructions of `functions`, by address.
fn lines<'f>(run: &Run, spec: &Spec, functions: impl Iterator<Item = &'f str>) -> BTreeMap<u64, Source> {
    let ran = |name: &&str| run.hot_spots.iter().any(|spot| spot.function == *name);
    let names: BTreeSet<&str> = functions.filter(ran).collect();
    let wanted = FunctionSelection::Named(names.into_iter().map(str::to_owned).collect());
    // Without the file there are no lines; everything else is complete.
    let functions = annotate(run, None, spec, &wanted).map_or_else(|_| Vec::new(), |annotation| annotation.functions);
    let instructions = functions.into_iter().filter_map(|function| function.instructions).flatten();
    instructions.filter_map(|instruction| Some((instruction.address, instruction.source?))).collect()
}
