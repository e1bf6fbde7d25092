//! The integration tests of `fxscope-machine`, as one program: it links once.

mod bad_input;
mod evidence;
mod machines;
