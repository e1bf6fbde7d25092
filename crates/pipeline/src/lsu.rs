//! The load/store unit: flows of loads and stores, ports, the write buffer, dependences through memory.

mod indexed;
mod lookups;
mod ports;
pub mod rules;
mod store_queue;
mod write_buffer;

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals};
use fxscope_isa::{Access, Shape};
use fxscope_machine::Spec;
use fxscope_memory::{Hierarchy, LoadStorePipes, Pointer, Response, Wants};

use crate::bind::BoundUop;
use ports::Ports;
use rules::whole_groups;
use store_queue::{Lookup, Read, Span, Store, StoreQueue};
use write_buffer::WriteBuffer;

/// Load/store queues of a core.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Lsu {
    store_queue: StoreQueue,
    fetch_ports: Ports,
    store_ports: Ports,
    write_buffer: WriteBuffer,
    /// The flows of the store that commits next.
    pending_flows: usize,
    /// When the data of the store that commits next are at its ports.
    pending_data: Cycle,
    /// When the store commits that the last load wrongly went ahead of; 0 if it did not.
    too_early: Cycle,
    /// Log2 of the bytes one flow reads, and of those of a line.
    flow_shift: u8,
    line_shift: u8,
    resubmit: Cycle,
    store_write: Cycle,
}

/// What the flows of one access have in common.
#[derive(Clone, Copy)]
struct Flow {
    pointer: Pointer,
    bytes: Span,
    /// Bytes dependency detection takes it to touch.
    checked: Span,
    /// Forwarding class.
    forward: u8,
}

impl Lsu {
    /// Empty queues.
    #[must_use]
    pub fn new(spec: &Spec) -> Lsu {
        let s = &spec.load_store;
        Lsu {
            store_queue: StoreQueue::new(s),
            fetch_ports: Ports::new(s.fetch_ports, s.virtual_fetch_ports),
            store_ports: Ports::new(s.store_ports, s.virtual_store_ports),
            write_buffer: WriteBuffer::new(s),
            pending_flows: 0,
            pending_data: 0,
            too_early: 0,
            flow_shift: s.flow_block.trailing_zeros() as u8,
            line_shift: spec.l1d.line_bytes.trailing_zeros() as u8,
            resubmit: s.resubmit,
            store_write: s.store_write,
        }
    }

    // ---- ports --------------------------------------------------------------------------------

    /// Earliest dispatch of `uop`: it takes virtual ports (manual 7.3.1).
    #[inline(always)]
    #[must_use]
    pub fn virtual_ports_free(&self, uop: &BoundUop) -> Cycle {
        let fetch = self.fetch_ports.virtual_free(uop.fetch_ports);
        if uop.store_ports == 0 { fetch } else { fetch.max(self.store_ports.virtual_free(uop.store_ports)) }
    }

    /// When `uop` can begin to execute at the earliest: it takes real ports some stages before (manual 2.8).
    #[inline(always)]
    #[must_use]
    pub fn real_ports_free(&self, uop: &BoundUop) -> Cycle {
        let [fetch_stages, store_stages] = uop.port_stages.map(Cycle::from);
        let fetch = self.fetch_ports.real_free(uop.fetch_ports) + fetch_stages;
        if uop.store_ports == 0 { fetch } else { fetch.max(self.store_ports.real_free(uop.store_ports) + store_stages) }
    }

    /// Moves the state `cycles` later. No store is in flight.
    pub fn fast_forward(&mut self, cycles: Cycle) {
        self.fetch_ports.fast_forward(cycles);
        self.store_ports.fast_forward(cycles);
    }

    /// `n` fetch ports are taken until `t`.
    #[inline(always)]
    pub fn fetch_ports_taken(&mut self, n: u8, t: Cycle) {
        self.fetch_ports.take(n, t);
    }

    /// What has store ports and stores nothing (a gather, a transfer to a general register) commits at `t` and releases them as
    /// stores do.
    pub fn commit_without_data(&mut self, uop: &BoundUop, t: Cycle) {
        self.store_ports.take(uop.store_ports, t + self.store_write);
    }

    // ---- loads --------------------------------------------------------------------------------

    /// A load whose address flow was issued at `t`. The time of the response is that of the flow that found its data.
    #[inline(always)]
    pub fn load(
        &mut self,
        uop: &BoundUop,
        words: &[u64],
        t: Cycle,
        memory: &mut Hierarchy,
        signals: &mut Signals,
    ) -> Response {
        let mem = &uop.mem;
        match mem.op.shape {
            Shape::Indexed => self.gather(uop, words, t, memory, signals),
            Shape::Masked if words[1] == 0 => {
                let t = memory.inactive(words[0].into(), t, signals);
                Response::hit(memory.core.pipes.load(t))
            }
            _ if mem.interleaved => self.load_structures(uop, words[0].into(), t, memory, signals),
            _ => self.load_flow(uop, &one_flow(uop, words[0].into()), t, memory, signals),
        }
    }

