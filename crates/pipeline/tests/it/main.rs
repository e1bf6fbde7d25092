//! The integration tests of `fxscope-pipeline`, as one program: it links once.

mod common;
mod rows;
mod snapshot;
mod stepped;
mod timing;
