//! The hardware stream prefetcher's queue.
//!
//! A miss on line A registers A+1 and A−1 as expected. A demand access to an expected line fixes the
//! direction and asks for the lines ahead: a few for each hit while the distance grows to its maximum,
//! then one. L1 requests start with the second hit (microarchitecture manual 11.5.2).

use fxscope_machine::spec::Prefetch as PrefetchSpec;

use crate::pointer::Steering;

#[derive(Clone, Copy)]
struct Stream {
    /// The line expected next; while the direction is open, also `next - 2` is.
    next: u64,
    /// +1, −1, or 0 while open.
    step: i64,
    /// Next line to ask for, into L1 and into L2.
    ask_l1: u64,
    ask_l2: u64,
    /// Hits so far.
    hits: u32,
    /// L2 prefetches in a row that found their line in L2.
    l2_hits: u32,
}

const IDLE: Stream = Stream { next: u64::MAX, step: 0, ask_l1: 0, ask_l2: 0, hits: 0, l2_hits: 0 };

impl Stream {
    /// Whether an access to `line` continues the stream.
    fn expects(&self, line: u64) -> bool {
        self.next == line || (self.step == 0 && self.next != u64::MAX && self.next.wrapping_sub(2) == line)
    }
}

/// Requests that follow from one access: runs of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// First line for L1 and number of lines, in the direction of the stream.
    pub l1: (u64, u32),
    /// First line for L2 and number of lines.
    pub l2: (u64, u32),
    /// +1 or −1; 0 when there is nothing to do.
    pub step: i64,
    /// Which queue entry asks.
    pub entry: usize,
}

/// Number of remembered places of streams.
const HINTS: usize = 64;

/// The prefetch queue of a core.
pub struct Prefetcher {
    queue: Box<[Stream]>,
    /// Next entry to replace (FIFO).
    fifo: usize,
    /// For each `line % HINTS`, the entry that last came to expect such a line.
    hints: [u8; HINTS],
    spec: PrefetchSpec,
}

impl Prefetcher {
    /// An empty queue.
    #[must_use]
    pub fn new(spec: &PrefetchSpec) -> Prefetcher {
        Prefetcher { queue: vec![IDLE; spec.queue as usize].into(), fifo: 0, hints: [0; HINTS], spec: spec.clone() }
    }

    /// The entry that expects `line`.
    #[inline(always)]
    fn expecting(&self, line: u64) -> Option<usize> {
        let hint = usize::from(self.hints[line as usize % HINTS]);
        if self.queue[hint].next == line { Some(hint) } else { self.queue.iter().position(|s| s.expects(line)) }
    }

    /// Whether prefetches into L1 and into L2 may be made. A distance of 0 lines switches a level off.
    #[inline(always)]
    fn levels(&self, steering: Steering) -> (bool, bool) {
        let s = &self.spec;
        let steering = if s.tagged_pointers { steering } else { Steering::NONE };
        (s.l1 && s.l1_lines > 0 && steering.l1(), s.l2 && s.l2_lines > 0 && steering.l2())
    }

    /// A demand access to `line`: what to prefetch now.
    #[inline(never)]
    pub fn access(&mut self, line: u64, steering: Steering) -> Option<Requests> {
        let (l1, l2) = self.levels(steering);
        if !l1 && !l2 {
            return None;
        }
        let entry = self.expecting(line)?;
        let s = &mut self.queue[entry];
        if s.step == 0 {
            s.step = if s.next == line { 1 } else { -1 };
            s.ask_l2 = line.wrapping_add_signed(s.step);
            s.ask_l1 = s.ask_l2;
        }
        s.hits += 1;
        s.next = line.wrapping_add_signed(s.step);
        let (step, ramp) = (s.step, self.spec.ramp_lines);
        let mut requests = Requests { step, entry, ..Requests::default() };
        let adapted = self.spec.l2_stop_hits > 0 && s.l2_hits >= self.spec.l2_stop_hits;
        if l2 && !adapted {
            requests.l2 = run(&mut s.ask_l2, line, step, ramp, self.spec.l2_lines);
        }
        if l1 && s.hits > 1 {
            requests.l1 = run(&mut s.ask_l1, line, step, ramp, self.spec.l1_lines);
        }
        self.hints[s.next as usize % HINTS] = entry as u8;
        Some(requests)
    }

    /// A demand miss on `line` that no entry expected: it may start a stream.
    pub fn missed(&mut self, line: u64, steering: Steering) {
        if self.levels(steering) == (false, false) {
            return;
        }
        if self.queue.iter().any(|s| s.expects(line) || (s.next == line + 1 && s.step >= 0)) {
            return;
        }
        self.queue[self.fifo] = Stream { next: line + 1, ..IDLE };
        self.hints[(line + 1) as usize % HINTS] = self.fifo as u8;
        self.fifo = (self.fifo + 1) % self.queue.len();
    }

