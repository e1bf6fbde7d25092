//! The load/store unit: queues, interlocks between loads and older stores, the write buffer.

use fxscope_base::{Cycle, Pool, Signal, Signals};
use fxscope_machine::Spec;
use fxscope_memory::{Hierarchy, Pointer, Response};
use fxscope_uop::{Access, Shape};

use crate::resolve::{RMem, RUop};

/// Stores remembered for younger loads: store queue and write buffer together.
const RECENT: usize = 64;
/// Buckets of the filter over addresses of recent stores.
const BUCKETS: usize = 1024;

/// A store that a younger load may still run into.
#[derive(Clone, Copy, Default)]
struct Recent {
    start: u64,
    end: u64,
    /// When its data are known.
    data: Cycle,
    /// When it is in the L1D cache.
    written: Cycle,
    /// When it and all older ones are.
    all_written: Cycle,
    forward_bytes: u8,
}

/// Release times of queue entries given back in order.
struct InOrder {
    times: Box<[Cycle]>,
    next: usize,
    last: Cycle,
}

impl InOrder {
    fn new(n: u32) -> InOrder {
        InOrder { times: vec![0; n.max(1) as usize].into(), next: 0, last: 0 }
    }
    /// When the next `n` entries (at least one) are free: they are given back in order, so the last of them decides.
    #[inline(always)]
    fn free_at(&self, n: u8) -> Cycle {
        if n <= 1 { self.times[self.next] } else { self.all_free_at(n) }
    }
    #[inline(never)]
    fn all_free_at(&self, n: u8) -> Cycle {
        self.times[(self.next + usize::from(n) - 1) % self.times.len()]
    }
    /// Takes `n` entries (at least one), to be given back at `until` or when the one before is.
    #[inline(always)]
    fn take(&mut self, n: u8, until: Cycle) {
        self.take_one(until);
        if n > 1 {
            (1..n).for_each(|_| self.take_one(until));
        }
    }
    #[inline(always)]
    fn take_one(&mut self, until: Cycle) {
        self.last = self.last.max(until);
        self.times[self.next] = self.last;
        self.next = if self.next + 1 == self.times.len() { 0 } else { self.next + 1 };
    }
}

/// What a store leaves behind until it commits.
#[derive(Clone, Copy, Default)]
struct PendingStore {
    start: u64,
    end: u64,
    data: Cycle,
    /// When its line can be written.
    line_ready: Cycle,
    forward_bytes: u8,
}

/// Load/store queues of a core.
pub struct Lsu {
    recent: [Recent; RECENT],
    /// Stores so far.
    stores: u64,
    /// For each bucket of 64-byte blocks, the number of the youngest store into it, plus one.
    filter: Box<[u64; BUCKETS]>,
    fetch_ports: InOrder,
    store_ports: InOrder,
    write_buffer: Pool,
    /// The block the youngest write buffer entry holds, and when it is written.
    open_block: (u64, Cycle),
    /// The store whose commit comes next.
    pending: PendingStore,
    /// Log2 of the bytes one flow reads, and of those of a write buffer entry.
    flow_shift: u32,
    write_shift: u32,
    split_flow: Cycle,
    store_write: Cycle,
    forward: Cycle,
    interlock_retry: Cycle,
}

impl Lsu {
    /// Empty queues.
    #[must_use]
    pub fn new(spec: &Spec) -> Lsu {
        let s = &spec.load_store;
        Lsu {
            recent: [Recent::default(); RECENT],
            stores: 0,
            filter: Box::new([0; BUCKETS]),
            fetch_ports: InOrder::new(s.fetch_ports),
            store_ports: InOrder::new(s.store_ports),
            write_buffer: Pool::new(s.write_buffer as usize),
            open_block: (u64::MAX, 0),
            pending: PendingStore::default(),
            flow_shift: s.flow_block.trailing_zeros(),
            write_shift: s.write_buffer_bytes.trailing_zeros(),
            split_flow: s.split_flow,
            store_write: s.store_write,
            forward: s.forward,
            interlock_retry: s.interlock_retry,
        }
    }

