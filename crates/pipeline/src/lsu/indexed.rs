//! Accesses of many flows: gathers, scatters and structures (manual 7.8).

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals};
use fxscope_memory::{Hierarchy, Pointer, Response};

use super::store_queue::Span;
use super::{Flow, Lsu, checked};
use crate::bind::BoundUop;

impl Lsu {
    /// Gather: pairs of elements, one flow for a pair within a block, two otherwise (manual 7.8.2). Address generation
    /// takes several cycles, each of which writes a share of the pairs. A pair without active elements still has a flow
    /// if its cycle writes an address that is needed: this reproduces measured counts of `GATHER_0FLOW` and
    /// `GATHER_1FLOW` exactly.
    #[cold]
    #[inline(never)]
    pub(super) fn gather(
        &mut self,
        uop: &BoundUop,
        words: &[u64],
        t: Cycle,
        memory: &mut Hierarchy,
        signals: &mut Signals,
    ) -> Response {
        let (mem, mask) = (&uop.mem, words[0]);
        let mut answer = Response::hit(t);
        let step = usize::from(mem.op.reg_esize);
        let pairs = (words.len() - 1).div_ceil(2);
        for (pair, addrs) in words[1..].chunks(2).enumerate() {
            let mut ready = t + address_cycle(uop, pair, pairs);
            let Some(Pair { first, second, together }) = self.pair(mask >> (2 * pair * step), step, addrs) else {
                if made_with_active(uop, mask, pair, pairs, step) {
                    signals.add(Signal::Gather1Flow, 1);
                    answer = answer.and(Response::hit(memory.core.pipes.load(ready)));
                } else {
                    signals.add(Signal::Gather0Flow, 1);
                }
                continue;
            };
            signals.add(if second.is_some() { Signal::Gather2Flow } else { Signal::Gather1Flow }, 1);
            for pointer in [Some(first), second].into_iter().flatten().map(Pointer::from) {
                let flow = element(uop, pointer, together.then_some(self.line_shift));
                let got = self.load_flow(uop, &flow, ready, memory, signals);
                answer = answer.and(got);
                // The second flow of a pair waits for the end of the first.
                ready = got.at + self.flow_after_flow(uop);
            }
        }
        answer
    }

    /// The flows of a pair of elements at `addrs`; `mask` has a bit for each, `step` apart. `None`: neither is active.
    #[inline(always)]
    pub(super) fn pair(&self, mask: u64, step: usize, addrs: &[u64]) -> Option<Pair> {
        let active = |i: usize| i < addrs.len() && mask >> (i * step) & 1 == 1;
        let together = active(0) && active(1) && (addrs[0] ^ addrs[1]) >> self.flow_shift == 0;
        let (first, second) = match (active(0), active(1)) {
            (false, false) => return None,
            (true, both) => (addrs[0], (both && !together).then(|| addrs[1])),
            (false, true) => (addrs[1], None),
        };
        Some(Pair { first, second, together })
    }

    /// Gather prefetch: flows as those of a gather; each address is prefetched as PRFM does (manual 11.4).
    #[cold]
    #[inline(never)]
    pub(super) fn gather_prefetch(
        &mut self,
        uop: &BoundUop,
        words: &[u64],
        level: u8,
        t: Cycle,
        memory: &mut Hierarchy,
        signals: &mut Signals,
    ) -> Response {
        let (mask, step) = (words[0], usize::from(uop.mem.op.reg_esize));
        let pairs = (words.len() - 1).div_ceil(2);
        let mut answer = Response::hit(t);
        for (pair, addrs) in words[1..].chunks(2).enumerate() {
            let mut ready = t + address_cycle(uop, pair, pairs);
            let Some(flows) = self.pair(mask >> (2 * pair * step), step, addrs) else {
                if made_with_active(uop, mask, pair, pairs, step) {
                    answer = answer.and(Response::hit(memory.core.pipes.load(ready)));
                }
                continue;
            };
            for pointer in [Some(flows.first), flows.second].into_iter().flatten().map(Pointer::from) {
                let got = memory.prefetch_instruction(pointer, 1, level, ready, signals);
                answer = answer.and(got);
                ready = got.at + self.flow_after_flow(uop);
            }
        }
        answer
    }

    /// Scatter: one store flow for each element of this part (manual 7.8.2).
    #[cold]
    #[inline(never)]
    pub(super) fn scatter(
        &mut self,
        uop: &BoundUop,
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
        for (place, i) in (0..elements).skip(usize::from(uop.part) * each).take(each).enumerate() {
            signals.add(Signal::Scatter1Flow, 1);
            let ready = t + address_cycle(uop, place, each);
            let at = if words[0] >> (i * step) & 1 == 0 {
                let ready = memory.inactive(words[1 + i].into(), ready, signals);
                memory.core.pipes.store_access(ready, true)
            } else {
                let flow = element(uop, words[1 + i].into(), None);
                let eligible = mem.eligible && flow.bytes.start.is_multiple_of(8);
                self.store_flow(uop, &flow, eligible, ready, data, memory, signals)
            };
            last = last.max(at);
        }
        last
    }

