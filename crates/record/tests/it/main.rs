//! The integration tests of `fxscope-record`, as one program: it links once.

mod file;
mod profiles;
mod samples;
mod versions;
