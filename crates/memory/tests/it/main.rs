//! The integration tests of `fxscope-memory`, as one program: it links once.

mod stepped;
mod timing;