    /// One register of a load of structures (manual 7.8.1).
    #[cold]
    #[inline(never)]
    pub(super) fn load_structures(
        &mut self,
        uop: &BoundUop,
        pointer: Pointer,
        t: Cycle,
        memory: &mut Hierarchy,
        signals: &mut Signals,
    ) -> Response {
        let mut answer = Response::hit(t);
        let mut ready = t;
        for bytes in pieces(uop, pointer, self.flow_shift) {
            let flow = structure_flow(uop, pointer, bytes);
            let got = self.load_flow(uop, &flow, ready, memory, signals);
            answer = answer.and(got);
            ready = self.next_flow(uop, ready, got.at);
        }
        answer
    }

    /// One register of a store of structures.
    #[cold]
    #[inline(never)]
    pub(super) fn store_structures(
        &mut self,
        uop: &BoundUop,
        pointer: Pointer,
        t: Cycle,
        data: Cycle,
        memory: &mut Hierarchy,
        signals: &mut Signals,
    ) -> Cycle {
        let eligible = uop.mem.eligible && pointer.addr.is_multiple_of(8);
        let mut ready = t;
        let mut last = t;
        for bytes in pieces(uop, pointer, self.flow_shift) {
            let flow = structure_flow(uop, pointer, bytes);
            last = self.store_flow(uop, &flow, eligible, ready, data, memory, signals);
            ready = self.next_flow(uop, ready, last);
        }
        last
    }

    /// When the next flow of one register of structures is ready, behind one that was ready at `ready` and ran at `at`.
    /// An access with a port for each flow makes an address a cycle; another one sends its flows one by one.
    fn next_flow(&self, uop: &BoundUop, ready: Cycle, at: Cycle) -> Cycle {
        if uop.fetch_ports > 1 { ready + 1 } else { at + self.flow_after_flow(uop) }
    }
}

/// The addresses of the flows of a pair of elements.
pub(super) struct Pair {
    pub(super) first: u64,
    pub(super) second: Option<u64>,
    /// One flow for two elements.
    together: bool,
}

/// What the flows of one register of structures cover: elements of all registers alternate, so a register's flows go
/// over the whole range. Its ports share the range, or the blocks that one flow reads divide it.
pub(super) fn pieces(uop: &BoundUop, pointer: Pointer, block_shift: u8) -> impl Iterator<Item = Span> {
    let whole = Span::of(pointer.addr, uop.mem.op.bytes.into());
    let ports = u64::from(uop.fetch_ports);
    let each = u64::from(uop.mem.op.bytes) / ports.max(1);
    let first = whole.start >> block_shift;
    let pieces = if ports > 1 { ports } else { ((whole.end - 1) >> block_shift) - first + 1 };
    (0..pieces).map(move |i| {
        if ports > 1 {
            return Span::of(whole.start + i * each, each);
        }
        let start = (first + i) << block_shift;
        Span { start: whole.start.max(start), end: whole.end.min(start + (1 << block_shift)) }
    })
}

/// In which cycle of address generation place `place` of `places` has its address.
fn address_cycle(uop: &BoundUop, place: usize, places: usize) -> Cycle {
    let cycles = usize::from(uop.flows[usize::from(uop.nflows.max(1)) - 1].busy.max(1));
    (place * cycles / places) as Cycle
}

/// Whether an address of an active element is generated in the same cycle as those of `pair`, which has none.
fn made_with_active(uop: &BoundUop, mask: u64, pair: usize, pairs: usize, step: usize) -> bool {
    let cycle = address_cycle(uop, pair, pairs);
    let active = |other: usize| mask >> (2 * other * step) & (1 | 1 << step) != 0;
    (0..pairs).any(|other| address_cycle(uop, other, pairs) == cycle && active(other))
}

/// The flow of one element; with `line_shift` it is checked against older stores as a whole line.
fn element(uop: &BoundUop, pointer: Pointer, line_shift: Option<u8>) -> Flow {
    let bytes = Span::of(pointer.addr, uop.mem.op.mem_esize.into());
    let checked = line_shift.map_or_else(|| checked(uop, bytes), |shift| bytes.widened(shift));
    Flow { pointer, bytes, checked, forward: 0 }
}

/// One flow of structures: it is checked as the whole access.
fn structure_flow(uop: &BoundUop, pointer: Pointer, bytes: Span) -> Flow {
    let whole = Span::of(pointer.addr, uop.mem.check_bytes.into());
    Flow { pointer: pointer.at(bytes.start), bytes, checked: checked(uop, whole), forward: 0 }
}
