//! Errors of scenarios.

use fxscope_linux::StartError;
use fxscope_machine::LoadError;

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
    /// The program cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl Error {
    /// Returns an error about an option; `option` may include the value.
    pub(crate) fn option(option: impl Into<String>, why: impl Into<String>) -> Error {
        Error::Option { option: option.into(), why: why.into() }
    }
}
