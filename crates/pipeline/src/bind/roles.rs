//! The operands and results of each micro-operation of an instruction.
//!
//! A row lists the dependences between micro-operations, not the registers that each reads. These follow from the kinds
//! of micro-operations: those that depend on no other one read the operands; the one that accumulates reads the
//! accumulator; the pipes of a memory access read its addresses and data.

use fxscope_isa::{Access, MemOp, Reg, RegClass, Shape, StaticInst};
use fxscope_machine::{Pipes, Recipe, Uop};

use super::flows::{EAG, FL};
use super::memory::accesses;
use super::operands::{add_all, push, temp};
use crate::bound::BoundUop;

/// The micro-operations of one instruction by what they do.
pub(super) struct Roles<'a> {
    info: &'a StaticInst,
    uops: &'a [Uop],
    /// Those that access memory.
    accesses: Vec<usize>,
    /// The one that updates the base register.
    update: Option<usize>,
    /// Those that read the accumulator, when others do not.
    accumulate: Vec<usize>,
    /// The operand that the first micro-operation makes a vector of, which the others wait for.
    broadcast: Option<Reg>,
}

impl<'a> Roles<'a> {
    pub(super) fn new(info: &'a StaticInst, recipe: &'a Recipe) -> Roles<'a> {
        let uops = &recipe.uops[..];
        let accesses = accesses(info, uops);
        let last = uops.len().checked_sub(1);
        let update = last.filter(|k| info.writeback.is_some() && info.mem.is_some() && !accesses.contains(k));
        let mut roles = Roles { info, uops, accesses, update, accumulate: Vec::new(), broadcast: None };
        roles.accumulate = roles.accumulating();
        let first_alone = uops.len() > 1 && (0..uops.len()).all(|k| roles.enters(k) == (k == 0));
        roles.broadcast = info.element.filter(|_| first_alone);
        roles
    }

    /// Number of micro-operations that access memory.
    pub(super) fn parts(&self) -> usize {
        self.accesses.len()
    }

    /// Which part of the memory access number `k` does.
    pub(super) fn part(&self, k: usize) -> Option<usize> {
        self.accesses.iter().position(|&access| access == k)
    }

    /// Whether micro-operation `k` makes the data of a scatter, whose addresses the previous one makes (manual 7.8.2,
    /// figure 7-7).
    pub(super) fn makes_store_data(&self, k: usize) -> bool {
        let scatters = |op: MemOp| op.shape == Shape::Indexed && op.access == Access::Store;
        self.part(k).is_none() && self.info.mem.is_some_and(scatters)
    }

    /// Whether micro-operation `k` moves a value from a vector register to a general one: through a store port and back, as its
    /// address flow behind that of the vector pipe shows (manual table 16-2).
    pub(super) fn transfers(&self, k: usize) -> bool {
        let [first, .., last] = &self.uops[k].flows[..] else { return false };
        self.info.mem.is_none() && first.pipes.within(FL) && last.pipes.within(EAG)
    }

    /// Sets the operands of micro-operation `k`. Those of an access are set already.
    pub(super) fn operands(&self, k: usize, r: &mut BoundUop) {
        self.wait_for_others(k, r);
        if self.part(k).is_some() {
            return;
        }
        match self.info.mem {
            _ if self.update == Some(k) => self.addresses(r),
            None if self.broadcast.is_some() => self.compute_with_element(k, r),
            None if self.enters(k) || self.accumulate.contains(&k) => self.compute(k, r),
            None => {}
            // Elements of a scatter need both.
            Some(op) if op.shape == Shape::Indexed => {
                add_all(&mut r.srcs, &self.info.srcs);
                self.addresses(r);
            }
            Some(_) => self.beside_access(k, r),
        }
    }

    /// Sets the results of micro-operation `k`.
    pub(super) fn results(&self, k: usize, r: &mut BoundUop) {
        let needs = |later: usize| self.uops[later].depends.iter().any(|d| later - d.places as usize == k);
        if (k + 1..self.uops.len()).any(|later| needs(later) || self.inserted(later) == Some(k)) {
            push(&mut r.dsts, temp(k));
        }
        let info = self.info;
        match self.accesses.last() {
            _ if self.update == Some(k) => info.writeback.into_iter().for_each(|base| r.gives(base)),
            None if k + 1 == self.uops.len() => info.dsts.iter().for_each(|reg| r.gives(reg)),
            None => {}
            Some(_) if info.dsts.len() == self.parts() => {
                let own =
                    self.accesses.iter().zip(info.dsts.iter()).filter(|&(&access, _)| self.result_of(access) == k);
                own.for_each(|(_, reg)| r.gives(reg));
            }
            // One register, or several from fewer accesses: all come with the last one.
            Some(&last) if self.result_of(last) == k => info.dsts.iter().for_each(|reg| r.gives(reg)),
            Some(_) => {}
        }
        if let (None, Some(base), true) = (self.update, info.writeback, self.accesses.last() == Some(&k)) {
            // A row without a separate update: the base comes with the access.
            r.gives(base);
        }
    }

    /// The micro-operations that `k` depends on. An access needs its address.
    fn wait_for_others(&self, k: usize, r: &mut BoundUop) {
        let first = if self.part(k).is_some() { &mut r.addr_srcs[..] } else { &mut r.srcs[..] };
        for d in &self.uops[k].depends {
            let producer = temp(k - d.places as usize);
            if d.flow == 0 {
                push(first, producer);
            } else {
                r.late.src = producer;
            }
        }
        if let Some(access) = self.inserted(k) {
            push(first, temp(access));
        }
    }

    /// Whether the first flow of `k` waits for no other micro-operation.
    fn enters(&self, k: usize) -> bool {
        self.uops[k].depends.iter().all(|d| d.flow > 0)
    }

    /// Operands of a micro-operation that computes.
    fn compute(&self, k: usize, r: &mut BoundUop) {
        if self.accumulate.is_empty() {
            add_all(&mut r.srcs, &self.info.srcs);
        } else if self.enters(k) {
            self.besides_accumulator().for_each(|reg| push(&mut r.srcs, reg.0));
        }
        if self.accumulate.contains(&k) {
            self.info.accumulator.into_iter().for_each(|reg| push(&mut r.srcs, reg.0));
        }
    }

    /// Operands of a micro-operation that computes, where the first makes a vector of one element: it needs that operand
    /// alone, the second the others.
    fn compute_with_element(&self, k: usize, r: &mut BoundUop) {
        match k {
            0 => self.broadcast.into_iter().for_each(|reg| push(&mut r.srcs, reg.0)),
            1 => {
                let others = self.besides_accumulator().filter(|&reg| Some(reg) != self.broadcast);
                others.for_each(|reg| push(&mut r.srcs, reg.0));
            }
            _ => {}
        }
        let accumulates = self.accumulate.contains(&k) || (k == 1 && self.accumulate.is_empty());
        if accumulates {
            self.info.accumulator.into_iter().for_each(|reg| push(&mut r.srcs, reg.0));
        }
    }

    /// Operands of an address or data micro-operation that is not an access itself.
    fn beside_access(&self, k: usize, r: &mut BoundUop) {
        let pipes = self.uops[k].flows.first().map_or(Pipes::default(), |f| f.pipes);
        let makes_nothing = self.uops[k].flows.iter().all(|f| f.latency == 0);
        match self.inserted(k).and_then(|access| self.part(access)) {
            Some(part) => self.info.srcs.get(part).into_iter().for_each(|reg| push(&mut r.srcs, reg.0)),
            None if pipes.within(EAG) && self.enters(k) => self.addresses(r),
            None if pipes.within(EAG) || (makes_nothing && !self.enters(k)) => {}
            None => add_all(&mut r.srcs, &self.info.srcs),
        }
    }

    /// An operation on addresses reads the registers that they are formed from.
    fn addresses(&self, r: &mut BoundUop) {
        self.info.addr_srcs.iter().filter(|reg| reg.class() != RegClass::Predicate).for_each(|reg| {
            push(&mut r.srcs, reg.0);
            push(&mut r.addr_srcs, reg.0);
        });
    }

    /// The access whose element micro-operation `k` inserts into a register. Rows of such loads list no dependence, but
    /// there is no other possible source.
    fn inserted(&self, k: usize) -> Option<usize> {
        let access = k.checked_sub(1).filter(|before| self.accesses.contains(before))?;
        let loads = self.info.mem.is_some_and(|op| op.access == Access::Load);
        let inserts = self.uops[k].depends.is_empty() && self.uops[k].flows.iter().any(|f| f.pipes.within(FL));
        (loads && inserts).then_some(access)
    }

    /// The micro-operation that makes the result of an access: the last one with a latency that works on it.
    fn result_of(&self, access: usize) -> usize {
        let mut result = access;
        let mut works_on = vec![false; self.uops.len()];
        works_on[access] = true;
        for k in access + 1..self.uops.len() {
            let uop = &self.uops[k];
            works_on[k] =
                uop.depends.iter().any(|d| works_on[k - d.places as usize]) || self.inserted(k) == Some(access);
            if works_on[k] && uop.flows.last().is_some_and(|f| f.latency > 0) {
                result = k;
            }
        }
        result
    }

    /// The micro-operations to which the accumulator goes, alone among those that read operands: the last one, or, when
    /// that adds up results of its own kind, the ones that these begin with (a sum from element to element). There are
    /// none when an earlier one would be left without an operand.
    fn accumulating(&self) -> Vec<usize> {
        let (Some(_), Some(last), None) = (self.info.accumulator, self.uops.len().checked_sub(1), self.info.mem) else {
            return Vec::new();
        };
        let mut reached = vec![false; self.uops.len()];
        reached[last] = true;
        let mut found = Vec::new();
        for k in (0..=last).rev() {
            let own_kind = if reached[k] { self.adds_own_kind(k) } else { continue };
            own_kind.iter().for_each(|&before| reached[before] = true);
            if own_kind.is_empty() {
                found.push(k);
            }
        }
        let fed = |k: usize| found.contains(&k) || !self.enters(k) || self.has_operand_besides(k);
        if (0..=last).all(fed) { found } else { Vec::new() }
    }

    /// The micro-operations that `k`, which combines several, depends on and that have its own latency.
    fn adds_own_kind(&self, k: usize) -> Vec<usize> {
        let latency = |k: usize| self.uops[k].flows.last().map(|f| f.latency);
        let depends = &self.uops[k].depends;
        let before = depends.iter().map(|d| k - d.places as usize).filter(|&before| latency(before) == latency(k));
        if depends.len() < 2 { Vec::new() } else { before.collect() }
    }

    /// Whether there is an operand, other than the accumulator, of the kind that micro-operation `k` reads.
    fn has_operand_besides(&self, k: usize) -> bool {
        let pipes = self.uops[k].flows.first().map_or(Pipes::default(), |f| f.pipes);
        let class = match () {
            () if pipes.meets(FL) => RegClass::Vector,
            () if pipes.meets(Pipes::PRX) => RegClass::Predicate,
            () => RegClass::Gpr,
        };
        self.besides_accumulator().any(|reg| reg.class() == class)
    }

    /// The operands without one occurrence of the accumulator, which may be another operand, too.
    fn besides_accumulator(&self) -> impl Iterator<Item = Reg> + '_ {
        let place = self.info.srcs.iter().position(|reg| Some(reg) == self.info.accumulator);
        self.info.srcs.iter().enumerate().filter(move |&(i, _)| Some(i) != place).map(|(_, reg)| reg)
    }
}
