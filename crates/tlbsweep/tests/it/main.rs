//! The integration tests of `fxscope-tlbsweep`, as one program: it links once.

mod exact;