    /// Earliest issue of an access that needs `n` real fetch ports.
    #[inline(always)]
    #[must_use]
    pub fn fetch_port_free(&self, n: u8) -> Cycle {
        self.fetch_ports.free_at(n)
    }
    /// Earliest issue of an address flow that needs `n` real store ports.
    #[inline(always)]
    #[must_use]
    pub fn store_port_free(&self, n: u8) -> Cycle {
        self.store_ports.free_at(n)
    }

    /// A load whose address flow was issued at `t`. The answer's time is that of the flow that found its data.
    #[inline(always)]
    pub fn load(
        &mut self,
        uop: &RUop,
        words: &[u64],
        t: Cycle,
        memory: &mut Hierarchy,
        signals: &mut Signals,
    ) -> Response {
        let mem = &uop.mem;
        let answer = match mem.op.shape {
            Shape::Indexed => self.gather(mem, words, t, memory, signals),
            Shape::Masked if words[1] == 0 => Response::hit(memory.pipes.load(t)),
            _ => {
                let (start, bytes) = part_of(uop, words[0].into());
                self.contiguous(uop, start, bytes, t, memory, signals)
            }
        };
        self.fetch_ports_taken(uop.fetch_ports, answer.at + u64::from(uop.to_commit));
        answer
    }

    #[inline(always)]
    fn contiguous(
        &mut self,
        uop: &RUop,
        pointer: Pointer,
        bytes: u64,
        t: Cycle,
        memory: &mut Hierarchy,
        signals: &mut Signals,
    ) -> Response {
        let mem = &uop.mem;
        let write = mem.op.access == Access::Atomic;
        let start = pointer.addr;
        let at = memory.translate(start, t, signals);
        let read = Read { start, end: start + bytes, forward_bytes: mem.forward_bytes, latency: uop.load_latency };
        let at = self.after_stores(read, at, signals);
        let mut at = memory.pipes.load(at);
        if mem.op.structure && start >> self.flow_shift != (start + bytes - 1) >> self.flow_shift {
            at = memory.pipes.load(at + self.split_flow);
        }
        let mut answer = memory.access(pointer, at, write, signals);
        if memory.line_of(start) != memory.line_of(start + bytes - 1) {
            let second = memory.access(pointer.at(start + bytes - 1), at, write, signals);
            answer = answer.and(second);
        }
        if answer.at > at {
            // It was not there: the flow is sent again when it is.
            answer.at = memory.pipes.load(answer.at);
        }
        answer
    }

    /// Gather: pairs of elements, one flow for a pair within a block, two otherwise (manual 7.8.2).
    #[inline(never)]
    fn gather(
        &mut self,
        mem: &RMem,
        words: &[u64],
        t: Cycle,
        memory: &mut Hierarchy,
        signals: &mut Signals,
    ) -> Response {
        let mask = words[0];
        let mut answer = Response::hit(t);
        let mut issue = t;
        let step = usize::from(mem.op.reg_esize);
        let bytes = u64::from(mem.op.mem_esize);
        for (pair, addrs) in words[1..].chunks(2).enumerate() {
            let active = |i: usize| i < addrs.len() && mask >> ((2 * pair + i) * step) & 1 == 1;
            let (first, second) = match (active(0), active(1)) {
                (false, false) => {
                    signals.add(Signal::Gather0Flow, 1);
                    continue;
                }
                (true, false) => (addrs[0], None),
                (false, true) => (addrs[1], None),
                (true, true) if addrs[0] >> self.flow_shift == addrs[1] >> self.flow_shift => (addrs[0], None),
                (true, true) => (addrs[0], Some(addrs[1])),
            };
            signals.add(if second.is_some() { Signal::Gather2Flow } else { Signal::Gather1Flow }, 1);
            for (i, pointer) in [Some(first), second].into_iter().flatten().map(Pointer::from).enumerate() {
                let addr = pointer.addr;
                // The second flow of a pair waits for the first.
                let ready = if i == 0 { issue } else { issue + self.split_flow };
                let at = memory.translate(addr, ready, signals);
                let read = Read { start: addr, end: addr + bytes, forward_bytes: 0, latency: 0 };
                let at = self.after_stores(read, at, signals);
                let at = memory.pipes.load(at);
                let got = memory.access(pointer, at, false, signals);
                answer = answer.and(got);
                issue = at;
            }
        }
        answer
    }

