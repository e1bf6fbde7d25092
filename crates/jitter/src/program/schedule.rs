//! The order in which the steps of a node's ranks are replayed: the same on all nodes and in all repetitions, since
//! noise delays calls but does not change which message a call receives.
//!
//! Each rank runs until a call that has to wait. Then either messages are there for some of these calls, or all ranks
//! have reached the same collective: this ends a round.

use std::collections::{HashMap, VecDeque};

use super::{Call, Collective, Fault, Program};
use crate::network::Network;

/// What a rank does without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// All cores of the rank work.
    Work {
        /// The rank.
        rank: u32,
        /// For how long, nanoseconds; never 0.
        ns: u64,
    },
    /// The rank notes its time: when it has sent a message, or has begun to receive one.
    Note {
        /// The rank.
        rank: u32,
        /// Where it notes its time.
        slot: u32,
    },
}

/// A rank that waits until a noted time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    /// The rank that waits.
    pub rank: u32,
    /// Where the time is noted.
    pub slot: u32,
    /// Whether it also waits for the neighbouring nodes: it receives a message.
    pub receives: bool,
}

/// What ends a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoundEnd {
    /// Some ranks receive messages.
    Messages {
        /// Who waits for what.
        met: Vec<Met>,
        /// Sum of their sizes.
        bytes: u64,
    },
    /// All ranks of all nodes wait for each other.
    Collective {
        /// The operation.
        kind: Collective,
        /// Bytes that a node contributes.
        bytes: u64,
    },
    /// The end of the program: all wait for the last one.
    Finish,
}

/// Steps of all ranks up to a point where some have to wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// What ranks do before.
    pub ops: Vec<Op>,
    /// What they wait for.
    pub end: RoundEnd,
}

/// The order of a program's steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Number of ranks of a node.
    pub ranks: u32,
    /// Number of noted times that are needed at once.
    pub slots: u32,
    /// Rounds in order; the last one ends with [`RoundEnd::Finish`].
    pub rounds: Vec<Round>,
}

/// For each round of a schedule, how long its messages or its collective take on some number of nodes in addition to
/// what they take on one, nanoseconds.
pub type Costs = Vec<u64>;

impl Schedule {
    /// Puts the steps of a program into order.
    ///
    /// # Errors
    /// If the program is out of bounds, ranks disagree about collectives, or wait for messages that nobody sends.
    pub fn new(program: &Program) -> Result<Schedule, Fault> {
        program.check()?;
        let mut making = Making::new(program);
        loop {
            for rank in 0..program.ranks.len() {
                making.run(rank);
            }
            if !making.deliver() && making.gather()? {
                return Ok(Schedule { ranks: program.ranks.len() as u32, slots: making.slots, rounds: making.rounds });
            }
        }
    }

    /// Returns what each round costs on `nodes` nodes.
    #[must_use]
    pub fn costs(&self, network: &Network, nodes: u32) -> Costs {
        let more = |cost: &dyn Fn(u32) -> f64| (cost(nodes) - cost(1)).max(0.0).round() as u64;
        let of = |round: &Round| match round.end {
            RoundEnd::Messages { bytes, .. } => more(&|nodes| network.halo(nodes, bytes.div_ceil(6))),
            RoundEnd::Collective { kind, bytes } => more(&|nodes| network.collective(kind, nodes, bytes)),
            RoundEnd::Finish => 0,
        };
        self.rounds.iter().map(of).collect()
    }

    /// Returns the number of operations of a node per repetition.
    #[must_use]
    pub fn work(&self) -> usize {
        let met = |round: &Round| match &round.end {
            RoundEnd::Messages { met, .. } => met.len(),
            RoundEnd::Collective { .. } | RoundEnd::Finish => self.ranks as usize,
        };
        self.rounds.iter().map(|round| round.ops.len() + met(round)).sum()
    }

