//! Errors of scenarios.

use fxscope_linux::StartError;
use fxscope_machine::LoadError;
use fxscope_sim::snapshot::SnapshotError;

/// Why a scenario cannot run. Settings are named as in the options of `fxscope run`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine cannot be loaded, or a setting of it is wrong.
    #[error(transparent)]
    Machine(#[from] LoadError),
    /// A setting that the machine or the host does not support.
    #[error("--{option}: {why}")]
    Option {
        /// The option, without its dashes, and its value where the message shows it.
        option: String,
        /// What is wrong and what to do.
        why: String,
    },
    /// The program's memory cannot be moved to another node as requested.
    #[error("{0}")]
    NoRemoteNode(&'static str),
    /// The scenario has no identity, since a part of it is not text or cannot be read from the host.
    #[error("{0}")]
    NoIdentity(String),
    /// The folder of a run's snapshots cannot be used.
    #[error(transparent)]
    Folder(#[from] fxscope_checkpoint::Error),
    /// A run cannot continue from a snapshot.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// What a folder of snapshots says cannot be followed.
    #[error("{0}")]
    Snapshots(String),
    /// The program cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl Error {
    /// Returns whether a snapshot is damaged: an older one may be whole.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        use fxscope_linux::SnapshotError as OfGuest;
        use std::io::ErrorKind::{InvalidData, UnexpectedEof};
        match self {
            Error::Folder(fxscope_checkpoint::Error::Damaged { .. }) => true,
            Error::Snapshot(SnapshotError::Damaged(_) | SnapshotError::Guest(OfGuest::Damaged)) => true,
            Error::Snapshot(SnapshotError::Guest(OfGuest::Host(error))) => {
                [InvalidData, UnexpectedEof].contains(&error.kind())
            }
            _ => false,
        }
    }

    /// Returns an error about an option; `option` may include the value.
    pub(crate) fn option(option: impl Into<String>, why: impl Into<String>) -> Error {
        Error::Option { option: option.into(), why: why.into() }
    }
}
