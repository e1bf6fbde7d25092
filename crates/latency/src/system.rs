//! Properties of the machine that methods use.

use std::collections::BTreeMap;

use fxscope_machine::Spec;

use crate::{Counts, Quantity};

/// Prefix of a record's constants for predictions.
const PREFIX: &str = "latency.";

/// A machine's memory, and its buffers.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// Latency from a load to the use of data from memory, mean over cores, nanoseconds.
    pub base_ns: f64,
    /// Part of it that was added to the machine's own latency, nanoseconds.
    pub added_ns: f64,
    /// Properties known from a description of the machine only.
    pub details: Option<Details>,
}

/// Properties of a described machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Details {
    /// Core clock, Hz.
    pub clock_hz: f64,
    /// Latency from a load to the use of data from a memory-side cache, mean over cores, cycles; `None` without such a
    /// cache.
    pub cache_latency: Option<f64>,
    /// Bandwidth of all memory for streams of reads by one group of cores, bytes per second.
    pub bandwidth: f64,
    /// Bandwidth between a group of cores and all other groups with their memory, bytes per second.
    pub port_bandwidth: f64,
    /// Bytes of a line.
    pub line_bytes: f64,
    /// Cores that share a last-level cache and its buffers.
    pub group_cores: f64,
    /// Misses that the last-level cache of a group can have outstanding.
    pub buffers: f64,
    /// L1 misses that a core can have outstanding.
    pub l1_buffers: f64,
    /// Entries of a core's write buffer, in which committed stores wait for their lines.
    pub store_buffers: f64,
    /// Cycles from a load until a miss of the last-level cache is detected.
    pub detection: f64,
    /// Distance of hardware prefetches in the last-level cache, lines.
    pub distance: f64,
    /// … in L1.
    pub l1_distance: f64,
    /// Streams that the prefetcher tracks.
    pub streams: f64,
}

impl Details {
    /// Returns the traffic between a group of cores and memory; `None` if it was not counted.
    pub(crate) fn bytes_per_second(&self, counts: &Counts) -> Option<f64> {
        let groups = (counts.threads / self.group_cores).ceil().max(1.0);
        Some(counts.get(Quantity::Accesses)? * self.line_bytes / counts.seconds / groups)
    }
}

impl System {
    /// Returns a machine of which only the memory latency is known.
    #[must_use]
    pub fn of_latency(base_ns: f64) -> System {
        System { base_ns, added_ns: 0.0, details: None }
    }

    /// Returns the properties of a described machine.
    #[must_use]
    pub fn of(spec: &Spec) -> System {
        let (memory, l2) = (&spec.memory, &spec.l2_timing);
        let cache = &spec.memory_side_cache;
        let clock_hz = spec.clock.core_hz as f64;
        let cycles = (memory.latency_nearest + memory.latency_farthest) as f64 / 2.0;
        System {
            base_ns: cycles * 1e9 / clock_hz + memory.added_ns,
            added_ns: memory.added_ns,
            details: Some(Details {
                clock_hz,
                cache_latency: (cache.bytes > 0).then(|| (cache.hit_nearest + cache.hit_farthest) as f64 / 2.0),
                bandwidth: memory.peak_bytes_per_second as f64 * memory.read_efficiency / 100.0,
                port_bandwidth: f64::from(spec.ring.bytes_per_cycle) * clock_hz * spec.ring.port_efficiency / 100.0,
                line_bytes: f64::from(spec.l2.line_bytes),
                group_cores: f64::from(spec.topology.cores_per_cmg),
                buffers: f64::from(spec.l2.miss_buffers),
                l1_buffers: f64::from(spec.l1d.miss_buffers),
                store_buffers: f64::from(spec.load_store.write_buffer),
                detection: (l2.request + l2.miss_detect) as f64,
                distance: f64::from(spec.prefetch.l2_lines),
                l1_distance: f64::from(spec.prefetch.l1_lines),
                streams: f64::from(spec.prefetch.queue),
            }),
        }
    }

    /// Returns the properties that records keep for [`System::recorded`], by name.
    #[must_use]
    pub fn constants(spec: &Spec) -> BTreeMap<String, f64> {
        let System { base_ns, added_ns, details } = System::of(spec);
        let mut constants = vec![("base_ns", base_ns), ("added_ns", added_ns)];
        if let Some(d) = details {
            constants.extend([
                ("clock_hz", d.clock_hz),
                ("bandwidth", d.bandwidth),
                ("port_bandwidth", d.port_bandwidth),
                ("line_bytes", d.line_bytes),
                ("group_cores", d.group_cores),
                ("buffers", d.buffers),
                ("l1_buffers", d.l1_buffers),
                ("store_buffers", d.store_buffers),
                ("detection", d.detection),
                ("distance", d.distance),
                ("l1_distance", d.l1_distance),
                ("streams", d.streams),
            ]);
            constants.extend(d.cache_latency.map(|cycles| ("cache_latency", cycles)));
        }
        constants.into_iter().map(|(name, value)| (format!("{PREFIX}{name}"), value)).collect()
    }

    /// Returns the machine of a record's constants; `None` for records without them, such as those of older versions.
    #[must_use]
    pub fn recorded(constants: &BTreeMap<String, f64>) -> Option<System> {
        let get = |name: &str| constants.get(&format!("{PREFIX}{name}")).copied();
        let details = || {
            Some(Details {
                clock_hz: get("clock_hz")?,
                cache_latency: get("cache_latency"),
                bandwidth: get("bandwidth")?,
                port_bandwidth: get("port_bandwidth")?,
                line_bytes: get("line_bytes")?,
                group_cores: get("group_cores")?,
                buffers: get("buffers")?,
                l1_buffers: get("l1_buffers")?,
                // Not in records of older versions, which have no counts that need it.
                store_buffers: get("store_buffers").unwrap_or(f64::INFINITY),
                detection: get("detection")?,
                distance: get("distance")?,
                l1_distance: get("l1_distance")?,
                streams: get("streams")?,
            })
        };
        Some(System { base_ns: get("base_ns")?, added_ns: get("added_ns")?, details: details() })
    }

    /// Checks whether a run with memory of another node shows the effect of slower memory.
    ///
    /// # Errors
    /// Why it does not.
    pub fn remote_memory_tells(&self) -> Result<(), &'static str> {
        match &self.details {
            Some(Details { cache_latency: Some(_), .. }) => {
                Err("memory of another node has a cache of its own, which is farther, too")
            }
            _ => Ok(()),
        }
    }

    /// Sets the latency.
    #[must_use]
    pub fn with_latency(mut self, base_ns: f64) -> System {
        self.base_ns = base_ns;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_record_keeps_of_a_machine_is_all_that_predictions_need() {
        for name in fxscope_machine::names() {
            let spec = fxscope_machine::load(name, &[]).expect("built in");
            assert_eq!(System::recorded(&System::constants(&spec)), Some(System::of(&spec)), "{name}");
        }
        assert_eq!(System::recorded(&BTreeMap::new()), None);
    }
}
