//! The integration tests of `fxscope-analyze`, as one program: it links once.

mod compare;
