//! Lists the addresses that each access looks up in the data TLB, without timing.

use fxscope_isa::{Access, Shape};
use fxscope_memory::Pointer;

use super::indexed::{Pair, pieces};
use super::store_queue::Span;
use super::{Lsu, one_flow};
use crate::bind::{Action, BoundBlock, BoundUop};
use crate::core::Pipeline;

impl Pipeline {
    /// Appends to `addresses` the addresses, without pointer tags, with which the first `executed` instructions of
    /// `block` have looked up the data TLB, in order. The block has just run and left `stream`.
    ///
    /// The second lookup of loads that wrongly went ahead of a store is not repeated here. Weak prefetch instructions
    /// are left out: whether they look up depends on the contents of the TLB.
    pub fn data_lookups(&mut self, block: &BoundBlock, executed: usize, stream: &[u64], addresses: &mut Vec<u64>) {
        let end = executed.checked_sub(1).map_or(0, |last| block.tables.uop_end[last] as usize);
        for uop in &block.uops[..end] {
            let words = match uop.action {
                Action::Load | Action::Store | Action::Prefetch | Action::Zero => uop.words(stream),
                _ => continue,
            };
            let before = addresses.len();
            self.lsu.lookups(uop, words, addresses);
            if uop.action == Action::Prefetch {
                self.keep_strong(before, addresses);
            }
            for address in &mut addresses[before..] {
                *address = Pointer::from(*address).addr;
            }
        }
    }

    /// Of the prefetched addresses from place `first` on, keeps those that are translated whatever the TLB holds.
    fn keep_strong(&mut self, first: usize, addresses: &mut Vec<u64>) {
        let mut kept = first;
        for i in first..addresses.len() {
            if self.memory.prefetch_walks(addresses[i].into()) {
                addresses[kept] = addresses[i];
                kept += 1;
            }
        }
        addresses.truncate(kept);
    }
}

impl Lsu {
    /// Pointers that the flows of a micro-operation look up.
    fn lookups(&self, uop: &BoundUop, words: &[u64], out: &mut Vec<u64>) {
        let (mem, prefetch) = (&uop.mem, uop.action == Action::Prefetch);
        let Some(&first) = words.first() else { return };
        match mem.op.shape {
            _ if mem.op.access == Access::ZeroLine => out.push(first),
            Shape::Indexed if uop.action == Action::Store => self.scattered(uop, words, out),
            Shape::Indexed => self.gathered(uop, words, out),
            Shape::Masked if words[1] == 0 => {}
            _ if prefetch => self.flow(first, Span::of(Pointer::from(first).addr, mem.op.bytes.into()), out),
            _ if mem.interleaved => {
                for bytes in pieces(uop, first.into(), self.flow_shift) {
                    self.flow(bytes.start, bytes, out);
                }
            }
            _ => {
                let bytes = one_flow(uop, first.into()).bytes;
                self.flow(bytes.start, bytes, out);
            }
        }
    }

    /// One flow: the line in which it begins, and the next one if it extends into it.
    fn flow(&self, pointer: u64, bytes: Span, out: &mut Vec<u64>) {
        out.push(pointer);
        if bytes.crosses(self.line_shift) {
            let tag = pointer & !Pointer::from(u64::MAX).addr;
            out.push(tag | (bytes.end - 1));
        }
    }

    /// The flows of a gather, or of its prefetch: each pair of elements has one or two.
    fn gathered(&self, uop: &BoundUop, words: &[u64], out: &mut Vec<u64>) {
        let step = usize::from(uop.mem.op.reg_esize);
        let esize = if uop.action == Action::Prefetch { 1 } else { uop.mem.op.mem_esize };
        for (pair, addresses) in words[1..].chunks(2).enumerate() {
            let Some(Pair { first, second, .. }) = self.pair(words[0] >> (2 * pair * step), step, addresses) else {
                continue;
            };
            for pointer in [Some(first), second].into_iter().flatten() {
                self.flow(pointer, Span::of(Pointer::from(pointer).addr, esize.into()), out);
            }
        }
    }

    /// The flows of this part of a scatter: one for each active element.
    fn scattered(&self, uop: &BoundUop, words: &[u64], out: &mut Vec<u64>) {
        let elements = words.len() - 1;
        let each = elements.div_ceil(usize::from(uop.parts));
        let step = usize::from(uop.mem.op.reg_esize);
        for i in (0..elements).skip(usize::from(uop.part) * each).take(each) {
            if words[0] >> (i * step) & 1 == 1 {
                let pointer = words[1 + i];
                self.flow(pointer, Span::of(Pointer::from(pointer).addr, uop.mem.op.mem_esize.into()), out);
            }
        }
    }
}
