//! Parsers of options whose value is one of several names.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use fxscope::linux::ClockSource;
use fxscope::machine::spec::PowerMode;
use fxscope::{EngineChoice, Follow, Mode, SpinLoops};

/// Modes by name.
pub(crate) const MODES: &[(&str, Mode)] = &[("timing", Mode::Timing), ("functional", Mode::Functional)];
/// Engines by name.
pub(crate) const ENGINES: &[(&str, EngineChoice)] = &[
    ("auto", EngineChoice::Auto),
    ("translator", EngineChoice::Translator),
    ("interpreter", EngineChoice::Interpreter),
];
/// Which processes are followed, by name.
pub(super) const FOLLOW: &[(&str, Follow)] = &[("all", Follow::All), ("first", Follow::First)];
/// Clocks by name.
pub(super) const CLOCKS: &[(&str, ClockSource)] = &[("simulated", ClockSource::Simulated), ("host", ClockSource::Host)];
/// How spin loops are simulated, by name.
pub(super) const SPIN: &[(&str, SpinLoops)] = &[("fast", SpinLoops::Fast), ("exact", SpinLoops::Exact)];

/// Returns a parser for names in `values`.
pub(crate) fn choice<T: Copy + Send + Sync>(values: &'static [(&'static str, T)]) -> impl TypedValueParser<Value = T> {
    let value = |name: String| values.iter().find(|(known, _)| *known == name).map(|&(_, value)| value);
    PossibleValuesParser::new(values.iter().map(|(name, _)| *name)).try_map(move |name| value(name).ok_or("unknown"))
}

/// Returns a parser for names in `values` that have a line of help each.
pub(crate) fn described_choice<T: Copy + Send + Sync>(
    values: &'static [(&'static str, T, &'static str)],
) -> impl TypedValueParser<Value = T> {
    let value = |name: String| values.iter().find(|(known, ..)| *known == name).map(|&(_, value, _)| value);
    let shown = values.iter().map(|(name, _, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(shown).try_map(move |name| value(name).ok_or("unknown"))
}

/// Returns a parser for names of modes of power.
pub(crate) fn power_modes() -> PossibleValuesParser {
    PossibleValuesParser::new(PowerMode::ALL.iter().map(|mode| mode.name()))
}
