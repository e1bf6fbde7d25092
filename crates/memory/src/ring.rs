//! The ring that connects the CMGs.

use std::cmp::Reverse;

use fxscope_calendar::{Cycle, LineBus};
use fxscope_machine::Spec;

/// The ring: a link each way between neighbours, and each CMG's ports.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub struct Ring {
    /// `links[i]` connects stop `i` of the ring and the next one.
    links: Box<[TwoWay]>,
    /// For each CMG, the lines that it reads from others, and from memory tiers, and writes back to them.
    requests: Box<[LineBus]>,
    /// For each CMG, the lines that others read from it and write back to it.
    served: Box<[Service]>,
    /// The stop of each CMG.
    stops: Box<[usize]>,
    columns: usize,
    hop: Cycle,
    row_hop: Cycle,
}

/// A link between two neighbours.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
struct TwoWay {
    up: LineBus,
    down: LineBus,
}

/// The port through which a CMG serves others. It loses time when lines of one CMG follow lines of another.
///
/// Cores are simulated one after another for some time each, so the order in which lines are booked is not the order in
/// which they pass. The share of lines that follow one of another CMG is therefore taken from how many each CMG has
/// transferred recently, as if they came in random order.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
struct Service {
    port: LineBus,
    /// Lines of each CMG, recent ones: halved with each [`RECENT`].
    lines: Box<[u32]>,
    /// Time lost at changes that has not been booked yet, in slots of the port times 65,536.
    lost: u64,
    /// Lost per line, in the same unit, if each line followed one of another CMG.
    turnaround: u64,
    /// Lost per line, from the recent lines.
    each: u64,
}

/// Lines after which a port looks again at how they are shared.
const RECENT: u32 = 256;

impl Service {
    fn new(spec: &Spec, period: u64) -> Service {
        Service {
            port: LineBus::new(period),
            lines: vec![0; spec.topology.cmgs as usize].into(),
            lost: 0,
            turnaround: ((spec.ring.turnaround * 256) << 16) / period,
            each: 0,
        }
    }

    /// Books a line that `cmg` reads or writes; returns when it starts.
    fn book(&mut self, cmg: usize, t: Cycle) -> Cycle {
        self.lines[cmg] += 1;
        if self.lines[cmg] >= RECENT {
            self.each = (self.turnaround * changes(&self.lines)) >> 16;
            self.lines.iter_mut().for_each(|lines| *lines /= 2);
        }
        self.lost += self.each;
        let slots = 1 + (self.lost >> 16);
        self.lost &= 0xffff;
        self.port.book_slots(t, slots).0
    }
}

