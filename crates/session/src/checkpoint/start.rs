//! How a run with snapshots was started: what its folder says, so that it can be continued.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use fxscope_checkpoint::Folder;
use fxscope_linux::{ClockSource, StartError};
use serde::{Deserialize, Serialize};

use crate::{Error, Prepared, Scenario, serial};

/// How often snapshots are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Every {
    /// After this much time of the host.
    Time(Duration),
    /// After this many instructions.
    Instructions(u64),
}

impl Every {
    /// Parses a time (`30s`, `10min`, `2h`) or a number of instructions (`500M`, `2G`, `1000000`).
    ///
    /// # Errors
    /// If it is neither; the message says how to write it.
    pub fn parse(text: &str) -> Result<Every, String> {
        let wrong =
            || "write it as a time, such as 30s, 10min or 2h, or as instructions, such as 500M or 2G".to_owned();
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().ok().filter(|&number| number > 0).ok_or_else(wrong)?;
        let times = |factor| number.checked_mul(factor).ok_or_else(wrong);
        let seconds = |factor| times(factor).map(|seconds| Every::Time(Duration::from_secs(seconds)));
        match unit {
            "s" => seconds(1),
            "min" => seconds(60),
            "h" => seconds(3600),
            "" => Ok(Every::Instructions(number)),
            "k" => times(1_000).map(Every::Instructions),
            "M" => times(1_000_000).map(Every::Instructions),
            "G" => times(1_000_000_000).map(Every::Instructions),
            _ => Err(wrong()),
        }
    }
}

/// Snapshots of a run as its options ask for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshots {
    /// How often they are taken.
    pub every: Every,
    /// How many are kept, the newest.
    pub keep: usize,
}

/// What the folder of a run says of its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// What runs.
    pub scenario: Scenario,
    /// The program's environment.
    #[serde(with = "serial::variables")]
    environment: Vec<(OsString, OsString)>,
    /// The current directory, from which relative paths start.
    pub directory: PathBuf,
    /// Its snapshots.
    pub snapshots: Snapshots,
    /// The record file to which the run is added.
    pub output: Option<PathBuf>,
    /// Where its counts go as JSON.
    pub json: Option<PathBuf>,
}

impl Start {
    /// Returns the start of a scenario that has been prepared, in the current directory and without outputs.
    ///
    /// # Errors
    /// If a snapshot cannot have all of the run's state, or there is no current directory.
    pub fn new(scenario: &Scenario, prepared: &Prepared, snapshots: Snapshots) -> Result<Start, Error> {
        if scenario.options.clock == ClockSource::Host {
            return Err(Error::option("checkpoint", "the host's clock cannot be saved; use --clock simulated"));
        }
        let (scenario, environment) = (scenario.clone(), prepared.environment().to_vec());
        let directory = std::env::current_dir().map_err(StartError::Host)?;
        Ok(Start { scenario, environment, directory, snapshots, output: None, json: None })
    }

    /// Returns it as it is in a folder.
    ///
    /// # Errors
    /// If a path, an argument or a variable is not UTF-8.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        serde_json::to_vec_pretty(self).map_err(|why| Error::option("checkpoint", why.to_string()))
    }

    /// Reads that of a folder.
    ///
    /// # Errors
    /// If the folder cannot be read, or was made by another version.
    pub fn read(folder: &Folder) -> Result<Start, Error> {
        serde_json::from_slice(&folder.run()?)
            .map_err(|why| Error::Snapshots(format!("how the run was started: {why}")))
    }

    /// Prepares the scenario again, as it was; to be called in its directory.
    ///
    /// # Errors
    /// Those of [`Scenario::prepare`].
    pub fn prepare(&self) -> Result<Prepared, Error> {
        Ok(self.scenario.prepare()?.with_environment(self.environment.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_instructions_have_units_of_their_own() {
        let parsed = ["30s", "10min", "2h"].map(|text| Every::parse(text).expect(text));
        assert_eq!(parsed, [30, 600, 7200].map(|seconds| Every::Time(Duration::from_secs(seconds))));
        let parsed = ["7", "3k", "500M", "2G"].map(|text| Every::parse(text).expect(text));
        assert_eq!(parsed, [7, 3000, 500_000_000, 2_000_000_000].map(Every::Instructions));
        for wrong in ["", "0s", "5 min", "-1s", "1d", "99999999999999999999", "18446744073709551615h"] {
            assert!(Every::parse(wrong).is_err(), "{wrong}");
        }
    }
}
