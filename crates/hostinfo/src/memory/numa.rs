//! `/proc/PID/numa_maps`.

use std::collections::BTreeMap;

use super::{Mapping, Notes, quoted};

/// Placement of a mapping's pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaMap {
    /// First address of the mapping.
    pub start: u64,
    /// Its memory policy, such as `default` or `interleave:0-1`.
    pub policy: String,
    /// Bytes by node.
    pub nodes: Vec<(u32, u64)>,
}

/// Parses `numa_maps`. Malformed lines are skipped with a note.
#[must_use]
pub fn parse_numa_maps(text: &str, notes: &mut Notes) -> Vec<NumaMap> {
    let mut maps = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match numa_map(line) {
            Some(map) => maps.push(map),
            None => notes.add(format!("numa_maps line {}: '{}' cannot be parsed; skipped", i + 1, quoted(line))),
        }
    }
    maps
}

/// Parses a line such as `7f00000000 default anon=4 dirty=4 N0=3 N1=1 kernelpagesize_kB=4`.
fn numa_map(line: &str) -> Option<NumaMap> {
    let mut words = line.split_whitespace();
    let start = u64::from_str_radix(words.next()?, 16).ok()?;
    let policy = words.next()?.to_owned();
    let mut pages: Vec<(u32, u64)> = Vec::new();
    let mut page = None;
    for (key, value) in words.filter_map(|word| word.split_once('=')) {
        if key == "kernelpagesize_kB" {
            page = Some(value.parse::<u64>().ok()?.checked_mul(1024)?);
        } else if let Some(node) = key.strip_prefix('N').and_then(|node| node.parse().ok()) {
            pages.push((node, value.parse().ok()?));
        }
    }
    let bytes = |(node, n): (u32, u64)| Some((node, n.checked_mul(page?)?));
    Some(NumaMap { start, policy, nodes: pages.into_iter().map(bytes).collect::<Option<_>>()? })
}

/// Adds memory by node to mappings.
pub(super) fn join(mappings: &mut [Mapping], maps: &[NumaMap]) {
    let by_start: BTreeMap<u64, &NumaMap> = maps.iter().map(|map| (map.start, map)).collect();
    for mapping in mappings {
        if let Some(map) = by_start.get(&mapping.start) {
            mapping.nodes.clone_from(&map.nodes);
        }
    }
}
