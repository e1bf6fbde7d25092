//! The ring that connects the CMGs.

use std::cmp::Reverse;

use fxscope_calendar::{Cycle, LineBus};
use fxscope_machine::Spec;

/// The ring: a link each way between neighbours, and each CMG's port.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub struct Ring {
    /// `links[i]` connects stop `i` of the ring and the next one.
    links: Box<[TwoWay]>,
    /// For each CMG, its port: what it sends and receives.
    ports: Box<[LineBus]>,
    /// The stop of each CMG.
    stops: Box<[usize]>,
    hop: Cycle,
}

/// A link between two neighbours.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
struct TwoWay {
    up: LineBus,
    down: LineBus,
}

impl Ring {
    /// An idle ring.
    #[must_use]
    pub fn new(spec: &Spec) -> Ring {
        let cmgs = spec.topology.cmgs as usize;
        let columns = (spec.ring.columns as usize).min(cmgs);
        let period = u64::from(spec.l2.line_bytes) * 256 / u64::from(spec.ring.bytes_per_cycle);
        let port = (period as f64 / (spec.ring.port_efficiency / 100.0)) as u64;
        Ring {
            links: (0..cmgs).map(|_| TwoWay { up: LineBus::new(period), down: LineBus::new(period) }).collect(),
            ports: (0..cmgs).map(|_| LineBus::new(port)).collect(),
            stops: (0..cmgs).map(|cmg| stop(cmg, columns)).collect(),
            hop: spec.ring.hop,
        }
    }

    /// No transfer before `now` follows.
    pub fn advance(&mut self, now: Cycle) {
        for link in &mut self.links {
            link.up.advance(now);
            link.down.advance(now);
        }
        for port in &mut self.ports {
            port.advance(now);
        }
    }

    /// The shortest route from one CMG to another: its first link, its number of links, and whether it goes up.
    fn route(&self, from: usize, to: usize) -> (usize, usize, bool) {
        let n = self.stops.len();
        let (from, to) = (self.stops[from], self.stops[to]);
        let up = (to + n - from) % n;
        if 2 * up <= n { (from, up, true) } else { (to, n - up, false) }
    }

    /// The CMG farthest from `from` (the first of several), and the cycles of a message there and back; `None` when
    /// there is only one CMG.
    #[must_use]
    pub fn farthest(&self, from: usize) -> Option<(usize, Cycle)> {
        let others = (0..self.stops.len()).filter(|&cmg| cmg != from);
        let each = others.map(|cmg| (cmg, self.message(from, cmg) + self.message(cmg, from)));
        each.min_by_key(|&(_, cycles)| Reverse(cycles))
    }

    /// Cycles for a message without data from one CMG to another.
    #[must_use]
    pub fn message(&self, from: usize, to: usize) -> Cycle {
        self.route(from, to).1 as Cycle * self.hop
    }

    /// Transfers a line that is ready at `t` from one CMG to another. Returns when it has arrived; within a CMG that is
    /// `t`.
    pub fn transfer(&mut self, from: usize, to: usize, t: Cycle) -> Cycle {
        if from == to {
            return t;
        }
        let (first, count, up) = self.route(from, to);
        let n = self.links.len();
        let mut at = self.ports[from].book(t);
        for i in 0..count {
            let link = &mut self.links[if up { first + i } else { first + count - 1 - i } % n];
            at = if up { &mut link.up } else { &mut link.down }.book(at) + self.hop;
        }
        self.ports[to].book(at)
    }
}

/// CMGs are numbered row by row. The ring runs through the rows in alternating directions.
fn stop(cmg: usize, columns: usize) -> usize {
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
        let two_there_and_two_back = 4 * spec.ring.hop;
        let farthest = [3, 2, 1, 0].map(|cmg| Some((cmg, two_there_and_two_back)));
        assert_eq!([0, 1, 2, 3].map(|cmg| ring.farthest(cmg)), farthest);
    }

    #[test]
    fn a_port_takes_lines_in_and_out_at_its_share_of_the_width() {
        let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        let mut ring = Ring::new(&spec);
        let each = f64::from(spec.l2.line_bytes / spec.ring.bytes_per_cycle) / (spec.ring.port_efficiency / 100.0);
        let (t, n) = (1_000, 300);
        let idle = ring.transfer(0, 1, t);
        assert_eq!(idle, t + spec.ring.hop);
        // In turns from CMG 0 to its neighbours and back.
        let last = (1..n).map(|i| if i % 2 == 0 { ring.transfer(0, 1, t) } else { ring.transfer(2, 0, t) }).max();
        let expected = (n - 1) as f64 * each;
        let took = (last.expect("some") - idle) as f64;
        // What comes passes the port a hop later than what goes.
        assert!((took - expected).abs() < 2.0 * spec.ring.hop as f64, "{took} cycles for {expected}");
        assert_eq!(ring.transfer(3, 1, 5_000), 5_000 + spec.ring.hop, "free again");
        assert_eq!(ring.transfer(0, 0, t), t, "within the CMG");
    }

    #[test]
    fn a_link_carries_its_width_each_way() {
        let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        let mut ring = Ring::new(&spec);
        let each = u64::from(spec.l2.line_bytes / spec.ring.bytes_per_cycle);
        let (hop, t) = (spec.ring.hop, 1_024);
        // To opposite CMGs: from 0 by way of 1, and from 2 by way of 0. Both take the link from 0 to 1, at the same
        // time.
        assert_eq!(ring.transfer(0, 3, t), t + 2 * hop);
        assert_eq!(ring.transfer(2, 1, t - hop), t + each + hop);
        assert_eq!(ring.transfer(1, 0, t), t + hop, "the other way");
    }
}
