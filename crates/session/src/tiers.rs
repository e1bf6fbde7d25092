//! Memory tiers that options add to the machine.

use fxscope_machine::Spec;
use fxscope_machine::settings::integer;
use fxscope_machine::spec::{MemoryTier, MemoryTiers};
use serde::{Deserialize, Serialize};

/// A memory tier as an option describes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct TierOption {
    /// Its name.
    pub name: String,
    /// Load-to-use latency, ns.
    pub latency_ns: u64,
    /// Most bytes read per second.
    pub read_bytes_per_second: u64,
    /// Most bytes written per second.
    pub write_bytes_per_second: u64,
    /// Most bytes read and written per second; `None`: only the limits of the directions hold.
    pub total_bytes_per_second: Option<u64>,
    /// Its size; `None`: as much as all nodes with cores have together.
    pub bytes: Option<u64>,
}

/// Says how to write a tier.
const HOW: &str = "write NAME:LATENCY,BANDWIDTH, such as cxl:250ns,32GB/s, and if needed ,read=RATE ,write=RATE ,total=RATE \
                   ,size=SIZE";

impl TierOption {
    /// Parses `NAME:LATENCY,BANDWIDTH[,read=RATE][,write=RATE][,total=RATE][,size=SIZE]`. The bandwidth is that of each direction that
    /// has no rate of its own.
    ///
    /// # Errors
    /// If the text is malformed; the message says how to write it.
    pub fn parse(text: &str) -> Result<TierOption, String> {
        let (name, rest) = text.split_once(':').ok_or(HOW)?;
        if !MemoryTier::is_name(name) {
            return Err(format!(
                "'{name}' cannot name a tier: use letters, digits, - and _, a letter first, and not 'all'"
            ));
        }
        let mut parts = rest.split(',');
        let latency_ns = nanoseconds(parts.next().unwrap_or_default())?;
        let both = rate(parts.next().ok_or(HOW)?)?;
        let mut tier = TierOption {
            name: name.to_owned(),
            latency_ns,
            read_bytes_per_second: both,
            write_bytes_per_second: both,
            total_bytes_per_second: None,
            bytes: None,
        };
        for part in parts {
            match part.split_once('=').ok_or(HOW)? {
                ("read", text) => tier.read_bytes_per_second = rate(text)?,
                ("write", text) => tier.write_bytes_per_second = rate(text)?,
                ("total", text) => tier.total_bytes_per_second = Some(rate(text)?),
                ("size", text) => {
                    let wrong = || format!("'{text}' is not a size; write it like 64GiB");
                    tier.bytes = Some(integer(text).ok_or_else(wrong)?);
                }
                _ => return Err(HOW.to_owned()),
            }
        }
        Ok(tier)
    }

    /// Returns the tier on a machine. Its distance is its latency relative to that of local memory, as the distances of Linux are
    /// meant (ACPI 6.5, 5.2.17: 10 is local).
    fn on(&self, spec: &Spec) -> MemoryTier {
        let (reads, writes) = (self.read_bytes_per_second, self.write_bytes_per_second);
        let local_ns = spec.memory.latency_nearest as f64 * 1e9 / spec.clock.core_hz as f64;
        let distance = spec.topology.node_distances[0] as f64 * self.latency_ns as f64 / local_ns;
        MemoryTier {
            name: self.name.clone(),
            latency_ns: self.latency_ns,
            read_bytes_per_second: reads,
            write_bytes_per_second: writes,
            total_bytes_per_second: self.total_bytes_per_second.unwrap_or(reads.saturating_add(writes)),
            bytes: self.bytes.unwrap_or(u64::from(spec.topology.cmgs) * spec.topology.node_bytes),
            distance: (distance as u64).clamp(11, 254),
        }
    }
}

/// Returns the settings that add `tiers` to those of a machine.
pub(crate) fn settings(tiers: &[TierOption], spec: &Spec) -> Vec<(String, String)> {
    let mut all: MemoryTiers = spec.memory_tiers.clone();
    tiers.iter().for_each(|tier| all.add(&tier.on(spec)));
    let lists = all.lists().map(|(key, list)| (format!("memory_tiers.{key}"), format!("{list:?}")));
    std::iter::once(("memory_tiers.names".to_owned(), all.names.clone())).chain(lists).collect()
}

