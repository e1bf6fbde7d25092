//! The laboratories through the library: small programs, compared with arithmetic or with counts of runs.

mod common;
mod compare;
mod jitter;
mod latency;
mod pages;
mod runner;
