//! Names that tools use for a machine's events.

use std::collections::HashMap;
use std::sync::LazyLock;

use fxscope_pmu::{Event, Events};
use serde::Deserialize;

/// Names that tools use, and those of the machines for the same events, or the formula of several that a tool computes.
const TABLE: &str = include_str!("../../../data/events/aliases.csv");
/// Beginnings of the names of perf's devices that are the counters of cores.
const OF_CORES: [&str; 3] = ["armv", "cpu", "a64fx"];
/// The device of events that PAPI's components of devices count: the event's name has it already.
const NAMED_BY_EVENT: &str = "unc";
/// Attributes of events that do not change what is counted.
const WITHOUT_EFFECT: [&str; 6] = ["name", "long", "percore", "period", "rdpmc", "metric-id"];
/// perf's letters for the modes of the processor, and for precision, after an event's name.
const MODIFIERS: &str = "ukhHGpPDIeWSb";

/// A row of the table.
#[derive(Debug, Deserialize)]
struct Alias {
    alias: String,
    event: String,
    #[serde(rename = "where")]
    known_by: String,
    unit: String,
    per_unit: Option<f64>,
}

/// The rows of each name, in lower case.
static ALIASES: LazyLock<HashMap<String, Vec<Alias>>> = LazyLock::new(|| {
    let mut all: HashMap<String, Vec<Alias>> = HashMap::new();
    for row in csv::Reader::from_reader(TABLE.as_bytes()).into_deserialize::<Alias>() {
        let row = row.expect("the table has these columns");
        all.entry(row.alias.to_ascii_lowercase()).or_default().push(row);
    }
    all
});

/// Returns the machine's name for the event that a tool calls `text`: the machine's own name in any case, its number as
/// `r11` or in `pmu/event=0x11/`, or one of the names in `data/events/aliases.csv`. Modifiers after a colon are ignored.
/// Events unknown to the machine keep the tool's name.
#[must_use]
pub fn event_name(events: &Events, text: &str) -> String {
    known(events, &Spelling::of(text)).map_or_else(|| text.to_owned(), |event| event.name.clone())
}

/// Returns the name in the table of aliases for an event that the machine does not have, or the formula of the machine's events that
/// the tool computes.
pub(crate) fn meaning<'a>(events: &Events, text: &'a str) -> Option<&'a str> {
    let alias = alias(events, &Spelling::of(text))?;
    events.named(&alias.event).is_none().then_some(alias.event.as_str())
}

/// Returns the number of events in one of perf's units, for events that perf prints in that unit.
pub(crate) fn per_unit(text: &str, unit: &str) -> Option<f64> {
    let rows = ALIASES.get(&Spelling::of(text).key())?;
    rows.iter().find(|row| row.unit == unit)?.per_unit
}

/// Returns whether two names differ in the number of the device only, so that their counts add up.
pub(crate) fn are_instances(one: &str, other: &str) -> bool {
    let (one, other) = (Spelling::of(one), Spelling::of(other));
    !one.of_cores() && one.key() == other.key()
}

fn known<'e>(events: &'e Events, spelling: &Spelling) -> Option<&'e Event> {
    let numbered = || {
        let number = spelling.number()?;
        events.iter().find(|event| event.number == Some(number))
    };
    let named = || events.iter().find(|event| event.name.eq_ignore_ascii_case(&spelling.event));
    let own = || spelling.of_cores().then(|| numbered().or_else(named)).flatten();
    // Intel's events of devices carry their device in their name.
    let of_device = || spelling.event.to_ascii_lowercase().starts_with("unc_").then(named).flatten();
    own().or_else(of_device).or_else(|| events.named(&alias(events, spelling)?.event))
}

/// The row of a name that holds for this machine.
fn alias(events: &Events, spelling: &Spelling) -> Option<&'static Alias> {
    let has = |name: &str| name.is_empty() || events.named(name).is_some_and(|event| event.number.is_some());
    ALIASES.get(&spelling.key())?.iter().find(|row| has(&row.known_by))
}

