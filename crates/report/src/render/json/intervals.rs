//! Counts by time interval, a list for each event.

use fxscope_pmu::energy::chip_watts;
use fxscope_record::{Intervals, Run};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// All series of a run.
pub(super) struct AllIntervals<'a>(pub(super) &'a Run);

impl Serialize for AllIntervals<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.intervals.len()))?;
        for intervals in &self.0.intervals {
            list.serialize_element(&Series { run: self.0, intervals })?;
        }
        list.end()
    }
}

struct Series<'a> {
    run: &'a Run,
    intervals: &'a Intervals,
}

impl Serialize for Series<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ends: Vec<f64> = self.intervals.rows.iter().map(|row| row.end_ns as f64 / 1e9).collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("pass", &self.run.passes.get(self.intervals.pass))?;
        map.serialize_entry("end_seconds", &ends)?;
        map.serialize_entry("region", &self.intervals.region)?;
        map.serialize_entry("events", &Columns(self.intervals))?;
        if let Some(watts) = chip_watts(self.run, self.intervals) {
            map.serialize_entry("chip_watts", &watts)?;
        }
        map.end()
    }
}

struct Columns<'a>(&'a Intervals);

impl Serialize for Columns<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.names.len()))?;
        for (column, name) in self.0.names.iter().enumerate() {
            let counts: Vec<u64> = self.0.rows.iter().map(|row| row.counts[column]).collect();
            map.serialize_entry(name, &counts)?;
        }
        map.end()
    }
}
