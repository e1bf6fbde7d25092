//! Checks of the resolved values. Every part of the model can be built from values that pass.

use std::collections::HashSet;
use std::fmt;

use crate::error::Place;
use crate::schema::{Value, first_sentence, grouped};
use crate::spec::{Cache, MemoryTier, Pages, SCHEMA, Spec, Tables};

/// Most lines of one cache: the model keeps some 40 bytes for each.
const MAX_LINES: u64 = 1 << 21;
/// Longest instruction buffer, fetch blocks.
const MAX_BLOCKS: u32 = 63;
/// Most lines that memory may deliver per cycle.
const LINES_PER_CYCLE: u64 = 16;
/// Most lines of memory that may map to one place of a memory-side cache.
const MOST_SHARERS: u64 = 1 << 29;

/// A value that is not allowed or that contradicts other values.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The key, as `TABLE.KEY`.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// The requirement that it violates.
    pub must: String,
    /// Other keys on which the requirement depends.
    pub others: Vec<String>,
    /// Where the value was given, or that of one of the other keys if that was given later; none if unknown.
    pub place: Option<Place>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        write!(f, "{} is {}; it must be {}", self.key, self.value, self.must)
    }
}

impl Spec {
    /// Checks all values against their limits and against each other. Machines from [`crate::load`] have passed; one that a
    /// program has changed may not pass.
    ///
    /// # Errors
    /// All values that are not allowed, in the order of the tables.
    pub fn check(&self) -> Result<(), Vec<Violation>> {
        check(&self.tables)
    }
}

/// Checks tables as [`Spec::check`] does.
///
/// # Errors
/// See there.
pub fn check(tables: &Tables) -> Result<(), Vec<Violation>> {
    let mut found = each_value(tables);
    // If single values are wrong, messages about their relations would add nothing.
    if found.is_empty() {
        found = relations(tables);
    }
    if found.is_empty() { Ok(()) } else { Err(found) }
}

fn each_value(tables: &Tables) -> Vec<Violation> {
    let mut found = Vec::new();
    for (table, values) in SCHEMA.iter().zip(tables.values()) {
        for (key, value) in table.keys.iter().zip(values) {
            if !key.rule.allows(&value) {
                let must = format!("{} ({})", key.rule.words().unwrap_or_default(), first_sentence(key.doc));
                found.push(Violation {
                    key: format!("{}.{}", table.name, key.name),
                    value,
                    must,
                    others: Vec::new(),
                    place: None,
                });
            }
        }
    }
    found
}

/// Collects violated relations.
#[derive(Default)]
struct Relations(Vec<Violation>);

impl Relations {
    /// Notes that `key`, with this `value`, violates a requirement that depends on the `others`, unless it `holds`.
    fn require(&mut self, holds: bool, key: &str, value: impl Into<u64>, others: &[&str], must: String) {
        self.require_value(holds, key, Value::Integer(value.into()), others, must);
    }

    /// The same for a value of any kind.
    fn require_value(&mut self, holds: bool, key: &str, value: Value, others: &[&str], must: String) {
        if !holds {
            self.0.push(Violation {
                key: key.to_owned(),
                value,
                must,
                others: others.iter().map(|&other| other.to_owned()).collect(),
                place: None,
            });
        }
    }

    fn at_least(&mut self, key: &str, value: u64, other: &str, least: u64) {
        self.require(value >= least, key, value, &[other], format!("at least {other}, {least}"));
    }

    fn multiple(&mut self, key: &str, value: u32, other: &str, of: u32) {
        self.require(value.is_multiple_of(of), key, value, &[other], format!("a multiple of {other}, {of}"));
    }
}

fn relations(t: &Tables) -> Vec<Violation> {
    let mut r = Relations::default();
    core(t, &mut r);
    for (name, cache) in [("l1i", &t.l1i), ("l1d", &t.l1d), ("l2", &t.l2)] {
        cache_geometry(name, cache, &mut r);
        let (key, line) = (format!("{name}.line_bytes"), t.l1d.line_bytes);
        let must = format!("that of l1d, {line}: lines have one size in all caches");
        r.require(cache.line_bytes == line, &key, cache.line_bytes, &["l1d.line_bytes"], must);
    }
    l2_hash(t, &mut r);
    paths(t, &mut r);
    hardware_barrier(t, &mut r);
    assistant_cores(t, &mut r);
    sectors(t, &mut r);
    r.multiple("tlb.l2_entries", t.tlb.l2_entries, "tlb.l2_ways", t.tlb.l2_ways);
    page_sizes(t, &mut r);
    folio_sizes(t, &mut r);
    if t.tlb.miss_trap == 0 {
        tables(t, &mut r);
    }
    r.0
}

