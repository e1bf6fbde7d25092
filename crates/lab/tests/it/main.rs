//! The laboratories through the library: small programs, compared with arithmetic or with counts of runs.

mod common;
mod compare;
mod guide;
mod jitter;
mod jitter_replay;
mod latency;
mod pages;
mod runner;
