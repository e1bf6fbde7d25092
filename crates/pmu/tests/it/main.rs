//! The integration tests of `fxscope-pmu`, as one program: it links once.

mod flash;