/// Segments and the set-associative TLB have page sizes of the machine.
fn page_sizes(t: &Tables, r: &mut Relations) {
    let sizes = &t.pages.sizes;
    let list: Vec<String> = sizes.iter().map(|&bytes| grouped(bytes)).collect();
    let must = format!("one of {} (pages.sizes)", list.join(", "));
    let kinds = [("normal", t.pages.normal), ("large", t.pages.large)];
    for (name, bytes) in kinds.into_iter().chain(Pages::SEGMENTS.map(|(name, bytes)| (name, bytes(&t.pages)))) {
        let key = format!("pages.{name}");
        r.require(sizes.contains(&bytes), &key, bytes, &["pages.sizes"], must.clone());
    }
    let only = Value::List(t.tlb.l2_only_sizes.clone());
    let there = t.tlb.l2_only_sizes.iter().all(|bytes| sizes.contains(bytes));
    r.require_value(
        there,
        "tlb.l2_only_sizes",
        only,
        &["pages.sizes"],
        format!("page sizes of the machine, each {must}"),
    );
}

/// Sizes of transparent huge pages are those that there are, each in one list.
fn folio_sizes(t: &Tables, r: &mut Relations) {
    let there = t.pages.folios();
    let mut seen = Vec::new();
    for (bytes, _, list) in t.thp.sizes() {
        let key = format!("thp.{list}");
        let (first, last) = (grouped(*there.start()), grouped(*there.end()));
        let must = format!("sizes of transparent huge pages, from {first} to {last}");
        r.require(there.contains(&bytes), &key, bytes, &["pages.normal"], must);
        let must = "sizes that no other list of thp has".to_owned();
        r.require(!seen.contains(&bytes), &key, bytes, &[], must);
        seen.push(bytes);
    }
}

/// Every page size has a place in translation tables.
fn tables(t: &Tables, r: &mut Relations) {
    for &bytes in &t.pages.sizes {
        let must = format!("such that pages of {bytes} bytes are one descriptor or one contiguous group");
        let others = ["tlb.granules", "tlb.descriptor_bytes", "pages.sizes"];
        let value = Value::List(t.tlb.contiguous.to_vec());
        r.require_value(t.tlb.leaf(bytes).is_some(), "tlb.contiguous", value, &others, must);
    }
}

fn core(t: &Tables, r: &mut Relations) {
    let dczid = t.identity.dczid;
    let must = "at most 9 in its low four bits (DC ZVA of 2 KiB)".to_owned();
    r.require(dczid & 0xf <= 9, "identity.dczid", dczid, &[], must);

    let f = &t.frontend;
    let room = (1..=MAX_BLOCKS).contains(&(f.buffer_insts * 4 / f.fetch_bytes));
    let must = format!("room for 1 to {MAX_BLOCKS} fetch blocks of {} instructions", f.fetch_bytes / 4);
    r.require(room, "frontend.buffer_insts", f.buffer_insts, &["frontend.fetch_bytes"], must);
    r.multiple("frontend.btb_entries", f.btb_entries, "frontend.btb_ways", f.btb_ways);

    let w = &t.window;
    let group = "window.group_entries";
    let must = format!("at most {group}, {}", w.group_entries);
    r.require(w.dispatch_width <= w.group_entries, "window.dispatch_width", w.dispatch_width, &[group], must);
    r.multiple("window.commit_stack", w.commit_stack, group, w.group_entries);
}

/// The hash is of address bits above those within a line.
fn l2_hash(t: &Tables, r: &mut Relations) {
    let lowest = t.l2.line_bytes.trailing_zeros();
    let must = format!("bits from {lowest} on: lower ones are within a line of l2.line_bytes, {}", t.l2.line_bytes);
    let above = t.l2_hash.fields.iter().all(|&field| field >= lowest.into());
    r.require_value(above, "l2_hash.fields", Value::List(t.l2_hash.fields.clone()), &["l2.line_bytes"], must);
}

