//! A prefetch queue: streams of lines in stream detect mode, and predicted addresses in prefetch injection mode.
//!
//! Stream detect: a miss on line A registers A+1 and A−1 as expected. A demand access to one of them fixes the
//! direction. It and each further one request lines ahead: a few per hit while the distance grows to its maximum, then one
//! (microarchitecture manual 11.5.2). L1 requests start with the second hit. The manual's figure 11-2 requests nothing
//! before the second hit; the table of the programming guide (prefetch-0012 to 0053), line by line, begins with the first.
//!
//! Injection: an access through a pointer that names injection registers prefetches at their distances: whenever it
//! comes, or, in PFQ_ALLOCATE mode, when it comes where a miss before and the offset of the registers let it be
//! expected (manual 11.5.3).

use fxscope_machine::spec::{Prefetch, StreamReplacement};

use super::control::{Control, Injection, InjectionLevel};
use super::{Access, Mode, Policy, Requests, Run};
use crate::pointer::{ADDRESS, Steering};
use crate::replacement::random;

/// A stream that is followed.
#[derive(Clone, Copy, serde::Deserialize, serde::Serialize)]
struct Entry {
    /// The line that is expected next; while the direction is open, `next - 2` is expected, too.
    next: u64,
    /// +1, −1, or 0 while open.
    step: i64,
    /// The next line to request, into L1 and into L2. For an injected stream, `ask_l1` is the predicted address.
    ask_l1: u64,
    ask_l2: u64,
    /// Hits that have requested lines.
    hits: u32,
    /// Consecutive L2 prefetches that found their line in L2.
    l2_hits: u32,
    /// The accesses that can continue it.
    of: Of,
}

/// The accesses that a queue entry is compared with.
#[derive(Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
enum Of {
    /// Those that name no injection registers.
    Detected,
    /// Those that name this pair.
    Injected(u8),
}

const IDLE: Entry = Entry { next: u64::MAX, step: 0, ask_l1: 0, ask_l2: 0, hits: 0, l2_hits: 0, of: Of::Detected };

impl Entry {
    /// Whether an access to `line` continues the stream, if it is one of its accesses.
    fn expects(&self, line: u64) -> bool {
        let either = self.step == 0 && self.of == Of::Detected;
        self.next == line || (either && self.next != u64::MAX && self.next.wrapping_sub(2) == line)
    }
}

/// Number of remembered places of streams: a short cut of the simulator past the search of the queue. Where two entries
/// expect the same line, the one that is remembered continues, and without a remembered one the first of the queue.
const HINTS: usize = 64;

/// The prefetch queue of a core.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Stream {
    queue: Box<[Entry]>,
    /// The entry that was filled last.
    last: usize,
    /// The state of a generator, if it chooses the entry to replace. Otherwise the oldest one is replaced.
    generator: Option<u64>,
    /// For each `line % HINTS`, the entry that expected such a line last.
    #[serde(with = "fxscope_calendar::array")]
    hints: [u8; HINTS],
    line_shift: u32,
    /// Most lines that one hit requests into each level.
    ramp_lines: u32,
    /// L2 prefetches in a row that find their line in L2 before a stream stops them; 0: never.
    l2_stop_hits: u32,
}

impl Policy for Stream {
    const INJECTION: bool = true;

    fn new(spec: &Prefetch, line_shift: u32) -> Stream {
        Stream {
            queue: vec![IDLE; spec.queue as usize].into(),
            last: spec.queue as usize - 1,
            generator: (spec.replacement == StreamReplacement::Random).then(|| random::seed(0)),
            hints: [0; HINTS],
            line_shift,
            ramp_lines: spec.ramp_lines,
            l2_stop_hits: spec.l2_stop_hits,
        }
    }

    #[inline(always)]
    fn access(&mut self, access: Access, control: &Control) -> Option<Requests> {
        let line = access.addr >> self.line_shift;
        if let Some(n) = control.injection_of(access.steering) {
            return self.inject(access.addr, access.missed, n, &control.injection[n]);
        }
        if control.stream_lines(access.steering) == (0, 0) {
            return None;
        }
        match self.expecting(line, Of::Detected) {
            Some(entry) => {
                if self.queue[entry].step == 0 {
                    self.direct(entry, line);
                }
                Some(self.follow(entry, line, access.steering, control))
            }
            None => {
                if access.missed {
                    self.detect(line);
                }
                None
            }
        }
    }

    /// After enough consecutive hits the stream requests no more lines into L2 (manual 11.5.4).
    fn l2_answered(&mut self, entry: usize, hit: bool) {
        let s = &mut self.queue[entry];
        s.l2_hits = if hit { s.l2_hits.saturating_add(1) } else { 0 };
    }

    /// The stream requests lines into L2 again.
    fn l1_missed_l2(&mut self, entry: usize) {
        self.queue[entry].l2_hits = 0;
    }

    /// The stream ends (manual 11.3).
    fn stop(&mut self, entry: usize) {
        self.queue[entry] = IDLE;
    }
}

impl Stream {
    /// The entry that expects an access to `line`.
    #[inline(always)]
    fn expecting(&self, line: u64, of: Of) -> Option<usize> {
        let hint = usize::from(self.hints[line as usize % HINTS]);
        let hinted = &self.queue[hint];
        if hinted.next == line && hinted.of == of {
            return Some(hint);
        }
        self.queue.iter().position(|s| s.of == of && s.expects(line))
    }