    /// An L2 prefetch of a stream found its line in L2, or did not. After enough of the former in a row the
    /// stream asks for no more lines in L2 (manual 11.5.4).
    pub fn l2_answered(&mut self, entry: usize, hit: bool) {
        let s = &mut self.queue[entry];
        s.l2_hits = if hit { s.l2_hits.saturating_add(1) } else { 0 };
    }

    /// An L1 prefetch of a stream missed L2: L2 prefetching is worth while again.
    pub fn l1_missed_l2(&mut self, entry: usize) {
        self.queue[entry].l2_hits = 0;
    }

    /// Stops a stream: its prefetch missed the TLB.
    pub fn stop(&mut self, entry: usize) {
        self.queue[entry] = IDLE;
    }
}

/// The lines to ask for on a hit at `line`: from `ask`, at most `ramp`, none farther than `reach` lines.
fn run(ask: &mut u64, line: u64, step: i64, ramp: u32, reach: u32) -> (u64, u32) {
    // A stream that was outrun starts again at the access.
    let ahead = |at: u64| at.wrapping_sub(line) as i64 * step;
    if ahead(*ask) < 0 {
        *ask = line;
    }
    let first = *ask;
    let room = i64::from(reach) - ahead(first) + 1;
    let count = room.clamp(0, i64::from(ramp));
    *ask = first.wrapping_add_signed(step * count);
    (first, count as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pointer::Pointer;
    use fxscope_machine::Evidence;

    const PLAIN: Steering = Steering::NONE;

    fn spec(l1_lines: u32, l2_lines: u32) -> PrefetchSpec {
        PrefetchSpec {
            l1: true,
            l2: true,
            queue: 16,
            l1_lines,
            l2_lines,
            ramp_lines: 2,
            l2_stop_hits: 0,
            tagged_pointers: true,
            source: String::new(),
            evidence: Evidence::Assumed,
        }
    }

    #[test]
    fn addresses_follow_the_documented_table_for_distances_of_ten_and_four_lines() {
        // Hit on A+k: lines asked for in L2 and in L1, relative to A.
        let table: &[(u64, &[u64], &[u64])] = &[
            (1, &[2, 3], &[]),
            (2, &[4, 5], &[2, 3]),
            (3, &[6, 7], &[4, 5]),
            (4, &[8, 9], &[6, 7]),
            (5, &[10, 11], &[8, 9]),
            (6, &[12, 13], &[10]),
            (7, &[14, 15], &[11]),
            (8, &[16, 17], &[12]),
            (9, &[18, 19], &[13]),
            (10, &[20], &[14]),
            (11, &[21], &[15]),
            (12, &[22], &[16]),
        ];
        let a = 1000;
        let mut p = Prefetcher::new(&spec(4, 10));
        p.missed(a, PLAIN);
        for &(k, l2, l1) in table {
            let r = p.access(a + k, PLAIN).expect("expected line");
            let lines = |(first, n): (u64, u32)| (0..u64::from(n)).map(|i| first + i - a).collect::<Vec<_>>();
            assert_eq!(lines(r.l2), l2, "L2 at A+{k}");
            assert_eq!(lines(r.l1), l1, "L1 at A+{k}");
        }
    }

    #[test]
    fn a_descending_stream_is_followed_downwards() {
        let mut p = Prefetcher::new(&spec(4, 10));
        p.missed(1000, PLAIN);
        let r = p.access(999, PLAIN).expect("A-1 is expected");
        assert_eq!((r.step, r.l2), (-1, (998, 2)));
    }

    #[test]
    fn the_seventeenth_stream_takes_the_place_of_the_first() {
        let mut p = Prefetcher::new(&spec(4, 10));
        for i in 0..17 {
            p.missed(i * 1000, PLAIN);
        }
        assert!(p.access(1, PLAIN).is_none());
        assert!(p.access(1001, PLAIN).is_some());
    }

    #[test]
    fn a_stream_through_pointers_that_switch_prefetching_off_is_not_followed() {
        let off = Pointer::from(6 << 60).steering;
        let mut p = Prefetcher::new(&spec(4, 10));
        p.missed(1000, off);
        assert!(p.access(1001, PLAIN).is_none(), "it was not registered");
        p.missed(2000, PLAIN);
        assert!(p.access(2001, off).is_none());
        let no_l2 = Pointer::from(2 << 60).steering;
        let r = p.access(2001, no_l2).expect("registered");
        assert_eq!((r.l1.1, r.l2.1), (0, 0), "L1 starts with the second hit");
        let r = p.access(2002, no_l2).expect("followed");
        assert_eq!((r.l1.1, r.l2.1), (2, 0));
    }

    #[test]
    fn a_distance_of_no_lines_switches_a_level_off() {
        let mut p = Prefetcher::new(&spec(0, 10));
        p.missed(1000, PLAIN);
        let all: Vec<_> = (1001..1010).filter_map(|line| p.access(line, PLAIN)).collect();
        assert!(all.iter().all(|r| r.l1.1 == 0) && all.iter().any(|r| r.l2.1 > 0));
    }
}