    /// Returns the numbers of exchanges and of collectives.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let count = |which: fn(&RoundEnd) -> bool| self.rounds.iter().filter(|round| which(&round.end)).count();
        (count(|end| matches!(end, RoundEnd::Messages { .. })), count(|end| matches!(end, RoundEnd::Collective { .. })))
    }

    /// Returns how long each section takes without noise, from one synchronisation of all ranks to the next,
    /// nanoseconds; saturates.
    #[must_use]
    pub fn quiet(&self, costs: &[u64]) -> Vec<u64> {
        let mut clocks = vec![0u64; self.ranks as usize];
        let mut noted = vec![0u64; self.slots as usize];
        let (mut sections, mut now) = (Vec::new(), 0u64);
        for (round, &cost) in self.rounds.iter().zip(costs) {
            for op in &round.ops {
                match *op {
                    Op::Work { rank, ns } => clocks[rank as usize] = clocks[rank as usize].saturating_add(ns),
                    Op::Note { rank, slot } => noted[slot as usize] = clocks[rank as usize],
                }
            }
            match &round.end {
                RoundEnd::Messages { met, .. } => {
                    for met in met {
                        let there = noted[met.slot as usize].saturating_add(if met.receives { cost } else { 0 });
                        let clock = &mut clocks[met.rank as usize];
                        *clock = there.max(*clock);
                    }
                }
                RoundEnd::Collective { .. } | RoundEnd::Finish => {
                    let next = clocks.iter().copied().max().unwrap_or(0).saturating_add(cost);
                    sections.push(next - now);
                    now = next;
                    clocks.fill(now);
                }
            }
        }
        sections
    }
}

/// A message on its way.
struct Message {
    slot: u32,
    bytes: u64,
    /// Whether its sender waits for the receiver.
    waits: bool,
}

/// A schedule in the making.
struct Making<'a> {
    program: &'a Program,
    /// For each rank, its next step.
    at: Vec<usize>,
    /// For each rank, work that is not in `ops` yet.
    work: Vec<u64>,
    /// Whether a rank has reached its next call and waits.
    waits: Vec<bool>,
    /// Messages by sender and receiver, in the order in which they are sent.
    messages: HashMap<(u32, u32), VecDeque<Message>>,
    free: Vec<u32>,
    slots: u32,
    ops: Vec<Op>,
    rounds: Vec<Round>,
}

