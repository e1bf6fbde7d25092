//! Tables of bound blocks, kept once for all blocks with the same code: ranks run the same libraries, cores the same loops.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use crate::bound::{BlockTables, BoundBlock, BoundUop};

/// Micro-operations of a block, and what else its code determines.
type Code = (Arc<[BoundUop]>, Arc<BlockTables>);

/// The tables of all blocks so far.
#[derive(Clone, Default)]
pub struct SharedTables {
    /// By a digest of their contents.
    known: HashMap<u64, Vec<Code>>,
}

impl SharedTables {
    /// Replaces the tables of `block` by equal ones that are known, or makes them known.
    pub fn share(&mut self, block: &mut BoundBlock) {
        let known = self.known.entry(digest(block)).or_default();
        match known.iter().find(|(uops, tables)| *uops == block.uops && *tables == block.tables) {
            Some((uops, tables)) => {
                block.uops = Arc::clone(uops);
                block.tables = Arc::clone(tables);
            }
            None => known.push((Arc::clone(&block.uops), Arc::clone(&block.tables))),
        }
    }
}

/// Returns a number that is the same for equal tables and usually differs for others: it follows from the operands.
fn digest(block: &BoundBlock) -> u64 {
    let mut hasher = DefaultHasher::new();
    block.tables.uop_end.hash(&mut hasher);
    for uop in &block.uops[..] {
        (uop.srcs, uop.addr_srcs, uop.dsts, uop.action as u8, uop.counts).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use fxscope_isa::{Reg, StaticInst};

    use super::*;
    use crate::bind::bind_block;

    fn add(addr: u64, to: u8) -> StaticInst {
        let mut inst = StaticInst { addr, ..StaticInst::new("ADD (immediate)") };
        inst.dsts.push(Reg(to));
        inst
    }

    #[test]
    fn blocks_of_the_same_code_share_their_tables_wherever_they_are() {
        let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        let mut shared = SharedTables::default();
        let mut bound = |start: u64, to: u8| {
            let mut block = bind_block(start, &[add(start, to), add(start + 4, to)], &spec);
            shared.share(&mut block);
            block
        };
        let (first, again, elsewhere) = (bound(0x1_0000, 1), bound(0x1_0000, 1), bound(0x2_0000, 1));
        assert!(first.shares_code_of(&again));
        assert!(Arc::ptr_eq(&first.uops, &elsewhere.uops), "the same code at another address");
        assert!(!first.shares_code_of(&elsewhere), "it is another block");
        // A block that begins elsewhere in a fetch block, and one with another result, are other code.
        assert!(!Arc::ptr_eq(&first.uops, &bound(0x1_0004, 1).uops));
        assert!(!Arc::ptr_eq(&first.uops, &bound(0x1_0000, 2).uops));
    }
}
