//! The integration tests of `fxscope-jitter`, as one program: it links once.

mod brute_force;
mod closed_forms;
mod fx1;
mod models;
mod programs;
