//! Errors of the laboratories.

use fxscope_machine::LoadError;
use fxscope_record::Finish;

/// Why a laboratory has no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario cannot run.
    #[error(transparent)]
    Scenario(#[from] fxscope_session::Error),
    /// The request cannot be fulfilled; the message says what is missing or what to change.
    #[error("{0}")]
    Request(String),
    /// The program ended in a way that gives no result.
    #[error("{message}")]
    Ended {
        /// How it ended.
        finish: Finish,
        /// What that means for the request.
        message: String,
    },
    /// [`crate::Progress::stop_requested`] ended it. What was finished by then is in the cache.
    #[error("stopped before the end")]
    Stopped,
    /// The host failed.
    #[error(transparent)]
    Host(#[from] std::io::Error),
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Error {
        Error::Scenario(error.into())
    }
}

impl From<String> for Error {
    fn from(message: String) -> Error {
        Error::Request(message)
    }
}

impl From<&str> for Error {
    fn from(message: &str) -> Error {
        Error::Request(message.to_owned())
    }
}