/// A tool's name of an event, taken apart.
struct Spelling {
    /// The device, without its instance number; empty for the cores' counters where the name does not say so.
    device: String,
    /// The event's name; empty if it has attributes only.
    event: String,
    /// Attributes that decide what is counted, sorted, with their values.
    attributes: Vec<(String, u64)>,
}

impl Spelling {
    fn of(text: &str) -> Spelling {
        let text = text.trim();
        if let Some((component, event)) = text.split_once("::") {
            return Spelling::of_papi(component, event);
        }
        let Some((device, rest)) = text.split_once('/') else {
            return Spelling { device: String::new(), event: without_modifiers(text), attributes: Vec::new() };
        };
        let inside = rest.rsplit_once('/').map_or(rest, |(inside, _)| inside);
        let mut spelling = Spelling { device: without_instance(device), event: String::new(), attributes: Vec::new() };
        for part in inside.split(',').map(str::trim) {
            match part.split_once('=') {
                Some((name, _)) if WITHOUT_EFFECT.contains(&name) => {}
                Some((name, value)) => spelling.attributes.extend(integer(value).map(|value| (name.to_owned(), value))),
                None if WITHOUT_EFFECT.contains(&part) || !spelling.event.is_empty() => {}
                None => part.clone_into(&mut spelling.event),
            }
        }
        spelling.attributes.sort();
        spelling
    }

    /// A name of PAPI such as `arm_a64fx::FP_FIXED_OPS_SPEC:u=1` or `knl_unc_imc0::UNC_M_CAS_COUNT:RD:cpu=0`.
    fn of_papi(component: &str, event: &str) -> Spelling {
        let parts = event.split(':').filter(|part| !part.contains('=') && !is_modifiers(part));
        let device = if component.contains("_unc_") { NAMED_BY_EVENT } else { "" };
        Spelling { device: device.to_owned(), event: parts.collect::<Vec<_>>().join("."), attributes: Vec::new() }
    }

    /// Returns whether the event is one of cores.
    fn of_cores(&self) -> bool {
        self.device.is_empty() || OF_CORES.iter().any(|begin| self.device.to_ascii_lowercase().starts_with(begin))
    }

    /// Returns the number of an event that is given by its number.
    fn number(&self) -> Option<u16> {
        let value = |wanted: &str| self.attributes.iter().find(|(name, _)| name == wanted).map(|&(_, value)| value);
        if let Some(event) = value("event").or_else(|| value("config")) {
            let only = self.attributes.iter().all(|(name, _)| matches!(name.as_str(), "event" | "config" | "umask"));
            let number = event | value("umask").unwrap_or(0) << 8;
            return only.then(|| u16::try_from(number).ok()).flatten();
        }
        let name = self.event.to_ascii_lowercase();
        let name = name.strip_prefix("raw").map_or(name.as_str(), |rest| rest.trim_start_matches(['_', ' ']));
        let hex = name.strip_prefix('r').or_else(|| name.strip_prefix("0x"))?;
        u16::from_str_radix(hex.strip_prefix("0x").unwrap_or(hex), 16).ok()
    }

    /// Returns the name as the table of aliases has it.
    fn key(&self) -> String {
        if self.of_cores() || self.device == NAMED_BY_EVENT {
            return self.event.to_ascii_lowercase();
        }
        let attributes = self.attributes.iter().map(|(name, value)| format!("{name}={value:#x}"));
        let named = (!self.event.is_empty()).then(|| self.event.clone());
        let inside = named.into_iter().chain(attributes).collect::<Vec<_>>().join(",");
        format!("{}/{inside}/", self.device).to_ascii_lowercase()
    }
}

