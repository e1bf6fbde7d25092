//! Prefetches by the hardware, which follow streams of accesses, and by instructions.
//!
//! A prefetch into L2 needs a prefetch port until L2 has accepted it; one into L1D needs an MSHR. When none is free, a
//! strong prefetch waits and keeps its cause from committing; a weak one is dropped (manual 11.3, 14.4).

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals};

use super::{Cause, CoreMemory, Hierarchy, Located, Misses, Response};
use crate::chip::{Holder, Request};
use crate::pointer::Pointer;
use crate::prefetch::control::{Registers, Reliableness};
use crate::prefetch::{Access, Requests, Run};
use crate::refills::RefillKind;
use crate::reserve::{first_free, hold};
use crate::sectors::Sector;
use crate::tags::Line;

/// A prefetch of a line.
#[derive(Clone, Copy)]
struct Prefetch {
    cause: Cause,
    reliableness: Reliableness,
    sector: Sector,
}

impl<const TIMED: bool> Hierarchy<'_, TIMED> {
    /// The hardware prefetches that an access triggers, which `missed` or hit.
    #[cold]
    #[inline(never)]
    pub(super) fn follow_stream(&mut self, pointer: Pointer, missed: bool, t: Cycle, signals: &mut Signals) {
        let access = Access { addr: pointer.addr, missed, steering: pointer.steering };
        let Some(requests) = self.core.prefetcher.access(access) else { return };
        if self.prefetch_stream_l2(&requests, pointer, t, signals).is_ok() {
            self.prefetch_stream_l1(&requests, pointer, t, signals);
        }
    }

    /// The prefetches into L2 that an access at `t` triggers. While one of them waits for a port, the access's flow is
    /// replayed. An error: the TLB does not have a page, so that the stream stops.
    #[inline(always)]
    fn prefetch_stream_l2(
        &mut self,
        r: &Requests,
        pointer: Pointer,
        t: Cycle,
        signals: &mut Signals,
    ) -> Result<(), Untranslated> {
        let counter = r.mode.counters().1;
        let mut granted = t;
        let mut result = Ok(());
        for line in lines(r.l2, r.step) {
            let address = line << self.core.line_shift;
            let sector = self.core.sector_of(pointer.at(address));
            let Some(line) = self.translated(line, t) else {
                self.core.stop(r.entry);
                result = Err(Untranslated);
                break;
            };
            signals.add(counter, 1);
            let p = Prefetch { cause: Cause::HardwarePrefetch, reliableness: r.l2.reliableness, sector };
            let taken = self.prefetch_l2(line, address, t, p, signals);
            self.chip.expect(self.core.id.cmg, line.wrapping_add_signed(r.step), r.step);
            let Some(Taken { at, hit }) = taken else { continue };
            granted = granted.max(at);
            if let Some(entry) = r.entry {
                self.core.prefetcher.l2_answered(entry, hit);
            }
        }
        if TIMED && granted > t {
            self.core.port_granted = granted;
            self.core.pipes.replay(t, granted, self.core.port_replay);
        }
        result
    }

    /// The prefetches into L1D that an access at `t` triggers.
    #[inline(always)]
    fn prefetch_stream_l1(&mut self, r: &Requests, pointer: Pointer, t: Cycle, signals: &mut Signals) {
        let counter = r.mode.counters().0;
        for line in lines(r.l1, r.step) {
            let address = line << self.core.line_shift;
            let sector = self.core.sector_of(pointer.at(address));
            let Some(line) = self.translated(line, t) else { return self.core.stop(r.entry) };
            signals.add(counter, 1);
            let p = Prefetch { cause: Cause::HardwarePrefetch, reliableness: r.l1.reliableness, sector };
            let taken = self.prefetch_l1(line, address, t, p, signals);
            let next = line.wrapping_add_signed(r.step);
            self.chip.expect_again(self.core.id.cmg, next);
            let victim = self.core.l1d.last(next as usize & self.core.l1d_set_mask);
            self.chip.expect_at(self.core.id.cmg, self.core.l2_slot_hints[victim.number()]);
            if let (Some(entry), Some(Taken { hit: false, .. })) = (r.entry, taken) {
                self.core.prefetcher.l1_missed_l2(entry);
            }
        }
    }

    /// Prefetches a line, that of a virtual address, into L2. `None`: the prefetch was weak and no port was free.
    #[inline(always)]
    fn prefetch_l2(&mut self, line: u64, address: u64, t: Cycle, p: Prefetch, signals: &mut Signals) -> Option<Taken> {
        let port = first_free::<TIMED>(&mut self.core.prefetch_ports, t);
        if port.at > t && p.reliableness == Reliableness::Weak {
            return None;
        }
        let (at, joins) = (self.core.at_l2::<TIMED>(port.at), self.core.sectors.in_l2(p.sector));
        let request = Request { line, at, cause: p.cause, holder: Holder::None, write: false, joins };
        let before = signals.get(Signal::L2dCacheRefill);
        let (answer, evicted) = self.chip.read::<TIMED>(self.core.id, request, signals);
        let missed_l2 = signals.get(Signal::L2dCacheRefill) > before;
        self.back_invalidate(evicted, signals);
        hold::<TIMED>(&mut self.core.prefetch_ports, port, port.at, answer.taken);
        if TIMED && missed_l2 {
            self.core.refills.add(address, RefillKind::IntoL2, p.cause, false, t);
        }
        Some(Taken { at: port.at, hit: answer.missed.is_none() })
    }

    /// Prefetches a line, that of a virtual address, into L1D. `None`: the prefetch was weak and no MSHR was free.
    #[inline(always)]
    fn prefetch_l1(&mut self, line: u64, address: u64, t: Cycle, p: Prefetch, signals: &mut Signals) -> Option<Taken> {
        if self.core.l1d.find(line as usize & self.core.l1d_set_mask, line).is_some() {
            return Some(Taken { at: t, hit: true });
        }
        // Nothing waits for a strong hardware prefetch, so its MSHR's time is not needed.
        let needs_mshr = p.reliableness == Reliableness::Weak || p.cause == Cause::SoftwarePrefetch;
        let at = if needs_mshr { first_free::<TIMED>(&mut self.core.mshrs, t).at } else { t };
        if at > t && p.reliableness == Reliableness::Weak {
            return None;
        }
        let before = signals.get(Signal::L2dCacheRefill);
        let state = self.refill(line, p.sector, t, false, p.cause, signals);
        let missed_l2 = signals.get(Signal::L2dCacheRefill) > before;
        self.refilled(address, missed_l2, p.cause, false, t);
        Some(Taken { at, hit: !state.has(Line::FROM_MEMORY) })
    }

    /// A prefetch instruction into the cache of `level` (1 or 2) for `bytes` bytes at `pointer`, whose address was
    /// issued at `t`: one flow, for one line or two. The response says when it is done and for what it waited, which is
    /// never data.
    ///
    /// When the TLBs miss, a weak prefetch is dropped and a strong one starts a table walk (A64FX specification, HPC
    /// extension 1.3.1), unless the page does not exist.
    pub fn prefetch_instruction(
        &mut self,
        pointer: Pointer,
        bytes: u64,
        level: u8,
        t: Cycle,
        signals: &mut Signals,
    ) -> Response {
        let Some(place) = self.locate(pointer, t, signals) else { return Response::hit(self.flow(t)) };
        let at = self.flow(place.ready);
        let first = self.prefetch_line(&place, level, at, signals);
        let last = pointer.at(pointer.addr + bytes.max(1) - 1);
        if self.core.line_of(last.addr) == self.core.line_of(pointer.addr) {
            return first;
        }
        let Some(place) = self.locate(last, at, signals) else { return first };
        first.and(self.prefetch_line(&place, level, at.max(place.ready), signals))
    }

    /// When the flow of a prefetch instruction that is ready at `t` passes its pipe.
    fn flow(&mut self, t: Cycle) -> Cycle {
        if TIMED { self.core.pipes.load(t) } else { t }
    }

    /// Translates the address of a prefetch instruction; `None` when the prefetch is dropped.
    fn locate(&mut self, pointer: Pointer, t: Cycle, signals: &mut Signals) -> Option<Located> {
        let known = self.core.has_translation(pointer.addr, t);
        (known || self.core.prefetch_walks(pointer)).then(|| self.translate(pointer, t, signals))
    }

    fn prefetch_line(&mut self, place: &Located, level: u8, t: Cycle, signals: &mut Signals) -> Response {
        let Located { pointer, physical, .. } = *place;
        let reliableness = self.core.prefetcher.control().software(pointer.steering);
        let sector = self.core.sector_of(pointer);
        let p = Prefetch { cause: Cause::SoftwarePrefetch, reliableness, sector };
        let line = self.core.line_of(physical);
        let known = t + self.core.miss_known;
        let (taken, misses) = match level {
            1 => (self.prefetch_l1(line, pointer.addr, t, p, signals), Misses { l1: known, ..Misses::NONE }),
            _ => (self.prefetch_l2(line, pointer.addr, t, p, signals), Misses { port: known, ..Misses::NONE }),
        };
        match taken {
            Some(Taken { at, .. }) if TIMED && at > t => {
                self.core.pipes.replay(t, at, self.core.port_replay);
                Response { at, misses }
            }
            _ => Response::hit(t),
        }
    }
}

