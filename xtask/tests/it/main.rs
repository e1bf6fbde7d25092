//! The integration tests of `xtask`, as one program: it links once.

mod coverage;
mod tidy;
