//! A cache in front of the main memory of a CMG: direct-mapped, of whole lines, with a memory of its own.
//!
//! Tags lie beside the lines, so that every access that looks one up reads it: a miss takes the channel as a hit does, the
//! victim is at hand then, and the line that main memory sends takes the channel once more to be written.

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals};
use fxscope_machine::Spec;

use crate::channel::{Channel, Rate};

/// The memory-side cache of one CMG.
pub(crate) struct SideCache {
    /// For each place one more than the number of the line of those that share it, and [`DIRTY`]; 0 when there is none.
    tags: Box<[u32]>,
    /// Lines whose numbers differ by this power of two share a place.
    lines_log2: u32,
    channel: Channel,
    /// For each core, request granted to line ready to send, hit.
    hit: Box<[Cycle]>,
    /// Request granted to the request at main memory, miss.
    miss_detect: Cycle,
}

/// Main memory is behind.
const DIRTY: u32 = 1 << 31;

/// What a look for a line finds.
pub(crate) enum Found {
    /// The line, ready to be sent at this time.
    Line(Cycle),
    /// Nothing: main memory is asked at this time.
    Nothing {
        /// When.
        asked: Cycle,
        /// Whether a dirty line must leave.
        writes_back: bool,
    },
}

impl SideCache {
    /// An empty cache; `None` on machines without. `hit`: for each core, request to line ready to send.
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

    /// Nothing before `now` will be asked for any more.
    pub(crate) fn advance(&mut self, now: Cycle) {
        self.channel.advance(now);
    }

    fn place_and_tag(&self, line: u64) -> (usize, u32) {
        let place = line & ((1 << self.lines_log2) - 1);
        (place as usize, (line >> self.lines_log2) as u32 + 1)
    }

    /// Core number `core` asks for a line at `t`. If it is not here, it has its place afterwards.
    pub(crate) fn read(&mut self, core: usize, line: u64, t: Cycle, signals: &mut Signals) -> Found {
        let granted = self.channel.read(t);
        let (place, tag) = self.place_and_tag(line);
        let before = self.tags[place];
        if before & !DIRTY == tag {
            signals.add(Signal::MemoryCacheHit, 1);
            return Found::Line(granted + self.hit[core]);
        }
        signals.add(Signal::MemoryCacheMiss, 1);
        self.tags[place] = tag;
        Found::Nothing { asked: granted + self.miss_detect, writes_back: self.leaves(before, signals) }
    }

    /// A line that was missing comes from main memory at `t`.
    pub(crate) fn fill(&mut self, t: Cycle) {
        self.channel.write(t);
    }

    /// A line comes back from L2 at `t`. Returns when a dirty line must leave for it, if one must.
    pub(crate) fn write(&mut self, line: u64, t: Cycle, signals: &mut Signals) -> Option<Cycle> {
        let (place, tag) = self.place_and_tag(line);
        let before = std::mem::replace(&mut self.tags[place], tag | DIRTY);
        let leaves = before & !DIRTY != tag && self.leaves(before, signals);
        self.channel.write(t);
        leaves.then_some(t + self.miss_detect)
    }

    /// Whether the line that was at a place must be written to main memory.
    fn leaves(&self, before: u32, signals: &mut Signals) -> bool {
        let dirty = before & DIRTY != 0;
        signals.add(Signal::MemoryCacheWb, u64::from(dirty));
        dirty
    }
}
