//! The laboratories through the library: small programs, results from arithmetic or from what their runs count.

mod common;
mod compare;
mod jitter;
mod latency;
mod pages;
mod runner;
