//! The clocks of all CPUs, and which of them is lowest.

use std::ops::Index;

use fxscope_calendar::Cycle;
use fxscope_memory::NEVER;

/// When each CPU runs next; [`NEVER`]: it has nothing to do.
///
/// A tournament tree finds the lowest clock: of two neighbours the lower one advances. When a clock changes, only the
/// matches on its path are played again.
#[derive(Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(crate) struct Clocks {
    /// A power of two of them, at least two. Those beyond the CPUs are [`NEVER`].
    clocks: Box<[Cycle]>,
    /// The winner of each match: match 1 is the final; match `n` is between the winners of `2 n` and `2 n + 1`. The
    /// CPUs themselves follow the matches.
    winners: Box<[usize]>,
    cpus: usize,
    /// CPUs that have something to do.
    busy: usize,
}

impl Clocks {
    /// Returns the clocks of `cpus` CPUs that have nothing to do.
    pub(crate) fn new(cpus: usize) -> Clocks {
        let places = cpus.next_power_of_two().max(2);
        let first_of = |place: usize| (0..).map(|n| place << n).find(|&p| p >= places).map_or(0, |p| p - places);
        let winners = (0..2 * places).map(|place| if place == 0 { 0 } else { first_of(place) }).collect();
        Clocks { clocks: vec![NEVER; places].into(), winners, cpus, busy: 0 }
    }

    /// Sets the time at which CPU number `cpu` runs next.
    pub(crate) fn set(&mut self, cpu: usize, clock: Cycle) {
        self.busy -= usize::from(self.clocks[cpu] != NEVER);
        self.busy += usize::from(clock != NEVER);
        self.clocks[cpu] = clock;
        let mut at = (self.clocks.len() + cpu) / 2;
        while at > 0 {
            let (a, b) = (self.winners[2 * at], self.winners[2 * at + 1]);
            self.winners[at] = if self.clocks[b] < self.clocks[a] { b } else { a };
            at /= 2;
        }
    }

    /// Returns the CPU with the lowest clock (among equals, the lowest number), and the second lowest clock.
    pub(crate) fn first_two(&self) -> Option<(usize, Cycle)> {
        let first = self.winners[1];
        let (mut second, mut at) = (NEVER, self.clocks.len() + first);
        // The second one lost a match against the first.
        while at > 1 {
            second = second.min(self.clocks[self.winners[at ^ 1]]);
            at /= 2;
        }
        (self.clocks[first] != NEVER).then_some((first, second))
    }

    /// Returns whether these are clocks of `cpus` CPUs in a state that [`Clocks::set`] can leave.
    pub(crate) fn is_sound(&self, cpus: usize) -> bool {
        let mut clocks = Clocks::new(cpus);
        self.clocks.iter().take(cpus).enumerate().for_each(|(cpu, &clock)| clocks.set(cpu, clock));
        clocks == *self
    }

    /// Returns the number of CPUs that have something to do.
    pub(crate) fn busy(&self) -> usize {
        self.busy
    }

    /// Iterates over all clocks, by CPU.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Cycle> {
        self.clocks[..self.cpus].iter().copied()
    }
}

impl Index<usize> for Clocks {
    type Output = Cycle;

    fn index(&self, cpu: usize) -> &Cycle {
        &self.clocks[cpu]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_are_those_of_a_search_through_all() {
        for cpus in [1, 2, 3, 12, 48] {
            let mut clocks = Clocks::new(cpus);
            assert_eq!(clocks.first_two(), None);
            for step in 0..1_000_usize {
                let clock = if step % 7 == 0 { NEVER } else { (step * step % 91) as Cycle };
                clocks.set(step * 5 % cpus, clock);
                let mut all: Vec<_> = clocks.iter().zip(0..).collect();
                assert_eq!(all.len(), cpus);
                all.sort_unstable();
                assert_eq!(clocks.busy(), all.iter().filter(|&&(clock, _)| clock != NEVER).count());
                let second = all.get(1).map_or(NEVER, |&(clock, _)| clock);
                let expected = (all[0].0 != NEVER).then_some((all[0].1, second));
                assert_eq!(clocks.first_two(), expected, "{cpus} CPUs, step {step}");
            }
        }
    }
}
