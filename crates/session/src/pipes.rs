//! The manual's names of the pipes.

use fxscope_machine::Pipes;
use fxscope_pipeline::bind::PIPE_NAMES;

/// Returns the names of the pipes in `set`.
pub(crate) fn names(set: Pipes) -> impl Iterator<Item = &'static str> {
    PIPE_NAMES.into_iter().enumerate().filter(move |(i, _)| set.0 >> i & 1 == 1).map(|(_, name)| name)
}
