//! Pipeline traces for the viewer Konata, in its format Kanata 0004.
//!
//! One row of the viewer is a micro-operation. Its stages, in lane 0, follow each other without gaps:
//!
//! | Stage | The manual's stages | Until |
//! |---|---|---|
//! | `F` | IA to PD3 | it can be decoded |
//! | `I` | waits in the instruction buffer or at decode | it is dispatched |
//! | `D` | D | one cycle later |
//! | `P` | DT to B2: waits in its station, reads registers | its first flow starts |
//! | `X`, `AX`, `BX` | X1 to Xn; A to R of memory accesses; branches | its results are available |
//! | `U` | U, UT: results are written | it may commit |
//! | `C` | waits for older micro-operations and commits | it has committed |
//! | `W` | W | one cycle later |
//!
//! Lane 1 shows what a load waits for beyond a hit in L1: `L1` (the load/store pipes, an older store, its further
//! flows), `L2` or `Mem`. Konata draws arrows between stages with an X in their names, from the producer of an operand
//! to its consumer; a memory access therefore has a single such stage.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{self, Write};

use fxscope_calendar::Cycle;
use fxscope_host::text::printable;
use fxscope_linux::disasm::disassemble;
use fxscope_memory::Level;
use fxscope_pipeline::bind::{Action, READY};
use fxscope_pipeline::dispatch::Station;
use fxscope_pipeline::uop_probe::StageTimes;
use fxscope_sim::{Traced, Tracer};

use crate::pipes;

/// A command of the log, ordered by cycle, then by row, then by its order in the row.
type Due = Reverse<(Cycle, u64, u32, String)>;

/// Writes the trace of a run while it runs.
pub struct Konata<W> {
    out: W,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
    /// The cycle of the command written last; `None` before the first.
    now: Option<Cycle>,
    /// Number of rows so far: the index of the next one.
    rows: u64,
    /// Commands that must wait, since later rows may come before them.
    due: BinaryHeap<Due>,
    /// The row that produced each register's value.
    producers: [Option<u64>; 256],
    /// The thread whose registers these are.
    thread: u32,
    /// Disassembly by address and word, cached since it is slow.
    texts: HashMap<(u64, u32), String>,
}

impl<W: Write> Konata<W> {
    /// Returns a trace without rows that writes to `out`.
    pub fn new(out: W) -> Konata<W> {
        Konata {
            out,
            failed: None,
            now: None,
            rows: 0,
            due: BinaryHeap::new(),
            producers: [None; 256],
            thread: 0,
            texts: HashMap::new(),
        }
    }

    /// Returns the number of micro-operations traced so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes the remaining commands; returns the writer.
    ///
    /// # Errors
    /// If something could not be written, now or before.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_before(Cycle::MAX);
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    /// Writes the commands before `cycle`.
    fn write_before(&mut self, cycle: Cycle) {
        while let Some(Reverse((at, ..))) = self.due.peek()
            && *at < cycle
            && self.failed.is_none()
        {
            let Some(Reverse((at, _, _, command))) = self.due.pop() else { break };
            self.failed = self.write(at, &command).err();
        }
    }

    fn write(&mut self, at: Cycle, command: &str) -> io::Result<()> {
        match self.now {
            None => write!(self.out, "Kanata\t0004\nC=\t{at}\n")?,
            Some(now) if at > now => writeln!(self.out, "C\t{}", at - now)?,
            Some(_) => {}
        }
        self.now = Some(at);
        writeln!(self.out, "{command}")
    }

    /// Returns the rows whose results this one uses, each once.
    fn operands(&self, traced: &Traced<'_>) -> Vec<u64> {
        let used = traced.uop.srcs.iter().chain(&traced.uop.addr_srcs).filter(|&&src| src != READY);
        let mut rows: Vec<u64> = used.filter_map(|&src| self.producers[usize::from(src)]).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    fn text(&mut self, pc: u64, word: Option<u32>) -> &str {
        let Some(word) = word else { return "" };
        self.texts
            .entry((pc, word))
            .or_insert_with(|| disassemble(word, pc).unwrap_or_else(|| format!(".inst {word:#010x}")))
    }

    /// Returns the label of the row.
    fn label(&mut self, traced: &Traced<'_>) -> String {
        let Traced { pc, part, parts, .. } = *traced;
        let mut label = format!("{pc:#x} {}", self.text(pc, traced.word));
        if parts > 1 {
            label += &format!(" ({}/{parts})", part + 1);
        }
        if let Some(place) = &traced.place {
            label += &format!("  {}+{:#x}", place.function, place.offset);
        }
        // Names come from the program's file and must not end a field.
        printable(&label).into_owned()
    }
}

impl<W: Write> Tracer for Konata<W> {
    fn passed(&mut self, traced: &Traced<'_>) {
        let (p, row) = (traced.times, self.rows);
        self.rows += 1;
        // Instructions are fetched in order, so no later row comes before this.
        self.write_before(p.fetched);
        if traced.thread != self.thread {
            (self.thread, self.producers) = (traced.thread, [None; 256]);
        }
        let mut commands = Commands { row, number: 0, due: &mut Vec::new() };
        commands.at(p.fetched, format!("I\t{row}\t{}\t{}", traced.instruction, traced.thread));
        commands.at(p.fetched, format!("L\t{row}\t0\t{}", self.label(traced)));
        commands.at(p.fetched, format!("L\t{row}\t1\t{}", details(traced)));
        for stage in &stages(traced) {
            commands.stage(0, stage);
            if stage.executes {
                for producer in self.operands(traced) {
                    commands.at(stage.from, format!("W\t{row}\t{producer}\t0"));
                }
            }
        }
        if let Some(wait) = &wait(traced) {
            commands.stage(1, wait);
        }
        commands.at(gone(p), format!("R\t{row}\t{row}\t0"));
        self.due.extend(commands.due.drain(..));
        for &dst in traced.uop.dsts.iter().filter(|&&dst| dst != READY) {
            self.producers[usize::from(dst)] = Some(row);
        }
    }
}

/// The commands of one row.
struct Commands<'a> {
    row: u64,
    number: u32,
    due: &'a mut Vec<Due>,
}

