//! Output formats.

pub mod json;
pub mod quantity;
pub mod terminal;
