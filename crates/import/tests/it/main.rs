//! The integration tests of `fxscope-import`, as one program: it links once.

mod fapp;
mod kinds;
mod mutations;
mod perf;
mod regions;
