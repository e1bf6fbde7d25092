//! The integration tests of `fxscope-hostinfo`, as one binary so that they link once.

mod memory;
