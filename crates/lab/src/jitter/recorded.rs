//! The program that the ranks of a recorded run execute, from the recorded calls of MPI.
//!
//! The record says when each call began and ended, and between which ranks. From these follow what each call waited for,
//! and how long it took apart from that. What is not known (which request a wait completes, the partner of a receive from any
//! rank) follows from the order of the calls in time, so that no call waits for a later one.

mod matching;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fxscope_jitter::program::{Call, Collective, Program, Rank, Schedule, Step};
use fxscope_record::{Mode, MpiCall, Run};

use matching::{Matches, Message};

use super::replay::file_name;
use crate::Error;

/// A program, and what is assumed about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The program.
    pub program: Program,
    /// Name of the file that it is from, or of the program that was recorded.
    pub name: String,
    /// Sentences about what the source does not say.
    pub notes: Vec<String>,
}

/// What a call does for the replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Sends; whether the call may wait for the receiver.
    Send {
        may_wait: bool,
    },
    /// Sends one message and receives another.
    Exchange,
    /// Waits for a message.
    Receive,
    /// Asks for a message, for which a later call waits.
    Post,
    /// Waits for the messages asked for.
    Wait,
    Collective(Collective),
    /// All else counts as computation.
    Other,
}

/// A call of a rank.
#[derive(Clone, Copy, Debug)]
struct Event {
    kind: Kind,
    bytes: Option<u64>,
    partner: Option<u32>,
    begin: u64,
    end: u64,
}

/// The calls of a rank between the beginning and the end of its part of the parallel program.
#[derive(Clone, Debug, Default)]
struct Calls {
    events: Vec<Event>,
    begin: u64,
    end: u64,
}

/// Returns the program that the ranks of a run execute.
///
/// # Errors
/// If the run has no ranks, no calls with times, or calls that cannot be replayed; the message says what to do.
pub fn program_of(run: &Run) -> Result<Recorded, Error> {
    let all = calls(run)?;
    let begin = all.iter().map(|calls| calls.begin).min().unwrap_or(0);
    let matches = Matches::new(&all.iter().map(|calls| &calls.events[..]).collect::<Vec<_>>());
    let gathered = collectives(&all);
    let rank = |(rank, calls): (usize, &Calls)| Building::new(rank, begin, &matches, &gathered).rank(calls);
    let program = Program { threads: threads(run), ranks: all.iter().enumerate().map(rank).collect() };
    if program.steps() == 0 {
        return Err(Error::Request(
            "the ranks of the run never wait for each other: there are no messages between them and no collectives, so there is \
             nothing to replay; run a program that communicates"
                .to_owned(),
        ));
    }
    Schedule::new(&program).map_err(|fault| Error::Request(format!("the run cannot be replayed: {fault}")))?;
    Ok(Recorded { program, name: file_name(Path::new(run.subject())), notes: notes(run, &all, &matches) })
}

/// The calls of all ranks, by rank.
fn calls(run: &Run) -> Result<Vec<Calls>, Error> {
    let request = |message: String| Err(Error::Request(message));
    if run.mode == Mode::Functional {
        return request(
            "the run has no times: it was functional; record one with fxscope run --mode timing -o FILE.fxr".into(),
        );
    }
    let parallel = &run.parallel;
    let ranks: BTreeMap<u32, u32> = parallel.processes.iter().filter_map(|p| Some((p.rank?, p.number))).collect();
    if ranks.is_empty() || parallel.calls.is_empty() {
        return request(
            "the run has no recorded calls of MPI; run a program of several ranks, whose functions of MPI have symbols, with \
             fxscope run -o FILE.fxr"
                .into(),
        );
    }
    if let Some((missing, _)) = (0..).zip(ranks.keys()).find(|(expected, rank)| expected != *rank) {
        return request(format!(
            "rank {missing} is missing in the run: its process called no function of MPI, or did not end"
        ));
    }
    let of_rank = |process: &u32| {
        let mut own: Vec<&MpiCall> = parallel.calls.iter().filter(|call| call.process == *process).collect();
        own.sort_by_key(|call| (call.begin_ns, call.end_ns));
        between_init_and_finalize(run, &own)
    };
    Ok(ranks.values().map(of_rank).collect())
}