    /// Stream detect mode: an access to `line`, one of the two that `entry` expects, fixes the direction.
    fn direct(&mut self, entry: usize, line: u64) {
        let s = &mut self.queue[entry];
        s.step = if s.next == line { 1 } else { -1 };
        s.ask_l2 = line.wrapping_add_signed(s.step);
        s.ask_l1 = s.ask_l2;
    }

    /// Stream detect mode: an access to `line`, which `entry`, whose direction is known, expects.
    #[inline(always)]
    fn follow(&mut self, entry: usize, line: u64, steering: Steering, control: &Control) -> Requests {
        let (l1_lines, l2_lines) = control.stream_lines(steering);
        let s = &mut self.queue[entry];
        s.hits += 1;
        s.next = line.wrapping_add_signed(s.step);
        let (step, ramp) = (s.step, self.ramp_lines);
        let adapted = self.l2_stop_hits > 0 && s.l2_hits >= self.l2_stop_hits;
        let none = (line, 0);
        let l2 = if l2_lines > 0 && !adapted { run(&mut s.ask_l2, line, step, ramp, l2_lines) } else { none };
        let l1 = if l1_lines > 0 && s.hits > 1 { run(&mut s.ask_l1, line, step, ramp, l1_lines) } else { none };
        self.hints[s.next as usize % HINTS] = entry as u8;
        let of = |(first, count), reliableness| Run { first, count, reliableness };
        Requests {
            l1: of(l1, control.l1.reliableness),
            l2: of(l2, control.l2.reliableness),
            step,
            mode: Mode::Stream,
            entry: Some(entry),
        }
    }

    /// Injection mode, by register pair `n`.
    #[inline(never)]
    fn inject(&mut self, addr: u64, missed: bool, n: usize, injection: &Injection) -> Option<Requests> {
        if !injection.valid {
            return None;
        }
        let (mode, entry) = if injection.allocate {
            (Mode::Allocate, Some(self.predicted(addr, missed, n, injection)?))
        } else {
            (Mode::NoAllocate, None)
        };
        let run = |level: InjectionLevel, wanted: bool| Run {
            first: self.line(addr, level.distance),
            count: u32::from(wanted && level.distance != 0),
            reliableness: level.reliableness,
        };
        let adapted = entry.is_some_and(|entry| self.adapted(entry));
        let (l1, l2) = (run(injection.l1, true), run(injection.l2, !adapted));
        Some(Requests { l1, l2, step: 1, mode, entry })
    }

    /// The entry that predicted an access to `addr` through register pair `n`; it predicts the next one now. Without
    /// such an entry, a miss allocates one.
    fn predicted(&mut self, addr: u64, missed: bool, n: usize, injection: &Injection) -> Option<usize> {
        let of = Of::Injected(n as u8);
        if let Some(entry) = self.expecting(addr >> self.line_shift, of) {
            self.predict(entry, self.queue[entry].ask_l1, injection);
            return Some(entry);
        }
        if missed {
            let entry = self.allocate(Entry { of, ..IDLE });
            self.predict(entry, addr, injection);
        }
        None
    }

    /// The entry of an injected stream predicts the address one offset after `from`.
    fn predict(&mut self, entry: usize, from: u64, injection: &Injection) {
        let s = &mut self.queue[entry];
        s.ask_l1 = from.wrapping_add_signed(injection.offset) & ADDRESS;
        s.next = s.ask_l1 >> self.line_shift;
        self.hints[s.next as usize % HINTS] = entry as u8;
    }

    /// The line at a distance from `addr`.
    fn line(&self, addr: u64, distance: i64) -> u64 {
        (addr.wrapping_add_signed(distance) & ADDRESS) >> self.line_shift
    }

    /// Whether an entry has stopped requesting lines into L2.
    fn adapted(&self, entry: usize) -> bool {
        self.l2_stop_hits > 0 && self.queue[entry].l2_hits >= self.l2_stop_hits
    }

    /// Stream detect mode: a miss on `line`, which no entry expects, starts a stream unless one leads there already.
    fn detect(&mut self, line: u64) {
        let leads_there = |s: &Entry| s.of == Of::Detected && s.next == line + 1 && s.step >= 0;
        if !self.queue.iter().any(leads_there) {
            let entry = self.allocate(Entry { next: line + 1, ..IDLE });
            self.hints[(line + 1) as usize % HINTS] = entry as u8;
        }
    }

    /// A new stream replaces another one.
    fn allocate(&mut self, stream: Entry) -> usize {
        let entries = self.queue.len();
        self.last = match &mut self.generator {
            None => (self.last + 1) % entries,
            Some(state) => {
                random::advance(state);
                random::pick(*state, entries as u32) as usize
            }
        };
        self.queue[self.last] = stream;
        self.last
    }
}

/// The lines to request on a hit at `line`: from `ask`, at most `ramp`, none farther than `reach` lines.
fn run(ask: &mut u64, line: u64, step: i64, ramp: u32, reach: u32) -> (u64, u32) {
    // A stream that the accesses have overtaken restarts at the access.
    let ahead = ask.wrapping_sub(line) as i64 * step;
    let first = if ahead < 0 { line } else { *ask };
    let room = i64::from(reach) - ahead.max(0) + 1;
    let count = room.clamp(0, i64::from(ramp));
    *ask = first.wrapping_add_signed(step * count);
    (first, count as u32)
}
