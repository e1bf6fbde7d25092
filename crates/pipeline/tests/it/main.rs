//! The integration tests of `fxscope-pipeline`, as one program: it links once.

mod common;
mod rows;
mod stepped;
mod timing;
