//! The integration tests of `fxscope-sim`, as one program: it links once.

mod accesses;
mod active_elements;
mod common;
mod engines;
mod events;
mod instruction_mix;
mod jobs;
mod parallel;
mod parts;
mod platform;
mod sampling;
mod shared_memory;
mod skipping;
mod snapshot;
