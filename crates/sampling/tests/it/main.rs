//! The integration tests of `fxscope-sampling`, as one program: it links once.

mod estimates;
mod populations;