impl Commands<'_> {
    fn at(&mut self, cycle: Cycle, command: String) {
        self.due.push(Reverse((cycle, self.row, self.number, command)));
        self.number += 1;
    }

    fn stage(&mut self, lane: u32, stage: &Stage) {
        self.at(stage.from, format!("S\t{}\t{lane}\t{}", self.row, stage.name));
        self.at(stage.to, format!("E\t{}\t{lane}\t{}", self.row, stage.name));
    }
}

/// A stage, in cycles `[from, to)`.
struct Stage {
    name: &'static str,
    from: Cycle,
    to: Cycle,
    /// Whether operands are used at its start.
    executes: bool,
}

/// Returns the cycle in which the micro-operation has left the pipeline.
fn gone(p: &StageTimes) -> Cycle {
    p.committed + 2
}

/// Returns the stages of lane 0, without empty ones.
fn stages(traced: &Traced<'_>) -> Vec<Stage> {
    let p = traced.times;
    let execution = match traced.uop.action {
        Action::Load | Action::Store | Action::Prefetch | Action::Zero => "AX",
        Action::BranchDirect | Action::BranchOnFlags | Action::BranchExecuted => "BX",
        Action::Compute | Action::StoreData | Action::None => "X",
    };
    let ends = [
        ("F", p.decodable),
        ("I", p.dispatched),
        ("D", p.dispatched + 1),
        ("P", p.started),
        // Results of long loads are available a cycle after the load may commit.
        (execution, p.result.map_or(p.complete, |result| result.min(p.complete))),
        ("U", p.complete),
        ("C", p.committed + 1),
        ("W", gone(p)),
    ];
    let mut from = p.fetched;
    let mut stages = Vec::with_capacity(ends.len());
    for (name, to) in ends {
        if to > from {
            stages.push(Stage { name, from, to, executes: name == execution });
            from = to;
        }
    }
    stages
}

/// Returns the wait of a load beyond the latency of a hit in L1.
fn wait(traced: &Traced<'_>) -> Option<Stage> {
    let p = traced.times;
    let latency = u64::from(traced.uop.load_latency);
    let found = p.result.filter(|_| traced.uop.action == Action::Load)?.saturating_sub(latency);
    (found > p.started).then_some(Stage { name: level(p.level), from: p.started, to: found, executes: false })
}

fn level(level: Level) -> &'static str {
    match level {
        Level::L1 => "L1",
        Level::L2 => "L2",
        Level::Memory => "Mem",
    }
}

fn station(station: Station) -> &'static str {
    match station {
        Station::Rse0 => "RSE0",
        Station::Rse1 => "RSE1",
        Station::Rsa0 => "RSA0",
        Station::Rsa1 => "RSA1",
        Station::Rsbr => "RSBR",
    }
}

/// Returns the tooltip of the row.
fn details(traced: &Traced<'_>) -> String {
    let p = traced.times;
    let mut lines = vec![
        format!("instruction {}, micro-operation {} of {}", traced.instruction, traced.part + 1, traced.parts),
        format!("station {}", station(p.station)),
    ];
    if !p.pipes.is_empty() {
        lines.push(format!("pipes {}", pipes::names(p.pipes).collect::<Vec<_>>().join(" ")));
    }
    if traced.uop.action == Action::Load {
        lines.push(format!("data from {}", level(p.level)));
    }
    let result = p.result.map_or_else(String::new, |cycle| format!(", result {cycle}"));
    lines.push(format!(
        "cycles: fetched {}, decodable {}, dispatched {}, started {}{result}, complete {}, committed {}",
        p.fetched, p.decodable, p.dispatched, p.started, p.complete, p.committed
    ));
    // The format escapes line ends like this.
    lines.join("\\n")
}
