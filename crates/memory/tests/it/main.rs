//! The integration tests of `fxscope-memory`, as one program: it links once.

mod snapshot;
mod stepped;
mod timing;
