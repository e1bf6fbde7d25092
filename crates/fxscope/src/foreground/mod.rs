//! A run in the foreground, of `run` and `resume`: the snapshots that are taken of it, and what is made of it when it is over.

mod results;
mod snapshots;

pub(crate) use results::Results;
pub(crate) use snapshots::{Keeping, Kept, over};
