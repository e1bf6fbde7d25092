//! The integration tests of `fxscope-latency`, as one program: it links once.

mod methods;
mod records;
