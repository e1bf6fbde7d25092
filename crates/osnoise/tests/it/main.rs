//! The integration tests of `fxscope-osnoise`, as one program: it links once.

mod cause;
mod common;
mod fit;
mod import;
mod independent;
mod injected;
mod loops;
mod measured;
mod trace;
