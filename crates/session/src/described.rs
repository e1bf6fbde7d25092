//! What a record keeps of the machine that a run was made on.

use std::collections::BTreeMap;

use fxscope_latency::System;
use fxscope_machine::Spec;

/// The numbers of a machine by name: those that metrics use, and those that predictions of slower memory need.
#[must_use]
pub fn machine_constants(spec: &Spec) -> BTreeMap<String, f64> {
    fxscope_pmu::constants(spec).into_iter().chain(System::constants(spec)).collect()
}
