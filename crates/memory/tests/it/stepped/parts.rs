//! What the stepped memory system consists of: caches, buffers and messages of cores, L2 caches and their homes.

use std::collections::{HashMap, VecDeque};

use fxscope_calendar::Cycle;
use fxscope_machine::Spec;

/// One access of a core: it starts at the earliest `gap` cycles after the one before it.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub line: u64,
    pub write: bool,
    pub gap: Cycle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Shared,
    Exclusive,
    Modified,
}

/// A line of L1D; without a state while it is on its way.
pub struct L1Line {
    pub line: u64,
    pub state: Option<State>,
    pub used: u64,
}

/// A move-in buffer of L1D.
pub struct MoveIn {
    pub line: u64,
    /// Accesses that wait for it.
    pub waiting: Vec<usize>,
    /// The line's old copy is still there: only the right to write is asked for.
    pub upgrade: bool,
    /// L2 has answered; the answer is on its way.
    pub granted: bool,
    /// The place in L1D is free: what was there has left.
    pub room: bool,
    /// The line has come and waits for room.
    pub come: Option<State>,
    /// Claims that came before the line.
    pub claims: Vec<Claim>,
}

/// Another cache wants a line that this core has.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    pub line: u64,
    pub keeps: bool,
    /// The line leaves L2: nobody waits for it there.
    pub evicted: bool,
}

pub struct Core {
    pub cmg: usize,
    pub bit: u64,
    pub stream: Vec<Access>,
    pub next: usize,
    pub started: Cycle,
    pub done: Vec<Option<Cycle>>,
    pub sets: Vec<Vec<L1Line>>,
    pub move_ins: Vec<MoveIn>,
    /// Accesses without a move-in buffer.
    pub stalled: VecDeque<usize>,
    /// Requests on their way out, one a cycle.
    pub requests: VecDeque<Request>,
    /// Lines from L2 for the bus, and when they are there.
    pub fills: VecDeque<(Cycle, u64, State)>,
    /// Lines in move-out buffers for the bus, and when they are there.
    pub writeback_buffers: VecDeque<(Cycle, u64)>,
    /// Words of clean lines that have left, for the bus.
    pub words: usize,
    pub buffers_used: usize,
    /// Dirty lines that wait for a move-out buffer, with the lines they make room for.
    pub leaving: VecDeque<(u64, u64)>,
    pub bus_free: Cycle,
    /// L2's work for this core's hits; memory's for its misses.
    pub inner: Cycle,
    pub memory: Cycle,
}

#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub core: usize,
    pub line: u64,
    pub write: bool,
    pub upgrade: bool,
}

/// What asks for a bank of L2.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    Read(Request),
    WriteBack {
        core: usize,
        line: u64,
    },
    /// Another CMG claims a line.
    Remote(Remote),
}

/// Another CMG claims a line for the request.
#[derive(Clone, Copy, Debug)]
pub struct Remote {
    pub request: Request,
    pub keeps: bool,
    /// This CMG is to send the line.
    pub supplies: bool,
    /// The place among all that the home has decided.
    pub order: u64,
}

/// What a line of L2 that is busy waits for before it answers.
pub struct Busy {
    pub request: Option<Request>,
    pub remote: Option<Remote>,
    pub answers: usize,
    pub earliest: Cycle,
    /// Claims that the home has decided later than this wait for the end; none do before it has decided.
    pub order: u64,
    /// Whether others keep a copy in other CMGs.
    pub shared: bool,
}

pub struct L2Line {
    pub used: u64,
    pub valid: bool,
    pub dirty: bool,
    /// Other CMGs may have it.
    pub shared: bool,
    pub holders: u64,
    pub owner: Option<usize>,
    pub busy: Option<Busy>,
    /// Others that want it meanwhile, and since when.
    pub waiting: VecDeque<(Cycle, Work)>,
}