fn between_init_and_finalize(run: &Run, own: &[&MpiCall]) -> Calls {
    let name = |call: &MpiCall| run.parallel.functions.get(call.function as usize).map_or("", |f| f.name.as_str());
    let mut calls = Calls { begin: own.first().map_or(0, |call| call.begin_ns), ..Calls::default() };
    calls.end = calls.begin;
    for call in own {
        match name(call) {
            "MPI_Init" | "MPI_Init_thread" => {
                calls.events.clear();
                calls.begin = call.end_ns;
                calls.end = call.end_ns;
            }
            "MPI_Finalize" => {
                calls.end = call.begin_ns.max(calls.end);
                break;
            }
            name => {
                // Calls of several threads may overlap; they count one after the other.
                let begin = call.begin_ns.max(calls.end);
                let end = call.end_ns.max(begin);
                let (bytes, partner) = (call.bytes, call.partner);
                calls.events.push(Event { kind: kind(run, call, name), bytes, partner, begin, end });
                calls.end = end;
            }
        }
    }
    calls
}

fn kind(run: &Run, call: &MpiCall, name: &str) -> Kind {
    let kind = run.parallel.functions.get(call.function as usize).map_or("", |f| f.kind.as_str());
    match (kind, name) {
        ("send", "MPI_Sendrecv" | "MPI_Sendrecv_replace") => Kind::Exchange,
        ("send", _) => Kind::Send { may_wait: matches!(name, "MPI_Send" | "MPI_Ssend") },
        ("receive", "MPI_Irecv" | "MPI_Imrecv") => Kind::Post,
        ("receive", _) => Kind::Receive,
        ("wait", _) => Kind::Wait,
        ("collective", _) => Kind::Collective(collective(name)),
        _ => Kind::Other,
    }
}

/// What a collective of MPI transfers. Those that do not wait count as those that do.
fn collective(name: &str) -> Collective {
    let name = name.trim_start_matches("MPI_").to_ascii_lowercase();
    let name = name.strip_prefix('i').unwrap_or(&name);
    match name {
        "barrier" => Collective::Barrier,
        "bcast" => Collective::Broadcast,
        "reduce" => Collective::Reduce,
        "gather" | "gatherv" | "scatter" | "scatterv" => Collective::Gather,
        "allgather" | "allgatherv" => Collective::Allgather,
        "alltoall" | "alltoallv" | "alltoallw" => Collective::Alltoall,
        _ if name.starts_with("neighbor_") => Collective::Neighbours,
        _ => Collective::Allreduce,
    }
}

/// For each collective, when the last rank began it.
fn collectives(all: &[Calls]) -> Vec<u64> {
    let mut lasts: Vec<u64> = Vec::new();
    for calls in all {
        let own = calls.events.iter().filter(|event| matches!(event.kind, Kind::Collective(_)));
        for (i, event) in own.enumerate() {
            match lasts.get_mut(i) {
                Some(last) => *last = event.begin.max(*last),
                None => lasts.push(event.begin),
            }
        }
    }
    lasts
}

/// The largest number of CPUs that the threads of a rank ran on.
fn threads(run: &Run) -> u32 {
    let mut cpus: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    let ranks = run.parallel.processes.iter().filter(|process| process.rank.is_some());
    for process in ranks {
        let threads = run.regions.iter().take(1).flat_map(|region| &region.threads);
        let own = threads.filter(|thread| thread.process == process.number);
        cpus.entry(process.number).or_default().extend(own.map(|thread| thread.cpu));
    }
    cpus.values().map(|cpus| cpus.len() as u32).max().unwrap_or(1).max(1)
}

/// The steps of a rank in the making.
struct Building<'a> {
    rank: usize,
    matches: &'a Matches,
    gathered: &'a [u64],
    /// Number of collectives so far.
    collectives: usize,
    /// Until when the steps last.
    until: u64,
    /// Messages that were asked for and not waited for yet.
    asked: Vec<Message>,
    steps: Vec<Step>,
}

