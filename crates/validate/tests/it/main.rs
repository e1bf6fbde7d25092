//! The integration tests of `fxscope-validate`, as one program: it links once.

mod parts;
