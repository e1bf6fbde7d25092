//! The description of a run's machine in a record.

use std::collections::BTreeMap;

use fxscope_latency::System;
use fxscope_machine::Spec;

/// Returns the numbers of a machine by name: those that metrics use, and those that predictions of slower memory need.
#[must_use]
pub fn machine_constants(spec: &Spec) -> BTreeMap<String, f64> {
    fxscope_pmu::constants(spec).into_iter().chain(System::constants(spec)).collect()
}
