//! Where the cycles went, by instruction.

use std::collections::BTreeMap;

use fxscope_pipeline::ResolvedBlock;

/// One instruction's share of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotSpot {
    /// Its address.
    pub addr: u64,
    /// Times it was executed.
    pub executions: u64,
    /// Cycles between its commit and the commit before it, summed up.
    pub cycles: u64,
}

/// The hot spots of all blocks, by address; a block decoded twice counts once.
pub fn hot_spots<'a>(blocks: impl Iterator<Item = &'a ResolvedBlock>) -> Vec<HotSpot> {
    let mut by_addr: BTreeMap<u64, HotSpot> = BTreeMap::new();
    for block in blocks {
        for (i, profile) in block.profile.iter().enumerate() {
            let addr = block.start + 4 * i as u64;
            let spot = by_addr.entry(addr).or_insert(HotSpot { addr, executions: 0, cycles: 0 });
            spot.executions += block.executions_of(i);
            spot.cycles += profile.cycles;
        }
    }
    by_addr.into_values().filter(|s| s.executions > 0).collect()
}
