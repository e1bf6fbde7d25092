//! The integration tests of `fxscope-calendar`, as one program: it links once.

mod calendar;