impl<'a> Making<'a> {
    fn new(program: &'a Program) -> Making<'a> {
        let count = program.ranks.len();
        Making {
            program,
            at: vec![0; count],
            work: vec![0; count],
            waits: vec![false; count],
            messages: HashMap::new(),
            free: Vec::new(),
            slots: 0,
            ops: Vec::new(),
            rounds: Vec::new(),
        }
    }

    /// Runs a rank until it has to wait.
    fn run(&mut self, rank: usize) {
        while !self.waits[rank] {
            let Some(step) = self.program.ranks[rank].steps.get(self.at[rank]) else {
                self.work[rank] += self.program.ranks[rank].rest;
                self.do_work(rank);
                self.waits[rank] = true;
                return;
            };
            self.work[rank] += step.compute;
            self.do_work(rank);
            match step.call {
                Call::Send { to, bytes } => {
                    self.send(rank, to, bytes, false);
                    self.pass(rank);
                }
                Call::SynchronousSend { to, bytes } => {
                    self.send(rank, to, bytes, true);
                    self.waits[rank] = true;
                }
                Call::Receive { .. } | Call::Collective { .. } => self.waits[rank] = true,
            }
        }
    }

    fn do_work(&mut self, rank: usize) {
        let ns = std::mem::take(&mut self.work[rank]);
        if ns > 0 {
            self.ops.push(Op::Work { rank: rank as u32, ns });
        }
    }

    fn send(&mut self, rank: usize, to: u32, bytes: u64, waits: bool) {
        let slot = self.note(rank);
        self.messages.entry((rank as u32, to)).or_default().push_back(Message { slot, bytes, waits });
    }

    /// Notes the time of a rank.
    fn note(&mut self, rank: usize) -> u32 {
        let slot = self.free.pop().unwrap_or(self.slots);
        self.slots = self.slots.max(slot + 1);
        self.ops.push(Op::Note { rank: rank as u32, slot });
        slot
    }

    /// Continues after the call that a rank has reached.
    fn pass(&mut self, rank: usize) {
        self.work[rank] = self.program.ranks[rank].steps[self.at[rank]].copy;
        self.at[rank] += 1;
        self.waits[rank] = false;
    }

    /// Delivers the messages that are there to the ranks that wait for them; returns whether there are any.
    fn deliver(&mut self) -> bool {
        let (mut met, mut sum, mut passed) = (Vec::new(), 0u64, Vec::new());
        for rank in 0..self.at.len() {
            let Some(Call::Receive { from }) = self.call(rank) else { continue };
            let queue = self.messages.get_mut(&(from, rank as u32));
            let Some(message) = queue.and_then(VecDeque::pop_front) else { continue };
            met.push(Met { rank: rank as u32, slot: message.slot, receives: true });
            passed.push(rank);
            sum = sum.saturating_add(message.bytes);
            if message.waits {
                let slot = self.note(rank);
                met.push(Met { rank: from, slot, receives: false });
                passed.push(from as usize);
            }
        }
        if met.is_empty() {
            return false;
        }
        self.free.extend(met.iter().map(|met| met.slot));
        passed.into_iter().for_each(|rank| self.pass(rank));
        let ops = std::mem::take(&mut self.ops);
        self.rounds.push(Round { ops, end: RoundEnd::Messages { met, bytes: sum } });
        true
    }

    /// The call that a rank has reached; `None` at its end.
    fn call(&self, rank: usize) -> Option<Call> {
        self.program.ranks[rank].steps.get(self.at[rank]).map(|step| step.call)
    }

    /// Ends a round with the collective that all ranks have reached; returns whether this is the end of the program.
    fn gather(&mut self) -> Result<bool, Fault> {
        let calls: Vec<Option<Call>> = (0..self.at.len()).map(|rank| self.call(rank)).collect();
        let kind = |call: &Option<Call>| match call {
            Some(Call::Collective { kind, .. }) => Some(*kind),
            _ => None,
        };
        if let Some(rank) = calls.iter().position(|call| call.is_some() && kind(call).is_none()) {
            return Err(self.stuck(rank, calls[rank]));
        }
        let first = kind(&calls[0]);
        if let Some(rank) = calls.iter().position(|call| kind(call) != first) {
            let name = |kind: Option<Collective>| kind.map_or("its end", Collective::name);
            let what = format!(
                "rank {rank} is at {}, while rank 0 is at {}; all ranks must call the same collectives in the same order, \
                 so those of a part of the ranks cannot be replayed",
                name(kind(&calls[rank])),
                name(first)
            );
            return Err(Fault { rank, step: self.at[rank], what });
        }
        let ops = std::mem::take(&mut self.ops);
        let Some(kind) = first else {
            self.rounds.push(Round { ops, end: RoundEnd::Finish });
            return Ok(true);
        };
        let bytes =
            calls.iter().flatten().map(|call| if let Call::Collective { bytes, .. } = call { *bytes } else { 0 });
        let bytes = if kind.adds_up() { bytes.fold(0, u64::saturating_add) } else { bytes.max().unwrap_or(0) };
        self.rounds.push(Round { ops, end: RoundEnd::Collective { kind, bytes } });
        (0..self.at.len()).for_each(|rank| self.pass(rank));
        Ok(false)
    }

    /// Says why a rank cannot continue.
    fn stuck(&self, rank: usize, call: Option<Call>) -> Fault {
        let what = match call {
            Some(Call::Receive { from }) => {
                format!(
                    "it waits for a message of rank {from}, which sends none before it waits itself; add the send, or remove this"
                )
            }
            Some(Call::Send { to, .. } | Call::SynchronousSend { to, .. }) => {
                format!("rank {to} does not receive this message before it waits itself; add the receive, or use send")
            }
            Some(Call::Collective { .. }) | None => "it waits forever".to_owned(),
        };
        Fault { rank, step: self.at[rank], what }
    }
}
