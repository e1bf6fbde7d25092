//! The integration tests of `fxscope-hostinfo`, as one program: it links once.

mod memory;
