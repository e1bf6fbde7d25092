//! Tests of the translator: it does what the interpreter does.

mod random;
mod traced;
