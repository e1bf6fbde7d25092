//! The ring that connects the CMGs.

use fxscope_base::{Cycle, LineBus};
use fxscope_machine::Spec;

/// Links between neighbours, and the way around.
#[derive(Default)]
pub struct Ring {
    /// `links[i]` connects station `i` of the ring with the next one.
    links: Box<[LineBus]>,
    /// Station of each CMG.
    stations: Box<[usize]>,
    hop: Cycle,
}

impl Ring {
    /// An idle ring.
    #[must_use]
    pub fn new(spec: &Spec) -> Ring {
        let cmgs = spec.topology.cmgs as usize;
        let columns = (spec.ring.columns as usize).min(cmgs);
        let period = u64::from(spec.l2.line_bytes) * 256 / u64::from(spec.ring.bytes_per_cycle);
        Ring {
            links: (0..cmgs).map(|_| LineBus::new(period)).collect(),
            stations: (0..cmgs).map(|cmg| station(cmg, columns)).collect(),
            hop: spec.ring.hop,
        }
    }

    /// Nothing before `now` will be asked for any more.
    pub fn advance(&mut self, now: Cycle) {
        for link in &mut self.links {
            link.advance(now);
        }
    }

    /// The first link and the number of links of the shortest way from one CMG to another, and whether it goes up.
    fn way(&self, from: usize, to: usize) -> (usize, usize, bool) {
        let n = self.stations.len();
        let (from, to) = (self.stations[from], self.stations[to]);
        let up = (to + n - from) % n;
        if 2 * up <= n { (from, up, true) } else { (to, n - up, false) }
    }

    /// Cycles for a message without data from one CMG to another.
    #[must_use]
    pub fn message(&self, from: usize, to: usize) -> Cycle {
        self.way(from, to).1 as Cycle * self.hop
    }

    /// A line goes from one CMG to another, ready at `t`; returns when it is there.
    pub fn transfer(&mut self, from: usize, to: usize, t: Cycle) -> Cycle {
        let (first, count, up) = self.way(from, to);
        let n = self.links.len();
        let mut at = t;
        for i in 0..count {
            let link = if up { first + i } else { first + count - 1 - i } % n;
            at = self.links[link].book(at) + self.hop;
        }
        at
    }
}

/// CMGs are numbered row by row; the ring goes through the rows to and fro.
fn station(cmg: usize, columns: usize) -> usize {
    let (row, column) = (cmg / columns, cmg % columns);
    row * columns + if row % 2 == 0 { column } else { columns - 1 - column }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_a_hop_apart_and_opposite_cmgs_two() {
        let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        let ring = Ring::new(&spec);
        let hops = |a, b| ring.message(a, b) / spec.ring.hop;
        assert_eq!([hops(0, 0), hops(0, 1), hops(0, 2), hops(0, 3)], [0, 1, 1, 2]);
        assert_eq!([hops(1, 2), hops(1, 3), hops(2, 3), hops(3, 0)], [2, 1, 1, 2]);
    }

    #[test]
    fn a_link_carries_its_width_whichever_way() {
        let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        let mut ring = Ring::new(&spec);
        let each = u64::from(spec.l2.line_bytes / spec.ring.bytes_per_cycle);
        let first = ring.transfer(0, 1, 1_000);
        assert_eq!(first, 1_000 + spec.ring.hop);
        assert_eq!(ring.transfer(1, 0, 1_000), first + each);
        assert_eq!(ring.transfer(2, 3, 1_000), first, "another link");
    }
}