/// The share of lines that follow one of another CMG, in 65,536ths: one less the sum of squares of the shares.
fn changes(lines: &[u32]) -> u64 {
    let total: u64 = lines.iter().map(|&lines| u64::from(lines)).sum();
    let squares: u64 = lines.iter().map(|&lines| u64::from(lines).pow(2)).sum();
    ((total.pow(2) - squares) << 16) / total.pow(2).max(1)
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
            requests: (0..cmgs).map(|_| LineBus::new(port)).collect(),
            served: (0..cmgs).map(|_| Service::new(spec, port)).collect(),
            stops: (0..cmgs).map(|cmg| stop(cmg, columns)).collect(),
            columns,
            hop: spec.ring.hop,
            row_hop: spec.ring.row_hop,
        }
    }

    /// No transfer before `now` follows.
    pub fn advance(&mut self, now: Cycle) {
        for link in &mut self.links {
            link.up.advance(now);
            link.down.advance(now);
        }
        for (requests, served) in self.requests.iter_mut().zip(&mut self.served) {
            requests.advance(now);
            served.port.advance(now);
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
        if from == to {
            0
        } else if from / self.columns == to / self.columns {
            self.hop
        } else {
            self.row_hop
        }
    }

    /// Transfers a line that is ready in CMG `from` at `t` to CMG `to`, which asked for it. Returns when it has arrived;
    /// within a CMG that is `t`.
    pub fn read(&mut self, to: usize, from: usize, t: Cycle) -> Cycle {
        if from == to {
            return t;
        }
        let at = self.served[from].book(to, t);
        let at = self.travel(from, to, at);
        self.requests[to].book(at)
    }

    /// Transfers a line that CMG `from` writes back at `t` to its home, CMG `to`. Returns as [`Ring::read`].
    pub fn write_back(&mut self, from: usize, to: usize, t: Cycle) -> Cycle {
        if from == to {
            return t;
        }
        let at = self.requests[from].book(t);
        let at = self.travel(from, to, at);
        self.served[to].book(from, at)
    }

    /// Transfers a line that a memory tier has sent at `t` to CMG `to`. Returns when it has arrived.
    pub fn from_tier(&mut self, to: usize, t: Cycle) -> Cycle {
        self.requests[to].book(t)
    }

    /// Transfers a line that CMG `from` writes back at `t` to a memory tier. Returns when it has left the CMG.
    pub fn to_tier(&mut self, from: usize, t: Cycle) -> Cycle {
        self.requests[from].book(t)
    }

    /// A line takes the links from one CMG to another. The time of the way is spread over them.
    fn travel(&mut self, from: usize, to: usize, t: Cycle) -> Cycle {
        let (first, count, up) = self.route(from, to);
        let (n, way) = (self.links.len(), self.message(from, to));
        let mut at = t;
        for i in 0..count {
            let link = &mut self.links[if up { first + i } else { first + count - 1 - i } % n];
            let (begin, end) = (way * i as Cycle / count as Cycle, way * (i as Cycle + 1) / count as Cycle);
            at = if up { &mut link.up } else { &mut link.down }.book(at) + (end - begin);
        }
        at
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
    fn cmgs_of_a_row_are_nearer_than_those_of_other_rows() {
        let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        let ring = Ring::new(&spec);
        let (near, far) = (spec.ring.hop, spec.ring.row_hop);
        assert_eq!([0, 1, 2, 3].map(|to| ring.message(0, to)), [0, near, far, far]);
        assert_eq!([0, 1, 2, 3].map(|to| ring.message(3, to)), [far, far, near, 0]);
        let farthest = [2, 2, 0, 0].map(|cmg| Some((cmg, 2 * far)));
        assert_eq!([0, 1, 2, 3].map(|cmg| ring.farthest(cmg)), farthest);
    }

    /// The mean time between lines when `transfer` asks for `n` of them at once.
    fn interval(n: u64, mut transfer: impl FnMut(u64) -> Cycle) -> f64 {
        let idle = transfer(0);
        let last = (1..n).map(&mut transfer).max().expect("some");
        (last - idle) as f64 / (n - 1) as f64
    }

    #[test]
    fn a_cmg_reads_and_writes_lines_of_others_at_the_width_of_its_port() {
        let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        let mut ring = Ring::new(&spec);
        let each = f64::from(spec.l2.line_bytes / spec.ring.bytes_per_cycle) / (spec.ring.port_efficiency / 100.0);
        // In turns read from its neighbour and written back to the CMG behind it: no other port has as many lines.
        let t = 1_000;
        assert_eq!(ring.clone().read(0, 1, t), t + spec.ring.hop);
        let took = interval(300, |i| if i % 2 == 0 { ring.read(0, 1, t) } else { ring.write_back(0, 2, t) });
        assert!((took - each).abs() < 0.02 * each + 0.2, "{took} cycles for {each}");
        assert_eq!(ring.read(1, 3, 5_000), 5_000 + spec.ring.row_hop, "free");
        assert_eq!(ring.read(0, 0, t), t, "within the CMG");
    }

    #[test]
    fn a_cmg_loses_time_when_it_serves_several_others_in_turns() {
        let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        let each = f64::from(spec.l2.line_bytes / spec.ring.bytes_per_cycle) / (spec.ring.port_efficiency / 100.0);
        // Three CMGs with equal shares: two of three lines follow one of another CMG.
        for (cmgs, changes) in [(1, 0.0), (3, 2.0 / 3.0)] {
            let mut ring = Ring::new(&spec);
            let reader = |i: u64| 1 + (i % cmgs) as usize;
            // Until it knows how its lines are shared.
            let t = (0..1_000).map(|i| (i, 1_000 + 10 * i)).fold(0, |_, (i, t)| {
                ring.advance(t);
                ring.read(reader(i), 0, t)
            });
            let took = interval(900, |i| ring.read(reader(i), 0, t));
            let expected = each + changes * spec.ring.turnaround as f64;
            assert!((took - expected).abs() < 0.03 * expected, "{cmgs}: {took} cycles for {expected}");
        }
    }

    #[test]
    fn a_link_carries_its_width_each_way() {
        let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        let mut ring = Ring::new(&spec);
        let each = u64::from(spec.l2.line_bytes / spec.ring.bytes_per_cycle);
        let (hop, row_hop, t) = (spec.ring.hop, spec.ring.row_hop, 1_024);
        // Between rows: from 0 by way of 1, and from 2 by way of 0. Both take the link from 0 to 1, at the same time.
        assert_eq!(ring.read(3, 0, t), t + row_hop);
        assert_eq!(ring.read(1, 2, t - row_hop / 2), t + each + row_hop / 2);
        assert_eq!(ring.read(0, 1, t), t + hop, "the other way");
    }
}