/// Reads a decimal or hexadecimal integer.
fn integer(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Returns whether a word consists of perf's modifiers only.
pub(crate) fn is_modifiers(word: &str) -> bool {
    word.chars().all(|c| MODIFIERS.contains(c))
}

fn without_modifiers(text: &str) -> String {
    let plain = text.rsplit_once(':').filter(|(_, modifiers)| is_modifiers(modifiers)).map_or(text, |(name, _)| name);
    plain.to_owned()
}

/// A device's name without its number: `uncore_imc_3` is `uncore_imc`.
fn without_instance(device: &str) -> String {
    let bare = device.trim_end_matches(|c: char| c.is_ascii_digit());
    bare.strip_suffix('_').filter(|_| bare.len() < device.len()).unwrap_or(device).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(machine: &str) -> Events {
        fxscope_pmu::Pmu::built_in(machine).expect("built in").events
    }

    #[test]
    fn all_spellings_of_an_event_give_the_machines_name() {
        let ways = [
            ("r11", "CPU_CYCLES"),
            ("r0011", "CPU_CYCLES"),
            ("R0011", "CPU_CYCLES"),
            ("raw_r11", "CPU_CYCLES"),
            ("raw 0x11", "CPU_CYCLES"),
            ("r80c1:u", "FP_FIXED_OPS_SPEC"),
            ("cycles:uk", "CPU_CYCLES"),
            ("cycles:ppp", "CPU_CYCLES"),
            ("cpu_cycles", "CPU_CYCLES"),
            ("0INST_COMMIT", "0INST_COMMIT"),
            ("fp_scale_ops_spec:u", "FP_SCALE_OPS_SPEC"),
            ("armv8_pmuv3_0/event=0x190/", "0INST_COMMIT"),
            ("armv8_pmuv3_0/cpu_cycles/", "CPU_CYCLES"),
            ("armv8_pmuv3/cpu_cycles/", "CPU_CYCLES"),
            ("armv8_pmuv3_0/cycles/", "CPU_CYCLES"),
            ("armv8_pmuv3_0/r11/", "CPU_CYCLES"),
            ("armv8_pmuv3_0/cpu_cycles/u", "CPU_CYCLES"),
            ("armv8_pmuv3_0/event=0x11/:u", "CPU_CYCLES"),
            ("armv8_pmuv3_0/event=17/", "CPU_CYCLES"),
            ("armv8_pmuv3_0/config=0x11/", "CPU_CYCLES"),
            ("armv8_pmuv3_0/event=0x11,long=1/", "CPU_CYCLES"),
            ("armv8_pmuv3_0/event=0x11,name=mycycles/", "CPU_CYCLES"),
            ("arm64_a64fx::FP_SCALE_OPS_SPEC:u=1", "FP_SCALE_OPS_SPEC"),
            ("perf::PERF_COUNT_HW_CACHE_L1D:READ:MISS:u", "L1D_CACHE_REFILL"),
            ("perf_raw::r80c0", "FP_SCALE_OPS_SPEC"),
            ("perf::CYCLES", "CPU_CYCLES"),
            ("PAPI_FMA_INS", "FP_FMA_SPEC"),
            ("instructions", "INST_RETIRED"),
            ("page-faults", "page-faults"),
            ("r12345", "r12345"),
            // A device's event has the same number as one of the core.
            ("uncore_imc_0/event=0x4/", "uncore_imc_0/event=0x4/"),
        ];
        for (text, name) in ways {
            assert_eq!(event_name(&events("a64fx"), text), name, "{text}");
        }
    }

    #[test]
    fn generic_names_are_what_the_kernels_driver_counts_for_them() {
        let ways = [
            ("cache-references", "L1D_CACHE"),
            ("cache-misses", "L1D_CACHE_REFILL"),
            ("L1-dcache-loads", "L1D_CACHE"),
            ("L1-dcache-load-misses:u", "L1D_CACHE_REFILL"),
            ("L1-dcache-stores", "L1D_CACHE"),
            ("L1-icache-load-misses", "L1I_CACHE_REFILL"),
            ("dTLB-load-misses", "L1D_TLB_REFILL"),
            ("iTLB-load-misses", "L1I_TLB_REFILL"),
            ("branch-loads", "BR_PRED"),
            ("branch-misses", "BR_MIS_PRED"),
            ("stalled-cycles-frontend", "STALL_FRONTEND"),
            ("stalled-cycles-backend", "STALL_BACKEND"),
            ("armv8_pmuv3_0/stalled-cycles-backend/", "STALL_BACKEND"),
        ];
        for (text, name) in ways {
            assert_eq!(event_name(&events("a64fx"), text), name, "{text}");
        }
        // Events that A64FX does not have keep the tool's name, and what it stands for is known.
        for (text, arm) in
            [("branches", "PC_WRITE_RETIRED"), ("bus-cycles", "BUS_CYCLES"), ("LLC-loads", "LL_CACHE_RD")]
        {
            assert_eq!(event_name(&events("a64fx"), text), text);
            assert_eq!(meaning(&events("a64fx"), text), Some(arm));
        }
        // PAPI adds these up before it writes them.
        assert_eq!(event_name(&events("a64fx"), "PAPI_L1_TCM"), "PAPI_L1_TCM");
        assert_eq!(meaning(&events("a64fx"), "PAPI_L1_TCM"), Some("L1D_CACHE_REFILL + L1I_CACHE_REFILL"));
        assert_eq!(event_name(&events("knl"), "cache-misses"), "LONGEST_LAT_CACHE.MISS");
        assert_eq!(event_name(&events("knl"), "cache-references"), "cache-references", "not A64FX's meaning");
    }

    #[test]
    fn perfs_own_names_for_a64fx_are_its_events() {
        let numbers = [
            ("_0inst_commit", 0x190),
            ("_1INST_COMMIT", 0x191),
            ("_4inst_commit", 0x194),
            ("l1_pipe0_val_iu_analt_sec0", 0x2a0),
            ("l1_pipe1_val_iu_analt_sec0", 0x2a1),
            ("LD_COMP_WAIT_PFP", 0x186),
            ("LD_COMP_WAIT_PFP_EX", 0x187),
            ("LD_COMP_WAIT_PFP_SWPF", 0x188),
            ("L1D_MISS_WAIT", 0x208),
        ];
        let events = events("a64fx");
        for (text, number) in numbers {
            let name = event_name(&events, text);
            assert_eq!(events.named(&name).and_then(|event| event.number), Some(number), "{text}");
        }
    }

    #[test]
    fn events_of_memory_controllers_have_their_names_and_units() {
        let ways = [
            ("uncore_imc_0/cas_count_read/", "UNC_M_CAS_COUNT.RD"),
            ("uncore_imc/event=0x03,umask=0x3/", "UNC_M_CAS_COUNT.ALL"),
            ("uncore_imc_5/umask=1,event=3,name=reads/", "UNC_M_CAS_COUNT.RD"),
            ("uncore_edc_uclk_7/event=0x02,umask=0x1c/", "UNC_E_EDC_ACCESS.MISS"),
            ("unc_m_cas_count.wr", "UNC_M_CAS_COUNT.WR"),
            ("knl_unc_imc0::UNC_M_CAS_COUNT:RD:cpu=0", "UNC_M_CAS_COUNT.RD"),
            ("MC_CAS_READS", "UNC_M_CAS_COUNT.RD"),
        ];
        for (text, name) in ways {
            assert_eq!(event_name(&events("knl"), text), name, "{text}");
        }
        assert!(are_instances("uncore_imc_0/cas_count_read/", "uncore_imc_1/cas_count_read/"));
        assert!(!are_instances("cycles:u", "cycles:k"));
        // A line of 64 bytes: 2^14 of them are a MiB.
        assert_eq!(per_unit("uncore_imc_0/cas_count_read/", "MiB"), Some(16384.0));
    }

    #[test]
    fn formulas_of_aliases_consist_of_the_machines_events() {
        let events = events("a64fx");
        let formulas: Vec<&Alias> = ALIASES.values().flatten().filter(|row| row.event.contains(' ')).collect();
        assert!(formulas.len() > 10);
        for row in formulas {
            for word in row.event.split(' ').filter(|word| !matches!(*word, "+" | "-" | "*" | "4")) {
                assert!(events.named(word).is_some(), "{}: {word}", row.alias);
            }
        }
    }

    #[test]
    fn the_events_of_aliases_that_are_for_any_machine_exist() {
        let all = ["a64fx", "knl"].map(events);
        for row in ALIASES.values().flatten().filter(|row| row.known_by.is_empty()) {
            assert!(all.iter().any(|events| events.named(&row.event).is_some()), "{}", row.alias);
        }
    }
}
