//! Names that tools use for a machine's events.

use fxscope_pmu::Events;

/// Names that tools use for events of every machine, and Arm's names for them.
const GENERIC: &[(&str, &str)] = &[
    ("cpu-cycles", "CPU_CYCLES"),
    ("cycles", "CPU_CYCLES"),
    ("instructions", "INST_RETIRED"),
    ("branch-misses", "BR_MIS_PRED"),
];

/// Returns the machine's name for the event that a tool calls `text`: the machine's own name in any case, its number as
/// `r11` or in `pmu/event=0x11/`, or a generic name. Modifiers after a colon are ignored. Events unknown to the machine
/// keep the tool's name.
#[must_use]
pub fn event_name(events: &Events, text: &str) -> String {
    let plain = text.split('/').nth(1).unwrap_or(text);
    let plain = plain.rsplit_once(':').map_or(plain, |(event, modifiers)| match modifiers {
        m if m.chars().all(|c| "ukhHGpPDIeWS".contains(c)) => event,
        _ => plain,
    });
    let number = plain.strip_prefix('r').or_else(|| plain.strip_prefix("event=0x"));
    let number = number.and_then(|hex| u16::from_str_radix(hex.trim_start_matches("0x"), 16).ok());
    let numbered = number.and_then(|number| events.iter().find(|e| e.number == Some(number)));
    let named = || events.iter().find(|e| e.name.eq_ignore_ascii_case(plain));
    let generic = || GENERIC.iter().find(|(name, _)| *name == plain).and_then(|(_, name)| events.named(name));
    numbered.or_else(named).or_else(generic).map_or_else(|| text.to_owned(), |event| event.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_an_event_give_the_machines_name() {
        let events = fxscope_pmu::Pmu::built_in("a64fx").expect("built in").events;
        let ways = [
            ("r11", "CPU_CYCLES"),
            ("r0011", "CPU_CYCLES"),
            ("r80c1:u", "FP_FIXED_OPS_SPEC"),
            ("cycles:uk", "CPU_CYCLES"),
            ("cpu_cycles", "CPU_CYCLES"),
            ("0INST_COMMIT", "0INST_COMMIT"),
            ("fp_scale_ops_spec:u", "FP_SCALE_OPS_SPEC"),
            ("armv8_pmuv3_0/event=0x190/", "0INST_COMMIT"),
            ("armv8_pmuv3_0/cpu_cycles/", "CPU_CYCLES"),
            ("armv8_pmuv3_0/cpu_cycles/u", "CPU_CYCLES"),
            ("armv8_pmuv3_0/event=0x11/:u", "CPU_CYCLES"),
            ("instructions", "INST_RETIRED"),
            ("page-faults", "page-faults"),
            ("r12345", "r12345"),
        ];
        for (text, name) in ways {
            assert_eq!(event_name(&events, text), name, "{text}");
        }
    }
}
