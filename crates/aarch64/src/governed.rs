//! Governing predicates of a block's instructions: which instructions had inactive elements.
//!
//! Most predicates are all true, and a predicate is written less often than it governs. It is therefore checked once for each
//! value it has in a block, and recorded only if an element is inactive.

use fxscope_isa::{Partial, Reg, StaticInst};

use crate::cpu::Cpu;

/// A point in a block where a governing predicate has a new value.
#[derive(Clone, Debug)]
pub struct Governed {
    /// The instruction before which to check it.
    pub at: usize,
    /// The number of the predicate register.
    pub predicate: u8,
    /// The significant bits, one for each element.
    pub elements: u64,
    /// The instructions that it governs with this value.
    insts: Box<[u8]>,
}

impl Governed {
    /// Records the instructions with inactive elements.
    #[inline(always)]
    pub fn look(&self, cpu: &mut Cpu) {
        let active = cpu.p(self.predicate) & self.elements;
        if active != self.elements {
            self.note(active, cpu);
        }
    }

    #[inline(never)]
    fn note(&self, active: u64, cpu: &mut Cpu) {
        let partial = |&inst: &u8| Partial {
            inst,
            active: active.count_ones() as u8,
            elements: self.elements.count_ones() as u8,
        };
        self.insts.iter().map(partial).for_each(|partial| cpu.note_partial(partial));
    }
}

/// Returns the check points of a block at vector length `vl` bytes, in order.
pub(crate) fn governed(infos: &[StaticInst], vl: usize) -> Box<[Governed]> {
    let mut places: Vec<(usize, u8, u8, Vec<u8>)> = Vec::new();
    for (i, info) in infos.iter().enumerate() {
        let Some(by) = info.governing else { continue };
        let written = |info: &StaticInst| info.dsts.iter().any(|reg| reg == Reg::predicate(by.predicate));
        let at = infos[..i].iter().rposition(written).map_or(0, |write| write + 1);
        match places.iter_mut().find(|(a, p, esize, _)| (*a, *p, *esize) == (at, by.predicate, by.esize)) {
            Some((.., insts)) => insts.push(i as u8),
            None => places.push((at, by.predicate, by.esize, vec![i as u8])),
        }
    }
    places.sort_by_key(|place| place.0);
    let elements = |esize: u8| (0..vl).step_by(usize::from(esize.max(1))).fold(0, |bits, byte| bits | 1 << byte);
    let place = |(at, predicate, esize, insts): (_, _, _, Vec<u8>)| Governed {
        at,
        predicate,
        elements: elements(esize),
        insts: insts.into(),
    };
    places.into_iter().map(place).collect()
}