    /// The earliest time at or after `t` at which bytes `[start, end)` can be read past older stores.
    #[inline(always)]
    fn after_stores(&mut self, read: Read, t: Cycle, signals: &mut Signals) -> Cycle {
        let young = |block: u64| self.filter[bucket(block)] + RECENT as u64 > self.stores;
        let (a, b) = (read.start >> self.write_shift, (read.end - 1) >> self.write_shift);
        if !young(a) && (a == b || !young(b)) {
            return t;
        }
        self.search_stores(read, t, signals)
    }

    #[inline(never)]
    fn search_stores(&mut self, read: Read, t: Cycle, signals: &mut Signals) -> Cycle {
        let Read { start, end, forward_bytes, latency } = read;
        for back in 1..=self.stores.min(RECENT as u64) {
            let s = &self.recent[(self.stores - back) as usize % RECENT];
            if s.all_written <= t {
                break;
            }
            if s.written <= t || start >= s.end || end <= s.start {
                continue;
            }
            let inside = start >= s.start && end <= s.end;
            let same_kind = forward_bytes > 0
                && (forward_bytes == s.forward_bytes || (forward_bytes <= s.forward_bytes && s.forward_bytes <= 8));
            if inside && same_kind {
                return t.max((s.data + self.forward).saturating_sub(u64::from(latency)));
            }
            signals.add(Signal::L1PipeAbortStldIntlk, 1);
            return s.written + self.interlock_retry;
        }
        t
    }

    /// A store whose address flow was issued at `t`, with data known at `data`; its commit must come next. Returns
    /// when its access to the tags ran.
    #[inline(always)]
    pub fn store(
        &mut self,
        uop: &RUop,
        words: &[u64],
        t: Cycle,
        data: Cycle,
        memory: &mut Hierarchy,
        signals: &mut Signals,
    ) -> Cycle {
        let mem = &uop.mem;
        if mem.op.shape == Shape::Indexed {
            return self.scatter(uop, words, t, data, memory, signals);
        }
        if mem.op.shape == Shape::Masked && words[1] == 0 {
            self.pending = PendingStore::default();
            return memory.pipes.store_access(t, mem.eligible);
        }
        let (pointer, bytes) = part_of(uop, words[0].into());
        let start = pointer.addr;
        let at = memory.translate(start, t, signals);
        let eligible = mem.eligible && start.is_multiple_of(8) && whole_groups(mem, words);
        let at = memory.pipes.store_access(at, eligible);
        let mut answer = memory.access(pointer, at, true, signals);
        if memory.line_of(start) != memory.line_of(start + bytes - 1) {
            let second = memory.access(pointer.at(start + bytes - 1), at, true, signals);
            answer.at = answer.at.max(second.at);
        }
        self.pending =
            PendingStore { start, end: start + bytes, data, line_ready: answer.at, forward_bytes: mem.forward_bytes };
        at
    }

    /// Scatter: one store flow for each active element of this part (manual 7.8.2).
    #[inline(never)]
    fn scatter(
        &mut self,
        uop: &RUop,
        words: &[u64],
        t: Cycle,
        data: Cycle,
        memory: &mut Hierarchy,
        signals: &mut Signals,
    ) -> Cycle {
        let mem = &uop.mem;
        let elements = words.len() - 1;
        let each = elements.div_ceil(usize::from(uop.parts));
        let step = usize::from(mem.op.reg_esize);
        let mut last = t;
        let mut pending = PendingStore::default();
        for i in (0..elements).skip(usize::from(uop.part) * each).take(each) {
            signals.add(Signal::Scatter1Flow, 1);
            last = memory.pipes.store_access(last, false);
            if words[0] >> (i * step) & 1 == 0 {
                continue;
            }
            let pointer = Pointer::from(words[1 + i]);
            let addr = pointer.addr;
            let at = memory.translate(addr, last, signals);
            let answer = memory.access(pointer, at, true, signals);
            let this = PendingStore {
                start: addr,
                end: addr + u64::from(mem.op.mem_esize),
                data,
                line_ready: answer.at,
                forward_bytes: 0,
            };
            // All elements but the last are written as soon as their line is there; the last one stands for
            // the part when it commits.
            if pending.end > 0 {
                self.write(&pending, pending.line_ready.max(data), memory);
            }
            pending = this;
        }
        self.pending = pending;
        last
    }

