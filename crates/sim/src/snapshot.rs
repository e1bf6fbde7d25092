//! Snapshots of a timed run: everything but the guest and the options.
//!
//! A snapshot has the chip, its cores with all their tables and calendars, the blocks that are bound to them, the
//! clocks, and what was counted. A run that is restored from it, with the guest as it was, goes on byte for byte as the
//! run that it was taken from. The format is [postcard](https://docs.rs/postcard), behind [`VERSION`].

use fxscope_aarch64::Engine;
use serde::{Deserialize, Serialize};

use crate::region::Regions;
use crate::run::Simulation;
use crate::timing::Timing;

/// The version of the format. It changes whenever the state of the model does.
pub const VERSION: u32 = 1;

/// Why a snapshot cannot be taken or restored.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The run has no timing model: only the guest has a state.
    #[error("a functional run has no timing state")]
    Functional,
    /// The snapshot is from a program of another version.
    #[error("the snapshot has format {0}, not {VERSION}")]
    Version(u32),
    /// It is damaged.
    #[error("the snapshot cannot be read or written: {0}")]
    Format(#[from] postcard::Error),
}

/// What is written.
#[derive(Serialize)]
struct Written<'a> {
    version: u32,
    timing: &'a Timing,
    regions: &'a Regions,
}

/// What is read behind the version.
#[derive(Deserialize)]
struct Read {
    timing: Timing,
    regions: Regions,
}

impl<E: Engine> Simulation<E> {
    /// The state of the run without that of the guest. Spinning cores are caught up first, in this run, too, so that it
    /// and a restored one go on alike.
    ///
    /// # Errors
    /// When the run is functional.
    pub fn snapshot(&mut self) -> Result<Vec<u8>, SnapshotError> {
        let mut driver = self.driver().ok_or(SnapshotError::Functional)?;
        driver.forget_loops();
        let (timing, regions) = (&*driver.timing, &*driver.regions);
        Ok(postcard::to_stdvec(&Written { version: VERSION, timing, regions })?)
    }

    /// Puts the run into the state of a snapshot that was taken from a run of the same machine and options. The guest
    /// must be in the state of that moment, too.
    ///
    /// # Errors
    /// When the run is functional, or the snapshot is damaged or has another version. The run is as it was then.
    pub fn restore(&mut self, snapshot: &[u8]) -> Result<(), SnapshotError> {
        if self.timing.is_none() {
            return Err(SnapshotError::Functional);
        }
        let (version, rest) = postcard::take_from_bytes(snapshot)?;
        if version != VERSION {
            return Err(SnapshotError::Version(version));
        }
        let Read { timing, regions } = postcard::from_bytes(rest)?;
        (self.timing, self.regions) = (Some(timing), regions);
        Ok(())
    }
}