impl<'a> Building<'a> {
    fn new(rank: usize, begin: u64, matches: &'a Matches, gathered: &'a [u64]) -> Building<'a> {
        let (asked, steps) = (Vec::new(), Vec::new());
        Building { rank, matches, gathered, collectives: 0, until: begin, asked, steps }
    }

    fn rank(mut self, calls: &Calls) -> Rank {
        for (i, event) in calls.events.iter().enumerate() {
            match event.kind {
                Kind::Send { may_wait } => self.send(i, event, may_wait),
                Kind::Exchange => {
                    self.send(i, &Event { end: event.begin, ..*event }, false);
                    self.receive(event, self.matches.received(self.rank, i));
                }
                Kind::Receive => self.receive(event, self.matches.received(self.rank, i)),
                Kind::Post => self.asked.extend(self.matches.received(self.rank, i)),
                Kind::Wait => {
                    // A message that is sent later cannot be what it waited for.
                    let (there, later) = self.asked.drain(..).partition(|message| message.sent <= event.end);
                    self.asked = later;
                    self.receive_all(event, there);
                }
                Kind::Collective(kind) => {
                    let last = self.gathered[self.collectives].min(event.end).max(event.begin);
                    self.collectives += 1;
                    let call = Call::Collective { kind, bytes: event.bytes.unwrap_or(0) };
                    self.step(event.begin, call, event.end - last, event.end);
                }
                Kind::Other => {}
            }
        }
        Rank { steps: self.steps, rest: calls.end.saturating_sub(self.until) }
    }

    /// Adds a call that begins at `begin` and ends at `end`, and takes `copy` apart from waiting.
    fn step(&mut self, begin: u64, call: Call, copy: u64, end: u64) {
        self.steps.push(Step { compute: begin.saturating_sub(self.until), call, copy });
        self.until = end;
    }

    fn send(&mut self, i: usize, event: &Event, may_wait: bool) {
        let Some((to, begun)) = self.matches.sent(self.rank, i) else { return };
        let bytes = event.bytes.unwrap_or(0);
        // A send that lasts until the receiver begins has waited for it.
        match begun.filter(|&begun| may_wait && event.begin < begun && begun < event.end) {
            Some(begun) => {
                self.step(event.begin, Call::SynchronousSend { to, bytes }, event.end - begun, event.end);
            }
            None => self.step(event.begin, Call::Send { to, bytes }, event.end - event.begin, event.end),
        }
    }

    fn receive(&mut self, event: &Event, message: Option<Message>) {
        let Some(message) = message else { return };
        // Earlier messages of the same rank, which are there as well.
        let (mut there, others): (Vec<_>, Vec<_>) = self.asked.drain(..).partition(|asked| asked.from == message.from);
        self.asked = others;
        there.push(message);
        self.receive_all(event, there);
    }

    /// Adds a call that waits for some messages.
    fn receive_all(&mut self, event: &Event, messages: Vec<Message>) {
        let last = messages.iter().map(|message| message.sent).max().unwrap_or(0).clamp(event.begin, event.end);
        let count = messages.len();
        for (i, message) in messages.into_iter().enumerate() {
            let copy = if i + 1 == count { event.end - last } else { 0 };
            let end = if i + 1 == count { event.end } else { event.begin };
            self.step(event.begin, Call::Receive { from: message.from }, copy, end);
        }
    }
}

fn notes(run: &Run, all: &[Calls], matches: &Matches) -> Vec<String> {
    let events = || all.iter().flat_map(|calls| &calls.events);
    let mut notes = Vec::new();
    if matches.open > 0 {
        notes.push(format!(
            "{} sends and receives have no partner among the recorded ranks, and count as computation.",
            matches.open
        ));
    }
    let unknown = events().filter(|event| event.bytes.is_none() && event.partner.is_some()).count();
    if unknown > 0 {
        notes.push(format!("{unknown} calls whose bytes the record does not say count as empty."));
    }
    if run.parallel.functions.iter().any(|function| function.kind == "one-sided" && function.calls > 0) {
        notes.push("One-sided accesses count as computation.".to_owned());
    }
    if run.parallel.dropped_calls > 0 {
        notes.push(format!(
            "Only the part of the run with the first {} calls is replayed; the record says nothing of {} later ones.",
            run.parallel.calls.len(),
            run.parallel.dropped_calls
        ));
    }
    notes
}
