//! The integration tests of `fxscope-calendar`, as one binary so that they link once.

mod calendar;