impl CoreMemory {
    /// Sets the registers that control prefetching.
    pub fn set_prefetch_registers(&mut self, registers: &Registers) {
        self.prefetcher.set_registers(registers);
        self.repeats.forget_all();
    }

    /// When the last hardware prefetch that had to wait for a prefetch port got it. Its cause cannot commit before.
    #[inline(always)]
    #[must_use]
    pub fn port_granted(&self) -> Cycle {
        self.port_granted
    }

    /// A prefetch of a stream missed the TLB.
    fn stop(&mut self, entry: Option<usize>) {
        if let Some(entry) = entry {
            self.prefetcher.stop(entry);
        }
    }

    /// Whether a prefetch instruction through `pointer` starts a table walk when the TLBs do not have its page.
    pub fn prefetch_walks(&mut self, pointer: Pointer) -> bool {
        self.prefetcher.control().software(pointer.steering) == Reliableness::Strong && self.is_mapped(pointer.addr)
    }
}

/// The lines of a run of prefetches, `step` lines apart.
#[inline(always)]
fn lines(run: Run, step: i64) -> impl Iterator<Item = u64> {
    (0..i64::from(run.count)).map(move |i| run.first.wrapping_add_signed(step * i))
}

/// The TLB does not have the page of a prefetch.
struct Untranslated;

/// A prefetch that was not dropped.
#[derive(Clone, Copy)]
struct Taken {
    /// When it had its port or its MSHR.
    at: Cycle,
    /// Whether L2, or L1D, had the line.
    hit: bool,
}
