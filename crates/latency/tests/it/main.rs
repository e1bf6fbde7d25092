//! The integration tests of `fxscope-latency`, as one program: it links once.

mod main_memory;
mod methods;
mod records;
