//! Memory tiers: nodes without cores, such as CXL memory, with latency and bandwidth of their own.
//!
//! A line takes a slot of its direction, and one of the tier's memory, which both directions share. Between tier and L2 it passes
//! the port through which the CMG's lines from and to other CMGs go ([`crate::ring`]). Lines that wait to be written take room in L2:
//! if there are as many as L2 can have misses, further misses wait ([`Tier::write`]).

use fxscope_calendar::{Cycle, LineBus};
use fxscope_counts::{Signal, Signals};
use fxscope_machine::Spec;

use crate::cmg::fill_cycles;
use crate::snoop_filter::SnoopFilter;

/// A memory tier.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Tier {
    reads: LineBus,
    writes: LineBus,
    /// Both directions together.
    both: LineBus,
    /// Cycles from the grant of a read to the line being ready to send to a core.
    latency: Cycle,
    /// Cycles in which as many lines are written as L2 can keep until then.
    kept: Cycle,
    /// Lines of it that the L2 caches of CMGs may hold.
    pub(crate) snoop_filter: SnoopFilter,
}

impl Tier {
    /// Returns the idle tiers of a machine, in the order of their nodes.
    pub(crate) fn all(spec: &Spec) -> Box<[Tier]> {
        let hz = spec.clock.core_hz as f64;
        let t = &spec.l2_timing;
        // The part of the load-to-use latency outside the tier, as for local memory.
        let path =
            t.request + t.miss_detect + fill_cycles(spec) + spec.load_store.move_in + spec.load_store.load_integer;
        let bus = |bytes_per_second: u64| {
            LineBus::new((f64::from(spec.l2.line_bytes) * hz / bytes_per_second as f64 * 256.0) as u64)
        };
        let tier = |tier: fxscope_machine::spec::MemoryTier| Tier {
            reads: bus(tier.read_bytes_per_second),
            writes: bus(tier.write_bytes_per_second),
            both: bus(tier.total_bytes_per_second),
            kept: {
                let slowest = tier.write_bytes_per_second.min(tier.total_bytes_per_second);
                let kept_bytes = f64::from(spec.l2.miss_buffers) * f64::from(spec.l2.line_bytes);
                (kept_bytes * hz / slowest as f64) as Cycle
            },
            latency: ((tier.latency_ns as f64 * hz / 1e9).round() as Cycle).saturating_sub(path),
            snoop_filter: SnoopFilter::default(),
        };
        spec.memory_tiers.tiers().into_iter().map(tier).collect()
    }

    /// No request before `now` follows.
    pub(crate) fn advance(&mut self, now: Cycle) {
        self.reads.advance(now);
        self.writes.advance(now);
        self.both.advance(now);
    }

    /// Reads a line at `t`; the L2 miss was known then, too. Returns when it is ready to be sent to a core.
    pub(crate) fn read<const TIMED: bool>(&mut self, demand: bool, t: Cycle, signals: &mut Signals) -> Cycle {
        let ready = if TIMED { self.both.book(self.reads.book(t)) + self.latency } else { t };
        signals.add(Signal::TierRead, 1);
        signals.add(Signal::TierReadWait, ready - t);
        signals.add(Signal::L2MissMainDm, u64::from(demand));
        signals.add(Signal::L2MissWaitMainDm, if demand { ready - t } else { 0 });
        ready
    }

    /// Writes a line from `t` on. Returns until when L2 can keep no further line for the tier; that is past unless more lines are
    /// written than the tier takes.
    pub(crate) fn write<const TIMED: bool>(&mut self, t: Cycle, signals: &mut Signals) -> Cycle {
        signals.add(Signal::TierWrite, 1);
        if !TIMED {
            return 0;
        }
        let granted = self.writes.book(t);
        self.both.book(granted).saturating_sub(self.kept)
    }
}
