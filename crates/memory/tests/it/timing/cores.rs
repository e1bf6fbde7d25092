//! Several cores on a chip, for the tests of what they share.

use super::*;

/// Distance of the first addresses of two CMGs' memories.
pub(super) fn node(spec: &Spec) -> u64 {
    spec.topology.node_bytes
}

/// Cores that share a chip; the one that is asked for runs.
pub(super) struct Cores {
    pub(super) spec: Spec,
    pub(super) cores: Vec<Core>,
    running: usize,
}

impl Cores {
    /// Cores at these positions of the chip, counted from 0 through all CMGs.
    pub(super) fn at(spec: Spec, positions: &[u32]) -> Cores {
        let core = |(i, &position)| {
            if i == 0 {
                return Core::at(&spec, position);
            }
            Core::with(&spec, Memory::waiting(&spec, position))
        };
        let mut cores: Vec<Core> = positions.iter().enumerate().map(core).collect();
        let (first, others) = cores.split_at_mut(1);
        // Every core runs once, so that it counts as one that will ask again.
        for other in others {
            other.memory.take_over(&mut first[0].memory, 0, 0, &mut Signals::default());
            first[0].memory.take_over(&mut other.memory, 0, 0, &mut Signals::default());
        }
        Cores { spec, cores, running: 0 }
    }
    /// Two neighbours on CMG 0.
    pub(super) fn neighbours() -> Cores {
        Cores::at(machine(), &[0, 1])
    }
    /// A core on CMG 0 and one on CMG 1, each the nearest to its L2.
    pub(super) fn on_two_cmgs() -> Cores {
        Cores::on_two_cmgs_of(machine())
    }
    pub(super) fn on_two_cmgs_of(spec: Spec) -> Cores {
        let second = spec.topology.cores_per_cmg;
        Cores::at(spec, &[0, second])
    }
    /// Core number `i` of these runs at `now`.
    pub(super) fn run(&mut self, i: usize, now: Cycle) -> &mut Core {
        self.run_after(i, now, 0)
    }
    /// Core number 0 of these runs at `now`, and none of the others sends a request before.
    pub(super) fn all_at(&mut self, now: Cycle) -> &mut Core {
        (0..self.cores.len()).rev().for_each(|i| _ = self.run_after(i, now, now));
        self.cores[0].now(now);
        &mut self.cores[0]
    }
    /// Core number `i` of these runs at `now`; the one that ran sends no request before `from`.
    fn run_after(&mut self, i: usize, now: Cycle, from: Cycle) -> &mut Core {
        if i != self.running {
            let [next, last] = self.cores.get_disjoint_mut([i, self.running]).expect("two cores");
            next.memory.take_over(&mut last.memory, from, now, &mut next.signals);
            self.running = i;
        }
        let core = &mut self.cores[i];
        core.memory.run().handle_snoops(now, &mut core.signals);
        core
    }
    pub(super) fn load(&mut self, i: usize, addr: u64, t: Cycle) -> (Cycle, Level) {
        self.run(i, t).load(addr, t)
    }
    /// Cycles from a store's flow at `t` until its line can be written.
    pub(super) fn store(&mut self, i: usize, addr: u64, t: Cycle) -> Cycle {
        self.run(i, t).access(addr, t, true).at - t
    }
    /// A count over all cores, when all have read their notices.
    pub(super) fn get(&mut self, signal: Signal) -> u64 {
        (0..self.cores.len()).map(|i| self.run(i, Cycle::MAX).get(signal)).sum()
    }
    /// What a request costs on its way, and a line from L2 on its way to where a store can write it.
    pub(super) fn way(&self) -> (Cycle, Cycle) {
        let t = &self.spec.l2_timing;
        (t.request, t.request + u64::from(self.spec.l1d.line_bytes / t.fill_bytes_per_cycle))
    }
    /// From L2 to a core, which gives a line up, and back with the line (`true`) or without.
    pub(super) fn snoop(&self, line: bool) -> Cycle {
        let (t, ls) = (&self.spec.l2_timing, &self.spec.load_store);
        let transfer = u64::from(self.spec.l1d.line_bytes / t.writeback_bytes_per_cycle);
        2 * t.request + if line { ls.move_out_dirty + transfer } else { ls.move_out_clean }
    }
    /// Load-to-use behind the time a line can be written: it moves in, and the load's flow runs again.
    pub(super) fn use_after(&self) -> Cycle {
        self.spec.load_store.move_in + self.spec.load_store.load_integer
    }
}