    /// A prefetch instruction whose address flow was issued at `t`. The time of the response is that of its last flow,
    /// or later when that had to wait for a resource.
    #[cold]
    #[inline(never)]
    pub fn prefetch(
        &mut self,
        uop: &BoundUop,
        words: &[u64],
        t: Cycle,
        memory: &mut Hierarchy,
        signals: &mut Signals,
    ) -> Response {
        let op = &uop.mem.op;
        let (Access::PrefetchLoad(level) | Access::PrefetchStore(level)) = op.access else { return Response::hit(t) };
        match op.shape {
            Shape::Indexed => self.gather_prefetch(uop, words, level, t, memory, signals),
            Shape::Masked if words[1] == 0 => Response::hit(memory.core.pipes.load(t)),
            _ => memory.prefetch_instruction(words[0].into(), op.bytes.into(), level, t, signals),
        }
    }

    /// When the store commits that the last load wrongly went ahead of, if it did: the pipeline is flushed then.
    #[inline(always)]
    pub fn take_violation(&mut self) -> Option<Cycle> {
        match self.too_early {
            0 => None,
            _ => Some(std::mem::take(&mut self.too_early)),
        }
    }

    /// One flow of a load.
    #[inline(always)]
    fn load_flow(
        &mut self,
        uop: &BoundUop,
        flow: &Flow,
        t: Cycle,
        memory: &mut Hierarchy,
        signals: &mut Signals,
    ) -> Response {
        let wants = Wants { write: uop.mem.op.access == Access::Atomic, replay_period: self.flow_after_flow(uop) };
        let Flow { pointer, bytes, checked, .. } = *flow;
        let place = memory.translate(pointer, t, signals);
        let mut at = memory.core.pipes.load(place.ready);
        let mut answer = memory.access(&place, at, wants, signals);
        if bytes.crosses(self.line_shift) {
            answer = answer.and(second_line(pointer, bytes, at, wants, memory, signals));
        }
        if self.store_queue.may_conflict(checked, at) {
            let read = Read { bytes, checked, forward: flow.forward };
            at = self.past_stores(&read, wants.replay_period, at, answer.at, memory, signals);
        }
        // If the line was not there the flow is sent again when it is.
        answer.at = if answer.at > at { memory.core.pipes.load(answer.at) } else { at };
        answer
    }

    /// A load's flow ran at `at`, and its line arrives at `line`. Returns when a flow of it, replayed every
    /// `replay_period` cycles or later, has passed the older stores.
    #[cold]
    #[inline(never)]
    fn past_stores(
        &mut self,
        read: &Read,
        replay_period: Cycle,
        mut at: Cycle,
        line: Cycle,
        memory: &mut Hierarchy,
        signals: &mut Signals,
    ) -> Cycle {
        loop {
            match self.store_queue.look_up(read, at) {
                Lookup::Passed => return at,
                Lookup::TooEarly(committed) => {
                    self.too_early = self.too_early.max(committed);
                    return at;
                }
                found @ (Lookup::Cancelled(store_line) | Lookup::Aliased(store_line)) => {
                    signals.add(Signal::L1PipeAbortStldIntlk, 1);
                    signals.add(Signal::L1PipeAbortStldAlias, u64::from(found == Lookup::Aliased(store_line)));
                    at = memory.core.pipes.load((at + replay_period).max(store_line).max(line));
                }
            }
        }
    }

    /// Cycles from a flow to its replay by the same fetch port: the first one must end.
    #[inline(always)]
    fn flow_after_flow(&self, uop: &BoundUop) -> Cycle {
        u64::from(uop.to_commit) + self.resubmit
    }

    // ---- stores -------------------------------------------------------------------------------

    /// A store whose address flow was issued at `t`, with data known at `data`; its commit must come next. Returns
    /// when its access to the tags ran.
    #[inline(always)]
    pub fn store(
        &mut self,
        uop: &BoundUop,
        words: &[u64],
        t: Cycle,
        data: Cycle,
        memory: &mut Hierarchy,
        signals: &mut Signals,
    ) -> Cycle {
        let mem = &uop.mem;
        self.pending_flows = 0;
        self.pending_data = data;
        match mem.op.shape {
            Shape::Indexed => self.scatter(uop, words, t, data, memory, signals),
            // Without active elements nothing is written or waited for (manual 7.5.2).
            Shape::Masked if words[1] == 0 => {
                let t = memory.inactive(words[0].into(), t, signals);
                memory.core.pipes.store_access(t, mem.eligible)
            }
            _ if mem.interleaved => self.store_structures(uop, words[0].into(), t, data, memory, signals),
            _ => {
                let flow = one_flow(uop, words[0].into());
                let eligible = mem.eligible && flow.bytes.start.is_multiple_of(8) && whole_groups(mem, words);
                self.store_flow(uop, &flow, eligible, t, data, memory, signals)
            }
        }
    }