/// Returns a list of nodes with numbers in place of the names of tiers, as [`fxscope_linux::pages::parse_nodes`] reads it.
pub(crate) fn numbered(nodes: &str, spec: &Spec) -> String {
    let t = &spec.topology;
    let (inverted, rest) = nodes.strip_prefix('!').map_or(("", nodes), |rest| ("!", rest));
    let first = if rest.starts_with('+') { 0 } else { t.first_node };
    let number = |part: &str| {
        let tier = spec.memory_tiers.names().position(|name| name == part);
        tier.map_or_else(|| part.to_owned(), |tier| (first + t.cmgs + tier as u32).to_string())
    };
    format!("{inverted}{}", rest.split(',').map(number).collect::<Vec<_>>().join(","))
}

/// Parses a latency: whole nanoseconds.
fn nanoseconds(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a latency; write it like 250ns or 1.5us");
    let units = [("ns", 1.0), ("us", 1e3), ("µs", 1e3)];
    let ns = units.iter().find_map(|(unit, ns)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * ns));
    ns.map(f64::round).filter(|ns| (1.0..=1e9).contains(ns)).map(|ns| ns as u64).ok_or_else(wrong)
}

/// Parses a bandwidth, bytes per second.
fn rate(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a bandwidth; write it like 32GB/s or 28.5GB/s");
    let units = [("MB/s", 1e6), ("GB/s", 1e9), ("TB/s", 1e12), ("MiB/s", 1048576.0), ("GiB/s", 1073741824.0)];
    let rate = units.iter().find_map(|(unit, n)| Some(text.strip_suffix(unit)?.trim_end().parse::<f64>().ok()? * n));
    rate.filter(|rate| (1.0..1e18).contains(rate)).map(|rate| rate as u64).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_has_its_bandwidth_in_each_direction_unless_one_has_its_own() {
        let tier = TierOption::parse("cxl:250ns,32GB/s,write=28.5GB/s,total=38.4GB/s,size=64GiB").expect("well-formed");
        assert_eq!((tier.name.as_str(), tier.latency_ns), ("cxl", 250));
        assert_eq!((tier.read_bytes_per_second, tier.write_bytes_per_second), (32_000_000_000, 28_500_000_000));
        assert_eq!((tier.total_bytes_per_second, tier.bytes), (Some(38_400_000_000), Some(64 << 30)));
        let plain = TierOption::parse("far:1.5us,10GB/s").expect("well-formed");
        assert_eq!((plain.latency_ns, plain.total_bytes_per_second, plain.bytes), (1500, None, None));
    }

    #[test]
    fn what_is_no_tier_is_told_with_how_to_write_one() {
        for text in
            ["cxl", "cxl:250ns", "cxl:250,32GB/s", "cxl:250ns,32", "8:250ns,1GB/s", "all:1us,1GB/s", "a:1us,1GB/s,x"]
        {
            assert!(
                TierOption::parse(text)
                    .is_err_and(|why| why.contains("write it like") || why.contains("letter") || why == HOW),
                "{text}"
            );
        }
    }

    #[test]
    fn settings_add_tiers_to_the_machine_and_names_stand_for_node_numbers() {
        let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        let tiers = ["cxl:250ns,32GB/s", "far:1us,10GB/s"].map(|text| TierOption::parse(text).expect("well-formed"));
        let spec = fxscope_machine::load("a64fx", &settings(&tiers, &spec)).expect("sound");
        // 10 for 128 ns of local memory.
        assert_eq!(spec.memory_tiers.distances, [19, 78]);
        assert_eq!(spec.memory_tiers.bytes, [32 << 30; 2]);
        assert_eq!(spec.memory_tiers.total_bytes_per_second, [64_000_000_000, 20_000_000_000]);
        for (text, expected) in [("cxl", "8"), ("4,far", "4,9"), ("+0,cxl", "+0,4"), ("!cxl", "!8"), ("other", "other")]
        {
            assert_eq!(numbered(text, &spec), expected);
        }
    }
}
