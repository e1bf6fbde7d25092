//! What the pipeline promises, one behaviour a test.
//!
//! Expected numbers are computed from the machine's description, never taken from the model's own output.
//! The description is the real machine's; single values are changed where an odd one shows better
//! which parameter acts.

mod accounting;
mod branches;
mod decode;
mod groups;
mod interlock;
mod latency;
mod loads;
mod lookups;
mod ordering;
mod prefetch;
mod rules;
mod stage_times;
mod stores;
mod throughput;
mod window;