    /// One flow of a store (ST0); returns when it ran.
    #[expect(clippy::too_many_arguments, reason = "what a flow is, when it comes and what it needs")]
    #[inline(always)]
    fn store_flow(
        &mut self,
        uop: &BoundUop,
        flow: &Flow,
        eligible: bool,
        t: Cycle,
        data: Cycle,
        memory: &mut Hierarchy,
        signals: &mut Signals,
    ) -> Cycle {
        let Flow { pointer, bytes, checked, forward } = *flow;
        let place = memory.translate(pointer, t, signals);
        let known = place.ready;
        let tags = memory.core.pipes.store_access(known, eligible);
        // It only reads the tags.
        let wants = Wants { write: true, replay_period: 0 };
        let mut line = memory.access(&place, tags, wants, signals).at;
        if bytes.crosses(self.line_shift) {
            line = line.max(second_line(pointer, bytes, tags, wants, memory, signals).at);
        }
        let store = Store {
            bytes,
            checked,
            known,
            tags,
            line: if line > tags { line } else { 0 },
            found: data + Cycle::from(uop.mem.forwarded_in),
            forward: if bytes.crosses(uop.mem.writing.shift) { 0 } else { forward },
            ..Store::default()
        };
        self.store_queue.begin(self.pending_flows, store);
        self.pending_flows += 1;
        tags
    }

    /// A store commits at `t`: it moves to the write buffer and from there into the cache. Data that another
    /// micro-operation makes move when that one commits.
    #[inline(always)]
    pub fn commit_store(&mut self, uop: &BoundUop, t: Cycle, pipes: &mut LoadStorePipes) {
        let t = t.max(self.pending_data + u64::from(uop.to_commit));
        let mut moved = t;
        let mut given_back = t + self.store_write;
        let mut ports = uop.store_ports;
        for flow in 0..self.pending_flows {
            let store = self.store_queue.next();
            // Each port's data move; a structure has one for several flows.
            moved = if flow < usize::from(uop.store_ports) { self.write_buffer.move_in(t) } else { moved };
            let written = self.write_buffer.write(store.bytes, uop.mem.writing, moved, store.line, pipes);
            store.committed = t;
            store.writes = written.first;
            store.done = written.last + u64::from(uop.to_commit);
            // Store ports are released in W5.
            given_back = given_back.max(written.entered).max(moved + self.store_write);
            if ports > 1 {
                self.store_ports.take(1, given_back);
                ports -= 1;
            }
            self.store_queue.done();
        }
        self.store_ports.take(ports, given_back);
    }

    /// A `DC ZVA` commits at `t`: it moves to the write buffer like a store, and stays there until L2 has zeroed the
    /// line.
    #[cold]
    #[inline(never)]
    pub fn commit_zero(
        &mut self,
        uop: &BoundUop,
        words: &[u64],
        t: Cycle,
        memory: &mut Hierarchy,
        signals: &mut Signals,
    ) {
        let Some(&addr) = words.first() else { return };
        let entered = self.write_buffer.zero(t, |t| memory.zero_line(addr.into(), t, signals));
        self.store_ports.take(uop.store_ports, entered.max(t + self.store_write));
    }
}

/// The part of a flow of `bytes` at `t` that lies in the line behind its first one, which may be in another page.
#[cold]
#[inline(never)]
fn second_line(
    pointer: Pointer,
    bytes: Span,
    t: Cycle,
    wants: Wants,
    memory: &mut Hierarchy,
    signals: &mut Signals,
) -> Response {
    let place = memory.translate(pointer.at(bytes.end - 1), t, signals);
    memory.access(&place, place.ready, wants, signals)
}

/// The bytes that dependency detection takes an access to `bytes` to touch (manual 7.5.2).
#[inline(always)]
fn checked(uop: &BoundUop, bytes: Span) -> Span {
    if uop.mem.check_shift == 0 { bytes } else { bytes.widened(uop.mem.check_shift) }
}

/// The single flow of this part of an access.
#[inline(always)]
fn one_flow(uop: &BoundUop, pointer: Pointer) -> Flow {
    let bytes = u64::from(uop.mem.op.bytes).max(1);
    let (pointer, bytes) = if uop.parts <= 1 {
        (pointer, bytes)
    } else {
        let each = (bytes / u64::from(uop.parts)).max(1);
        (pointer.at(pointer.addr + each * u64::from(uop.part)), each)
    };
    let bytes = Span::of(pointer.addr, bytes);
    Flow { pointer, bytes, checked: checked(uop, bytes), forward: uop.mem.forward }
}
