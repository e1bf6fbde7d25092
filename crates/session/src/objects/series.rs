//! Lines that data objects read and write, by intervals of time.

use std::collections::BTreeMap;

use fxscope_calendar::Cycle;
use fxscope_memory::{Cause, Refill, RefillKind};

/// Most intervals; the last one has all that comes later.
const MOST_INTERVALS: usize = 1 << 16;

/// Lines of L2 for an object in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectTraffic {
    /// Lines that an access itself requested from memory.
    pub demanded: u64,
    /// Lines that prefetches requested.
    pub prefetched: u64,
    /// Lines that L2 zeroed without reading them.
    pub zeroed: u64,
    /// Lines that were written in L1D, each time that they came there.
    pub written: u64,
}

/// The traffic of a run's data objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataSeries {
    /// Length of an interval, seconds.
    pub interval: f64,
    /// For each interval of the run, the traffic by index in [`fxscope_record::Data::objects`].
    pub intervals: Vec<BTreeMap<usize, ObjectTraffic>>,
}

impl DataSeries {
    /// Returns the number of intervals between two multiples of their length, seconds. A part of one at the end counts.
    #[must_use]
    pub fn slots(&self, begin: f64, end: f64) -> usize {
        let number = |seconds: f64| seconds / self.interval;
        let (begin, end) = (number(begin).round(), (number(end) - ROUNDING).ceil());
        (end - begin).max(0.0) as usize
    }
}

/// Share of an interval by which sums of times may exceed its end.
const ROUNDING: f64 = 1e-3;

/// Counts the traffic by numbers of objects.
#[derive(Default)]
pub(super) struct Series {
    /// Length of an interval, cycles.
    interval: Cycle,
    intervals: Vec<BTreeMap<u32, ObjectTraffic>>,
}

impl Series {
    pub(super) fn new(interval: Cycle) -> Series {
        Series { interval: interval.max(1), intervals: Vec::new() }
    }

    pub(super) fn count(&mut self, object: u32, refill: &Refill) {
        if refill.kind == RefillKind::Walk {
            return;
        }
        let interval = ((refill.at / self.interval) as usize).min(MOST_INTERVALS - 1);
        if interval >= self.intervals.len() {
            self.intervals.resize_with(interval + 1, BTreeMap::new);
        }
        let traffic = self.intervals[interval].entry(object).or_default();
        match (refill.kind, refill.cause) {
            (RefillKind::Zeroed, _) => traffic.zeroed += 1,
            (RefillKind::FromMemory | RefillKind::IntoL2, Cause::Demand) => traffic.demanded += 1,
            (RefillKind::FromMemory | RefillKind::IntoL2, _) => traffic.prefetched += 1,
            _ => {}
        }
        traffic.written += u64::from(refill.write && refill.kind != RefillKind::Zeroed);
    }

    /// Returns the traffic by the places that objects have in the record.
    pub(super) fn by_place(&self, place: &BTreeMap<u32, u32>, core_hz: u64) -> DataSeries {
        let renumbered = |of: &BTreeMap<u32, ObjectTraffic>| {
            of.iter().filter_map(|(object, traffic)| Some((*place.get(object)? as usize, *traffic))).collect()
        };
        let interval = self.interval as f64 / core_hz as f64;
        DataSeries { interval, intervals: self.intervals.iter().map(renumbered).collect() }
    }
}
