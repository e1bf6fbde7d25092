//! Why a scenario cannot run.

use fxscope_linux::StartError;
use fxscope_machine::LoadError;

/// Why a scenario cannot run. Settings are named as the options of `fxscope run` that set them.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine cannot be loaded, or a setting of it is wrong.
    #[error(transparent)]
    Machine(#[from] LoadError),
    /// A setting that the machine or the host cannot meet.
    #[error("--{option}: {why}")]
    Option {
        /// The option, without its dashes, and its value where the message shows it.
        option: String,
        /// What is wrong and what to do.
        why: String,
    },
    /// The program's memory cannot be moved to another node, as far as that was asked.
    #[error("{0}")]
    NoRemoteNode(&'static str),
    /// A scenario that has no identity, since part of it cannot be written as text or read from the host.
    #[error("{0}")]
    NoIdentity(String),
    /// The program cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl Error {
    /// An error about an option; `option` may carry the value.
    pub(crate) fn option(option: impl Into<String>, why: impl Into<String>) -> Error {
        Error::Option { option: option.into(), why: why.into() }
    }
}
