//! A window, and what it counts.

use fxscope_calendar::Cycle;
use fxscope_pipeline::bound::Profile;
use fxscope_pipeline::{COST_UNIT, Measures, Reach};

use super::blocks::Timed;
use crate::run::QUANTUM;

/// Cycles by which the running core may be ahead of the others: once it is this far behind a window, no other is in it.
pub(super) const SLACK: Cycle = 4 * QUANTUM;

/// An interval of simulated time in which cores are timed.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub(super) struct Window {
    /// Its number, from 1; 0: there has been none.
    pub(super) number: u64,
    /// Cores may still be in it.
    pub(super) is_open: bool,
    /// When it ends, once that is known.
    pub(super) until: Cycle,
    /// What is planned.
    pub(super) planned: fxscope_sampling::Window,
}

impl Window {
    /// Begins the window that is planned.
    pub(super) fn begin(&mut self, planned: fxscope_sampling::Window) {
        *self = Window { number: self.number + 1, is_open: true, until: Cycle::MAX, planned };
    }
}

/// What a window has counted, by block.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub(super) struct Sums {
    /// The places of blocks in `counted`, plus 1; 0 for those that have none.
    places: Vec<u32>,
    counted: Vec<BlockSums>,
    cores: u64,
    /// Instructions of detailed warm-up, those that were measured, and the cycles of these.
    warmed_up: u64,
    measured: u64,
    cycles: u64,
    /// Busy cycles of load/store pipes.
    busy: [u64; 2],
    /// Where executions are counted that are not measured: a profile of each number of instructions, which nobody reads.
    #[serde(skip)]
    unused: Vec<Box<[Profile]>>,
}

/// What executions of a block have counted.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(super) struct BlockSums {
    /// The number of its origin.
    pub(super) block: u32,
    pub(super) executions: u64,
    pub(super) measures: Measures,
    /// The executions, by how far their accesses went.
    pub(super) reached: [Timed; Reach::COUNT],
}

impl Sums {
    /// A core comes into the window.
    pub(super) fn begin_core(&mut self) {
        self.cores += 1;
    }

    /// Instructions were timed without being measured.
    pub(super) fn warm_up(&mut self, instructions: u64) {
        self.warmed_up += instructions;
    }

    /// Returns a profile of `instructions` instructions that nobody reads.
    #[inline(always)]
    pub(super) fn unused_profile(&mut self, instructions: usize) -> &mut Box<[Profile]> {
        while self.unused.len() <= instructions {
            self.unused.push(vec![Profile::default(); self.unused.len()].into());
        }
        &mut self.unused[instructions]
    }

    /// Adds an execution of a block of `instructions` instructions.
    #[inline(always)]
    pub(super) fn add(&mut self, block: u32, instructions: u64, counted: &Measures, reach: Reach) {
        self.measured += instructions;
        self.cycles += counted.cycles();
        let sums = self.of(block);
        sums.executions += 1;
        sums.measures.merge(counted);
        sums.reached[reach as usize].add(Timed { executions: 1, cycles: counted.cycles() });
    }

    #[inline(always)]
    fn of(&mut self, block: u32) -> &mut BlockSums {
        let index = block as usize;
        if index >= self.places.len() {
            self.places.resize(index + 1, 0);
        }
        if self.places[index] == 0 {
            self.counted.push(BlockSums {
                block,
                executions: 0,
                measures: Measures::default(),
                reached: Default::default(),
            });
            self.places[index] = self.counted.len() as u32;
        }
        &mut self.counted[self.places[index] as usize - 1]
    }

    /// Adds busy cycles of the load/store pipes of a core.
    pub(super) fn add_busy(&mut self, busy: [u64; 2]) {
        self.busy = [0, 1].map(|pipe| self.busy[pipe] + busy[pipe]);
    }

    /// Gives each block its share of the busy cycles of load/store pipes: that of its requests.
    pub(super) fn share_busy(&mut self) {
        let requests = |sums: &BlockSums| sums.measures.requests().iter().sum::<u64>();
        let all: u64 = self.counted.iter().map(requests).sum();
        for sums in &mut self.counted {
            let share = |pipe: usize| {
                let (own, busy) = (u128::from(requests(sums)), u128::from(self.busy[pipe]));
                (own * busy / u128::from(all.max(1))) as u64
            };
            sums.measures.add_busy([share(0), share(1)]);
        }
    }

    /// Returns the blocks that were measured, in the order of their first execution.
    pub(super) fn blocks(&self) -> &[BlockSums] {
        &self.counted
    }

    /// Returns the number of cores that were timed.
    pub(super) fn cores(&self) -> u64 {
        self.cores
    }

    /// Returns the instructions of detailed warm-up.
    pub(super) fn warmed_up(&self) -> u64 {
        self.warmed_up
    }

    /// Returns the instructions that were measured.
    pub(super) fn measured(&self) -> u64 {
        self.measured
    }

    /// Returns the cost of an instruction; `None`: nothing was measured.
    pub(super) fn cost(&self) -> Option<u64> {
        (COST_UNIT * self.cycles).checked_div(self.measured)
    }

    /// Returns empty sums, which keep their memory.
    pub(super) fn emptied(mut self) -> Sums {
        for sums in self.counted.drain(..) {
            self.places[sums.block as usize] = 0;
        }
        Sums { places: self.places, counted: self.counted, unused: self.unused, ..Sums::default() }
    }
}