/// Latencies and transfers between caches and memory.
fn paths(t: &Tables, r: &mut Relations) {
    let (l2, memory, line) = (&t.l2_timing, &t.memory, t.l1d.line_bytes);
    for (key, bytes) in [
        ("l2_timing.fill_bytes_per_cycle", l2.fill_bytes_per_cycle),
        ("l2_timing.writeback_bytes_per_cycle", l2.writeback_bytes_per_cycle),
        ("ring.bytes_per_cycle", t.ring.bytes_per_cycle),
    ] {
        r.require(bytes <= line, key, bytes, &["l1d.line_bytes"], format!("at most a line of {line} bytes"));
    }

    // The part of a latency that belongs to the path to the core; the rest is that of the cache or the memory itself.
    let parts = [
        "l2_timing.request",
        "load_store.load_integer",
        "l1d.line_bytes",
        "l2_timing.fill_bytes_per_cycle",
        "l2_timing.miss_detect",
    ];
    let path = l2.request + t.load_store.load_integer + u64::from(line / l2.fill_bytes_per_cycle);
    let must = format!(
        "at least {path}: l2_timing.request, load_store.load_integer and the transfer of a line are part of it"
    );
    r.require(l2.hit_nearest >= path, "l2_timing.hit_nearest", l2.hit_nearest, &parts[..4], must);
    let path = path + l2.miss_detect;
    let must = format!("at least {path}: the path through L2 (with l2_timing.miss_detect) is part of it");
    r.require(memory.latency_nearest >= path, "memory.latency_nearest", memory.latency_nearest, &parts, must);
    r.at_least("l2_timing.hit_farthest", l2.hit_farthest, "l2_timing.hit_nearest", l2.hit_nearest);
    r.at_least("memory.latency_farthest", memory.latency_farthest, "memory.latency_nearest", memory.latency_nearest);

    memory_side_cache(t, path, r);
    memory_tiers(t, path, r);

    // The model counts the time of a line on the memory channel in 1/256 cycles. With this limit it is exact to 6 %.
    let most = LINES_PER_CYCLE * u64::from(line) * t.clock.core_hz;
    let must = format!("at most {most}: {LINES_PER_CYCLE} lines a cycle");
    let peak = memory.peak_bytes_per_second;
    r.require(peak <= most, "memory.peak_bytes_per_second", peak, &["l1d.line_bytes", "clock.core_hz"], must);
}

/// The memory-side cache. `path` is the latency of the path through L2.
fn memory_side_cache(t: &Tables, path: u64, r: &mut Relations) {
    let (cache, line) = (&t.memory_side_cache, u64::from(t.l1d.line_bytes));
    if cache.bytes == 0 {
        return;
    }
    let key = |key: &str| format!("memory_side_cache.{key}");
    let whole = cache.bytes.is_power_of_two() && cache.bytes >= line;
    let must = format!("0 (no such cache) or a power of two, at least a line of {line} bytes: it is direct-mapped");
    r.require(whole, &key("bytes"), cache.bytes, &["l1d.line_bytes"], must);
    let most = t.topology.node_bytes * u64::from(t.topology.cmgs) / MOST_SHARERS;
    let must = format!("at least {most}: at most {MOST_SHARERS} lines of memory may map to one place");
    r.require(cache.bytes > most, &key("bytes"), cache.bytes, &["topology.node_bytes", "topology.cmgs"], must);
    let must = format!("at least {path}: the path through L2 (with l2_timing.miss_detect) is part of it");
    // Only machines with such a cache must meet these requirements.
    let (there, miss) = ("memory_side_cache.bytes", "l2_timing.miss_detect");
    r.require(cache.hit_nearest >= path, &key("hit_nearest"), cache.hit_nearest, &[there, miss], must);
    let (nearest, farthest) = (cache.hit_nearest, cache.hit_farthest);
    let must = format!("at least memory_side_cache.hit_nearest, {nearest}");
    let others = [there, "memory_side_cache.hit_nearest"];
    r.require(farthest >= nearest, &key("hit_farthest"), farthest, &others, must);
    let path = path + cache.miss_detect;
    let must = format!("at least {path}: the path through L2 and memory_side_cache.miss_detect are part of it");
    let latency = t.memory.latency_nearest;
    let others = [there, "memory_side_cache.miss_detect"];
    r.require(latency >= path, "memory.latency_nearest", latency, &others, must);
    let most = LINES_PER_CYCLE * line * t.clock.core_hz;
    let must = format!("at most {most}: {LINES_PER_CYCLE} lines a cycle");
    let peak = cache.peak_bytes_per_second;
    let others = [there, "l1d.line_bytes", "clock.core_hz"];
    r.require(peak <= most, &key("peak_bytes_per_second"), peak, &others, must);
}

