//! Which blocks a unit consists of.

use std::collections::BTreeSet;

use fxscope_aarch64::{BlockId, Governed, Inst, StaticBlock, table};
use fxscope_isa::{Branch, StaticInst};

/// Most blocks of a unit.
const MOST_BLOCKS: usize = 96;
/// Most instructions of a unit: the time to translate it grows faster than its length.
const MOST_INSTRUCTIONS: usize = 1200;

/// A block of a unit.
pub(crate) struct UnitBlock {
    /// Its number.
    pub(crate) id: BlockId,
    /// Address of its first instruction, and the one behind its last.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Its instructions as the interpreter executes them. Translated code refers to them.
    pub(crate) insts: Box<[Inst]>,
    pub(crate) infos: Box<[StaticInst]>,
    /// Their names in the instruction table; empty: not an instruction.
    pub(crate) names: Box<[&'static str]>,
    pub(crate) words: Box<[u32]>,
    /// Where governing predicates are checked, if that is traced. Translated code refers to them, too.
    pub(crate) governed: Box<[Governed]>,
}

impl UnitBlock {
    /// Returns block number `id`, which `block` describes; `words` are its instruction words.
    pub(crate) fn new(id: BlockId, block: &StaticBlock, insts: Box<[Inst]>, words: &[u32]) -> UnitBlock {
        let name = |&word: &u32| table::lookup(word).map_or("", |row| row.name);
        UnitBlock {
            id,
            start: block.start,
            end: block.end,
            insts,
            infos: block.infos.clone(),
            names: words.iter().map(name).collect(),
            words: words.into(),
            governed: Box::default(),
        }
    }

    /// Returns the same block with the places at which governing predicates are checked.
    pub(crate) fn governed_by(self, governed: &[Governed]) -> UnitBlock {
        UnitBlock { governed: governed.into(), ..self }
    }

    /// Returns whether it ends with a direct branch to `target` that is no call.
    pub(crate) fn branches_to(&self, target: u64) -> bool {
        let (Some(info), Some(inst)) = (self.infos.last(), self.insts.last()) else { return false };
        matches!(info.branch, Branch::Direct | Branch::Conditional | Branch::Compare) && inst.imm as u64 == target
    }

    /// Returns whether a unit may contain it: it does not write floating-point control and status, on which translated code relies.
    pub(crate) fn is_translatable(words: &[u32]) -> bool {
        // MSR FPCR, Xt and MSR FPSR, Xt.
        !words.iter().any(|word| word & !0x3f == 0xd51b_4400)
    }
}

/// Returns the addresses at which execution may continue after a block, as far as they follow from its instructions; for a call,
/// also the return address.
pub(crate) fn successors(block: &StaticBlock, insts: &[Inst]) -> Vec<u64> {
    let (Some(info), Some(inst)) = (block.infos.last(), insts.last()) else { return Vec::new() };
    let target = inst.imm as u64;
    match info.branch {
        Branch::None if info.enters_kernel => Vec::new(),
        Branch::None | Branch::IndirectCall => vec![block.end],
        Branch::Direct => vec![target],
        Branch::Conditional | Branch::Compare | Branch::Call => vec![target, block.end],
        Branch::Indirect | Branch::Return => Vec::new(),
    }
}

/// Chooses the blocks of the unit that begins at `head`: those that are reached from it, nearest first, as far as `block` returns
/// them. It returns a block's number of instructions and successors.
pub(crate) fn choose(head: u64, mut block: impl FnMut(u64) -> Option<(usize, Vec<u64>)>) -> Vec<u64> {
    let (mut chosen, mut seen, mut instructions) = (Vec::new(), BTreeSet::from([head]), 0);
    let mut waiting = std::collections::VecDeque::from([head]);
    while let Some(start) = waiting.pop_front() {
        let Some((length, successors)) = block(start) else { continue };
        instructions += length;
        if chosen.len() == MOST_BLOCKS || (instructions > MOST_INSTRUCTIONS && start != head) {
            break;
        }
        chosen.push(start);
        waiting.extend(successors.into_iter().filter(|&successor| seen.insert(successor)));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_has_the_known_blocks_that_are_reached_from_its_head() {
        let graph = |start| match start {
            0 => Some((4, vec![16, 32])),
            16 => Some((4, vec![0])),
            32 => Some((4, vec![48, 16])),
            64 => Some((4, vec![0])),
            _ => None,
        };
        assert_eq!(choose(0, graph), [0, 16, 32]);
        assert_eq!(choose(64, graph), [64, 0, 16, 32]);
        assert_eq!(choose(48, graph), []);
    }

    #[test]
    fn a_unit_is_bounded() {
        assert_eq!(choose(0, |start| Some((1, vec![start + 4, start + 8]))).len(), MOST_BLOCKS);
        assert_eq!(choose(0, |start| Some((64, vec![start + 256]))).len(), MOST_INSTRUCTIONS / 64);
    }
}
