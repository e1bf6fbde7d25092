//! The integration tests of `fxscope-report`, as one program: it links once.

mod analysis;
mod annotate;
mod browser;
mod charts;
mod common;
mod compare;
mod html;
mod json;
mod numpy;
mod peaks;
mod sampled;
mod spreadsheet;
mod tables;
mod terminal;
mod verdict;
mod xlsx;
