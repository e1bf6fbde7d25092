//! The machine's mode of power, applied to the values of its clock and its pipes.

use crate::error::LoadError;
use crate::layer::{Cell, Layer};
use crate::schema::{KeyType as _, Value};
use crate::spec::{PowerMode, SCHEMA};

/// The key that selects the mode.
const MODE: (&str, &str) = ("power", "mode");

/// What a mode replaces.
struct Replaced {
    /// Whether a mode does.
    by: fn(PowerMode) -> bool,
    /// What it is called.
    name: &'static str,
    /// The key of the normal value.
    key: (&'static str, &'static str),
    /// The key of the mode's value; 0: the machine has no such mode.
    with: (&'static str, &'static str),
}

const REPLACED: [Replaced; 2] = [
    Replaced { by: PowerMode::is_boost, name: "boost", key: ("clock", "core_hz"), with: ("power", "boost_core_hz") },
    Replaced { by: PowerMode::is_eco, name: "eco", key: ("clock", "fma_pipes"), with: ("power", "eco_fma_pipes") },
];

/// Latencies of memory, cycles, of which what lies beyond the L2 cache takes the same time in all modes.
const MEMORY: [(&str, &str); 2] = [("memory", "latency_nearest"), ("memory", "latency_farthest")];
/// The latency of the L2 cache, cycles, which has the core's clock.
const L2: (&str, &str) = ("l2_timing", "hit_nearest");

/// Replaces the normal values by those of the selected mode. `settings` are those of the user, which are among `values`.
///
/// # Errors
/// If the machine has no such mode, or a setting would have no effect in it.
pub fn apply(values: &mut Layer, settings: &Layer) -> Result<(), LoadError> {
    let Some(selector) = cell(values, MODE).cloned() else { return Ok(()) };
    let Some(mode) = PowerMode::read(&selector.value) else { return Ok(()) };
    let normal_hz = integer(values, REPLACED[0].key);
    for replaced in REPLACED.into_iter().filter(|replaced| (replaced.by)(mode)) {
        let Some(with) = cell(values, replaced.with).cloned() else { continue };
        if with.value == Value::Integer(0) {
            let what = format!("the machine has no {} mode", replaced.name);
            let advice = format!("choose another {}", full(MODE));
            return Err(LoadError::bad(selector.place, what, advice));
        }
        if let Some(set) = cell(settings, replaced.key) {
            let what = format!("{} has no effect with {} {}", full(replaced.key), full(MODE), mode.name());
            let advice = format!("set {} instead, or leave it out", full(replaced.with));
            return Err(LoadError::bad(set.place.clone(), what, advice));
        }
        if let Some(normal) = cell_mut(values, replaced.key) {
            *normal = with;
        }
    }
    if let (true, Some(hz)) = (mode.is_boost(), normal_hz) {
        keep_memory_time(values, settings, hz);
    }
    Ok(())
}

/// Memory has a clock of its own: at another clock of the core, its latency is another number of cycles. Values of the user stay, and so
/// do those that the machine's own description gives for the mode.
fn keep_memory_time(values: &mut Layer, settings: &Layer, normal_hz: u64) {
    let (Some(hz), Some(l2)) = (integer(values, REPLACED[0].key), integer(values, L2)) else { return };
    for key in MEMORY.into_iter().filter(|&key| cell(settings, key).is_none()) {
        if let Some(Cell { value: Value::Integer(cycles), .. }) = cell_mut(values, key) {
            let beyond = cycles.saturating_sub(l2) as f64 * hz as f64 / normal_hz.max(1) as f64;
            *cycles = l2 + beyond.round() as u64;
        }
    }
}

fn integer(layer: &Layer, key: (&str, &str)) -> Option<u64> {
    match cell(layer, key)?.value {
        Value::Integer(value) => Some(value),
        _ => None,
    }
}

fn full((table, key): (&str, &str)) -> String {
    format!("{table}.{key}")
}

fn place((table, key): (&str, &str)) -> Option<(usize, usize)> {
    let t = SCHEMA.iter().position(|known| known.name == table)?;
    Some((t, SCHEMA[t].find(key)?))
}

fn cell<'a>(layer: &'a Layer, key: (&str, &str)) -> Option<&'a Cell> {
    let (t, k) = place(key)?;
    layer.cells[t][k].as_ref()
}

fn cell_mut<'a>(layer: &'a mut Layer, key: (&str, &str)) -> Option<&'a mut Cell> {
    let (t, k) = place(key)?;
    layer.cells[t][k].as_mut()
}

#[cfg(test)]
mod tests {
    use crate::load;
    use crate::spec::PowerMode;

    fn set(settings: &[(&str, &str)]) -> Vec<(String, String)> {
        settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_mode_sets_clock_and_pipes_and_the_power_of_the_chip() {
        let normal = load("a64fx", &[]).expect("built in").tables;
        for mode in PowerMode::ALL {
            let tables = load("a64fx", &set(&[("power.mode", mode.name())])).expect("a mode").tables;
            let (hz, pipes) = (tables.clock.core_hz, tables.clock.fma_pipes);
            assert_eq!(hz, if mode.is_boost() { tables.power.boost_core_hz } else { normal.clock.core_hz });
            assert_eq!(pipes, if mode.is_eco() { 1 } else { 2 });
            assert_eq!(tables.power.saved_per_cycle() > 0.0, mode.is_eco(), "{}", mode.name());
            assert_eq!(tables.power.base_watts() > normal.power.base_watts(), mode.is_boost(), "{}", mode.name());
            assert_eq!(tables.power.core_factor() > normal.power.core_factor(), mode.is_boost(), "{}", mode.name());
            assert_eq!(tables.power.memory_factor(), normal.power.memory_factor());
        }
    }

    #[test]
    fn memory_takes_the_same_time_at_another_clock_of_the_core() {
        let latency = |settings: &[(&str, &str)]| {
            let tables = load("a64fx", &set(settings)).expect("valid").tables;
            (tables.memory.latency_nearest as f64 - tables.l2_timing.hit_nearest as f64) / tables.clock.core_hz as f64
        };
        let (normal, boost) = (latency(&[]), latency(&[("power.mode", "boost")]));
        assert!((boost / normal - 1.0).abs() < 0.01, "{normal} {boost}");
        let set =
            load("a64fx", &set(&[("power.mode", "boost"), ("memory.latency_nearest", "300")])).expect("valid").tables;
        assert_eq!(set.memory.latency_nearest, 300, "the user's value");
    }

    #[test]
    fn what_a_mode_replaces_cannot_be_set() {
        let message = |settings: &[(&str, &str)]| load("a64fx", &set(settings)).expect_err("no effect").to_string();
        assert_eq!(
            message(&[("power.mode", "boost"), ("clock.core_hz", "1000000000")]),
            "--set clock.core_hz=1000000000: clock.core_hz has no effect with power.mode boost; \
             set power.boost_core_hz instead, or leave it out"
        );
        assert!(
            message(&[("clock.fma_pipes", "2"), ("power.mode", "eco")]).contains("set power.eco_fma_pipes instead")
        );
        assert!(message(&[("power.boost_core_hz", "2500000000")]).contains("no effect with power.mode normal"));
    }

    #[test]
    fn machines_without_a_mode_refuse_it() {
        let error = load("fx700", &set(&[("power.mode", "boost")])).expect_err("it has none").to_string();
        assert_eq!(error, "--set power.mode=boost: the machine has no boost mode; choose another power.mode");
        let error = load("fx700", &set(&[("power.mode", "boost-eco")])).expect_err("it has none").to_string();
        assert!(error.contains("the machine has no boost mode"), "{error}");
    }
}
