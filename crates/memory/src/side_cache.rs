//! A memory-side cache in front of the main memory of a CMG: direct-mapped, of whole lines, with its own memory.
//!
//! Tags are stored with the lines, so every lookup reads a line: a miss occupies the channel as a hit does, and reads
//! the victim. The line that main memory sends then occupies the channel again to be written.

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals};
use fxscope_machine::Spec;

use crate::channel::{Channel, Rate};
use crate::reserve::delay;

/// The memory-side cache of one CMG.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct SideCache {
    /// For each place, one plus the tag of its line, and [`DIRTY`]; 0 when it is empty.
    tags: Box<[u32]>,
    /// Log2 of the number of places.
    lines_log2: u32,
    channel: Channel,
    /// For each core, cycles from the grant of a request to the line being ready to send, on a hit.
    hit: Box<[Cycle]>,
    /// Cycles from the grant of a request to the request at main memory, on a miss.
    miss_detect: Cycle,
}

/// Main memory holds an older copy.
const DIRTY: u32 = 1 << 31;

/// What a lookup finds.
pub(crate) enum Found {
    /// The line, ready to be sent at this time.
    Line(Cycle),
    /// Nothing: main memory is read.
    Nothing {
        /// When.
        asked: Cycle,
        /// Whether the victim is dirty and must be written back.
        writes_back: bool,
    },
}

impl SideCache {
    /// An empty cache; `None` for a machine without one. `hit`: for each core, cycles from the grant of a request to
    /// the line being ready to send.
    pub(crate) fn new(spec: &Spec, hit: Box<[Cycle]>) -> Option<SideCache> {
        let cache = &spec.memory_side_cache;
        let lines = cache.bytes / u64::from(spec.l2.line_bytes);
        let rate = Rate {
            peak: cache.peak_bytes_per_second,
            read_efficiency: cache.read_efficiency,
            write_cost: cache.write_cost,
        };
        (lines > 0).then(|| SideCache {
            tags: vec![0; lines as usize].into(),
            lines_log2: lines.trailing_zeros(),
            channel: Channel::new(&rate, spec.l2.line_bytes, spec.clock.core_hz),
            hit,
            miss_detect: cache.miss_detect,
        })
    }

    /// No request before `now` follows.
    pub(crate) fn advance(&mut self, now: Cycle) {
        self.channel.advance(now);
    }

    fn place_and_tag(&self, line: u64) -> (usize, u32) {
        let place = line & ((1 << self.lines_log2) - 1);
        (place as usize, (line >> self.lines_log2) as u32 + 1)
    }

    /// Core number `core` requests a line at `t`. On a miss, the line replaces the one at its place.
    pub(crate) fn read<const TIMED: bool>(&mut self, core: usize, line: u64, t: Cycle, signals: &mut Signals) -> Found {
        let granted = if TIMED { self.channel.read(t) } else { t };
        let (place, tag) = self.place_and_tag(line);
        let before = self.tags[place];
        if before & !DIRTY == tag {
            signals.add(Signal::MemoryCacheHit, 1);
            return Found::Line(granted + delay::<TIMED>(self.hit[core]));
        }
        signals.add(Signal::MemoryCacheMiss, 1);
        self.tags[place] = tag;
        Found::Nothing {
            asked: granted + delay::<TIMED>(self.miss_detect),
            writes_back: self.is_dirty(before, signals),
        }
    }

    /// A line that was missing arrives from main memory at `t`.
    pub(crate) fn fill<const TIMED: bool>(&mut self, t: Cycle) {
        if TIMED {
            self.channel.write(t);
        }
    }

    /// L2 writes back a line at `t`. Returns when a dirty victim is written to main memory, if there is one.
    pub(crate) fn write<const TIMED: bool>(&mut self, line: u64, t: Cycle, signals: &mut Signals) -> Option<Cycle> {
        let (place, tag) = self.place_and_tag(line);
        let before = std::mem::replace(&mut self.tags[place], tag | DIRTY);
        let leaves = before & !DIRTY != tag && self.is_dirty(before, signals);
        if TIMED {
            self.channel.write(t);
        }
        leaves.then_some(t + delay::<TIMED>(self.miss_detect))
    }

    /// Whether a victim must be written to main memory.
    fn is_dirty(&self, before: u32, signals: &mut Signals) -> bool {
        let dirty = before & DIRTY != 0;
        signals.add(Signal::MemoryCacheWb, u64::from(dirty));
        dirty
    }
}
