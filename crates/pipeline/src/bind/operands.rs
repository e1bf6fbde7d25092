//! Operands and results of micro-operations.

use fxscope_isa::{Reg, RegClass, RegList, StaticInst};
use fxscope_machine::Pipes;

use super::flows::FL;
use crate::bound::{Action, BY_PIPE, BoundUop, Producer, READY, TEMP, TEMPS};

/// The register that carries the result of micro-operation number `uop` to others of the same instruction.
pub(super) fn temp(uop: usize) -> u8 {
    TEMP + (uop % TEMPS) as u8
}

/// Adds `reg` to a list of operands. Lists are long enough for all instructions but a few, whose further operands are
/// ready earlier than the others in practice.
pub(super) fn push(list: &mut [u8], reg: u8) {
    if list.contains(&reg) {
        return;
    }
    if let Some(slot) = list.iter_mut().find(|s| **s == READY) {
        *slot = reg;
    }
}

/// Takes one more rename register of a class.
fn rename(renames: &mut [u8; 4], class: u8) {
    if let Some(slot) = renames.iter_mut().find(|s| **s == 0) {
        *slot = class;
    }
}

/// Adds all of `regs` to a list of operands.
pub(super) fn add_all(list: &mut [u8], regs: &RegList) {
    for reg in regs.iter() {
        push(list, reg.0);
    }
}

impl BoundUop {
    /// It writes `reg`, which is renamed.
    pub(super) fn gives(&mut self, reg: Reg) {
        push(&mut self.dsts, reg.0);
        match reg.class() {
            RegClass::Gpr => rename(&mut self.renames, 1),
            RegClass::Vector => rename(&mut self.renames, 2),
            RegClass::Predicate => rename(&mut self.renames, 3),
            RegClass::Flags => {}
        }
    }

    /// How each of its results bypasses.
    pub(super) fn bypasses(&mut self, info: &StaticInst) {
        for (i, dst) in self.dsts.into_iter().enumerate() {
            self.producers[i] = self.producer_of(dst, info);
        }
    }

    /// How the result `dst` bypasses.
    fn producer_of(&self, dst: u8, info: &StaticInst) -> u8 {
        let made = self.result_producer(info);
        let flags = dst == Reg::NZCV.0;
        let producer = match made {
            Producer::Predicate if flags => Producer::PredicateFlags,
            Producer::Compare if flags => Producer::CompareFlags,
            Producer::Plain if flags && self.vector => Producer::VectorFlags,
            Producer::Plain if flags => Producer::Flags,
            Producer::Plain if self.loaded() || self.vector => Producer::Plain,
            Producer::Plain => return BY_PIPE,
            other => other,
        };
        producer as u8
    }

    /// Its result comes from a load/store pipe.
    fn loaded(&self) -> bool {
        self.action == Action::Load && !self.continues
    }

    /// The producer of its result, as far as bypasses distinguish it.
    pub(super) fn result_producer(&self, info: &StaticInst) -> Producer {
        let predicate = info.dsts.iter().any(|r| r.class() == RegClass::Predicate);
        let used = |p: Pipes| self.flows[..usize::from(self.nflows)].iter().any(|f| f.pipes.meets(p));
        match () {
            () if predicate && self.action == Action::Load => Producer::PredicateLoad,
            () if predicate && used(FL) => Producer::Compare,
            // The last of several flows makes the result.
            () if self.flows[usize::from(self.nflows.max(1)) - 1].pipes.meets(Pipes::PRX) => Producer::Predicate,
            () => Producer::Plain,
        }
    }
}
