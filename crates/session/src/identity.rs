//! Identities that distinguish the results of scenarios.

use std::fmt;

use fxscope_machine::Spec;
use sha2::{Digest as _, Sha256};

use crate::{Error, MAX_PROGRAM_BYTES, Scenario};

/// A digest of everything that affects a scenario's counts. Equal identities mean equal counts, with the same
/// simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity([u8; 32]);

impl Identity {
    /// Returns the digest's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Scenario {
    /// Returns its identity, which covers the contents of the program's file and of the machine's description `spec`,
    /// all options, the program's environment, and the current folder, which is visible to it.
    ///
    /// # Errors
    /// If the program cannot be read, or a part of the scenario is not UTF-8.
    pub fn identity(&self, spec: &Spec) -> Result<Identity, Error> {
        let failed = |why: &dyn fmt::Display| Error::NoIdentity(why.to_string());
        let program = fxscope_host::read(&self.program, MAX_PROGRAM_BYTES).map_err(|e| failed(&e))?;
        let resolved = Scenario { variables: self.environment(), inherit_environment: false, ..self.clone() };
        let scenario = serde_json::to_vec(&resolved).map_err(|e| failed(&e))?;
        let folder = std::env::current_dir().map_err(|e| failed(&e))?;
        let machine = format!("{:?}", fxscope_machine::hash(spec));
        let mut digest = Sha256::new();
        for part in [&program, &scenario, machine.as_bytes(), folder.as_os_str().as_encoded_bytes()] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        Ok(Identity(digest.finalize().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PartPlan, RunOptions, Selection};

    fn identity(scenario: &Scenario) -> Identity {
        scenario.identity(&scenario.spec().expect("built in")).expect("it has one")
    }

    fn scenario() -> Scenario {
        Scenario::new(std::env::current_exe().expect("a file"))
    }

    /// The scenario, of which what comes behind a point is timed.
    fn of_part(scenario: Scenario, from: &str) -> Scenario {
        let selection = Selection::Between { from: Some(from.parse().expect("a point")), until: None };
        let options = RunOptions { part: Some(PartPlan::new(selection)), ..scenario.options };
        Scenario { options, ..scenario }
    }

    #[test]
    fn every_part_of_a_scenario_is_part_of_its_identity() {
        let base = scenario();
        let changed = [
            base.clone().with_arguments(["a"]),
            base.clone().with_variables(&[("A", "1")]),
            base.clone().with_machine("knl"),
            base.clone().with_setting("tlb.l1_entries", "8"),
            base.clone().with_added_ns(10.0),
            base.clone().with_intervals(Some(1000), None),
            base.clone().with_interleaving(),
            base.clone().with_memory_of(5),
            base.clone().with_pages([("bss", 2 << 20)]),
            Scenario { memory: Some(1 << 30), ..base.clone() },
            of_part(base.clone(), "function=main"),
            of_part(base.clone(), "function=main#2"),
        ];
        let mut all: Vec<String> = changed.iter().chain([&base]).map(|s| identity(s).to_string()).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), changed.len() + 1);
    }

    #[test]
    fn a_scenario_keeps_its_identity_when_serialised() {
        let scenario = scenario().with_arguments(["a b", "ü"]).with_pages([("heap", 64 << 10)]).with_added_ns(0.5);
        let scenario = of_part(scenario, "time=2ms");
        let text = serde_json::to_string(&scenario).expect("text");
        let again: Scenario = serde_json::from_str(&text).expect("a scenario");
        assert_eq!(again, scenario);
        assert_eq!(identity(&again), identity(&scenario));
    }
}