#[derive(Default)]
pub struct L2 {
    pub lines: HashMap<u64, L2Line>,
    pub banks: Vec<VecDeque<Work>>,
    /// Requests for memory: the line, who waits for it, or nobody for a write.
    pub channel: VecDeque<Option<Request>>,
    pub channel_free: f64,
    /// Lines that have left while cores had them: answers to come, and whether memory is behind.
    pub evicted: Vec<(u64, usize, bool)>,
    /// As home: the CMGs that have a line.
    pub having: HashMap<u64, u64>,
}

/// What happens at a time to come.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    ToBank {
        cmg: usize,
        work: Work,
    },
    CleanLeft {
        core: usize,
        line: u64,
    },
    ToCore {
        core: usize,
        claim: Claim,
    },
    FromCore {
        core: usize,
        claim: Claim,
        dirty: bool,
    },
    /// L2's answer leaves for the core.
    Leaves {
        request: Request,
        state: State,
        data: bool,
    },
    Filled {
        core: usize,
        line: u64,
        state: State,
    },
    Allowed {
        core: usize,
        line: u64,
    },
    BufferFree {
        core: usize,
    },
    Out {
        core: usize,
        line: u64,
        successor: u64,
    },
    /// L2 has found out that it misses the line.
    AtHome {
        request: Request,
    },
    ReadMemory {
        request: Request,
    },
    WriteMemory {
        line: u64,
    },
    /// A line that has just gone to another CMG goes to memory, too.
    Clean {
        cmg: usize,
        line: u64,
    },
    /// Something that a busy line waits for has come.
    Answer {
        request: Request,
        shared: bool,
    },
    Supply {
        request: Request,
        from: usize,
        shared: bool,
    },
}

pub struct Numbers {
    pub request: Cycle,
    pub fill: Cycle,
    pub move_in: Cycle,
    pub out_dirty: Cycle,
    pub out_clean: Cycle,
    pub to_l2: Cycle,
    pub word: Cycle,
    pub miss_detect: Cycle,
    pub hop: Cycle,
    /// Cycles of a line at a CMG's port to the ring, in or out.
    pub port: f64,
    pub l1_ways: usize,
    pub l1_sets: u64,
    pub move_ins: usize,
    pub writeback_buffers: usize,
    pub l2_ways: usize,
    pub l2_sets: u64,
    pub node_lines: u64,
    pub read: f64,
    pub write: f64,
}

impl Numbers {
    pub fn new(spec: &Spec) -> Numbers {
        let (l1, l2, t, ls) = (&spec.l1d, &spec.l2, &spec.l2_timing, &spec.load_store);
        let line = u64::from(l1.line_bytes);
        let per_cycle = spec.memory.peak_bytes_per_second as f64 / spec.clock.core_hz as f64;
        let read = line as f64 / (per_cycle * spec.memory.read_efficiency / 100.0);
        Numbers {
            request: t.request,
            fill: line / u64::from(t.fill_bytes_per_cycle),
            move_in: ls.move_in,
            out_dirty: ls.move_out_dirty,
            out_clean: ls.move_out_clean,
            to_l2: line / u64::from(t.writeback_bytes_per_cycle),
            word: t.release,
            miss_detect: t.miss_detect,
            hop: spec.ring.hop,
            port: line as f64 / f64::from(spec.ring.bytes_per_cycle) / (spec.ring.port_efficiency / 100.0),
            l1_ways: l1.ways as usize,
            l1_sets: l1.bytes / line / u64::from(l1.ways),
            move_ins: l1.miss_buffers as usize,
            writeback_buffers: ls.move_out_buffers as usize,
            l2_ways: (l2.ways - l2.reserved_ways) as usize,
            l2_sets: l2.bytes / line / u64::from(l2.ways),
            node_lines: spec.topology.node_bytes / line,
            read,
            write: read * spec.memory.write_cost,
        }
    }

    /// Set of L2 (manual, table 9-3).
    pub fn l2_set(&self, line: u64) -> u64 {
        let pa = line * 256;
        let hash = [34, 30, 29, 25, 21].iter().fold(0, |hash, &bit| hash ^ pa >> bit & 7);
        (hash << 8 ^ (pa >> 8 & 0x7ff)) % self.l2_sets
    }
}