/// Memory tiers: a value of each list for each name. `path` is the latency of the path through L2, cycles.
fn memory_tiers(t: &Tables, path: u64, r: &mut Relations) {
    let names: Vec<&str> = t.memory_tiers.names().collect();
    let mut seen = HashSet::new();
    let named = names.iter().all(|name| MemoryTier::is_name(name) && seen.insert(*name));
    let must = "different names of letters, digits, - and _ that begin with a letter, and not 'all'".to_owned();
    r.require_value(named, "memory_tiers.names", Value::Text(t.memory_tiers.names.clone()), &[], must);
    for (key, list) in t.memory_tiers.lists() {
        let must = format!("a list of {}: memory_tiers.names has as many", names.len());
        let key = format!("memory_tiers.{key}");
        r.require_value(list.len() == names.len(), &key, Value::List(list.clone()), &["memory_tiers.names"], must);
    }
    let least = (path as f64 * 1e9 / t.clock.core_hz as f64).ceil() as u64;
    let must = format!("at least {least} each: the path through L2 (with l2_timing.miss_detect) is part of it");
    let latencies = &t.memory_tiers.latency_ns;
    let long = latencies.iter().all(|&ns| ns >= least);
    let others = ["l2_timing.miss_detect", "clock.core_hz"];
    r.require_value(long, "memory_tiers.latency_ns", Value::List(latencies.clone()), &others, must);
}

/// A blade of the hardware barrier has a bit for each core of a CMG.
fn hardware_barrier(t: &Tables, r: &mut Relations) {
    let (key, cores) = ("hardware_barrier.cores", t.hardware_barrier.cores);
    r.at_least(key, cores.into(), "topology.cores_per_cmg", t.topology.cores_per_cmg.into());
}

/// CMGs with an assistant core are CMGs of the machine.
fn assistant_cores(t: &Tables, r: &mut Relations) {
    let (cmgs, list) = (t.topology.cmgs, &t.topology.assistant_cmgs);
    let there = list.iter().all(|&cmg| cmg < u64::from(cmgs));
    let must = format!("numbers of CMGs, each less than topology.cmgs, {cmgs}");
    r.require_value(there, "topology.assistant_cmgs", Value::List(list.clone()), &["topology.cmgs"], must);
}

/// Ways of sectors at the start of a program.
fn sectors(t: &Tables, r: &mut Relations) {
    let s = &t.sector_cache;
    let l1d_usable = t.l1d.ways.saturating_sub(t.l1d.reserved_ways);
    // A limit may be as high as any CMG allows; a CMG with fewer ways does not reach it.
    let l2_usable = (0..t.topology.cmgs).map(|cmg| t.l2_ways(cmg)).max().unwrap_or_default();
    for (key, ways, name, cache, usable) in [
        ("sector_cache.l1_ways", s.l1_ways.as_slice(), "l1d", &t.l1d, l1d_usable),
        ("sector_cache.l2_ways", s.l2_ways.as_slice(), "l2", &t.l2, l2_usable),
    ] {
        let value = || Value::List(ways.to_vec());
        let must = "all 0: sector_cache.enabled is false".to_owned();
        let unlimited = ways.iter().all(|&most| most == 0);
        r.require_value(s.enabled || unlimited, key, value(), &["sector_cache.enabled"], must);

        let names = [format!("{name}.ways"), format!("{name}.reserved_ways")];
        let must = match cache.ways - usable {
            0 => format!("at most {usable} for each sector: {} is {usable}", names[0]),
            kept => format!(
                "at most {usable} for each sector: {} is {}, of which {kept} are reserved ({})",
                names[0], cache.ways, names[1]
            ),
        };
        let fits = ways.iter().all(|&most| most <= u64::from(usable));
        r.require_value(fits, key, value(), &names.each_ref().map(String::as_str), must);
    }
}

fn cache_geometry(name: &str, cache: &Cache, r: &mut Relations) {
    let (ways, line) = (u64::from(cache.ways), u64::from(cache.line_bytes));
    let key = |key: &str| format!("{name}.{key}");
    let (bytes_key, ways_key, line_key) = (key("bytes"), key("ways"), key("line_bytes"));
    let must = format!("less than {ways_key}, {ways}");
    r.require(cache.reserved_ways < cache.ways, &key("reserved_ways"), cache.reserved_ways, &[&ways_key], must);

    let sets = cache.bytes / (ways * line);
    let whole = sets.is_power_of_two() && sets * ways * line == cache.bytes;
    let must = format!("a power of two times {} ({ways_key} times {line_key})", ways * line);
    r.require(whole, &bytes_key, cache.bytes, &[&ways_key, &line_key], must);
    let must = format!("at most {MAX_LINES} lines of {line} bytes");
    r.require(cache.bytes / line <= MAX_LINES, &bytes_key, cache.bytes, &[&line_key], must);
}