    /// A store commits at `t`: it moves to the write buffer and from there into the cache.
    #[inline(always)]
    pub fn commit_store(&mut self, uop: &RUop, t: Cycle, memory: &mut Hierarchy) {
        let store = self.pending;
        let entered = if store.end == 0 { t } else { self.write(&store, t, memory) };
        // Store ports are given back in W5.
        self.store_ports.take(uop.store_ports, entered.max(t + self.store_write));
    }

    /// Writes a store's data from time `t` on; returns when it left the store queue.
    #[inline(always)]
    fn write(&mut self, store: &PendingStore, t: Cycle, memory: &mut Hierarchy) -> Cycle {
        let (first, last) = (store.start >> self.write_shift, (store.end - 1) >> self.write_shift);
        let ready = (t + self.store_write).max(store.line_ready);
        let mut entered = t;
        let mut written = 0;
        for block in first..=last {
            if self.open_block.0 == block && self.open_block.1 >= ready {
                // The youngest entry still holds this block: the data join it.
                written = written.max(self.open_block.1);
                continue;
            }
            let entry = self.write_buffer.first_free(entered.max(t));
            entered = entry.at;
            let at = memory.pipes.store_write(ready.max(entered));
            self.write_buffer.hold(entry, entered, at + 1);
            self.open_block = (block, at);
            written = written.max(at);
        }
        let youngest = self.stores.wrapping_sub(1) as usize % RECENT;
        let all_written = self.recent[youngest].all_written.max(written + 1);
        self.recent[self.stores as usize % RECENT] = Recent {
            start: store.start,
            end: store.end,
            data: store.data,
            written: written + 1,
            all_written,
            forward_bytes: store.forward_bytes,
        };
        self.stores += 1;
        self.filter[bucket(first)] = self.stores;
        self.filter[bucket(last)] = self.stores;
        entered
    }

    /// `n` fetch ports are taken until `t`.
    #[inline(always)]
    pub fn fetch_ports_taken(&mut self, n: u8, t: Cycle) {
        self.fetch_ports.take(n, t);
    }
}

/// The filter's bucket of a block. Arrays lie at round distances: their blocks must not share buckets.
#[inline(always)]
fn bucket(block: u64) -> usize {
    (block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - BUCKETS.trailing_zeros())) as usize
}

/// A read of memory, as far as older stores matter.
#[derive(Clone, Copy)]
struct Read {
    start: u64,
    end: u64,
    forward_bytes: u8,
    /// Load-to-use latency.
    latency: u8,
}

/// Whether every aligned group of 8 bytes in memory is all active or all inactive (manual table 7-5).
#[inline(always)]
fn whole_groups(mem: &RMem, words: &[u64]) -> bool {
    if mem.op.shape != Shape::Masked || mem.op.mem_esize >= 8 {
        return true;
    }
    let all = u64::MAX / ((1 << mem.op.reg_esize.min(63)) - 1);
    words[1] == all || whole_groups_of(mem, words[1])
}

#[inline(never)]
fn whole_groups_of(mem: &RMem, mask: u64) -> bool {
    let step = usize::from(mem.op.reg_esize);
    let group = 8 / usize::from(mem.op.mem_esize);
    let active = |i: usize| mask >> (i * step) & 1 == 1;
    (0..64 / step).step_by(group).all(|first| {
        let rest = first + 1..(first + group).min(64 / step);
        rest.into_iter().all(|i| active(i) == active(first))
    })
}

/// The address range that this part of an access covers.
#[inline(always)]
fn part_of(uop: &RUop, pointer: Pointer) -> (Pointer, u64) {
    let bytes = u64::from(uop.mem.op.bytes).max(1);
    if uop.parts <= 1 {
        return (pointer, bytes);
    }
    let each = (bytes / u64::from(uop.parts)).max(1);
    (pointer.at(pointer.addr + each * u64::from(uop.part)), each)
}
