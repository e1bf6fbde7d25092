//! Output formats.

pub mod json;
mod quantity;
pub mod terminal;
